"""PyTorch as a contestant, in the protocol of drive.py.    usage: torch_peer.py fused|foreach

Recipes that torch.optim does not have in one call are the chain of public functions that does the same.
"""

import json
import os
import re
import sys
import time

import torch

lr, momentum, beta1, beta2, eps, decay = 1e-3, 0.9, 0.9, 0.999, 1e-8, 0.1  # as settings.hpp
clip, ema, loss_scale = 1.0, 0.99, 1024.0


def resident(which):
    with open("/proc/self/status", encoding="ascii") as status:
        return int(re.search(rf"^{which}:\s*(\d+)", status.read(), re.M).group(1)) * 1024


class Contest:
    """Tensors of a case, as views of one arena."""

    def __init__(self, case_file, table_file, stored, scale):
        with open(case_file, encoding="ascii") as lines:
            words = lines.read().split()
        align, zeros, pairs = int(words[1]), float(words[3]), [int(x) for x in words[4:]]
        self.counts = [n for n, times in zip(pairs[::2], pairs[1::2]) for _ in range(times)]
        self.begins, end = [], 0
        for n in self.counts:
            self.begins.append(end)
            end += (n + align - 1) // align * align
        with open(table_file, "rb") as table:
            values, gradients = torch.frombuffer(bytearray(table.read()), dtype=torch.float32).chunk(2)
        index = torch.arange(len(gradients)) // 2 % 100
        gradients = torch.where(index < 100 * zeros, torch.zeros(()), gradients)
        self.elements = sum(self.counts)
        self.source = gradients * scale
        self.w = self.views(torch.zeros(end, dtype=stored))
        self.g = self.views(torch.zeros(end, dtype=stored))
        self.fill(self.w, values)
        self.refill()
        with open("/proc/self/clear_refs", "w", encoding="ascii") as clear:
            clear.write("5")
        self.marked = resident("VmRSS")

    def views(self, arena):
        return [arena[b : b + n] for b, n in zip(self.begins, self.counts)]

    def fill(self, tensors, table):
        """Tensor by tensor with the numbers of the table, over and over."""
        size, first = len(table), 0
        twice = torch.cat((table, table))
        for x in tensors:
            for i in range(0, len(x), size):
                part = x[i : i + size]
                begin = (first + i) % size
                part.copy_(twice[begin : begin + len(part)])
            first += len(x)

    def refill(self):
        self.fill(self.g, self.source)


class Recipe(Contest):
    def __init__(self, name, mode, case_file, table_file):
        stored = torch.half if "half" in name else torch.bfloat16 if "bf16" in name else torch.float32
        scaled = name == "adamw_half_o2"
        super().__init__(case_file, table_file, stored, loss_scale if scaled else 1)
        self.zeroes = scaled
        self.p = [x.float() for x in self.w] if stored != torch.float32 and name != "adamw_bf16_sr" else self.w
        self.copies = self.p is not self.w
        for p, w, g in zip(self.p, self.w, self.g):
            p.grad = torch.empty_like(p) if self.copies else g
        kind = {mode: True}
        if name == "sgd":
            self.optimizer = torch.optim.SGD(self.p, lr=lr, **kind)
        elif name == "momentum":
            self.optimizer = torch.optim.SGD(self.p, lr=lr, momentum=momentum, **kind)
        else:
            groups = int(name.removeprefix("groups_")) if name.startswith("groups_") else 1
            divided = [{"params": self.p[k::groups]} for k in range(groups)]
            self.optimizer = torch.optim.AdamW(divided, lr=lr, betas=(beta1, beta2), eps=eps, weight_decay=decay,
                                               **kind)
        self.clips = name.endswith("clip") or scaled
        self.scaler = torch.amp.GradScaler("cpu", init_scale=loss_scale) if scaled else None
        if scaled:
            self.scaler.scale(torch.ones(()))  # makes the scale
        self.ema = [p.clone() for p in self.p] if scaled else []

    @torch.no_grad()
    def step(self):
        grads = [p.grad for p in self.p]
        if self.copies:
            torch._foreach_copy_(grads, self.g)
        if self.scaler:
            self.scaler.unscale_(self.optimizer)
        if self.clips:
            torch.nn.utils.clip_grad_norm_(self.p, clip, foreach=True)
        if self.scaler:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            self.optimizer.step()
        if self.copies:
            torch._foreach_copy_(self.w, self.p)
        if self.ema:
            torch._foreach_lerp_(self.ema, self.p, 1 - ema)
        if self.zeroes:
            torch._foreach_zero_(self.g)

    def extra_bytes(self):
        kept = [x for s in self.optimizer.state.values() for x in s.values() if torch.is_tensor(x)] + self.ema
        kept += self.p + [p.grad for p in self.p] if self.copies else []
        return sum(x.numel() * x.element_size() for x in kept)


recipes = ["sgd", "momentum", "adamw", "adamw_bf16", "adamw_bf16_clip", "adamw_half_o2", "adamw_bf16_sr"]
recipes += [f"groups_{n}" for n in (1, 10, 100, 1000)]  # AdamW with so many groups


def check(contest, steps, samples):
    for _ in range(steps):
        if contest.zeroes:
            contest.refill()
        contest.step()
    grown = resident("VmHWM") - contest.marked
    with open(samples, encoding="ascii") as lines:
        wanted = [tuple(map(int, line.split())) for line in lines]
    streams = {"p": contest.p} | ({"w": contest.w} if contest.copies or contest.p[0].dtype != torch.float32 else {})
    streams |= {"e": contest.ema} if contest.ema else {}
    return {"grown": grown, "extra_bytes": contest.extra_bytes()} | {
        name: [float(tensors[t][i]) for t, i in wanted] for name, tensors in streams.items()}


def measure(contest, samples, steps):
    if contest.zeroes:
        contest.refill()
    start = time.perf_counter()
    while time.perf_counter() - start < 5e-3:  # as serve.cpp
        contest.step()
    seconds = []
    for _ in range(samples):
        if contest.zeroes:
            contest.refill()
        start = time.perf_counter()
        for _ in range(steps):
            contest.step()
        seconds.append((time.perf_counter() - start) / steps)
    return {"seconds": seconds}


def main(mode):
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    contests = {}
    for line in sys.stdin:
        command, *words = line.split()
        if command == "quit":
            break
        try:
            if command == "hello":
                answer = {"name": f"PyTorch, {mode}", "threads": torch.get_num_threads(), "recipes": recipes,
                          "compiler": f"torch {torch.__version__}", "flags": torch.backends.cpu.get_cpu_capability()}
            elif command == "load":
                slot, name, case_file, table_file = words
                contests[slot] = Recipe(name, mode, case_file, table_file)
                answer = {"extra_bytes": 0, "step_bytes": 0}
            elif command == "check":
                answer = check(contests[words[0]], int(words[1]), words[2])
            elif command == "time":
                answer = measure(contests[words[0]], int(words[1]), int(words[2]))
            elif command == "unload":
                contests.pop(words[0], None)
                answer = {}
            else:
                answer = {"error": f"no such command: {line.strip()}"}
        except (RuntimeError, KeyError, MemoryError) as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)


main(sys.argv[1])
