"""Writes values_optax.txt: trajectories of optax's rules other than the eight of generate.py, in float64.

Set up as generate.py says, and also pip install pytorch_optimizer==4.1.0; then python generate_optax.py. The
tests read values_optax.txt and never run this script. The header of that file describes the problem and the format.
"""

import importlib.metadata

import jax
import optax
import optax.contrib
import pytorch_optimizer

from problem import run_optax, run_torch, write

what = """\
# One option is not a number:
#     schedule=grow    with c = t - 1, step t has alpha*min(1, c/50) for alpha and
#                      0.9 + (beta3 - 0.9)*min(1, c/50) for beta3.
#
# What the peers compute, wd being weight_decay; states start at zero, unless said otherwise; x^ = x/(1 - b^t) with the
# beta of x; |x| is the Euclidean norm over a tensor; sign(0) = 0. Where optax's optimizer has no weight decay but the
# case has, optax.add_decayed_weights stands between the rule and lr.
#   signsgd          p -= lr*(sign(g) + wd*p).
#   signum           m = beta*m + (1 - beta)*g. p -= lr*(sign(m) + wd*p).
#   yogi             m and v start at `initial`. m = beta1*m + (1 - beta1)*g,
#                    v -= (1 - beta2)*sign(v - g^2)*g^2. p -= lr*(m^/(sqrt(v^) + eps) + wd*p).
#   adabelief        m as yogi. s = beta2*s + (1 - beta2)*(g - m)^2 + eps_root, with the new m, and eps_root kept in s.
#                    p -= lr*(m^/(sqrt(s^) + eps) + wd*p).
#   adan             d = g - the gradient before, 0 at t = 1. m, v, n are means of g, d and (g + c*d)^2 with beta1,
#                    beta2, beta3. p -= lr*((m^ + c*v^)/(sqrt(n^ + eps_root) + eps) + wd*p).
#                    c = 1 - beta2 in optax. pytorch_optimizer has c = beta2 as the authors' code (paper_weight=1).
#   adopt            t = 1: v = g^2, nothing else. Later u = g/max(sqrt(v), eps) with the v before, clipped to
#                    +-(t - 1)^0.25 unless clip=0; v = beta2*v + (1 - beta2)*g^2; m = beta1*m + (1 - beta1)*u;
#                    p -= lr*(m + wd*p). The cases with wd add it by hand from t = 2 on.
#   ademamix         m1, m2, v are means of g, g, g^2 with beta1, beta3, beta2.
#                    p -= lr*((m1^ + alpha*m2)/(sqrt(v^) + eps) + wd*p).
#   optimistic       p -= lr*((alpha + beta)*g - beta*(the gradient before)), which at t = 1 is g.
#   optimistic_adam  the same with Adam's step for g; with nesterov m^ is
#                    beta1*m/(1 - beta1^(t+1)) + (1 - beta1)*g/(1 - beta1^t).
#   fromage          p = (p - lr*max(|p|, min_norm)/max(|g|, min_norm)*g)/sqrt(1 + lr^2).
#   novograd         v = |g|^2 at t = 1, later beta2*v + (1 - beta2)*|g|^2, for each tensor.
#                    m = beta1*m + g/(sqrt(v) + eps) + wd*p. p -= lr*m.
"""


def with_decay(rule, lr, weight_decay):
    return run_optax(optax.chain(rule, optax.add_decayed_weights(weight_decay), optax.scale_by_learning_rate(lr)))


def signsgd(lr, weight_decay):
    return with_decay(optax.scale_by_sign(), lr, weight_decay) if weight_decay else run_optax(optax.sign_sgd(lr))


def signum(lr, beta, weight_decay):
    if weight_decay:
        return with_decay(optax.chain(optax.ema(beta, debias=False), optax.scale_by_sign()), lr, weight_decay)
    return run_optax(optax.signum(lr, beta=beta))


def yogi(lr, beta1, beta2, eps, initial, weight_decay):
    if initial == 1e-6 and weight_decay == 0:
        return run_optax(optax.yogi(lr, b1=beta1, b2=beta2, eps=eps))
    return with_decay(optax.scale_by_yogi(b1=beta1, b2=beta2, eps=eps, initial_accumulator_value=initial),
                      lr, weight_decay)


def adabelief(lr, beta1, beta2, eps, eps_root, weight_decay):
    options = dict(b1=beta1, b2=beta2, eps=eps, eps_root=eps_root)
    if weight_decay:
        return with_decay(optax.scale_by_belief(**options), lr, weight_decay)
    return run_optax(optax.adabelief(lr, **options))


def adan(lr, beta1, beta2, beta3, eps, eps_root, weight_decay, paper_weight):
    if paper_weight:
        assert eps_root == 0 and weight_decay == 0
        return run_torch(lambda params: pytorch_optimizer.Adan(
            params, lr=lr, betas=(beta1, beta2, beta3), eps=eps, weight_decay=0, max_grad_norm=0, foreach=False))
    return run_optax(optax.adan(
        lr, b1=beta1, b2=beta2, b3=beta3, eps=eps, eps_root=eps_root, weight_decay=weight_decay))


