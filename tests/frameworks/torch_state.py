# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: torch_state.py program     (the program is made of torch_state.cpp; PYTHONPATH names examples/torch)

Runs that move between torch.optim and descent, in both directions, equal runs that stay. On the CPU."""
import json
import math
import pathlib
import subprocess
import sys
import tempfile

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

import safetensors
import safetensors.torch
import torch

import descent_checkpoint as checkpoint

program = sys.argv[1]
scratch = tempfile.TemporaryDirectory(prefix="torch_state.")
folder = pathlib.Path(scratch.name)
# The names, numbers of elements and groups of torch_state.cpp. The formulas are those of tests/reference/problem.py.
tensors = {"net.0.weight": ((3, 2, 2), 0), "net.0.bias": ((5,), 1), "scale": ((), 1)}
steps, half = 20, 10


class Lion(torch.optim.Optimizer):
    """Like Lion elsewhere: the state is exp_avg."""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                m = self.state[p].setdefault("exp_avg", torch.zeros_like(p))
                beta1, beta2 = group["betas"]
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_(m.lerp(p.grad, 1 - beta1).sign(), alpha=-group["lr"])
                m.lerp_(p.grad, 1 - beta2)


optim = torch.optim
adam = {"lr": 0.02, "betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.1}
# The rule of descent, the class, options that neither side may change, the options of the groups, and the fields that
# decide which state there is here.
cases = [
    ("sgd", optim.SGD, {}, {"lr": 0.1, "weight_decay": 0.1}, {}, {}),
    ("sgd", optim.SGD, {}, {"lr": 0.1, "momentum": 0.9, "dampening": 0.3}, {"weight_decay": 0.1}, {"momentum": 1}),
    ("sgd", optim.SGD, {}, {"lr": 0.1, "momentum": 0.9, "nesterov": True},
     {"momentum": 0.0, "nesterov": False}, {"momentum": 1}),
    ("adam", optim.Adam, {}, adam, {}, {}),
    ("adamw", optim.AdamW, {}, adam, {"weight_decay": 0.0}, {}),
    ("adamw", optim.Adam, {"decoupled_weight_decay": True}, adam, {}, {}),
    ("adamw", optim.AdamW, {"fused": True}, adam, {}, {}),
    ("amsgrad", optim.Adam, {"amsgrad": True}, adam, {}, {}),
    ("amsgrad", optim.AdamW, {"amsgrad": True}, adam, {}, {}),
    ("nadam", optim.NAdam, {}, adam | {"momentum_decay": 0.05}, {}, {}),
    ("nadam", optim.NAdam, {}, adam | {"decoupled_weight_decay": True}, {"betas": (0.9, 0.99)}, {}),
    ("radam", optim.RAdam, {}, adam, {"decoupled_weight_decay": True, "betas": (0.8, 0.6)}, {}),
    ("adamax", optim.Adamax, {}, adam, {}, {}),
    ("adadelta", optim.Adadelta, {}, {"lr": 0.7, "rho": 0.8, "eps": 1e-3, "weight_decay": 0.1}, {}, {}),
    ("adagrad", optim.Adagrad, {}, {"lr": 0.1, "lr_decay": 0.05, "eps": 0.01, "weight_decay": 0.1},
     {"initial_accumulator_value": 0.3}, {}),
    ("rmsprop", optim.RMSprop, {}, {"lr": 0.01, "alpha": 0.9}, {"weight_decay": 0.05}, {}),
    ("rmsprop", optim.RMSprop, {}, {"lr": 0.01, "momentum": 0.8}, {"momentum": 0.0}, {"momentum": 1}),
    ("rmsprop", optim.RMSprop, {}, {"lr": 0.01, "momentum": 0.9, "centered": True}, {"centered": False},
     {"momentum": 1, "centered": 1}),
    ("rprop", optim.Rprop, {}, {"lr": 0.03, "etas": (0.85, 1.6), "step_sizes": (0.01, 0.05)}, {}, {}),
    ("asgd", optim.ASGD, {}, {"lr": 0.1, "lambd": 0.05, "alpha": 0.6, "t0": 5.0, "weight_decay": 0.02}, {}, {}),
    ("lion", Lion, {}, {"lr": 0.01, "betas": (0.8, 0.95), "weight_decay": 0.1}, {}, {}),
]


def formula(shape, of):
    return torch.tensor([of(i) for i in range(math.prod(shape))], dtype=torch.float64).reshape(shape)


def start(k, shape):
    return formula(shape, lambda i: ((i * 7 + k * 3) % 11 - 5) / 8)


def gradient(k, shape, t):
    return formula(shape, lambda i: ((i * 37 + t * 101 + k * 59) % 257 - 128) / 256)


def parameters(dtype):
    return {name: torch.nn.Parameter(start(k, shape).to(dtype)) for k, (name, (shape, _)) in enumerate(tensors.items())}


def make(kind, named, common, first=None, second=None):
    """An optimizer with two groups. Without their options, they have to come from a file."""
    groups = [{"params": [p for name, p in named.items() if tensors[name][1] == g]} | (options or {})
              for g, options in enumerate((first, (first or {}) | (second or {})))]
    return kind(groups, lr=0.5, **common)


def train(named, optimizer, first, count, scaler=None):
    for t in range(first, first + count):
        for k, p in enumerate(named.values()):
            p.grad = gradient(k, p.shape, t).to(p.dtype) if p.requires_grad else None
        if scaler is None:
            optimizer.step()
            continue
        scaler.scale(torch.zeros(()))  # it makes its state at the first loss
        for p in named.values():
            p.grad *= scaler.get_scale()
        if t % 5 == 3:
            named["net.0.bias"].grad[2] = math.inf
        scaler.step(optimizer)
        scaler.update()


def here(rule, dtype, file, first, count, fields):
    """Trains with descent."""
    out = folder / f"after_{first + count}.{file.name}"
    subprocess.run([program, rule, dtype, file, out, str(first), str(count),
                    *(f"{name}={x}" for name, x in fields.items())], check=True)
    return out


def state_of(named, optimizer):
    """Values and state, each as one tensor of float64."""
    every = {}
    for name, p in named.items():
        for part, x in {"value": p.detach(), **optimizer.state.get(p, {})}.items():
            every[f"{name}.{part}"] = x.detach().double().flatten()
    return every


class Difference:
    """The largest difference of values and state, and that of the values relative to the longest way from the start."""

    def __init__(self, a, b):
        assert a.keys() == b.keys(), f"{sorted(a)} and {sorted(b)}"
        self.parts = {name: (a[name] - b[name]).abs().max().item() for name in a}
        self.most = max(self.parts.values())
        self.way = 0.0
        for k, (name, (shape, _)) in enumerate(tensors.items()):
            way = (b[f"{name}.value"] - start(k, shape).flatten()).abs().max().item()
            self.way = max(self.way, self.parts[f"{name}.value"] / max(way, 1e-300))

    def within(self, dtype):
        """The tolerances of tests/rules/reference_torch_test.cpp."""
        return self.most <= 1e-5 if dtype == "float" else self.most <= 1e-13 and self.way <= 1e-9


def fails(wanted, f):
    try:
        f()
    except ValueError as error:
        assert wanted in str(error), f"wanted '{wanted}', got '{error}'"
        return
    raise AssertionError(f"wanted '{wanted}', but nothing was thrown")


def moves(rule, kind, common, first, second, fields, dtype):
    """Returns the largest differences of runs that moved from runs that did not."""
    of = torch.float32 if dtype == "float" else torch.float64

    def fresh(with_options):
        named = parameters(of)
        return named, make(kind, named, common, *((first, second) if with_options else ()))

    stayed = fresh(True)
    begin, middle = folder / "begin", folder / "middle"
    checkpoint.to_descent(begin, stayed[0], stayed[1])
    train(*stayed, 1, steps)
    there = state_of(*stayed)

    def from_here(file):
        """In an optimizer without the options."""
        now = fresh(False)
        step = checkpoint.from_descent(file, now[0].items(), now[1])
        return step, now

    step, now = from_here(here(rule, dtype, begin, 1, steps, fields))
    assert step == steps
    for p, other in zip(now[0].values(), stayed[0].values()):
        for name, x in stayed[1].state[other].items():
            assert (x.dtype, x.shape) == (now[1].state[p][name].dtype, now[1].state[p][name].shape), name
    ours = state_of(*now)
    found = [Difference(ours, there)]  # neither has moved

    now = fresh(True)
    train(*now, 1, half)
    checkpoint.to_descent(middle, now[0].items(), now[1], step=half)
    _, then = from_here(here(rule, dtype, middle, half + 1, steps - half, fields))
    found += [Difference(state_of(*then), other) for other in (there, ours)]

    step, now = from_here(begin)
    assert step == 0
    train(*now, 1, steps)
    found.append(Difference(state_of(*now), there))

    step, now = from_here(here(rule, dtype, begin, 1, half, fields))
    assert step == half
    train(*now, half + 1, steps - half)
    found += [Difference(state_of(*now), other) for other in (there, ours)]

    # The test can fail: without its state a run is another one.
    if any("exp_avg" in name or "buffer" in name or "avg" in name or "sum" in name or "prev" in name for name in there):
        now = fresh(True)
        train(*now, 1, half)
        forgetful = make(kind, now[0], common, first, second)
        train(now[0], forgetful, half + 1, steps - half)
        assert Difference({n: x for n, x in state_of(now[0], forgetful).items() if n.endswith(".value")},
                          {n: x for n, x in there.items() if n.endswith(".value")}).most > 1e-3, rule
    return found


def every_rule_moves():
    for dtype, of in (("float", torch.float32), ("double", torch.float64)):
        torch.set_default_dtype(of)  # the type in which PyTorch keeps NAdam's product, and ASGD's eta and mu
        for rule, kind, common, first, second, fields in cases:
            found = moves(rule, kind, common, first, second, fields, dtype)
            print(f"{dtype:6} {rule:8} {kind.__name__:8} stayed {found[0].most:.1e}, to descent {found[1].most:.1e}, "
                  f"to torch {found[4].most:.1e}")
            for difference in found:
                assert difference.within(dtype), f"{rule}, {dtype}: {difference.parts}"
    torch.set_default_dtype(torch.float32)


def adamw(dtype=torch.float32, **common):
    """Parameters and an optimizer with other options than it has by default."""
    named = parameters(dtype)
    return named, make(optim.AdamW, named, common, adam, {"weight_decay": 0.0})


def plain(dtype=torch.float32):
    named = parameters(dtype)
    return named, make(optim.AdamW, named, {})


def load(file, now, *more, **options):
    return checkpoint.from_descent(file, now[0].items(), now[1], *more, **options)


def save(now, *more, **options):
    file = folder / "saved"
    checkpoint.to_descent(file, now[0].items(), now[1], *more, **options)
    return file


def close(a, b):
    difference = Difference(state_of(*a), state_of(*b))
    assert difference.within("float"), difference.parts


def masters_are_the_values():
    stayed = adamw()
    train(*stayed, 1, steps)
    there = adamw()
    train(*there, 1, half)
    file = save(there, values=torch.bfloat16)
    assert safetensors.torch.load_file(file)["scale"].dtype == torch.bfloat16
    file = here("adamw", "masters", file, half + 1, steps - half, {})
    now = plain()
    assert load(file, now) == steps
    close(now, stayed)

    now = plain()
    file = here("adamw", "masters", save(adamw(), values=torch.bfloat16), 1, half, {})
    load(file, now)
    train(*now, half + 1, steps - half)
    close(now, stayed)

    low = plain(torch.bfloat16)
    fails("'net.0.bias.state.v' is F32, the parameter torch.bfloat16; see convert", lambda: load(file, low))
    load(file, low, convert=True)
    there = safetensors.torch.load_file(file)
    for name, p in low[0].items():
        assert torch.equal(p.detach().flatten(), there[name].flatten()), name
        assert low[1].state[p]["exp_avg"].dtype == torch.bfloat16
    # States of 16 bits are widened.
    train(*low, 1, 1)
    there = safetensors.torch.load_file(save(low))
    for name, p in low[0].items():
        assert there[f"{name}.state.m"].dtype == torch.float32
        assert torch.equal(there[f"{name}.state.m"], low[1].state[p]["exp_avg"].float())
    fails("'scale' is no master: it is torch.bfloat16", lambda: save(low, values=torch.float16))


def loss_scales_move():
    def scaler():
        return torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=4)

    def same(a, b):
        for name in ("scale", "_growth_tracker"):
            assert a.state_dict()[name] == b.state_dict()[name], (a.state_dict(), b.state_dict())

    stayed, scale = adamw(), scaler()
    train(*stayed, 1, steps, scale)
    assert stayed[1].state[stayed[0]["scale"]]["step"] == 16  # four were skipped
    now, then = adamw(), scaler()
    train(*now, 1, half, then)
    assert then.state_dict()["_growth_tracker"] == 2
    file = here("adamw", "scaled", save(now, then), half + 1, steps - half, {})
    now, then = plain(), scaler()
    assert load(file, now, then) == 16
    close(now, stayed)
    same(then, scale)

    now, then = plain(), scaler()
    assert load(here("adamw", "scaled", save(adamw(), then), 1, half, {}), now, then) == 8
    assert then.state_dict()["_growth_tracker"] == 2
    train(*now, half + 1, steps - half, then)
    close(now, stayed)
    same(then, scale)

    shared = save(now, then, shared_scaler=True)
    with safetensors.safe_open(shared, framework="pt") as there:
        assert there.metadata()["made_by"] == "adamw, state float"
    assert load(shared, plain(), other := scaler()) == 16
    same(then, other)
    off = torch.amp.GradScaler("cpu", enabled=False)
    fails("there is a loss scale; give an enabled GradScaler", lambda: load(file, now))
    fails("there is a loss scale; give an enabled GradScaler", lambda: load(file, now, off))
    fails("there is no 'loss_scale' of 16 bytes", lambda: load(save(stayed, off), now, then))


def frozen_groups_stay():
    def frozen_at_5(end):
        now = adamw()
        train(*now, 1, 5)
        for name, (_, group) in tensors.items():
            now[0][name].requires_grad_(group == 0)
        train(*now, 6, end - 5)
        return now

    stayed, now = frozen_at_5(steps), plain()
    load(here("adamw", "float", save(frozen_at_5(half)), half + 1, steps - half, {}), now)
    for name, (_, group) in tensors.items():
        p, other = now[0][name], stayed[0][name]
        assert p.requires_grad == (group == 0)
        assert torch.equal(p, other) if group else (p - other).abs().max() <= 1e-5, name
    load(save(adamw()), now)
    assert all(p.requires_grad for p in now[0].values())
    now[0]["scale"].requires_grad_(False)
    fails("some parameters of group 1 require a gradient and some do not", lambda: save(now))


def rewritten(file, change):
    """The file after change(tensors, metadata)."""
    with safetensors.safe_open(file, framework="pt") as there:
        metadata = there.metadata()
    every = safetensors.torch.load_file(file)
    change(every, metadata)
    other = folder / "rewritten"
    safetensors.torch.save_file(every, other, metadata)
    return other


def other_files_are_read():
    there = adamw()
    train(*there, 1, half)
    file = save(there)

    def add_prefix(every, metadata):
        for of in (every, metadata):
            for name in [*of]:
                of[f"actor.{name}"] = of.pop(name)
        every["epoch"] = torch.ones(1)

    now = plain()
    assert load(rewritten(file, add_prefix), now, prefix="actor.") == half
    close(now, there)
    assert now[1].param_groups[1]["betas"] == adam["betas"] and now[1].param_groups[1]["weight_decay"] == 0

    now = plain()
    load(rewritten(file, lambda _, metadata: metadata.clear()), now)  # of somebody else: it has the names alone
    close(now, there)
    assert now[1].param_groups[1]["betas"] == (0.9, 0.999)
    now = plain()
    load(file, now, hyperparameters=False)
    assert now[1].param_groups[1]["betas"] == (0.9, 0.999)

    now = plain()
    for group in now[1].param_groups:
        group["lr"] = torch.tensor(1.0, dtype=torch.float64)
    load(file, now)
    assert [group["lr"].item() for group in now[1].param_groups] == [adam["lr"]] * 2

    def momentum():
        named = parameters(torch.float32)
        return named, optim.SGD(named.values(), lr=0.1, momentum=0.9)

    now = momentum()
    train(*now, 1, 1)
    assert load(save(momentum()), now) == 0 and not any(now[1].state.values())  # the first gradient is not dampened

    named = {"empty": torch.nn.Parameter(torch.ones(0, 3)), "one": torch.nn.Parameter(torch.ones(1))}
    empty = named, optim.AdamW(named.values())
    for p in named.values():
        p.grad = torch.ones_like(p)
    for step in range(1, 3):
        empty[1].step()
        assert load(save(empty), empty) == step


def what_does_not_fit_is_refused():
    there = adamw()
    train(*there, 1, half)
    file = save(there)

    def refused(wanted, change=None, now=None, **options):
        now = now or plain()
        train(*now, 1, 1)
        before, groups = state_of(*now), repr(now[1].param_groups)
        fails(wanted, lambda: load(rewritten(file, change) if change else file, now, **options))
        assert Difference(state_of(*now), before).most == 0 and repr(now[1].param_groups) == groups, wanted

    def set_field(name, x):
        def change(_, metadata):
            fields = json.loads(metadata["groups"])
            fields[1][name] = x
            metadata["groups"] = json.dumps(fields)
        return change

    refused("the run was saved by 'adamw, state float', which this optimizer, adam, cannot continue",
            now=(named := parameters(torch.float32), make(optim.Adam, named, {})))
    for more in ("ema float", "master_remainder", "lookahead float"):
        refused("cannot continue",
                lambda _, metadata, more=more: metadata.update(made_by=f"adamw, state float, {more}"))
    refused("torch.optim does not have decay_after = True", set_field("decay_after", True))
    refused("torch.optim does not have width = 3", set_field("width", 3))
    refused("there is no 'scale.state.v'", lambda every, _: every.pop("scale.state.v"))
    refused("there is no 'step' of 8 bytes", lambda every, _: every.pop("step"))
    refused("'scale.average' has no place in torch.optim",
            lambda every, _: every.update({"scale.average": torch.ones(1)}))
    refused("'scale' has shape [2], the parameter []", lambda every, _: every.update(scale=torch.ones(2)))
    refused("'net.0.weight' has shape [2, 3, 2], the parameter [3, 2, 2]",
            lambda every, _: every.update({"net.0.weight": every["net.0.weight"].reshape(2, 3, 2)}))
    refused("'net.0.bias.state.v' has 2 numbers beyond the range of torch.float16", now=plain(torch.float16),
            convert=True, change=lambda every, _: every.update(
                {"net.0.bias.state.v": torch.tensor([1e6, -1e6, math.inf, math.nan, 65504.0])}))
    refused("'scale' is F32, the parameter torch.float64; see convert", now=plain(torch.float64))
    refused("'more' is no parameter of the optimizer",
            lambda _, metadata: metadata.update(parameters=json.dumps([["more", 0]])))
    refused("'scale' is in group 0, here in group 1",
            lambda _, metadata: metadata.update(parameters=json.dumps([["scale", 0]])))
    refused("there are 1 groups, here 2", lambda _, metadata: metadata.update(groups="[{}]"))
    refused("the tensors are in several files", lambda _, metadata: metadata.update(parts="[]"))
    refused("'net.0.bias' has shape [6], the parameter [5]; there is no 'scale.state.v'",  # all of it at once
            lambda every, _: (every.pop("scale.state.v"), every.update({"net.0.bias": torch.ones(6)})))

    kept = file.read_bytes()

    def not_written(wanted, now, **options):
        fails(wanted, lambda: checkpoint.to_descent(file, now[0].items(), now[1], **options))
        assert file.read_bytes() == kept

    late = adamw()
    train(*late, 1, 1)
    late[1].state[late[0]["scale"]]["step"] = torch.tensor(4.0)
    not_written("all parameters must have taken the same number of steps, got [1, 4]", late)
    not_written("all parameters must have taken the same number of steps, got [7, 10]", there, step=7)
    late[1].state.pop(late[0]["scale"])
    not_written("'scale' has no 'exp_avg' after 1 steps; 'scale' has no 'exp_avg_sq' after 1 steps", late)
    there[1].state[there[0]["scale"]]["more"] = 1
    named = parameters(torch.float32)
    not_written("'scale' has a state that adamw does not have: more", there)
    not_written("two tensors are called 'step'", ({"step": named["scale"]}, optim.AdamW([named["scale"]])))
    not_written("no rule is known that equals SparseAdam", (named, optim.SparseAdam(named.values())))
    several = [{"params": [named["scale"]], "amsgrad": True}, {"params": [named["net.0.bias"]]}]
    not_written("the groups need several rules: adamw and amsgrad", (named, optim.AdamW(several)))
    not_written("parameter 1 of the optimizer is not among the named parameters",
                ({"scale": named["scale"]}, optim.AdamW([named["scale"], named["net.0.bias"]])))
    assert sorted(path.name for path in folder.iterdir() if path.suffix == ".tmp") == []


for law in (every_rule_moves, masters_are_the_values, loss_scales_move, frozen_groups_stay, other_files_are_read,
            what_does_not_fit_is_refused):
    law()
print("torch_state: ok")
