// The page of a graph: the picture moves by its view box; names are shown as text, never as markup.

const graph = JSON.parse(document.getElementById("graph-data").textContent);
const stage = document.getElementById("stage"), picture = document.getElementById("graph");
const tip = document.getElementById("tip"), search = document.getElementById("search");
const found = document.getElementById("found");
const nodes = [...picture.querySelectorAll(".node")], edges = [...picture.querySelectorAll(".edge")];
const whole = { width: Number(picture.dataset.width), height: Number(picture.dataset.height) };
const view = { x: 0, y: 0, scale: 1 };  // the picture's corner, and pixels of the page for one of it
const lowerNames = graph.nodes.map((node) => node.name.toLowerCase());
let hits = [], at = -1;

function element(kind, text) {
  const made = document.createElement(kind);
  made.textContent = text;
  return made;
}

function show() {
  const { width, height } = stage.getBoundingClientRect();
  picture.setAttribute("viewBox",
    `${view.x} ${view.y} ${width / view.scale} ${height / view.scale}`);
}

function reset() {
  const { width, height } = stage.getBoundingClientRect();
  view.scale = Math.min(2, Math.max(1, width - 32) / whole.width, Math.max(1, height - 24) / whole.height);
  view.x = (whole.width - width / view.scale) / 2;
  view.y = (whole.height - height / view.scale) / 2;
  choose(-1);
  show();
}

function zoom(factor, x = stage.clientWidth / 2, y = stage.clientHeight / 2) {
  const scale = Math.min(8, Math.max(0.01, view.scale * factor));
  view.x += x / view.scale - x / scale;
  view.y += y / view.scale - y / scale;
  view.scale = scale;
  show();
}

function pan(dx, dy) {
  view.x += dx / view.scale;
  view.y += dy / view.scale;
  show();
}

const needed = (node) => graph.edges.filter(([, target]) => target === node).map(([source]) => source);
const readers = (node) => graph.edges.filter(([source]) => source === node).map(([, target]) => target);

function names(list, most = 6) {
  const first = list.slice(0, most).map((node) => graph.nodes[node].name).join(", ");
  return list.length > most ? `${first} and ${list.length - most} more` : first || "none";
}

function describe(node) {
  return [...graph.nodes[node].facts, ["after", names(needed(node))], ["before", names(readers(node))]];
}

function showTip(node, x, y) {
  tip.hidden = node < 0;
  if (node < 0) return;
  const list = document.createElement("dl");
  for (const [word, fact] of describe(node)) list.append(element("dt", word), element("dd", fact));
  tip.replaceChildren(element("b", graph.nodes[node].name), list);
  const { offsetWidth: width, offsetHeight: height } = tip;
  const right = x + 14 + width < stage.clientWidth, below = y + 14 + height < stage.clientHeight;
  tip.style.left = `${Math.max(4, right ? x + 14 : x - 14 - width)}px`;
  tip.style.top = `${Math.max(4, below ? y + 14 : stage.clientHeight - height - 4)}px`;
}

function choose(node) {
  picture.classList.toggle("chosen", node >= 0);
  nodes.forEach((drawn) => drawn.classList.remove("chosen", "near"));
  edges.forEach((drawn) => drawn.classList.remove("in", "out"));
  if (node < 0) return;
  nodes[node].classList.add("chosen");
  for (const near of [...needed(node), ...readers(node)]) nodes[near].classList.add("near");
  graph.edges.forEach(([source, target], k) => {
    if (target === node) edges[k].classList.add("in");
    if (source === node) edges[k].classList.add("out");
  });
  const facts = describe(node).map(([word, fact]) => `${word} ${fact}`);
  document.getElementById("spoken").textContent = `${graph.nodes[node].name}: ${facts.join("; ")}`;
}

