"""Writes the files that contestants read."""

import array
import os
import random

table_size = 65521  # a prime, so that tiles and tensors do not coincide


class Files:
    """The cases, the table of numbers, and the lists of elements to compare."""

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        self.table = os.path.join(folder, "table.bin")
        numbers = random.Random(1)
        with open(self.table, "wb") as out:
            array.array("f", (numbers.gauss(0, 0.5) for _ in range(table_size))).tofile(out)
            array.array("f", (numbers.gauss(0, 1e-3) for _ in range(table_size))).tofile(out)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="ascii") as out:
            out.write(text)
        return self.path(name)

    def case(self, case):
        lines = "".join(f"{count} {times}\n" for count, times in case.tensors)
        return self.write(case.name + ".case", f"align {case.align}\nzeros {case.zeros}\n{lines}")

    def memory(self, size):
        return self.write("memory.case", f"align 1\nzeros 0\n{size} 1\n")

    def samples(self, case):
        """The ends of tensors, and elements in between."""
        sizes = [count for count, times in case.tensors for _ in range(times)]
        chosen, numbers = [], random.Random(2)
        for tensor in range(len(sizes)) if len(sizes) <= 200 else numbers.sample(range(len(sizes)), 200):
            inside = [numbers.randrange(sizes[tensor]) for _ in range(max(4, 2000 // len(sizes)))]
            chosen += [(tensor, i) for i in sorted({0, sizes[tensor] - 1, *inside})]
        return self.write(case.name + ".samples", "".join(f"{tensor} {i}\n" for tensor, i in chosen))
