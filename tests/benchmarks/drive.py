#!/usr/bin/env python3
"""Runs the benchmarks: starts the contestants, compares the numbers of each with the oracle's, then times them turn by
turn, and writes all that was measured as JSON.    usage: drive.py --help

A contestant is a program that answers lines on its standard input, each with one line of JSON:

    hello                                      its name, threads, recipes, compiler, flags
    load SLOT RECIPE CASE-FILE TABLE-FILE      bytes it owns beside values and gradients, bytes of a step if it says
    check SLOT STEPS SAMPLE-FILE               so many steps, then numbers of the elements that the file lists
    time SLOT SAMPLES STEPS                    5 ms of steps, then samples of so many: seconds a step, for each sample
    unload SLOT                                {}
    quit                                       and ends

An answer with the member `error` says why not.
"""

import argparse
import array
import datetime
import json
import math
import os
import platform
import random
import re
import shlex
import statistics
import subprocess
import sys
import time

import cases

table_size = 65521  # a prime, so that tiles and tensors do not fall together
ceilings = ("copy", "copy_past_cache", "triad", "triad_past_cache", "scale")
check_steps = 3
pause = 5e-3  # seconds between turns, in which threads of the last contestant go to sleep


class Refused(Exception):
    pass


class Contestant:
    def __init__(self, name, command, environment):
        self.id, self.command = name, command
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment)
        self.about = self.ask("hello")

    def ask(self, *words):
        try:
            print(*words, file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise Refused(f"{self.id} has ended with code {self.process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise Refused(answer["error"])
        return answer

    def has(self, recipe):
        return recipe in self.about["recipes"]

    def lives(self):
        return self.process.poll() is None

    def end(self):
        if self.lives():
            self.process.stdin.close()
            self.process.wait()


def read(path):
    try:
        with open(path, encoding="utf-8") as text:
            return text.read()
    except OSError:
        return ""


def output(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def machine():
    cpu = re.search(r"model name\s*:\s*(.*)", read("/proc/cpuinfo"))
    caches = {}
    folder = "/sys/devices/system/cpu/cpu0/cache"
    for index in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if index.startswith("index"):
            level, kind, size = (read(f"{folder}/{index}/{x}").strip() for x in ("level", "type", "size"))
            caches[f"L{level} {kind.lower()}"] = size
    system = re.search(r'PRETTY_NAME="(.*)"', read("/etc/os-release"))
    return {"cpu": cpu.group(1) if cpu else platform.processor(), "cores": len(os.sched_getaffinity(0)),
            "caches": caches, "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            "system": system.group(1) if system else platform.platform(), "kernel": platform.release(),
            "load_at_start": os.getloadavg()[0]}


def available_memory():
    found = re.search(r"MemAvailable:\s*(\d+)", read("/proc/meminfo"))
    return int(found.group(1)) * 1024 if found else 1 << 62


def gib(x):
    return f"{x / 2**30:.1f} GiB"


class Files:
    """What contestants read: cases, the table of numbers, and which elements are compared."""

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        self.table = os.path.join(folder, "table.bin")
        numbers = random.Random(1)
        with open(self.table, "wb") as out:
            array.array("f", (numbers.gauss(0, 0.5) for _ in range(table_size))).tofile(out)
            array.array("f", (numbers.gauss(0, 1e-3) for _ in range(table_size))).tofile(out)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="ascii") as out:
            out.write(text)
        return path

    def case(self, case):
        lines = "".join(f"{count} {times}\n" for count, times in case.tensors)
        return self.write(case.name + ".case", f"align {case.align}\nzeros {case.zeros}\n{lines}")

    def memory(self, size):
        return self.write("memory.case", f"align 1\nzeros 0\n{size} 1\n")

    def samples(self, case):
        """Ends of tensors, and elements in between."""
        sizes = [count for count, times in case.tensors for _ in range(times)]
        chosen, numbers = [], random.Random(2)
        for tensor in range(len(sizes)) if len(sizes) <= 200 else numbers.sample(range(len(sizes)), 200):
            inside = [numbers.randrange(sizes[tensor]) for _ in range(max(4, 2000 // len(sizes)))]
            chosen += [(tensor, i) for i in sorted({0, sizes[tensor] - 1, *inside})]
        return self.write(case.name + ".samples", "".join(f"{tensor} {i}\n" for tensor, i in chosen))


def compare(recipe, got, want):
    """Raises Refused unless the numbers are those of the oracle, within the rounding of what stores them."""
    bits = {"adamw_half_o2": 10, "adamw_bf16": 7, "adamw_bf16_clip": 7, "adamw_bf16_sr": 7}.get(recipe, 23)
    random_bits = recipe == "adamw_bf16_sr"
    for stream in "pwe":
        if stream not in want or (stream == "w" and random_bits):
            continue
        if stream not in got:
            raise Refused(f"says nothing of '{stream}'")
        if len(got[stream]) != len(want[stream]):
            raise Refused(f"'{stream}': {len(got[stream])} numbers for {len(want[stream])}")
        stored = bits if stream == "w" or random_bits else 23
        for i, (x, y) in enumerate(zip(got[stream], want[stream])):
            ulp = 2.0 ** (math.frexp(max(abs(y), 1e-3))[1] - 1 - stored)
            most = (check_steps + 1 if random_bits else 0.51 if stored < 23 else 4) * ulp + 2e-6
            if not abs(x - y) <= most:
                raise Refused(f"sample {i} of '{stream}' is {x:.9g} after {check_steps} steps, should be {y:.9g}")


def quartiles(seconds):
    a, b, c = statistics.quantiles(seconds, n=4, method="inclusive") if len(seconds) > 1 else 3 * seconds
    return {"median": b, "q1": a, "q3": c, "samples": seconds}


def time_turns(runs, single, budget, least, most):
    """Times contestants turn by turn: `runs` are functions of samples and steps; `single`: a sample is one step.
    Returns quartiles of each, or the word of one that failed."""
    steps, cost, seconds, failed = {}, 0, {name: [] for name in runs}, {}
    def measure(name, samples, n):
        try:
            time.sleep(pause)
            return [] if name in failed else runs[name](samples, n)
        except Refused as error:
            failed[name] = str(error)
            return []
    for name in runs:
        once = min(measure(name, 2, 1), default=0)
        steps[name] = 1 if single else max(1, math.ceil(2e-4 / max(once, 1e-9)))
        cost += 2 * max(steps[name] * once, pause)
    rounds = max(least, min(most, int(budget / max(cost, 1e-9))))
    order = list(runs)
    for turn in range(rounds):
        for name in order[turn % len(order):] + order[:turn % len(order)]:
            seconds[name] += measure(name, 1, steps[name])
    return {name: {"refused": failed[name]} if name in failed else
            {"seconds": {**quartiles(seconds[name]), "steps": steps[name]}} for name in order}


class Benchmark:
    def __init__(self, arguments, contestants, oracle, files, say):
        self.arguments, self.contestants, self.oracle, self.files, self.say = (
            arguments, contestants, oracle, files, say)
        self.results, self.skipped = [], []

    def skip(self, case, recipe, why):
        self.skipped.append({"case": case.name, "recipe": recipe, "why": why})
        self.say(f"  skipped: {why}")

    def room(self):
        most = self.arguments.memory
        return min(available_memory(), int(most * 2**30)) if most else available_memory()

    def of(self, recipe):
        return [c for c in self.contestants if c.has(recipe) and c.lives()]

    def run(self, case, recipe):
        self.say(f"{case.what}: {cases.what.get(recipe, recipe)}")
        own = self.of(recipe)
        if not own:
            return self.skip(case, recipe, "no contestant has the recipe")
        size = case.elements * cases.resident.get(recipe, 20)
        room = self.room()
        # PyTorch makes temporaries, and the ceilings have arrays of their own
        needed = sum(int((1.6 if c.id.startswith("torch") else 1.02) * size) for c in own) + (1 << 28)
        needed += len(ceilings) * min(size, 1 << 30) if self.server_of_ceilings() else 0
        if needed > room:
            return self.skip(case, recipe, f"needs {gib(needed)} for {len(own)} contestants at once and there are "
                                           f"{gib(room)}")
        judged = self.oracle.has(recipe) and 32 * case.elements < room
        path, samples = self.files.case(case), self.files.samples(case)
        want = self.numbers_of_oracle(recipe, path, samples) if judged else None
        found, runs = {}, {}
        for c in own:
            try:
                loaded = c.ask("load", "case", recipe, path, self.files.table)
                got = c.ask("check", "case", check_steps, samples)
                found[c.id] = {"extra_bytes": got.get("extra_bytes", loaded["extra_bytes"]),
                               "grown_bytes": got["grown"], "step_bytes": loaded["step_bytes"]}
                if want:
                    compare(recipe, got, want)
                runs[c.id] = lambda samples, steps, c=c: c.ask("time", "case", samples, steps)["seconds"]
            except Refused as error:
                found.setdefault(c.id, {})["refused"] = str(error)
                self.say(f"  {c.id} is refused: {error}")
        ours = next((found[c.id] for c in own if found[c.id].get("step_bytes")), {})
        if recipe not in cases.resident and ours:
            size = case.elements * 8 + ours["extra_bytes"]
        limits = self.load_ceilings(runs, size)
        given = self.arguments
        timed = time_turns(runs, recipe == "adamw_half_o2", given.seconds, given.least, given.most)
        for name, measured in timed.items():
            (limits if name in limits else found)[name] |= measured
            if name in limits and self.server_of_ceilings():
                self.server_of_ceilings().ask("unload", name)
        for c in own:
            if c.lives():
                c.ask("unload", "case")
        self.results.append({"case": case.name, "recipe": recipe, "elements": case.elements, "tensors": case.count,
                             "load": os.getloadavg()[0], "resident_bytes": size,
                             "step_bytes": ours.get("step_bytes", 0), "checked": judged,
                             "contestants": found, "ceilings": limits})
        self.tell(self.results[-1])

    def numbers_of_oracle(self, recipe, path, samples):
        self.oracle.ask("load", "case", recipe, path, self.files.table)
        want = self.oracle.ask("check", "case", check_steps, samples)
        self.oracle.ask("unload", "case")
        return want

    def server_of_ceilings(self):
        return next((c for c in self.contestants if c.has("copy") and c.lives()), None)

    def load_ceilings(self, runs, size):
        """Copy and its like over as much memory as the optimizer of the case uses, in the library's process."""
        limits, first = {}, self.server_of_ceilings()
        for name in ceilings if first else ():
            loaded = first.ask("load", name, name, self.files.memory(min(size, 1 << 30)), self.files.table)
            limits[name] = {"step_bytes": loaded["step_bytes"]}
            runs[name] = lambda samples, steps, n=name: first.ask("time", n, samples, steps)["seconds"]
        return limits

    def tell(self, result):
        def rate(size, of):
            return size / of["seconds"]["median"] * 1e-9
        for name, of in result["contestants"].items():
            if "seconds" in of:
                self.say(f"  {name:32} {of['seconds']['median'] * 1e6:12.1f} us"
                         f"  {rate(result['step_bytes'], of):7.1f} GB/s")
        for name, of in result["ceilings"].items():
            if "seconds" in of:
                self.say(f"  ({name + ')':31} {'':15}  {rate(of['step_bytes'], of):7.1f} GB/s")


def arguments():
    parser = argparse.ArgumentParser(description="Runs the benchmarks; run.sh builds what it needs.")
    parser.add_argument("--set", default="default", help="quick, default, all, growth, rules, huge")
    parser.add_argument("--contestant", action="append", default=[], metavar="NAME=COMMAND", required=True,
                        help="first the library; again for each one")
    parser.add_argument("--oracle", required=True, metavar="COMMAND")
    parser.add_argument("--cases", default="", help="only these, with commas")
    parser.add_argument("--recipes", default="", help="only these, with commas")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seconds", type=float, default=6, help="to time one case with one recipe")
    parser.add_argument("--least", type=int, default=7, help="samples of each at least")
    parser.add_argument("--most", type=int, default=51)
    parser.add_argument("--memory", type=float, default=0, help="GiB to use at most, if not all that is free")
    parser.add_argument("--note", action="append", default=[], help="goes into the results as it is")
    parser.add_argument("--work", required=True, help="folder for the files that contestants read")
    parser.add_argument("--out", required=True, help="file for the results")
    return parser.parse_args()


def planned(given, recipes):
    chosen = []
    for name in given.set.split(","):
        chosen += [pair for pair in cases.plan(name, recipes) if pair not in chosen]
    only_cases, only_recipes = set(filter(None, given.cases.split(","))), set(filter(None, given.recipes.split(",")))
    return [(cases.by_name[case], recipe) for case, recipe in chosen
            if (not only_cases or case in only_cases) and (not only_recipes or recipe in only_recipes)]


def main():
    given = arguments()
    start = time.time()
    environment = {**os.environ, "OMP_NUM_THREADS": str(given.threads), "MKL_NUM_THREADS": str(given.threads)}
    about = machine()
    contestants = [Contestant(name, shlex.split(command), environment)
                   for name, command in (text.split("=", 1) for text in given.contestant)]
    recipes = [recipe for c in contestants for recipe in c.about["recipes"]]
    if about["load_at_start"] > 0.3 * about["cores"]:
        busy = f"The machine was busy: load {about['load_at_start']:.1f} on {about['cores']} cores when it began"
        print(busy)
        given.note.append(busy)
    oracle = Contestant("oracle", shlex.split(given.oracle), environment)
    benchmark = Benchmark(given, contestants, oracle, Files(given.work), lambda text: print(text, flush=True))
    try:
        for case, recipe in planned(given, recipes):
            benchmark.run(case, recipe)
    finally:
        for c in contestants + [oracle]:
            c.end()
    root = os.path.dirname(os.path.abspath(__file__))
    result = {"format": 1, "date": datetime.datetime.fromtimestamp(start).astimezone().isoformat(timespec="seconds"),
              "seconds": round(time.time() - start, 1), "set": given.set, "threads": given.threads, "machine": about,
              "revision": output("git", "-C", root, "describe", "--always", "--dirty"), "notes": given.note,
              "contestants": {c.id: c.about for c in contestants}, "results": benchmark.results,
              "skipped": benchmark.skipped}
    with open(given.out, "w", encoding="utf-8") as out:
        json.dump(result, out, indent=1)
        out.write("\n")
    print(f"{len(benchmark.results)} results in {given.out}, {result['seconds']:.0f} s")
    refused = sum("refused" in c for r in benchmark.results for c in r["contestants"].values())
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
