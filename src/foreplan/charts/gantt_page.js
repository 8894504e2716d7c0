// The page: sizes, pointer, keys, search and buttons.

let waiting = 0;
const dirty = { base: true };

function draw() {
  waiting = 0;
  if (dirty.base) drawBase();
  dirty.base = false;
  drawMarks();
}

// However many events come between two frames, one drawing follows.
function redraw(whole = true) {
  dirty.base ||= whole;
  waiting ||= requestAnimationFrame(draw);
}

const fitHeight = () => Math.min(MAX_ROW, Math.max(MIN_ROW, (view.height - TOP - 4) / places.height));

function keepInside() {
  const length = Math.min(span, Math.max(view.to - view.from, span / 1e6));
  view.from = Math.max(0, Math.min(view.from, span - length));
  view.to = view.from + length;
  view.rowHeight = Math.max(Math.min(fitHeight(), MAX_ROW), Math.min(MAX_ROW, view.rowHeight));
  const hidden = places.height * view.rowHeight - (view.height - TOP - 4);
  view.scroll = Math.max(0, Math.min(view.scroll, hidden));
}

function resize() {
  const box = stage.getBoundingClientRect(), dense = window.devicePixelRatio || 1;
  const wasFitted = view.height === 0 || Math.abs(view.rowHeight - fitHeight()) < 0.01;
  view.width = Math.max(200, box.width);
  view.height = Math.max(80, box.height);
  for (const [canvas, pen] of [[base, basePen], [marks, marksPen]]) {
    canvas.width = Math.round(view.width * dense);
    canvas.height = Math.round(view.height * dense);
    pen.setTransform(dense, 0, 0, dense, 0, 0);
  }
  basePen.font = FONT;
  const width = (text) => basePen.measureText(text.slice(0, 60)).width;
  const widest = (field) => chart.rows.reduce((most, row) => Math.max(most, width(row[field])), 0);
  const labels = gauges.reduce((most, gauge) => Math.max(most, width(gauge.label)), 0);
  const names = Math.min(260, Math.max(widest("name"), labels));
  const hosts = chart.grouped ? Math.min(200, widest("host")) : 0;
  const needed = chart.grouped ? Math.max((hosts + 20) / 0.45, (names + 14) / 0.55) : names + 20;
  view.left = Math.min(view.width * 0.4, Math.max(needed, 80));
  if (wasFitted) view.rowHeight = fitHeight();
  keepInside();
  dirty.base = true;
  draw();  // at once: a canvas that has changed its size is blank
}

function zoomTime(factor, x = (view.left + view.width) / 2) {
  const at = timeAt(Math.max(view.left, x));
  view.from = at - (at - view.from) * factor;
  view.to = at + (view.to - at) * factor;
  keepInside();
  redraw();
}

function zoomRows(factor, y = view.height / 2) {
  const at = (y - TOP + view.scroll) / view.rowHeight;
  view.rowHeight = Math.max(fitHeight(), Math.min(MAX_ROW, view.rowHeight / factor));
  view.scroll = at * view.rowHeight - (y - TOP);
  keepInside();
  redraw();
}

function pan(dx, dy) {
  const shift = dx / pixels(), length = view.to - view.from;
  view.from = Math.max(0, Math.min(view.from + shift, span - length));
  view.to = view.from + length;
  view.scroll += dy;
  keepInside();
  redraw();
}

function reset() {
  Object.assign(view, { from: 0, to: span, scroll: 0, rowHeight: fitHeight() });
  select(-1);
  redraw();
}

function select(bar) {
  chosen.selected = bar;
  if (bar >= 0) speak(bar);
  redraw(false);
}

// Bring a task into view, wide enough to be seen.
function goTo(bar) {
  const start = bars.start[bar], finish = bars.finish[bar];
  const length = Math.min(view.to - view.from, Math.max((finish - start) * 25, span / 2000));
  const narrow = (finish - start) * pixels() < 6;
  if (narrow || start < view.from || finish > view.to) {
    const kept = narrow ? length : view.to - view.from;
    view.from = (start + finish) / 2 - kept / 2;
    view.to = view.from + kept;
  }
  if (view.rowHeight < 14) view.rowHeight = 14;
  const y = boxOf(bar)[1];
  if (y < TOP || y + view.rowHeight > view.height) {
    view.scroll += y - (view.height + TOP) / 2;
  }
  keepInside();
  select(bar);
  redraw();
  const [x, top, width, height] = boxOf(bar);
  showTip(bar, Math.max(view.left, x + width / 2), top + height);
}

function stepCritical(by) {
  const path = chart.critical.bar, here = criticalStep.get(chosen.selected);
  const next = here === undefined ? (by > 0 ? 0 : path.length - 1) : here + by;
  if (next >= 0 && next < path.length) goTo(path[next]);
}

const search = document.getElementById("search"), found = document.getElementById("found");

function find() {
  const wanted = search.value.trim().toLowerCase();
  chosen.found = [];
  chosen.at = -1;
  if (wanted) lowerNames.forEach((name, i) => { if (name.includes(wanted)) chosen.found.push(i); });
  found.textContent = wanted ? `${chosen.found.length} found` : "";
  redraw(false);
}

