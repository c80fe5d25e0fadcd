"""Writes values_around.txt: trajectories of SAM, Lookahead, outer steps, EMA-Nesterov and torch's maximize around rules, in float64.

Set up as generate.py says, and also pip install pytorch_optimizer==4.1.0 timm==1.0.31; then
python generate_around.py. The tests read values_around.txt and never run this script.
"""

import importlib.metadata
import unittest.mock

import jax
import numpy as np
import optax
import optax.contrib
import pytorch_optimizer
import timm.optim
import torch

from problem import shapes, start, steps, write

what = """\
# Here the gradients are others than above: those of f = (p - 2)^2 / 2^k, that is g = (p - 2) * 2 / 2^k at the point p
# where they are asked for; with=maximize has those of -f.
#
# A case's rule stands inside what its option says:
#     with=sam:<rho>                the gradient is that at p + rho*g/|g|, |g| over all tensors together
#     with=lookahead:<k>:<alpha>    after every k-th step p = s = s + alpha*(p - s), from s = p at the start
#     with=outer:<k>:<lr>:<mu>      after every k-th step one of torch's SGD(lr, mu, nesterov) on s with the gradient s - p;
#                                   then p = s
#     with=maximize                 torch's flag
#     with=ema_nesterov:<beta>:<gamma>:<warmup>:<rest>:<end>
#                                   The steps of the authors' module around torch's optimizer: with m = 0 and x = p at
#                                   first and n steps done, p += beta*lr/(first lr)*m if n >= warmup and n < rest; the
#                                   gradient at p; the optimizer's step; m = gamma*m + (1 - gamma)*(p - x); x = p. The
#                                   rate falls by torch's LambdaLR from lr to end*lr in 100 steps. Recorded: p after
#                                   the optimizer's step.
# The rules are computed as values.txt says, weight_decay of optax's adamw and its sgd (by add_decayed_weights in front)
# with them. timm's Lookahead takes s at its first pull, unless told to before the first step, as here. The norm of
# pytorch_optimizer's SAM is not rounded to float32 here.
"""


def gradient(p, k):
    return (p - 2) * 2 / 2 ** k


def run_torch(make, first=lambda optimizer: None, sign=1):
    """make(params) returns an object with step(closure); closure() computes the gradients at the current parameters."""
    params = [torch.nn.Parameter(torch.from_numpy(start(k))) for k in range(len(shapes))]
    optimizer = make(params)

    def closure():
        for k, p in enumerate(params):
            p.grad = sign * gradient(p.detach(), k)
        return torch.zeros(())

    for t in range(1, steps + 1):
        closure()
        if t == 1:
            first(optimizer)
        with unittest.mock.patch.object(torch.Tensor, "float", torch.Tensor.double):  # for pytorch_optimizer's SAM
            optimizer.step(closure)
        yield t, [p.detach().numpy() for p in params]


def run_outer(make, every, lr, momentum):
    fast = [torch.nn.Parameter(torch.from_numpy(start(k))) for k in range(len(shapes))]
    slow = [torch.nn.Parameter(p.detach().clone()) for p in fast]
    inner, outer = make(fast), torch.optim.SGD(slow, lr=lr, momentum=momentum, nesterov=True, foreach=False)
    for t in range(1, steps + 1):
        for k, p in enumerate(fast):
            p.grad = gradient(p.detach(), k)
        inner.step()
        if t % every == 0:
            for s, p in zip(slow, fast):
                s.grad = s.detach() - p.detach()
            outer.step()
            with torch.no_grad():
                for s, p in zip(slow, fast):
                    p.copy_(s)
        yield t, [p.detach().numpy() for p in fast]


def run_ahead(make, beta, gamma, warmup, rest, end):
    params = [torch.nn.Parameter(torch.from_numpy(start(k))) for k in range(len(shapes))]
    optimizer = make(params)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: 1 + (end - 1) * n / 100)
    group = optimizer.param_groups[0]
    before = [p.detach().clone() for p in params]
    momentum = [torch.zeros_like(p) for p in before]
    for t in range(1, steps + 1):
        with torch.no_grad():
            for p, m in zip(params, momentum):
                if warmup < t <= rest:
                    p += beta * (group["lr"] / group["initial_lr"]) * m
            for k, p in enumerate(params):
                p.grad = gradient(p.detach(), k)
        optimizer.step()
        scheduler.step()
        for i, p in enumerate(params):
            momentum[i] = gamma * momentum[i] + (1 - gamma) * (p.detach() - before[i])
            before[i] = p.detach().clone()
        yield t, [p.numpy() for p in before]


def run_optax(optimizer, params=lambda p: p, result=lambda p: p, **more):
    params = params([jax.numpy.asarray(start(k)) for k in range(len(shapes))])
    state = optimizer.init(params)
    for t in range(1, steps + 1):
        gradients = [gradient(p, k) for k, p in enumerate(result(params))]
        updates, state = optimizer.update(gradients, state, params, **more)
        params = optax.apply_updates(params, updates)
        yield t, [np.asarray(p) for p in result(params)]


