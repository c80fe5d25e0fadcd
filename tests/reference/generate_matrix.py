"""Writes values_matrix.txt: trajectories of other libraries' matrix optimizers.

Set up as generate.py says, and also pip install pytorch_optimizer==4.1.0 and clone github.com/yorkerlin/KL-Methods;
then TORCHDYNAMO_DISABLE=1 PYTHONPATH=KL-Methods/optim python generate_matrix.py. The tests read the file and never run
this script. Its header describes the problem and the format.
"""

import contextlib
import functools
import math
import pathlib
import sys
import types
import unittest.mock

import jax
import kl_opt
import numpy as np
import optax
import optax.contrib
import pytorch_optimizer
import torch
from pytorch_optimizer.optimizer.utils.graft import LayerWiseGrafting
from pytorch_optimizer.optimizer.utils.preconditioner import PreConditioner

jax.config.update("jax_enable_x64", True)

shapes = [(3, 5), (6, 4), (4, 4), (5,), (7, 7)]
steps = 100
recorded = (1, 2, 5, 10, 20, 50, 100)

what = f"""\
# Trajectories of other libraries' optimizers of matrices, in float64.
# Written by generate_matrix.py with torch {torch.__version__.split("+")[0]}, optax {optax.__version__}, \
jax {jax.__version__} and pytorch_optimizer 4.1.0 on a CPU.
#
# Problem: tensors k = 0, 1, 2, 3, 4 of shapes {", ".join(str(s) for s in shapes)}; element i counts in row-major order.
#     start            p = ((i*7 + k*3) % 11 - 5) / 8.0
#     step t = 1..100  g = ((i*i*37 + i*11 + t*101*(i + 1) + k*59) % 257 - 128) / 256.0 + p + (p_next + p_before) / 2
# where p_next and p_before are the elements i + 1 and i - 1, and the first follows the last: noise and the gradient of a
# convex function, so an error of one step is in the gradients of all after it.
#
# Format: as in values.txt. Vectors follow the peer's rule for vectors; a muon case has none. Tensor 4 is for soap and
# kl_shampoo alone.
#
# What the peers compute beside what their documentation says:
#   muon (torch)       m is a mean, not a sum. The decay has lr without the factor for the shape. Its products are in
#                      bfloat16 where the case says bf16=1, else bfloat16 was replaced by float64.
#                      c1, c2, c3 are the coefficients of its polynomial.
#   muon (optax)       of transposed matrices, since there the columns are the outputs; nesterov's m is divided by
#                      1 - mu^(t+1), g by 1 - mu^t; eps is added to the norm.
#   muon (pytorch_optimizer)  NorMuon, with products in float64 instead of bfloat16.
#   adafactor (optax)  g^2 + eps1, no floors, no 1/sqrt(t); decay without lr; min_dim_size_to_factor 2.
#   shampoo            pytorch_optimizer without momentum: L = eps I + sum g g', R alike, p -= lr L^(-1/4) g R^(-1/4);
#                      of a vector p -= lr L^(-1/2) g, which is left out here.
#                      A case with graft= is ScalableShampoo, by SVD, every matrix one block: m = mu m + u with
#                      u = L^(-1/4) g R^(-1/4), p -= lr (m + wd p); grafted, u has the length of g. With beta2 < 1
#                      L = eps I + a mean: eps I, which it lets decay, is added again to L and R in every step. The
#                      steps of `every` are counted so that the first is one that finds roots.
#   soap               Q is from float32 where the case says qr=32, else float32 was replaced by float64. Only matrices
#                      whose first L and R have full rank, or no Q: otherwise eigh chooses the rest of Q as it likes.
#   kl_shampoo         the authors' KLOpt in float64: cast_dtype, and float32 in QR and eigh was replaced by it.
#
"""


def numbers(k):
    return np.arange(math.prod(shapes[k]), dtype=np.int64)


def start(k):
    return (((numbers(k) * 7 + k * 3) % 11 - 5) / 8.0).reshape(shapes[k])


def gradient(k, t, p):
    i = numbers(k)
    p = p.ravel()
    noise = ((i * i * 37 + i * 11 + t * 101 * (i + 1) + k * 59) % 257 - 128) / 256.0
    return (noise + p + (np.roll(p, -1) + np.roll(p, 1)) / 2).reshape(shapes[k])


