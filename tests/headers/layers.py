# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: layers.py include-folder

Checks that a header includes only headers of its own folder or of a layer below, so that there are no include cycles.
Headers at the top level, and those that are named here, count as folders of their own. The first include of each header
leads to version.hpp, which asks for C++20 before anything is parsed that needs it."""
import pathlib
import re
import sys

layers = """
version.hpp
detail/util/aggregate.hpp detail/util/floating_point_mode.hpp
core report.hpp
io/tensor_info.hpp
detail/util
backends
parameters.hpp
any_elements.hpp policies schedules
detail/rule detail/step
rules transforms detail/ranks detail/matrix detail/optimizer
presets detail/host detail/cuda
policies/parallel.hpp policies/model_parallel.hpp detail/optimizer/optimizer_part.hpp
optimizer.hpp any_optimizer.hpp cuda.cuh detail/net detail/minimizers
policies/parallel.cuh policies/model_parallel.cuh
cost.hpp matrices minimizers training comm adapters
data
detail/data
data/csv.hpp data/idx.hpp data/npy.hpp data/raw_records.hpp data/token_file.hpp data/processes.hpp data/loader.hpp
data/device_loader.hpp data/resident.hpp
data/resident.cuh
io/load_options.hpp
detail/io
io/replace_file.hpp
io/safetensors.hpp
detail/run
io
descent.hpp
descent.cuh
"""
layer_of = {place: i for i, line in enumerate(layers.split("\n")) for place in line.split()}
root = pathlib.Path(sys.argv[1]) / "descent"


def place_of(header):
    return header if header in layer_of or "/" not in header else str(pathlib.PurePosixPath(header).parent)


def first_include(header):
    found = re.search(r"^ *#include <(?:descent/)?([^>]+)>", (root / header).read_text(encoding="utf-8"), re.M)
    return found[1] if found and (root / found[1]).exists() else None


def asks_for_cxx20(header):
    return header == "version.hpp" or (header is not None and asks_for_cxx20(first_include(header)))


problems, count = [], 0
for path in sorted(root.rglob("*.*")):
    header = str(path.relative_to(root))
    if not asks_for_cxx20(header):
        problems.append(f"{header} does not reach version.hpp first")
    for name in re.findall(r"^ *#include <descent/([^>]+)>", path.read_text(encoding="utf-8"), re.M):
        count += 1
        here, there = place_of(header), place_of(name)
        if {here, there} - set(layer_of):
            problems.append(f"{header} includes {name}: one of them is in no layer")
        elif here != there and layer_of[there] >= layer_of[here]:
            problems.append(f"{header} includes {name}, of a layer that is not below")
print(f"{count} includes", *problems, sep="\n")
sys.exit(bool(problems) or count < 500)
