#!/usr/bin/env python3
"""Rank processes end at random points of a training run; the other ranks must end in time and with the right values.

usage: run.py program mpirun [rounds [seed]]

Each kind of end is tried `rounds` times in each phase of the program, with 3 and 4 ranks, replicated and sharded. The
clock of the deadline stands still while a remaining rank can still make progress (support/shared_clock.hpp). Each
remaining rank must end with exit code 1, or 75 if MPI_Finalize cannot return. Its message must name the rank, the
collective and how long it waited. All remaining ranks must have come equally far, with the values of a run without
faults at that point.
"""
import collections
import contextlib
import os
import pathlib
import random
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

program, mpirun = sys.argv[1], shlex.split(sys.argv[2])
rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
chance = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 2026)
DEADLINE = 2  # as in ranks.cpp
PHASES = {"replicated": ["constructor", "step", "gradient_norm"],
          "sharded": ["constructor", "step", "gather", "gradient_norm", "swap_average"]}
KINDS = {"kill": 137, "stop": 137, "exit": 3, "throw": 1, "leave": 2}  # kind of end, and the exit code of that rank
# mpirun does not end the other ranks
OPTIONS = ["-quiet", "--oversubscribe", "--bind-to", "none", "--enable-recovery", "-mca",
           "orte_abort_on_non_zero_status", "0", "-mca", "orte_allowed_exit_without_sync", "1"]
SHELL = '"$@"; code=$?; cd "$2"; rank=$OMPI_COMM_WORLD_RANK; echo $code > part.$rank; mv part.$rank code.$rank'
ENV = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMP_NUM_THREADS="1")

Case = collections.namedtuple("Case", "policy kind phase ranks victim sends polls")


class Rank:
    """The output of one rank."""

    def __init__(self, folder, rank):
        self.points, self.meetings, self.sent, self.fault, self.end = {0: None}, {0: 0}, {}, False, None
        with open(os.path.join(folder, str(rank)), encoding="utf-8") as lines:
            for line in lines:
                kind, *rest = line.split()
                if kind == "pid":
                    self.pid = int(rest[0])
                elif kind == "point":
                    self.points[int(rest[0])] = rest[2]
                    before, self.sent = self.sent, {k: int(v) for k, v in (x.split("=") for x in rest[3:])}
                    self.meetings[int(rest[0])] = self.meetings[int(rest[0]) - 1] + (before != self.sent)
                elif kind == "fault":
                    self.fault = True
                elif kind == "end":
                    self.end = int(rest[0]), rest[1], " ".join(rest[2:])


def train(case, folder):
    """Runs the program and returns the exit codes of the ranks."""
    command = [*mpirun, *OPTIONS, "-np", str(case.ranks), "sh", "-c", SHELL, "rank", program, folder, *map(str, (
        case.policy, case.kind, case.victim, case.phase, case.sends, case.polls))]
    with open(os.path.join(folder, "log"), "w", encoding="utf-8") as log:
        run = subprocess.Popen(command, env=ENV, stdout=log, stderr=log, start_new_session=True)
    codes, limit = {}, time.monotonic() + 100  # runs without errors take less
    try:
        while len(codes) < case.ranks and time.monotonic() < limit:
            for rank in set(range(case.ranks)) - set(codes):
                try:
                    with open(os.path.join(folder, f"code.{rank}"), encoding="utf-8") as code:
                        codes[rank] = int(code.read())
                except OSError:
                    pass
            if case.kind == "stop" and len(codes) == case.ranks - 1 and case.victim not in codes:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(Rank(folder, case.victim).pid, signal.SIGKILL)
            if run.poll() is not None and len(codes) < case.ranks:
                limit = min(limit, time.monotonic() + 0.5)
            time.sleep(0.01)
        run.wait(timeout=100)
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGTERM)
            time.sleep(1)
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
    return codes


def begun(folder):
    """Whether a rank has got beyond MPI_Init and the barrier after it, to what is tested here."""
    files = [file for file in pathlib.Path(folder).iterdir() if file.name.isdigit()]
    return any(re.search("^(point|fault|end)", file.read_text(encoding="utf-8"), re.M) for file in files)


def wrong_message(text, rank, case):
    if not re.match(rf"rank {rank} in \w+( from \d+)? of \d+ \w+: ", text):
        return "does not say who is in which collective"
    if case.kind in ("throw", "leave"):
        return None if re.search(rf": rank {case.victim}(: no more memory| ended with an exception)$", text) else (
            "does not say what happened")
    late = re.search(r"rank \d waited ([\d.]+) s in collective \d+, \w+( from \d+)? of \d+ \w+ for rank ([\d, ]+)$",
                     text)
    if late:
        if str(case.victim) not in late[3].split(", "):
            return "names other ranks"
        return None if late[1] == str(DEADLINE) else "says another deadline"
    error = re.search(r"error between ranks (\d) and (\d) in collective \d+: .*, after [\d.e-]+ s$", text)
    return None if error and str(case.victim) in error.groups() else "does not say whom it waited for"


