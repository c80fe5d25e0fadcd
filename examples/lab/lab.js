// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// What the reader does.
const lab = (() => {
  const id = name => document.getElementById(name);
  const {make} = panel;
  const still = matchMedia('(prefers-reduced-motion: reduce)');
  let playing = 0, hashTimer = 0;

  function show() {
    picture.draw(), inside.draw(), panel.showRefusal();
    const at = id('at');
    at.max = model.problem.steps, at.value = model.step;
    at.setAttribute('aria-valuetext', `step ${model.step} of ${model.problem.steps}`);
    id('at-text').textContent = `${model.step} of ${model.problem.steps}`;
    for (const name of ['reset', 'back']) id(name).disabled = model.hidden || model.step === 0;
    for (const name of ['forward', 'play', 'at']) id(name).disabled = model.hidden;
    id('forward').disabled ||= model.step >= model.problem.steps;
    id('play').textContent = playing ? 'Pause' : 'Play';
    id('link-said').textContent = '';
    clearTimeout(hashTimer);
    hashTimer = setTimeout(writeHash, 250);
  }
  function writeHash() {
    history.replaceState(null, '', model.hidden ? `#lesson=${model.lesson}` : model.toHash());
  }

  /// Makes a change and runs again. `what` names the control: 'all' and 'runs' redraw the controls.
  function act(change, what) {
    pause();
    if (model.hidden) model.hidden = false, id('question').hidden = true, drawLessons();
    change();
    model.compute();
    if (what === 'all' || what === 'runs') drawPanel();
    else panel.drawRuns(act);
    show();
  }
  function drawPanel() {
    const old = document.activeElement, name = old?.dataset?.name, type = old?.type;
    const pressed = old?.closest?.('#runs') !== null && old?.closest?.('#runs') !== undefined;
    panel.draw(act);
    if (name) [...document.querySelectorAll(`[data-name="${name}"]`)].find(one => one.type === type)?.focus();
    if (pressed) id('runs').children[model.selected].focus();
  }

  function goTo(step, said = true) {
    model.step = Math.min(Math.max(step, 0), model.problem.steps);
    show();
    if (!said) return;
    const news = model.runs.map((run, i) => !run.records ? '' :
      `${panel.nameOf(i)}: loss ${shown(model.at(run, model.step, 'loss'))}, ${inside.phase(run, model.step)}.`);
    id('news').textContent = [`Step ${model.step}.`, ...news].join(' ');
  }
  function pause() {
    cancelAnimationFrame(playing);
    playing = 0;
  }
  function stepBy(steps) {
    pause();
    goTo(model.step + steps);
  }
  function play() {
    if (playing) return pause(), show();
    if (model.step >= model.problem.steps) model.step = 0;
    if (still.matches) return goTo(model.problem.steps);
    let before = 0, exact = model.step;
    const frame = now => {
      const seconds = {1: 40, 3: 12, 12: 3}[id('speed').value];
      if (before) exact += (now - before) / 1000 * Math.max(model.problem.steps / seconds, 1);
      before = now;
      const done = exact >= model.problem.steps;
      playing = done ? 0 : requestAnimationFrame(frame);
      if (done || Math.floor(exact) !== model.step) goTo(Math.floor(exact), done);
    };
    playing = requestAnimationFrame(frame);
    show();
  }

  // ---- lessons
  function drawLessons() {
    id('lessons').replaceChildren(...lessons.map((lesson, i) => {
      const button = make('button', {type: 'button', className: 'chip'}, `${i + 1}. ${lesson.title}`);
      button.setAttribute('aria-pressed', lesson.id === model.lesson && !id('question').hidden);
      button.addEventListener('click', () => openLesson(lesson.id, true));
      return button;
    }));
  }
  function openLesson(name, focus = false) {
    const lesson = lessons.find(one => one.id === name);
    if (!lesson) return false;
    pause();
    model.set(structuredClone(lesson.setup));
    model.lesson = name, model.hidden = true;
    model.selected = model.runs.length > 1 ? 1 : 0;
    model.compute();
    const form = id('question'), list = make('fieldset', {}, make('legend', {textContent: lesson.question}));
    lesson.answers.forEach((text, i) => {
      const button = make('input', {type: 'radio', name: 'answer', value: i, required: true});
      list.append(make('label', {className: 'answer'}, button, ` ${text}`));
    });
    const reply = make('div', {className: 'reply'});
    reply.setAttribute('role', 'status');
    const submit = make('button', {type: 'submit', className: 'primary', textContent: 'See the run'});
    form.replaceChildren(list, submit, reply);
    form.hidden = false;
    form.onsubmit = event => {
      event.preventDefault();
      answer(lesson, Number(new FormData(form).get('answer')), reply);
    };
    drawLessons(), drawPanel(), show();
    if (focus) {
      list.querySelector('input').focus({preventScroll: true});
      form.scrollIntoView({block: 'nearest', behavior: still.matches ? 'auto' : 'smooth'});
    }
    return true;
  }
  function answer(lesson, chosen, reply) {
    const said = chosen === lesson.right ? 'Yes. ' : `No. ${lesson.answers[lesson.right].replace(/\.?$/, '. ')}`;
    reply.replaceChildren(make('p', {}, make('b', {textContent: said}), lesson.why));
    if (!model.hidden) return;
    model.hidden = false, model.step = 0;
    show(), play();
  }

  // ---- the start, by mouse and keys
  function setStart(x, y) {
    const round = v => Number(Math.min(Math.max(v, -10), 10).toFixed(3));
    act(() => { model.problem.x = round(x), model.problem.y = round(y); }, 'all');
  }
  function wireMap() {
    const map = id('map');
    map.addEventListener('click', event => {
      const area = map.getBoundingClientRect();
      const across = (event.clientX - area.left) / area.width, down = (event.clientY - area.top) / area.height;
      setStart(...picture.fromMap(600 * across, 600 * down));
    });
    map.addEventListener('keydown', event => {
      const [left, right] = surfaces[model.problem.surface].box, by = (right - left) * (event.shiftKey ? 0.05 : 0.01);
      const move = {ArrowLeft: [-by, 0], ArrowRight: [by, 0], ArrowUp: [0, by], ArrowDown: [0, -by]}[event.key];
      if (!move) return;
      event.preventDefault();
      setStart(model.problem.x + move[0], model.problem.y + move[1]);
      map.focus();
    });
  }
  function wireKeys() {
    document.addEventListener('keydown', event => {
      if (event.ctrlKey || event.metaKey || event.altKey || model.hidden) return;
      if (/^(INPUT|SELECT|TEXTAREA|BUTTON|SUMMARY|A)$/.test(event.target.tagName)) return;
      const done = {' ': play, '.': () => stepBy(1), ',': () => stepBy(-1), Home: () => stepBy(-model.step),
        End: () => stepBy(model.problem.steps)}[event.key];
      if (done) event.preventDefault(), done();
    });
  }
  function wire() {
    id('reset').addEventListener('click', () => stepBy(-model.step));
    id('back').addEventListener('click', () => stepBy(-1));
    id('forward').addEventListener('click', () => stepBy(1));
    id('play').addEventListener('click', play);
    id('at').addEventListener('input', () => (pause(), goTo(Number(id('at').value), false)));
    id('rule').addEventListener('change', () => act(() => {
      model.run.name = id('rule').value;
      model.run.fields = {};
    }, 'all'));
    id('copy').addEventListener('click', () => act(() => {
      model.addRun(model.run.name, {...model.run.fields}, model.run.policies);
      model.selected = model.runs.length - 1;
    }, 'all'));
    id('remove').addEventListener('click', () => act(() => {
      model.runs.splice(model.selected, 1);
      model.selected = Math.min(model.selected, model.runs.length - 1);
    }, 'all'));
    id('link').addEventListener('click', async () => {
      writeHash();
      try {
        await navigator.clipboard.writeText(location.href);
        id('link-said').textContent = 'Copied.';
      } catch {
        id('link-said').textContent = 'It is in the address bar.';
      }
    });
    addEventListener('hashchange', load);
    wireMap(), wireKeys();
  }

  /// Opens the panel of formats with this number.
  function showNumber(text) {
    id('numbers-fold').open = true;
    numbers.type(text);
    id('numbers-fold').scrollIntoView();
  }

  /// Takes the state from the address, or the first one.
  function load() {
    pause();
    model.hidden = false, model.lesson = '';
    id('question').hidden = true;
    const lesson = /^#lesson=(\w+)$/.exec(location.hash), number = /^#number=(.+)$/.exec(location.hash);
    if (lesson && openLesson(lesson[1])) return;
    if (number) showNumber(number[1]);
    if (!model.fromHash(location.hash)) model.set({
      problem: {surface: 1, x: -1.2, y: 1}, step: 300,
      runs: [{name: 'adam', fields: {lr: 0.05}}, {name: 'sgd', fields: {lr: 0.001, momentum: 0.9}},
        {name: 'lion', fields: {lr: 0.02}}]
    });
    model.compute();
    drawLessons(), drawPanel(), show();
  }

  return {
    act, goTo, load, openLesson, play,
    async start() {
      await engine.start();
      numbers.start(), wire(), load();
    }
  };
})();

lab.ready = lab.start().catch(error => {
  const said = document.createElement('p');
  said.className = 'alert';
  said.textContent = `The lab does not run in this browser: ${error.message}`;
  document.querySelector('main').prepend(said);
  throw error;
});
