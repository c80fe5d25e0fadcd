"""Writes values_free.txt, values_free_averages.txt and values_free_quadratic.txt: trajectories of rules without a
schedule or a learning rate to tune, in float64.

Set up as generate.py says, and also pip install pytorch_optimizer==4.1.0; then python generate_free.py. The tests
read these files and never run this script. Their headers describe the problem and the format.
"""

import importlib.metadata

import jax
import optax
import optax.contrib
import pytorch_optimizer
import torch

from problem import quadratic_gradients, recorded_gradients, run_optax, run_torch, write

torch.set_default_dtype(torch.float64)  # for the peers' own sums

what = """\
# One option is not a number:
#     schedule=warmup10            the rate of step t is lr*min(1, t/10)
#
# What the peers compute, wd being weight_decay; states start at zero; |x| is the Euclidean norm.
#   schedule_free_sgd            d = g + wd*y. w = (largest lr so far)^power, c = w / (sum of all w).
#                                x = (y - (1 - beta1)*z) / beta1. z -= lr*d. x = (1 - c)*x + c*z.
#                                y = beta1*x + (1 - beta1)*z. The parameters are y.
#   schedule_free_adamw          v = beta2*v + (1 - beta2)*g^2. d = g/(sqrt(v/(1 - beta2^t)) + eps) + wd*y;
#                                then as above.
#   dowg                         r = max(r, |x - x0|), r = reps at first. d = g + wd*x. G += r^2 * |d|^2.
#                                x -= lr * r^2/(sqrt(G) + eps) * d. Norms cover all tensors together.
#   prodigy                      e = lr*d*sqrt(1 - beta2^t)/(1 - beta1^t), d = d0 at first.
#                                m, v as adam of d*g. r = beta3*r + e*d/d0 * <g, x0 - x>.
#                                s = beta3*s + e*d/d0 * g, with safeguard_warmup d*d/d0 * g.
#                                d = max(d, d_coef*r / (sum of |s|)). x -= e*(m/(sqrt(v) + d*eps) + wd*x).
#                                beta3=0 stands for sqrt(beta2). Sums cover all tensors together.
#   dadapt_adamw                 e as for prodigy, b = sqrt(beta2). r = b*r + (1 - b)*e*<g, s/(sqrt(v) + eps)>.
#                                m = beta1*m + (1 - beta1)*e*g. v = beta2*v + (1 - beta2)*g^2.
#                                s = b*s + (1 - b)*e*g. x -= m/(sqrt(v) + eps) + e*wd*x.
#                                d = max(d, r / ((1 - b) * (sum of |s|))).
#   madgrad                      d = g + wd*x. l = (lr + eps)*sqrt(t). s += l*d. v += l*d^2.
#                                x = momentum*x + (1 - momentum)*(x0 - s/(cbrt(v) + eps)).
#   cocob                        d = lr*(g + wd*x). L = max(L, |d|), L = eps at first. G += |d|.
#                                R = max(R - d*(x - x0), 0). C -= d.
#                                x = x0 + C/(L*max(G + L, alpha*L)) * (L + R).
#   acprop                       u = g/(sqrt(v/(1 - beta2^(t-1))) + eps), at the first step g/(1 + eps).
#                                v = beta2*v + (1 - beta2)*(g - m)^2 + eps_root with the old m.
#                                m = beta1*m + (1 - beta1)*g. x -= lr*(u + wd*x).
"""


averages = """\
# Here the values are what optax.contrib.schedule_free_eval_params says that one should evaluate,
# x = (y - (1 - beta1)*z) / beta1; values_free.txt says how the rules are computed.
"""

quadratic = """\
# Here the gradients are others than above, so that the estimates of distance grow: those of
#     (p - 2)^2 / 2^k,  that is  g = (p - 2) * 2 / 2^k
# where p is the parameter before the step. values_free.txt says how the rules are computed.
"""


def run_averages(optimizer):
    """The parameters that optax says to evaluate, after each step."""
    return run_optax(optimizer, result=optax.contrib.schedule_free_eval_params)


