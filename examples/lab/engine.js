// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// The compiled rules. A run is a call: no state stays in the module between two calls.
const fromHeaders = JSON.parse(document.getElementById('from-headers').textContent);

const engine = {
  rules: [], byName: {}, settingNames: [], recordNames: [],

  async start() {
    const text = atob(document.getElementById('wasm').textContent.trim());
    const bytes = Uint8Array.from(text, c => c.charCodeAt(0));
    this.wasm = (await WebAssembly.instantiate(bytes, {})).instance.exports;
    const said = JSON.parse(this.textAt(this.wasm.lab_describe()));
    this.settingNames = said.settings;
    this.recordNames = said.record;
    this.column = Object.fromEntries(said.record.map((name, i) => [name, i]));
    this.width = said.record.length + 10;  // and five members of the state for x and y
    this.rules = said.rules;
    this.rules.forEach((rule, number) => {
      rule.number = number;
      Object.assign(rule, fromHeaders[rule.name]);
      this.wasm.lab_defaults(number);
      const defaults = this.view(this.wasm.lab_fields(), rule.fields.length);
      rule.fields = rule.fields.map(([name, type], i) => ({name, type, initial: defaults[i]}));
      for (const field of rule.fields) field.kind = this.kindOf(rule, field);
      this.byName[rule.name] = rule;
    });
  },

  view(address, count) { return new Float64Array(this.wasm.memory.buffer, address, count); },
  textAt(address) {
    const bytes = new Uint8Array(this.wasm.memory.buffer);
    return new TextDecoder().decode(bytes.subarray(address, bytes.indexOf(0, address)));
  },

  /// What check() says of these fields: an empty text if it accepts them.
  check(name, fields) {
    const rule = this.byName[name] || this.rules.find(one => one.name === name);
    this.setFields(rule, fields);
    const stack = this.wasm.__stack_pointer.value;
    try {
      this.wasm.lab_check(rule.number);
      return '';
    } catch (error) {  // the rule has thrown, which ends in a trap
      if (!(error instanceof WebAssembly.RuntimeError)) throw error;
      this.wasm.__stack_pointer.value = stack;
      return this.textAt(this.wasm.lab_message());
    }
  },

  setFields(rule, fields) {
    const values = rule.fields.map(({name, initial}) => Number(fields[name] ?? initial));
    this.view(this.wasm.lab_fields(), values.length).set(values);
  },
  setSettings(settings) {
    this.view(this.wasm.lab_settings(), this.settingNames.length).set(this.settingNames.map(x => settings[x] ?? 0));
  },

  /// The records of a run: settings.steps + 1 rows of `width` numbers. The first one is the start. Afterwards used(j)
  /// says whether the run has stored member j of the state, and layers() has the means of a network's tensors: for
  /// each record eight rows of four numbers: weights, gradients, steps, and the members of the state.
  run(name, fields, settings) {
    const rule = this.byName[name];
    this.setSettings(settings);
    this.setFields(rule, fields);
    this.wasm.lab_run(rule.number);
    return this.view(this.wasm.lab_records(), (settings.steps + 1) * this.width).slice();
  },

  layers(steps) { return this.view(this.wasm.lab_layers(), (steps + 1) * 32).slice(); },
  used(j) { return Boolean(this.wasm.lab_used() >> j & 1); },

  losses(settings, box, n) {
    this.setSettings(settings);
    this.wasm.lab_losses(...box, n);
    return this.view(this.wasm.lab_grid(), n * n).slice();
  },

  /// How a control shows a field, found by asking the rule's own check().
  kindOf(rule, field) {
    if (field.type !== 'real') return field.type;
    const accepts = x => !this.check(rule.name, {[field.name]: x});
    if (field.initial < 1 && !accepts(1)) return accepts(0) ? 'fraction' : 'open fraction';
    if (field.initial <= 1 && /^(momentum|dampening|nu|nu1|nu2|partial|damp.*)$/.test(field.name)) return 'unit';
    if (accepts(-1)) return 'signed';
    return accepts(0) ? 'size' : 'positive';
  }
};
