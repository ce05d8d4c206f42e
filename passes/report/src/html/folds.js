// Positions of tasks and edges of the graph: layers from left to right, wrapped into bands like lines of text.
'use strict';

const TASK = {across: 222, down: 44, width: 150, height: 30, stub: 30, apart: 34};

const folds = (() => {
  const {layers, layer, row, from, to, bends} = data.graph;
  const {across, down, width, height, stub, apart} = TASK;

  const members = Array.from({length: layers}, () => []);
  layer.forEach((of, task) => members[of].push(task));

  /** Range of rows that each layer occupies, including the edges that pass through it. */
  const low = new Array(layers).fill(Infinity);
  const high = new Array(layers).fill(-Infinity);
  function takes(of, at) {
    low[of] = Math.min(low[of], at);
    high[of] = Math.max(high[of], at);
  }
  layer.forEach((of, task) => takes(of, row[task]));
  bends.forEach((way, edge) => way.forEach((at, index) => takes(layer[from[edge]] + 1 + index, at)));

  /** Wraps the graph into bands of `per` layers; returns the bands and the total size. */
  function fold(per) {
    const bands = [];
    let top = 0;
    for (let first = 0; first < layers; first += per) {
      const last = Math.min(first + per, layers);
      const lowest = least(low.slice(first, last));
      const bottom = top + (most(high.slice(first, last)) - lowest) * down + height;
      bands.push({first, last, low: lowest, top, bottom});
      top = bottom + apart;
    }
    const wide = (Math.min(per, layers) - 1) * across + width + (bands.length > 1 ? 2 * stub : 0);
    return {bands, width: Math.max(wide, 1), height: Math.max(top - apart, height)};
  }

  /** Returns the wrapping with the fewest bands whose scale on the canvas is maximal, or at least 0.85. */
  function best(room) {
    const scale = (folded) => Math.min(room.width / folded.width, room.height / folded.height);
    let chosen = fold(Math.max(layers, 1));
    for (let count = 2; count <= Math.min(layers, 150) && scale(chosen) < 0.85; count += 1) {
      const next = fold(Math.ceil(layers / count));
      if (scale(next) > scale(chosen) * 1.02) chosen = next;
    }
    return chosen;
  }

  /** Lays the graph out on a canvas of that size: bands, positions of tasks, paths of edges. */
  function lay(room) {
    const folded = best(room);
    const band = new Array(layers);
    folded.bands.forEach((of) => band.fill(of, of.first, of.last));
    const x = (of) => (of - band[of].first) * across;
    const y = (of, at) => band[of].top + (at - band[of].low) * down;
    const left = layer.map(x);
    const top = layer.map((of, task) => y(of, row[task]));

    /** Returns the paths of an edge: one for each band that it passes. */
    function ways(task, edge) {
      const target = to[edge];
      const stops = [[layer[task], left[task] + width, top[task] + height / 2]];
      bends[edge].forEach((at, index) => {
        const of = layer[task] + 1 + index;
        stops.push([of, x(of) + width / 2, y(of, at) + height / 2]);
      });
      stops.push([layer[target], left[target], top[target] + height / 2]);
      const all = [[stops[0].slice(1)]];
      for (let index = 1; index < stops.length; index += 1) {
        const [before, here] = [stops[index - 1], stops[index]];
        if (band[before[0]] !== band[here[0]]) {
          const edgeOf = (band[before[0]].last - band[before[0]].first - 1) * across + width;
          all[all.length - 1].push([edgeOf + stub, before[2]]);
          all.push([[-stub, here[2]]]);
        }
        all[all.length - 1].push(here.slice(1));
      }
      return all.map((points) => {
        const [xs, ys] = [points.map((point) => point[0]), points.map((point) => point[1])];
        return {points, left: least(xs), right: most(xs), top: least(ys), bottom: most(ys)};
      });
    }

    /** Returns the task at a position, or null. */
    function at(px, py) {
      const here = folded.bands.find((of) => py >= of.top && py <= of.bottom);
      const of = here ? here.first + Math.floor(px / across) : -1;
      if (!here || of < here.first || of >= here.last) return null;
      const hit = members[of].find((task) => px - left[task] <= width && py >= top[task] && py <= top[task] + height);
      return hit ?? null;
    }

    return {...folded, left, top, ways: from.map(ways), at};
  }

  return {members, lay};
})();