search.addEventListener("input", find);
search.addEventListener("keydown", (event) => {
  if (event.key === "Escape") { search.value = ""; find(); marks.focus(); }
  if (event.key !== "Enter" || chosen.found.length === 0) return;
  const count = chosen.found.length;
  const back = chosen.at <= 0 ? count - 1 : chosen.at - 1;
  chosen.at = event.shiftKey ? back : (chosen.at + 1) % count;
  found.textContent = `${chosen.at + 1} of ${count}`;
  goTo(chosen.found[chosen.at]);
});

// Within a longer page the wheel moves the page, until the chart was clicked.
marks.addEventListener("wheel", (event) => {
  if (!alone && !event.ctrlKey && document.activeElement !== marks) return;
  event.preventDefault();
  const lines = event.deltaMode === 1 ? 16 : 1;
  const dx = event.deltaX * lines, dy = event.deltaY * lines;
  const rows = event.shiftKey || event.ctrlKey;
  const amount = rows && dy === 0 ? dx : dy;  // some systems turn the wheel sideways with Shift
  const factor = Math.exp(Math.max(-1, Math.min(1, amount * 0.0018)));
  if (rows) zoomRows(factor, event.offsetY);
  else if (Math.abs(dx) > Math.abs(dy)) pan(dx, 0);
  else zoomTime(factor, event.offsetX);
}, { passive: false });

let drag = null;
marks.addEventListener("pointerdown", (event) => {
  if (event.button !== 0) return;
  drag = { x: event.offsetX, y: event.offsetY, moved: false };
  marks.setPointerCapture(event.pointerId);
});
marks.addEventListener("pointermove", (event) => {
  const { offsetX: x, offsetY: y } = event;
  if (!drag) { hover(barAt(x, y), x, y); return; }
  if (!drag.moved && Math.hypot(x - drag.x, y - drag.y) < 4) return;
  hover(-1);
  pan(drag.x - x, drag.y - y);
  drag = { x, y, moved: true };
  marks.classList.add("dragging");
});
marks.addEventListener("pointerup", (event) => {
  if (drag && !drag.moved) {
    const bar = barAt(event.offsetX, event.offsetY);
    select(bar === chosen.selected ? -1 : bar);
  }
  drag = null;
  marks.classList.remove("dragging");
});
marks.addEventListener("pointercancel", () => { drag = null; marks.classList.remove("dragging"); });
marks.addEventListener("pointerleave", () => hover(-1));
marks.addEventListener("dblclick", (event) => zoomTime(0.4, event.offsetX));

function hover(bar, x, y) {
  showTip(bar, x, y);
  marks.classList.toggle("task", bar >= 0);
  if (bar === chosen.hover) return;
  chosen.hover = bar;
  redraw(false);
}

const keys = {
  "+": () => zoomTime(0.7), "=": () => zoomTime(0.7), "-": () => zoomTime(1 / 0.7),
  "]": () => zoomRows(0.7), "[": () => zoomRows(1 / 0.7), "0": reset,
  ArrowLeft: () => pan(-80, 0), ArrowRight: () => pan(80, 0),
  ArrowUp: () => pan(0, -60), ArrowDown: () => pan(0, 60),
  n: () => stepCritical(1), p: () => stepCritical(-1),
  Escape: () => { select(-1); showTip(-1); }, "/": () => search.focus(),
};
root.addEventListener("keydown", (event) => {
  const typing = event.target instanceof HTMLInputElement && event.target.type === "search";
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const act = Object.hasOwn(keys, event.key) ? keys[event.key] : null;
  if (!act) return;
  event.preventDefault();
  act();
});

function toggle(id, name) {
  const box = document.getElementById(id);
  box.addEventListener("change", () => { shows[name] = box.checked; redraw(); });
}

toggle("show-transfers", "transfers");
toggle("show-critical", "critical");
document.getElementById("zoom-in").addEventListener("click", () => zoomTime(0.7));
document.getElementById("zoom-out").addEventListener("click", () => zoomTime(1 / 0.7));
document.getElementById("reset").addEventListener("click", reset);
document.getElementById("title").textContent = chart.title;
document.getElementById("facts").textContent = chart.facts.join(" \u00b7 ");
if (alone) document.title = chart.title;
else document.getElementById("keys").prepend("Click it first. ");
marks.setAttribute("aria-label", `Gantt chart: ${chart.title}; ${chart.facts.join("; ")}`);

function explain(name, background, opacity = 1) {
  const entry = element("li", name), colour = document.createElement("i");
  Object.assign(colour.style, { background, opacity });
  entry.title = name;
  entry.prepend(colour);
  document.getElementById("legend").append(entry);
}

if (chart.categories.length > 1) {
  chart.categories.forEach((name, i) => explain(name, chart.palette[i]));
}
for (const lane of lanes) if (lane.meant) explain(lane.name, chart.palette[0], PALE);
if (chart.moments.length > 0) {
  const line = "transparent 40%, var(--moment) 40% 60%, transparent 60%";
  explain("new plan", `linear-gradient(90deg, ${line})`);
}
const levels = new Map(gauges.flatMap((gauge) => gauge.levels).map((each) => [each.legend, each]));
for (const [name, level] of levels) {
  const colour = `var(--${level.meant ? "meant" : level.line ? "output" : "held"})`;
  const line = `linear-gradient(transparent 40%, ${colour} 40% 60%, transparent 60%)`;
  explain(name, level.meant || level.line ? line : colour);
}
const theme = matchMedia("(prefers-color-scheme: dark)");
theme.addEventListener("change", () => { readLook(); redraw(); });
new ResizeObserver(resize).observe(stage);
readLook();
resize();
