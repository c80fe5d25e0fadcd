// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// The two pictures: contours with paths, and the losses.
const picture = (() => {
  const side = 600, points = 121;
  const dashes = ['', '9 5', '3 4', '12 4 3 4'];
  const shapes = [  // of the marks at the current step, about (0, 0)
    'M-8 0A8 8 0 1 0 8 0A8 8 0 1 0-8 0Z', 'M-7-7H7V7H-7Z', 'M0-9L9 7H-9Z', 'M0-10L10 0L0 10L-10 0Z'
  ];
  const svg = (name, attributes = {}, text) => {
    const node = document.createElementNS('http://www.w3.org/2000/svg', name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const id = name => document.getElementById(name);
  const fixed = x => x.toFixed(1).replace(/\.0$/, '');

  const box = () => surfaces[model.problem.surface].box;
  const toMap = (x, y) => {
    const [left, right, low, high] = box();
    const clamp = v => Math.max(-1e5, Math.min(1e5, v));
    return [clamp((x - left) / (right - left) * side), clamp((high - y) / (high - low) * side)];
  };
  const fromMap = (u, v) => {
    const [left, right, low, high] = box();
    return [left + u / side * (right - left), high - v / side * (high - low)];
  };

  /// Marching squares: the line where the losses are `level`.
  function contour(losses, n, level) {
    let d = '';
    const scale = side / (n - 1);
    const cut = (a, b) => (level - a) / (b - a);
    for (let j = 0; j + 1 < n; ++j)
      for (let i = 0; i + 1 < n; ++i) {
        const at = j * n + i, a = losses[at], b = losses[at + 1], c = losses[at + n + 1], e = losses[at + n], ends = [];
        if (a < level !== b < level) ends.push([i + cut(a, b), j]);
        if (b < level !== c < level) ends.push([i + 1, j + cut(b, c)]);
        if (e < level !== c < level) ends.push([i + cut(e, c), j + 1]);
        if (a < level !== e < level) ends.push([i, j + cut(a, e)]);
        for (let k = 0; k + 1 < ends.length; k += 2)
          d += 'M' + ends.slice(k, k + 2).map(([u, v]) => `${fixed(u * scale)} ${fixed(side - v * scale)}`).join('L');
      }
    return d;
  }

  let drawn = '';
  function drawSurface() {
    const {surface, condition, angle, size} = model.problem, key = [surface, condition, angle, size].join();
    if (key === drawn) return;
    drawn = key;
    const losses = engine.losses(model.problem, box(), points);
    const sorted = losses.slice().sort();
    const levels = 13, contours = id('contours');
    contours.replaceChildren();
    for (let k = 1; k < levels; ++k) {
      const level = sorted[Math.floor(sorted.length * (k / levels) ** 1.6)];
      contours.append(svg('path', {d: contour(losses, points, level)}));
    }
    const rank = new Map();
    sorted.forEach((x, i) => rank.set(x, i / sorted.length));
    const canvas = id('shade'), context = canvas.getContext('2d');
    canvas.width = canvas.height = points;
    const image = context.createImageData(points, points);
    for (let j = 0; j < points; ++j)
      for (let i = 0; i < points; ++i) {
        const r = Math.sqrt(rank.get(losses[(points - 1 - j) * points + i])), at = 4 * (j * points + i);
        image.data.set([64, 124, 204, 80 * (1 - r)], at);  // on the page's colour, light or dark
      }
    context.putImageData(image, 0, 0);

    id('minima').replaceChildren(...surfaces[surface].minima.map(([x, y]) => {
      const [u, v] = toMap(x, y);
      return svg('path', {class: 'minimum', d: `M${u - 9} ${v}h18M${u} ${v - 9}v18`});
    }));
    const axes = id('axes'), [left, right, low, high] = box();
    axes.replaceChildren();
    for (let k = 0; k <= 4; ++k) {
      const x = left + (right - left) * k / 4, y = low + (high - low) * k / 4;
      const anchor = k === 0 ? 'start' : k === 4 ? 'end' : 'middle';
      const shift = k === 0 ? 6 : k === 4 ? -6 : 0;
      axes.append(svg('text', {x: side * k / 4 + shift, y: side - 8, 'text-anchor': anchor}, shown(x)));
      if (k > 0) axes.append(svg('text', {x: 6, y: side * (1 - k / 4) + (k === 4 ? 22 : 6)}, shown(y)));
    }
  }

  /// The points of a run on the map, as text, up to the first that is not finite.
  function pointsOf(run) {
    if (run.points?.records === run.records) return run.points;
    const points = [];
    for (let n = 0; n <= model.problem.steps; ++n) {
      const x = model.at(run, n, 'value0'), y = model.at(run, n, 'value1');
      if (!Number.isFinite(x) || !Number.isFinite(y)) break;
      points.push(toMap(x, y).map(fixed).join(' '));
    }
    points.records = run.records;
    return run.points = points;
  }
  function pathOf(run, last) {
    const points = pointsOf(run).slice(0, last + 1);
    return ['M' + points.join('L'), points.length <= 80 ? `M${points.join('h0M')}h0` : '', points.length];
  }

  function drawPaths() {
    const paths = id('paths'), start = toMap(model.problem.x, model.problem.y);
    paths.replaceChildren();
    id('start').replaceChildren(svg('circle', {cx: start[0], cy: start[1], r: 10, class: 'start'}));
    if (model.hidden) return;
    const marks = [];
    model.runs.forEach((run, i) => {
      if (!run.records) return;
      const [d, dots, count] = pathOf(run, model.step);
      const group = svg('g', {class: `run run${i}${i === model.selected ? ' selected' : ''}`});
      group.append(svg('path', {d, class: 'path', 'stroke-dasharray': dashes[i]}));
      if (dots) group.append(svg('path', {d: dots, class: 'dots'}));
      if (engine.byName[run.name].averaged && count > model.step) {
        const [u, v] = toMap(model.at(run, model.step, 'average0'), model.at(run, model.step, 'average1'));
        if (Number.isFinite(u) && Number.isFinite(v))
          group.append(svg('circle', {cx: u, cy: v, r: 11, class: 'average'}));
      }
      paths.append(group);
      if (count > model.step) {
        const [u, v] = toMap(model.at(run, model.step, 'value0'), model.at(run, model.step, 'value1'));
        marks.push(svg('path', {d: shapes[i], class: `mark run${i}`, transform: `translate(${fixed(u)} ${fixed(v)})`}));
      }
    });
    paths.append(...marks);
  }

  /// The axis of the steps, and where things are in a picture of curves.
  function acrossSteps(axes) {
    const narrow = matchMedia('(max-width: 520px)').matches;
    const left = narrow ? 84 : 62, right = 590, top = 12, bottom = 192, steps = model.problem.steps;
    const x = n => left + (right - left) * n / steps;
    for (let k = 0; k <= 4; k += narrow ? 2 : 1) {
      const anchor = k === 0 ? 'start' : k === 4 ? 'end' : 'middle', n = Math.round(steps * k / 4);
      axes.append(svg('text', {x: x(n), y: bottom + (narrow ? 30 : 24), 'text-anchor': anchor},
        k === 4 ? `step ${n}` : String(n)));
    }
    return {left, right, top, bottom, x};
  }

  /// The accuracies of a network, in percent. Returns what moves the mark of the current step.
  function drawAccuracies() {
    const axes = id('accuracy-axes'), curves = id('accuracies');
    axes.replaceChildren(), curves.replaceChildren();
    if (!model.network || model.hidden) return () => {};
    const {left, right, top, bottom, x} = acrossSteps(axes);
    const y = percent => top + (bottom - top) * (1 - percent / 100);
    for (let percent = 0; percent <= 100; percent += 25) {
      axes.append(svg('line', {x1: left, x2: right, y1: y(percent), y2: y(percent)}));
      axes.append(svg('text', {x: left - 8, y: y(percent) + 6, 'text-anchor': 'end'}, `${percent}%`));
    }
    model.runs.forEach((run, i) => {
      if (!run.records) return;
      const points = Array.from({length: model.problem.steps + 1},
        (_, n) => `${fixed(x(n))} ${fixed(y(100 * model.at(run, n, 'accuracy')))}`);
      const group = svg('g', {class: `run run${i}${i === model.selected ? ' selected' : ''}`});
      group.append(svg('path', {d: 'M' + points.join('L'), class: 'path', 'stroke-dasharray': dashes[i]}));
      curves.append(group);
    });
    const now = svg('line', {class: 'now', y1: top, y2: bottom});
    curves.append(now);
    return () => ['x1', 'x2'].forEach(end => now.setAttribute(end, x(model.step)));
  }

  let drawnCurve = '', moveNow, moveBelow;
  function drawCurve() {
    const key = [model.version, model.selected, model.hidden].join();
    if (key !== drawnCurve) drawnCurve = key, moveNow = () => {}, drawCurves(), moveBelow = drawAccuracies();
    moveNow(), moveBelow();
  }
  function drawCurves() {
    const axes = id('curve-axes'), curves = id('curves');
    axes.replaceChildren(), curves.replaceChildren();
    const steps = model.problem.steps;
    const losses = run => Array.from({length: steps + 1}, (_, n) => model.at(run, n, 'loss'));
    const runs = model.runs.map(run => run.records && !model.hidden ? losses(run) : []);
    const all = runs.flat().filter(x => x > 1e-16 && Number.isFinite(x));
    if (!all.length) {
      axes.append(svg('text', {x: 300, y: 110, 'text-anchor': 'middle', class: 'empty'},
        model.hidden ? 'Answer first. Then the runs appear.' : 'There is no loss to show.'));
      return;
    }
    const first = Math.max(...runs.map(x => x[0] || 0), 1e-16);
    const high = Math.ceil(Math.log10(Math.min(Math.max(...all), first * 1e4)) + 1e-9);
    const low = Math.min(Math.max(Math.floor(Math.log10(Math.min(...all))), high - 17), high - 1);
    const {left, right, top, bottom, x} = acrossSteps(axes);
    const y = loss => {
      const decade = Math.min(high, Math.log10(Math.max(loss, 10 ** low)));
      return top + (bottom - top) * (high - decade) / (high - low);
    };
    const every = Math.ceil((high - low) / 5);
    for (let k = high; k >= low; k -= every) {
      axes.append(svg('line', {x1: left, x2: right, y1: y(10 ** k), y2: y(10 ** k)}));
      const text = k < -3 || k > 3 ? `1e${k}` : String(Number((10 ** k).toPrecision(1)));
      axes.append(svg('text', {x: left - 8, y: y(10 ** k) + 6, 'text-anchor': 'end'}, text));
    }
    runs.forEach((values, i) => {
      let d = '', skips = '';
      for (let n = 0; n < values.length && Number.isFinite(values[n]); ++n) {
        d += `${n ? 'L' : 'M'}${fixed(x(n))} ${fixed(y(values[n]))}`;
        if (model.at(model.runs[i], n, 'skipped')) skips += `M${fixed(x(n) - 3)} ${top - 8}l6 6m0-6l-6 6`;
      }
      const group = svg('g', {class: `run run${i}${i === model.selected ? ' selected' : ''}`});
      group.append(svg('path', {d, class: 'path', 'stroke-dasharray': dashes[i]}));
      if (skips) group.append(svg('path', {d: skips, class: 'skip-marks'}));
      curves.append(group);
    });
    const now = svg('line', {class: 'now', y1: top, y2: bottom});
    curves.append(now);
    moveNow = () => ['x1', 'x2'].forEach(end => now.setAttribute(end, x(model.step)));
  }

  return {
    svg, dashes, shapes, fromMap,
    draw() {
      for (const node of document.querySelectorAll('.of-surface')) node.toggleAttribute('hidden', model.network);
      for (const node of document.querySelectorAll('.of-network')) node.toggleAttribute('hidden', !model.network);
      if (!model.network) drawSurface(), drawPaths();
      drawCurve();
    },
    /// A small picture of a run's line and mark, for lists.
    key(i) {
      const node = svg('svg', {viewBox: '0 0 40 20', class: `key run run${i}`, 'aria-hidden': 'true'});
      node.append(svg('path', {d: 'M1 10H39', class: 'path', 'stroke-dasharray': dashes[i]}),
        svg('path', {d: shapes[i], class: `mark run${i}`, transform: 'translate(20 10) scale(0.75)'}));
      return node;
    }
  };
})();
