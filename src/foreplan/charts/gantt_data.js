// The data, indexed: bars by lane, inputs and outputs by bar.

const root = document.querySelector(".gantt"), alone = root === document.body;
const chart = JSON.parse(document.getElementById("chart-data").textContent);
const bars = chart.bars, inputs = chart.inputs, lanes = chart.lanes;
const places = chart.places, gauges = chart.gauges, blocks = bars.blocks;
const barCount = bars.name.length, rowCount = chart.rows.length;
const span = chart.end > 0 ? chart.end : 1;

// Places in a list by key, or what is there in another list, as compressed sparse rows.
function grouped(keys, size, values = null) {
  const pointers = new Int32Array(size + 1);
  for (const key of keys) if (key >= 0) pointers[key + 1]++;
  for (let i = 0; i < size; i++) pointers[i + 1] += pointers[i];
  const next = pointers.slice(), entries = new Int32Array(pointers[size]);
  keys.forEach((key, place) => {
    if (key >= 0) entries[next[key]++] = values ? values[place] : place;
  });
  return (key) => entries.subarray(pointers[key], pointers[key + 1]);
}

const inputsOf = grouped(inputs.target, barCount);
const outputsOf = grouped(inputs.source, barCount);

// The rows of a bar as blocks of neighbouring ones: pairs of the first and how many.
function largestBlock(bar) {
  return blocks ? [blocks.row[blocks.ptr[bar]], blocks.rows[blocks.ptr[bar]]] : [bars.row[bar], 1];
}

function blocksOf(bar) {
  if (!blocks) return [largestBlock(bar)];
  const list = [];
  for (let i = blocks.ptr[bar]; i < blocks.ptr[bar + 1]; i++) {
    list.push([blocks.row[i], blocks.rows[i]]);
  }
  return list;
}

function coreCount(bar) {
  return blocksOf(bar).reduce((sum, [, rows]) => sum + rows, 0);
}

// Every bar with every row of its: a bar of several is found in each.
const taken = { bar: [], key: [] };
for (let bar = 0; bar < barCount; bar++) {
  for (const [first, rows] of blocksOf(bar)) {
    for (let row = first; row < first + rows; row++) {
      taken.bar.push(bar);
      taken.key.push(row * lanes.length + bars.lane[bar]);
    }
  }
}

// Bars of one lane of one row do not overlap: sorted by start, they are sorted by finish.
const inLane = grouped(taken.key, rowCount * lanes.length, taken.bar);
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
  return `${placeName(bar)}, ${duration(bars.start[bar])} to ${duration(bars.finish[bar])}`;
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

// A time as people write it: as `duration(seconds, 3)` of foreplan/quantities.py.
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

// Where a bar is: its row, or all of its rows.
function placeName(bar) {
  const count = coreCount(bar);
  if (count === 1) return rowName(bars.row[bar]);
  const names = blocksOf(bar).sort(([a], [b]) => a - b).map(([first, rows]) => {
    const last = chart.rows[first + rows - 1].name;
    return rows === 1 ? last : `${chart.rows[first].name} to ${last}`;
  });
  return `${count} cores on ${chart.rows[bars.row[bar]].host}: ${names.join(", ")}`;
}

// Bytes as people write them: as `data_size` of foreplan/quantities.py.
function dataSize(size) {
  for (const [unit, step] of [["PB", 1e15], ["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) {
    if (size >= step) return `${Number((size / step).toPrecision(3))} ${unit}`;
  }
  return `${Math.round(size)} bytes`;
}

// What is held at a time: the last step that is not after it.
function heldAt(level, time) {
  let low = 0, high = level.time.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (level.time[middle] <= time) low = middle + 1; else high = middle;
  }
  return low ? level.held[low - 1] : 0;
}

function describeGauge(gauge, time) {
  const said = (held) => gauge.in_bytes ? dataSize(held) : String(Number(held.toPrecision(6)));
  return [["at", duration(Math.max(0, time))], ["size", said(gauge.size)],
          ...gauge.levels.map((level) => [level.name, said(heldAt(level, time))])];
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
    : bound === "amounts" ? `${place}; waited for memory or the like that ${before} held`
    : `${place}; waited for its ${coreCount(bar) > 1 ? "cores" : "processor"}, after ${before}`;
}

// What there is to say about a task, as pairs of words.
function describe(bar, most) {
  const facts = [[coreCount(bar) > 1 ? "cores" : "processor", placeName(bar)]];
  if (lanes.length > 1) facts.push(["bar", lanes[bars.lane[bar]].name]);
  facts.push(["start", duration(bars.start[bar])], ["finish", duration(bars.finish[bar])],
             ["duration", duration(bars.finish[bar] - bars.start[bar])]);
  if (chart.categories.length > 1) facts.push(["category", chart.categories[bars.category[bar]]]);
  if (lanes[bars.lane[bar]].meant) return facts;
  const meant = meantFor.get(bars.name[bar]);
  if (meant !== undefined) facts.push(["planned", plannedLine(meant)]);
  facts.push(["critical path", criticalLine(bar)]);
  if (bars.slack) {
    facts.push(["slack", `${duration(bars.slack[bar])}, and all ends when it does`],
               ["spare", `${duration(bars.spare[bar])}, and no task starts later`]);
  }
  const read = inputsOf(bar), made = outputsOf(bar);
  for (let i = 0; i < Math.min(most, read.length); i++) {
    facts.push([i === 0 ? "inputs" : "", inputLine(read[i])]);
  }
  if (read.length > most) facts.push(["", `and ${read.length - most} more`]);
  if (read.length === 0) facts.push(["inputs", "none"]);
  facts.push(["read by", made.length === 1 ? "1 task" : `${made.length} tasks`]);
  return facts;
}
