// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// What the reader has chosen, and its text in the address.
const surfaces = [
  {name: 'bowl', box: [-2, 2, -2, 2], minima: [[0, 0]], start: [-1.6, 1.2],
   said: 'A quadratic. Its curvatures are 1 and 1 / condition.'},
  {name: 'Rosenbrock', box: [-2, 2, -1, 3], minima: [[1, 1]], start: [-1.2, 1], said: 'A curved valley.'},
  {name: 'Beale', box: [-0.5, 4.5, -2.5, 2.5], minima: [[3, 0.5]], start: [0.5, -1.5],
   said: 'Flat, with steep corners.'},
  {name: 'saddle', box: [-2, 2, -2, 2], minima: [[0, 1], [0, -1]], start: [-1.5, 0.001],
   said: 'A ridge along y = 0. The minima are at y = 1 and y = -1.'},
  {name: 'many valleys', box: [-2.5, 2.5, -2.5, 2.5], minima: [[0, 0]], start: [-2.2, 1.7],
   said: 'A bowl with waves, like Rastrigin\'s function.'},
  {name: 'network on digits', start: [0, 0], network: true,
   said: 'Softmax over 16 hidden units with ReLU: 1210 weights that learn from 400 images of 8 x 8 pixels. ' +
     'The loss and the accuracy are those of 100 other images.'},
];
const tensors = ['W1', 'b1', 'W2', 'b2'], mostImages = 400;
const formats = ['float', 'half', 'bfloat16'];
const schedules = ['constant', 'linear warm-up', 'cosine', 'warm-up, then cosine', 'steps down'];
const scales = ['none', 'dynamic', 'static'];

const problemDefaults = {surface: 0, condition: 10, angle: 0, noise: 0, seed: 1, size: 1, x: -1.6, y: 1.2, steps: 300,
  batch: 32};
const policyDefaults = {
  schedule: 0, schedule_steps: 100, schedule_factor: 0.1, clip: 0, values: 0, gradients: 0, states: 0, master: 0,
  random: 0, scale: 0, scale_init: 65536, scale_interval: 100
};
const mostRuns = 4, mostSteps = 2000;

const model = {
  problem: {...problemDefaults}, runs: [], selected: 0, step: 0, lesson: '', hidden: false,
  version: 0,  // counts computations

  addRun(name, fields = {}, policies = {}) {
    this.runs.push({name, fields, policies: {...policyDefaults, ...policies}, records: null, refusal: ''});
  },
  get run() { return this.runs[this.selected]; },
  get network() { return Boolean(surfaces[this.problem.surface].network); },

  /// Computes all runs. Runs whose fields their rule refuses have no records.
  compute() {
    for (const run of this.runs) {
      run.refusal = engine.check(run.name, run.fields) || this.refusalOf(run.policies);
      run.records = run.refusal ? null : engine.run(run.name, run.fields, {...this.problem, ...run.policies});
      run.layers = run.records && this.network ? engine.layers(this.problem.steps) : null;
      run.used = engine.byName[run.name].slots.map((_, j) => engine.used(j));
    }
    this.step = Math.min(this.step, this.problem.steps);
    ++this.version;
  },
  refusalOf(p) {
    if (p.schedule && !(p.schedule_steps >= 1)) return 'The schedule needs at least 1 step.';
    if (p.schedule === 4 && !(p.schedule_factor > 0)) return 'The schedule needs a factor above 0.';
    if (p.scale && !(p.scale_init >= 1 && p.scale_init <= 16777216)) return 'The loss scale must be in [1, 2^24].';
    if (p.scale === 1 && !(p.scale_interval >= 1)) return 'The loss scale needs an interval of at least 1 step.';
    return '';
  },
  at(run, step, name) { return run.records[step * engine.width + engine.column[name]]; },
  /// The mean of |.| over tensor k: row 0 of the weights, 1 gradients, 2 steps, 3 + j member j of the state.
  layer(run, step, row, k) { return run.layers[step * 32 + row * 4 + k]; },
  state(run, step, slot, i) { return run.records[step * engine.width + engine.recordNames.length + 2 * slot + i]; },

  // ---- the address: s.<setting>=..., r=<rule>,<field>:<value>,p.<policy>:<value>;..., and what is looked at
  toHash() {
    const parts = [];
    for (const [name, value] of Object.entries(this.problem))
      if (value !== problemDefaults[name]) parts.push(`s.${name}=${value}`);
    const runs = this.runs.map(({name, fields, policies}) => [name,
      ...Object.entries(fields).map(([field, value]) => `${field}:${Number(value)}`),
      ...Object.entries(policies).filter(([policy, value]) => value !== policyDefaults[policy])
        .map(([policy, value]) => `p.${policy}:${value}`)].join(','));
    parts.push('r=' + runs.join(';'));
    if (this.selected) parts.push(`selected=${this.selected}`);
    if (this.step) parts.push(`step=${this.step}`);
    return '#' + parts.join('&');
  },

  /// Takes what it knows from the address. False if there is no run in it.
  fromHash(hash) {
    const problem = {...problemDefaults}, runs = [];
    let selected = 0, step = 0, text = hash.replace(/^#/, '');
    try {
      text = decodeURIComponent(text);
    } catch {
      return false;  // a % that begins no character
    }
    for (const part of text.split('&')) {
      const [key, value] = part.split('=');
      if (value === undefined) continue;
      if (key.startsWith('s.') && key.slice(2) in problem && Number.isFinite(Number(value)))
        problem[key.slice(2)] = Number(value);
      if (key === 'selected') selected = Number(value) | 0;
      if (key === 'step') step = Number(value) | 0;
      if (key === 'r') for (const one of value.split(';').slice(0, mostRuns)) {
        const [name, ...rest] = one.split(',');
        if (!Object.hasOwn(engine.byName, name)) continue;
        const run = {name, fields: {}, policies: {}};
        for (const pair of rest) {
          const [field, number] = pair.split(':');
          if (number === undefined || Number.isNaN(Number(number))) continue;
          if (field.startsWith('p.') && field.slice(2) in policyDefaults) run.policies[field.slice(2)] = Number(number);
          else if (engine.byName[name].fields.some(x => x.name === field)) run.fields[field] = Number(number);
        }
        runs.push(run);
      }
    }
    if (!runs.length) return false;
    problem.surface = Math.min(Math.max(problem.surface | 0, 0), surfaces.length - 1);
    problem.batch = Math.min(Math.max(problem.batch | 0, 1), mostImages);
    problem.steps = Math.min(Math.max(problem.steps | 0, 1), mostSteps);
    this.set({problem, runs, selected, step});
    return true;
  },

  set({problem = {}, runs, selected = 0, step = 0}) {
    this.problem = {...problemDefaults, ...problem};
    this.runs = [];
    for (const run of runs) this.addRun(run.name, {...run.fields}, run.policies);
    this.selected = Math.min(Math.max(selected, 0), this.runs.length - 1);
    this.step = Math.min(Math.max(step, 0), this.problem.steps);
  }
};

/// A number for a reader: four or five digits, whole numbers all of them, and no more than ten characters.
function shown(x) {
  if (x === undefined) return '';
  if (Number.isNaN(x)) return 'NaN';
  if (!Number.isFinite(x)) return x > 0 ? 'infinity' : '-infinity';
  if (x === 0) return Object.is(x, -0) ? '-0' : '0';
  const size = Math.abs(x);
  if (Number.isInteger(x) && size < 1e6) return String(x);
  if (size < 1e-4 || size >= 1e6) return x.toExponential(2).replace('e+', 'e');
  return String(Number(x.toPrecision(size < 1 ? 4 : 5)));
}
