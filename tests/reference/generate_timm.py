"""Writes values_timm.txt: trajectories of timm's optimizers, and of optax's trust ratio around others, in float64.

Set up as generate.py says, and also pip install timm==1.0.31; then python generate_timm.py. The tests read
values_timm.txt and never run this script. Its header describes the problem and the format.
"""

import importlib.metadata

import optax
import torch
from timm import optim
from timm.utils.agc import adaptive_clip_grad

from problem import recorded_gradients, run_optax, run_torch, write

torch.set_default_dtype(torch.float64)  # for state that timm does not derive from the parameters

what = """\
# Options that are no fields:
#     with=clip_norm:<c>     all gradients are first multiplied by min(1, c/|g|), |g| over all tensors together
#     with=v:1               v starts at 1
#     with=agc:<c>:<eps>     g is first multiplied by min(1, c*max(|p|, eps)/|g|), |p| and |g| over each row of a matrix
#                            and over each other tensor (adaptive_clip_grad)
#
# What the peers compute, wd being weight_decay; states start at zero where nothing else is said; |x| is the Euclidean
# norm of a tensor.
#   lars               a = trust*|p|/(|g| + wd*|p| + eps), 1 where |p| or |g| is 0. d = a*(g + wd*p).
#                      b = momentum*b + d. p -= lr*b, with nesterov p -= lr*(d + momentum*b). always_adapt.
#   larc               the same with a = min(a/lr, 1) where clip, else with a. timm's Lars, where clip with trust_clip.
#   lamb               m = beta1*m + (1 - beta1)*g, without averaging m = beta1*m + g. v as Adam.
#                      u = m/(1 - beta1^t) / (sqrt(v)/sqrt(1 - beta2^t) + eps) + wd*p.
#                      p -= lr*u * |p|/|u|, the ratio 1 where |p| or |u| is 0, or where not always and wd is 0, and at
#                      most max_ratio (trust_clip).
#   novograd           v = |g|^2 at first, later beta2*v + (1 - beta2)*|g|^2. u = g/(sqrt(v) + eps) + wd*p.
#                      m = beta1*m + u, with averaging beta1*m + (1 - beta1)*u. p -= lr*m.
#   madgrad, adopt, adan, adabelief, lion   as values_free.txt, values_optax.txt and values.txt say. Decay is decoupled,
#                      but for madgrad's. Adan with no_prox; AdaBelief not rectified, eps_root = eps.
#   rmsprop            RMSpropTF with lr outside the buffer: d = g + wd*p. v = alpha*v + (1 - alpha)*d^2, a the mean
#                      of d likewise. b = momentum*b + d/sqrt(v - a^2 + eps), a = 0 unless centered. p -= lr*b.
#   layerwise_adam, layerwise_rmsprop (optax)   chain(scale_by_adam or scale_by_rms, add_decayed_weights(wd),
#                      scale_by_trust_ratio, scale(-lr)).
"""


def clipped_by_units(c, eps):
    def gradients(params, t):
        leaves = [torch.nn.Parameter(p.clone()) for p in params]
        for leaf, g in zip(leaves, recorded_gradients(params, t)):
            leaf.grad = torch.as_tensor(g).clone()
        adaptive_clip_grad(leaves, clip_factor=c, eps=eps)
        return [leaf.grad for leaf in leaves]
    return gradients


def sgd(lr, momentum, nesterov, weight_decay, **more):
    name, c, eps = more["with"].split(":")
    assert name == "agc"
    return run_torch(lambda params: torch.optim.SGD(
        params, lr=lr, momentum=momentum, nesterov=bool(nesterov), weight_decay=weight_decay, foreach=False),
        gradients=clipped_by_units(float(c), float(eps)))


def lars(lr, trust, eps, momentum, nesterov, weight_decay, clip=0):
    return run_torch(lambda params: optim.Lars(
        params, lr=lr, momentum=momentum, weight_decay=weight_decay, nesterov=bool(nesterov), trust_coeff=trust,
        eps=eps, trust_clip=bool(clip), always_adapt=True, foreach=False))


