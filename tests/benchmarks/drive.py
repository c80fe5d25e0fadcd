#!/usr/bin/env python3
"""Runs the benchmarks: starts the contestants (see contestant.py), compares the numbers of each with the oracle's,
times them interleaved, and writes all measurements as JSON after each case.    usage: drive.py --help
"""

import argparse
import datetime
import json
import os
import shlex
import sys
import threading
import time

import cases
from agreement import check_steps, compare
from contestant import Contestant, Late, Refused
from files import Files
from machine import available_memory, gpu_as_found, machine, output
from turns import time_turns

ceilings = ("copy", "copy_past_cache", "triad", "triad_past_cache", "scale")
device_ceilings = ("copy", "copy_streaming", "copy_engine", "triad", "triad_streaming", "read", "four_three",
                   "four_three_streaming")


def gib(x):
    return f"{x / 2**30:.1f} GiB"


class Benchmark:
    def __init__(self, arguments, contestants, oracle, files, say):
        self.arguments, self.contestants, self.oracle, self.files, self.say = (
            arguments, contestants, oracle, files, say)
        self.device = contestants[0].about.get("device")
        self.ceilings = device_ceilings if self.device else ceilings
        self.results, self.skipped = [], []
        self.most_tensors = {}  # of contestants that were too slow with more tensors

    def skip(self, case, recipe, why):
        self.skipped.append({"case": case.name, "recipe": recipe, "why": why})
        self.say(f"  skipped: {why}")

    def room(self):
        most = self.arguments.memory
        free = self.contestants[0].ask("room")["free"] if self.device else available_memory()
        return min(free, int(most * 2**30)) if most else free

    def of(self, recipe):
        return [c for c in self.contestants if c.has(recipe) and c.lives()]

    def spare(self, size):
        """Bytes of the arrays of the ceilings, which share one arena on a device, plus a reserve."""
        arenas = min(3 * size, 1 << 30) if self.device else len(self.ceilings) * min(size, 1 << 30)
        return (arenas if self.server_of_ceilings() else 0) + (1 << 28)

    def needed(self, c, sets, size):
        """Bytes of a contestant. PyTorch also has gradients in float, and temporaries unless the step is fused."""
        more = 0.02 if not c.id.startswith("torch") else 0.3 if c.id in ("torch_fused", "torch_captured") else 0.6
        return int((sets + more) * size)

    def fit(self, own, size):
        """The number of sets of each problem, and the batches of contestants that are loaded together: all contestants
        if there is room. On a device, steps rotate over three sets, unless one set fits into half of the L2 cache."""
        room = self.room() - self.spare(size)
        def needed(some, sets):
            return sum(self.needed(c, sets, size) for c in some)
        rotated = self.device and 2 * size > self.device["l2_bytes"]
        for sets in [self.arguments.sets] if self.arguments.sets else (3, 1) if rotated else (1,):
            if needed(own, sets) <= room:
                return sets, [own]
        batches = []
        for c in own if self.device else []:
            if needed([c], 1) > room:
                continue
            if not batches or needed(batches[-1] + [c], 1) > room:
                batches.append([])
            batches[-1].append(c)
        return 1, batches

    def run(self, case, recipe):
        self.say(f"{case.what}: {cases.what.get(recipe, recipe)}")
        for c in self.contestants:
            if c.on_device() and not c.lives():
                c.restart()
        own = [c for c in self.of(recipe) if case.count <= min(c.about.get("most_tensors", case.count),
                                                               self.most_tensors.get(c.id, case.count))]
        if not own:
            return self.skip(case, recipe, "no contestant has the recipe")
        size = case.elements * cases.resident.get(recipe, 20)
        sets, batches = self.fit(own, size)
        for c in own:
            if not any(c in batch for batch in batches):
                self.skip(case, recipe, f"{c.id}, one of {len(own)} contestants, does not fit: it needs "
                                        f"{gib(self.needed(c, 1, size) + self.spare(size))} and there are {gib(self.room())}")
        if not batches:
            return None
        judged = self.oracle.has(recipe) and (recipe not in ("lamb", "lars") or
                                              32 * case.elements < available_memory())
        path, samples = self.files.case(case), self.files.samples(case)
        want = self.numbers_of_oracle(recipe, path, samples) if judged else None
        found, limits = {}, {}
        for batch in batches:
            runs = self.load(batch, case, recipe, path, samples, want, sets, found)
            step_bytes = max((of.get("step_bytes", 0) for of in found.values()), default=0)
            if not limits:
                if recipe not in cases.resident and step_bytes:
                    size = case.elements * 8 + max(of["extra_bytes"] for of in found.values() if "step_bytes" in of)
                limits = self.load_ceilings(runs, sets * size)
            single = sets if recipe == "adamw_half_o2" else 0
            for name, measured in time_turns(runs, single, self.arguments).items():
                (limits if name in limits else found)[name] |= measured
                if name in limits and self.server_of_ceilings():
                    self.forget(self.server_of_ceilings(), name)
            for c in batch:
                self.unload(c, "refused" in found[c.id])
        self.results.append({"case": case.name, "recipe": recipe, "elements": case.elements, "tensors": case.count,
                             "load": os.getloadavg()[0], "resident_bytes": size, "sets": sets,
                             "batches": len(batches), "step_bytes": step_bytes, "checked": judged,
                             "contestants": found, "ceilings": limits})
        return self.tell(self.results[-1])

    def load(self, batch, case, recipe, path, samples, want, sets, found):
        """Loads a batch, and returns the contestants that agree with the oracle, as functions for time_turns."""
        runs = {}
        for c in batch:  # memory that one takes at its start must not be counted as another's
            try:
                c.greet()
            except Refused as error:
                self.refuse(c, case, error, found)
        for c in batch:
            if c.id in found:
                continue
            try:
                loaded = c.ask("load", "case", recipe, path, self.files.table)
                got = c.ask("check", "case", check_steps, samples)
                found[c.id] = {"extra_bytes": got.get("extra_bytes", loaded["extra_bytes"]),
                               "grown_bytes": got["grown"], "step_bytes": loaded["step_bytes"]}
                found[c.id] |= {kind: got[kind] for kind in ("launches", "synchronisations") if kind in got}
                if want:
                    compare(recipe, got, want)
                if sets > 1:
                    c.ask("sets", "case", sets)
                runs[c.id] = self.timer(c, "case")
            except Refused as error:
                self.refuse(c, case, error, found)
        return runs

    def refuse(self, c, case, error, found):
        found.setdefault(c.id, {})["refused"] = str(error)
        self.say(f"  {c.id} is refused: {error}")
        if isinstance(error, Late):
            self.most_tensors[c.id] = case.count - 1

    def timer(self, c, slot):
        """On the host a call returns when the step is done."""
        def times(samples, steps):
            said = c.ask("time", slot, samples, steps)
            return {kind: said[kind] for kind in (("seconds", "host_seconds") if self.device else ("seconds",))}
        return times

    def unload(self, c, failed):
        """Unloads the case. After an error, restarts the process, because an error of a device persists in it."""
        if c.on_device() and (failed or c.about.get("once")):
            c.restart()
        elif c.lives():
            self.forget(c, "case")

    def begin_anew(self):
        """Restarts all contestants, even if they have loaded a case."""
        for c in [*self.contestants, self.oracle]:
            c.restart()

    def forget(self, c, slot):
        try:
            c.ask("unload", slot)
        except Refused as error:
            self.say(f"  {c.id} begins anew: {error}")
            c.restart()

    def count(self, in_time):
        """Counts launches and synchronisations where counting spoils later times: after all timing, in parallel."""
        for result in self.results:
            self.files.case(cases.by_name[result["case"]])
        def each(c):
            for result in self.results:
                of = result["contestants"].get(c.id, {})
                if "seconds" not in of or result["elements"] > 2 * 10**8 or not in_time():
                    continue
                try:
                    c.ask("load", "case", result["recipe"], self.files.path(result["case"] + ".case"), self.files.table)
                    of |= c.ask("count", "case")
                    c.ask("unload", "case")
                except Refused as error:
                    self.say(f"  {c.id} does not count: {error}")
                    return
        workers = [threading.Thread(target=each, args=[c]) for c in self.contestants if c.about.get("counts")]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def numbers_of_oracle(self, recipe, path, samples):
        self.oracle.ask("load", "case", recipe, path, self.files.table)
        want = self.oracle.ask("check", "case", check_steps, samples)
        self.oracle.ask("unload", "case")
        return want

    def server_of_ceilings(self):
        return next((c for c in self.contestants if c.has("copy") and c.lives()), None)

    def load_ceilings(self, runs, size):
        """Loads copy and the other ceilings, over the memory size of the case's optimizer, in the library's process."""
        limits, first = {}, self.server_of_ceilings()
        for name in self.ceilings if first else ():
            try:
                loaded = first.ask("load", name, name, self.files.memory(min(size, 1 << 30)), self.files.table)
            except Refused as error:
                limits[name] = {"refused": str(error)}
                continue
            limits[name] = {"step_bytes": loaded["step_bytes"]}
            runs[name] = self.timer(first, name)
        return limits

    def tell(self, result):
        def rate(size, of):
            return size / of["seconds"]["median"] * 1e-9
        for name, of in result["contestants"].items():
            if "seconds" in of:
                host = f", host {of['host_seconds']['median'] * 1e6:.1f} us" if self.device else ""
                self.say(f"  {name:32} {of['seconds']['median'] * 1e6:12.1f} us"
                         f"  {rate(result['step_bytes'], of):7.1f} GB/s{host}")
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
    parser.add_argument("--per-turn", type=int, default=1, help="samples of a contestant in each of its turns")
    parser.add_argument("--sample", type=float, default=2e-4, help="seconds of a sample at least")
    parser.add_argument("--sets", type=int, default=0, help="copies of each problem that steps go round")
    parser.add_argument("--limit", type=float, default=1e9, help="seconds after which no further case begins")
    parser.add_argument("--patience", type=float, default=600, help="seconds to wait for an answer")
    parser.add_argument("--memory", type=float, default=0, help="GiB to use at most, if not all that is free")
    parser.add_argument("--note", action="append", default=[], help="goes into the results as it is")
    parser.add_argument("--command", default=" ".join(sys.argv), help="how all of this was started, for the results")
    parser.add_argument("--work", required=True, help="folder for the files that contestants read")
    parser.add_argument("--out", required=True, help="file for the results")
    return parser.parse_args()


