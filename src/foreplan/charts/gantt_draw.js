// The base canvas: rows, transfers, bars, the critical path, the axis and the names of rows.

const TOP = 26, RIGHT = 14, MIN_ROW = 3, MAX_ROW = 60;
const PALE = 0.45, FEW_MOMENTS = 40;
// pixels: narrower bars share an outline if they are this close; lines between rows are apart
const OUTLINED = 8, CLOSE = 4, APART = 12;
const FEW_TRANSFERS = 250, MOST_TRANSFERS = 4000, STROKE_BATCH = 400;
const stage = document.getElementById("stage");
const base = document.getElementById("base"), marks = document.getElementById("marks");
const basePen = base.getContext("2d"), marksPen = marks.getContext("2d");
const shows = { transfers: true, critical: true };
const view = { from: 0, to: span, scroll: 0, rowHeight: 20, width: 0, height: 0, left: 60 };
const look = {};

const FONT = '11px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
const pixels = () => (view.width - view.left - RIGHT) / (view.to - view.from);
const xOf = (time) => view.left + (time - view.from) * pixels();
const timeAt = (x) => view.from + (x - view.left) / pixels();
// Heights and tops are in rows, from the top of all; a row that is past the last is at its end.
const atHeight = (height) => TOP + height * view.rowHeight - view.scroll;
const heightAt = (y) => (y - TOP + view.scroll) / view.rowHeight;
const yOf = (row) => atHeight(row < rowCount ? places.row[row] : places.height);
// The rows in view; those that share lanes are in view together.
const firstRow = () => places.first[rowAbove(heightAt(TOP))];
const lastRow = () => {
  const row = rowAbove(heightAt(view.height));
  return places.first[row] + places.count[row] - 1;
};
// Whether the lanes of a host lie one below the other, with all of its rows in each.
const apart = blocks !== null && lanes.length > 1;
const middleOf = (bar) => { const [, y, , height] = boxOf(bar); return y + height / 2; };
const opensHost = (row) =>
  chart.grouped && (row === 0 || chart.rows[row - 1].host !== chart.rows[row].host);

// The last row whose top is not below a height.
function rowAbove(height) {
  let low = 0, high = rowCount;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (places.row[middle] <= height) low = middle + 1; else high = middle;
  }
  return Math.max(0, low - 1);
}

const marginOf = () => view.rowHeight > 8 ? view.rowHeight * 0.09 : 0.3;

// A lane in a row: its top and its height. Rows may share lanes: those of a host, one by one.
function slotOf(row, lane) {
  const first = places.first[row], count = places.count[row];
  const margin = marginOf();
  const inner = count * view.rowHeight - 2 * margin;
  const step = inner * lane.height / count, gap = count > 1 ? margin * lane.height : 0;
  const y = yOf(first) + margin + inner * lane.top + (row - first) * step;
  return [y + gap, step - 2 * gap];
}

// A block's box; one of no duration is still a pixel wide.
function blockBox(bar, [row, rows]) {
  const lane = lanes[bars.lane[bar]], x = xOf(bars.start[bar]);
  const [y, height] = slotOf(row, lane);
  const more = rows > 1 ? slotOf(row + rows - 1, lane)[0] - y : 0;
  return [x, y, Math.max(1, xOf(bars.finish[bar]) - x), height + more];
}

// The boxes of a bar, the largest first; that one has the name, and lines go there.
const boxesOf = (bar) => blocksOf(bar).map((block) => blockBox(bar, block));
const boxOf = (bar) => blockBox(bar, largestBlock(bar));

function readLook() {
  const style = getComputedStyle(root);
  for (const name of ["ink", "quiet", "line", "border", "idle", "transfer", "critical", "input",
                      "output", "veil", "moment", "paper", "held", "meant"]) {
    look[name] = style.getPropertyValue(`--${name}`).trim();
  }
}

function fitted(pen, text, room) {
  if (text.length > 300) text = text.slice(0, 300);
  if (pen.measureText(text).width <= room) return text;
  if (room < 28) return "";
  let low = 0, high = text.length;
  while (low < high) {
    const kept = (low + high + 1) >> 1;
    if (pen.measureText(shortened(text, kept)).width <= room) low = kept; else high = kept - 1;
  }
  return low >= 5 ? shortened(text, low) : "";
}

// The ends of a name say most: what kind of task it is, and which one.
function shortened(text, kept) {
  const head = kept >> 1;
  return `${text.slice(0, head)}\u2026${text.slice(text.length - (kept - head))}`;
}