def schedule_free_sgd(peer, lr, beta1, weight_decay, power, schedule=None, run=run_optax):
    if peer == "optax":
        return run(optax.contrib.schedule_free_sgd(
            lr, b1=beta1, weight_decay=weight_decay, weight_lr_power=power))
    return run_torch(lambda params: pytorch_optimizer.ScheduleFreeSGD(
        params, lr=lr, momentum=beta1, weight_decay=weight_decay, weight_lr_power=power,
        warmup_steps=10 if schedule else 0, foreach=False))


def schedule_free_adamw(peer, lr, beta1, beta2, eps, weight_decay, power, schedule=None, run=run_optax):
    if peer == "optax":
        return run(optax.contrib.schedule_free_adamw(
            lr, b1=beta1, b2=beta2, eps=eps, weight_decay=weight_decay, weight_lr_power=power))
    return run_torch(lambda params: pytorch_optimizer.ScheduleFreeAdamW(
        params, lr=lr, betas=(beta1, beta2), eps=eps, weight_decay=weight_decay, weight_lr_power=power,
        warmup_steps=10 if schedule else 0, foreach=False))


def dowg(peer, lr, reps, eps, weight_decay, gradients=recorded_gradients):
    return run_optax(optax.contrib.dowg(
        lr, init_estim_sq_dist=reps ** 2, eps=eps, weight_decay=weight_decay), gradients)


def prodigy(peer, lr, beta1, beta2, beta3, eps, weight_decay, d0, d_coef, safeguard_warmup,
            gradients=recorded_gradients):
    if peer == "optax":
        return run_optax(optax.contrib.prodigy(
            lr, betas=(beta1, beta2), beta3=beta3 or None, eps=eps, estim_lr0=d0, estim_lr_coef=d_coef,
            weight_decay=weight_decay, safeguard_warmup=bool(safeguard_warmup)), gradients)
    return run_torch(lambda params: pytorch_optimizer.Prodigy(
        params, lr=lr, betas=(beta1, beta2), beta3=beta3 or None, eps=eps, d0=d0, d_coef=d_coef,
        weight_decay=weight_decay, safeguard_warmup=bool(safeguard_warmup), bias_correction=True, foreach=False),
        gradients=gradients)


def dadapt_adamw(peer, lr, beta1, beta2, eps, weight_decay, d0, gradients=recorded_gradients):
    if peer == "optax":
        return run_optax(optax.contrib.dadapt_adamw(
            lr, betas=(beta1, beta2), eps=eps, estim_lr0=d0, weight_decay=weight_decay), gradients)
    return run_torch(lambda params: pytorch_optimizer.DAdaptAdam(
        params, lr=lr, betas=(beta1, beta2), eps=eps, d0=d0, weight_decay=weight_decay, weight_decouple=True,
        bias_correction=True, foreach=False), gradients=gradients)


def madgrad(peer, lr, momentum, eps, weight_decay):
    if peer == "optax":
        # Uses a 64-bit count; otherwise optax takes the root of t in float32.
        rule = optax.contrib.madgrad(lr, momentum=momentum, weight_decay=weight_decay, eps=eps)
        wide = lambda x: x.astype(jax.numpy.int64) if x.dtype == jax.numpy.int32 else x
        return run_optax(optax.GradientTransformation(lambda p: jax.tree.map(wide, rule.init(p)), rule.update))
    return run_torch(lambda params: pytorch_optimizer.MADGRAD(
        params, lr=lr, momentum=momentum, weight_decay=weight_decay, weight_decouple=False, eps=eps, foreach=False))


def cocob(peer, lr, alpha, eps, weight_decay):
    return run_optax(optax.contrib.cocob(lr, alpha=alpha, eps=eps, weight_decay=weight_decay))


def acprop(peer, lr, beta1, beta2, eps, eps_root, weight_decay):
    return run_optax(optax.contrib.acprop(
        lr, b1=beta1, b2=beta2, eps=eps, eps_root=eps_root, weight_decay=weight_decay))


