# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: matrices.py program [--device cpu|cuda] [--blocks 12] [--width 768] [--rounds 5] [--threads 1]
  [--peers torch,optax]

Times a step of Muon on the matrices of GPT-2 beside other libraries, one step of each in turn, and prints a table:
median and range of the seconds, and the median of the ratios to this library's step of the same round. The program is
that of matrices.cpp or of matrices.cu. The peers need PyTorch, or JAX and optax, in this Python; torch_captured replays
PyTorch's step from a graph. A peer that makes no step is left out, with a line that says so."""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys

parser = argparse.ArgumentParser()
parser.add_argument("program")
for option, value in (("--blocks", 12), ("--width", 768), ("--rounds", 5), ("--threads", 1)):
    parser.add_argument(option, type=int, default=value)
parser.add_argument("--peers", default="torch,optax")
parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
wanted = parser.parse_args()
sizes = [str(wanted.blocks), str(wanted.width)]
threads = str(wanted.threads)
environment = os.environ | {
    "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads,
    "XLA_FLAGS": f"--xla_cpu_multi_thread_eigen={'true' if wanted.threads > 1 else 'false'} "
                 f"intra_op_parallelism_threads={threads}"}
cores = sorted(os.sched_getaffinity(0))[:wanted.threads]
peer = str(pathlib.Path(__file__).with_name("matrices_peer.py"))
ways = {"descent": [], "descent, bf16": ["bf16"]} if wanted.device == "cpu" else {
    "descent": ["exact", "captured"], "descent, tf32": ["tf32", "captured"], "descent, bf16": ["bf16", "captured"],
    "descent, bf16, eager": ["bf16", "eager"]}
commands = {name: [wanted.program, *sizes, *way] for name, way in ways.items()} | {
    name: [sys.executable, "-W", "ignore", peer, name, *sizes, wanted.device] for name in wanted.peers.split(",") if name}
pin = (lambda: os.sched_setaffinity(0, cores)) if wanted.device == "cpu" else None
running = {name: subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
                                  preexec_fn=pin)
           for name, command in commands.items()}


def seconds(name):
    process = running[name]
    try:
        process.stdin.write("\n")
        process.stdin.flush()
        return float(process.stdout.readline())
    except (OSError, ValueError):
        message = f"{name} made no step: {' '.join(commands[name])}"
        if name in ways:
            sys.exit(message)
        print(message)
        return None


for each in list(running):
    if seconds(each) is None:  # compiles, and touches the memory
        running.pop(each).kill()
rounds = [{name: seconds(name) for name in running} for _ in range(wanted.rounds)]
for process in running.values():
    process.stdin.close()
    if process.wait():
        sys.exit(f"{process.args[0]} ends with {process.returncode}")
print("| | seconds | range | times descent |\n|---|---|---|---|")
for each in running:
    taken = [one[each] for one in rounds]
    ratio = statistics.median(one[each] / one["descent"] for one in rounds)
    print(f"| {each} | {statistics.median(taken):.3g} | {min(taken):.3g} to {max(taken):.3g} | {ratio:.2f} |")
