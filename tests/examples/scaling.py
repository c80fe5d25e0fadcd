#!/usr/bin/env python3
"""Tests the program that projects scaling: its terms add up to its steps, its inputs are listed, and the picture in
docs/ is what it draws from the recorded runs.

usage: scaling.py project-root program
"""
import os
import re
import subprocess
import sys
import tempfile

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

root, program = sys.argv[1:]
pictures = os.path.join(root, "docs/pictures")


def run(*arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True)


def check(holds, what):
    if not holds:
        sys.exit(f"does not hold: {what}")


def rows(text):
    for line in text.splitlines():
        found = re.match(r" +(\d+)  (.{17}) +([\d. ]+?)%  (\w+)$", line)
        if found:
            *terms, step, efficiency = map(float, found[3].split())
            yield int(found[1]), found[2].strip(), terms, step, efficiency, found[4]


table = run().stdout
check(table.startswith("A projection, not a measurement.\n"), "it says what it is")
for one in "360 GB/s", "3.4 us", "4.0 us", "14 us", "8192 tokens", "989 TFLOP/s, of which 40 %", "28 bytes":
    check(one in table, f"the input {one} is printed")
every, with_muon = list(rows(table)), list(rows(run("--rule", "muon").stdout))
for some in every, with_muon:
    check(len(some) == 3 * (1 + 5 * 3), f"three sizes of models, six of clusters: {len(some)}")
    alone = None
    for gpus, policy, terms, step, efficiency, dominant in some:
        alone = step if gpus == 1 else alone
        check(abs(sum(terms) - step) < 0.05, f"{gpus} {policy}: the terms add up to the step")
        check(abs(100 * alone / step - efficiency) < 0.1, f"{gpus} {policy}: the efficiency is T_1 / T_n")
        named = dict(zip(["compute", "wire", "latency", "norm", "update", "products"], terms))[dominant]
        check(named == max(terms[1:]), f"{gpus} {policy}: {dominant} is the largest")
check(run("--buckets", "8").stdout != table and run("--tokens", "100").stdout != table, "inputs matter")
with open(os.path.join(root, "docs/projections.md"), encoding="utf-8") as page:
    shown = page.read()


def cells(mark):
    """The rows of a table of the page, without its header."""
    lines = shown.split(f"<!-- {mark} -->\n")[1].split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


names = ["124 M", "1.5 B", "7 B"]
for mark, some, count in ("projection", every, 18), ("projection with muon", with_muon, 16):
    want = {(name, str(gpus), policy, f"{step:.0f}" if step >= 100 else f"{step:.1f}", f"{efficiency:.0f}", dominant)
            for k, name in enumerate(names) for gpus, policy, _, step, efficiency, dominant in some[16 * k:16 * k + 16]}
    projected = cells(mark)
    check(len(projected) == count, f"the page has {count} projected steps")
    for row in projected:
        check(tuple(row) in want, f"docs/projections.md: {row} is what is printed")


def grids(text):
    """Of each size, the printed grids: (GPUs, grid, state, terms, step, GB)."""
    for of_size in text.split(" parameters: milliseconds\n")[1:]:
        yield [(int(found[1]), re.sub(" +", " ", found[2]), found[3], *(lambda x: (x[:-2], x[-2], x[-1]))(
            [float(x) for x in found[4].split()])) for found in
            re.finditer(r"^ +(\d+)  (\d+ x +\d+ x +\d+) +(\w+) +([\d. ]+)$", of_size, re.M)]


want = set()
for rule in "adamw", "muon":
    for name, printed in zip(["7 B", "70 B"], grids(run("--grid", "80", "--rule", rule).stdout)):
        check(len(printed) >= 6, f"{rule}, {name}: grids")
        for gpus, cut, state, terms, step, memory in printed:
            tensor, pipeline, data = map(int, cut.split(" x "))
            check(tensor * pipeline * data == gpus and memory <= 80 and (rule == "adamw" or tensor == 1), f"{cut}")
            check(abs(sum(terms) - step) < 0.5, f"{cut}: the terms add up to the step")
            want.add((rule, name, str(gpus), cut, state, f"{step:.0f}", f"{100 * terms[3] / step:.0f}", f"{memory:.0f}"))
with open(os.path.join(root, "docs/model_parallel.md"), encoding="utf-8") as page:
    lines = page.read().split("<!-- grid -->\n")[1].split("\n\n")[0].splitlines()[2:]
check(len(lines) == 9, "the page has nine grids")
for line in lines:
    row = tuple(cell.strip() for cell in line.strip("|").split("|"))
    check(row in want, f"docs/model_parallel.md: {row} is what is printed")
check(run("--grid", "0").returncode == 2, "a GPU has memory")

with open(os.path.join(pictures, "scaling.csv"), encoding="utf-8") as file:
    runs = [line.split(",") for line in file.read().splitlines()[1:]]
alone = {policy: float(ms) for ranks, policy, ms, _ in runs if ranks == "1"}
check(cells("measured") == [[*one, f"{alone[one[1]] / float(one[2]):.2f}"] for one in runs],
      "docs/projections.md has the runs of scaling.csv")

check(run("--draw", "x.svg").returncode == 2, "a picture needs runs")
with tempfile.TemporaryDirectory() as folder:
    file = os.path.join(folder, "scaling.svg")
    drawn = run("--draw", file, "--runs", os.path.join(pictures, "scaling.csv"))
    check(drawn.returncode == 0, drawn.stderr)
    with open(file, "rb") as new, open(os.path.join(pictures, "scaling.svg"), "rb") as old:
        check(new.read() == old.read(), "docs/pictures/scaling.svg is what it draws")
    check(run("--draw", file, "--runs", os.path.join(folder, "none")).returncode == 1, "runs that are not there")
