# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""PyTorch as a contestant of loader.py, which lists the commands and the ways. The data is that of loader.cpp.

Tensors are copied by one thread, as in PyTorch's own workers: for batches of this size more threads are slower.
"""

import json
import os
import sys
import time

import numpy
import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler, SequentialSampler, TensorDataset

row = 4096


def numbers(count, period, kind):
    return torch.arange(period).to(kind).repeat(-(-count // period))[:count]


class Digits(Dataset):
    """Pixels as float, of one record or of a list of records."""

    def __init__(self, records):
        self.x, self.y = numbers(records * 64, 17, torch.uint8).view(-1, 64), numbers(records, 10, torch.int64)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i].float() / 16, self.y[i]


class File(Dataset):
    """Records of a file. A list of them is copied by numpy at once."""

    def __init__(self, path):
        self.rows = numpy.memmap(path, dtype=numpy.uint8, mode="r").reshape(-1, row)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return (torch.from_numpy(numpy.array(self.rows[i])),)


class Slow(Dataset):
    def __init__(self, records):
        self.records = records

    def __len__(self):
        return self.records

    def __getitem__(self, i):
        time.sleep(0.001)
        return (torch.tensor(i),)


def dataset(case, records, path):
    if case == "floats":
        return TensorDataset(numbers(records * 20, 17, torch.float32).view(-1, 20), numbers(records, 10, torch.int64))
    if case == "digits":
        return Digits(records)
    if case == "bytes":
        return TensorDataset(numbers(records * row, 251, torch.uint8).view(-1, row))
    if case == "single":
        return TensorDataset(numbers(records, 251, torch.int64))
    return File(path) if case == "file" else Slow(records)


class Indexed:
    """No loader: tensors are indexed batch by batch, by a permutation, or in order as slices that are copied."""

    def __init__(self, data, batch, shuffled):
        self.data, self.batch, self.shuffled = data, batch, shuffled

    def __iter__(self):
        n = len(self.data)
        order = torch.randperm(n) if self.shuffled else None
        for i in range(0, n, self.batch):
            if self.shuffled:
                yield self.data[order[i:i + self.batch]]
            else:
                yield [x.clone() for x in self.data[i:i + self.batch]]


def batches(case, way, workers, records, batch, path):
    data, shuffled = dataset(case, records, path), case in ("floats", "digits", "file")
    if way == "index":
        return Indexed(data, batch, shuffled)
    known = {"num_workers": workers, "persistent_workers": workers > 0}
    if way == "lists":
        sampler = RandomSampler(data) if shuffled else SequentialSampler(data)
        return DataLoader(data, batch_size=None, sampler=BatchSampler(sampler, batch, False), **known)
    return DataLoader(data, batch_size=batch, shuffle=shuffled, **known)


def answer(slots, command, words):
    if command == "hello":
        return {"name": "PyTorch's DataLoader", "compiler": f"torch {torch.__version__}, numpy {numpy.__version__}",
                "flags": torch.backends.cpu.get_cpu_capability()}
    name, *words = words
    if command == "load":
        case, way, workers, records, batch, path = words
        slots[name] = batches(case, way, int(workers), int(records), int(batch), path)
        return {}
    if command == "unload":
        slots.pop(name, None)
        return {}
    if command == "check":
        count, total = 0, 0.0
        for fields in slots[name]:
            count += len(fields[0])
            total += sum(float(field.sum(dtype=torch.float64)) for field in fields)
        return {"records": count, "sum": total}
    epochs, start = int(words[0]), time.perf_counter()
    for _ in range(epochs):
        for _batch in slots[name]:
            pass
    return {"seconds": (time.perf_counter() - start) / epochs}


def main():
    torch.set_num_threads(1)
    slots, out = {}, os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of libraries must not be taken for an answer
    for line in sys.stdin:
        command, *words = line.split()
        if command == "quit":
            break
        try:
            said = answer(slots, command, words)
        except Exception as error:  # the driver must learn of any error; the next case may still work
            said = {"error": f"{type(error).__name__}: {error}"[:2000]}
        print(json.dumps(said), file=out, flush=True)


if __name__ == "__main__":
    main()
