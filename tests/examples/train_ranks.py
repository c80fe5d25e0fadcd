#!/usr/bin/env python3
"""Tests the program that trains on ranks: N processes give the same bits as one process with N micro-batches per batch,
and nearly the same result as a single pass over each batch. Only rank 0 prints and writes. Errors end all ranks.

usage: train_ranks.py mpirun program
"""
import array
import os
import re
import subprocess
import sys
import tempfile

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

mpirun, program = sys.argv[1:]
as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
environment = {**os.environ, **as_root, "OMP_NUM_THREADS": "1"}
# batches of 50, and one of 1, of which most of 4 ranks get nothing
training = "--limit 301 --batch 50 --epochs 3 --lr 0.01 --clip 1".split()


def check(holds, what):
    if not holds:
        sys.exit(f"does not hold: {what}")


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def on_ranks(*parts):
    """Runs mpirun with several parts, each (number of ranks, options)."""
    command = [mpirun, "--oversubscribe"]
    for ranks, *options in parts:
        command += ([":"] if command[-1] != "--oversubscribe" else []) + ["-np", str(ranks), program, *options]
    return run(*command)


def hash_of(done, ranks):
    check(done.returncode == 0, f"it ends well: {done.stdout}{done.stderr}")
    said = re.findall(r"^parameters ([0-9a-f]{16}) on (\d+) ranks?$", done.stdout, re.M)
    check(len(said) == 1 and int(said[0][1]) == ranks, f"the parameters are said once, of {ranks} ranks: {done.stdout}")
    check(done.stdout.count("epoch  train: loss") == 1, f"one rank prints: {done.stdout}")
    return said[0][0]


def parameters(folder):
    values = array.array("f")
    with open(os.path.join(folder, "parameters.bin"), "rb") as file:
        values.frombytes(file.read())
    return values


with tempfile.TemporaryDirectory() as folder:
    def out(name):
        return ["--out", os.path.join(folder, name)]

    def alone(name, *options):
        return hash_of(run(program, *training, *out(name), "--policy", "single", *options), 1)

    whole = alone("whole")
    check(whole != alone("other", "--seed", "2"), "the hash is of what was trained")
    check(whole == hash_of(on_ranks((1, *training, *out("one"))), 1), "one rank is one process")
    for ranks in 2, 4:
        parts = alone("parts", "--micro-batches", str(ranks))
        for policy in "replicated", "sharded":
            here = [*training, "--policy", policy]
            first, others = f"{policy}{ranks}", f"others{policy}{ranks}"
            got = hash_of(on_ranks((1, *here, *out(first)), (ranks - 1, *here, *out(others))), ranks)
            check(got == parts, f"{ranks} ranks, {policy}: the bits of {ranks} micro-batches, {got} {parts}")
            check(sorted(os.listdir(os.path.join(folder, first))) == ["curves.csv", "curves.svg", "parameters.bin"],
                  "rank 0 writes")
            check(not os.path.exists(os.path.join(folder, others)), "no other rank does")
            in_buckets = hash_of(on_ranks((ranks, *here, "--buckets", "1000", *out("buckets"))), ranks)
            check(in_buckets == parts, f"{ranks} ranks, {policy}: the same bits in buckets, {in_buckets} {parts}")
            apart = max(abs(a - b) for a, b in
                        zip(parameters(os.path.join(folder, first)), parameters(os.path.join(folder, "whole"))))
            check(apart < 1e-3, f"{ranks} ranks are close to one pass of the whole batch: {apart}")

    constant = ["--schedule", "constant", "--limit", "100", "--batch", "50"]
    lost = on_ranks((1, *constant, "--steps", "3", *out("lost")), (1, *constant, "--steps", "5", *out("lost")))
    check(lost.returncode != 0 and "then.steps of the schedule of lr is 3 (rank 0); " in lost.stderr,
          f"ranks that disagree: {lost.stderr}")
    check("\nparameters" not in lost.stdout, "and no result is printed")
    check(not os.path.exists(os.path.join(folder, "lost")), "and none is written")
    wrong = run(program, "--policy", "zero", *out("wrong"))
    check(wrong.returncode == 2 and wrong.stderr.startswith("train_ranks: --policy must be one of "), wrong.stderr)
