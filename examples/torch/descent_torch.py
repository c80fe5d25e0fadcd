# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""Optimizers of descent for PyTorch: in place on torch's tensors, on its current stream.

    import torch, descent_torch
    torch.ops.load_library("./libdescent_torch.so")  # made by build.py
    opt = descent_torch.AdamW(model.parameters(), lr=1e-3, clip_norm=1.0)

The classes take the place of those in torch.optim: groups, closures, learning-rate schedulers, hooks, state_dict.
Where they differ:

- All parameters of an optimizer are on one device and have one type: float32, or float16 or bfloat16 with float32
  masters.
- All parameters share one count of steps. A parameter is trained from the first step at which it has a gradient; from
  then on it must have one at each step.
- The library has the state. `state` has copies on the CPU, made by the last state_dict().
- A step with a non-finite gradient changes nothing; report() says so.
- clip_norm limits the norm of all gradients together. loss_scale > 0 is the first value of a dynamic loss scale, for
  float16: call (loss * opt.loss_scale()).backward().
"""
import copy
import typing
import weakref

import torch


class Report(typing.NamedTuple):
    """Steps applied and skipped so far, whether the last one was applied, and its figures."""
    step: int
    skipped: int
    applied: bool
    learning_rate: float
    loss_scale: float
    grad_norm: float
    clip_factor: float


class Optimizer(torch.optim.Optimizer):
    """What the classes below share. `rule` is a rule of the C interface; the options of a group are its fields."""
    rule = ""
    fields = {"betas": ("beta1", "beta2")}  # options that are not fields of the same name
    slots = {"state.m": "exp_avg", "state.v": "exp_avg_sq"}  # the names of the state in torch.optim
    _destroy = None

    def __init__(self, params, clip_norm, loss_scale, **defaults):
        self._options = (float(clip_norm), float(loss_scale))
        self._replace()
        super().__init__(params, defaults)

    def _replace(self, of=0, trained=(), settings=(), stream=None):
        """Another optimizer of the library, or none, takes the place of the one that there is."""
        if self._destroy:
            self._destroy()
        self._of = of  # its number; 0: none
        self._destroy = weakref.finalize(self, torch.ops.descent.destroy, of) if of else None
        self._trained = list(trained)  # its parameters
        self._sent = list(settings)  # the settings of its groups
        self._stream = stream

    # ---- options

    def _settings(self, group):
        """The fields of a group's rule and their values."""
        found = {}
        for unknown in ("amsgrad", "maximize"):  # a state of torch.optim may ask for them
            if group.get(unknown):
                raise ValueError(f"{unknown} is not supported")
        for option in self.defaults:
            value = group[option]
            names = self.fields.get(option, (option,))
            values = value if isinstance(value, (list, tuple)) else [value] * len(names)
            found.update((name, float(x)) for name, x in zip(names, values, strict=True))
        return found

    def _matrix_columns(self, p, group):
        return 1

    # ---- the library's optimizer

    def _make(self, trained):
        """Makes the library's optimizer for these parameters, and gives it the state that there is."""
        self._fetch()
        used = {id(p) for p in trained}
        every = [(p, g, group) for g, group in enumerate(self.param_groups) for p in group["params"]]
        numbered = [(i, *rest) for i, rest in enumerate(every) if id(rest[0]) in used]
        known = dict(self.param_groups[0].get("pieces", {}))
        steps = set()
        for i, p, _, _ in numbered:
            state = self.state.get(p, {})
            if state:
                steps.add(int(state.get("step", 1)))  # torch.optim.SGD does not count
            for part in [*self.slots, "master"]:
                x = state.get(self.slots.get(part, part))
                if x is not None and x.shape != p.shape:
                    raise ValueError(f"the state of parameter {i} has shape {[*x.shape]}, the parameter {[*p.shape]}")
                if x is not None:
                    known[f"{i}.{part}"] = _bytes(x.float())
        if len(steps) > 1:
            raise ValueError(f"all parameters must have taken the same number of steps, got {sorted(steps)}")
        if steps:
            known["step"] = _bytes(torch.tensor([*steps]))
        # Memory for state is kept for what this group needs.
        first = self._settings(max(self.param_groups, key=lambda group: group.get("momentum", 0)))
        stream = torch.cuda.current_stream(trained[0].device) if trained[0].is_cuda else None
        of = torch.ops.descent.create(
            self.rule, list(first), list(first.values()), [str(i) for i, _, _, _ in numbered],
            [p for _, p, _, _ in numbered], [p.grad for _, p, _, _ in numbered],
            [self._matrix_columns(p, group) for _, p, _, group in numbered], [g for _, _, g, _ in numbered],
            *self._options, stream.cuda_stream if stream else 0)
        self._replace(of, trained, [first] * len(self.param_groups), stream)
        pieces = dict(zip(*torch.ops.descent.save(of)))
        pieces |= {name: x for name, x in known.items() if name in pieces}
        try:
            torch.ops.descent.load(of, list(pieces), list(pieces.values()))
        except RuntimeError:
            self._replace()  # the state there was is still in `state`
            raise

    def _fetch(self):
        """Copies the library's state into `state`, and what belongs to no parameter into the first group."""
        if not self._of:
            return
        every = [p for group in self.param_groups for p in group["params"]]
        pieces = dict(zip(*torch.ops.descent.save(self._of)))
        del pieces["made_by"]
        step = float(pieces.pop("step").view(torch.int64))
        for p in self._trained:
            self.state[p] = {"step": torch.tensor(step)}
        rest = {}
        for name, piece in pieces.items():
            number, _, part = name.partition(".")
            if number.isdecimal():
                p = every[int(number)]
                self.state[p][self.slots.get(part, part)] = piece.view(torch.float32).view(p.shape)
            else:
                rest[name] = piece
        self.param_groups[0].update(pieces=rest, loss_scale=torch.ops.descent.loss_scale(self._of))

    # ---- the face of torch.optim.Optimizer

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        trained = [p for group in self.param_groups for p in group["params"] if p.grad is not None]
        if not trained:
            return loss
        if len(trained) != len(self._trained) or any(a is not b for a, b in zip(trained, self._trained)):
            there = {id(p) for p in trained}
            if any(id(p) not in there for p in self._trained):
                raise RuntimeError("a parameter that had a gradient at an earlier step has none now; call "
                                   "zero_grad(set_to_none=False), or give such parameters an optimizer of their own")
            self._make(trained)
        for g, group in enumerate(self.param_groups):
            now = self._settings(group)
            if now != self._sent[g]:
                for name, value in now.items():
                    torch.ops.descent.set(self._of, g, name, value)
                self._sent[g] = now
        stream = torch.cuda.current_stream(trained[0].device) if self._stream else None
        if stream != self._stream:
            self._stream.wait_stream(stream)
        torch.ops.descent.step(self._of, trained, [p.grad for p in trained])
        if stream != self._stream:
            stream.wait_stream(self._stream)
        torch.autograd.graph.increment_version(trained)
        return loss

    def state_dict(self):
        self._fetch()
        return super().state_dict()

    def load_state_dict(self, state_dict):
        """Takes what state_dict() of this class or of its namesake in torch.optim gave. If it has no masters, the
        values are the masters."""
        super().load_state_dict(state_dict)
        # PyTorch has rounded the state to the parameters' type.
        saved = [i for group in state_dict["param_groups"] for i in group["params"]]
        for i, p in zip(saved, [p for group in self.param_groups for p in group["params"]]):
            if i in state_dict["state"]:
                self.state[p] = copy.deepcopy(state_dict["state"][i])
        self._replace()

    def __getstate__(self):
        self._fetch()
        return {**super().__getstate__(), "_options": self._options}

    def __setstate__(self, state):
        self._replace()
        super().__setstate__(state)
        self.defaults.pop("differentiable", None)  # it comes from there

    # ---- more

    def report(self):
        """Waits for the stream."""
        if not self._of:
            raise RuntimeError("there is no report before the first step")
        r = torch.ops.descent.report(self._of)
        return Report(int(r[0]), int(r[1]), bool(r[2]), *r[3:])

    def loss_scale(self):
        """The factor for the loss of the next step. Waits for the stream."""
        if self._of:
            return torch.ops.descent.loss_scale(self._of)
        return self.param_groups[0].get("loss_scale", self._options[1] or 1.0)


