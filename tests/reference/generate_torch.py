"""Writes values_torch.txt: trajectories of PyTorch's optimizers, and of optax.adagrad, in float64; and
values_torch_means.txt: trajectories of the averages that PyTorch's ASGD keeps.

Set up as generate.py says; then python generate_torch.py. The tests read the two files and never run
this script. Their headers describe the problem and the format.
"""

import optax
import torch

from problem import run_optax, run_torch, write

# PyTorch keeps NAdam's product and ASGD's eta and mu in the default type, whatever the type of the parameters.
torch.set_default_dtype(torch.float64)

what = """\
# One option is not a number:
#     schedule=warmup5_linear50    with c = t - 1, the rate of step t is lr*(c+1)/5 for c < 5, then
#                                  lr*(1 - 0.9*min(1, (c-5)/50))
#
# What the peers compute, wd being weight_decay; states start at zero where nothing else is said.
# PyTorch's default type is float64, in which it then keeps NAdam's product and ASGD's eta and mu.
#   adagrad (torch)  d = g + wd*p. s = s + d^2, from s = initial.
#                    p -= lr/(1 + (t-1)*lr_decay) * d / (sqrt(s) + eps).
#   adagrad (optax)  eps_inside: p -= lr * g / sqrt(s + eps), 0 where s is 0.
#   adadelta (torch) d = g + wd*p. v = rho*v + (1 - rho)*d^2. x = sqrt(u + eps)/sqrt(v + eps) * d.
#                    u = rho*u + (1 - rho)*x^2. p -= lr*x.
#   adamax (torch)   d = g + wd*p. m = beta1*m + (1 - beta1)*d. u = max(beta2*u, |d| + eps).
#                    p -= lr/(1 - beta1^t) * m/u.
#   nadam (torch)    d = g + wd*p; decoupled has p *= 1 - lr*wd first, and d = g. m, v as Adam.
#                    mu_t = beta1*(1 - 0.5*0.96^(t*momentum_decay)); P_t = mu_1*...*mu_t.
#                    p -= lr*((1 - mu_t)/(1 - P_t)*d + mu_(t+1)/(1 - P_(t+1))*m)
#                         / (sqrt(v/(1 - beta2^t)) + eps).
#   radam (torch)    d, m, v as nadam. R = 2/(1 - beta2) - 1, R_t = R - 2*t*beta2^t/(1 - beta2^t).
#                    p -= lr/(1 - beta1^t)*m; where R_t > 5, times sqrt(1 - beta2^t)/(sqrt(v) + eps)
#                    * sqrt((R_t - 4)*(R_t - 2)*R/((R - 4)*(R - 2)*R_t)).
#                    With beta2 = 0.99 that is from t = 6 on; with beta2 = 0.6 never.
#   asgd (torch)     d = g + wd*p. p = p*(1 - lambd*eta) - eta*d. eta = lr/(1 + lambd*lr*(t-1))^alpha.
#   rprop (torch)    s = g*g_prev. The step size, lr at first, is multiplied by eta_plus where s > 0
#                    and eta_minus where s < 0, then clamped to [min_step, max_step].
#                    g = 0 where s < 0. p -= sign(g) * step size. g_prev = g.
#   amsgrad (torch)  d, m, v as nadam. x = max(x, v).
#                    p -= lr/(1 - beta1^t) * m/(sqrt(x)/sqrt(1 - beta2^t) + eps).
#                    torch.optim.Adam, where decoupled torch.optim.AdamW, with amsgrad.
#   heavy_ball       is torch.optim.SGD, which has lr outside the buffer: d = g + wd*p, b = momentum*b + d,
#   (torch)          p -= lr*b, with nesterov p -= lr*(d + momentum*b).
"""

what_means = """\
# The rule is asgd, and the values are not the parameters but their means ax, which the optimizer keeps:
# after each step ax = p where t - 1 <= t0 + 1, else ax += (p - ax)/(t - 1 - t0). values_torch.txt has
# the same cases with their parameters p.
"""


def warmup5_linear50(c):
    return (c + 1) / 5 if c < 5 else 1 - 0.9 * min(1, (c - 5) / 50)


def adagrad(lr, lr_decay, eps, weight_decay, initial, eps_inside):
    if eps_inside:
        return run_optax(optax.adagrad(lr, initial_accumulator_value=initial, eps=eps))
    return run_torch(lambda params: torch.optim.Adagrad(
        params, lr=lr, lr_decay=lr_decay, weight_decay=weight_decay, initial_accumulator_value=initial, eps=eps,
        foreach=False, fused=False))


def adadelta(lr, rho, eps, weight_decay):
    return run_torch(lambda params: torch.optim.Adadelta(
        params, lr=lr, rho=rho, eps=eps, weight_decay=weight_decay, foreach=False))


def adamax(lr, beta1, beta2, eps, weight_decay):
    return run_torch(lambda params: torch.optim.Adamax(
        params, lr=lr, betas=(beta1, beta2), eps=eps, weight_decay=weight_decay, foreach=False))


