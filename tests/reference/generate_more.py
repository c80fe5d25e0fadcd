"""Writes values_more.txt: trajectories of optimizers of pytorch_optimizer, PyTorch and optax in float64.

Set up as generate.py says, and also pip install pytorch_optimizer==4.1.0; then python generate_more.py.
The tests read values_more.txt and never run this script. Its header describes the problem and the format.
"""

import importlib.metadata
import types

import jax
import numpy as np
import optax
import optax.contrib
import pytorch_optimizer
import torch

from problem import run_optax, run_torch, shapes, start, steps, write

what = """\
# One option is not a field:
#     schedule=curvature     sophia's h is fed, see there
#
# What the peers compute, wd being weight_decay; states start at zero.
#   qhm (pytorch_optimizer)       d = g + wd*p. m = beta*m + (1 - beta)*d. p -= lr*((1 - nu)*d + nu*m).
#   qhadam (pytorch_optimizer)    d = g + wd*p; decoupled has p *= 1 - lr*wd first, and d = g. m, v as Adam,
#                                 m^ = m / (1 - beta1^t), v^ = v / (1 - beta2^t).
#                                 p -= lr*((1 - nu1)*d + nu1*m^) / (sqrt((1 - nu2)*d^2 + nu2*v^) + eps).
#                                 It keeps two weights in float32; here they are made float64 after the
#                                 first step, in which they are 1.
#   adabound (pytorch_optimizer)  d, m, v as qhadam; amsbound: V = max(V, v), else V = v.
#                                 r = lr*sqrt(1 - beta2^t)/(1 - beta1^t) / (sqrt(V + 1e-15) + eps);
#                                 f = final_lr*lr/base_lr; p -= m*clamp(r, f*(1 - 1/(gamma*t + 1)),
#                                 f*(1 + 1/(gamma*t))). base_lr is lr at construction.
#   padam (pytorch_optimizer)     d, m, v as qhadam, without amsgrad.
#                                 p -= lr*sqrt(1 - beta2^t)/(1 - beta1^t) * m / (sqrt(v) + eps)^(2*partial).
#   padam (torch)                 amsgrad, partial 0.5: Adam with amsgrad, with so small an eps that its
#                                 place does not matter.
#   sophia (optax)                m = beta1*m + (1 - beta1)*g, bias_correction: m^ = m / (1 - beta1^t).
#                                 p -= lr*(clip(m^/max(gamma*h, eps), -rho, rho) + wd*p). h = 0, but with
#                                 schedule=curvature, after steps t = 1, 6, 11, ...: h = 0.75*h + 0.25*e with
#                                 e = ((i*13 + k*5 + t*7) % 17 - 3) / 16 for element i of tensor k.
"""


def with_step(optimizer, after):
    """The optimizer, with a call of after(optimizer) after each step."""
    def step():
        optimizer.step()
        after(optimizer)
    return types.SimpleNamespace(step=step)


def qhm(lr, nu, beta, weight_decay):
    return run_torch(lambda params: pytorch_optimizer.QHM(
        params, lr=lr, momentum=beta, nu=nu, weight_decay=weight_decay, foreach=False))


def qhadam(lr, nu1, nu2, beta1, beta2, eps, weight_decay, decoupled):
    def widen(optimizer):
        for state in optimizer.state.values():
            for name in ("beta1_weight", "beta2_weight"):
                state[name] = state[name].double()

    return run_torch(lambda params: with_step(pytorch_optimizer.QHAdam(
        params, lr=lr, betas=(beta1, beta2), nus=(nu1, nu2), eps=eps, weight_decay=weight_decay,
        weight_decouple=bool(decoupled), foreach=False), widen))


def adabound(lr, final_lr, base_lr, gamma, beta1, beta2, eps, weight_decay, decoupled, amsbound):
    def make(params):
        optimizer = pytorch_optimizer.AdaBound(
            params, lr=base_lr, final_lr=final_lr, betas=(beta1, beta2), gamma=gamma, eps=eps,
            weight_decay=weight_decay, weight_decouple=bool(decoupled), ams_bound=bool(amsbound), foreach=False)
        for group in optimizer.param_groups:
            group["lr"] = lr
        return optimizer
    return run_torch(make)


