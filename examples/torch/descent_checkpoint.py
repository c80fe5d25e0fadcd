# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""Checkpoints of descent from and to torch.optim.

    import descent_checkpoint as checkpoint
    checkpoint.to_descent("run.safetensors", model.named_parameters(), optimizer, scaler)
    step = checkpoint.from_descent("run.safetensors", model.named_parameters(), optimizer, scaler)

The file is one of save_file() and load_file(), see docs/checkpoints.md: the values, the state of the optimizer, the
number of updates, the groups with their hyperparameters, and the loss scale of a torch.amp.GradScaler. Either side goes
on where the other one stopped. RULES below says what is what.

Not in the file: learning-rate schedules, the factors and the interval of a GradScaler, the option maximize (here the
policy maximize{}), random number generators. Files without hashes are written, and hashes are not read.
"""
import contextlib
import itertools
import json
import math
import operator
import os
import struct
import typing

import safetensors
import safetensors.torch
import torch


class Rule(typing.NamedTuple):
    """A rule of descent, and what it is called in torch.optim."""
    state: dict  # its state there
    options: dict  # its fields there; "betas.0" is the first number of betas
    fixed: dict = {}  # its other fields, with what torch.optim computes
    only_with: dict = {}  # state that there is only if this option is on
    start: dict = {}  # the options with which state starts, if not at 0
    counts: bool = True  # whether each parameter there has the number of its updates


def _same(names):
    return {name: name for name in names.split()}


_moments = {"m": "exp_avg", "v": "exp_avg_sq"}
_adam = _same("lr eps weight_decay") | {"beta1": "betas.0", "beta2": "betas.1"}
_decoupled = {"decoupled": "decoupled_weight_decay"}
_coupled = {"decoupled": False, "decay_by_lr": True}

RULES = {
    "sgd": Rule({"b": "momentum_buffer"}, _same("lr momentum dampening weight_decay nesterov"), {"decoupled": False},
                only_with={"b": "momentum"}, counts=False),
    "adam": Rule(_moments, _adam, {"eps_hat": False, "bias_correction": True}),
    "adamw": Rule(_moments, _adam, {"eps_hat": False, "bias_correction": True, "decay_after": False,
                                    "decay_corrected": False}),
    "amsgrad": Rule(_moments | {"x": "max_exp_avg_sq"}, _adam | _decoupled,
                    {"decay_by_lr": True, "corrected_max": False, "bias_correction": True, "eps_hat": False}),
    "nadam": Rule(_moments, _adam | _decoupled | _same("momentum_decay"), {"eps_hat": False}),
    "radam": Rule(_moments, _adam | _decoupled, {"eps_hat": True}),
    "adamax": Rule({"m": "exp_avg", "u": "exp_inf"}, _adam,
                   {"eps_outside": False, "bias_correction": True, "decoupled": False}),
    "adadelta": Rule({"v": "square_avg", "u": "acc_delta"}, _same("lr rho eps weight_decay"), _coupled),
    "adagrad": Rule({"s": "sum"}, _same("lr lr_decay eps weight_decay") | {"initial": "initial_accumulator_value"},
                    _coupled | {"eps_inside": False}),
    "rmsprop": Rule({"v": "square_avg", "g_": "grad_avg", "b": "momentum_buffer"},
                    _same("lr alpha eps weight_decay momentum centered"),
                    _coupled | {"initial": 0, "eps_inside": False, "lr_inside": False},
                    only_with={"g_": "centered", "b": "momentum"}),
    "rprop": Rule({"g_": "prev", "d": "step_size"},
                  {"lr": "lr", "eta_minus": "etas.0", "eta_plus": "etas.1", "min_step": "step_sizes.0",
                   "max_step": "step_sizes.1"}, start={"d": "lr"}),
    "asgd": Rule({"ax": "ax"}, _same("lr lambd alpha t0 weight_decay")),
    # Not in torch.optim: any class named Lion whose state is exp_avg and whose decay is decoupled.
    "lion": Rule({"m": "exp_avg"}, {"lr": "lr", "beta1": "betas.0", "beta2": "betas.1", "weight_decay": "weight_decay"},
                 {"at_zero": 0}, counts=False),
}
_flags = {"nesterov", "centered", "decoupled_weight_decay"}
_scalars = {"step", "mu_product", "eta", "mu"}  # what torch.optim keeps besides, one number for each parameter
_types = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


def rule_of(optimizer):
    """The name of the rule that equals an optimizer of torch.optim, or of a class derived from one."""
    names = [of.__name__ for of in type(optimizer).__mro__]
    found = next((name for name in names if name.lower() in RULES), None)
    if not found:
        raise ValueError(f"no rule is known that equals {names[0]}")
    if found not in ("Adam", "AdamW"):
        return found.lower()
    kinds = {"amsgrad" if group.get("amsgrad") else
             "adamw" if group.get("decoupled_weight_decay", found == "AdamW") else "adam"
             for group in optimizer.param_groups}
    if len(kinds) > 1:
        raise ValueError(f"the groups need several rules: {' and '.join(sorted(kinds))}")
    return kinds.pop()


# ---- what both directions need

class _Parameter(typing.NamedTuple):
    name: str
    value: torch.Tensor
    group: int
    state: dict


def _parameters(named_parameters, optimizer):
    """The parameters of an optimizer in its order. Others of the model, which it does not train, are left out."""
    names = {id(p): name for name, p in dict(named_parameters).items()}
    states = optimizer.state_dict()["state"]
    every = []
    for g, group in enumerate(optimizer.param_groups):
        for p in group["params"]:
            if id(p) not in names:
                raise ValueError(f"parameter {len(every)} of the optimizer is not among the named parameters")
            every.append(_Parameter(names[id(p)], p, g, states.get(len(every), {})))
    return every


def _option(group, name):
    """An option of a group as a number or a bool."""
    name, _, index = name.partition(".")
    if name in _flags:
        return bool(group.get(name, False))
    return float(group[name][int(index)] if index else group[name])


def _uses(rule, member, group):
    return member not in rule.only_with or bool(group[rule.only_with[member]])


def _struct(layout, rows):
    """A tensor of bytes with one struct in each row."""
    packed = b"".join(struct.pack(layout, *row) for row in rows)
    return torch.frombuffer(bytearray(packed), dtype=torch.uint8).view(len(rows), -1)


def _refuse(path, wrong):
    if wrong:
        raise ValueError(f"{path}: " + "; ".join(wrong))


# ---- from torch.optim

def to_descent(path, named_parameters, optimizer, scaler=None, *, step=None, values=None, shared_scaler=False):
    """Writes the state of an optimizer, and of an enabled GradScaler, as a file that load_file() reads.

    `step` is the number of updates so far, for an optimizer that does not count them: SGD, Lion. Without it 1 is
    written, or 0 if there is no state; only schedules make more of it.
    `values`, torch.bfloat16 or torch.float16, is the type of the values there. The float32 values are then the masters
    of master<float>. States of 16 bits are widened to float32.
    `shared_scaler` says that the loss scale there is a part of its own, a loss_scaler, and not a policy."""
    kind = rule_of(optimizer)
    rule, groups = RULES[kind], optimizer.param_groups
    every = _parameters(named_parameters, optimizer)
    wrong = []
    trained = [p for p in every if p.value.requires_grad] or every
    steps = {int(p.state["step"]) for p in trained if "step" in p.state}
    if step is not None or not steps:
        had = any(isinstance(p.state.get(name), torch.Tensor) for p in every for name in rule.state.values())
        steps.add(int(had) if step is None else step)
    if len(steps) > 1:
        wrong.append(f"all parameters must have taken the same number of steps, got {sorted(steps)}")
    now = max(steps)

    frozen = []
    for g in range(len(groups)):
        train = {p.value.requires_grad for p in every if p.group == g}
        if len(train) > 1:
            wrong.append(f"some parameters of group {g} require a gradient and some do not; descent freezes groups")
        frozen.append(train == {False})

    members = [m for m in rule.state if any(_uses(rule, m, group) for group in groups)]
    state_type = torch.float64 if any(p.value.dtype == torch.float64 for p in every) else torch.float32
    tensors = {"step": torch.tensor([now], dtype=torch.int64)}

    def put(name, x):
        if name in tensors:
            wrong.append(f"two tensors are called '{name}'")
        tensors[name] = x

    if kind == "nadam":
        products = [{float(p.state.get("mu_product", 1)) for p in every if p.group == g} for g in range(len(groups))]
        if any(len(of_group) > 1 for of_group in products):
            wrong.append("the parameters of a group must have the same mu_product")
        put("memory", _struct("<d", [[min(of_group, default=1)] for of_group in products]))
    made_by = f"{kind}, state {'double' if state_type == torch.float64 else 'float'}" + ", master float" * bool(values)
    if scaler is not None and scaler.is_enabled():
        state = scaler.state_dict()
        put("loss_scale", _struct("<fiii", [(state["scale"], state["_growth_tracker"], 1, 0)]))
        made_by += ", dynamic_loss_scale" * (not shared_scaler)
    for p in every:
        put(p.name, p.value.detach().to(values or p.value.dtype))
        if values:
            if p.value.dtype != torch.float32:
                wrong.append(f"'{p.name}' is no master: it is {p.value.dtype}, must be torch.float32")
            put(f"{p.name}.master", p.value.detach())
        for member in members if p.value.numel() else []:
            x = p.state.get(rule.state[member])
            if x is None:
                if now and not frozen[p.group] and _uses(rule, member, groups[p.group]):
                    wrong.append(f"'{p.name}' has no '{rule.state[member]}' after {now} steps")
                start = groups[p.group][rule.start[member]] if member in rule.start else 0
                x = torch.full_like(p.value, float(start), requires_grad=False)
            elif x.shape != p.value.shape or not x.dtype.is_floating_point:
                wrong.append(f"'{rule.state[member]}' of '{p.name}' is {x.dtype} of shape {[*x.shape]}")
            put(f"{p.name}.state.{member}", x.detach().to(state_type))
        unknown = sorted(p.state.keys() - {*rule.state.values(), *_scalars})
        if unknown:
            wrong.append(f"'{p.name}' has a state that {kind} does not have: {', '.join(unknown)}")
    _refuse(path, wrong)

    fields = [{name: _option(group, option) for name, option in rule.options.items()} | rule.fixed for group in groups]
    for of_group, is_frozen in zip(fields, frozen):
        for name, x in of_group.items():
            if not math.isfinite(x):
                of_group[name] = str(x)  # JSON has no word for it
        of_group["frozen"] = is_frozen
    _write(path, {name: x.cpu().contiguous() for name, x in tensors.items()}, {
        "made_by": made_by, "step": str(now), "parameters": json.dumps([[p.name, p.group] for p in every]),
        "groups": json.dumps(fields)})


def _write(path, tensors, metadata):
    """The file replaces another one as a whole."""
    path = os.path.realpath(path)
    beside = f"{path}.{os.getpid()}.tmp"
    try:
        safetensors.torch.save_file(tensors, beside, metadata)
        with open(beside, "rb") as file:
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(beside)


# ---- to torch.optim

def from_descent(path, named_parameters, optimizer, scaler=None, *, convert=False, hyperparameters=True, prefix=""):
    """Gives what is in a file of save_file() to the parameters, an optimizer and an enabled GradScaler. Returns the
    number of updates. Throws ValueError, with nothing changed, if the file does not fit.

    `convert` allows other types than the parameters have; a master is taken before the value that was rounded from it.
    Without `hyperparameters` the options stay as they are, and so does requires_grad, which a frozen group sets.
    `prefix` is "actor." for a part that was saved as named("actor", opt)."""
    kind = rule_of(optimizer)
    rule, groups = RULES[kind], optimizer.param_groups
    every = _parameters(named_parameters, optimizer)
    with safetensors.safe_open(path, framework="pt") as file:
        run = _Reader(file, prefix, convert)
        run.check_made_by(kind)
        run.check_parameters(every, hyperparameters)
        settings = run.settings(rule, groups) if hyperparameters else [{} for _ in groups]
        step = run.number("step", "<q")[0]
        taken = []
        for p in every:
            run.use(p.name)
            value = run.take(f"{p.name}.master" if run.has(f"{p.name}.master") else p.name, p)
            state = {}
            for member, name in rule.state.items():
                run.use(f"{p.name}.state.{member}")  # may be there because another group uses it
                # torch.optim.SGD does not dampen the first gradient: that is when there is no buffer
                if _uses(rule, member, groups[p.group] | settings[p.group]) and (step or kind != "sgd"):
                    has = p.value.numel() > 0  # what is empty has no state here
                    state[name] = run.take(f"{p.name}.state.{member}", p) if has else p.value.detach
            taken.append((p, value, state))
        products = run.number("memory", f"<{len(groups)}d") if kind == "nadam" else ()
        scale = None
        if run.has("loss_scale") or scaler is not None and scaler.is_enabled():
            if scaler is None or not scaler.is_enabled():
                run.wrong.append("there is a loss scale; give an enabled GradScaler")
            scale = run.number("loss_scale", "<fiii")
        run.check_left_over(every)
        _refuse(path, run.wrong)

        with torch.no_grad():
            for group, now in zip(groups, settings):
                frozen = now.pop("frozen", None)
                group.update(now)
                for p in group["params"] if frozen is not None else ():
                    p.requires_grad_(not frozen)
            for p, value, state in taken:
                p.value.copy_(value())
                optimizer.state.pop(p.value, None)
                if state:
                    optimizer.state[p.value] = _scalars_of(kind, step, p, groups[p.group], products) | {
                        name: torch.empty_like(p.value, requires_grad=False).copy_(read())
                        for name, read in state.items()}
        if scale:
            scaler.load_state_dict(scaler.state_dict() | {"scale": scale[0], "_growth_tracker": scale[1]})
    return step


def _scalars_of(kind, step, parameter, group, products):
    """What torch.optim keeps for a parameter besides tensors."""
    scalars = {"step": float(step)} if RULES[kind].counts else {}
    if kind == "nadam":
        scalars["mu_product"] = products[parameter.group]
    if kind == "asgd":
        scalars["eta"] = group["lr"] / (1 + group["lambd"] * group["lr"] * step) ** group["alpha"]
        scalars["mu"] = 1 / max(1, step - group["t0"])
    fused = group.get("fused")
    device = parameter.value.device if kind == "asgd" or group.get("capturable") or fused else "cpu"
    dtype = torch.float32 if fused else None  # the default type
    return {name: torch.tensor(float(x), dtype=dtype, device=device) for name, x in scalars.items()}


def _shapes_fit(a, b):
    """Whether elements mean the same, row by row: one has a single axis, or one has those of the other, split."""
    if math.prod(a) != math.prod(b):
        return False
    a, b = [n for n in a if n != 1], [n for n in b if n != 1]
    in_a, in_b = (set(itertools.accumulate(shape, operator.mul)) for shape in (a, b))
    return len(a) <= 1 or len(b) <= 1 or in_a <= in_b or in_b <= in_a


class _Reader:
    """Reads a file and notes everything that is wrong with it."""

    def __init__(self, file, prefix, convert):
        self.file, self.prefix, self.convert = file, prefix, convert
        self.names, self.used, self.wrong = set(file.keys()), set(), []
        self.metadata = file.metadata() or {}
        if "parts" in self.metadata:
            self.wrong.append("the tensors are in several files; make one of them with collect")

    def has(self, name):
        return self.prefix + name in self.names

    def use(self, name):
        self.used.add(self.prefix + name)

    def check_made_by(self, kind):
        made_by = self.metadata.get(f"{self.prefix}made_by", kind)  # a file of somebody else may say nothing
        rule, *more = made_by.split(", ")
        known = ("state ", "master ", "dynamic_loss_scale", "static_loss_scale")
        if rule != kind or not all(text.startswith(known) for text in more):
            self.wrong.append(f"the run was saved by '{made_by}', which this optimizer, {kind}, cannot continue")

    def check_parameters(self, every, groups_too):
        there = dict(json.loads(self.metadata.get(f"{self.prefix}parameters", "[]")))
        self.wrong += [f"'{name}' is no parameter of the optimizer" for name in there.keys() - {p.name for p in every}]
        self.wrong += [f"'{p.name}' is in group {there[p.name]}, here in group {p.group}" for p in every
                       if groups_too and there.get(p.name, p.group) != p.group]

    def settings(self, rule, groups):
        """The options of each group, and "frozen"."""
        there = json.loads(self.metadata.get(f"{self.prefix}groups", "null"))
        if there is None:
            return [{} for _ in groups]
        if len(there) != len(groups):
            self.wrong.append(f"there are {len(there)} groups, here {len(groups)}")
        return [self.options(rule, *pair) for pair in zip(there, groups)] + [{} for _ in groups[len(there):]]

    def options(self, rule, fields, group):
        now = {"frozen": fields.pop("frozen", False)}
        for field, x in fields.items():
            if field in rule.options:
                name, _, index = rule.options[field].partition(".")
                before = now.get(name, group.get(name))
                if index:
                    now[name] = tuple(float(x) if i == int(index) else old for i, old in enumerate(before))
                elif isinstance(before, torch.Tensor):
                    now[name] = torch.full_like(before, float(x))
                else:
                    now[name] = bool(x) if name in _flags else float(x)
            elif field not in rule.fixed or float(x) != float(rule.fixed[field]):
                self.wrong.append(f"torch.optim does not have {field} = {x}")
        return now

    def take(self, name, p):
        """A function that reads a tensor for a parameter."""
        self.use(name)
        if not self.has(name):
            self.wrong.append(f"there is no '{self.prefix}{name}'")
            return None
        there = self.file.get_slice(self.prefix + name)
        if not _shapes_fit(there.get_shape(), p.value.shape):
            self.wrong.append(f"'{name}' has shape {there.get_shape()}, the parameter {[*p.value.shape]}")
        if _types.get(there.get_dtype()) != p.value.dtype:
            if not self.convert:
                self.wrong.append(f"'{name}' is {there.get_dtype()}, the parameter {p.value.dtype}; see convert")
            elif p.value.dtype in (torch.float16, torch.bfloat16, torch.float32):
                x = self.file.get_tensor(self.prefix + name)
                if beyond := int((x.isfinite() & ~x.to(p.value.dtype).isfinite()).sum()):
                    self.wrong.append(f"'{name}' has {beyond} numbers beyond the range of {p.value.dtype}")
        return lambda: self.file.get_tensor(self.prefix + name).reshape(p.value.shape)

    def number(self, name, layout):
        """The numbers of a small tensor."""
        self.use(name)
        if self.has(name):
            x = self.file.get_tensor(self.prefix + name).contiguous().view(torch.uint8).flatten()
            if x.numel() == struct.calcsize(layout):
                return struct.unpack(layout, bytes(x.tolist()))
        self.wrong.append(f"there is no '{self.prefix}{name}' of {struct.calcsize(layout)} bytes")
        return struct.unpack(layout, bytes(struct.calcsize(layout)))

    def check_left_over(self, every):
        """Tensors of these parameters may not be left over; those of other parts may."""
        left = sorted(self.names - self.used)
        starts = tuple(f"{self.prefix}{p.name}." for p in every) if left else ()
        self.wrong += [f"'{name}' has no place in torch.optim" for name in left if name.startswith(starts)]