def in_torch(rule, lr, beta1=0, beta2=0, weight_decay=0, **options):
    """The torch class of a rule, and its arguments."""
    if rule == "sgd":
        options = options | dict(nesterov=bool(options.get("nesterov", 0)))
    if rule in ("adam", "adamw"):
        options = options | dict(betas=(beta1, beta2))
    classes = dict(
        sgd=torch.optim.SGD, adam=torch.optim.Adam, adamw=torch.optim.AdamW, adagrad=torch.optim.Adagrad)
    return classes[rule], dict(lr=lr, weight_decay=weight_decay, foreach=False) | options


def in_optax(rule, lr, beta1=0, beta2=0, eps=0, momentum=0, nesterov=0, weight_decay=0):
    if rule == "sgd":
        return optax.chain(optax.add_decayed_weights(weight_decay), optax.sgd(lr, momentum, bool(nesterov)))
    if rule == "adam":
        return optax.chain(optax.add_decayed_weights(weight_decay), optax.adam(lr, b1=beta1, b2=beta2, eps=eps))
    return optax.adamw(lr, b1=beta1, b2=beta2, eps=eps, weight_decay=weight_decay)


def around(peer, rule, options):
    what, *numbers = options["with"].split(":")
    inside = {key: value for key, value in options.items() if key != "with"}
    if what == "maximize":
        make, arguments = in_torch(rule, **inside)
        return run_torch(lambda params: make(params, maximize=True, **arguments), sign=-1)
    if what == "ema_nesterov":
        make, arguments = in_torch(rule, **inside)
        return run_ahead(lambda params: make(params, **arguments), *map(float, numbers))
    if what == "outer":
        make, arguments = in_torch(rule, **inside)
        return run_outer(lambda params: make(params, **arguments), int(numbers[0]), *map(float, numbers[1:]))
    if what == "sam":
        rho = float(numbers[0])
        if peer == "optax":
            uphill = optax.chain(optax.contrib.normalize(), optax.sgd(rho))
            return run_optax(optax.contrib.sam(in_optax(rule, **inside), uphill, opaque_mode=True),
                             grad_fn=lambda params, i: [gradient(p, k) for k, p in enumerate(params)])
        make, arguments = in_torch(rule, **inside)
        return run_torch(lambda params: pytorch_optimizer.SAM(params, make, rho=rho, perturb_eps=0, **arguments))
    k, alpha = int(numbers[0]), float(numbers[1])
    if peer == "optax":
        return run_optax(optax.lookahead(in_optax(rule, **inside), k, alpha), optax.LookaheadParams.init_synced,
                         lambda params: params.fast)
    make, arguments = in_torch(rule, **inside)
    if peer == "timm":
        return run_torch(lambda params: timm.optim.Lookahead(make(params, **arguments), alpha=alpha, k=k),
                         lambda optimizer: optimizer.sync_lookahead())
    return run_torch(lambda params: pytorch_optimizer.Lookahead(make(params, **arguments), k=k, alpha=alpha))


def cases():
    sgd = dict(lr=0.02, momentum=0.8, nesterov=0, weight_decay=0.1)
    adam = dict(lr=0.02, beta1=0.8, beta2=0.95, eps=1e-3, weight_decay=0.1)
    for peer in ("optax", "pytorch_optimizer"):
        yield peer, "sgd", sgd | {"with": "sam:0.3"}
        yield peer, "sgd", sgd | {"nesterov": 1, "weight_decay": 0, "with": "sam:2"}
        yield peer, "adamw", adam | {"with": "sam:0.7"}
    for peer in ("optax", "pytorch_optimizer", "timm"):
        yield peer, "sgd", sgd | {"with": "lookahead:7:0.3"}
        if peer != "timm":  # its sync_lookahead() before the first step does not work with Adam
            yield peer, "adam", adam | {"with": "lookahead:4:0.8"}
    yield "torch", "sgd", sgd | {"nesterov": 1, "with": "maximize"}
    yield "torch", "adamw", adam | {"with": "maximize"}
    yield "torch", "adagrad", dict(lr=0.1, lr_decay=0.02, eps=1e-3, weight_decay=0.1) | {"with": "maximize"}
    yield "torch", "sgd", sgd | {"with": "ema_nesterov:0.75:0.9:3:80:0.25"}
    yield "torch", "adamw", adam | {"with": "ema_nesterov:0.5:0.98:0:1000:0"}
    yield "torch", "adam", adam | {"with": "ema_nesterov:0.9:0.9:10:90:1"}
    yield "torch", "sgd", sgd | {"with": "outer:6:0.7:0.9"}
    yield "torch", "adamw", adam | {"with": "outer:4:1.5:0.5"}


write("values_around.txt", "generate_around.py", what, (
    (rule, peer, options, around(peer, rule, options)) for peer, rule, options in cases()),
    {name: importlib.metadata.version(name) for name in ("pytorch_optimizer", "timm")})
