// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Questions. `holds` is the fact behind the right answer; tests/learn/lab.py checks it.
const lessons = (() => {
  const at = (i, n, name) => model.at(model.runs[i], n, name);
  const last = () => model.problem.steps;
  const loss = i => at(i, last(), 'loss');
  const start = i => at(i, 0, 'loss');
  const skips = i => Array.from({length: last() + 1}, (_, n) => at(i, n, 'skipped')).filter(Boolean).length;
  const mean = (i, from) => {
    let sum = 0;
    for (let n = from; n <= last(); ++n) sum += at(i, n, 'loss') / (last() - from + 1);
    return sum;
  };
  return [{
    id: 'rate', title: 'A rate too large',
    setup: {problem: {condition: 10, steps: 60}, runs: [{name: 'sgd', fields: {lr: 2.05}}]},
    question: 'The steepest curvature of this bowl is 1. Gradient descent runs with lr = 2.05. What happens?',
    answers: [
      'It goes straight to the minimum, only faster.',
      'Along y it swings wider with each step. Along x it converges.',
      'It moves away in all directions.'
    ],
    right: 1,
    holds: () => Math.abs(at(0, 60, 'value1')) > 10 && Math.abs(at(0, 60, 'value0')) < 1e-3,
    why: 'Each step multiplies y by 1 - lr = -1.05 and x by 1 - lr / 10 = 0.795. A rate above 2 / curvature ' +
      'diverges, but only in that direction. Set lr to 1.9: y still swings, and shrinks.'
  }, {
    id: 'momentum', title: 'Momentum overshoots',
    setup: {
      problem: {condition: 30, steps: 200},
      runs: [
        {name: 'sgd', fields: {lr: 0.2}},
        {name: 'sgd', fields: {lr: 0.2, momentum: 0.9}}
      ]
    },
    question: 'Both runs have lr = 0.2, one has momentum 0.9. Which is true?',
    answers: [
      'Momentum passes the minimum and still ends lower.',
      'Momentum never passes the minimum.',
      'Without momentum the loss ends lower.'
    ],
    right: 0,
    holds: () => loss(1) < 1e-3 * loss(0) && at(1, 5, 'value1') < -0.5,
    why: 'The buffer b adds up gradients, so the run does not stop where the gradient is 0. In the flat ' +
      'direction the same sum makes steps up to 10 times as long. Look at b in the table when y changes its ' +
      'sign.'
  }, {
    id: 'limit', title: 'Momentum allows a larger rate',
    setup: {
      problem: {condition: 10, steps: 200},
      runs: [{name: 'sgd', fields: {lr: 2.05}}, {name: 'sgd', fields: {lr: 2.05, momentum: 0.9}},
        {name: 'sgd', fields: {lr: 3.9, momentum: 0.9}}]
    },
    question: 'The steepest curvature is 1, and gradient descent diverges from lr = 2 on. Which of these runs ' +
      'converge: lr = 2.05 without momentum, 2.05 with momentum 0.9, 3.9 with momentum 0.9?',
    answers: ['None of them.', 'Only the second.', 'The second and the third.'],
    right: 1,
    holds: () => Math.abs(at(0, 200, 'value1')) > 100 && loss(1) < 1e-6 && Math.abs(at(2, 200, 'value1')) > 100,
    why: 'With momentum the limit is lr < 2 (1 + momentum) / curvature, here 3.8. Set the third rate to 3.7: it ' +
      'converges too.'
  }, {
    id: 'bias', title: 'Adam without bias correction',
    setup: {
      problem: {steps: 60},
      runs: [
        {name: 'adam', fields: {lr: 0.02}},
        {name: 'adam', fields: {lr: 0.02, bias_correction: 0}}
      ]
    },
    question: 'm and v start at 0. Without bias correction, how long is the first step of Adam?',
    answers: ['A tenth of lr, because m is only a tenth of g.', 'lr, as with bias correction.', 'About 3 lr.'],
    right: 2,
    holds: () => Math.abs(at(1, 1, 'value0') - at(1, 0, 'value0')) > 0.06 &&
      Math.abs(at(0, 1, 'value0') - at(0, 0, 'value0')) < 0.0201,
    why: 'After one step m is 0.1 g, but sqrt(v) is only sqrt(0.001) |g| = 0.032 |g|. Their ratio is 3.2. v is ' +
      'the slower average, so it is too small for longer.'
  }, {
    id: 'decay', title: 'L2 or decoupled decay',
    setup: {
      problem: {surface: 3, x: -1.5, y: 0.4, size: 0.01, steps: 400},
      runs: [
        {name: 'adam', fields: {lr: 0.02, weight_decay: 0.05}},
        {name: 'adamw', fields: {lr: 0.02, weight_decay: 0.05}}
      ]
    },
    question: 'The minimum is at (0, 1), and the gradients are small: the loss has a factor of 0.01. Both rules ' +
      'have weight_decay = 0.05. Where do they end?',
    answers: [
      'Both end near (0, 1).',
      'adam ends at (0, 0), adamw near (0, 1).',
      'adamw ends at (0, 0), adam near (0, 1).'
    ],
    right: 1,
    holds: () => Math.abs(at(0, 400, 'value1')) < 1e-3 && Math.abs(at(1, 400, 'value1') - 1) < 0.01,
    why: 'adam adds wd p to the gradient. Here that is larger than the gradient itself, and the division by ' +
      'sqrt(v) cannot tell them apart. adamw decays the weight beside the division, by at most lr wd p in a ' +
      'step. Set "Loss times" to 1: then adam ends near (0, 1), too.'
  }, {
    id: 'half', title: 'Half stalls',
    setup: {
      problem: {condition: 1, steps: 2000},
      runs: [
        {name: 'adam', fields: {lr: 0.0004}},
        {name: 'adam', fields: {lr: 0.0004}, policies: {values: 1}}
      ]
    },
    question: 'Adam with lr = 0.0004 asks for steps of about 0.0004. One run stores its weights in float, the other ' +
      'in half. How far does half come?',
    answers: ['As far as float, with some noise.', 'Half as far.', 'It does not move at all.'],
    right: 2,
    holds: () => at(1, 2000, 'value0') === at(1, 0, 'value0') && Math.abs(at(0, 2000, 'value0')) < 1,
    why: 'Between 1 and 2, neighbours in half are 0.00098 apart. A step below half of that rounds to nothing, ' +
      'each time. Compare "step that the rule asks for" with "step that is stored". A float master copy ' +
      'helps. So does rounding at random.'
  }, {
    id: 'random', title: 'Stochastic rounding does not stall',
    setup: {
      problem: {condition: 1, steps: 2000},
      runs: [
        {name: 'adam', fields: {lr: 0.0004}},
        {name: 'adam', fields: {lr: 0.0004}, policies: {values: 1, random: 1}},
        {name: 'adam', fields: {lr: 0.0004}, policies: {values: 1, master: 1}}
      ]
    },
    question: 'The same in half, but now the result is rounded up or down at random, so that it is right on ' +
      'average. Where does the run end?',
    answers: [
      'Close to float, although most steps store nothing.',
      'It stays where it is.',
      'It wanders about the start.'
    ],
    right: 0,
    holds: () => Math.abs(at(1, 2000, 'value0') - at(0, 2000, 'value0')) < 0.05,
    why: 'A step of 0.0004 is 0.41 of the distance to the next number. So it is stored as a whole distance in ' +
      '41 % of the steps, and as nothing in the others. The third run has a float master copy, for four ' +
      'more bytes in each weight.'
  }, {
    id: 'saddle', title: 'Leaving a saddle',
    setup: {
      problem: {surface: 3, x: -1.5, y: 0.001, steps: 200},
      runs: [
        {name: 'sgd', fields: {lr: 0.05}},
        {name: 'adam', fields: {lr: 0.05}}
      ]
    },
    question: 'Both runs start 0.001 beside the ridge, where the gradient along y is tiny. Which one leaves it ' +
      'first?',
    answers: ['sgd', 'adam', 'Both at the same time'],
    right: 1,
    holds: () => at(1, 20, 'value1') > 0.9 && at(0, 50, 'value1') < 0.1,
    why: 'sgd multiplies y by about 1.05 in each step, so 0.001 needs 140 steps to become 1. adam divides the ' +
      'gradient by its own size: its steps are near lr, however small the gradient is. Set y to 0: then the ' +
      'gradient is exactly 0, and no rule leaves.'
  }, {
    id: 'skips', title: 'The loss scale skips',
    setup: {
      problem: {steps: 60},
      runs: [
        {name: 'sgd', fields: {lr: 0.1}, policies: {gradients: 1, scale: 1, scale_init: 1048576, scale_interval: 20}}
      ]
    },
    question: 'Gradients are stored in half, whose largest number is 65504. The loss scale starts at 2^20. What do ' +
      'the first steps do?',
    answers: [
      'They change nothing, and halve the scale until the gradients fit.',
      'They are 2^20 times too long.',
      'They make the weights NaN.'
    ],
    right: 0,
    holds: () => skips(0) >= 5 &&
      at(0, 5, 'value0') === at(0, 0, 'value0') &&
      at(0, 6, 'value0') !== at(0, 0, 'value0'),
    why: 'The scaled gradient is infinite, so the step is skipped and the scale is halved. The weights, the ' +
      'state and t stay as they are. Crosses in the loss curve mark skipped steps. After 20 clean steps in ' +
      'a row the scale is doubled.'
  }, {
    id: 'vanish', title: 'Small gradients vanish',
    setup: {problem: {size: 2 ** -26, steps: 300}, runs: [{name: 'adam', fields: {lr: 0.02}, policies: {gradients: 1}},
      {name: 'adam', fields: {lr: 0.02}, policies: {gradients: 1, scale: 1}}, {name: 'adam', fields: {lr: 0.02}}]},
    question: 'The loss is a mean over many examples, so gradients are near 2^-26. The smallest number of half is ' +
      '2^-24. What does a loss scale of 65536 change?',
    answers: [
      'Nothing: Adam divides by the size of the gradient anyway.',
      'Only with it the run moves.',
      'With it the steps are 65536 times as long.'
    ],
    right: 1,
    holds: () => loss(0) === start(0) && loss(1) < 0.1 * start(1),
    why: 'Without a scale the gradients round to 0, and no rule can bring them back. With it they are normal ' +
      'numbers of half. The step divides them by the scale in float, so the run nearly equals that with ' +
      'float gradients.'
  }, {
    id: 'state', title: 'v in half',
    setup: {
      problem: {size: 0.0001, steps: 100},
      runs: [
        {name: 'adam', fields: {lr: 0.02}},
        {name: 'adam', fields: {lr: 0.02}, policies: {states: 1}},
        {name: 'adam', fields: {lr: 0.02}, policies: {states: 2}}
      ]
    },
    question: 'The gradients are near 0.0001. Weights are in float, but m and v are stored in half. What does Adam ' +
      'do?',
    answers: ['It stalls.', 'The same as with a float state.', 'It jumps far away.'],
    right: 2,
    holds: () => Math.abs(at(1, 20, 'value1')) > 5 && Math.abs(at(2, 20, 'value1') - at(0, 20, 'value1')) < 0.1,
    why: 'v is about 0.001 g^2 = 1e-11, which half rounds to 0. Then the step divides by eps alone. bfloat16 ' +
      'has the range of float: the third run keeps its m and v there.'
  }, {
    id: 'turned', title: 'A turned valley',
    setup: {
      problem: {condition: 100, angle: 45, steps: 300},
      runs: [
        {name: 'sgd', fields: {lr: 1}},
        {name: 'adam', fields: {lr: 0.1}}
      ]
    },
    question: 'Adam has a rate for each weight. This valley lies at 45 degrees, so both weights look alike. Which ' +
      'run ends lower?',
    answers: ['sgd', 'adam', 'Both the same'],
    right: 0,
    holds: () => loss(0) < 0.1 * loss(1),
    why: 'One rate for each weight helps only if the valley lies along an axis. Turn it back to 0 degrees: then ' +
      'adam ends at 6e-15 and sgd at 3e-5.'
  }, {
    id: 'noise', title: 'Noise and the schedule',
    setup: {problem: {condition: 1, noise: 0.5, steps: 300}, runs: [{name: 'sgd', fields: {lr: 0.2}},
      {name: 'sgd', fields: {lr: 0.2}, policies: {schedule: 2, schedule_steps: 300, schedule_factor: 0}}]},
    question: 'Each gradient has noise. One run keeps lr = 0.2, the other lowers it to 0 as a cosine. Over the last ' +
      '30 steps, which has the lower mean loss?',
    answers: ['The constant rate', 'The cosine', 'No difference'],
    right: 1,
    holds: () => mean(1, 270) < 0.5 * mean(0, 270),
    why: 'With a constant rate the run reaches a level and stays there: the noise moves it as much as the ' +
      'gradient does. The level is proportional to lr, so a falling rate lowers it.'
  }];
})();