function clipToPlot(pen) {
  pen.beginPath();
  pen.rect(view.left, TOP, view.width - view.left, view.height - TOP);
  pen.clip();
}

function drawRows(pen) {
  pen.fillStyle = look.idle;
  const gap = view.rowHeight > 8 ? 1 : 0;
  for (let row = firstRow(); row <= lastRow(); row++) {
    const x = xOf(chart.rows[row].begin), width = xOf(chart.rows[row].end) - x;
    for (const [y, height] of stripsOf(row, gap)) pen.fillRect(x, y, width, height);
    drawAway(pen, row, gap);
  }
  pen.fillStyle = look.border;
  for (let row = Math.max(1, firstRow()); row <= lastRow(); row++) {
    if (opensHost(row)) pen.fillRect(0, Math.round(yOf(row)), view.width, 1);
  }
}

// Where a row is: once, or once in each lane, if those of a host lie apart.
function stripsOf(row, gap) {
  if (!apart) return [[yOf(row) + gap / 2, view.rowHeight - gap]];
  return lanes.map((lane) => {
    const [y, height] = slotOf(row, lane);
    const more = lane.meant ? marginOf() * lane.height : 0;  // gaps would show through
    return [y - more, height + 2 * more];
  });
}

// While a processor was gone, its row is empty paper with a line through it.
function drawAway(pen, row, gap) {
  for (const [begin, end] of chart.rows[row].away) {
    const x = xOf(begin), width = xOf(end) - x;
    for (const [y, height] of stripsOf(row, gap)) {
      pen.fillStyle = look.paper;
      pen.fillRect(x, y, width, height);
      pen.fillStyle = look.border;
      pen.fillRect(x, y + height / 2, width, 1);
    }
  }
  pen.fillStyle = look.idle;
}

// The top of a gauge and its height, in pixels.
function gaugeBox(number) {
  const height = places.gauge_height[number] * view.rowHeight;
  return [atHeight(places.gauge[number]) + 0.08 * height, 0.86 * height];
}

// What is held of what hosts have: filled; what was meant and what was used are lines.
function drawGauges(pen) {
  gauges.forEach((gauge, number) => {
    const [top, height] = gaugeBox(number);
    if (top > view.height || top + height < TOP) return;
    pen.fillStyle = look.idle;
    pen.globalAlpha = 0.6;
    pen.fillRect(xOf(0), top, xOf(span) - xOf(0), height);
    pen.globalAlpha = 1;
    for (const level of gauge.levels) drawLevel(pen, gauge, level, top, height);
    pen.fillStyle = look.border;
    pen.fillRect(xOf(0), top, xOf(span) - xOf(0), 1);
  });
}

function drawLevel(pen, gauge, level, top, height) {
  const yAt = (held) => top + height * (1 - held / gauge.size);
  const filled = !level.meant && !level.line;
  pen.beginPath();
  pen.moveTo(xOf(0), yAt(0));
  let held = 0;
  level.time.forEach((time, i) => {
    pen.lineTo(xOf(time), yAt(held));
    held = level.held[i];
    pen.lineTo(xOf(time), yAt(held));
  });
  pen.lineTo(xOf(span), yAt(held));
  if (filled) {
    pen.lineTo(xOf(span), yAt(0));
    pen.fillStyle = look.held;
    pen.fill();
    return;
  }
  pen.strokeStyle = level.meant ? look.meant : look.output;
  pen.lineWidth = 1.2;
  pen.setLineDash(level.meant ? [4, 3] : []);
  pen.stroke();
  pen.setLineDash([]);
}

// A thin line through all rows whenever a new plan was taken.
function drawMoments(pen) {
  const visible = chart.moments.filter((time) => time >= view.from && time <= view.to);
  const few = visible.length <= FEW_MOMENTS, bottom = Math.min(view.height, yOf(rowCount));
  pen.strokeStyle = look.moment;
  pen.lineWidth = 1;
  pen.globalAlpha = few ? 0.8 : Math.max(0.15, 0.8 * FEW_MOMENTS / visible.length);
  pen.setLineDash([5, 3]);
  pen.beginPath();
  for (const time of visible) {
    const x = Math.round(xOf(time)) + 0.5;
    pen.moveTo(x, TOP);
    pen.lineTo(x, bottom);
  }
  pen.stroke();
  pen.setLineDash([]);
  pen.globalAlpha = 1;
}