def of_torch(make, tensors=range(4), **replaced):
    """replaced: float32=torch.float64 makes torch.float32 mean float64 during the steps."""
    params = [torch.nn.Parameter(torch.from_numpy(start(k))) for k in tensors]
    optimizer = make(params)
    for t in range(1, steps + 1):
        for k, p in zip(tensors, params):
            p.grad = torch.from_numpy(gradient(k, t, p.detach().numpy()))
        with unittest.mock.patch.multiple(torch, **replaced) if replaced else contextlib.nullcontext():
            optimizer.step()
        yield t, {k: p.detach().numpy() for k, p in zip(tensors, params)}


def of_optax(optimizer, count=4, transposed=False):
    turn = (lambda x: x.T) if transposed else (lambda x: x)
    params = [jax.numpy.asarray(turn(start(k))) for k in range(count)]
    state = optimizer.init(params)

    @jax.jit
    def step(gradients, state, params):
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state

    for t in range(1, steps + 1):
        params, state = step([jax.numpy.asarray(turn(gradient(k, t, turn(np.asarray(p))))) for k, p in
                              enumerate(params)], state, params)
        yield t, {k: turn(np.asarray(p)) for k, p in enumerate(params)}


def scalable_shampoo(params, lr, momentum, beta2, eps, graft, every, weight_decay):
    rule = pytorch_optimizer.ScalableShampoo(
        params, lr=lr, betas=(momentum, 0), weight_decay=weight_decay, decoupled_weight_decay=True,
        start_preconditioning_step=1, preconditioning_compute_steps=every, shape_interpretation=False,
        graft_type=LayerWiseGrafting.SGD if graft else LayerWiseGrafting.NONE, nesterov=False, matrix_eps=eps,
        use_svd=True)
    rule.param_groups[0] |= dict(betas=(momentum, beta2), step=every - 1)  # the constructor does not accept beta2 = 1

    def add_statistics(self, g, old=PreConditioner.add_statistics):
        old(self, g)
        for s in self.statistics:
            s += (1 - beta2) * eps * torch.eye(len(s), dtype=s.dtype)

    def step():
        with unittest.mock.patch.object(PreConditioner, "add_statistics", add_statistics):
            type(rule).step(rule)
    return types.SimpleNamespace(step=step)


def normuon(params, **options):
    rule = pytorch_optimizer.NorMuon([dict(params=params, use_muon=True)], foreach=False, **options)
    module = sys.modules[type(rule).__module__]
    in_double = functools.partial(module.zero_power_via_newton_schulz_5, dtype=torch.float64)

    def step():
        with unittest.mock.patch.object(module, "zero_power_via_newton_schulz_5", in_double):
            type(rule).step(rule)
    return types.SimpleNamespace(step=step)


def kl_methods(params, **options):
    with contextlib.redirect_stdout(None):
        rule = kl_opt.KLOpt(params, cast_dtype=torch.float64, **options)

    def step():
        with unittest.mock.patch.object(torch.Tensor, "float", torch.Tensor.double):
            type(rule).step(rule)
    return types.SimpleNamespace(step=step)


