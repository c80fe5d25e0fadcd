"""Writes values.txt: trajectories of PyTorch and optax optimizers in float64.

    python3 -m venv refenv && . refenv/bin/activate
    pip install numpy torch==2.15.0 optax==0.2.8 jax==0.10.2
    python generate.py

The tests read values.txt and never run this script. The header of that file describes the problem
and the format.
"""

import math

import optax
import optax.contrib
import torch

from problem import run_optax, run_torch, write

what = """\
# One option is not a number:
#     schedule=warmup5_cosine10    with c = t - 1, the rate of step t is lr*(c+1)/5 for c < 5, then
#                                  lr*0.5*(1 + cos(pi*min(1, (c-5)/10))): exactly 0 from step 16 on
#
# What the peers compute, wd being weight_decay; states start at zero; |x| is the Euclidean norm.
#   sgd (torch)      d = g + wd*p.
#                    b = d at the first step, undamped; later b = momentum*b + (1 - dampening)*d.
#                    p -= lr*b, with nesterov p -= lr*(d + momentum*b).
#   adam (torch)     d = g + wd*p. m = beta1*m + (1 - beta1)*d, v = beta2*v + (1 - beta2)*d^2.
#                    p -= lr/(1 - beta1^t) * m / (sqrt(v)/sqrt(1 - beta2^t) + eps).
#   adamw (torch)    p *= 1 - lr*wd first, then adam on the bare g.
#   rmsprop (torch)  d = g + wd*p. v = alpha*v + (1 - alpha)*d^2.
#                    u = d / (sqrt(v) + eps); centered has a = alpha*a + (1 - alpha)*d and
#                    u = d / (sqrt(v - a^2) + eps).
#                    p -= lr*u, with momentum b = momentum*b + u, p -= lr*b.
#   rmsprop (optax)  eps is inside the root, u = g / sqrt(v + eps); no decay, no momentum.
#   lion (optax)     u = sign(beta1*m + (1 - beta1)*g), sign(0) = 0. m = beta2*m + (1 - beta2)*g.
#                    p -= lr*(u + wd*p).
#                    optax's own defaults: beta1 0.9, beta2 0.99, weight_decay 0.001, and no lr.
#   lamb (optax)     m, v as adam on the bare g, m^ = m / (1 - beta1^t), v^ = v / (1 - beta2^t).
#                    u = m^ / (sqrt(v^ + eps_root) + eps) + wd*p.
#                    p -= lr*u * |p|/|u| per tensor, the ratio 1 where |p| or |u| is 0.
#                    The ratio is neither clamped nor dropped at wd 0.
#   lars (optax)     d = g + wd*p. u = d * trust*|p|/(|d| + eps) per tensor, the whole
#                    factor, trust included, 1 where |p| or |d| is 0.
#                    b = momentum*b + lr*u: lr is inside the buffer.
#                    p -= b, with nesterov p -= lr*u + momentum*b.
#   dog (optax)      All norms cover all tensors together. x is p and x0 its start.
#                    Before the first step r = reps * (1 + |x0|), G = 0. Each step, in order:
#                    d = g + wd*x; r = max(r, |x - x0|); G += |d|^2; x -= lr * r/sqrt(G + eps) * d.
#                    So the first step, at distance 0, takes r = reps * (1 + |x0|); the distance
#                    that a step covers enters r in the next one; this step's d is in G; eps is
#                    under the root; lr scales the step only, neither r nor G. init_step is ("heuristic", reps).
"""


def warmup5_cosine10(lr, c):
    if c < 5:
        return lr * (c + 1) / 5
    return lr * 0.5 * (1 + math.cos(math.pi * min(1, (c - 5) / 10)))


def sgd(lr, momentum, dampening, nesterov, weight_decay):
    return run_torch(lambda params: torch.optim.SGD(
        params, lr=lr, momentum=momentum, dampening=dampening, nesterov=bool(nesterov),
        weight_decay=weight_decay, foreach=False, fused=False))


def adam(lr, beta1, beta2, eps, weight_decay, rule=torch.optim.Adam, schedule=None):
    return run_torch(lambda params: rule(
        params, lr=1.0 if schedule else lr, betas=(beta1, beta2), eps=eps,
        weight_decay=weight_decay, foreach=False, fused=False),
        schedule and (lambda c: warmup5_cosine10(lr, c)))


def adamw(**options):
    return adam(rule=torch.optim.AdamW, **options)


