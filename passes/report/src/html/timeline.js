// The schedule: one lane per device and link, all on the same time scale.
'use strict';

const timeline = (() => {
  const whole = data.end > 0 ? data.end : 1;
  const panel = byId('schedule');
  const axis = element('canvas', {'aria-hidden': 'true'});
  const timeUnit = element('div', {class: 'name'});
  const lanes = allLanes();

  /** Visible time range. */
  const view = {
    from: 0,
    until: whole * 1.01,
    width: 1,
    get perPixel() {
      return (this.until - this.from) / this.width;
    },
    x(time) {
      return (time - this.from) / this.perPixel;
    },
    time(x) {
      return this.from + x * this.perPixel;
    },
    /** Returns a round step between grid lines and the number of the first line in view. */
    steps() {
      const step = niceStep(this.until - this.from, this.width / 110);
      return {step, first: Math.max(Math.ceil(this.from / step), 0)};
    },
    grid(brush, height) {
      const {step, first} = this.steps();
      brush.fillStyle = colours.line;
      for (let count = first; count * step <= this.until; count += 1) {
        brush.fillRect(Math.round(this.x(count * step)), 0, 1, height);
      }
    },
    /** Marks the plan's value and its lower bound. */
    marks(brush, height) {
      brush.setLineDash([4, 3]);
      brush.lineWidth = 1.5;
      for (const [time, colour] of [[data.bound, colours.good], [data.value, colours.warn]]) {
        brush.strokeStyle = colour;
        brush.beginPath();
        brush.moveTo(this.x(time), 0);
        brush.lineTo(this.x(time), height);
        brush.stroke();
      }
      brush.setLineDash([]);
    },
    set(from, until) {
      const least = whole * 1e-6;
      const most = whole * 1.2;
      const length = Math.min(Math.max(until - from, least), most);
      const middle = (from + until) / 2;
      this.from = Math.min(Math.max(middle - length / 2, -whole * 0.1), whole * 1.1 - length);
      this.until = this.from + length;
      repaint();
    },
    zoom(factor, x) {
      const time = this.time(x);
      this.set(time - (time - this.from) * factor, time + (this.until - time) * factor);
    },
    pan(pixels) {
      const by = pixels * this.perPixel;
      this.set(this.from + by, this.until + by);
    },
  };

  function unit() {
    const length = view.until - view.from;
    if (length >= 2e6) return ['s', 1e6];
    if (length >= 2e3) return ['ms', 1e3];
    return ['µs', 1];
  }

  function drawAxis() {
    const {brush, width, height} = prepare(axis, 34);
    const [name, size] = unit();
    const {step, first} = view.steps();
    const digits = Math.max(0, -Math.floor(Math.log10(step / size) + 1e-9));
    brush.font = '12px system-ui, "Noto Sans", "DejaVu Sans", sans-serif';
    brush.textBaseline = 'alphabetic';
    for (let count = first; count * step <= view.until; count += 1) {
      const x = Math.round(view.x(count * step));
      brush.fillStyle = colours.line;
      brush.fillRect(x, height - 6, 1, 6);
      brush.fillStyle = colours.soft;
      brush.textAlign = x < 12 ? 'left' : x > width - 12 ? 'right' : 'center';
      brush.fillText(number(count * step / size, Math.min(digits, 9)), x, height - 11);
    }
    timeUnit.textContent = `time in ${name}`;
    brush.textAlign = 'right';
    const same = data.value - data.bound < 60 * view.perPixel;
    brush.fillStyle = colours.warn;
    brush.fillText(same && data.gap <= 1e-6 ? 'end = bound' : 'end', view.x(data.value) - 3, 11);
    if (!same) {
      brush.fillStyle = colours.good;
      brush.fillText('bound', view.x(data.bound) - 3, 11);
    }
  }

  function build() {
    panel.append(element('div', {class: 'lane', 'data-kind': 'axis'}, timeUnit, axis));
    for (const lane of lanes) {
      lane.canvas = element('canvas', {role: 'img', 'aria-label': `${lane.name}: ${lane.detail}`});
      const name = element('div', {class: 'name', title: lane.name});
      if (lane.kind === 'device') name.append(element('span', {class: 'swatch', style: `background: ${lane.colour}`}));
      name.append(lane.name, ' ');
      if (lane.bottleneck) name.append(element('span', {class: 'badge'}, 'bottleneck'));
      name.append(element('small', {}, lane.detail));
      panel.append(element('div', {class: 'lane', 'data-lane': lane.name, 'data-kind': lane.kind}, name, lane.canvas));
      listen(lane);
    }
  }

  function listen(lane) {
    const {canvas} = lane;
    const under = (event) => {
      const box = canvas.getBoundingClientRect();
      return lane.at(view, event.clientX - box.left, event.clientY - box.top);
    };
    canvas.addEventListener('mousemove', (event) => {
      const bar = event.buttons ? null : under(event);
      if (bar) showTip(event, bar.name, bar.facts());
      else hideTip();
    });
    canvas.addEventListener('mouseleave', hideTip);
    canvas.addEventListener('dblclick', () => view.set(0, whole * 1.01));
    canvas.addEventListener('wheel', (event) => {
      event.preventDefault();
      const across = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) view.pan(across);
      else view.zoom(Math.exp(event.deltaY * 0.0016), event.clientX - canvas.getBoundingClientRect().left);
    }, {passive: false});
    draggable(canvas, (x) => view.pan(-x), (event) => {
      const bar = under(event);
      select(bar ? bar.task : selection.task);
    });
  }

  function paint() {
    view.width = Math.max(axis.clientWidth, 1);
    drawAxis();
    for (const lane of lanes) lane.draw(lane.canvas, view);
  }

  /** Zooms to a time interval, with a margin. */
  function show(start, end) {
    const around = Math.max(end - start, whole * 0.002) * 4;
    view.set(start - around, end + around);
  }

  const words = {
    serial: 'steady state, time per input: each stage receives, computes and sends in sequence',
    overlap: 'steady state, time per input: devices and links work in parallel',
  };
  byId('schedule-note').textContent = words[data.cost] ?? 'wheel: zoom; drag: pan; click: select';
  byId('schedule-in').addEventListener('click', () => view.zoom(0.6, view.width / 2));
  byId('schedule-out').addEventListener('click', () => view.zoom(1 / 0.6, view.width / 2));
  byId('schedule-all').addEventListener('click', () => view.set(0, whole * 1.01));
  panel.addEventListener('keydown', (event) => {
    const actions = {
      ArrowLeft: () => view.pan(-80),
      ArrowRight: () => view.pan(80),
      '+': () => view.zoom(0.7, view.width / 2),
      '-': () => view.zoom(1 / 0.7, view.width / 2),
      Home: () => view.set(0, whole * 1.01),
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  });
  build();
  painters.push(paint);
  paint();
  return {lanes, view, show};
})();