def padam(lr, partial, beta1, beta2, eps, weight_decay, amsgrad):
    if amsgrad:
        assert partial == 0.5
        return run_torch(lambda params: torch.optim.Adam(
            params, lr=lr, betas=(beta1, beta2), eps=eps, weight_decay=weight_decay, amsgrad=True, foreach=False,
            fused=False))
    return run_torch(lambda params: pytorch_optimizer.PAdam(
        params, lr=lr, betas=(beta1, beta2), partial=partial, eps=eps, weight_decay=weight_decay, foreach=False))


def curvature(k):
    """All curvature estimates for tensor k, indexed by t."""
    t, i = np.arange(steps + 1)[:, None], np.arange(start(k).size)
    return jax.numpy.asarray((((i * 13 + k * 5 + t * 7) % 17 - 3) / 16.0).reshape(-1, *shapes[k]))


def sophia(lr, beta1, gamma, rho, eps, weight_decay, bias_correction, schedule=None):
    assert bias_correction
    every = 5
    all = [curvature(k) * bool(schedule) for k in range(len(shapes))]
    estimator = optax.GradientTransformation(
        lambda params: jax.numpy.ones((), int),
        lambda updates, t, params=None: ([one[t] for one in all], t + every))
    peer = optax.contrib.sophia(
        lr, b1=beta1, b2=0.75, eps=eps, weight_decay=weight_decay, gamma=gamma, clip_threshold=rho,
        update_interval=every, hessian_diagonal_fn=estimator)
    return run_optax(optax.GradientTransformation(peer.init, jax.jit(peer.update)))


def cases():
    plain = dict(lr=0.05, nu=0.7, beta=0.9, weight_decay=0)
    yield qhm, "pytorch_optimizer", plain
    yield qhm, "pytorch_optimizer", plain | dict(nu=0.4, beta=0.99, weight_decay=0.1)
    yield qhm, "pytorch_optimizer", plain | dict(nu=0)

    plain = dict(lr=0.02, nu1=0.7, nu2=1, beta1=0.95, beta2=0.98, eps=1e-8, weight_decay=0, decoupled=0)
    yield qhadam, "pytorch_optimizer", plain
    yield qhadam, "pytorch_optimizer", plain | dict(nu1=0.3, nu2=0.6, eps=1e-3, weight_decay=0.1)
    yield qhadam, "pytorch_optimizer", plain | dict(nu2=0.9, eps=1e-3, weight_decay=0.1, decoupled=1)

    plain = dict(lr=0.01, final_lr=0.1, base_lr=0.01, gamma=1e-3, beta1=0.9, beta2=0.99, eps=1e-8, weight_decay=0,
                 decoupled=0, amsbound=0)
    yield adabound, "pytorch_optimizer", plain
    yield adabound, "pytorch_optimizer", plain | dict(gamma=0.1, weight_decay=0.1)
    yield adabound, "pytorch_optimizer", plain | dict(
        lr=0.005, gamma=0.05, eps=1e-2, weight_decay=0.1, decoupled=1, amsbound=1)
    yield adabound, "pytorch_optimizer", plain | dict(lr=0.02, final_lr=0.03, gamma=0.02, beta1=0.7, beta2=0.95)

    plain = dict(lr=0.02, partial=0.25, beta1=0.9, beta2=0.99, eps=1e-8, weight_decay=0, amsgrad=0)
    yield padam, "pytorch_optimizer", plain
    yield padam, "pytorch_optimizer", plain | dict(partial=0.125, eps=1e-2, weight_decay=0.1)
    yield padam, "pytorch_optimizer", plain | dict(lr=0.05, partial=0.3, beta1=0.7, beta2=0.95, eps=1e-3)
    yield padam, "torch", plain | dict(partial=0.5, eps=1e-30, weight_decay=0.1, amsgrad=1)

    plain = dict(lr=0.01, beta1=0.9, gamma=0.5, rho=1, eps=0.1, weight_decay=0, bias_correction=1)
    yield sophia, "optax", plain
    yield sophia, "optax", plain | dict(schedule="curvature")
    yield sophia, "optax", plain | dict(rho=0.5, eps=1e-12, weight_decay=0.1, schedule="curvature")


write("values_more.txt", "generate_more.py", what, (
    (rule.__name__, peer, options, rule(**options)) for rule, peer, options in cases()),
    dict(pytorch_optimizer=importlib.metadata.version("pytorch_optimizer")))
