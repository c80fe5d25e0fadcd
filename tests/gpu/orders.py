#!/usr/bin/env python3
"""Prints the runs of the GPU tests on a CUDA device in software, one per line, as arguments of software.sh.

usage: orders.py build-folder cudasim-run [mode] [name...]

Modes:
  plain   each test once, with blocks, threads and streams in order
  ci      the same, and once more in a random order seeded by the revision (the default)
  all     in six fixed orders
Tests over NCCL also vary the order of their ranks. If a test has several numbers of ranks, `plain` and `ci` run each
number once: 2 or 4, as the revision says, in the random order, the others in order. The benchmarks run once.
Names select tests with shell patterns: 'gpu/*'.
"""
import fnmatch
import json
import os
import re
import shlex
import subprocess
import sys

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

modes = "plain", "ci", "all"
build, simulator, *rest = sys.argv[1:]
mode = rest.pop(0) if rest and rest[0] in modes else "ci"
patterns = rest

try:
    revision = subprocess.run(["git", "rev-parse", "HEAD"], cwd=os.path.dirname(os.path.abspath(__file__)), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout.strip()
except (OSError, subprocess.CalledProcessError):
    revision = "0" * 40  # sources without Git history
seed = 1 + int(revision[:8], 16) % 1_000_000
drawn = f"CUDASIM_SEED={seed} CUDASIM_ASYNC={seed}"
drawn_ranks = f"{drawn} CUDASIM_NCCL_DELAY={seed}"


def orders_of(name):
    kind = name.split("/")[0]
    if mode == "all":
        return {"nccl": ["", "CUDASIM_ASYNC=1 CUDASIM_NCCL_DELAY=1"], "benchmarks": ["CUDASIM_ASYNC=1"]}.get(
            kind, ["", "CUDASIM_SEED=1", "CUDASIM_SEED=2", "CUDASIM_ASYNC=1", "CUDASIM_ASYNC=2", "CUDASIM_ASYNC=3"])
    ranks = re.search(r", (\d+) ranks$", name)
    if ranks:
        return [drawn_ranks if int(ranks[1]) == (2 if seed % 2 else 4) else ""]
    if mode == "plain":
        return [""]
    return {"nccl": ["", drawn_ranks], "benchmarks": [drawn]}.get(kind, ["", drawn])


tests = json.loads(subprocess.run(["meson", "introspect", build, "--tests"], stdout=subprocess.PIPE, check=True).stdout)
for test in tests:
    name = test["name"]
    if not any(suite.endswith("gpu") for suite in test["suite"]):
        continue
    if patterns and not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
        continue
    for order in orders_of(name):
        print(shlex.join([test["workdir"] or build, simulator, name, order, *test["cmd"]]))
