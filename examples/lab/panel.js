// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Controls: a slider with a number box, a checkbox or a list for each setting.
const panel = (() => {
  const id = name => document.getElementById(name);
  const make = (tag, properties = {}, ...children) => {
    const node = Object.assign(document.createElement(tag), properties);
    node.append(...children);
    return node;
  };
  let count = 0;

  /// Positions of a slider and the values they stand for, by the kind of a field.
  function scaleOf(kind, initial, range) {
    if (range) return {min: range[0], max: range[1], step: range[2], from: x => x, to: x => x};
    if (kind === 'fraction' || kind === 'open fraction')
      return {
        min: kind === 'fraction' ? 0 : 0.02, max: 4, step: 0.02,
        from: p => 1 - Number((10 ** -p).toPrecision(2)), to: x => -Math.log10(1 - x)
      };
    if (kind === 'unit') return {min: 0, max: 1, step: 0.01, from: x => x, to: x => x};
    if (kind === 'signed') return {min: -2, max: 2, step: 0.01, from: x => x, to: x => x};
    if (kind === 'whole') return {min: 1, max: 100, step: 1, from: x => x, to: x => x};
    const center = initial > 0 && Number.isFinite(initial) ? Math.log10(initial) : 0;
    const min = Math.max(Math.min(-6, Math.floor(center) - 4), -18), max = Math.max(1, Math.ceil(center) + 2);
    const zero = kind === 'size';
    return {
      min: zero ? min - 0.1 : min, max, step: 0.05,
      from: p => zero && p < min ? 0 : Number((10 ** p).toPrecision(2)),
      to: x => x > 0 ? Math.min(Math.max(Math.log10(x), min), max) : min - 0.1
    };
  }
  const number = text => /^\s*\+?inf(inity)?\s*$/i.test(text) ? Infinity : text.trim() === '' ? NaN : Number(text);
  const written = x => Number.isFinite(x) ? String(Number(x.toPrecision(12))) : 'inf';

  /// `fit` turns what the reader asks for into what can be, and `rule` says what that is.
  function real({label, name, kind, initial, value, range, help, fit = x => x, rule = '', change}) {
    const scale = scaleOf(kind, initial, range), key = `control${++count}`;
    const slider = make('input', {type: 'range', min: scale.min, max: scale.max, step: scale.step, id: key});
    const text = make('input', {type: 'text', inputMode: 'decimal', autocomplete: 'off'});
    const why = make('p', {className: 'why', id: `${key}-why`});
    why.setAttribute('role', 'alert'), text.setAttribute('aria-describedby', why.id);
    const show = x => {
      slider.value = scale.to(x), text.value = written(x);
      slider.setAttribute('aria-valuetext', written(x));
    };
    slider.dataset.name = text.dataset.name = name;
    text.setAttribute('aria-label', `${label}, number`);
    slider.addEventListener('input', () => {
      const x = fit(scale.from(Number(slider.value)));
      why.textContent = '';
      text.value = written(x), slider.setAttribute('aria-valuetext', written(x));
      change(value = x);
    });
    text.addEventListener('change', () => {
      const asked = number(text.value), x = fit(asked), said = text.value.trim() || 'Nothing';
      const refused = Number.isNaN(x) ? `${said} is not a number` :
        range && !(x >= range[0] && x <= range[1]) ? `${said} is not between ${range[0]} and ${range[1]}` : '';
      why.textContent = refused ? `${refused}. It stays ${written(value)}.` :
        x !== asked ? `${said} is not possible: ${rule}. It is now ${written(x)}.` : '';
      if (refused) return show(value);
      show(x), change(value = x);
    });
    show(value);
    return make('div', {className: 'control', title: help || ''},
      make('label', {htmlFor: key, textContent: label}), slider, text, why);
  }
  function flag({label, name, value, help, change}) {
    const box = make('input', {type: 'checkbox', checked: Boolean(value)});
    box.dataset.name = name;
    box.addEventListener('change', () => change(box.checked ? 1 : 0));
    return make('label', {className: 'control flag', title: help || ''}, box, ` ${label}`);
  }
  function list({label, name, value, options, help, change}) {
    const key = `control${++count}`, select = make('select', {id: key});
    options.forEach((text, i) => select.append(make('option', {value: i, textContent: text, selected: i === value})));
    select.dataset.name = name;
    select.addEventListener('change', () => change(Number(select.value)));
    return make('div', {className: 'control', title: help || ''},
      make('label', {htmlFor: key, textContent: label}), select);
  }

  function drawRuns(act) {
    id('runs').replaceChildren(...model.runs.map((run, i) => {
      const button = make('button', {type: 'button', className: 'chip'}, picture.key(i), nameOf(i));
      button.setAttribute('aria-pressed', i === model.selected);
      button.addEventListener('click', () => act(() => { model.selected = i; }, 'runs'));
      return button;
    }));
    const choose = id('rule');
    if (!choose.options.length)
      choose.append(...engine.rules.map(({name}) => make('option', {value: name, textContent: name})));
    choose.value = model.run.name;
    id('copy').disabled = model.runs.length >= mostRuns;
    id('remove').disabled = model.runs.length <= 1;
  }

  /// What tells a run from the others: its rule, and settings that differ.
  function nameOf(i) {
    const run = model.runs[i], same = model.runs.filter(other => other.name === run.name);
    if (same.length === 1) return run.name;
    const different = (list, initial) => Object.keys({...Object.assign({}, ...same.map(other => other[list]))})
      .filter(key => new Set(same.map(other => Number(other[list][key] ?? initial(key)))).size > 1)
      .map(key => [key, Number(run[list][key] ?? initial(key))]);
    const rule = engine.byName[run.name];
    const said = different('fields', key => rule.fields.find(field => field.name === key).initial)
      .map(([key, x]) => {
        const isFlag = rule.fields.find(field => field.name === key).kind === 'flag';
        return isFlag ? (x ? key : `no ${key}`) : `${key} ${shown(x)}`;
      });
    for (const [key, x] of different('policies', name => policyDefaults[name])) said.push({
      values: formats[x], gradients: `${formats[x]} gradients`, states: `${formats[x]} state`,
      master: x ? 'master' : 'no master', random: x ? 'at random' : 'to nearest', schedule: schedules[x],
      scale: x ? `${scales[x]} scale` : 'no scale', clip: x ? `clip ${shown(x)}` : 'no clip'
    }[key] || `${key.replace('_', ' ')} ${shown(x)}`);
    return said.length ? `${run.name}, ${said.slice(0, 2).join(', ')}` : `${run.name} ${same.indexOf(run) + 1}`;
  }

  function drawFields(act) {
    const run = model.run, rule = engine.byName[run.name];
    id('fields-title').textContent = `Fields of ${run.name}`;
    id('rule-kind').textContent = [
      rule.sums && `Needs sums over the ${rule.sums}.`, rule.loss && 'Uses the loss.',
      rule.memory && 'Remembers numbers from step to step.', rule.averaged && 'The ring is its average.'
    ].filter(Boolean).join(' ');
    id('fields').replaceChildren(...rule.fields.map(field => {
      const set = x => act(() => {
        if (x === field.initial) delete run.fields[field.name];
        else run.fields[field.name] = x;
      });
      const how = {label: field.name, name: field.name, kind: field.kind, initial: field.initial,
        value: Number(run.fields[field.name] ?? field.initial), change: set,
        help: `Default ${field.kind === 'flag' ? (field.initial ? 'on' : 'off') : written(field.initial)}`};
      return field.kind === 'flag' ? flag(how) : real(how);
    }));
  }

  function drawPolicies(act) {
    const p = model.run.policies;
    const set = name => x => act(() => { p[name] = x; }, name);
    const redraw = name => x => act(() => { p[name] = x; }, 'all');
    const some = (...controls) => controls.filter(Boolean);
    id('policies').replaceChildren(...some(
      list({label: 'Schedule of lr', name: 'schedule', value: p.schedule, options: schedules,
        change: redraw('schedule')}),
      p.schedule && real({label: `${['', 'Warm-up', 'Length', 'Warm-up', 'Every'][p.schedule]} (steps)`,
        name: 'schedule_steps', range: [1, mostSteps, 1], value: p.schedule_steps, change: set('schedule_steps')}),
      p.schedule > 1 && real({label: p.schedule === 4 ? 'Factor' : 'End / lr', name: 'schedule_factor',
        range: [0, 1, 0.01], value: p.schedule_factor, change: set('schedule_factor')}),
      real({label: 'Clip norm (0: off)', name: 'clip', kind: 'size', initial: 1, value: p.clip, change: set('clip')})));
    const narrow = p.values || p.states;
    id('storage').replaceChildren(...some(
      list({label: 'Weights', name: 'values', value: p.values, options: formats, change: redraw('values')}),
      p.values && flag({label: 'Float master copy', name: 'master', value: p.master, change: redraw('master')}),
      list({label: 'Gradients', name: 'gradients', value: p.gradients, options: formats, change: set('gradients')}),
      list({label: 'State', name: 'states', value: p.states, options: formats, change: redraw('states')}),
      narrow && flag({label: 'Round at random (stochastic rounding)', name: 'random', value: p.random,
        change: set('random'), help: 'Else to nearest. Rounds the weights and the state that have 16 bits.'}),
      list({label: 'Loss scale', name: 'scale', value: p.scale, options: scales, change: redraw('scale')}),
      p.scale && real({label: 'First scale', name: 'scale_init', kind: 'positive', initial: 65536, value: p.scale_init,
        change: set('scale_init')}),
      p.scale === 1 && real({label: 'Grows after (steps)', name: 'scale_interval', range: [1, mostSteps, 1],
        value: p.scale_interval, change: set('scale_interval')})));
  }

  function drawProblem(act) {
    const p = model.problem;
    const set = name => x => act(() => { p[name] = x; }, name);
    id('problem').replaceChildren(...[
      list({label: 'Surface', name: 'surface', value: p.surface, options: surfaces.map(one => one.name),
        change: x => act(() => { p.surface = x, [p.x, p.y] = surfaces[x].start, model.step = 0; }, 'all')}),
      make('p', {className: 'hint', textContent: surfaces[p.surface].said}),
      p.surface === 0 && real({label: 'Condition', name: 'condition', kind: 'positive', initial: 10, range: null,
        value: p.condition, fit: x => Math.max(x, 1), rule: 'at least 1', change: set('condition')}),
      p.surface === 0 && real({label: 'Turned by (degrees)', name: 'angle', range: [0, 180, 1], value: p.angle,
        change: set('angle')}),
      model.network && real({label: 'Batch (images)', name: 'batch', range: [1, mostImages, 1], value: p.batch,
        fit: Math.round, rule: 'whole images', change: set('batch')}),
      !model.network && real({label: 'Start x', name: 'x', range: [-10, 10, 0.001], value: p.x, change: set('x')}),
      !model.network && real({label: 'Start y', name: 'y', range: [-10, 10, 0.001], value: p.y, change: set('y')}),
      !model.network && real({label: 'Gradient noise', name: 'noise', kind: 'size', initial: 0.1, value: p.noise,
        change: set('noise')}),
      real({label: 'Seed', name: 'seed', range: [0, 1000, 1], value: p.seed, change: set('seed')}),
      real({label: 'Loss times', name: 'size', kind: 'positive', initial: 1, value: p.size, change: set('size'),
        help: 'A factor of the loss, as in a mean over many examples'}),
      real({label: 'Steps', name: 'steps', range: [1, mostSteps, 1], value: p.steps,
        fit: Math.round, rule: 'whole steps', change: set('steps')})
    ].filter(Boolean));
  }

  return {
    make, nameOf,
    /// Draws the controls. act(change, what) makes a change and says which control made it.
    draw(act) { drawRuns(act), drawFields(act), drawPolicies(act), drawProblem(act); },
    drawRuns,
    showRefusal() {
      const refused = model.runs.map((run, i) => run.refusal && `${nameOf(i)}: ${run.refusal}`).filter(Boolean);
      id('refusal').hidden = !refused.length;
      id('refusal').textContent = refused.length ? `Not run. ${refused.join(' ')}` : '';
    }
  };
})();
