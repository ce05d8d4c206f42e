// Shared by all scripts of the page: data, number formatting, colors, tooltip, selection.
'use strict';

const data = JSON.parse(document.getElementById('data').textContent);

function byId(id) {
  return document.getElementById(id);
}

/** Creates an element with attributes and children; strings become text nodes, so that names are never parsed as markup. */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function drawing(tag, attributes = {}, ...children) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// --- Numbers ---

/** Formats a number with a fixed number of decimals and thousands separators. */
function number(value, digits = 1) {
  return value.toLocaleString('en', {minimumFractionDigits: digits, maximumFractionDigits: digits});
}

function micros(time) {
  const size = Math.abs(time);
  if (size >= 1e6) return `${number(time / 1e6, 3)} s`;
  if (size >= 1e4) return `${number(time / 1e3, 2)} ms`;
  if (size >= 1e3) return `${number(time / 1e3, 3)} ms`;
  return `${number(time, size < 10 && size > 0 ? 2 : 1)} µs`;
}

function bytes(size) {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (size >= 1024 && unit + 1 < units.length) {
    size /= 1024;
    unit += 1;
  }
  return `${number(size, unit > 0 || size % 1 ? 2 : 0)} ${units[unit]}`;
}

/** Formats a size with at most three digits. */
function shortBytes(size) {
  const units = ['B', 'K', 'M', 'G', 'T'];
  let unit = 0;
  while (size >= 1000 && unit + 1 < units.length) {
    size /= 1024;
    unit += 1;
  }
  return `${number(size, size < 10 && unit > 0 ? 1 : 0)} ${units[unit]}${unit > 0 ? 'iB' : ''}`;
}

function percent(share, digits = 1) {
  if (share > 0 && 100 * share < 0.5 * 10 ** -digits) return `< ${number(10 ** -digits, digits)} %`;
  return `${number(100 * share, digits)} %`;
}

function counted(count, what) {
  return `${number(count, 0)} ${what}${count === 1 ? '' : 's'}`;
}

/** Minimum and maximum of an array; Math.min(...values) would exceed the limit on call arguments. */
function least(values) {
  return values.reduce((a, b) => Math.min(a, b), Infinity);
}

function most(values) {
  return values.reduce((a, b) => Math.max(a, b), -Infinity);
}

/** Returns a step of 1, 2 or 5 times a power of ten that divides a length into at most `pieces` pieces. */
function niceStep(length, pieces) {
  const rough = length / Math.max(pieces, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((digit) => digit * power).find((step) => step >= rough * 0.999);
}

// --- Colors ---

const probe = document.body.appendChild(element('span', {hidden: ''}));

/** Resolves a color variable of the style sheet in the current theme. */
function themed(name) {
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}

let colours = {};

function readColours() {
  const names = ['page', 'panel', 'lane', 'line', 'ink', 'soft', 'accent', 'warn', 'good', 'in', 'out'];
  colours = Object.fromEntries(names.map((name) => [name, themed(name)]));
}

readColours();

// --- Repainting ---

const painters = [];
let waiting = false;

/** Schedules one repaint for the next animation frame. */
function repaint() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    for (const paint of painters) paint();
  });
}

/** Resizes a canvas to device pixels; returns its context and its size in CSS pixels. */
function prepare(canvas, height = canvas.clientHeight) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
  }
  const brush = canvas.getContext('2d');
  brush.setTransform(ratio, 0, 0, ratio, 0, 0);
  brush.clearRect(0, 0, width, height);
  return {brush, width, height};
}

/** Shortens a name to its end, which distinguishes tasks. */
function shortened(brush, text, width) {
  if (width < 18) return '';
  if (text.length > 400) text = text.slice(-400);
  if (brush.measureText(text).width <= width) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (brush.measureText(`…${text.slice(-middle)}`).width <= width) low = middle;
    else high = middle - 1;
  }
  return low > 5 ? `…${text.slice(-low)}` : '';
}

window.addEventListener('resize', repaint);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  readColours();
  repaint();
});

byId('theme').addEventListener('click', () => {
  const root = document.documentElement;
  const themes = [undefined, 'light', 'dark'];
  const next = themes[(themes.indexOf(root.dataset.theme) + 1) % themes.length];
  if (next) root.dataset.theme = next;
  else delete root.dataset.theme;
  byId('theme').textContent = next ? next[0].toUpperCase() + next.slice(1) : 'Theme';
  readColours();
  repaint();
});

// --- Tooltip ---

const tooltip = byId('tooltip');

/** Shows a tooltip with a name and label/value pairs next to the pointer. */
function showTip(event, name, facts) {
  const list = element('dl');
  for (const [what, value] of facts) list.append(element('dt', {}, what), element('dd', {}, value));
  tooltip.replaceChildren(element('strong', {}, name), list);
  tooltip.hidden = false;
  const {offsetWidth: width, offsetHeight: height} = tooltip;
  const left = event.clientX + 16 + width > innerWidth ? event.clientX - 16 - width : event.clientX + 16;
  const top = event.clientY + 16 + height > innerHeight ? event.clientY - 12 - height : event.clientY + 16;
  tooltip.style.left = `${Math.max(left, 4)}px`;
  tooltip.style.top = `${Math.max(top, 4)}px`;
}

function hideTip() {
  tooltip.hidden = true;
}

/** Returns the tooltip entries common to all views of a task. */
function taskFacts(task) {
  const facts = [];
  if (data.tasks.kind[task]) facts.push(['kind', data.tasks.kind[task]]);
  return facts;
}

// --- Selection ---

/** The selected task, its neighbors, and the tasks that match the search. */
const selection = {task: null, related: new Set(), found: null};

const neighbours = data.tasks.name.map(() => []);
data.graph.from.forEach((from, edge) => {
  neighbours[from].push(data.graph.to[edge]);
  neighbours[data.graph.to[edge]].push(from);
});

function select(task) {
  selection.task = selection.task === task ? null : task;
  selection.related = new Set(selection.task === null ? [] : neighbours[task]);
  repaint();
}

/** Returns true if a task is dimmed. */
function isDim(task) {
  if (selection.found) return !selection.found.has(task);
  return selection.task !== null && selection.task !== task && !selection.related.has(task);
}

byId('find').addEventListener('input', (event) => {
  const wanted = event.target.value.trim().toLowerCase();
  const matches = (name, task) => `${name} ${data.tasks.kind[task]}`.toLowerCase().includes(wanted);
  selection.found = null;
  if (wanted) {
    selection.found = new Set();
    data.tasks.name.forEach((name, task) => matches(name, task) && selection.found.add(task));
  }
  byId('found').textContent = wanted ? `${selection.found.size} of ${data.tasks.name.length}` : '';
  repaint();
});

/** Adds dragging by pointer: `moved` gets the distance of each move, `clicked` is called for presses without a move. */
function draggable(target, moved, clicked) {
  let last = null;
  let far = 0;
  target.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    last = event;
    far = 0;
    target.setPointerCapture(event.pointerId);
    target.style.cursor = 'grabbing';
  });
  target.addEventListener('pointermove', (event) => {
    if (!last) return;
    far += Math.abs(event.clientX - last.clientX) + Math.abs(event.clientY - last.clientY);
    moved(event.clientX - last.clientX, event.clientY - last.clientY);
    last = event;
    if (far > 4) hideTip();
  });
  target.addEventListener('pointerup', (event) => {
    if (last && far <= 4) clicked(event);
    last = null;
    target.style.cursor = '';
  });
  target.addEventListener('pointercancel', () => {
    last = null;
    target.style.cursor = '';
  });
}
