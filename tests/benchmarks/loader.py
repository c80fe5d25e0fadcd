#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""Times the library's loader beside PyTorch's and a hand-written loop, interleaved, and writes all measurements as
JSON after each case. run.sh --loader builds and starts it; report.py makes the tables.    usage: loader.py --help

A contestant is a program (loader.cpp, loader_torch.py) that answers lines as described in contestant.py:

    hello                                                its name, compiler, flags
    load SLOT CASE WAY WORKERS RECORDS BATCH FILE        {}
    check SLOT                                           the records of an epoch, and the sum of all their elements
    time SLOT EPOCHS                                     seconds per epoch
    unload SLOT                                          {}

Ways of the program of the library: `descent` is the loader, `resident` its batches with all records read beforehand,
`loop` a hand-written loop over the same memory: memcpy where records follow each other. Ways of PyTorch: `loader` is
DataLoader with batch_size, which collates records; `lists` has a BatchSampler and no collation, so that the data set is
asked for a list of records at once, its fastest form; `index` is no loader but a loop that indexes tensors.
"""

import argparse
import dataclasses
import datetime
import json
import math
import os
import random
import shlex
import sys
import time

from contestant import Contestant, Refused
from machine import machine, output
from turns import pause, quartiles

row = 4096  # bytes of a record of bytes


@dataclasses.dataclass
class Case:
    name: str
    kind: str  # the data; see loader.cpp
    what: str
    records: int
    batch: int
    bytes: int  # of a record in a batch
    ways: tuple  # of the library's program, with the numbers of workers
    torch: tuple

    def title(self):
        return self.what.format(records=f"{self.records:,}", size=size_of(self.records * self.bytes))

    def contestants(self):
        for program, ways in ("descent", self.ways), ("torch", self.torch):
            for way, workers in ways:
                for w in workers:
                    yield program, way, w


def size_of(x):
    return f"{x / 2**30:g} GiB" if x >= 2**30 else f"{x / 2**20:g} MiB"


def cases(quick, file_bytes):
    """All cases. The smaller ones have the same shapes and fewer records."""
    def some(n):
        return n // 8 if quick else n
    loop = ("loop", (0,))
    yield Case("floats", "floats", "{records} records of 20 floats and a label in memory, batches of 256, shuffled",
               some(20000), 256, 88, (loop, ("descent", (0, 2)), ("resident", (0,))),
               (("loader", (0,)), ("lists", (0, 2)), ("index", (0,))))
    yield Case("digits", "digits", "{records} images of 8 x 8 bytes in memory, mapped to float, batches of 32, "
               "shuffled", some(1440), 32, 264, (loop, ("descent", (0, 2))),
               (("loader", (0, 2)), ("lists", (0,)), ("index", (0,))))
    for name, batch in ("64k", 16), ("1m", 256), ("16m", 4096):
        yield Case("bytes_" + name, "bytes", "{size} in memory in order, batches of " + {
            "64k": "64 KiB", "1m": "1 MiB", "16m": "16 MiB"}[name], some(65536), batch, row,
            (loop, ("descent", (0, 2))), (("loader", (0,)), ("lists", (0,)), ("index", (0,))))
    yield Case("file", "file", "a file of {size} in the page cache, records of 4 KiB, batches of 64, shuffled",
               file_bytes // row, 64, row, (loop, ("descent", (0, 1, 2))),
               (("loader", (0, 1, 2)), ("lists", (0, 1, 2))))
    yield Case("slow", "slow", "{records} records of a source that sleeps 1 ms for each, batches of 32", some(640), 32,
               8, (loop, ("descent", (1, 2, 4))), (("loader", (1, 2, 4)),))
    yield Case("single", "single", "{records} batches of one number in memory, in order", some(2000), 1, 8,
               (loop, ("descent", (0, 2))), (("loader", (0, 2)),))


def label(program, way, workers):
    return f"{'torch_' if program == 'torch' else ''}{way}_{workers}"


class Benchmark:
    def __init__(self, given, programs, say):
        self.given, self.programs, self.say, self.results = given, programs, say, []

    def run(self, case, path):
        """Each repetition loads all contestants again, because the rate of a copy depends on where the memory lies."""
        self.say(case.title())
        found = {label(*c): {"program": c[0], "way": c[1], "workers": c[2]} for c in case.contestants()
                 if c[0] in self.programs}
        samples, epochs, want = {name: [] for name in found}, {}, None
        for repetition in range(self.given.repetitions):
            for name, of in found.items():
                if "refused" in of:
                    continue
                try:
                    program = self.programs[of["program"]]
                    program.ask("load", name, case.kind, of["way"], of["workers"], case.records, case.batch, path)
                    if repetition == 0:
                        got = program.ask("check", name)
                        want = self.compare(case, of["way"], got, want)
                        of["once"] = program.ask("time", name, 1)["seconds"]
                        epochs[name] = max(1, min(100, math.ceil(self.given.sample / max(of["once"], 1e-9))))
                    else:
                        program.ask("time", name, 1)
                except Refused as error:
                    of["refused"] = str(error)
                    self.say(f"  {name} is refused: {error}")
            self.turns(found, samples, epochs, repetition)
            for name, of in found.items():
                if self.programs[of["program"]].lives():
                    self.programs[of["program"]].ask("unload", name)
        for name, of in found.items():
            if samples[name] and "refused" not in of:
                of["seconds"] = {**quartiles(samples[name]), "epochs": epochs[name]}
                seconds = of["seconds"]["median"]
                self.say(f"  {name:16} {seconds * 1e3:10.3f} ms  {case.records / seconds:12.0f} records/s  "
                         f"{case.bytes * case.records / seconds * 1e-9:6.2f} GB/s")
        self.results.append({"case": case.name, "what": case.title(), "records": case.records, "batch": case.batch,
                             "bytes": case.bytes, "load": os.getloadavg()[0], "contestants": found})

    def compare(self, case, way, got, want):
        """All deliver the same records; only `resident` leaves out a smaller last batch."""
        if way == "resident":
            if got["records"] != case.records // case.batch * case.batch:
                raise Refused(f"delivers {got['records']} records of {case.records}")
        elif got["records"] != case.records or want and got["sum"] != want["sum"]:
            raise Refused(f"delivers {got['records']} records of {case.records}, whose sum is {got['sum']}")
        return want or got

    def turns(self, found, samples, epochs, repetition):
        """Those whose epoch is shorter than a sample have three times as many turns, because they vary most."""
        everyone, start = list(found), time.perf_counter()
        fast = [name for name in found if found[name].get("once", 1) < self.given.sample]
        for turn in range(3 * self.given.turns):
            order = everyone if turn < self.given.turns else fast
            if not order or turn > 0 and time.perf_counter() - start > self.given.seconds:
                return
            k = (repetition * self.given.turns + turn) % len(order)
            for name in order[k:] + order[:k]:
                of = found[name]
                if "refused" in of:
                    continue
                time.sleep(pause)
                try:
                    samples[name].append(self.programs[of["program"]].ask("time", name, epochs[name])["seconds"])
                except Refused as error:
                    of["refused"] = str(error)
                    self.say(f"  {name} is refused: {error}")


def write_file(path, size):
    if os.path.exists(path) and os.path.getsize(path) == size:
        return
    numbers = random.Random(1)
    with open(path, "wb") as out:
        for begin in range(0, size, 1 << 24):
            out.write(numbers.randbytes(min(1 << 24, size - begin)))


def arguments():
    parser = argparse.ArgumentParser(description="Times the loader; run.sh --loader builds what it needs.")
    parser.add_argument("--set", default="loader", help="loader, or quick for fewer records")
    parser.add_argument("--contestant", action="append", default=[], metavar="NAME=COMMAND", required=True,
                        help="descent, and torch if it is there")
    parser.add_argument("--cases", default="", help="only these, with commas")
    parser.add_argument("--file-bytes", type=int, default=0, help="of the case `file`; 0: 1 GiB, or 64 MiB for quick")
    parser.add_argument("--repetitions", type=int, default=5, help="each loads all contestants anew")
    parser.add_argument("--turns", type=int, default=3,
                        help="of each contestant in a repetition, at most; fast ones have three times as many")
    parser.add_argument("--seconds", type=float, default=8, help="after which a repetition begins no further turn")
    parser.add_argument("--sample", type=float, default=0.2, help="seconds of a sample, at most 100 epochs")
    parser.add_argument("--patience", type=float, default=600, help="seconds to wait for an answer")
    parser.add_argument("--note", action="append", default=[], help="goes into the results as it is")
    parser.add_argument("--command", default=" ".join(sys.argv), help="how all of this was started, for the results")
    parser.add_argument("--work", required=True, help="folder for the file that contestants read")
    parser.add_argument("--out", required=True, help="file for the results")
    return parser.parse_args()


def greeted(given):
    """The programs that take part. The library must."""
    programs = {}
    for text in given.contestant:
        name, command = text.split("=", 1)
        try:
            program = Contestant(name, shlex.split(command), dict(os.environ), given.patience)
            program.greet()
            programs[name] = program
        except (OSError, Refused) as error:
            if name == "descent":
                raise
            print(error, flush=True)
            given.note.append(f"{name} does not take part: {error}")
    return programs


def main():
    given = arguments()
    quick = given.set == "quick"
    about = machine()
    only = set(filter(None, given.cases.split(",")))
    everything = list(cases(quick, given.file_bytes or (1 << 26 if quick else 1 << 30)))
    chosen = [case for case in everything if not only or case.name in only]
    if not chosen:
        sys.exit(f"--cases leaves nothing; there are {', '.join(case.name for case in everything)}")
    os.makedirs(given.work, exist_ok=True)
    programs = greeted(given)
    if about["load_at_start"] > 0.3 * about["cores"]:
        busy = f"The machine was busy: load {about['load_at_start']:.1f} on {about['cores']} cores when it began"
        print(busy)
        given.note.append(busy)
    benchmark = Benchmark(given, programs, lambda text: print(text, flush=True))
    start = time.time()
    known = {"format": 1, "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"), "set": "loader",
             "quick": quick, "command": given.command, "machine": about, "repetitions": given.repetitions,
             "revision": os.environ.get("REVISION") or output("git", "-C", os.path.dirname(os.path.abspath(__file__)),
                                                              "describe", "--always", "--dirty"),
             "notes": given.note, "contestants": {name: p.about for name, p in programs.items()}}
    try:
        for case in chosen:
            path = os.path.join(given.work, "records.bin")
            if case.kind == "file":
                write_file(path, case.records * row)
            benchmark.run(case, path)
            known |= {"seconds": round(time.time() - start, 1), "results": benchmark.results}
            with open(given.out + ".part", "w", encoding="utf-8") as out:
                json.dump(known, out, indent=1)
                out.write("\n")
            os.replace(given.out + ".part", given.out)
    finally:
        for program in programs.values():
            program.end()
    print(f"{len(benchmark.results)} results in {given.out}, {known['seconds']:.0f} s")
    return int(any("refused" in of for r in benchmark.results for of in r["contestants"].values()))


if __name__ == "__main__":
    sys.exit(main())
