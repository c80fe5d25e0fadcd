#!/usr/bin/env python3
"""Tests the program that trains on ranks with one GPU each: two processes give the same bits as one process with two
micro-batches per batch, replicated and sharded. They may share a GPU, because each is started as if on its own host.

usage: train_ranks_cuda.py program-that-tells-of-a-device program
"""
import os
import re
import subprocess
import sys
import tempfile

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

device, program = sys.argv[1:]
if subprocess.run([device], check=False).returncode != 0:
    print("skipped: there is no CUDA device")
    sys.exit(77)
options = "--network softmax --limit 33 --batch 16 --epochs 1 --lr 0.01 --clip 1".split()


def start(rank, ranks, folder, *more):
    environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1",
                   "TORCHELASTIC_RUN_ID": os.path.basename(folder), "RENDEZVOUS": folder,
                   "NCCL_HOSTID": f"{folder}{rank}", "NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1",
                   "NCCL_IB_DISABLE": "1", "NCCL_SOCKET_IFNAME": "lo", "NCCL_MNNVL_ENABLE": "0", "NCCL_NVLS_ENABLE": "0",
                   "NCCL_RAS_ENABLE": "0", "NCCL_MAX_CTAS": "2"}
    return subprocess.Popen([program, *options, "--out", os.path.join(folder, str(rank)), *more], env=environment,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def train(ranks, *more):
    with tempfile.TemporaryDirectory() as folder:
        started = [start(rank, ranks, folder, *more) for rank in range(ranks)]
        said = [process.communicate(timeout=300)[0] for process in started]
        if any(process.returncode for process in started):
            sys.exit("it did not end well:\n" + "\n".join(said))
        found = re.findall(r"^parameters ([0-9a-f]{16}) on (\d+) ranks?$", said[0], re.M)
        if len(found) != 1 or int(found[0][1]) != ranks or any("parameters" in text for text in said[1:]):
            sys.exit("rank 0 alone says the parameters:\n" + "\n".join(said))
        return found[0][0]


want = train(1, "--policy", "single", "--micro-batches", "2")
for policy in "replicated", "sharded", "sharded --buckets 1000":
    got = train(2, "--policy", *policy.split())
    if got != want:
        sys.exit(f"{policy}: parameters {got} on 2 ranks, {want} on one with 2 micro-batches")
print(f"2 ranks have the bits of one with 2 micro-batches: {want}")
