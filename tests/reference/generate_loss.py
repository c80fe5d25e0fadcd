"""Writes values_loss.txt: trajectories of optax optimizers that use the loss, in float64.

Set up as generate.py says; then python generate_loss.py. The tests read values_loss.txt and never run this script.
"""

import jax
import optax
import optax.contrib

from problem import run_optax, write

what = """\
# The loss of step t is ((t*29) % 64) / 32.0 - 0.25; it has nothing to do with the gradients.
# lr of polyak multiplies the step of optax.polyak_sgd by optax.scale; its own scaling does something else.
"""


def run(optimizer):
    return run_optax(optimizer, more=lambda t: dict(value=jax.numpy.asarray(((t * 29) % 64) / 32.0 - 0.25)))


def polyak(lr, max_lr, f_min, eps, plus):
    return run(optax.chain(optax.polyak_sgd(
        max_learning_rate=max_lr, f_min=f_min, eps=eps, variant="sps+" if plus else "sps"), optax.scale(lr)))


def momo(lr, beta, lower_bound, weight_decay, adapt):
    return run(optax.contrib.momo(
        lr, beta=beta, lower_bound=lower_bound, weight_decay=weight_decay, adapt_lower_bound=bool(adapt)))


def cases():
    yield polyak, dict(lr=1.0, max_lr=0.5, f_min=-0.5, eps=0, plus=0)
    yield polyak, dict(lr=1.0, max_lr=1.0, f_min=0.25, eps=0.1, plus=1)
    yield polyak, dict(lr=1.0, max_lr=1.0, f_min=0.25, eps=0.1, plus=0)
    yield polyak, dict(lr=0.3, max_lr=1.0, f_min=-0.3, eps=0.05, plus=0)
    yield polyak, dict(lr=0.4, max_lr=0.5, f_min=0.25, eps=0.1, plus=1)
    yield momo, dict(lr=1.0, beta=0.9, lower_bound=0, weight_decay=0, adapt=0)
    yield momo, dict(lr=0.1, beta=0.8, lower_bound=-0.5, weight_decay=0.1, adapt=0)
    yield momo, dict(lr=0.2, beta=0.9, lower_bound=-3.0, weight_decay=0.05, adapt=1)


write("values_loss.txt", "generate_loss.py", what, (
    (rule.__name__, "optax", options, rule(**options)) for rule, options in cases()))
