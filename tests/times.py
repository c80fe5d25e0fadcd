# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: times.py build-folder [how-many]

Shows where the time of a run went: seconds for each kind of target and test, and for the slowest of them (20). The data
comes from Ninja's log, Meson's test log, and the log that tests/run.sh writes of the runs on a CUDA device in software.
Seconds are wall-clock time of one process while others run in parallel. Interrupted builds and a busy machine make them
longer."""
import json
import pathlib
import re
import sys

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

if not 2 <= len(sys.argv) <= 3:
    print(__doc__.strip(), file=sys.stderr)
    sys.exit(2)
build = pathlib.Path(sys.argv[1])
many = int(sys.argv[2]) if len(sys.argv) > 2 else 20

# The first pattern that matches a target gives its kind.
kinds = [("examples, nvcc", r"examples/.*(_cuda|\.cu\.)"), ("examples, host", r"examples/"),
         ("architectures", r"\.(cubin|ptx|fatbin)$|tests/cuda"), ("NCCL programs", r"nccl"),
         ("device programs", r"\.cu\.o$|tests/gpu"), ("benchmarks", r"bench"),
         ("thread sanitizer", r"tests/(units/)?thread_"), ("address sanitizer", r"tests/(units/)?sanitized_"),
         ("families of rules", r"tests/(units/)?(laws|storage)_"),
         ("precompiled headers", r"\.gch"), ("MPI", r"mpi"), ("rules", r"tests/(units/)?references"),
         ("machine", r"tests/")]


def kind_of(target):
    return next((kind for kind, pattern in kinds if re.search(pattern, target)), "else")


def built():
    """Seconds of the last run of each command, by its outputs."""
    last = {}
    for line in (build / ".ninja_log").read_text().splitlines()[1:]:
        start, end, _, output, command = line.split("\t")
        last[output] = (int(start), int(end), command)
    commands = {}
    for output, (start, end, command) in last.items():
        commands.setdefault((start, end, command), output)
    return {output: (end - start) / 1000 for (start, end, _), output in commands.items()}


def tested():
    log = build / "meson-logs/testlog.json"
    for line in log.read_text().splitlines() if log.exists() else []:
        test = json.loads(line)
        suites, _, name = test["name"].rpartition(" / ")
        yield name, test["duration"], suites


def in_software():
    log = build / "software.log"
    for line in log.read_text().splitlines() if log.exists() else []:
        if done := re.match(r"(?:pass|FAIL) (.*) \((\d+) s\)$", line):
            yield done[1], int(done[2])


def table(title, rows):
    total = sum(seconds for _, seconds, _ in rows) or 1
    print(f"\n| {title} | how many | seconds | share |\n|---|---|---|---|")
    by_kind = {}
    for kind, seconds, _ in rows:
        count, sum_ = by_kind.get(kind, (0, 0))
        by_kind[kind] = count + 1, sum_ + seconds
    for kind, (count, seconds) in sorted(by_kind.items(), key=lambda row: -row[1][1]):
        print(f"| {kind} | {count} | {seconds:.0f} | {100 * seconds / total:.0f} % |")
    print(f"| all | {len(rows)} | {total:.0f} | |\n\n| dearest | seconds |\n|---|---|")
    for _, seconds, name in sorted(rows, key=lambda row: -row[1])[:many]:
        print(f"| {name} | {seconds:.1f} |")


suites = ["sanitize", "compile-fail", "headers", "cuda", "gpu", "docs", "contract", "host"]
table("built", [(kind_of(target), seconds, target) for target, seconds in built().items()])
table("tested", [(next((suite for suite in suites if suite in of), "else"), seconds, name) for name, seconds, of in tested()])
table("on a CUDA device in software", [(name.split("/")[0], seconds, name) for name, seconds in in_software()])
