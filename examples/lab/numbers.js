// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// How formats store a number: its bits, the value that they stand for, and the neighbours of that value.
const numbers = (() => {
  const id = name => document.getElementById(name);
  const {make} = panel;
  const list = [
    {name: 'float', exponent: 8, fraction: 23, said: 'IEEE binary32'},
    {name: 'TF32', exponent: 8, fraction: 10, said: 'what tensor cores take of a float'},
    {name: 'bfloat16', exponent: 8, fraction: 7, said: 'the range of float'},
    {name: 'half', exponent: 5, fraction: 10, said: 'IEEE binary16'},
    {name: 'fp8 e5m2', exponent: 5, fraction: 2, said: 'the range of half'},
    {name: 'fp8 e4m3', exponent: 4, fraction: 3, finite: true, said: 'no infinity: the largest code is NaN'},
    {name: 'fixed point', whole: 7, fraction: 8, said: 'two\'s complement, in steps of 1/256; saturates'}
  ];
  for (const format of list) {
    const {exponent = 0, whole = 0, fraction} = format;
    format.bits = 1 + exponent + whole + fraction;
    format.bias = 2 ** (exponent - 1) - 1;
    format.groups = exponent ? [['sign', 1], ['exponent', exponent], ['fraction', fraction]] :
      [['sign', 1], ['integer', whole], ['fraction', fraction]];
  }
  const half = format => 2 ** (format.bits - 1);  // the weight of the sign bit

  /// To the nearest integer, ties to even.
  function nearest(x) {
    const low = Math.floor(x), rest = x - low;
    return rest > 0.5 || (rest === 0.5 && low % 2 !== 0) ? low + 1 : low;
  }
  /// floor(log2 x), exact.
  function exponentOf(x) {
    const view = new DataView(new ArrayBuffer(8));
    view.setFloat64(0, x);
    const stored = view.getUint16(0) >> 4 & 2047;
    return stored ? stored - 1023 : exponentOf(x * 2 ** 64) - 64;
  }

  /// The code of what the format stores for x. NaN if it has nothing for it.
  function encode(format, x) {
    if (format.whole) {
      const n = Math.min(Math.max(nearest(x * 2 ** format.fraction), -half(format)), half(format) - 1);
      return n < 0 ? n + 2 * half(format) : n;
    }
    const {exponent, fraction, bias, finite} = format, one = 2 ** fraction;
    const sign = x < 0 || Object.is(x, -0) ? half(format) : 0, infinite = (2 ** exponent - 1) * one;
    const nan = finite ? infinite + one - 1 : infinite + one / 2, beyond = finite ? nan : infinite;
    if (Number.isNaN(x)) return nan;
    const size = Math.abs(x);
    if (size === 0) return sign;
    if (size === Infinity) return sign + beyond;
    const e = Math.max(exponentOf(size), 1 - bias), n = nearest(size / 2 ** (e - fraction));
    const code = (e + bias - 1) * one + n;  // n has the leading one, except in a subnormal number, where e + bias is 1
    return sign + Math.min(code, beyond);
  }

  function decode(format, code) {
    const sign = code >= half(format);
    if (format.whole) return (sign ? code - 2 * half(format) : code) / 2 ** format.fraction;
    const {exponent, fraction, bias, finite} = format, one = 2 ** fraction;
    const stored = Math.floor(code % half(format) / one), rest = code % one, top = stored === 2 ** exponent - 1;
    let size = stored ? (one + rest) * 2 ** (stored - bias - fraction) : rest * 2 ** (1 - bias - fraction);
    if (top && (finite ? rest === one - 1 : true)) size = finite || rest ? NaN : Infinity;
    return sign ? -size : size;
  }

  /// The next smaller (by = -1) or larger (by = 1) number. NaN if there is none.
  function neighbour(format, code, by) {
    const big = half(format);
    let key = code >= big ? (format.whole ? code - 2 * big : big - code) : code;
    if (Number.isNaN(decode(format, code))) return NaN;
    key += by;
    if (key >= big || key < -big || (!format.whole && key <= -big)) return NaN;
    return decode(format, key >= 0 ? key : format.whole ? key + 2 * big : big - key);
  }

  /// How the value follows from the bits.
  function formula(format, code) {
    const value = decode(format, code), sign = code >= half(format) ? '\u2212' : '';
    if (format.whole) return `${String(value * 2 ** format.fraction).replace('-', '\u2212')} / 256`;
    if (!Number.isFinite(value)) return 'all ones in the exponent';
    const one = 2 ** format.fraction, stored = Math.floor(code % half(format) / one), rest = code % one;
    if (!stored && !rest) return 'zero';
    return stored ? `${sign}${1 + rest / one} \u00d7 2^${stored - format.bias}` :
      `${sign}${rest / one} \u00d7 2^${1 - format.bias}, subnormal`;
  }

  const written = x => Number.isNaN(x) ? 'NaN' : Number.isFinite(x) ? (Object.is(x, -0) ? '-0' : String(x)) :
    x > 0 ? 'infinity' : '-infinity';
  /// A number as typed: decimal, inf, nan, a/b, 2^-24 or -2^-24.
  function parsed(text) {
    const t = text.trim().toLowerCase().replace(/\u2212/g, '-');
    const power = /^(-?)2\^\(?(-?\d+)\)?$/.exec(t), ratio = /^(.+)\/(.+)$/.exec(t);
    if (power) return (power[1] ? -1 : 1) * 2 ** Number(power[2]);
    if (ratio) return parsed(ratio[1]) / parsed(ratio[2]);
    if (/^[-+]?inf(inity)?$/.test(t)) return t[0] === '-' ? -Infinity : Infinity;
    return t === 'nan' ? NaN : t === '' ? undefined : Number.isNaN(Number(t)) ? undefined : Number(t);
  }

  let x = 0.1, pinned = null;  // the format and code whose bit was clicked, so that a NaN keeps its bits
  const codeOf = format => pinned?.format === format ? pinned.code : encode(format, x);

  function set(value, pin = null) {
    x = value, pinned = pin;
    show();
  }
  function flip(format, bit) {
    const code = codeOf(format), weight = 2 ** bit, on = Math.floor(code / weight) % 2 === 1;
    const next = on ? code - weight : code + weight;
    set(decode(format, next), {format, code: next});
  }

  function draw() {
    id('number-formats').replaceChildren(...list.map(format => {
      const bits = make('div', {className: 'bits'});
      bits.setAttribute('role', 'group'), bits.setAttribute('aria-label', `The bits of ${format.name}`);
      format.buttons = [];
      let bit = format.bits;
      for (const [group, count] of format.groups) {
        const row = make('div', {className: 'bit-row'});
        for (let i = count - 1; i >= 0; --i) {
          const place = --bit, button = make('button', {type: 'button', className: 'bit', tabIndex: place ? -1 : 0});
          button.setAttribute('aria-label', `${format.name}, ${group}, bit ${i}`);
          button.addEventListener('click', () => flip(format, place));
          format.buttons[place] = button;
          row.append(button);
        }
        bits.append(make('div', {className: `bit-group ${group}`}, row,
          make('span', {className: 'bit-name', title: group,
            textContent: count > 1 ? `${group}, ${count}` : '\u00b1'})));
      }
      bits.addEventListener('keydown', event => {
        const at = format.buttons.indexOf(document.activeElement), last = format.bits - 1;
        const to = {ArrowLeft: at + 1, ArrowRight: at - 1, Home: last, End: 0}[event.key];
        if (at < 0 || to === undefined) return;
        event.preventDefault();
        const next = format.buttons[Math.min(Math.max(to, 0), last)];
        format.buttons.forEach(button => { button.tabIndex = button === next ? 0 : -1; });
        next.focus();
      });
      format.said_ = make('dl', {className: 'stored'});
      return make('section', {className: 'format'}, make('h3', {}, format.name, ' ',
        make('span', {className: 'hint', textContent: format.said})), bits, format.said_);
    }));
  }

  function show() {
    if (document.activeElement !== id('number')) id('number').value = written(x);
    id('number').removeAttribute('aria-invalid'), id('number-why').textContent = '';
    const size = Math.abs(x);
    if (size > 0 && Number.isFinite(size)) id('number-size').value = Math.log2(size);
    id('number-size').setAttribute('aria-valuetext', written(x));
    for (const format of list) {
      const code = codeOf(format), value = decode(format, code), none = format.whole && Number.isNaN(x);
      format.buttons.forEach((button, bit) => {
        const on = Math.floor(code / 2 ** bit) % 2 === 1;
        button.textContent = none ? '' : on ? '1' : '0';
        button.setAttribute('aria-pressed', on && !none);
        button.disabled = none;
      });
      const error = value - x, relative = Math.abs(error / x);
      const hex = code.toString(16).toUpperCase().padStart(Math.ceil(format.bits / 4), '0');
      const rows = none ? [['stored', 'nothing: fixed point has no NaN']] : [
        ['stored', `${written(value)} = ${formula(format, code)}, 0x${hex}`],
        ['error', value === x || (value !== value && x !== x) ? 'none' : Number.isFinite(error) ?
          `${shown(error)}${Number.isFinite(relative) ? `, ${shown(100 * relative)} %` : ''}` : written(error)],
        ['neighbours', [-1, 1].map(by => neighbour(format, code, by)).map(y => Number.isNaN(y) ? 'none' : written(y))
          .join(' and ')]
      ];
      format.said_.replaceChildren(...rows.flatMap(([name, text]) =>
        [make('dt', {textContent: name}), make('dd', {textContent: text})]));
    }
  }

  /// Takes a number as typed.
  function type(text) {
    const value = parsed(text), why = id('number-why');
    id('number').setAttribute('aria-invalid', value === undefined);
    why.textContent = value === undefined ? `"${text}" is not a number: type 0.1, 1/3, 2^-24, inf or nan.` : '';
    if (value !== undefined) set(value);
  }

  function start() {
    draw();
    id('number').addEventListener('input', () => type(id('number').value));
    id('number').addEventListener('blur', show);
    id('number-size').addEventListener('input', () =>
      set((x < 0 ? -1 : 1) * Number((2 ** Number(id('number-size').value)).toPrecision(4))));
    for (const button of document.querySelectorAll('[data-number]'))
      button.addEventListener('click', () => set(parsed(button.dataset.number)));
    show();
  }
  return {list, encode, decode, neighbour, start, set, type, get x() { return x; }};
})();