def _bytes(x):
    return x.cpu().contiguous().view(-1).view(torch.uint8)


class SGD(Optimizer):
    """torch.optim.SGD."""
    rule, slots = "sgd", {"state.b": "momentum_buffer"}

    def __init__(self, params, lr=1e-3, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, *,
                 clip_norm=0.0, loss_scale=0.0):
        super().__init__(params, clip_norm, loss_scale, lr=lr, momentum=momentum, dampening=dampening,
                         weight_decay=weight_decay, nesterov=nesterov)


class AdamW(Optimizer):
    """torch.optim.AdamW, without amsgrad."""
    rule = "adamw"

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, *, clip_norm=0.0,
                 loss_scale=0.0):
        super().__init__(params, clip_norm, loss_scale, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)


class Lamb(Optimizer):
    """LAMB: You et al. 2020. Each tensor is a layer."""
    rule = "lamb"

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.0, *, clip_norm=0.0,
                 loss_scale=0.0):
        super().__init__(params, clip_norm, loss_scale, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)


class Lion(Optimizer):
    """Lion: Chen et al. 2023."""
    rule = "lion"

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0, *, clip_norm=0.0, loss_scale=0.0):
        super().__init__(params, clip_norm, loss_scale, lr=lr, betas=betas, weight_decay=weight_decay)


class Muon(Optimizer):
    """torch.optim.Muon for matrices, AdamW for all other parameters. `lr` and `weight_decay` are for both, so give the
    others a group of their own. A tensor of more dimensions is a matrix of its first dimension and the rest. Groups of
    embeddings and output layers say "matrix": False."""
    rule = "muon"
    fields = Optimizer.fields | {"lr": ("lr", "matrix.lr"), "weight_decay": ("weight_decay", "matrix.weight_decay"),
                                 "momentum": ("matrix.momentum",), "nesterov": ("matrix.nesterov",), "matrix": ()}
    slots = Optimizer.slots | {"matrix.m": "momentum_buffer"}

    def __init__(self, params, lr=1e-3, weight_decay=0.1, momentum=0.95, nesterov=True, betas=(0.9, 0.999), eps=1e-8,
                 *, matrix=True, clip_norm=0.0, loss_scale=0.0):
        super().__init__(params, clip_norm, loss_scale, lr=lr, weight_decay=weight_decay, momentum=momentum,
                         nesterov=nesterov, betas=betas, eps=eps, matrix=matrix)

    def _matrix_columns(self, p, group):
        return p.numel() // len(p) if p.dim() > 1 and len(p) and group["matrix"] else 1
