#!/usr/bin/env python3
"""Writes values_schedules.txt: PyTorch's and optax's schedules at every step.

    pip install torch==2.15.0 optax==0.2.8 && python3 generate_schedules.py
"""

import pathlib
import platform
import warnings

import jax
import optax
import torch
from torch.optim import lr_scheduler as tl
from torch.optim.swa_utils import SWALR

jax.config.update("jax_enable_x64", True)
warnings.simplefilter("ignore")

header = """\
# Schedules of other libraries in float64, to compare ours with.
# Written by generate_schedules.py with python {python}, torch {torch} (CPU), optax {optax}, jax {jax} (CPU, x64).
#
# Format: '#' starts a comment line, blank lines mean nothing, and the rest is
#     case <name> <peer> <values at steps 0, 1, 2, ...>
#     far <name> <peer> <step> <value>
# The name says which schedule; schedules/reference_test.cpp has its fields. The peer is `chained` (PyTorch's
# scheduler, stepped), `closed` (its closed form, or its value where it is told the step), `optax`, or `trained` (a
# parameter after each step of a training).
#
"""
far = [2**20 + 1, 2**31 + 7, 2**40]
base = 0.3  # the initial learning rate


def make(**more):
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))], lr=base, **more)


def chained(build, n, field="lr", **more):
    """The field after the constructor and after each call of step()."""
    optimizer = make(**more)
    scheduler = build(optimizer)
    values = []
    for t in range(n):
        if t > 0:
            optimizer.step()
            scheduler.step()
        values.append(float(optimizer.param_groups[0][field]))
    return values


def closed_at(build, steps):
    scheduler = build(make())
    values = []
    for t in steps:
        scheduler.last_epoch = t
        values.append(float(scheduler._get_closed_form_lr()[0]))
    return values


cases, distant = [], []


def torch_case(name, n, build, field="lr", closed=False, **more):
    cases.append((name, "chained", chained(build, n, field, **more)))
    if closed:
        cases.append((name, "closed", closed_at(build, range(n))))
        distant.extend((name, "closed", t, v) for t, v in zip(far, closed_at(build, far)))


def torch_far(name, build):
    """Values at far steps only, of schedulers that can jump to a step."""
    for t in far + [2**40 + 3]:
        optimizer = make()
        scheduler = build(optimizer)
        if isinstance(scheduler, tl.CosineAnnealingWarmRestarts):
            scheduler.step(t)
            value = optimizer.param_groups[0]["lr"]
        else:
            scheduler.last_epoch = t
            value = (getattr(scheduler, "_get_closed_form_lr", None) or scheduler.get_lr)()[0]
        distant.append((name, "closed", t, float(value)))


def optax_case(name, n, schedule, distances=far):
    cases.append((name, "optax", [float(schedule(t)) for t in range(n)]))
    distant.extend((name, "optax", t, float(schedule(float(t)))) for t in distances)


torch_case("lambda", 20, lambda o: tl.LambdaLR(o, lambda e: 1 / (1 + e)))
torch_case("multiplicative", 20, lambda o: tl.MultiplicativeLR(o, lambda e: 1 - 1 / (e + 1) ** 2))
torch_case("step", 24, lambda o: tl.StepLR(o, 5, 0.3), closed=True)
torch_case("multi_step", 30, lambda o: tl.MultiStepLR(o, [4, 9, 9, 20], 0.5), closed=True)
torch_case("ConstantLR", 12, lambda o: tl.ConstantLR(o, 0.25, 6), closed=True)
torch_case("LinearLR", 12, lambda o: tl.LinearLR(o, 0.2, 0.9, 7), closed=True)
torch_case("exponential", 40, lambda o: tl.ExponentialLR(o, 0.9), closed=True)
torch_case("PolynomialLR", 20, lambda o: tl.PolynomialLR(o, 11, 1.5), closed=True)
torch_case("PolynomialLR_2", 20, lambda o: tl.PolynomialLR(o, 11, 2), closed=True)
torch_case("CosineAnnealingLR", 80, lambda o: tl.CosineAnnealingLR(o, 10, 0.02), closed=True)
torch_case("CosineAnnealingLR_1", 6, lambda o: tl.CosineAnnealingLR(o, 1, 0.02), closed=True)
torch_case("cosine_restarts", 40, lambda o: tl.CosineAnnealingWarmRestarts(o, 9, 1, 0.01))
torch_case("cosine_restarts_2", 80, lambda o: tl.CosineAnnealingWarmRestarts(o, 5, 2, 0.01))
torch_case("cosine_restarts_3", 140, lambda o: tl.CosineAnnealingWarmRestarts(o, 3, 3, 0.01))

