"""Writes values_sampler.txt: the indices of torch.utils.data.DistributedSampler.

case size ranks rank shuffle seed epoch drop_last : indices

and the first and last indices of the shortest permutation that torch.randperm draws in a different way:

order n seed : first second third last
"""
# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
import pathlib

import torch
from torch.utils.data.distributed import DistributedSampler


def cases():
    for size in (0, 1, 2, 3, 7, 16, 33):
        for ranks in (1, 2, 3, 5):
            for drop in (False, True):
                for shuffle, seed, epoch in ((False, 0, 0), (True, 0, 0), (True, 0, 3), (True, 2**33 + 7, 2)):
                    if size == 0 and not drop:
                        continue
                    yield size, ranks, shuffle, seed, epoch, drop
    yield 1000, 7, True, 1, 1, False


path = pathlib.Path(__file__).parent / "values_sampler.txt"
with path.open("w") as file:
    print(f"# torch {torch.__version__.split('+')[0]}, by {pathlib.Path(__file__).name}", file=file)
    for size, ranks, shuffle, seed, epoch, drop in cases():
        for rank in range(ranks):
            sampler = DistributedSampler(range(size), ranks, rank, shuffle, seed, drop)
            sampler.set_epoch(epoch)
            print("case", size, ranks, rank, int(shuffle), seed, epoch, int(drop), ":", *list(sampler), file=file)
    n = (2**32 - 1) // 20
    order = torch.randperm(n, generator=torch.Generator().manual_seed(3))
    print("order", n, 3, ":", *order[[0, 1, 2, -1]].tolist(), file=file)