larc = lars


def lamb(lr, beta1, beta2, eps, weight_decay, always=1, averaging=1, max_ratio=None, **more):
    clip = float(more["with"].removeprefix("clip_norm:")) if more else None
    assert max_ratio in (None, 1)
    return run_torch(lambda params: optim.Lamb(
        params, lr=lr, betas=(beta1, beta2), eps=eps, weight_decay=weight_decay, grad_averaging=bool(averaging),
        max_grad_norm=clip, trust_clip=max_ratio == 1, always_adapt=bool(always), foreach=False))


def novograd(lr, beta1, beta2, eps, weight_decay, averaging):
    return run_torch(lambda params: optim.NvNovoGrad(
        params, lr=lr, betas=(beta1, beta2), eps=eps, weight_decay=weight_decay, grad_averaging=bool(averaging)))


def madgrad(lr, momentum, eps, weight_decay):
    return run_torch(lambda params: optim.MADGRAD(
        params, lr=lr, momentum=momentum, weight_decay=weight_decay, eps=eps))


def adopt(lr, beta1, beta2, eps, weight_decay, clip):
    return run_torch(lambda params: optim.Adopt(
        params, lr=lr, betas=(beta1, beta2), eps=eps, clip_exp=0.25 if clip else None, weight_decay=weight_decay,
        decoupled=True, foreach=False))


def lion(lr, beta1, beta2, weight_decay):
    return run_torch(lambda params: optim.Lion(
        params, lr=lr, betas=(beta1, beta2), weight_decay=weight_decay, foreach=False))


def adan(lr, beta1, beta2, beta3, eps, eps_root, weight_decay, paper_weight):
    assert eps_root == 0 and paper_weight
    return run_torch(lambda params: optim.Adan(
        params, lr=lr, betas=(beta1, beta2, beta3), eps=eps, weight_decay=weight_decay, no_prox=True, foreach=False))


def adabelief(lr, beta1, beta2, eps, eps_root, weight_decay):
    assert eps_root == eps
    return run_torch(lambda params: optim.AdaBelief(
        params, lr=lr, betas=(beta1, beta2), eps=eps, weight_decay=weight_decay, decoupled_decay=True, rectify=False))


def rmsprop(lr, alpha, eps, momentum, centered, weight_decay, eps_inside, **more):
    assert eps_inside and more == {"with": "v:1"}
    return run_torch(lambda params: optim.RMSpropTF(
        params, lr=lr, alpha=alpha, eps=eps, weight_decay=weight_decay, momentum=momentum, centered=bool(centered),
        lr_in_momentum=False, foreach=False))


def with_trust_ratio(rule, lr, weight_decay):
    return run_optax(optax.chain(
        rule, optax.add_decayed_weights(weight_decay), optax.scale_by_trust_ratio(), optax.scale(-lr)))


def layerwise_adam(lr, beta1, beta2, eps, weight_decay):
    return with_trust_ratio(optax.scale_by_adam(b1=beta1, b2=beta2, eps=eps), lr, weight_decay)


def layerwise_rmsprop(lr, alpha, eps, eps_inside, weight_decay):
    return with_trust_ratio(
        optax.scale_by_rms(decay=alpha, eps=eps, eps_in_sqrt=bool(eps_inside)), lr, weight_decay)