// Bars from left to right in each lane; those that would fall on the same pixel are skipped.
function drawBars(pen) {
  const top = firstRow(), first = top * lanes.length, last = (lastRow() + 1) * lanes.length;
  const names = [];
  for (let key = first; key < last; key++) {
    const list = inLane(key);
    const row = Math.floor(key / lanes.length);
    pen.globalAlpha = lanes[key % lanes.length].meant ? PALE : 1;
    let drawnTo = -Infinity;
    for (let i = firstAfter(list, view.from); i < list.length; i++) {
      const bar = list[i];
      if (bars.start[bar] > view.to) break;
      const all = blocksOf(bar), block = all.find(([at, rows]) => row >= at && row < at + rows);
      if (row !== Math.max(block[0], top)) continue;  // it is drawn with the first of its rows
      const [x, y, width, height] = blockBox(bar, block);
      if (x + width < drawnTo + 0.5) continue;
      drawnTo = x + width;
      pen.fillStyle = chart.palette[bars.category[bar]];
      pen.fillRect(x, y, width > 3 ? width - 0.7 : width, height);
      if (bars.spare && bars.spare[bar] > 0) {  // how much later it may end, and nobody waits
        const room = xOf(bars.finish[bar] + bars.spare[bar]) - x - width;
        pen.fillRect(x + width, y + height / 2 - 1, room, 2);
      }
      if (height >= 10 && width > 14 && block === all[0]) names.push([bar, x, y, width, height]);
    }
  }
  pen.globalAlpha = 1;
  drawNames(pen, names);
}

// Measuring text is slow: names that fit, and bars too narrow for any, need it only once.
const nameWidths = new Float32Array(barCount);

function fittedName(pen, bar, room) {
  nameWidths[bar] ||= pen.measureText(bars.name[bar].slice(0, 300)).width;
  if (nameWidths[bar] <= room) return bars.name[bar];
  return room < 28 ? "" : fitted(pen, bars.name[bar], room);
}

function drawNames(pen, names) {
  pen.fillStyle = "#111111";
  pen.font = FONT;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  for (const [bar, x, y, width, height] of names) {
    const left = Math.max(x, view.left), right = Math.min(x + width, view.width);
    const text = fittedName(pen, bar, right - left - 8);
    if (text) pen.fillText(text, (left + right) / 2, y + height / 2 + 0.5);
  }
}

function visibleTransfers() {
  const first = firstRow(), last = lastRow();
  return transfers.filter((i) => {
    if (inputs.sent[i] > view.to || inputs.arrival[i] < view.from) return false;
    const a = bars.row[inputs.source[i]], b = bars.row[inputs.target[i]];
    return Math.max(a, b) >= first && Math.min(a, b) <= last;
  });
}

// Every so-manyth of too many transfers: the picture stays the same and the hand stays quick.
function drawTransfers(pen, visible) {
  const step = Math.ceil(visible.length / MOST_TRANSFERS);
  const drawn = Math.ceil(visible.length / Math.max(1, step));
  pen.strokeStyle = look.transfer;
  pen.lineWidth = drawn <= FEW_TRANSFERS ? 1 : 0.6;
  pen.globalAlpha = drawn <= FEW_TRANSFERS ? 0.75 : Math.max(0.1, Math.min(0.5, 200 / drawn));
  pen.beginPath();
  for (let n = 0, place = 0; place < visible.length; n++, place += step) {
    const i = visible[place];
    pen.moveTo(xOf(inputs.sent[i]), middleOf(inputs.source[i]));
    pen.lineTo(xOf(inputs.arrival[i]), middleOf(inputs.target[i]));
    if (n % STROKE_BATCH === STROKE_BATCH - 1) { pen.stroke(); pen.beginPath(); }
  }
  pen.stroke();
  pen.globalAlpha = 1;
  const few = step > 1 ? `1 in ${step} of ${visible.length} transfers is drawn` : "";
  document.getElementById("note").textContent = few;
}

// Narrow bars side by side share an outline, and lines side by side are drawn once: otherwise
// hundreds of tasks would be black. The path is in the order of time.
function drawCritical(pen) {
  const path = chart.critical.bar, open = new Map(), drawn = new Map();
  pen.strokeStyle = look.critical;
  pen.lineWidth = barCount > 1000 ? 1.5 : 2;
  pen.beginPath();
  path.forEach((bar, step) => {
    if (step > 0) drawLink(pen, path[step - 1], bar, drawn);
    if (bars.finish[bar] < view.from || bars.start[bar] > view.to) return;
    for (const box of boxesOf(bar)) {
      const [x, y, width, height] = box;
      if (width >= OUTLINED) { pen.rect(...box); continue; }
      const row = `${y} ${height}`, last = open.get(row);
      if (last && x - last[0] - last[2] <= CLOSE) {
        last[2] = Math.max(last[2], x + width - last[0]);
      } else {
        if (last) pen.rect(...last);
        open.set(row, box);
      }
    }
  });
  for (const box of open.values()) pen.rect(...box);
  pen.stroke();
}