def nadam(lr, beta1, beta2, eps, weight_decay, momentum_decay, decoupled):
    return run_torch(lambda params: torch.optim.NAdam(
        params, lr=lr, betas=(beta1, beta2), eps=eps, weight_decay=weight_decay, momentum_decay=momentum_decay,
        decoupled_weight_decay=bool(decoupled), foreach=False))


def radam(lr, beta1, beta2, eps, weight_decay, decoupled):
    return run_torch(lambda params: torch.optim.RAdam(
        params, lr=lr, betas=(beta1, beta2), eps=eps, weight_decay=weight_decay,
        decoupled_weight_decay=bool(decoupled), foreach=False))


def asgd(lr, lambd, alpha, t0, weight_decay):
    return run_torch(lambda params: torch.optim.ASGD(
        params, lr=lr, lambd=lambd, alpha=alpha, t0=t0, weight_decay=weight_decay, foreach=False))


def means(**options):
    """The averages that ASGD keeps, instead of the parameters."""
    made = []

    def make(params):
        made.append(torch.optim.ASGD(params, foreach=False, **options))
        return made[0]

    for t, _ in run_torch(make):
        yield t, [made[0].state[p]["ax"].numpy() for p in made[0].param_groups[0]["params"]]


def rprop(lr, eta_minus, eta_plus, min_step, max_step):
    return run_torch(lambda params: torch.optim.Rprop(
        params, lr=lr, etas=(eta_minus, eta_plus), step_sizes=(min_step, max_step), foreach=False))


def amsgrad(lr, beta1, beta2, eps, weight_decay, decoupled):
    rule = torch.optim.AdamW if decoupled else torch.optim.Adam
    return run_torch(lambda params: rule(
        params, lr=lr, betas=(beta1, beta2), eps=eps, weight_decay=weight_decay, amsgrad=True, foreach=False,
        fused=False))


def heavy_ball(lr, momentum, weight_decay, nesterov, correction, schedule=None):
    return run_torch(lambda params: torch.optim.SGD(
        params, lr=lr, momentum=momentum, weight_decay=weight_decay, nesterov=bool(nesterov), foreach=False,
        fused=False), schedule and warmup5_linear50)


averaged = (
    dict(lr=0.1, lambd=0.05, alpha=0.6, t0=30, weight_decay=0.02),
    dict(lr=0.05, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0))


def cases():
    plain = dict(lr=0.05, lr_decay=0, eps=1e-10, weight_decay=0, initial=0, eps_inside=0)
    yield adagrad, plain
    yield adagrad, plain | dict(lr=0.1, lr_decay=0.05, eps=0.01, weight_decay=0.1, initial=0.3)
    yield adagrad, plain | dict(eps=0.05, initial=0.1, eps_inside=1)
    yield adagrad, plain | dict(eps=0.05, eps_inside=1)

    yield adadelta, dict(lr=1.0, rho=0.9, eps=1e-6, weight_decay=0)
    yield adadelta, dict(lr=0.7, rho=0.8, eps=1e-3, weight_decay=0.1)

    defaults = dict(lr=2e-3, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0)
    strong = dict(lr=0.02, beta1=0.8, beta2=0.95, eps=0.01, weight_decay=0.1)
    yield adamax, defaults
    yield adamax, strong

    for decoupled in (0, 1):
        yield nadam, strong | dict(momentum_decay=0.05, decoupled=decoupled)
    yield nadam, defaults | dict(momentum_decay=4e-3, decoupled=0)

    for decoupled in (0, 1):
        yield radam, strong | dict(lr=0.01, beta2=0.99, decoupled=decoupled)
    yield radam, strong | dict(lr=0.01, beta2=0.6, decoupled=0)
    yield radam, defaults | dict(decoupled=0)

    for options in averaged:
        yield asgd, options

    yield rprop, dict(lr=0.01, eta_minus=0.5, eta_plus=1.2, min_step=1e-6, max_step=50)
    # In this case the step is often at both ends of its range.
    yield rprop, dict(lr=0.03, eta_minus=0.85, eta_plus=1.6, min_step=0.01, max_step=0.05)

    for decoupled in (0, 1):
        yield amsgrad, strong | dict(lr=0.01, decoupled=decoupled)

    plain = dict(lr=0.05, momentum=0.9, weight_decay=0, nesterov=0, correction=0)
    for correction in (0, 1):
        yield heavy_ball, plain | dict(correction=correction)
    yield heavy_ball, plain | dict(weight_decay=0.1)
    yield heavy_ball, plain | dict(momentum=0.8, weight_decay=0.05, nesterov=1)
    yield heavy_ball, plain | dict(momentum=0)
    for nesterov in (0, 1):
        yield heavy_ball, plain | dict(
            weight_decay=0.05, nesterov=nesterov, correction=1, schedule="warmup5_linear50")


write("values_torch.txt", "generate_torch.py", what, (
    (rule.__name__, "optax" if options.get("eps_inside") else "torch", options, rule(**options))
    for rule, options in cases()))
write("values_torch_means.txt", "generate_torch.py", what_means, (
    ("asgd", "torch", options, means(**options)) for options in averaged))