def planned(given, recipes, device):
    chosen = []
    for name in given.set.split(","):
        chosen += [pair for pair in cases.plan(name, recipes, device) if pair not in chosen]
    only_cases, only_recipes = set(filter(None, given.cases.split(","))), set(filter(None, given.recipes.split(",")))
    left = [(cases.by_name[case], recipe) for case, recipe in chosen
            if (not only_cases or case in only_cases) and (not only_recipes or recipe in only_recipes)]
    if not left:
        names = [", ".join(dict.fromkeys(pair[k] for pair in chosen)) or "none" for k in (0, 1)]
        sys.exit(f"--cases and --recipes leave nothing of '{given.set}', which has the cases {names[0]} and the "
                 f"recipes {names[1]}")
    return left


class Results:
    """A results file that is complete up to the last case, whenever the run ends."""

    def __init__(self, given, benchmark, about):
        root = os.path.dirname(os.path.abspath(__file__))
        self.path, self.benchmark, self.start = given.out, benchmark, time.time()
        self.known = {"format": 1, "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
                      "set": given.set, "command": given.command, "threads": given.threads, "machine": about,
                      "revision": os.environ.get("REVISION") or output("git", "-C", root, "describe", "--always",
                                                                      "--dirty"), "notes": given.note,
                      "contestants": {c.id: c.about for c in benchmark.contestants}}
        if benchmark.device:
            self.known |= {"device": benchmark.device, "gpu_at_start": gpu_as_found()}

    def seconds(self):
        return time.time() - self.start

    def write(self, **more):
        self.known |= more | {"seconds": round(self.seconds(), 1), "results": self.benchmark.results,
                              "skipped": self.benchmark.skipped}
        with open(self.path + ".part", "w", encoding="utf-8") as out:
            json.dump(self.known, out, indent=1)
            out.write("\n")
        os.replace(self.path + ".part", self.path)