optimizer = make()
scheduler = tl.CosineAnnealingWarmRestarts(optimizer, 3, 2, 0.01)
fractional = []
for t in range(21 * 8):  # epochs 0, 1/8, 2/8, ...: three cycles of 3, 6 and 12 epochs
    scheduler.step(t / 8)
    fractional.append(float(optimizer.param_groups[0]["lr"]))
cases.append(("cosine_restarts_fractional", "chained", fractional))

for mode in ("triangular", "triangular2", "exp_range"):
    for field in ("lr", "momentum"):
        torch_case(f"cyclic_{mode}_{field}", 50, lambda o: tl.CyclicLR(o, 0.01, 0.5, 4, 8, mode, 0.97), field, momentum=0.9)
torch_case("cyclic_even", 30, lambda o: tl.CyclicLR(o, 0.01, 0.5, 4, cycle_momentum=False))
for three in (False, True):
    for how in ("cos", "linear"):
        for field in ("lr", "momentum"):
            torch_case(f"one_cycle_{3 if three else 2}_{how}_{field}", 37, lambda o: tl.OneCycleLR(
                o, 0.5, total_steps=37, pct_start=0.3, anneal_strategy=how, three_phase=three), field, momentum=0.9)
torch_case("one_cycle_no_rise", 20, lambda o: tl.OneCycleLR(o, 0.5, total_steps=20, pct_start=0.02, cycle_momentum=False))
torch_case("one_cycle_past", 11, lambda o: tl.OneCycleLR(o, 0.5, total_steps=10, cycle_momentum=False))

for how, length, start in (("cos", 8, 10), ("linear", 8, 10), ("0", 0, 3)):
    optimizer = make()
    before = tl.ExponentialLR(optimizer, 0.95)
    values = []
    for t in range(30):  # the loop of swa_utils' documentation, with swa_start = start
        if t == start:
            after = SWALR(optimizer, swa_lr=0.05, anneal_epochs=length, anneal_strategy=how if length else "cos")
        values.append(float(optimizer.param_groups[0]["lr"]))
        optimizer.step()
        (after if t >= start else before).step()
    cases.append((f"swa_rate_{how}", "chained", values))

torch_case("sequential", 40, lambda o: tl.SequentialLR(
    o, [tl.LinearLR(o, 0.1, 1.0, 5), tl.ExponentialLR(o, 0.9), tl.CosineAnnealingLR(o, 10)], [5, 20]))
torch_case("product", 40, lambda o: tl.ChainedScheduler(
    [tl.LinearLR(o, 0.1, 1.0, 5), tl.ExponentialLR(o, 0.9), tl.StepLR(o, 7, 0.5)], o))
torch_case("product_of_cosine", 30, lambda o: tl.ChainedScheduler(
    [tl.CosineAnnealingLR(o, 30, 0.02), tl.StepLR(o, 7, 0.5)], o))
torch_case("MultiStepLR_0", 5, lambda o: tl.MultiStepLR(o, [0, 3], 0.5))
optimizer = make()
scheduler = tl.CosineAnnealingWarmRestarts(optimizer, 3, 3, 0.01)
scheduler.step(363)  # the start of a cycle
cases.append(("restart_by_logarithm", "chained", [float(optimizer.param_groups[0]["lr"])]))
torch_case("LinearLR_0", 6, lambda o: tl.LinearLR(o, 1 / 3, 1, 0))
torch_case("PolynomialLR_0", 6, lambda o: tl.PolynomialLR(o, 0))
torch_case("ConstantLR_0", 6, lambda o: tl.ConstantLR(o, 0.25, 0))

optimizer = make()
scheduler = tl.CosineAnnealingLR(optimizer, 20)
values = []
for t in range(20):
    if t == 8:
        optimizer.param_groups[0]["lr"] *= 0.5  # by hand
    values.append(float(optimizer.param_groups[0]["lr"]))
    optimizer.step()
    scheduler.step()
cases.append(("changed_by_hand", "chained", values))

