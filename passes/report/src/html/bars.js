// Lanes and their bars: the visible range is found by bisection; bars too small to be visible are skipped.
'use strict';

const DEVICE_HEIGHT = 40;
const ROW_HEIGHT = 9;
const MOST_LINK_HEIGHT = 76;

/** A lane: rows of bars; the bars of a row do not overlap. */
class Lane {
  constructor(name, kind, rows, height) {
    Object.assign(this, {name, kind, height, rows: Array.from({length: Math.max(rows, 1)}, () => [])});
  }

  add(bar) {
    this.rows[bar.row].push(bar);
  }

  finish() {
    for (const row of this.rows) row.sort((a, b) => a.start - b.start || a.end - b.end);
  }

  /** Returns the index of the first bar of a row that ends at or after a time. */
  static first(row, time) {
    let [low, high] = [0, row.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (row[middle].end < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Returns the bar at a position, or the closest within a few pixels: some are narrower than a pixel. */
  at(view, x, y) {
    const index = Math.floor((y - 2) / ((this.height - 4) / this.rows.length));
    const row = this.rows[Math.min(Math.max(index, 0), this.rows.length - 1)];
    const reach = 4 * view.perPixel;
    const time = view.time(x);
    let best = null;
    let distance = reach;
    for (let place = Math.max(Lane.first(row, time - reach) - 1, 0); place < row.length; place += 1) {
      const bar = row[place];
      if (bar.start > time + reach) break;
      const away = Math.max(bar.start - time, time - bar.end, 0);
      if (away < distance || (away === 0 && best === null)) [best, distance] = [bar, away];
    }
    return best;
  }

  draw(canvas, view) {
    const {brush, width} = prepare(canvas, this.height);
    brush.fillStyle = colours.lane;
    brush.fillRect(0, 0, width, this.height);
    view.grid(brush, this.height);
    const height = (this.height - 4) / this.rows.length;
    brush.textBaseline = 'middle';
    brush.font = '12px system-ui, "Noto Sans", "DejaVu Sans", sans-serif';
    const tall = this.rows.length > 1 ? Math.max(height - 1, 1) : height;
    this.rows.forEach((row, index) => this.drawRow(brush, view, width, row, 2 + index * height, tall));
    view.marks(brush, this.height);
  }

  drawRow(brush, view, width, row, top, height) {
    let drawn = -1;
    for (let place = Lane.first(row, view.from); place < row.length; place += 1) {
      const bar = row[place];
      if (bar.start > view.until) break;
      const left = Math.max(view.x(bar.start), -2);
      const right = Math.min(view.x(bar.end), width + 2);
      // Several bars within one pixel are drawn as one.
      if (right - left < 1 && right < drawn && selection.task === null && !selection.found) continue;
      const wide = Math.max(right - left - (right - left > 3 ? 1 : 0), 1);
      drawn = left + wide;
      brush.globalAlpha = isDim(bar.task) ? 0.18 : bar.alpha;
      brush.fillStyle = bar.themed ? colours[bar.themed] : bar.colour;
      brush.fillRect(left, top, wide, height);
      brush.globalAlpha = 1;
      if (bar.task === selection.task) {
        brush.strokeStyle = colours.ink;
        brush.lineWidth = 2;
        brush.strokeRect(left, top + 1, wide, height - 2);
      }
      if (height > 14 && wide > 26) {
        const label = shortened(brush, bar.label, wide - 10);
        brush.globalAlpha = isDim(bar.task) ? 0.4 : 1;
        brush.fillStyle = bar.themed || isDim(bar.task) ? colours.ink : bar.text;
        brush.fillText(label, left + 5, top + height / 2 + 0.5);
        brush.globalAlpha = 1;
      }
    }
  }
}

/** Builds all lanes: devices, then links. */
function allLanes() {
  const lanes = [];
  for (const device of data.devices) {
    const lane = new Lane(device.name, 'device', device.rows, DEVICE_HEIGHT);
    lane.bottleneck = device.bottleneck;
    lane.colour = device.colour;
    const plural = device.stages.length > 1 ? 's' : '';
    const stages = device.stages.length ? `stage${plural} ${device.stages.join(', ')} · ` : '';
    lane.detail = `${stages}${data.end > 0 ? percent(device.busy / data.end) : '0 %'} busy`;
    lanes.push(lane);
  }
  for (const link of data.links) {
    const height = Math.min(10 + ROW_HEIGHT * Math.max(link.rows, 1), MOST_LINK_HEIGHT);
    const lane = new Lane(link.name, 'link', link.rows, Math.max(height, 26));
    lane.bottleneck = link.bottleneck;
    lane.detail = `${counted(link.transfers, 'transfer')}, ${bytes(link.bytes)}`;
    lanes.push(lane);
  }
  addLaunches(lanes);
  addHandovers(lanes);
  addTransfers(lanes);
  for (const lane of lanes) lane.finish();
  return lanes;
}

function when(start, end) {
  return [['start', micros(start)], ['end', micros(end)], ['duration', micros(end - start)]];
}

function addLaunches(lanes) {
  const {task, device, start, end, inputs} = data.launches;
  task.forEach((of, index) => {
    const on = data.devices[device[index]];
    const facts = () => [
      ...taskFacts(of), ['device', on.name], ...when(start[index], end[index]),
      ...(data.inputs > 1 ? [['inputs', inputs[index]]] : []),
      ['result', bytes(data.tasks.output[of])], ['weights', bytes(data.tasks.weight[of])],
    ];
    lanes[device[index]].add({
      task: of, row: 0, start: start[index], end: end[index], colour: on.colour, text: on.text, alpha: 1,
      label: data.tasks.label[of], name: data.tasks.name[of], facts,
    });
  });
}

function addHandovers(lanes) {
  const {way, task, device, row, start, end, bytes: size} = data.handovers;
  const words = {in: 'received', out: 'sent', spill: 'exceeds memory'};
  task.forEach((of, index) => {
    const facts = () => [
      ['direction', words[way[index]]], ['stage of', data.devices[device[index]].name], ['bytes', bytes(size[index])],
      ...when(start[index], end[index]),
    ];
    lanes[device[index]].add({
      task: of, row: row[index], start: start[index], end: end[index], alpha: 1,
      themed: way[index] === 'in' ? 'in' : 'out', label: way[index],
      name: way[index] === 'spill' ? words.spill : data.tasks.name[of], facts,
    });
  });
}

function addTransfers(lanes) {
  const all = data.transfers;
  all.task.forEach((of, index) => {
    if (all.link[index] === null) return;
    const [from, to] = [data.devices[all.from[index]], data.devices[all.to[index]]];
    const [start, end] = [all.start[index], all.end[index]];
    const facts = () => [
      ...(all.weights[index] ? [['contents', 'weights']] : []),
      ['from', from.name], ['to', to.name], ['link', data.links[all.link[index]].name],
      ['bytes', bytes(all.bytes[index])],
      ...(data.inputs > 1 ? [['inputs', number(all.inputs[index], 0)]] : []), ...when(start, end),
    ];
    lanes[data.devices.length + all.link[index]].add({
      task: of, row: all.row[index], start, end, colour: from.colour, text: from.text, alpha: 0.85,
      label: data.tasks.label[of], name: data.tasks.name[of], facts,
    });
  });
}
