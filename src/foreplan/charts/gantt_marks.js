// The canvas above: the task under the pointer, the selected one with its data, what was found.

const MOST_MARKED = 2000;
const chosen = { hover: -1, selected: -1, found: [], at: -1 };
const tip = document.getElementById("tip");

function outline(pen, bar, colour, width) {
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  for (const [x, y, w, h] of boxesOf(bar)) pen.strokeRect(x - 0.5, y - 0.5, w + 1, h + 1);
}

function refill(pen, bar) {
  pen.fillStyle = chart.palette[bars.category[bar]];
  for (const box of boxesOf(bar)) pen.fillRect(...box);
}

// Lines to or from the selected task, with the tasks at their other ends.
function drawFlows(pen, flows, other, colour) {
  const shown = flows.subarray(0, MOST_MARKED);
  for (const i of shown) {
    const bar = other[i];
    if (bar < 0) continue;
    refill(pen, bar);
    outline(pen, bar, colour, 1.5);
  }
  pen.strokeStyle = colour;
  pen.lineWidth = 1.5;
  pen.beginPath();
  for (const i of shown) {
    if (inputs.source[i] < 0) continue;
    pen.moveTo(xOf(inputs.sent[i]), middleOf(inputs.source[i]));
    pen.lineTo(xOf(inputs.arrival[i]), middleOf(inputs.target[i]));
    pen.lineTo(xOf(bars.start[inputs.target[i]]), middleOf(inputs.target[i]));  // it lies waiting
  }
  pen.stroke();
}

function drawSelected(pen, bar) {
  pen.fillStyle = look.veil;
  pen.fillRect(view.left, TOP, view.width, view.height);
  drawFlows(pen, inputsOf(bar), inputs.source, look.input);
  drawFlows(pen, outputsOf(bar), inputs.target, look.output);
  refill(pen, bar);
  outline(pen, bar, look.ink, 2.5);
  const [x, y, width, height] = boxOf(bar);
  if (width > 14 && height >= 10) drawNames(pen, [[bar, x, y, width, height]]);
}

function drawMarks() {
  const pen = marksPen;
  pen.clearRect(0, 0, view.width, view.height);
  pen.save();
  clipToPlot(pen);
  if (chosen.selected >= 0) drawSelected(pen, chosen.selected);
  for (const bar of chosen.found.slice(0, MOST_MARKED)) outline(pen, bar, look.input, 2);
  if (chosen.hover >= 0) outline(pen, chosen.hover, look.ink, 1.5);
  pen.restore();
}

// The bar at a point, or the nearest within two pixels, so that narrow ones can be met.
function barAt(x, y) {
  if (x < view.left || y < TOP) return -1;
  const above = rowAbove(heightAt(y)), count = places.count[above];
  const share = (heightAt(y) - places.row[places.first[above]]) / count;
  if (share < 0 || share > 1) return -1;
  let best = -1, distance = 2.5;
  lanes.forEach((lane, number) => {
    if (share < lane.top || share > lane.top + lane.height) return;
    const within = Math.floor((share - lane.top) / lane.height * count);
    const row = places.first[above] + Math.min(count - 1, within);
    const list = inLane(row * lanes.length + number);
    for (let i = firstAfter(list, timeAt(x - 3)); i < list.length; i++) {
      const [left, , width] = boxOf(list[i]);
      if (left > x + 3) break;
      const away = Math.max(0, left - x, x - left - width);
      if (away < distance) { best = list[i]; distance = away; }
      if (away === 0) break;
    }
  });
  return best;
}

// Names are shown as text, never as markup: they come from whoever wrote the workflow.
function element(kind, text) {
  const made = document.createElement(kind);
  made.textContent = text;
  return made;
}

// The gauge at a point.
function gaugeAt(x, y) {
  return x < view.left || y < TOP ? -1 : gauges.findIndex((_, number) => {
    const [top, height] = gaugeBox(number);
    return y >= top && y <= top + height;
  });
}

function showTip(bar, x, y) {
  const gauge = bar < 0 && y !== undefined ? gaugeAt(x, y) : -1;
  if (bar < 0 && gauge < 0) { tip.hidden = true; return; }
  const facts = bar < 0 ? describeGauge(gauges[gauge], timeAt(x)) : describe(bar, 6);
  const title = bar < 0 ? `${gauges[gauge].kind} of ${gauges[gauge].host}` : bars.name[bar];
  const list = document.createElement("dl");
  for (const [word, fact] of facts) list.append(element("dt", word), element("dd", fact));
  tip.replaceChildren(element("b", title), list);
  tip.hidden = false;
  const { offsetWidth: width, offsetHeight: height } = tip;
  const right = x + 14 + width < view.width, below = y + 14 + height < view.height;
  tip.style.left = `${Math.max(4, right ? x + 14 : x - 14 - width)}px`;
  tip.style.top = `${Math.max(4, below ? y + 14 : view.height - height - 4)}px`;
}

function speak(bar) {
  const facts = describe(bar, 3).map(([word, fact]) => `${word} ${fact}`);
  document.getElementById("spoken").textContent = `${bars.name[bar]}: ${facts.join("; ")}`;
}
