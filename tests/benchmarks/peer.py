"""Code shared by the contestants in Python: the numbers of a case, the hyperparameters, and the contestant's side of
the protocol in contestant.py."""

import array
import json
import os
import re
import sys
import time

lr, momentum, beta1, beta2, eps, decay = 1e-3, 0.9, 0.9, 0.999, 1e-8, 0.1  # as settings.hpp
lion_lr, lion_beta2 = 1e-4, 0.99
clip, ema, loss_scale = 1.0, 0.99, 1024.0
warm_steps, warm_seconds, host_steps = 10, 5e-3, 32  # as serve.cpp and platform_device.cpp

waits = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize", "cudaMemcpy", "cuStreamSynchronize",
         "cuCtxSynchronize", "cuEventSynchronize")


class Case:
    """The sizes of tensors, their offsets in an arena, and the tables with the numbers of their elements."""

    def __init__(self, case_file, table_file):
        with open(case_file, encoding="ascii") as lines:
            words = lines.read().split()
        align, zeros, pairs = int(words[1]), float(words[3]), [int(x) for x in words[4:]]
        self.counts = [n for n, times in zip(pairs[::2], pairs[1::2]) for _ in range(times)]
        self.elements = sum(self.counts)
        self.begins, self.arena = [], 0
        for n in self.counts:
            self.begins.append(self.arena)
            self.arena += (n + align - 1) // align * align
        with open(table_file, "rb") as table:
            numbers = array.array("f", table.read())
        self.values, self.gradients = numbers[:len(numbers) // 2], numbers[len(numbers) // 2:]
        for i in range(len(self.gradients)):
            if i // 2 % 100 < 100 * zeros:
                self.gradients[i] = 0


def stored_as(recipe):
    return "half" if "half" in recipe else "bfloat16" if "bf16" in recipe else "float"


def resident(which):
    with open("/proc/self/status", encoding="ascii") as status:
        return int(re.search(rf"^{which}:\s*(\d+)", status.read(), re.M).group(1)) * 1024


class Memory:
    """Measures the growth of the process's peak memory."""

    def __init__(self):
        with open("/proc/self/clear_refs", "w", encoding="ascii") as clear:
            clear.write("5")
        self.marked = resident("VmRSS")

    def grown(self):
        return resident("VmHWM") - self.marked


def time_by_clock(steps, step, wait):
    """Seconds per step, and seconds until its call returns."""
    wait()
    start = time.perf_counter()
    for i in range(steps):
        step()
        if i + 1 == min(steps, host_steps):
            host = (time.perf_counter() - start) / (i + 1)
    wait()
    return (time.perf_counter() - start) / steps, host


def counted(trace):
    """Counts in a trace of the profiler what was sent to the device, and how often the host waited for it."""
    events = [e for e in trace["traceEvents"] if e.get("ph") == "X"]
    return {"launches": sum(e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset") for e in events),
            "synchronisations": sum(e.get("cat") in ("cuda_runtime", "cuda_driver") and e["name"] in waits
                                    for e in events)}


class Slot:
    """A contest, or several copies of it that take turns."""

    def __init__(self, make):
        self.make, self.sets, self.turn, self.warm = make, [make()], 0, 0

    def step(self):
        self.sets[self.turn % len(self.sets)].step()
        self.turn += 1

    def refill(self):
        for contest in self.sets:
            contest.refill()

    def more(self, count):
        self.sets += [self.make() for _ in range(count - len(self.sets))]
        return {}

    def check(self, steps, samples):
        contest = self.sets[0]
        for _ in range(steps):
            contest.refill()
            contest.step()
        contest.wait()
        grown = contest.grown()
        with open(samples, encoding="ascii") as lines:
            wanted = [tuple(map(int, line.split())) for line in lines]
        return {"grown": grown, "extra_bytes": contest.extra_bytes()} | {
            name: read(wanted) for name, read in contest.streams().items()}

    def measure(self, samples, steps):
        self.refill()
        start = time.perf_counter()
        while self.warm < warm_steps or time.perf_counter() - start < warm_seconds:
            self.step()
            self.sets[0].wait()
            self.warm += 1
        seconds = []
        for _ in range(samples):
            self.refill()
            seconds.append(self.sets[0].time(steps, self.step))
        return {"seconds": [device for device, _ in seconds], "host_seconds": [host for _, host in seconds]}


def answer(slots, about, make, command, words):
    if command == "hello":
        return about
    if command == "load":
        slot, recipe, case_file, table_file = words
        case = Case(case_file, table_file)
        slots[slot] = Slot(lambda: make(recipe, case))
        return {"extra_bytes": 0, "step_bytes": 0}
    if command == "check":
        return slots[words[0]].check(int(words[1]), words[2])
    if command == "sets":
        return slots[words[0]].more(int(words[1]))
    if command == "time":
        return slots[words[0]].measure(int(words[1]), int(words[2]))
    if command == "count":
        return slots[words[0]].sets[0].count()
    if command == "unload":
        slots.pop(words[0], None)
        return {}
    return {"error": f"no such command: {command}"}


def serve(about, make, unloaded=lambda: None):
    """Answers the driver until it sends quit. `make` returns the contest of a recipe and a case: an object with step,
    refill, wait, time, grown, extra_bytes and streams."""
    slots, out = {}, os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of libraries must not be taken for an answer
    for line in sys.stdin:
        command, *words = line.split()
        if command == "quit":
            break
        try:
            said = answer(slots, about, make, command, words)
            if command == "unload":
                unloaded()
        except Exception as error:  # the driver must learn of any error; the next case may still work
            said = {"error": f"{type(error).__name__}: {error}"[:2000]}
        print(json.dumps(said), file=out, flush=True)
