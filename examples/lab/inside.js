// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// The numbers of one step, and what the header says of the rule.
const inside = (() => {
  const id = name => document.getElementById(name);
  const {make} = panel;

  /// The distance from x to the next larger number of a format.
  function spacing(format, x) {
    const [digits, least] = [[23, -149], [10, -24], [7, -133]][format];
    const size = Math.abs(x);
    return size > 0 ? 2 ** Math.max(Math.floor(Math.log2(size)) - digits, least) : 2 ** least;
  }
  const skippedFor = ['', 'skipped: a gradient is not finite', 'skipped: a term of the rule is not finite'];

  /// Whether the header's update takes the root of this member of the state.
  function isSquare(rule, slot) {
    const roots = [...rule.code.matchAll(/sqrt\(((?:[^()]|\([^()]*\))*)\)/g)].map(found => found[1]);
    const named = new RegExp(`\\bs\\.${slot}\\b|(^|[^.\\w])${slot}\\b(?!\\.)`);  // s.v, or a variable v
    return roots.some(text => named.test(text) || (slot === 'v' && text.includes('variance')));
  }

  function stateOf(run, n, slot, j) {
    const values = [0, 1].map(i => model.state(run, n, j, i));
    return run.used[j] ? [`state ${slot}`, values] : [`state ${slot}, not stored with these fields`, [], 'derived'];
  }

  function rows(run, n) {
    const rule = engine.byName[run.name], p = run.policies;
    const both = name => [model.at(run, n, name + '0'), model.at(run, n, name + '1')];
    const value = both('value'), list = [];
    const add = (label, values, kind = '') => list.push({label, values, kind});
    if (n === 0) {
      add('weight p', value, 'strong');
      rule.slots.forEach((slot, j) => add(...stateOf(run, 0, slot, j)));
      return list;
    }
    const before = [model.at(run, n - 1, 'value0'), model.at(run, n - 1, 'value1')];
    const g = both('gradient'), asked = both('asked'), change = value.map((x, i) => x - before[i]);
    add('weight p, before', before);
    if (p.gradients || p.scale) add(`gradient in ${formats[p.gradients]}${p.scale ? ', scaled' : ''}`, both('stored'));
    add('gradient g, as the rule gets it', g, 'strong');
    rule.slots.forEach((slot, j) => {
      const [label, now, kind] = stateOf(run, n, slot, j);
      add(label, now, kind);
      if (run.used[j] && isSquare(rule, slot)) add(`sqrt(${slot})`, now.map(Math.sqrt), 'derived');
    });
    add('step that the rule asks for', asked);
    add('step that is stored', change, 'strong');
    if (p.values) add(`distance to the next ${formats[p.values]}`, before.map(x => spacing(p.values, x)), 'derived');
    add('effective rate, \u2212step / g', change.map((x, i) => g[i] ? -x / g[i] : NaN), 'derived');
    add('|step| / |p|', change.map((x, i) => Math.abs(x / before[i])), 'derived');
    if (p.master) add('master copy, after', both('master'));
    add('weight p, after', value, 'strong');
    if (rule.averaged) add('average, after', both('average'));
    return list;
  }

  function said(run, n) {
    if (!run.records) return 'This run has a field that its rule refuses.';
    if (n === 0) return 'The start. No update yet. Press Step.';
    const at = name => model.at(run, n, name), parts = [];
    const skipped = skippedFor[at('skipped')];
    parts.push(skipped ? `Step ${n} is ${skipped}.` : `Step ${n} is update t = ${at('updates')}.`);
    parts.push(`lr ${shown(at('lr'))}, norm of the gradient ${shown(at('norm'))}.`);
    if (run.policies.clip) parts.push(`Clip factor ${shown(at('clip'))}.`);
    if (run.policies.scale) parts.push(`Loss scale ${shown(at('scale'))}.`);
    return parts.join(' ');
  }

  const head = (...names) => make('thead', {}, make('tr', {}, ...names.map(textContent => make('th', {textContent}))));
  const cell = x => make('td', {textContent: shown(x), title: x === undefined ? '' : String(x)});
  const listing = textContent => make('pre', {textContent, tabIndex: 0});

  function drawNumbers() {
    const run = model.run, table = id('numbers');
    table.replaceChildren(), id('layers').replaceChildren();
    if (model.hidden) {
      id('inside-said').textContent = 'Answer first.';
      return;
    }
    id('inside-said').textContent = `${panel.nameOf(model.selected)}. ${said(run, model.step)}`;
    if (!run.records) return;
    if (model.network) drawLayers(run, model.step);
    table.append(head('number', ...(model.network ? ['in W1', 'in W2'] : ['x', 'y'])));
    const body = make('tbody');
    for (const {label, values, kind} of rows(run, model.step))
      body.append(make('tr', {className: kind}, make('th', {scope: 'row', textContent: label}),
        ...[0, 1].map(i => cell(values[i]))));
    table.append(body);
  }

  /// The sizes in each tensor of a network: means of absolute values.
  function drawLayers(run, n) {
    const rule = engine.byName[run.name], body = make('tbody'), each = f => tensors.map((_, k) => f(k));
    const row = (i, k) => model.layer(run, n, i, k);
    const add = (label, values, kind = '') => body.append(make('tr', {className: kind},
      make('th', {scope: 'row', textContent: label}), ...values.map(cell)));
    add('weight', each(k => row(0, k)), 'strong');
    if (n > 0) add('gradient g', each(k => row(1, k)), 'strong');
    rule.slots.forEach((slot, j) => {
      if (!run.used[j]) return;
      add(`state ${slot}`, each(k => row(3 + j, k)));
      if (isSquare(rule, slot)) add(`sqrt(${slot})`, each(k => Math.sqrt(row(3 + j, k))), 'derived');
    });
    if (n > 0) {
      add('step', each(k => row(2, k)), 'strong');
      add('effective rate, step / g', each(k => row(2, k) / row(1, k)), 'derived');
      add('step / weight', each(k => row(2, k) / (n > 1 ? model.layer(run, n - 1, 0, k) : row(0, k))), 'strong');
    }
    id('layers').append(head('mean size in', ...tensors), body);
  }

  /// Text of a comment, with `names` as code.
  function prose(text) {
    return text.split('`').map((part, i) => i % 2 ? make('code', {textContent: part}) : part);
  }
  let described = '';
  function drawRule() {
    const rule = engine.byName[model.run.name];
    if (described === rule.name) return;
    described = rule.name;
    id('formula').replaceChildren(make('h2', {textContent: `The formula of ${rule.name}`}),
      ...rule.comment.map(([kind, text]) => kind === 'formula' ? listing(text) : make('p', {}, ...prose(text))),
      make('p', {className: 'hint'}, 'Fields: ', ...prose(rule.said)));
    id('code').replaceChildren(make('h2', {textContent: 'The code that ran'}), listing(rule.code),
      make('details', {}, make('summary', {textContent: `The whole rule, from rules/${rule.name}.hpp`}),
        listing(rule.whole)));
  }

  function phase(run, n) {
    const loss = model.at(run, n, 'loss'), first = model.at(run, 0, 'loss');
    if (!Number.isFinite(loss)) return 'not a number any more';
    if (loss > 1e3 * first + 1e3 * model.problem.size) return 'diverged';
    if (n > 0 && model.at(run, n, 'skipped')) return 'step skipped';
    if (model.network) return `reads ${Math.round(100 * model.at(run, n, 'accuracy'))} of 100 correctly`;
    const [left, right, low, high] = surfaces[model.problem.surface].box;
    const x = model.at(run, n, 'value0'), y = model.at(run, n, 'value1');
    if (x < left || x > right || y < low || y > high) return 'outside the picture';
    if (n > 0 && x === model.at(run, n - 1, 'value0') && y === model.at(run, n - 1, 'value1')) return 'not moving';
    return loss < 1e-6 * Math.max(first, 1e-300) ? 'close to a minimum' : 'on its way';
  }
  function drawSummary() {
    const table = id('summary');
    const columns = model.network ? ['loss', 'accuracy', 'batch_loss'] : ['loss', 'value0', 'value1'];
    table.replaceChildren(head(...(model.network ? ['run', 'loss', 'accuracy', 'loss of the batch'] :
      ['run', 'loss', 'x', 'y'])));
    const body = make('tbody');
    model.runs.forEach((run, i) => {
      const at = name => run.records && !model.hidden ? shown(model.at(run, model.step, name)) : '';
      const now = model.hidden ? '' : run.records ? phase(run, model.step) : 'not run';
      const label = make('th', {scope: 'row'}, picture.key(i), panel.nameOf(i),
        make('span', {className: 'phase', textContent: now}));
      const cells = columns.map(name => make('td', {textContent: at(name)}));
      body.append(make('tr', {}, label, ...cells));
    });
    table.append(body);
  }

  return {draw() { drawNumbers(), drawRule(), drawSummary(); }, spacing, phase};
})();
