// Objective value, bound and proof; time and memory of each device.
'use strict';

(() => {
  byId('title').textContent = data.title;
  const facts = [`planned by ${data.algorithm}`, `seed ${data.seed}`];
  if (data.limit && 'seconds' in data.limit) facts.push(`limit ${data.limit.seconds} s`);
  else if (data.limit) facts.push(`limit ${counted(data.limit.iterations, 'iteration')}`);
  byId('subtitle').textContent = facts.join(' · ');

  const objectives = {latency: 'latency', batch: 'for all inputs', pipeline: 'slowest stage'};
  const tasks = data.tasks.name.length - data.tasks.port.length;
  const used = data.devices.filter((device) => device.tasks > 0).length;
  const moved = data.transfers.bytes.reduce((sum, size) => sum + size, 0);
  // Tolerance for rounding in solvers and sums.
  const closed = data.gap <= 1e-6;

  function tile(value, words, badge) {
    const more = badge ? [' ', badge] : [];
    return element('div', {class: 'tile'}, element('b', {}, value), element('span', {}, words), ...more);
  }

  // A bound that only the solver reports proves nothing.
  const verified = data.proof !== 'solver';
  const optimal = closed && verified && data.value > 0 ? element('span', {class: 'badge good'}, 'optimal') : null;
  const tiles = [
    tile(micros(data.value), [
      objectives[data.objective] + (data.inputs > 1 ? ` (${data.inputs})` : ''), ...(data.costs ? [`${data.costs} costs`] : []),
    ].join(', ')),
    tile(micros(data.bound), (data.boundBy ? `bound by ${data.boundBy}` : 'bound') + (verified ? '' : ', not verified')),
    tile(closed ? '0.00 %' : percent(data.gap, 2), 'gap', optimal),
    tile(number(tasks, 0), tasks === 1 ? 'task' : 'tasks'),
    tile(`${used} of ${data.devices.length}`, data.devices.length === 1 ? 'device used' : 'devices used'),
    tile(number(data.transfers.task.length, 0), `transfers, ${bytes(moved)}`),
  ];

  const share = data.value > 0 ? Math.min(data.bound / data.value, 1) : 1;
  const open = element('div', {class: 'open', style: `width: max(${100 * (1 - share)}%, ${closed ? 0 : 2}px)`});
  const weaker = data.verifiedBound > 0 ? [', verified: ', element('b', {}, micros(data.verifiedBound))] : [];
  const proof = verified ? [' proven: no plan takes less'] : [' reported by the solver, not verified', ...weaker];
  const words = element('div', {class: 'words'},
    element('span', {}, element('b', {}, micros(data.bound)), ...proof),
    element('span', {}, closed ? '' : 'gap ', element('b', {}, closed ? '' : micros(data.value - data.bound))),
    element('span', {}, 'this plan ', element('b', {}, micros(data.value))));
  byId('overview').append(
    element('div', {class: 'tiles'}, ...tiles),
    element('div', {class: 'proof', id: 'proof'},
      element('div', {class: 'track'}, element('div', {class: 'proven', style: 'flex: 1'}), open), words));
})();

(() => {
  const largest = Math.max(most(data.devices.map((device) => device.counted)), 1);

  function meter(...parts) {
    const made = element('div', {class: 'meter'});
    for (const [share, colour, opacity] of parts) {
      const width = 100 * Math.min(Math.max(share, 0), 1);
      made.append(element('i', {style: `width: ${width}%; background: ${colour}; opacity: ${opacity}`}));
    }
    return made;
  }

  /** Draws the memory in use over time as steps, scaled to the peak. */
  function profile(device) {
    if (device.profile.length < 2 || data.end <= 0) return element('span', {class: 'note'}, '');
    const top = Math.max(device.peak, 1);
    const steps = device.profile.map(([at, held]) => [1000 * at / data.end, 32 - 30 * held / top]);
    let path = 'M0 33';
    for (const [x, y] of steps) path += `H${x.toFixed(1)}V${y.toFixed(1)}`;
    path += 'H1000V33Z';
    const picture = drawing('svg', {viewBox: '0 0 1000 34', preserveAspectRatio: 'none'},
      drawing('path', {d: path, fill: device.colour, 'fill-opacity': 0.55}));
    picture.addEventListener('mousemove', (event) => {
      const box = picture.getBoundingClientRect();
      const time = data.end * (event.clientX - box.left) / box.width;
      const step = device.profile.findLast(([at]) => at <= time) ?? device.profile[0];
      showTip(event, device.name, [['at', micros(time)], ['in use', bytes(step[1])]]);
    });
    picture.addEventListener('mouseleave', hideTip);
    return picture;
  }

  function memory(device) {
    const scale = device.capacity || largest;
    const held = device.counted;
    const live = Math.max(held - device.weights, 0);
    const full = device.capacity !== null && held > device.capacity * (1 + 1e-9);
    const share = device.capacity ? ` (${percent(held / device.capacity)})` : '';
    const of = device.capacity === null ? ', unlimited' : ` of ${bytes(device.capacity)}${share}`;
    const colour = full ? 'var(--warn)' : device.colour;
    const title = `weights ${bytes(device.weights)}, tensors ${bytes(live)}; at most ${bytes(device.peak)} at once`;
    const bar = meter([device.weights / scale, colour, 1], [live / scale, colour, 0.55]);
    return element('div', {title}, `${bytes(held)}${of}`, bar);
  }

  const timed = data.devices.some((device) => device.profile.length > 1);
  const heads = ['Device', 'Share of tasks', 'Busy', 'Memory: weights, then tensors', timed ? 'Memory over time' : ''];
  const panel = byId('devices');
  panel.append(element('div', {class: 'device head'}, ...heads.map((head) => element('div', {}, head))));
  data.devices.forEach((device) => {
    const name = element('div', {},
      element('span', {class: 'swatch', style: `background: ${device.colour}`}), element('b', {}, device.name),
      element('span', {class: 'note'}, device.kind ? ` ${device.kind}` : ''), ' ');
    if (device.bottleneck) name.append(element('span', {class: 'badge'}, 'bottleneck'));
    const busy = data.end > 0 ? device.busy / data.end : 0;
    const share = `${counted(device.tasks, 'task')}, ${percent(device.share)}`;
    const times = `${micros(device.busy)}, idle ${percent(Math.max(1 - busy, 0))}`;
    panel.append(element('div', {class: 'device', 'data-device': device.name}, name,
      element('div', {}, share, meter([device.share, device.colour, 1])),
      element('div', {}, times, meter([busy, device.colour, 1])),
      memory(device), profile(device)));
  });
})();