function drawLink(pen, before, after, drawn) {
  const from = [xOf(bars.finish[before]), middleOf(before)];
  const to = [xOf(bars.start[after]), middleOf(after)];
  const heights = `${Math.min(from[1], to[1])} ${Math.max(from[1], to[1])}`;
  const last = drawn.get(heights);
  if (last && Math.abs(from[0] - last[0]) <= APART && Math.abs(to[0] - last[1]) <= APART) return;
  drawn.set(heights, [from[0], to[0]]);
  pen.moveTo(...from);
  pen.lineTo(...to);
}

// The step between ticks: 1, 2 or 5 times a power of ten, about 90 pixels apart.
function tickStep() {
  const rough = (view.to - view.from) / chart.unit.seconds / Math.max(2, view.width / 90);
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
}

function drawAxis(pen) {
  const step = tickStep(), unit = chart.unit.seconds;
  const digits = Math.max(0, Math.min(12, -Math.floor(Math.log10(step) + 1e-9)));
  pen.font = FONT;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  for (let n = Math.ceil(view.from / unit / step); n * step * unit <= view.to; n++) {
    const x = xOf(n * step * unit);
    pen.fillStyle = look.line;
    pen.fillRect(Math.round(x), TOP - 5, 1, Math.min(view.height, yOf(rowCount)) - TOP + 5);
    pen.fillStyle = look.quiet;
    if (x < view.width - 24) pen.fillText((n * step).toFixed(digits), x, 11);
  }
  pen.textAlign = "right";
  pen.fillText(`time (${chart.unit.name})`, view.left - 12, 11);
}

function drawGutter(pen) {
  pen.clearRect(0, TOP, view.left, view.height);
  pen.font = FONT;
  pen.textBaseline = "middle";
  const step = apart ? view.rowHeight * lanes.at(-1).height : view.rowHeight;
  const every = Math.max(1, Math.ceil(12 / step));
  const hosts = chart.grouped ? view.left * 0.45 : 0;
  for (let row = firstRow(); row <= lastRow(); row++) {
    const { name, host } = chart.rows[row], [top, height] = stripsOf(row, 0).at(-1);
    const y = top + height / 2;
    if (row % every === 0 && y > TOP) {
      pen.textAlign = "right";
      pen.fillStyle = look.ink;
      const text = fitted(pen, name, view.left - hosts - 12);
      pen.fillText(text, view.left - 8, Math.max(y, TOP + 6));
    }
    if (row === firstRow() || opensHost(row)) drawHost(pen, row, host, hosts - 8);
  }
  pen.textAlign = "right";
  pen.fillStyle = look.quiet;
  gauges.forEach((gauge, number) => {
    const [top, height] = gaugeBox(number), y = top + height / 2;
    if (y > TOP) pen.fillText(fitted(pen, gauge.label, view.left - hosts - 12), view.left - 8, y);
  });
}

function drawHost(pen, row, host, room) {
  if (!chart.grouped) return;
  let after = row + 1;
  while (after < rowCount && chart.rows[after].host === host) after++;
  pen.fillStyle = look.border;
  if (opensHost(row) && row > 0) pen.fillRect(0, Math.round(yOf(row)), room + 4, 1);
  const middle = (Math.max(yOf(row), TOP) + Math.min(yOf(after), view.height)) / 2;
  if ((after - row) * view.rowHeight < 11) return;
  pen.textAlign = "left";
  pen.fillStyle = look.quiet;
  pen.fillText(fitted(pen, host, room), 8, middle);
}

function drawBase() {
  const pen = basePen;
  pen.clearRect(0, 0, view.width, view.height);
  const visible = shows.transfers ? visibleTransfers() : [];
  const under = visible.length > FEW_TRANSFERS;
  pen.save();
  clipToPlot(pen);
  drawRows(pen);
  drawGauges(pen);
  pen.restore();
  drawAxis(pen);
  pen.save();
  clipToPlot(pen);
  if (under) drawTransfers(pen, visible);
  drawBars(pen);
  drawMoments(pen);
  if (!under) drawTransfers(pen, visible);
  if (shows.critical) drawCritical(pen);
  pen.restore();
  pen.save();
  pen.beginPath();
  pen.rect(0, TOP, view.width, view.height - TOP);
  pen.clip();
  drawGutter(pen);
  pen.restore();
}
