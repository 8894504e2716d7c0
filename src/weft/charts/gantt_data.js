// The data, indexed: bars by lane, inputs and outputs by bar.

const chart = JSON.parse(document.getElementById("chart-data").textContent);
const bars = chart.bars, inputs = chart.inputs, lanes = chart.lanes;
const barCount = bars.name.length, rowCount = chart.rows.length;
const span = chart.end > 0 ? chart.end : 1;

// Places in a list by key, as compressed sparse rows.
function grouped(keys, size) {
  const pointers = new Int32Array(size + 1);
  for (const key of keys) if (key >= 0) pointers[key + 1]++;
  for (let i = 0; i < size; i++) pointers[i + 1] += pointers[i];
  const next = pointers.slice(), entries = new Int32Array(pointers[size]);
  keys.forEach((key, place) => { if (key >= 0) entries[next[key]++] = place; });
  return (key) => entries.subarray(pointers[key], pointers[key + 1]);
}

const inputsOf = grouped(inputs.target, barCount);
const outputsOf = grouped(inputs.source, barCount);

// Bars of one lane of one row do not overlap: sorted by start, they are sorted by finish.
const inLane = grouped(bars.row.map((row, i) => row * lanes.length + bars.lane[i]),
                       rowCount * lanes.length);
for (let key = 0; key < rowCount * lanes.length; key++) {
  inLane(key).sort((a, b) =>
    bars.start[a] - bars.start[b] || bars.finish[a] - bars.finish[b] || a - b);
}

const transfers = [];
inputs.shown.forEach((shown, i) => { if (shown) transfers.push(i); });

const criticalStep = new Map(chart.critical.bar.map((bar, step) => [bar, step]));
const lowerNames = bars.name.map((name) => name.toLowerCase());

// Where a plan is set against what happened: the planned bar of a task, by its name.
const meantFor = new Map();
bars.name.forEach((name, bar) => { if (lanes[bars.lane[bar]].meant) meantFor.set(name, bar); });

function plannedLine(bar) {
  return `${rowName(bars.row[bar])}, ${duration(bars.start[bar])} to ${duration(bars.finish[bar])}`;
}

// The first place in sorted bars whose finish is not before a time.
function firstAfter(list, time) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (bars.finish[list[middle]] < time) low = middle + 1; else high = middle;
  }
  return low;
}

// A time as people write it: as `duration(seconds, 3)` of weft/quantities.py.
function duration(seconds) {
  const rounded = Number(seconds.toPrecision(6));
  if (rounded < 60) {
    const [name, size] = [["s", 1], ["ms", 1e-3], ["µs", 1e-6], ["ns", 1e-9]]
      .find(([, size]) => Number((seconds / size).toPrecision(6)) >= 1) || ["s", 1];
    return `${Number((seconds / size).toPrecision(6))} ${name}`;
  }
  const step = seconds >= 86400 ? 6000 : seconds >= 3600 ? 100 : 1; // in hundredths
  let left = Math.round(seconds * 100 / step) * step;
  const said = [];
  for (const [name, size] of [["d", 8640000], ["h", 360000], ["min", 6000]]) {
    const count = Math.floor(left / size);
    if (count) said.push(`${count.toLocaleString("en")} ${name}`);
    left -= count * size;
  }
  if (left) said.push(`${left / 100} s`);
  return said.slice(0, 3).join(" ");
}

function rowName(row) {
  const { name, host } = chart.rows[row];
  return chart.grouped && host !== name ? `${name} on ${host}` : name;
}

// One line per input: what it is, who made it where, and when it was there.
function inputLine(i) {
  const item = inputs.item && inputs.item[i] ? `${inputs.item[i]}: ` : "";
  const source = inputs.source[i];
  if (source < 0) return `${item}from outside`;
  const from = bars.row[source], to = bars.row[inputs.target[i]];
  const moved = chart.rows[from].host !== chart.rows[to].host;
  const way = moved ? ` (${duration(inputs.arrival[i] - inputs.sent[i])} on its way)` : "";
  const place = chart.rows[from].name;
  return `${item}${bars.name[source]} on ${place}, there at ${duration(inputs.arrival[i])}${way}`;
}

function criticalLine(bar) {
  if (!criticalStep.has(bar)) return "no";
  const step = criticalStep.get(bar), bound = chart.critical.bound[step];
  const place = `yes, ${step + 1} of ${chart.critical.bar.length}`;
  if (bound === "nothing") return `${place}; waited for no task`;
  const before = bars.name[chart.critical.bar[step - 1]];
  return bound === "data" ? `${place}; waited for data of ${before}`
    : `${place}; waited for its processor, after ${before}`;
}

// What there is to say about a task, as pairs of words.
function describe(bar, most) {
  const facts = [["processor", rowName(bars.row[bar])]];
  if (lanes.length > 1) facts.push(["bar", lanes[bars.lane[bar]].name]);
  facts.push(["start", duration(bars.start[bar])], ["finish", duration(bars.finish[bar])],
             ["duration", duration(bars.finish[bar] - bars.start[bar])]);
  if (chart.categories.length > 1) facts.push(["category", chart.categories[bars.category[bar]]]);
  if (lanes[bars.lane[bar]].meant) return facts;
  const meant = meantFor.get(bars.name[bar]);
  if (meant !== undefined) facts.push(["planned", plannedLine(meant)]);
  facts.push(["critical path", criticalLine(bar)]);
  const read = inputsOf(bar), made = outputsOf(bar);
  for (let i = 0; i < Math.min(most, read.length); i++) {
    facts.push([i === 0 ? "inputs" : "", inputLine(read[i])]);
  }
  if (read.length > most) facts.push(["", `and ${read.length - most} more`]);
  if (read.length === 0) facts.push(["inputs", "none"]);
  facts.push(["read by", made.length === 1 ? "1 task" : `${made.length} tasks`]);
  return facts;
}
