# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: layers.py include-folder

Checks that a header includes only headers of its own folder or of a layer below. x/detail belongs to x. A header at the
top level may include any, but there are no cycles of folders and headers at the top level. The first include of each
header leads to version.hpp, which asks for C++20 before anything is parsed that needs it."""
import graphlib
import pathlib
import re
import sys

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

layers = """
core
policies
schedules
engine/step
backends
engine/host engine/cuda
ranks
optimizer
matrices
rules
transforms
presets
training minimizers
data
io
adapters comm
"""
layer_of = {place: i for i, line in enumerate(layers.split("\n")) for place in line.split()}
root = pathlib.Path(sys.argv[1]) / "descent"


def place_of(header):
    return header if "/" not in header else str(pathlib.PurePosixPath(header).parent).removesuffix("/detail")


def first_include(header):
    found = re.search(r"^ *#include <(?:descent/)?([^>]+)>", (root / header).read_text(encoding="utf-8"), re.M)
    return found[1] if found and (root / found[1]).exists() else None


def asks_for_cxx20(header):
    return header == "version.hpp" or (header is not None and asks_for_cxx20(first_include(header)))


problems, count, below = [], 0, {}
for path in sorted(root.rglob("*.*")):
    header = str(path.relative_to(root))
    if not asks_for_cxx20(header):
        problems.append(f"{header} does not reach version.hpp first")
    for name in re.findall(r"^ *#include <descent/([^>]+)>", path.read_text(encoding="utf-8"), re.M):
        count += 1
        here, there = place_of(header), place_of(name)
        if here != there:
            below.setdefault(here, set()).add(there)
        if any("." not in place and place not in layer_of for place in (here, there)):
            problems.append(f"{header} includes {name}: one of them is in no layer")
        elif here != there and here in layer_of and layer_of.get(there, -1) >= layer_of[here]:
            problems.append(f"{header} includes {name}, of a layer that is not below")
try:
    graphlib.TopologicalSorter(below).prepare()
except graphlib.CycleError as error:
    problems.append("a cycle: " + " includes ".join(reversed(error.args[1])))
print(f"{count} includes of {len(below)} folders and headers at the top level", *problems, sep="\n")
sys.exit(bool(problems) or count < 500)