for name, build in {
    "step_far": lambda o: tl.StepLR(o, 2**36 + 5, 0.9),
    "multi_step_far": lambda o: tl.MultiStepLR(o, [4, 2**31 + 7, 2**39, 2**40 + 1], 0.5),
    "exponential_far": lambda o: tl.ExponentialLR(o, 1 - 2.0**-41),
    "lambda_far": lambda o: tl.LambdaLR(o, lambda e: 1 / (1 + e * 2.0**-38)),
    "linear_far": lambda o: tl.LinearLR(o, 0.2, 0.9, 2**41 + 1),
    "polynomial_far": lambda o: tl.PolynomialLR(o, 2**41 + 1, 2),
    "cosine_far": lambda o: tl.CosineAnnealingLR(o, 2**41 + 1, 0.02),
    "cosine_restarts_far": lambda o: tl.CosineAnnealingWarmRestarts(o, 9, 1, 0.01),
    "cosine_restarts_far_2": lambda o: tl.CosineAnnealingWarmRestarts(o, 5, 2, 0.01),
    "cyclic_far": lambda o: tl.CyclicLR(o, 0.01, 0.5, 4, 12, cycle_momentum=False),  # 1 / 16 is exact, so x is exact
    "cyclic_exp_range_far": lambda o: tl.CyclicLR(o, 0.01, 0.5, 3, 13, "exp_range", 1 - 2.0**-41, cycle_momentum=False),
    "one_cycle_far": lambda o: tl.OneCycleLR(o, 0.5, total_steps=2**41, cycle_momentum=False),
    "one_cycle_far_3": lambda o: tl.OneCycleLR(o, 0.5, total_steps=2**41, three_phase=True, cycle_momentum=False),
}.items():
    torch_far(name, build)

for name, kind, options in (("sgd", torch.optim.SGD, dict(momentum=0.5)), ("adamw", torch.optim.AdamW, dict(weight_decay=0.1))):
    for three in (False, True):
        p = torch.nn.Parameter(torch.tensor([1.0, -2.0], dtype=torch.float64))
        optimizer = kind([p], lr=1, **options)
        scheduler = tl.OneCycleLR(optimizer, 0.05, total_steps=20, three_phase=three)  # momentum from 0.95 to 0.85
        values = []
        for t in range(20):
            p.grad = p.detach() * torch.tensor([1.0, 3.0], dtype=torch.float64)
            optimizer.step()
            values.append(float(p[t % 2]))
            if t < 19:
                scheduler.step()
        cases.append((f"one_cycle_{name}_{3 if three else 2}", "trained", values))

optax_case("constant", 4, optax.constant_schedule(base))
optax_case("linear", 20, optax.linear_schedule(0.3, 0.05, 12, 4))
optax_case("linear_0", 4, optax.linear_schedule(0.0, 0.3, 0))
optax_case("polynomial", 20, optax.polynomial_schedule(0.3, 0.05, 2.5, 12, 4))
optax_case("piecewise_constant", 30, optax.piecewise_constant_schedule(0.3, {5: 0.5, 12: 0.2, 20: 3.0}))
optax_case("piecewise_linear", 30, optax.piecewise_interpolate_schedule("linear", 0.3, {5: 0.5, 12: 0.2, 20: 3.0}))
optax_case("piecewise_cosine", 30, optax.piecewise_interpolate_schedule("cosine", 0.3, {5: 0.5, 12: 0.2, 20: 3.0}))
for stairs in (False, True):
    for rate, end in ((0.4, 0.03), (1.5, 0.9)):
        optax_case(f"exponential_decay_{'stairs' if stairs else 'smooth'}_{rate}", 40,
                   optax.exponential_decay(0.3, 6, rate, 5, stairs, end))
