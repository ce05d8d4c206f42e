// The graph: tasks in the colors of their devices, edges between devices highlighted.
'use strict';

const graph = (() => {
  const FONT = 'system-ui, "Noto Sans", "DejaVu Sans", sans-serif';
  const HEIGHT = 560;
  const MARGIN = 24;
  const canvas = byId('graph-canvas');
  const {from, to} = data.graph;
  const view = {x: 0, y: 0, scale: 1};
  let laid = null;

  /** Bytes of a task's results transferred to each device. */
  const moved = new Map();
  data.transfers.task.forEach((task, index) => {
    if (data.transfers.weights[index]) return;
    const key = `${task} ${data.transfers.to[index]}`;
    moved.set(key, (moved.get(key) ?? 0) + data.transfers.bytes[index]);
  });
  const readers = (edge) => data.tasks.devices[to[edge]].map((device) => moved.get(`${from[edge]} ${device}`));
  const crosses = from.map((_, edge) => readers(edge).some((size) => size !== undefined));
  const crossing = from.map((_, edge) => readers(edge).reduce((sum, size) => sum + (size ?? 0), 0));

  const launches = data.tasks.name.map(() => []);
  data.launches.task.forEach((task, index) => launches[task].push(index));

  function fit() {
    const room = {width: Math.max(canvas.clientWidth - 2 * MARGIN, 100), height: HEIGHT - 2 * MARGIN};
    laid = folds.lay(room);
    view.scale = Math.min(room.width / laid.width, room.height / laid.height, 1.2);
    const stub = laid.bands.length > 1 ? TASK.stub * view.scale : 0;
    view.x = (canvas.clientWidth - laid.width * view.scale) / 2 + stub;
    view.y = (HEIGHT - laid.height * view.scale) / 2;
  }

  function zoom(factor, x, y) {
    const scale = Math.min(Math.max(view.scale * factor, 0.004), 4);
    view.x = x - (x - view.x) * scale / view.scale;
    view.y = y - (y - view.y) * scale / view.scale;
    view.scale = scale;
    repaint();
  }

  /** Returns true if a path is in view. */
  function isSeen(way, box) {
    return way.left <= box.right && way.right >= box.left && way.top <= box.bottom && way.bottom >= box.top;
  }

  function trace(brush, points) {
    brush.moveTo(points[0][0], points[0][1]);
    for (let index = 1; index < points.length; index += 1) {
      const [[ax, ay], [bx, by]] = [points[index - 1], points[index]];
      if (ay === by || view.scale < 0.08) {
        brush.lineTo(bx, by);
      } else {
        const middle = (ax + bx) / 2;
        brush.bezierCurveTo(middle, ay, middle, by, bx, by);
      }
    }
  }

  function drawEdges(brush, box) {
    const chosen = (edge) => selection.task !== null && (from[edge] === selection.task || to[edge] === selection.task);
    const groups = [
      [(edge) => !crosses[edge] && !chosen(edge), colours.out, 1.2, 0.7],
      [(edge) => crosses[edge] && !chosen(edge), colours.warn, 1.8, 0.9],
      [chosen, colours.accent, 3, 1],
    ];
    for (const [wanted, colour, width, alpha] of groups) {
      brush.beginPath();
      laid.ways.forEach((ways, edge) => {
        if (!wanted(edge)) return;
        for (const way of ways) if (isSeen(way, box)) trace(brush, way.points);
      });
      brush.strokeStyle = colour;
      brush.lineWidth = Math.max(width, 0.4 / view.scale);
      brush.globalAlpha = selection.task !== null && wanted !== chosen ? 0.25 : alpha;
      brush.stroke();
    }
    brush.globalAlpha = 1;
    if (view.scale > 0.55) drawSizes(brush, box);
  }

  /** Labels the edges between devices with the transferred bytes. */
  function drawSizes(brush, box) {
    brush.font = `11px ${FONT}`;
    brush.textAlign = 'center';
    brush.textBaseline = 'bottom';
    brush.lineJoin = 'round';
    laid.ways.forEach(([way], edge) => {
      if (!crosses[edge] || !isSeen(way, box)) return;
      const [[ax, ay], [bx, by]] = way.points;
      const words = shortBytes(crossing[edge]);
      const [x, y] = [(ax + bx) / 2, (ay + by) / 2 - 2];
      brush.strokeStyle = colours.panel;
      brush.lineWidth = 4;
      brush.strokeText(words, x, y);
      brush.fillStyle = colours.warn;
      brush.fillText(words, x, y);
    });
  }

  function drawTask(brush, task) {
    const [x, y] = [laid.left[task], laid.top[task]];
    const {width, height} = TASK;
    const devices = data.tasks.devices[task];
    brush.globalAlpha = isDim(task) ? 0.2 : 1;
    const round = view.scale > 0.3;
    if (round) {
      brush.save();
      brush.beginPath();
      brush.roundRect(x, y, width, height, 7);
      brush.clip();
    }
    devices.forEach((device, index) => {
      brush.fillStyle = data.devices[device].colour;
      brush.fillRect(x + index * width / devices.length, y, width / devices.length, height);
    });
    if (round) brush.restore();
    if (task === selection.task) {
      brush.strokeStyle = colours.ink;
      brush.lineWidth = 3;
      brush.strokeRect(x, y, width, height);
    }
    if (view.scale > 0.33 && devices.length) {
      brush.fillStyle = data.devices[devices[0]].text;
      brush.fillText(shortened(brush, data.tasks.label[task], width - 14), x + 7, y + height / 2 + 0.5);
    }
    brush.globalAlpha = 1;
  }

  function paint() {
    const {brush, width, height} = prepare(canvas, HEIGHT);
    const box = {
      left: -view.x / view.scale, right: (width - view.x) / view.scale,
      top: -view.y / view.scale, bottom: (height - view.y) / view.scale,
    };
    brush.save();
    brush.translate(view.x, view.y);
    brush.scale(view.scale, view.scale);
    drawEdges(brush, box);
    brush.font = `12px ${FONT}`;
    brush.textAlign = 'left';
    brush.textBaseline = 'middle';
    for (const band of laid.bands) {
      if (band.top > box.bottom || band.bottom < box.top) continue;
      const low = Math.max(band.first + Math.floor(box.left / TASK.across) - 1, band.first);
      const high = Math.min(band.first + Math.ceil(box.right / TASK.across), band.last - 1);
      for (let at = low; at <= high; at += 1) {
        for (const task of folds.members[at]) {
          if (laid.top[task] <= box.bottom && laid.top[task] + TASK.height >= box.top) drawTask(brush, task);
        }
      }
    }
    brush.restore();
  }

  function under(event) {
    const bounds = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - bounds.left - view.x, event.clientY - bounds.top - view.y];
    return laid.at(x / view.scale, y / view.scale);
  }

  function describe(event) {
    const task = event.buttons ? null : under(event);
    if (task === null) {
      hideTip();
      return;
    }
    const facts = taskFacts(task);
    const {device, start, end, inputs} = data.launches;
    for (const on of new Set(launches[task].map((launch) => device[launch]))) {
      const here = launches[task].filter((launch) => device[launch] === on);
      const [first, last] = [here[0], here[here.length - 1]];
      const of = data.inputs > 1 ? ` (inputs ${here.map((launch) => inputs[launch]).slice(0, 3).join('; ')}` +
        `${here.length > 3 ? '; …' : ''})` : '';
      const count = here.length > 1 ? `${here.length} launches, ` : '';
      facts.push([data.devices[on].name, `${count}${micros(start[first])} to ${micros(end[last])}${of}`]);
    }
    facts.push(['result', bytes(data.tasks.output[task])], ['weights', bytes(data.tasks.weight[task])]);
    showTip(event, data.tasks.name[task], facts);
  }

  canvas.addEventListener('mousemove', describe);
  canvas.addEventListener('mouseleave', hideTip);
  canvas.addEventListener('wheel', (event) => {
    event.preventDefault();
    const bounds = canvas.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY * 0.0016), event.clientX - bounds.left, event.clientY - bounds.top);
  }, {passive: false});
  draggable(canvas, (x, y) => {
    view.x += x;
    view.y += y;
    repaint();
  }, (event) => select(under(event) ?? selection.task));
  byId('graph-in').addEventListener('click', () => zoom(1.5, canvas.clientWidth / 2, HEIGHT / 2));
  byId('graph-out').addEventListener('click', () => zoom(1 / 1.5, canvas.clientWidth / 2, HEIGHT / 2));
  byId('graph-all').addEventListener('click', () => {
    fit();
    repaint();
  });

  function legend(name, style) {
    byId('graph-legend').append(element('span', {}, element('span', {class: 'swatch', style}), name));
  }
  for (const device of data.devices) legend(device.name, `background: ${device.colour}`);
  if (crosses.some(Boolean)) legend('transfer between devices', 'background: var(--warn); height: 4px');

  fit();
  painters.push(paint);
  paint();

  /** Returns the position of a task on the canvas. */
  function place(task) {
    const [x, y] = [laid.left[task] + TASK.width / 2, laid.top[task] + TASK.height / 2];
    return [x * view.scale + view.x, y * view.scale + view.y];
  }
  return {view, place};
})();
