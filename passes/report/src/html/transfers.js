// The table of transfers: sorted and filtered here; only the visible rows are in the document.
'use strict';

const transfers = (() => {
  const ROW = 29;
  const MORE = 12;
  const all = data.transfers;
  const panel = byId('transfers');
  const device = (index) => data.devices[index].name;
  const link = (index) => (all.link[index] === null ? '' : data.links[all.link[index]].name);
  const what = (index) => (all.weights[index] ? 'weights of ' : '') + data.tasks.name[all.task[index]];

  const duration = (index) => all.end[index] - all.start[index];

  /** Heading, sort key, displayed text, whether it is a number, and share of the width. */
  const columns = [
    ['Tensor of', what, what, false, 30],
    ['From', (index) => device(all.from[index]), (index) => device(all.from[index]), false, 10],
    ['To', (index) => device(all.to[index]), (index) => device(all.to[index]), false, 10],
    ['Link', link, link, false, 15],
    ['Size', (index) => all.bytes[index], (index) => bytes(all.bytes[index]), true, 13],
    ['Start', (index) => all.start[index], (index) => micros(all.start[index]), true, 11],
    ['End', (index) => all.end[index], (index) => micros(all.end[index]), true, 11],
    ['Duration', duration, (index) => micros(duration(index)), true, 11],
  ];
  if (data.inputs > 1) {
    columns.splice(4, 0, ['Inputs', (index) => all.inputs[index], (index) => number(all.inputs[index], 0), true, 9]);
  }

  let rows = all.task.map((_, index) => index);
  const sorted = {column: columns.findIndex(([head]) => head === 'Start'), down: false};
  const body = element('tbody');
  const heads = columns.map(([name, , , isNumber, share], column) => {
    const button = element('button', {type: 'button'}, name);
    button.addEventListener('click', () => {
      sorted.down = sorted.column === column ? !sorted.down : isNumber;
      sorted.column = column;
      update();
    });
    return element('th', {scope: 'col', style: `width: ${share}%`, ...(isNumber ? {class: 'number'} : {})}, button);
  });

  function update() {
    const wanted = byId('transfers-filter').value.trim().toLowerCase();
    rows = all.task.map((_, index) => index);
    if (wanted) {
      const words = (index) => [what(index), device(all.from[index]), device(all.to[index]), link(index)];
      rows = rows.filter((index) => words(index).some((text) => text.toLowerCase().includes(wanted)));
    }
    const key = columns[sorted.column][1];
    const compare = (a, b) => {
      const [left, right] = [key(a), key(b)];
      const order = typeof left === 'string' ? left.localeCompare(right) : left - right;
      return (sorted.down ? -order : order) || a - b;
    };
    rows.sort(compare);
    heads.forEach((head, column) => {
      if (column === sorted.column) head.setAttribute('aria-sort', sorted.down ? 'descending' : 'ascending');
      else head.removeAttribute('aria-sort');
      const arrow = sorted.down ? ' ↓' : ' ↑';
      head.firstChild.textContent = columns[column][0] + (column === sorted.column ? arrow : '');
    });
    panel.dataset.rows = rows.length;
    const sum = rows.reduce((total, index) => total + all.bytes[index], 0);
    const shown = rows.length === all.task.length ? '' : ` of ${number(all.task.length, 0)}`;
    byId('transfers-note').textContent = all.task.length
      ? `${number(rows.length, 0)}${shown}, ${bytes(sum)}` : 'none: every value is consumed on the device that produces it';
    panel.scrollTop = 0;
    fill();
  }

  function spacer(count) {
    const cell = element('td', {colspan: columns.length, style: `height: ${count * ROW}px`});
    return element('tr', {class: 'spacer', 'aria-hidden': 'true'}, cell);
  }

  /** Inserts the visible rows into the document, with a margin. */
  function fill() {
    const first = Math.max(Math.floor(panel.scrollTop / ROW) - MORE, 0);
    const last = Math.min(first + Math.ceil((panel.clientHeight || 420) / ROW) + 2 * MORE, rows.length);
    const made = rows.slice(first, last).map((index) => {
      const cells = columns.map(([, , show, isNumber]) => {
        const text = show(index);
        return element('td', isNumber ? {class: 'number'} : {title: text}, text);
      });
      const row = element('tr', {'data-row': index}, ...cells);
      row.addEventListener('click', () => {
        if (selection.task !== all.task[index]) select(all.task[index]);
        timeline.show(all.start[index], all.end[index]);
      });
      return row;
    });
    if (first > 0) made.unshift(spacer(first));
    if (last < rows.length) made.push(spacer(rows.length - last));
    body.replaceChildren(...made);
  }

  if (all.task.length) panel.append(element('table', {}, element('thead', {}, element('tr', {}, ...heads)), body));
  else panel.hidden = true;
  byId('transfers-filter').hidden = !all.task.length;
  byId('transfers-filter').addEventListener('input', update);
  panel.addEventListener('scroll', fill);
  update();
  return {update};
})();