optax_case("exponential_decay_free", 30, optax.exponential_decay(0.3, 6, 0.5), [2**10])
optax_case("exponential_decay_0", 4, optax.exponential_decay(0.3, 6, 0))
optax_case("cosine", 40, optax.cosine_decay_schedule(0.3, 30, 0.1))
optax_case("cosine_exponent", 40, optax.cosine_decay_schedule(0.3, 30, 0.1, 1.7))
optax_case("linear_onecycle", 60, optax.linear_onecycle_schedule(50, 0.3))
optax_case("cosine_onecycle", 60, optax.cosine_onecycle_schedule(50, 0.3))
optax_case("linear_onecycle_3", 6, optax.linear_onecycle_schedule(3, 0.3))
optax_case("cosine_onecycle_3", 6, optax.cosine_onecycle_schedule(3, 0.3))
optax_case("piecewise_constant_0", 8, optax.piecewise_constant_schedule(0.3, {0: 0.5, 3: 0.2}))
optax_case("piecewise_linear_0", 8, optax.piecewise_interpolate_schedule("linear", 0.3, {0: 0.5, 3: 0.2}))
optax_case("warmup_cosine_falls", 20, optax.warmup_cosine_decay_schedule(0.5, 0.3, 4, 10, 0.01))
optax_case("warmup_cosine_zero", 20, optax.warmup_cosine_decay_schedule(0.0, 0.0, 4, 10, 0.01))
optax_case("warmup_exponential_falls", 20, optax.warmup_exponential_decay_schedule(0.5, 0.3, 4, 3, 0.5))
optax_case("cosine_decay_far", 4, optax.cosine_decay_schedule(0.3, 2**41 + 1, 0.1))
optax_case("exponential_decay_far", 4, optax.exponential_decay(0.3, 2**38 + 1, 0.5))
optax_case("warmup_constant", 12, optax.warmup_constant_schedule(0.03, 0.3, 8))
optax_case("warmup_cosine", 50, optax.warmup_cosine_decay_schedule(0.03, 0.3, 8, 40, 0.01, 1.5))
optax_case("warmup_exponential", 50, optax.warmup_exponential_decay_schedule(0.03, 0.3, 8, 10, 0.5, 3, True, 0.06))
pieces = [dict(init_value=0.0, peak_value=p, warmup_steps=3, decay_steps=n, end_value=0.01)
          for p, n in ((0.3, 12), (0.2, 20), (0.1, 28))]
optax_case("sgdr", 65, optax.sgdr_schedule(pieces))
optax_case("join", 40, optax.join_schedules(
    [optax.linear_schedule(0.1, 0.3, 10), optax.constant_schedule(0.3), optax.cosine_decay_schedule(0.3, 10)], [10, 20]))


# reduce on plateau: a metric that falls, stays, jumps and rises; sometimes NaN
def metric(i, seed):
    x = 3.0 / (1 + (i % 37) * 0.2) + 0.01 * ((i * 37 + seed) % 11) - 0.002 * i
    return float("nan") if i % 29 == 17 else x


plateaus = {
    "min_rel": dict(mode="min", factor=0.5, patience=2, threshold=1e-2),
    "min_abs": dict(mode="min", factor=0.5, patience=1, threshold=0.05, threshold_mode="abs", cooldown=3),
    "max_rel": dict(mode="max", factor=0.3, patience=0, threshold=1e-3, cooldown=1, min_lr=0.01),
    "max_abs": dict(mode="max", factor=0.5, patience=3, threshold=0.1, threshold_mode="abs", eps=0.01),
}
for name, options in plateaus.items():
    optimizer = make()
    scheduler = tl.ReduceLROnPlateau(optimizer, **options)
    values = []
    for i in range(100):
        scheduler.step(metric(i, 5))
        values.append(float(optimizer.param_groups[0]["lr"]))
    cases.append((f"plateau_{name}", "chained", values))
for name, options in {
    "patience": dict(factor=0.5, patience=3, rtol=1e-2, cooldown=2),
    "mean": dict(factor=0.5, patience=2, rtol=1e-3, atol=1e-2, accumulation_size=4, min_scale=0.05),
}.items():
    rule = optax.contrib.reduce_on_plateau(**options)
    state = rule.init(jax.numpy.zeros(1))
    values = []
    for i in range(100):
        _, state = rule.update(jax.numpy.zeros(1), state, value=metric(i, 5))
        values.append(float(state.scale))
    cases.append((f"plateau_{name}", "optax", values))

versions = dict(python=platform.python_version(), torch=torch.__version__.split("+")[0], optax=optax.__version__,
                jax=jax.__version__)
with open(pathlib.Path(__file__).with_name("values_schedules.txt"), "w") as out:
    out.write(header.format(**versions))
    for name, peer, values in cases:
        out.write(f"\ncase {name} {peer} " + " ".join("%.17g" % v for v in values) + "\n")
    out.write("\n")
    for name, peer, t, value in distant:
        out.write(f"far {name} {peer} {t} {value:.17g}\n")
print(len(cases), "cases")