def cases():
    t = torch.optim
    wide = dict(bfloat16=torch.float64)
    yield "muon", "torch", dict(lr=0.02, weight_decay=0.1, bf16=1), of_torch(lambda p: t.Muon(p, lr=0.02), range(3))
    yield "muon", "torch", dict(lr=0.02, weight_decay=0.1), of_torch(lambda p: t.Muon(p, lr=0.02), range(3), **wide)
    yield "muon", "torch", dict(lr=0.05, momentum=0.8, nesterov=0, weight_decay=0.3, adjust=1, ns_steps=3), of_torch(
        lambda p: t.Muon(p, lr=0.05, momentum=0.8, nesterov=False, weight_decay=0.3, ns_steps=3,
                         adjust_lr_fn="match_rms_adamw"), range(3), **wide)
    yield "muon", "torch", dict(lr=0.03, momentum=0.7, eps=1.0, ns_steps=7, c1=2, c2=-1.5, c3=0.5), of_torch(
        lambda p: t.Muon(p, lr=0.03, momentum=0.7, eps=1.0, ns_steps=7, ns_coefficients=(2, -1.5, 0.5)), range(3),
        **wide)
    yield "muon", "torch", dict(lr=0.03, momentum=0.9, weight_decay=0.05, ns_steps=1, c1=1.5, c2=-0.5, c3=0), of_torch(
        lambda p: t.Muon(p, lr=0.03, momentum=0.9, weight_decay=0.05, ns_steps=1, ns_coefficients=(1.5, -0.5, 0)),
        range(3), **wide)
    optax_muon = dict(weight_decay=0, eps=1e-8, bias_correction=1, eps_added=1)
    yield "muon", "optax", optax_muon | dict(lr=0.02), of_optax(optax.contrib.muon(0.02), 3, True)
    yield "muon", "optax", optax_muon | dict(lr=0.05, momentum=0.8, nesterov=0, weight_decay=0.3, eps=1e-3), of_optax(
        optax.contrib.muon(0.05, beta=0.8, nesterov=False, weight_decay=0.3, eps=1e-3), 3, True)
    yield "muon", "optax", optax_muon | dict(lr=0.05, momentum=0.9, adjust=1, rms=0.3, ns_steps=7), of_optax(
        optax.contrib.muon(0.05, beta=0.9, consistent_rms=0.3, ns_steps=7), 3, True)
    yield "muon", "optax", optax_muon | dict(lr=0.05, ns_steps=6, c1=2, c2=-1.5, c3=0.5), of_optax(
        optax.contrib.muon(0.05, ns_steps=6, ns_coeffs=(2, -1.5, 0.5)), 3, True)
    yield "muon", "optax", optax_muon | dict(lr=0.05, adaptive=1), of_optax(
        optax.contrib.muon(0.05, adaptive=True), 3, True)
    yield "muon", "optax", optax_muon | dict(lr=0.03, momentum=0.8, nesterov=0, adaptive=1, ns_steps=3), of_optax(
        optax.contrib.muon(0.03, beta=0.8, nesterov=False, adaptive=True, ns_steps=3), 3, True)
    rows = dict(normalize_rows=1, weight_decay=0)
    yield "muon", "pytorch_optimizer", rows | dict(lr=0.02), of_torch(
        lambda p: normuon(p, lr=0.02), range(3))
    yield "muon", "pytorch_optimizer", rows | dict(
        lr=0.05, momentum=0.8, beta2=0.7, nesterov=0, weight_decay=0.1, eps2=1e-2, ns_steps=3), of_torch(
        lambda p: normuon(p, lr=0.05, momentum=0.8, beta2=0.7, nesterov=False, weight_decay=0.1, eps=1e-2, ns_steps=3),
        range(3))
    yield "muon", "pytorch_optimizer", rows | dict(lr=0.03, beta2=0.9, adjust=4, eps2=1e-3), of_torch(
        lambda p: normuon(p, lr=0.03, beta2=0.9, update_scale="match_rms", eps=1e-3), range(3))
    # eps1 is set explicitly, because its default depends on the type and this is float64.
    yield "adafactor", "torch", dict(lr=0.01, eps1=2.0**-23), of_torch(
        lambda p: t.Adafactor(p, lr=0.01, eps=(2.0**-23, 1e-3)))
    yield "adafactor", "torch", dict(
        lr=0.3, beta2_decay=0.6, eps1=0.05, eps2=0.2, clip=1.3, weight_decay=0.1), of_torch(
        lambda p: t.Adafactor(p, lr=0.3, beta2_decay=-0.6, eps=(0.05, 0.2), d=1.3, weight_decay=0.1))
    optax_adafactor = dict(eps1=1e-30, eps_added=1, capped=0, decay_by_lr=0)
    yield "adafactor", "optax", optax_adafactor | dict(lr=0.02), of_optax(
        optax.adafactor(0.02, min_dim_size_to_factor=2))
    yield "adafactor", "optax", optax_adafactor | dict(
        lr=0.05, beta2_decay=0.6, clip=0.5, momentum=0.9, weight_decay=0.01, eps1=1e-3), of_optax(
        optax.adafactor(0.05, min_dim_size_to_factor=2, decay_rate=0.6, clipping_threshold=0.5, momentum=0.9,
                        weight_decay_rate=0.01, eps=1e-3))
    yield "adafactor", "optax", optax_adafactor | dict(lr=0.05, relative=0), of_optax(
        optax.adafactor(0.05, min_dim_size_to_factor=2, multiply_by_parameter_scale=False))
    yield "sm3", "optax", dict(lr=0.02), of_optax(optax.sm3(0.02))
    yield "sm3", "optax", dict(lr=0.05, momentum=0.5), of_optax(optax.sm3(0.05, momentum=0.5))
    yield "sm3", "optax", dict(lr=0.01, momentum=0.8, beta2=0.9, eps=1e-3), of_optax(
        optax.chain(optax.scale_by_sm3(0.8, 0.9, 1e-3), optax.scale(-0.01)))
    p = pytorch_optimizer
    yield "shampoo", "pytorch_optimizer", dict(lr=0.05, momentum=0, eps=0.01), of_torch(
        lambda x: p.Shampoo(x, lr=0.05, matrix_eps=0.01), range(3))
    yield "shampoo", "pytorch_optimizer", dict(lr=0.02, momentum=0, eps=1e-6, weight_decay=0.1), of_torch(
        lambda x: p.Shampoo(x, lr=0.02, matrix_eps=1e-6, weight_decay=0.1, weight_decouple=True), range(3))
    for options in (
            dict(lr=0.02, momentum=0.8, beta2=1, graft=0, every=1, weight_decay=0.1),
            dict(lr=0.02, momentum=0.7, beta2=1, graft=1, every=3, weight_decay=0.05),
            dict(lr=0.01, momentum=0.8, beta2=0.9, graft=0, every=4, weight_decay=0.1),
            dict(lr=0.03, momentum=0, beta2=0.8, graft=1, every=1, weight_decay=0.1)):
        yield "shampoo", "pytorch_optimizer", dict(eps=0.01) | options, of_torch(
            lambda x, options=options: scalable_shampoo(x, eps=0.01, **options), range(3))
    yield "soap", "pytorch_optimizer", dict(qr=32), of_torch(p.SOAP, (2, 4))
    yield "soap", "pytorch_optimizer", dict(
        lr=0.02, beta1=0.8, beta2=0.9, shampoo_beta=0.7, eps=1e-3, weight_decay=0.1, every=3), of_torch(
        lambda x: p.SOAP(x, lr=0.02, betas=(0.8, 0.9), shampoo_beta=0.7, eps=1e-3, weight_decay=0.1,
                         precondition_frequency=3), (2, 4), float32=torch.float64)
    yield "soap", "pytorch_optimizer", dict(
        lr=0.01, beta2=0.99, shampoo_beta=0.99, weight_decay=0, bias_correction=0, every=1,
        max_precondition_dim=4), of_torch(
        lambda x: p.SOAP(x, lr=0.01, betas=(0.95, 0.99), weight_decay=0, correct_bias=False,
                         precondition_frequency=1, max_precondition_dim=4), range(3), float32=torch.float64)
    for adam in (0, 1):
        yield "kl_shampoo", "KL-Methods", dict(adam=adam), of_torch(
            lambda x, adam=adam: kl_methods(x, using_klsoap=bool(adam)), (2, 4))
        yield "kl_shampoo", "KL-Methods", dict(
            adam=adam, lr=0.02, beta1=0.8, beta2=0.9, shampoo_beta=0.7, eps=1e-3, weight_decay=0.1, every=3), of_torch(
            lambda x, adam=adam: kl_methods(
                x, using_klsoap=bool(adam), lr=0.02, betas=(0.8, 0.9), shampoo_beta=0.7, eps=1e-3, weight_decay=0.1,
                precondition_frequency=3), (2, 4))
        yield "kl_shampoo", "KL-Methods", dict(
            adam=adam, lr=0.01, beta1=0.95, beta2=0.95, shampoo_beta=0.95, weight_decay=0, every=1, initial=1,
            clamp=0), of_torch(
            lambda x, adam=adam: kl_methods(
                x, using_klsoap=bool(adam), lr=0.01, betas=(0.95, 0.95), weight_decay=0, precondition_frequency=1,
                init_factor=1, using_clamping=False), (2, 4))


versions = dict(torch=torch.__version__.split("+")[0], optax=optax.__version__, pytorch_optimizer="4.1.0")
versions["KL-Methods"] = "2026-02-16"
with open(pathlib.Path(__file__).with_name("values_matrix.txt"), "w") as out:
    out.write(what)
    for rule, peer, options, trajectory in cases():
        spelled = " ".join(f"{key}={value}" for key, value in options.items())
        out.write(f"\ncase {rule} {peer}-{versions[peer]} {spelled}\n")
        for t, params in trajectory:
            assert all(p.dtype == np.float64 for p in params.values())
            if t in recorded:
                for k, p in params.items():
                    out.write(f"step {t} tensor {k} " + " ".join("%.17g" % x for x in p.ravel()) + "\n")
