// Results of each member of the portfolio over time: steps of the best plan and the best bound, and a table by member.
'use strict';

(() => {
  const events = data.history;
  if (!events.length) return;
  byId('history-section').hidden = false;

  const WIDTH = 900;
  const HEIGHT = 300;
  const [LEFT, RIGHT, TOP, BOTTOM] = [80, 20, 16, 36];
  const parts = [...new Set(events.map((event) => event.part))];
  const hue = (part) => `hsl(${(parts.indexOf(part) * 137.5 + 210) % 360} 60% 50%)`;
  const plans = events.filter((event) => 'plan' in event);
  const bounds = events.filter((event) => 'bound' in event);
  const best = least(plans.map((event) => event.plan));
  const last = Math.max(most(events.map((event) => event.seconds)), 1e-6);

  // Early plans may be far off; the range covers values within a factor of two of the best plan.
  const values = [...plans.map((event) => event.plan), ...bounds.map((event) => event.bound)];
  const near = values.filter((value) => !plans.length || (value <= 2 * best && value >= 0.5 * best));
  let [low, high] = [least(near), most(near)];
  const margin = Math.max((high - low) * 0.08, high * 0.002, 1e-9);
  [low, high] = [Math.max(low - margin, 0), high + margin];

  // Most events happen early: the time axis is logarithmic if it spans more than a factor of 50.
  const first = Math.max(Math.min(least(events.map((event) => event.seconds).filter((at) => at > 0)), last), 1e-4);
  const logarithmic = last / first > 50;
  const along = (seconds) => {
    const share = logarithmic ? Math.log(Math.max(seconds, first) / first) / Math.log(last / first) : seconds / last;
    return LEFT + share * (WIDTH - LEFT - RIGHT);
  };
  const above = (value) => {
    const share = (Math.min(Math.max(value, low), high) - low) / (high - low);
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM);
  };

  function seconds(time) {
    return time >= 1 ? `${number(time, 2)} s` : `${number(1000 * time, 1)} ms`;
  }

  /** Draws the running best as steps. */
  function steps(found, key, better, colour) {
    let so = null;
    let path = '';
    for (const event of found) {
      if (so !== null && !better(event[key], so)) continue;
      const [x, y] = [along(event.seconds), above(event[key])];
      path += so === null ? `M${x} ${y}` : `H${x}V${y}`;
      so = event[key];
    }
    return drawing('path', {d: `${path}H${WIDTH - RIGHT}`, fill: 'none', stroke: colour, 'stroke-width': 2});
  }

  function label(x, y, anchor, text) {
    return drawing('text', {x, y, 'text-anchor': anchor, fill: 'var(--soft)', 'font-size': 12}, text);
  }

  function axes() {
    const marks = [];
    const step = niceStep(high - low, 5);
    for (let value = Math.ceil(low / step) * step; value <= high; value += step) {
      marks.push(
        drawing('path', {d: `M${LEFT} ${above(value)}H${WIDTH - RIGHT}`, stroke: 'var(--line)'}),
        label(LEFT - 8, above(value) + 4, 'end', micros(value)));
    }
    const times = [];
    if (logarithmic) {
      for (let at = 10 ** Math.ceil(Math.log10(first)); at <= last; at *= 10) times.push(at);
    } else {
      const apart = niceStep(last, 8);
      for (let count = 0; count * apart <= last * 1.0001; count += 1) times.push(count * apart);
    }
    for (const at of times) {
      marks.push(
        drawing('path', {d: `M${along(at)} ${HEIGHT - BOTTOM}v5`, stroke: 'var(--soft)'}),
        label(along(at), HEIGHT - BOTTOM + 20, 'middle', seconds(at)));
    }
    return marks;
  }

  function dot(event) {
    const isPlan = 'plan' in event;
    const value = isPlan ? event.plan : event.bound;
    const made = drawing('circle', {
      cx: along(event.seconds), cy: above(value), r: isPlan ? 4 : 3,
      fill: isPlan ? hue(event.part) : 'var(--panel)', stroke: hue(event.part), 'stroke-width': 2,
    });
    const facts = [[isPlan ? 'plan' : 'bound', micros(value)], ['after', seconds(event.seconds)]];
    made.addEventListener('mousemove', (mouse) => showTip(mouse, event.part, facts));
    made.addEventListener('mouseleave', hideTip);
    return made;
  }

  const chart = drawing('svg', {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'xMidYMid meet'}, ...axes());
  if (bounds.length) chart.append(steps(bounds, 'bound', (a, b) => a > b, 'var(--good)'));
  if (plans.length) chart.append(steps(plans, 'plan', (a, b) => a < b, 'var(--warn)'));
  chart.append(...events.map(dot));

  const rows = parts.map((part) => {
    const own = events.filter((event) => event.part === part);
    const plan = own.filter((event) => 'plan' in event).reduce((a, b) => (a && a.plan <= b.plan ? a : b), null);
    const bound = own.filter((event) => 'bound' in event).reduce((a, b) => (a && a.bound >= b.bound ? a : b), null);
    const name = element('td', {}, element('span', {class: 'swatch', style: `background: ${hue(part)}`}), part, ' ');
    if (plan && plan.plan === best) name.append(element('span', {class: 'badge good'}, 'best'));
    const cells = (event, key) => [
      element('td', {class: 'number'}, event ? micros(event[key]) : ''),
      element('td', {class: 'after'}, event ? `after ${seconds(event.seconds)}` : ''),
    ];
    return element('tr', {'data-part': part}, name, ...cells(plan, 'plan'), ...cells(bound, 'bound'));
  });
  const heads = [['Part', ''], ['Best plan', 'number'], ['', ''], ['Best bound', 'number'], ['', '']].map(
    ([text, kind]) => element('th', {scope: 'col', class: kind}, text));
  byId('history-note').textContent = 'orange: best plan so far; green: best bound so far';
  byId('history').append(chart, element('div', {class: 'scroll'}, element('table', {},
    element('thead', {}, element('tr', {}, ...heads)), element('tbody', {}, ...rows))));
})();
