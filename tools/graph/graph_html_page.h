// The page of graph_html.cc around its data: styles, and the script that lays the graph out and
// draws it.
//
// Layers are longest paths from the inputs; within a layer boxes are ordered by the average place
// of what they read, then moved towards it. Colours tell steps of the delegate, what was folded
// into memory, and what the host runs; where there are times, the darker the box the more of the
// run it takes.
#pragma once

#include <string>

namespace fuselite::tools {

inline const std::string kGraphPageHead = R"html(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>fuselite</title><style>
body { margin: 0; font: 13px sans-serif; display: flex; height: 100vh; color: #222; }
#picture { flex: 1; overflow: hidden; background: #fafafa; cursor: grab; }
#side { width: 340px; padding: 12px; overflow: auto; border-left: 1px solid #ccc; }
h1 { font-size: 16px; margin: 0 0 8px; overflow-wrap: anywhere; }
table { border-collapse: collapse; } td { padding: 2px 8px 2px 0; vertical-align: top; overflow-wrap: anywhere; }
.box { cursor: pointer; } .box rect { stroke: #888; rx: 4; } .chosen rect { stroke: #d00; stroke-width: 3; }
.step rect { fill: #cfe8cf; } .folded rect { fill: #e8f2e8; } .host rect { fill: #f6d5c0; } .end rect { fill: #d6e0f5; }
.frame { fill: none; stroke: #4a8f4a; stroke-dasharray: 6 4; } path { fill: none; stroke: #999; }
text { font-size: 11px; text-anchor: middle; pointer-events: none; } .small { fill: #666; font-size: 10px; }
.key { display: inline-block; width: 12px; height: 12px; border: 1px solid #888; vertical-align: middle; }
</style></head><body><svg id="picture"><g id="view"></g></svg><div id="side"></div><script>
const graph = )html";

inline const std::string kGraphPageTail = R"html(;
const SVG = 'http://www.w3.org/2000/svg', W = 190, H = 46, GAP = 24, ROW = 78;
const boxes = graph.boxes, view = document.getElementById('view'), side = document.getElementById('side');
boxes.forEach((box, i) => Object.assign(box, { id: i, from: [], to: [], layer: 0, x: 0 }));
graph.edges.forEach(([a, b]) => { boxes[a].to.push(b); boxes[b].from.push(a); });

function layers() {
  const waiting = boxes.map(box => box.from.length), ready = boxes.filter(box => !box.from.length);
  while (ready.length) {
    const box = ready.shift();
    for (const next of box.to) {
      boxes[next].layer = Math.max(boxes[next].layer, box.layer + 1);
      if (--waiting[next] === 0) ready.push(boxes[next]);
    }
  }
  const rows = [];
  boxes.forEach(box => (rows[box.layer] = rows[box.layer] || []).push(box));
  return rows.map(row => row || []);
}

const mean = list => list.reduce((a, b) => a + b, 0) / list.length;
function wanted(box, ends) { return box[ends].length ? mean(box[ends].map(i => boxes[i].x)) : box.x; }
function place(rows) {
  const spread = row => row.forEach((box, i) => box.x = (i - (row.length - 1) / 2) * (W + GAP));
  rows.forEach(spread);
  for (let pass = 0; pass < 6; ++pass) {
    const down = pass % 2 === 0, ends = down ? 'from' : 'to';
    for (const row of down ? rows : [...rows].reverse()) {
      row.sort((a, b) => wanted(a, ends) - wanted(b, ends));
      const target = row.map(box => wanted(box, ends));
      row.forEach((box, i) => box.x = i ? Math.max(target[i], row[i - 1].x + W + GAP) : target[i]);
      const shift = mean(row.map((box, i) => target[i] - box.x));
      row.forEach(box => box.x += shift);
    }
  }
  boxes.forEach(box => box.y = box.layer * ROW);
}

function add(parent, name, attributes, text) {
  const element = document.createElementNS(SVG, name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  if (text !== undefined) element.textContent = text;
  return parent.appendChild(element);
}
const cut = (text, n) => text.length > n ? text.slice(0, n - 1) + '…' : text;
const total = boxes.reduce((sum, box) => sum + (box.us || 0), 0);
const numbers = new Intl.NumberFormat('en');

function draw() {
  for (const [a, b] of graph.edges) {
    const from = boxes[a], to = boxes[b], y1 = from.y + H, y2 = to.y, bend = Math.max(20, (y2 - y1) / 2);
    add(view, 'path', { d: `M${from.x},${y1} C${from.x},${y1 + bend} ${to.x},${y2 - bend} ${to.x},${y2}` });
  }
  const partitions = new Map();
  for (const box of boxes) {
    if (box.partition != null) partitions.set(box.partition, [...(partitions.get(box.partition) || []), box]);
    const g = add(view, 'g', { class: 'box ' + box.kind, transform: `translate(${box.x - W / 2},${box.y})` });
    const rect = add(g, 'rect', { width: W, height: H });
    if (box.us && total) rect.style.filter = `brightness(${1 - 0.6 * Math.min(1, 4 * box.us / total)})`;
    add(g, 'text', { x: W / 2, y: 16 }, cut(box.label, 30));
    add(g, 'text', { x: W / 2, y: 29, class: 'small' }, cut(box.shape || '', 34));
    const under = box.us ? `${box.us.toFixed(1)} us, ${(100 * box.us / total).toFixed(1)} %` : box.detail || '';
    add(g, 'text', { x: W / 2, y: 41, class: 'small' }, cut(under, 34));
    g.onclick = () => { document.querySelectorAll('.chosen').forEach(e => e.classList.remove('chosen')); g.classList.add('chosen'); tell(box); };
  }
  for (const [, members] of partitions) {
    const xs = members.map(box => box.x), ys = members.map(box => box.y);
    add(view, 'rect', { class: 'frame', x: Math.min(...xs) - W / 2 - 10, y: Math.min(...ys) - 10,
      width: Math.max(...xs) - Math.min(...xs) + W + 20, height: Math.max(...ys) - Math.min(...ys) + H + 20 });
  }
}

function row(table, name, value) {
  if (value === undefined || value === null || value === '') return;
  const line = table.insertRow();
  line.insertCell().textContent = name;
  line.insertCell().textContent = value;
}
function tell(box) {
  side.textContent = '';
  side.appendChild(document.createElement('h1')).textContent = box ? box.label : graph.title;
  const table = side.appendChild(document.createElement('table'));
  if (box) {
    row(table, box.kind === 'host' ? 'left because' : 'kernel', box.detail);
    row(table, 'runs in', { step: `the delegate, partition ${box.partition}`, folded: `partition ${box.partition}, without a step of its own`, host: 'the host', end: undefined }[box.kind]);
    row(table, 'output', box.shape);
    row(table, 'nodes', box.nodes && box.nodes.join(', '));
    row(table, 'multiply-adds', box.multiply_adds && numbers.format(box.multiply_adds));
    row(table, 'weights', box.weight_bytes && numbers.format(box.weight_bytes) + ' bytes');
    row(table, 'time', box.us && box.us.toFixed(1) + ' us');
    return;
  }
  const count = kind => boxes.filter(b => b.kind === kind).length;
  row(table, 'steps', count('step'));
  row(table, 'left to the host', count('host'));
  row(table, 'instruction set', graph.isa);
  row(table, 'time', total ? total.toFixed(1) + ' us' : '');
  const key = side.appendChild(document.createElement('p'));
  for (const [colour, name] of [['#cfe8cf', 'fused step'], ['#e8f2e8', 'folded into memory'], ['#f6d5c0', 'left to the host'], ['#d6e0f5', 'input, output']]) {
    const square = key.appendChild(document.createElement('span'));
    square.className = 'key'; square.style.background = colour;
    key.append(' ' + name); key.appendChild(document.createElement('br'));
  }
  key.append('Wheel: zoom. Drag: move. Click: details.');
}

place(layers()); draw(); tell(null); document.title = graph.title;
const svg = document.getElementById('picture');
let scale = 1, dx = svg.clientWidth / 2, dy = 30, drag = null;
const apply = () => view.setAttribute('transform', `translate(${dx},${dy}) scale(${scale})`);
svg.onwheel = e => {
  const factor = Math.exp(-e.deltaY / 500);
  dx = e.offsetX + (dx - e.offsetX) * factor; dy = e.offsetY + (dy - e.offsetY) * factor; scale *= factor;
  apply(); e.preventDefault();
};
svg.onmousedown = e => drag = [e.clientX - dx, e.clientY - dy];
window.onmousemove = e => { if (drag) { dx = e.clientX - drag[0]; dy = e.clientY - drag[1]; apply(); } };
window.onmouseup = () => drag = null;
svg.ondblclick = () => tell(null);
apply();
</script></body></html>
)html";

}  // namespace fuselite::tools