def adopt(lr, beta1, beta2, eps, clip, weight_decay):
    decay = optax.add_decayed_weights(lambda count: weight_decay * (count > 0))
    rule = optax.contrib.scale_by_adopt(b1=beta1, b2=beta2, eps=eps, use_clipping=bool(clip))
    if weight_decay:
        return run_optax(optax.chain(rule, decay, optax.scale_by_learning_rate(lr)))
    return run_optax(optax.contrib.adopt(lr, b1=beta1, b2=beta2, eps=eps, use_clipping=bool(clip)))


def ademamix(lr, beta1, beta2, beta3, alpha, eps, weight_decay, schedule=None):
    if schedule:  # in float64; optax.linear_schedule is not
        def way(count):
            return jax.numpy.minimum(1, count.astype(float) / 50)
        last_beta3, last_alpha = beta3, alpha
        beta3, alpha = lambda count: 0.9 + (last_beta3 - 0.9) * way(count), lambda count: last_alpha * way(count)
    return run_optax(optax.contrib.ademamix(
        lr, b1=beta1, b2=beta2, b3=beta3, alpha=alpha, eps=eps, weight_decay=weight_decay))


def optimistic(lr, alpha, beta):
    return run_optax(optax.optimistic_gradient_descent(lr, alpha=alpha, beta=beta))


def optimistic_adam(lr, beta1, beta2, eps, alpha, beta, nesterov):
    return run_optax(optax.optimistic_adam_v2(
        lr, alpha=alpha, beta=beta, b1=beta1, b2=beta2, eps=eps, nesterov=bool(nesterov)))


def fromage(lr, min_norm):
    return run_optax(optax.fromage(lr, min_norm=min_norm))


def novograd(lr, beta1, beta2, eps, weight_decay):
    return run_optax(optax.novograd(lr, b1=beta1, b2=beta2, eps=eps, weight_decay=weight_decay))


def cases():
    for weight_decay in (0, 0.1):
        yield signsgd, dict(lr=0.01, weight_decay=weight_decay)
        yield signum, dict(lr=0.01, beta=0.8, weight_decay=weight_decay)

    yield yogi, dict(lr=0.02, beta1=0.9, beta2=0.99, eps=1e-3, initial=1e-6, weight_decay=0)
    yield yogi, dict(lr=0.05, beta1=0.8, beta2=0.95, eps=1e-2, initial=0.01, weight_decay=0.1)

    yield adabelief, dict(lr=0.01, beta1=0.9, beta2=0.99, eps=1e-16, eps_root=1e-16, weight_decay=0)
    yield adabelief, dict(lr=0.05, beta1=0.8, beta2=0.95, eps=1e-3, eps_root=1e-3, weight_decay=0.1)

    yield adan, dict(lr=0.01, beta1=0.98, beta2=0.92, beta3=0.99, eps=1e-8, eps_root=1e-8, weight_decay=0,
                     paper_weight=0)
    yield adan, dict(lr=0.02, beta1=0.9, beta2=0.8, beta3=0.95, eps=1e-3, eps_root=1e-4, weight_decay=0.1,
                     paper_weight=0)
    yield adan, dict(lr=0.02, beta1=0.9, beta2=0.8, beta3=0.95, eps=1e-3, eps_root=0, weight_decay=0, paper_weight=1)

    yield adopt, dict(lr=0.01, beta1=0.9, beta2=0.9999, eps=1e-6, clip=1, weight_decay=0)
    yield adopt, dict(lr=0.01, beta1=0.8, beta2=0.95, eps=0.05, clip=0, weight_decay=0)
    yield adopt, dict(lr=0.02, beta1=0.8, beta2=0.95, eps=1e-3, clip=1, weight_decay=0.1)

    defaults = dict(lr=0.01, beta1=0.9, beta2=0.999, beta3=0.9999, alpha=5, eps=1e-8, weight_decay=0)
    yield ademamix, defaults
    yield ademamix, defaults | dict(beta1=0.8, beta2=0.95, beta3=0.99, alpha=3, eps=1e-3, weight_decay=0.1)
    yield ademamix, defaults | dict(beta3=0.999, schedule="grow")

    yield optimistic, dict(lr=0.1, alpha=1, beta=1)
    yield optimistic, dict(lr=0.1, alpha=0.75, beta=0.4)

    yield optimistic_adam, dict(lr=0.01, beta1=0.9, beta2=0.999, eps=1e-8, alpha=1, beta=1, nesterov=1)
    yield optimistic_adam, dict(lr=0.01, beta1=0.8, beta2=0.95, eps=1e-3, alpha=0.75, beta=0.4, nesterov=0)

    yield fromage, dict(lr=0.02, min_norm=1e-6)
    # Norms below min_norm: often that of the second tensor's gradient, and at first that of its value.
    yield fromage, dict(lr=0.1, min_norm=0.3)

    yield novograd, dict(lr=0.02, beta1=0.9, beta2=0.25, eps=1e-6, weight_decay=0)
    yield novograd, dict(lr=0.02, beta1=0.8, beta2=0.95, eps=1e-2, weight_decay=0.1)


def peer(rule, options):
    return "pytorch_optimizer" if options.get("paper_weight") else "optax"


write("values_optax.txt", "generate_optax.py", what, (
    (rule.__name__, peer(rule, options), options, rule(**options)) for rule, options in cases()),
    dict(pytorch_optimizer=importlib.metadata.version("pytorch_optimizer")))