def main():
    given = arguments()
    environment = {**os.environ, "OMP_NUM_THREADS": str(given.threads), "MKL_NUM_THREADS": str(given.threads)}
    about = machine()
    contestants = [Contestant(name, shlex.split(command), environment, given.patience)
                   for name, command in (text.split("=", 1) for text in given.contestant)]
    oracle = Contestant("oracle", shlex.split(given.oracle), environment, given.patience)
    contestants[0].greet()
    oracle.greet()
    for c in contestants[1:]:
        try:
            c.greet()
        except Refused as error:
            print(error, flush=True)
            given.note.append(f"{c.id} does not take part: {error}.")
            contestants.remove(c)
            c.end()
    recipes = [recipe for c in contestants for recipe in c.about["recipes"]]
    if about["load_at_start"] > 0.3 * about["cores"]:
        busy = f"The machine was busy: load {about['load_at_start']:.1f} on {about['cores']} cores when it began"
        print(busy)
        given.note.append(busy)
    benchmark = Benchmark(given, contestants, oracle, Files(given.work), lambda text: print(text, flush=True))
    results = Results(given, benchmark, about)
    try:
        for case, recipe in planned(given, recipes, benchmark.device):
            if results.seconds() > given.limit:
                benchmark.skip(case, recipe, f"more than {given.limit:g} s had gone by")
                continue
            try:
                benchmark.run(case, recipe)
            except Refused as error:
                benchmark.skip(case, recipe, str(error))
                benchmark.begin_anew()
            results.write()
        benchmark.count(lambda: results.seconds() < given.limit + 100)
    finally:
        for c in contestants + [oracle]:
            c.end()
    results.write(**({"gpu_at_end": gpu_as_found()} if benchmark.device else {}))
    print(f"{len(benchmark.results)} results in {given.out}, {results.seconds():.0f} s")
    refused = sum("refused" in c for r in benchmark.results for c in r["contestants"].values())
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
