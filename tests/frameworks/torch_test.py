# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: torch_test.py extension     (PYTHONPATH names examples/torch)

Laws of examples/torch, on the CPU."""
import copy
import io
import math
import sys

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

import torch

import descent_torch as ours

torch.ops.load_library(sys.argv[1])
shapes = [(7, 5), (33,), (4, 3, 2), (1,), (300, 20)]


def parameters(dtype=torch.float32):
    generator = torch.Generator().manual_seed(1)
    return [torch.nn.Parameter(torch.randn(shape, generator=generator).to(dtype)) for shape in shapes]


def give_gradients(params, step, dtype=None):
    """Gradients that depend on the step alone, at new addresses: nothing in the training can amplify a difference."""
    generator = torch.Generator().manual_seed(1000 + step)
    for p in params:
        p.grad = torch.randn(p.shape, generator=generator).to(dtype or p.dtype).to(p.dtype)


def groups(params, **more):
    """Three groups with other settings."""
    return [{"params": params[:2]}, {"params": params[2:3], "lr": 3e-3, "betas": (0.8, 0.95), "eps": 1e-4},
            {"params": params[3:], "weight_decay": 0.0, **more}]


def train(opt, params, begin, end):
    for step in range(begin, end):
        give_gradients(params, step)
        opt.step()
        opt.zero_grad()


def apart(a, b):
    return max((x.double() - y.double()).abs().max().item() for x, y in zip(a, b))


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def saved(opt):
    """state_dict() after a way through a file."""
    file = io.BytesIO()
    torch.save(opt.state_dict(), file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def same_state(a, b):
    return a["state"].keys() == b["state"].keys() and all(
        a["state"][i].keys() == b["state"][i].keys() and same(a["state"][i].values(), b["state"][i].values())
        for i in a["state"])


def fails(wanted, f):
    try:
        f()
    except (RuntimeError, ValueError) as error:
        assert wanted in str(error), f"wanted '{wanted}', got '{error}'"
        return
    raise AssertionError(f"wanted '{wanted}', but nothing was thrown")


# 100 steps of about lr = 0.01. Each step has a handful of float32 operations on numbers of size 1, which round to 2^-24
# of their size in another order than PyTorch's: 100 * 2^-24 = 6e-6 if all of them add up. A wrong eps, decay or bias
# correction is 1e-4 or more away.
tolerance = 6e-6


def equals_torch_adamw():
    a, b = parameters(), parameters()
    opt, peer = (kind(groups(p), lr=0.01, weight_decay=0.1) for kind, p in ((ours.AdamW, a), (torch.optim.AdamW, b)))
    schedules = [torch.optim.lr_scheduler.CosineAnnealingLR(each, 80) for each in (opt, peer)]
    for step in range(100):
        train(opt, a, step, step + 1)
        train(peer, b, step, step + 1)
        for schedule in schedules:
            schedule.step()
    print(f"AdamW: {apart(a, b):.1e} from torch.optim.AdamW after 100 steps")
    assert apart(a, b) < tolerance
    assert apart(a, parameters()) > 0.1
    # the same names of the state, and about the same state
    mine, theirs = opt.state_dict()["state"], peer.state_dict()["state"]
    assert mine.keys() == theirs.keys()
    for i in mine:
        assert mine[i].keys() == theirs[i].keys() == {"step", "exp_avg", "exp_avg_sq"}
        assert mine[i]["exp_avg"].shape == a[i].shape
        assert apart(mine[i].values(), theirs[i].values()) < tolerance


def equals_torch_sgd():
    a, b = parameters(), parameters()
    options = {"lr": 0.01, "momentum": 0.9, "weight_decay": 0.1, "nesterov": True}
    others = {"momentum": 0.0, "nesterov": False}
    opt, peer = (kind([{"params": p[:3], **others}, {"params": p[3:]}], **options)
                 for kind, p in ((ours.SGD, a), (torch.optim.SGD, b)))
    train(opt, a, 0, 100), train(peer, b, 0, 100)
    print(f"SGD: {apart(a, b):.1e} from torch.optim.SGD after 100 steps")
    assert apart(a, b) < 2 * tolerance  # the momentum sums ten gradients
    buffers = [each.state_dict()["state"][4]["momentum_buffer"] for each in (opt, peer)]
    assert apart(buffers[:1], buffers[1:]) < 2 * tolerance


def equals_formula_lion():
    a, b = parameters(), parameters()
    opt = ours.Lion(a, lr=0.01, betas=(0.9, 0.99), weight_decay=0.1)
    train(opt, a, 0, 50)
    moments = [torch.zeros_like(p) for p in b]
    for step in range(50):
        give_gradients(b, step)
        for p, m in zip(b, moments):
            p.data -= 0.01 * ((0.9 * m + 0.1 * p.grad).sign() + 0.1 * p.data)
            m.lerp_(p.grad, 0.01)
    assert apart(a, b) < tolerance, apart(a, b)


def equals_torch_muon():
    """torch.optim.Muon computes its products in bfloat16, so its steps differ by a few per cent of their size."""
    a, b = parameters(), parameters()
    matrices, vectors = [0, 4], [1, 2, 3]
    opt = ours.Muon([{"params": [a[0]]}, {"params": [a[4]], "nesterov": False},
                     {"params": [a[i] for i in vectors], "lr": 0.01, "weight_decay": 0.2, "matrix": False}],
                    lr=0.02, weight_decay=0.1)
    peers = [torch.optim.Muon([b[0]], lr=0.02, weight_decay=0.1),
             torch.optim.Muon([b[4]], lr=0.02, weight_decay=0.1, nesterov=False),
             torch.optim.AdamW([b[i] for i in vectors], lr=0.01, weight_decay=0.2)]
    start = parameters()
    for step in range(10):
        train(opt, a, step, step + 1)
        give_gradients(b, step)
        for peer in peers:
            peer.step()
    moved = [(x - y).double().norm().item() for x, y in zip(a, start)]
    for i in matrices:
        off = (a[i] - b[i]).double().norm().item()
        assert off < 0.05 * moved[i], (off, moved[i])
    assert apart([a[i] for i in vectors], [b[i] for i in vectors]) < tolerance


def follows_memory_that_moves():
    a, b = parameters(), parameters()
    opt, peer = ours.AdamW(a, lr=0.01), ours.AdamW(b, lr=0.01)
    kept = [(torch.empty_like(p), torch.empty_like(p), p.data) for p in a]
    for step in range(8):
        give_gradients(b, step)
        for p, q, (first, second, home) in zip(a, b, kept):
            p.grad = second if step in (1, 2) else first  # there and back
            p.grad.copy_(q.grad)
            p.data = p.data.clone() if step in (4, 5) else home.copy_(p.data)
        opt.step(), peer.step()
        assert same(a, b), step


def keeps_masters():
    """The values of a 16-bit type are those of float32 training with the same gradients, rounded."""
    for dtype in (torch.float16, torch.bfloat16):
        a = parameters(dtype)
        b = [torch.nn.Parameter(p.detach().float()) for p in a]
        options = {"lr": 1e-4, "weight_decay": 0.01}
        opt, exact = ours.AdamW(a, **options), ours.AdamW(b, **options)
        for step in range(60):
            give_gradients(a, step)
            for p, q in zip(a, b):
                q.grad = p.grad.float()
            opt.step(), exact.step()
        assert same([p.to(dtype) for p in b], a)
        assert same(b, [opt.state_dict()["state"][i]["master"] for i in range(len(a))])
        assert not same(parameters(dtype), a)


def resumes_to_the_same_bits():
    makers = {"sgd": lambda p: ours.SGD([{"params": p[:2], "momentum": 0.0}, {"params": p[2:]}], lr=0.01, momentum=0.9),
              "adamw": lambda p: ours.AdamW(groups(p), lr=0.01, clip_norm=1.0),
              "lion": lambda p: ours.Lion(p, lr=0.01), "lamb": lambda p: ours.Lamb(p, lr=0.01),
              "muon": lambda p: ours.Muon(p, lr=0.01),
              "scaled": lambda p: ours.AdamW(p, lr=0.01, loss_scale=1024.0)}
    for name, make in makers.items():
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            a = parameters(dtype)
            opt = make(a)
            train(opt, a, 0, 7)
            give_gradients(a, 7)
            a[1].grad[3] = math.inf
            opt.step()  # is skipped, and halves the loss scale
            state, values = saved(opt), [p.detach().clone() for p in a]
            scale = opt.loss_scale()
            train(opt, a, 7, 12)

            b = [torch.nn.Parameter(p) for p in values]
            again = make(b)
            again.load_state_dict(state)
            assert same_state(again.state_dict(), state) and again.loss_scale() == scale, name  # before a step, too
            train(again, b, 7, 12)
            assert same(a, b), name
            assert opt.loss_scale() == again.loss_scale() == (512 if name == "scaled" else 1)
            twin = copy.deepcopy(opt)
            assert same_state(opt.state_dict(), again.state_dict()), name

            train(twin, copied := [p for g in twin.param_groups for p in g["params"]], 12, 14)
            train(opt, a, 12, 14)
            assert same(a, copied), name

            c = [torch.nn.Parameter(p) for p in values]
            train(make(c), c, 7, 12)  # without the state
            assert not same(a, c), name


def exchanges_state_with_torch():
    makers = {"AdamW": lambda kind, p: kind(groups(p), lr=0.01),
              "SGD": lambda kind, p: kind(p, lr=0.01, momentum=0.9, dampening=0.1)}
    for name, make in makers.items():
        peer = getattr(torch.optim, name)
        for kinds in ((getattr(ours, name), peer), (peer, getattr(ours, name))):
            a, b = parameters(), parameters()
            first, other = (make(kind, a) for kind in kinds)
            train(first, a, 0, 30)
            other.load_state_dict(saved(first))
            train(other, a, 30, 60)
            train(make(peer, b), b, 0, 60)
            assert apart(a, b) < 2 * tolerance, (name, kinds, apart(a, b))
    # PyTorch keeps the state in the type of the values, and no masters. A step with lr = 0 shows what was taken over.
    a = parameters(torch.bfloat16)
    first, other = torch.optim.AdamW(a), ours.AdamW(a)
    train(first, a, 0, 3)
    start, averages = [p.detach().float() for p in a], [first.state[p]["exp_avg"].float() for p in a]
    other.load_state_dict(saved(first))
    other.param_groups[0]["lr"] = 0.0
    give_gradients(a, 3)
    other.step()
    state = [x for _, x in sorted(other.state_dict()["state"].items())]
    assert same([x["master"] for x in state], start)
    assert same([x["exp_avg"] for x in state],
                [torch.tensor(0.9) * x + torch.tensor(0.1) * p.grad.float() for x, p in zip(averages, a)])


def clips_and_scales():
    a, b = parameters(), parameters()
    opt, peer = ours.AdamW(a, lr=0.01, clip_norm=0.5), torch.optim.AdamW(b, lr=0.01)
    for step in range(50):
        train(opt, a, step, step + 1)
        give_gradients(b, step)
        torch.nn.utils.clip_grad_norm_(b, 0.5)
        peer.step()
    assert apart(a, b) < tolerance, apart(a, b)
    report = opt.report()
    assert (report.step, report.applied, report.learning_rate) == (50, True, 0.01)
    assert report.clip_factor < 0.1 and report.grad_norm > 5

    a = parameters(torch.float16)
    opt = ours.AdamW(a, loss_scale=1024.0)
    assert opt.loss_scale() == 1024
    give_gradients(a, 0)
    a[1].grad[3] = math.inf
    before = [p.detach().clone() for p in a]
    opt.step()
    assert same(a, before) and opt.loss_scale() == 512 and opt.report()[:3] == (0, 1, False)
    give_gradients(a, 0)
    opt.step()
    assert not same(a, before) and opt.report()[:3] == (1, 1, True)


def follows_the_face_of_torch():
    a = parameters()
    opt = ours.AdamW(a[:3], lr=0.01)
    assert opt.step(lambda: a[0].sum()) is not None and not opt.state_dict()["state"]  # no gradient yet

    def closure():
        assert torch.is_grad_enabled()
        opt.zero_grad()
        loss = sum((p * p).sum() for p in a[:3])
        loss.backward()
        return loss
    first = opt.step(closure).item()
    assert opt.step(closure).item() < first

    # A new group keeps the state of the others; the steps count on.
    b, start = [p.detach().clone() for p in a], opt.state_dict()["state"][0]["exp_avg"].clone()
    for step in range(2):
        give_gradients(a, step)
        opt.step()
        start = torch.tensor(0.9) * start + torch.tensor(0.1) * a[0].grad
        if step == 0:
            opt.add_param_group({"params": a[3:], "lr": 0.1})
    state = opt.state_dict()["state"]
    assert torch.equal(state[0]["exp_avg"], start) and state[3]["step"] == state[0]["step"] == 4
    assert not torch.equal(a[3], b[3]) and opt.param_groups[1]["lr"] == 0.1

    # Autograd sees the change of a value that it has saved.
    y = (a[0] * a[0]).sum()
    give_gradients(a, 1)
    opt.step()
    fails("modified by an inplace operation", y.backward)


def refuses():
    def after(change, wanted, dtype=torch.float32, step=True, **options):
        a = parameters(dtype)
        opt = ours.AdamW(a, **options)
        give_gradients(a, 0)
        if step:
            opt.step()
        values = [p.detach().clone() for p in a]
        change(opt, a)
        fails(wanted, opt.step)
        assert same(a, values)

    after(lambda opt, a: setattr(a[1], "grad", None), "had a gradient at an earlier step has none now")
    after(lambda opt, a: None, "must be float32, float16 or bfloat16", torch.float64, step=False)
    after(lambda opt, a: opt.param_groups[0].update(lr=-1.0), "lr must be finite and at least 0, is -1")
    after(lambda opt, a: opt.param_groups[0].update(betas=(1.0, 0.9)), "beta1")
    after(lambda opt, a: setattr(a[0], "data", a[0].data.t().contiguous().t()), "parameter '0' is not contiguous")
    after(lambda opt, a: opt.load_state_dict({"state": {0: {"step": torch.tensor(3.0)}, 1: {"step": torch.tensor(4.0)}},
                                             "param_groups": opt.state_dict()["param_groups"]}),
          "all parameters must have taken the same number of steps, got [3, 4]")
    after(lambda opt, a: opt.load_state_dict({"state": {0: {"step": torch.tensor(3.0), "exp_avg": torch.zeros(7, 6)}},
                                             "param_groups": opt.state_dict()["param_groups"]}),
          "the state of parameter 0 has shape [7, 6], the parameter [7, 5]")
    after(lambda opt, a: opt.param_groups[0].update(amsgrad=True), "amsgrad is not supported")
    after(lambda opt, a: setattr(a[4], "grad", a[4].detach().to_sparse()),
          "the gradient of parameter '4' is not contiguous")
    after(lambda opt, a: None, "clip_norm must be at least 0, is -1", step=False, clip_norm=-1.0)
    mixed = [parameters()[0], parameters(torch.float16)[1]]
    give_gradients(mixed, 0)
    fails("has another type than the first parameter", ours.AdamW(mixed).step)
    a = parameters()
    opt = ours.AdamW(a)
    train(opt, a, 0, 1)
    gradients = [torch.zeros_like(p) for p in a]
    gradients[1] = gradients[1][:2]
    fails("the gradient of parameter '1' has another number of elements",
          lambda: torch.ops.descent.step(opt._of, a, gradients))
    fails("there is no report before the first step", ours.AdamW(mixed).report)
    fails("there is no optimizer 0", lambda: torch.ops.descent.step(0, [], []))
    fails("there is no optimizer 1000000", lambda: torch.ops.descent.report(1000000))


def frees():
    """The library's optimizer goes with its Python object, or when another one takes its place."""
    a = parameters()
    opt = ours.AdamW(a)
    train(opt, a, 0, 1)
    number = opt._of
    torch.ops.descent.report(number)
    opt.load_state_dict(opt.state_dict())
    fails("there is no optimizer", lambda: torch.ops.descent.report(number))
    train(opt, a, 1, 2)
    number = opt._of
    torch.ops.descent.report(number)
    del opt
    fails("there is no optimizer", lambda: torch.ops.descent.report(number))


for law in (equals_torch_adamw, equals_torch_sgd, equals_formula_lion, equals_torch_muon,
            follows_memory_that_moves, keeps_masters, resumes_to_the_same_bits, exchanges_state_with_torch,
            clips_and_scales, follows_the_face_of_torch, refuses, frees):
    law()
print("torch: ok")