def cases():
    for rule, defaults, strong in (
            (schedule_free_sgd, dict(lr=0.5, beta1=0.9, weight_decay=0, power=2),
             dict(lr=0.1, beta1=0.75, weight_decay=0.1, power=1)),
            (schedule_free_adamw, dict(lr=0.0025, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0, power=2),
             dict(lr=0.05, beta1=0.75, beta2=0.99, eps=1e-3, weight_decay=0.1, power=0))):
        yield rule, "optax", defaults
        yield rule, "optax", strong
        yield rule, "pytorch_optimizer", strong
        yield rule, "pytorch_optimizer", strong | dict(power=2, schedule="warmup10")
        yield rule, "pytorch_optimizer", strong | dict(power=0.5, schedule="warmup10")

    yield dowg, "optax", dict(lr=1.0, reps=0.01, eps=1e-4, weight_decay=0)
    yield dowg, "optax", dict(lr=2.0, reps=0.05, eps=1e-2, weight_decay=0.05)
    yield dowg, "optax", dict(lr=0.5, reps=1.0, eps=1e-8, weight_decay=0)

    defaults = dict(lr=1.0, beta1=0.9, beta2=0.999, beta3=0, eps=1e-8, weight_decay=0, d0=1e-6, d_coef=1.0,
                    safeguard_warmup=0)
    strong = dict(lr=0.5, beta1=0.8, beta2=0.99, beta3=0.9, eps=1e-2, weight_decay=0.1, d0=1e-3, d_coef=2.0,
                  safeguard_warmup=0)
    for peer in ("optax", "pytorch_optimizer"):
        yield prodigy, peer, defaults
        yield prodigy, peer, strong
        yield prodigy, peer, strong | dict(beta3=0, safeguard_warmup=1)
        # d grows by a factor of 8 in this case.
        yield prodigy, peer, strong | dict(beta1=0.5, beta2=0.9, beta3=0.5, d0=0.01, d_coef=10.0)

    defaults = dict(lr=1.0, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0, d0=1e-6)
    strong = dict(lr=0.5, beta1=0.8, beta2=0.99, eps=1e-2, weight_decay=0.1, d0=1e-3)
    for peer in ("optax", "pytorch_optimizer"):
        yield dadapt_adamw, peer, defaults
        yield dadapt_adamw, peer, strong

    for peer in ("optax", "pytorch_optimizer"):
        yield madgrad, peer, dict(lr=0.01, momentum=0.9, eps=1e-6, weight_decay=0)
        yield madgrad, peer, dict(lr=0.05, momentum=0, eps=1e-2, weight_decay=0.05)

    yield cocob, "optax", dict(lr=1.0, alpha=100.0, eps=1e-8, weight_decay=0)
    yield cocob, "optax", dict(lr=0.5, alpha=5.0, eps=0.2, weight_decay=0.05)

    yield acprop, "optax", dict(lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-16, eps_root=1e-16, weight_decay=0)
    yield acprop, "optax", dict(lr=0.02, beta1=0.8, beta2=0.99, eps=1e-2, eps_root=1e-3, weight_decay=0.1)


def quadratic_cases():
    yield dowg, "optax", dict(lr=1.0, reps=0.01, eps=1e-4, weight_decay=0)
    for peer in ("optax", "pytorch_optimizer"):
        options = dict(lr=1.0, beta1=0.9, beta2=0.999, beta3=0, eps=1e-8, weight_decay=0, d0=1e-6, d_coef=1.0,
                       safeguard_warmup=0)
        yield prodigy, peer, options
        options = options | dict(lr=0.5, beta1=0.8, beta2=0.99, eps=1e-2, weight_decay=0.1, d0=1e-3)
        yield prodigy, peer, options | dict(beta3=0.9, d_coef=2.0)
        yield prodigy, peer, options | dict(safeguard_warmup=1)
        yield dadapt_adamw, peer, dict(lr=1.0, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0, d0=1e-6)
        yield dadapt_adamw, peer, dict(lr=0.5, beta1=0.8, beta2=0.99, eps=1e-2, weight_decay=0.1, d0=1e-3)


def write_free(name, what, cases, **more):
    write(name, "generate_free.py", what, (
        (rule.__name__, peer, options, rule(peer, **options, **more)) for rule, peer, options in cases),
        dict(pytorch_optimizer=importlib.metadata.version("pytorch_optimizer")))


write_free("values_free.txt", what, cases())
write_free("values_free_averages.txt", averages, (
    (rule, peer, options) for rule, peer, options in cases()
    if rule in (schedule_free_sgd, schedule_free_adamw) and peer == "optax"), run=run_averages)
write_free("values_free_quadratic.txt", quadratic, quadratic_cases(), gradients=quadratic_gradients)
