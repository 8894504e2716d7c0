// The base canvas: rows, transfers, bars, the critical path, the axis and the names of rows.

const TOP = 26, RIGHT = 14, MIN_ROW = 3, MAX_ROW = 60;
const PALE = 0.45, FEW_MOMENTS = 40;
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
const yOf = (row) => TOP + row * view.rowHeight - view.scroll;
const rowAt = (y) => Math.floor((y - TOP + view.scroll) / view.rowHeight);
const firstRow = () => Math.max(0, rowAt(TOP));
const lastRow = () => Math.min(rowCount - 1, rowAt(view.height));
const middleOf = (bar) => { const [, y, , height] = boxOf(bar); return y + height / 2; };
const opensHost = (row) =>
  chart.grouped && (row === 0 || chart.rows[row - 1].host !== chart.rows[row].host);

// A bar's box; one of no duration is still a pixel wide.
function boxOf(bar) {
  const lane = lanes[bars.lane[bar]];
  const margin = view.rowHeight > 8 ? view.rowHeight * 0.09 : 0.3;
  const inner = view.rowHeight - 2 * margin, x = xOf(bars.start[bar]);
  const y = yOf(bars.row[bar]) + margin + inner * lane.top;
  return [x, y, Math.max(1, xOf(bars.finish[bar]) - x), inner * lane.height];
}

function readLook() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["ink", "quiet", "line", "border", "idle", "transfer", "critical", "input",
                      "output", "veil", "moment", "paper"]) {
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
    pen.fillRect(x, yOf(row) + gap / 2, width, view.rowHeight - gap);
    drawAway(pen, row, gap);
  }
  pen.fillStyle = look.border;
  for (let row = Math.max(1, firstRow()); row <= lastRow(); row++) {
    if (opensHost(row)) pen.fillRect(0, Math.round(yOf(row)), view.width, 1);
  }
}

// While a processor was gone, its row is empty paper with a line through it.
function drawAway(pen, row, gap) {
  for (const [begin, end] of chart.rows[row].away) {
    const x = xOf(begin), width = xOf(end) - x, y = yOf(row);
    pen.fillStyle = look.paper;
    pen.fillRect(x, y + gap / 2, width, view.rowHeight - gap);
    pen.fillStyle = look.border;
    pen.fillRect(x, y + view.rowHeight / 2, width, 1);
  }
  pen.fillStyle = look.idle;
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
  const first = firstRow() * lanes.length, last = (lastRow() + 1) * lanes.length;
  const names = [];
  for (let key = first; key < last; key++) {
    const list = inLane(key);
    pen.globalAlpha = lanes[key % lanes.length].meant ? PALE : 1;
    let drawnTo = -Infinity;
    for (let i = firstAfter(list, view.from); i < list.length; i++) {
      const bar = list[i];
      if (bars.start[bar] > view.to) break;
      const [x, y, width, height] = boxOf(bar);
      if (x + width < drawnTo + 0.5) continue;
      drawnTo = x + width;
      pen.fillStyle = chart.palette[bars.category[bar]];
      pen.fillRect(x, y, width > 3 ? width - 0.7 : width, height);
      if (height >= 10 && width > 14) names.push([bar, x, y, width, height]);
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

function drawCritical(pen) {
  const path = chart.critical.bar;
  pen.strokeStyle = look.critical;
  pen.lineWidth = barCount > 1000 ? 1.5 : 2;
  pen.beginPath();
  path.forEach((bar, step) => {
    if (step > 0) {
      const before = path[step - 1];
      pen.moveTo(xOf(bars.finish[before]), middleOf(before));
      pen.lineTo(xOf(bars.start[bar]), middleOf(bar));
    }
    if (bars.finish[bar] >= view.from && bars.start[bar] <= view.to) pen.rect(...boxOf(bar));
  });
  pen.stroke();
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
  pen.fillText(`time (${chart.unit.name})`, view.left - 22, 11);
}

function drawGutter(pen) {
  pen.clearRect(0, TOP, view.left, view.height);
  pen.font = FONT;
  pen.textBaseline = "middle";
  const every = Math.max(1, Math.ceil(12 / view.rowHeight));
  const hosts = chart.grouped ? view.left * 0.45 : 0;
  for (let row = firstRow(); row <= lastRow(); row++) {
    const { name, host } = chart.rows[row], y = yOf(row) + view.rowHeight / 2;
    if (row % every === 0 && y > TOP) {
      pen.textAlign = "right";
      pen.fillStyle = look.ink;
      const text = fitted(pen, name, view.left - hosts - 12);
      pen.fillText(text, view.left - 8, Math.max(y, TOP + 6));
    }
    if (row === firstRow() || opensHost(row)) drawHost(pen, row, host, hosts - 8);
  }
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