function goTo(node) {
  const box = nodes[node].getBBox(), { clientWidth: width, clientHeight: height } = stage;
  view.scale = Math.max(view.scale, 0.9);
  view.x = box.x + box.width / 2 - width / view.scale / 2;
  view.y = box.y + box.height / 2 - height / view.scale / 2;
  show();
  choose(node);
  showTip(node, width / 2, height / 2 + box.height / 2 * view.scale);
}

search.addEventListener("input", () => {
  const wanted = search.value.trim().toLowerCase();
  hits = [];
  at = -1;
  lowerNames.forEach((name, k) => {
    const hit = wanted !== "" && name.includes(wanted);
    nodes[k].classList.toggle("found", hit);
    if (hit) hits.push(k);
  });
  found.textContent = wanted ? `${hits.length} found` : "";
});
search.addEventListener("keydown", (event) => {
  if (event.key === "Escape") { search.value = ""; search.dispatchEvent(new Event("input")); stage.focus(); }
  if (event.key !== "Enter" || hits.length === 0) return;
  at = (at + (event.shiftKey ? hits.length - 1 : 1)) % hits.length;
  found.textContent = `${at + 1} of ${hits.length}`;
  goTo(hits[at]);
});

const nodeAt = (event) => Number(event.target.closest?.(".node")?.dataset.n ?? -1);
const place = (event) => {
  const box = stage.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
};
stage.addEventListener("wheel", (event) => {
  event.preventDefault();
  const lines = event.deltaMode === 1 ? 16 : 1;
  zoom(Math.exp(-Math.max(-1, Math.min(1, event.deltaY * lines * 0.0018))), ...place(event));
}, { passive: false });

let drag = null;
stage.addEventListener("pointerdown", (event) => {
  if (event.button === 0) drag = { x: event.clientX, y: event.clientY, node: nodeAt(event), moved: false };
});
stage.addEventListener("pointermove", (event) => {
  if (!drag) { showTip(nodeAt(event), ...place(event)); return; }
  const dx = drag.x - event.clientX, dy = drag.y - event.clientY;
  if (!drag.moved && Math.hypot(dx, dy) < 4) return;
  if (!drag.moved) stage.setPointerCapture(event.pointerId);
  Object.assign(drag, { x: event.clientX, y: event.clientY, moved: true });
  stage.classList.add("dragging");
  showTip(-1);
  pan(dx, dy);
});
function release() {
  if (drag && !drag.moved) choose(drag.node);
  drag = null;
  stage.classList.remove("dragging");
}
stage.addEventListener("pointerup", release);
stage.addEventListener("pointercancel", () => { drag = null; stage.classList.remove("dragging"); });
stage.addEventListener("pointerleave", () => showTip(-1));

const keys = {
  "+": () => zoom(1.4), "=": () => zoom(1.4), "-": () => zoom(1 / 1.4), "0": reset,
  ArrowLeft: () => pan(-80, 0), ArrowRight: () => pan(80, 0),
  ArrowUp: () => pan(0, -60), ArrowDown: () => pan(0, 60),
  Escape: () => { choose(-1); showTip(-1); }, "/": () => search.focus(),
};
document.addEventListener("keydown", (event) => {
  if (event.target === search || event.ctrlKey || event.metaKey || event.altKey) return;
  const act = Object.hasOwn(keys, event.key) ? keys[event.key] : null;
  if (!act) return;
  event.preventDefault();
  act();
});
document.getElementById("zoom-in").addEventListener("click", () => zoom(1.4));
document.getElementById("zoom-out").addEventListener("click", () => zoom(1 / 1.4));
document.getElementById("reset").addEventListener("click", reset);
document.getElementById("title").textContent = graph.title;
document.getElementById("facts").textContent = graph.facts.join(" \u00b7 ");
document.title = graph.title;
for (const [name, colour] of graph.legend) {
  const entry = element("li", name), mark = document.createElement("i");
  mark.style.background = colour;
  entry.prepend(mark);
  document.getElementById("legend").append(entry);
}
let fitted = 0;
new ResizeObserver(() => { if (stage.clientWidth && !fitted++) reset(); else show(); }).observe(stage);
reset();