def cases():
    plain = dict(lr=0.5, trust=0.02, eps=1e-8, momentum=0.9, nesterov=0, weight_decay=0)
    yield lars, "lars", plain
    yield lars, "lars", plain | dict(trust=0.05, eps=0.1, momentum=0.8, weight_decay=0.1)
    yield lars, "lars", plain | dict(eps=1e-3, nesterov=1, weight_decay=0.2)
    yield lars, "lars", plain | dict(trust=0.1, momentum=0, weight_decay=0.05)
    for clip in (0, 1):
        options = plain | dict(lr=0.1, clip=clip)
        yield larc, "larc", options
        yield larc, "larc", options | dict(trust=0.1, eps=0.1, momentum=0.8, weight_decay=0.1)
        yield larc, "larc", options | dict(trust=0.05, eps=1e-3, nesterov=1, weight_decay=0.2)

    strong = dict(lr=0.02, beta1=0.8, beta2=0.95, eps=1e-3, weight_decay=0.1)
    yield lamb, "lamb", strong
    yield lamb, "lamb", strong | dict(weight_decay=0, always=0)
    yield lamb, "lamb", strong | dict(always=0)
    yield lamb, "lamb", strong | dict(lr=0.01, averaging=0)
    yield lamb, "lamb", strong | dict(weight_decay=0, averaging=0, always=0)
    yield lamb, "lamb", strong | dict(max_ratio=1)
    for clip in (0.5, 1.24):  # |g| is between 1.16 and 1.28
        yield lamb, "lamb", strong | {"with": f"clip_norm:{clip}"}
    yield lamb, "lamb", strong | {"lr": 0.01, "averaging": 0, "always": 0, "weight_decay": 0, "with": "clip_norm:1.2"}

    for averaging in (0, 1):
        yield novograd, "novograd", dict(
            lr=0.05, beta1=0.8, beta2=0.6, eps=1e-2, weight_decay=0.1, averaging=averaging)
    yield novograd, "novograd", dict(lr=0.1, beta1=0.95, beta2=0.98, eps=1e-8, weight_decay=0, averaging=1)

    yield madgrad, "madgrad", dict(lr=0.02, momentum=0.8, eps=1e-3, weight_decay=0.05)
    yield adopt, "adopt", dict(lr=0.02, beta1=0.8, beta2=0.95, eps=1e-2, weight_decay=0.1, clip=1)
    yield adopt, "adopt", dict(lr=0.02, beta1=0.8, beta2=0.95, eps=0.05, weight_decay=0.1, clip=0)
    yield adan, "adan", dict(lr=0.02, beta1=0.9, beta2=0.8, beta3=0.95, eps=1e-3, eps_root=0, weight_decay=0.1,
                             paper_weight=1)
    yield adabelief, "adabelief", dict(lr=0.02, beta1=0.8, beta2=0.95, eps=1e-3, eps_root=1e-3, weight_decay=0.1)
    yield lion, "lion", dict(lr=0.01, beta1=0.7, beta2=0.95, weight_decay=0.2)
    plain = {"lr": 0.02, "alpha": 0.8, "eps": 1e-2, "momentum": 0.7, "centered": 0, "weight_decay": 0.1,
             "eps_inside": 1, "with": "v:1"}
    for centered in (0, 1):
        yield rmsprop, "rmsprop", plain | dict(centered=centered)

    plain = dict(lr=0.05, momentum=0.8, nesterov=0, weight_decay=0)
    yield sgd, "sgd", plain | {"with": "agc:0.3:0.001"}
    yield sgd, "sgd", plain | {"lr": 0.1, "nesterov": 1, "weight_decay": 0.05, "with": "agc:1:0.5"}

    for weight_decay in (0, 0.1):
        yield layerwise_adam, "layerwise_adam", dict(
            lr=0.02, beta1=0.8, beta2=0.95, eps=1e-3, weight_decay=weight_decay)
        for eps_inside in (0, 1):
            yield layerwise_rmsprop, "layerwise_rmsprop", dict(
                lr=0.02, alpha=0.8, eps=1e-2, eps_inside=eps_inside, weight_decay=weight_decay)


write("values_timm.txt", "generate_timm.py", what, (
    (name, "optax" if name.startswith("layerwise") else "timm", options, rule(**options))
    for rule, name, options in cases()), dict(timm=importlib.metadata.version("timm")))