def rmsprop(lr, alpha, eps, momentum, centered, weight_decay):
    return run_torch(lambda params: torch.optim.RMSprop(
        params, lr=lr, alpha=alpha, eps=eps, momentum=momentum, centered=bool(centered),
        weight_decay=weight_decay, foreach=False))


def rmsprop_inside(lr, alpha, eps, momentum, eps_inside):
    assert eps_inside
    return run_optax(optax.rmsprop(lr, decay=alpha, eps=eps, eps_in_sqrt=True))


def lion(lr, beta1, beta2, weight_decay):
    return run_optax(optax.lion(lr, b1=beta1, b2=beta2, weight_decay=weight_decay))


def lamb(lr, beta1, beta2, eps, weight_decay):
    return run_optax(optax.lamb(
        lr, b1=beta1, b2=beta2, eps=eps, weight_decay=weight_decay))


def lars(lr, trust, eps, momentum, nesterov, weight_decay, joint_norm):
    return run_optax(optax.lars(
        lr, weight_decay=weight_decay, trust_coefficient=trust, eps=eps,
        momentum=momentum, nesterov=bool(nesterov)))


def dog(lr, reps, eps, weight_decay):
    return run_optax(optax.contrib.dog(
        lr, init_step=("heuristic", reps), eps=eps, weight_decay=weight_decay))


def cases():
    plain = dict(lr=0.1, momentum=0, dampening=0, nesterov=0, weight_decay=0)
    yield sgd, plain
    yield sgd, plain | dict(momentum=0.9)
    yield sgd, plain | dict(momentum=0.9, dampening=0.3)
    yield sgd, plain | dict(momentum=0.9, nesterov=1)
    yield sgd, plain | dict(momentum=0.9, weight_decay=0.1)

    defaults = dict(lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8)
    strong = dict(lr=0.05, beta1=0.8, beta2=0.99, eps=1e-3, weight_decay=0.1)
    yield adam, defaults | dict(weight_decay=0)
    yield adam, strong
    yield adamw, defaults | dict(weight_decay=1e-2)
    yield adamw, strong
    yield adamw, defaults | dict(lr=0.01, weight_decay=1e-2, schedule="warmup5_cosine10")

    defaults = dict(lr=1e-2, alpha=0.99, eps=1e-8, momentum=0, centered=0, weight_decay=0)
    yield rmsprop, defaults
    yield rmsprop, defaults | dict(alpha=0.9, momentum=0.8)
    yield rmsprop, defaults | dict(centered=1)
    yield rmsprop, defaults | dict(lr=0.02, momentum=0.9, centered=1, weight_decay=0.05)

    yield rmsprop_inside, dict(lr=0.01, alpha=0.9, eps=1e-3, momentum=0, eps_inside=1)

    for weight_decay in (0, 0.1):
        yield lion, dict(lr=0.01, beta1=0.9, beta2=0.99, weight_decay=weight_decay)
    yield lion, dict(lr=0.02, beta1=0.7, beta2=0.95, weight_decay=0.2)

    for weight_decay in (0, 0.1):
        yield lamb, dict(
            lr=0.01, beta1=0.9, beta2=0.999, eps=1e-6, weight_decay=weight_decay)
    yield lamb, dict(lr=0.02, beta1=0.8, beta2=0.95, eps=1e-3, weight_decay=0.1)

    defaults = dict(
        lr=0.5, trust=0.001, eps=0, momentum=0.9, nesterov=0, weight_decay=0, joint_norm=1)
    for weight_decay in (0, 0.1):
        for momentum in (0.9, 0):
            for trust in (0.001, 0.02):
                yield lars, defaults | dict(
                    trust=trust, momentum=momentum, weight_decay=weight_decay)
    yield lars, defaults | dict(trust=0.02, nesterov=1, weight_decay=0.1)
    yield lars, defaults | dict(lr=0.3, trust=0.02, eps=0.2, momentum=0.8, weight_decay=0.1)

    defaults = dict(lr=1.0, reps=1e-6, eps=1e-8, weight_decay=0)
    yield dog, defaults
    yield dog, defaults | dict(lr=0.5)
    # The two cases above move by 1e-6 and hardly enlarge r. This one moves visibly and enlarges it.
    yield dog, defaults | dict(lr=2.0, reps=0.01, weight_decay=0.05)
    yield dog, defaults | dict(lr=2.0, reps=0.05, eps=0.5, weight_decay=0.05)


write("values.txt", "generate.py", what, (
    (rule.__name__.removesuffix("_inside"), "torch" if rule in (sgd, adam, adamw, rmsprop) else "optax", options, rule(**options))
    for rule, options in cases()))
