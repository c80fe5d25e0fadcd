"""The problem of all recorded trajectories, and how PyTorch and optax run on it."""

import math
import pathlib
import platform

import jax
import numpy as np
import optax
import torch

jax.config.update("jax_enable_x64", True)

shapes = [(5,), (1,), (3, 4)]
steps = 100
recorded = (1, 2, 5, 10, 20, 50, 100)

header = """\
# Trajectories of other libraries' optimizers in float64, to compare rules with.
# Written by {script} with python {python}, numpy {numpy}, torch {torch} (CPU, foreach and fused
# off), optax {optax}, jax {jax} (CPU, x64).
#
# Problem: tensors k = 0, 1, 2 with 5, 1 and 12 elements (shapes (5), (1), (3,4)); element i counts
# in row-major order. Starts and gradients are exact in float; % is never given a negative number.
#     start            p = ((i*7 + k*3) % 11 - 5) / 8.0
#     step t = 1..100  g = ((i*37 + t*101 + k*59) % 257 - 128) / 256.0
#
# Format: '#' starts a comment line, blank lines mean nothing, and the rest is
#     case <rule> <peer>-<version> <key>=<value> ...
#     step <t> tensor <k> <parameter 0> <parameter 1> ...
# The steps of a case follow its line: t = 1, 2, 5, 10, 20, 50, 100 and, within each, k = 0, 1, 2,
# with the parameters after step t. Every value is a number (a flag is 0 or 1).
#
"""


def start(k):
    i = np.arange(math.prod(shapes[k]))
    return (((i * 7 + k * 3) % 11 - 5) / 8.0).reshape(shapes[k])


def gradient(k, t):
    i = np.arange(math.prod(shapes[k]))
    return (((i * 37 + t * 101 + k * 59) % 257 - 128) / 256.0).reshape(shapes[k])


def recorded_gradients(params, t):
    return [gradient(k, t) for k in range(len(params))]


def quadratic_gradients(params, t):
    """The gradients of (p - 2)^2 / 2^k at the current parameters."""
    return [(p - 2) * 2 / 2 ** k for k, p in enumerate(params)]


def run_torch(make, schedule=None, gradients=recorded_gradients):
    """The parameters after each step of make(parameters). If given, schedule(c) multiplies the learning rate."""
    params = [torch.nn.Parameter(torch.from_numpy(start(k))) for k in range(len(shapes))]
    optimizer = make(params)
    scheduler = schedule and torch.optim.lr_scheduler.LambdaLR(optimizer, schedule)
    for t in range(1, steps + 1):
        for p, g in zip(params, gradients([p.detach() for p in params], t)):
            p.grad = torch.as_tensor(g)
        optimizer.step()
        if scheduler:
            scheduler.step()
        yield t, [p.detach().numpy() for p in params]


def run_optax(optimizer, gradients=recorded_gradients, result=lambda state, params: params, more=lambda t: {}):
    """result(state, parameters) after each step. more(t) returns extra arguments of the optimizer at step t."""
    params = [jax.numpy.asarray(start(k)) for k in range(len(shapes))]
    state = optimizer.init(params)
    for t in range(1, steps + 1):
        here = [jax.numpy.asarray(g) for g in gradients(params, t)]
        updates, state = optimizer.update(here, state, params, **more(t))
        params = optax.apply_updates(params, updates)
        yield t, [np.asarray(p) for p in result(state, params)]


def write(name, script, what, cases, more_versions={}):
    """Writes a file of cases (rule name, peer, options, trajectory)."""
    versions = dict(
        python=platform.python_version(), numpy=np.__version__,
        torch=torch.__version__.split("+")[0], optax=optax.__version__, jax=jax.__version__) | more_versions
    with open(pathlib.Path(__file__).with_name(name), "w") as out:
        out.write(header.format(script=script, **versions) + what)
        for rule, peer, options, trajectory in cases:
            spelled = " ".join(f"{key}={value}" for key, value in options.items())
            out.write(f"\ncase {rule} {peer}-{versions[peer]} {spelled}\n")
            for t, params in trajectory:
                assert all(p.dtype == np.float64 for p in params)
                if t in recorded:
                    for k, p in enumerate(params):
                        values = " ".join("%.17g" % x for x in p.ravel())
                        out.write(f"step {t} tensor {k} {values}\n")
