"""PyTorch as a contestant, in the protocol of drive.py.
usage: torch_peer.py fused|foreach|captured|compiled [cpu|cuda]

Recipes that torch.optim does not offer in one call are chains of public functions that do the same. Captured: fused and
capturable, with the whole step in a CUDA graph. Compiled: the optimizer's step under torch.compile.
"""

import gc
import json
import os
import sys
import tempfile

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

import torch

import peer
from peer import beta1, beta2, clip, decay, ema, eps, loss_scale, lr, momentum

types = {"float": torch.float32, "half": torch.half, "bfloat16": torch.bfloat16}


class DeviceMemory:
    def __init__(self):
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        self.marked = torch.cuda.memory_allocated()

    def grown(self):
        return torch.cuda.max_memory_allocated() - self.marked


def time_by_events(steps, step, wait):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    _, host = peer.time_by_clock(steps, step, lambda: None)
    end.record()
    wait()
    return 1e-3 * begin.elapsed_time(end) / steps, host


class Recipe:
    """The tensors of a case, as views of one arena, and the step."""

    def __init__(self, name, case, mode, device):
        stored = types[peer.stored_as(name)]
        self.zeroes = scaled = name == "adamw_half_o2"
        self.case, self.device, self.on_gpu = case, device, device == "cuda"
        self.values = torch.tensor(case.values, device=device)
        self.source = torch.tensor(case.gradients, device=device) * (loss_scale if scaled else 1)
        self.w = self.views(torch.zeros(case.arena, dtype=stored, device=device))
        arena = torch.zeros(case.arena, dtype=stored, device=device)
        self.g = self.views(arena)
        self.fill(self.w, self.values)
        self.fill(self.g, self.source)
        # a GPU restores the gradients with one copy; the CPU needs no extra memory for it
        self.arena, self.kept = arena, arena.clone() if self.on_gpu and self.zeroes else None
        self.memory = DeviceMemory() if self.on_gpu else peer.Memory()
        self.p = [x.float() for x in self.w] if stored != torch.float32 and name != "adamw_bf16_sr" else self.w
        self.copies = self.p is not self.w
        for p, g in zip(self.p, self.g):
            p.grad = torch.empty_like(p) if self.copies else g
        self.make_optimizer(name, mode)
        self.clips = name.endswith("clip") or scaled
        self.scaler = torch.amp.GradScaler(device, init_scale=loss_scale) if scaled else None
        if scaled:
            self.scaler.scale(torch.ones((), device=device))  # creates the scale
        self.ema = [p.clone() for p in self.p] if scaled else []
        self.optimize = torch.compile(self.optimizer.step) if mode == "compiled" else self.optimizer.step
        self.graph = None
        if mode == "captured":
            self.capture()

    def make_optimizer(self, name, mode):
        kind = {"fused": True} if mode in ("fused", "captured") else {"foreach": True}
        if name in ("sgd", "momentum"):
            self.optimizer = torch.optim.SGD(self.p, lr=lr, momentum=momentum if name == "momentum" else 0, **kind)
        else:
            groups = int(name.removeprefix("groups_")) if name.startswith("groups_") else 1
            divided = [{"params": self.p[k::groups]} for k in range(groups)]
            self.optimizer = torch.optim.AdamW(divided, lr=lr, betas=(beta1, beta2), eps=eps, weight_decay=decay,
                                               capturable=mode == "captured", **kind)

    def capture(self):
        """Captures a step after some steps that create the states, then resets everything to the start."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.refill()
                self.enqueue()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.enqueue()
        self.graph = graph
        self.fill(self.w, self.values)
        self.refill()
        for p, w in zip(self.p, self.w) if self.copies else ():
            p.copy_(w)
        for e, p in zip(self.ema, self.p):
            e.copy_(p)
        for state in self.optimizer.state.values():
            for x in state.values():
                if torch.is_tensor(x):
                    x.zero_()

    def views(self, arena):
        return [arena[b : b + n] for b, n in zip(self.case.begins, self.case.counts)]

    def fill(self, tensors, table):
        """Fills tensor by tensor with the numbers of the table, repeating it."""
        size, first = len(table), 0
        twice = torch.cat((table, table))
        for x in tensors:
            for i in range(0, len(x), size):
                part = x[i : i + size]
                begin = (first + i) % size
                part.copy_(twice[begin : begin + len(part)])
            first += len(x)

    def refill(self):
        if self.kept is not None:
            self.arena.copy_(self.kept)
        elif self.zeroes:
            self.fill(self.g, self.source)

    def step(self):
        if self.graph:
            self.graph.replay()
        else:
            self.enqueue()

    @torch.no_grad()
    def enqueue(self):
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
            self.optimize()
        if self.copies:
            torch._foreach_copy_(self.w, self.p)
        if self.ema:
            torch._foreach_lerp_(self.ema, self.p, 1 - ema)
        if self.zeroes:
            torch._foreach_zero_(self.g)

    def wait(self):
        if self.on_gpu:
            torch.cuda.synchronize()

    def time(self, steps, step):
        return (time_by_events if self.on_gpu else peer.time_by_clock)(steps, step, self.wait)

    def grown(self):
        return self.memory.grown()

    def extra_bytes(self):
        kept = [x for s in self.optimizer.state.values() for x in s.values() if torch.is_tensor(x)] + self.ema
        kept += self.p + [p.grad for p in self.p] if self.copies else []
        return sum(x.numel() * x.element_size() for x in kept)

    def streams(self):
        def of(tensors):
            return lambda wanted: torch.stack([tensors[t][i].float() for t, i in wanted]).tolist()
        out = {"p": of(self.p)} | ({"w": of(self.w)} if self.copies else {})
        return out | ({"e": of(self.ema)} if self.ema else {})

    def count(self):
        """Half of the difference between three steps and one, because the profiler itself waits, too."""
        kinds = [torch.profiler.ProfilerActivity.CPU]
        kinds += [torch.profiler.ProfilerActivity.CUDA] if self.on_gpu else []
        found = []
        for steps in (1, 1, 3):
            with torch.profiler.profile(activities=kinds) as profiler:
                for _ in range(steps):
                    self.step()
                self.wait()
            with tempfile.NamedTemporaryFile(suffix=".json") as file:
                profiler.export_chrome_trace(file.name)
                with open(file.name, encoding="utf-8") as text:
                    found.append(peer.counted(json.load(text)))
        return {kind: (found[2][kind] - found[1][kind]) // 2 for kind in found[1]}


def unloaded():
    gc.collect()
    torch.cuda.empty_cache()


def main(mode, device="cpu"):
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    recipes = ["sgd", "momentum", "adamw", "adamw_clip", "adamw_bf16", "adamw_bf16_clip", "adamw_bf16_sr"]
    recipes += ["adamw_half_o2"] if mode != "compiled" else []  # GradScaler's step is not a plain call
    recipes += [f"groups_{n}" for n in (1, 10, 100, 1000)]  # AdamW with n groups
    about = {"name": f"PyTorch, {mode}", "threads": torch.get_num_threads(), "recipes": recipes,
             "compiler": f"torch {torch.__version__}", "flags": torch.backends.cpu.get_cpu_capability()}
    if mode == "compiled":
        about["most_tensors"] = 200  # with more, it compiles for minutes
    if device == "cuda":
        about |= {"device": torch.cuda.get_device_name(), "counts": True, "flags": f"CUDA {torch.version.cuda}"}
    peer.serve(about, lambda recipe, case: Recipe(recipe, case, mode, device), unloaded)


if __name__ == "__main__":
    main(*sys.argv[1:])