def problems(case, want, meetings):
    """The problems of a run. want: values after each part of the program; meetings: parts so far where ranks met."""
    for _ in range(3):  # sometimes, on a busy machine, a rank does not get through MPI_Init, and all wait in vain
        with tempfile.TemporaryDirectory() as folder:
            codes = train(case, folder)
            with open(os.path.join(folder, "log"), encoding="utf-8", errors="replace") as log:
                said = log.read()
            try:
                ranks = [Rank(folder, r) for r in range(case.ranks)]
                break
            except OSError as error:
                print("did not start:", case, error, f"exit codes {codes}: {said[-600:]}", flush=True)
                if begun(folder):
                    return ["a rank is missing, but others have begun"], []
    else:
        return ["did not start"], []
    victim, left = ranks[case.victim], [r for r in range(case.ranks) if r != case.victim]
    if not victim.fault:
        return [f"nothing happened in phase {case.phase}: {[(codes.get(r), x.end) for r, x in enumerate(ranks)]}"], []
    found = []
    if codes.get(case.victim) != KINDS[case.kind]:
        found.append(f"rank {case.victim} ends with {codes.get(case.victim)}, not {KINDS[case.kind]}")
    allowed = {"stop": (75,), "throw": (1,), "leave": (1,)}.get(case.kind, (1, 75))
    for r in left:
        end = ranks[r].end
        if codes.get(r) not in allowed:
            found.append(f"rank {r} ends with {codes.get(r)}, not one of {allowed}: {said[-600:]}")
        if not end:
            found.append(f"rank {r} says nothing")
            continue
        bad = wrong_message(end[2], r, case)
        if bad:
            found.append(f"rank {r} {bad}: {end[2]}")
        if end[0] > 0 and end[1] != want[end[0]]:
            found.append(f"rank {r} has other values than those after part {end[0]}")
        if end[0] < max(victim.points) or meetings[end[0]] > meetings[max(victim.points)] + 1:
            found.append(f"rank {r} has done {end[0]} parts, rank {case.victim} {max(victim.points)}")
    if len({ranks[r].end[0] for r in left if ranks[r].end}) > 1:
        found.append(f"ranks are not equally far: {[ranks[r].end for r in left]}")
    if codes.get(left[0]) == 75 and "a rank is gone" not in said:
        found.append("exit code 75 without a word")
    return found, [codes.get(r) for r in left]


want, meetings, sent = {}, {}, {}
for policy in PHASES:
    for size in (3, 4):
        case = Case(policy, "none", "none", size, 0, 0, 0)
        with tempfile.TemporaryDirectory() as folder:
            codes = train(case, folder)
            ranks = [Rank(folder, r) for r in range(size)]
        assert codes == {r: 0 for r in range(size)}, (codes, [r.end for r in ranks])
        assert all(r.points == ranks[0].points for r in ranks), "ranks differ without a fault"
        key = policy, size
        want[key], meetings[key], sent[key] = ranks[0].points, ranks[0].meetings, [r.sent for r in ranks]
for size in (3, 4):
    assert want["replicated", size] == want["sharded", size], "replicated and sharded differ"

cases = []
for policy, phases in PHASES.items():
    for phase in phases:
        for kind in KINDS:
            for n in range(rounds if KINDS[kind] > 2 else (rounds + 1) // 2):
                size = chance.choice((3, 4))
                victim = chance.randrange(size)
                sends = chance.randint(1, sent[policy, size][victim][phase])
                polls = 0 if KINDS[kind] <= 2 else chance.choice((0, 0, 1, 5, 20, 60))
                cases.append(Case(policy, kind, phase, size, victim, sends, polls))
start = time.monotonic()
with ThreadPoolExecutor(5) as pool:
    results = list(pool.map(lambda c: problems(c, want[c.policy, c.ranks], meetings[c.policy, c.ranks]), cases))
wrong = 0
for case, (found, _) in zip(cases, results):
    if found:
        wrong += 1
        print(" ".join(map(str, case)), *found, sep="\n    ")
for kind in KINDS:
    codes = collections.Counter(str(c) for case, (_, left) in zip(cases, results) if case.kind == kind for c in left)
    print(f"{kind}: {sum(c.kind == kind for c in cases)} runs, exit codes of the ranks that are left: {dict(codes)}")
print(f"{len(cases)} runs in {time.monotonic() - start:.0f} s, {wrong} wrong")
sys.exit(bool(wrong))
