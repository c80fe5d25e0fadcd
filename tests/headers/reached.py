#!/usr/bin/env python3
"""Checks that descent.hpp includes every header that a host compiler can build, except those in left_out.

usage: reached.py include-folder
"""
import pathlib
import re
import sys

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

root = pathlib.Path(sys.argv[1])
left_out = {"descent/backends/thrust.hpp", "descent/backends/tbb.hpp", "descent/backends/cuda.hpp"}  # need Thrust, TBB, CUDA
left_out |= {"descent/minimizers/lbfgs.hpp", "descent/minimizers/esgd.hpp"}  # replace a step; few programs need them
left_out |= {"descent/training/lr_finder.hpp"}  # not part of a step
# For several ranks; communicators include the policies.
left_out |= {f"descent/{name}.hpp" for name in ("core/communicator", "ranks/parallel", "ranks/model_parallel", "training/diloco")}
left_out |= {"descent/matrices/host.hpp", "descent/matrices/matrices.hpp"}  # need a BLAS, like the rules for matrices
left_out |= {f"descent/{name}.hpp" for name in ("any_optimizer", "core/tensor_info")}  # for run time, files
left_out |= {f"descent/rules/{name}.hpp" for name in ("adafactor", "kl_shampoo", "muon", "shampoo", "sm3", "soap")}


def reach(header, seen):
    if header not in seen:
        seen.add(header)
        for name in re.findall(r"^#include <(descent/[^>]+)>", (root / header).read_text(encoding="utf-8"), re.M):
            reach(name, seen)
    return seen


public = {str(p.relative_to(root)) for p in (root / "descent").rglob("*.hpp") if not {"detail", "engine", "comm", "adapters", "data", "io"} & set(p.parts)}
missed = public - reach("descent/descent.hpp", set())
problems = [f"descent.hpp does not reach {h}" for h in sorted(missed - left_out)]
problems += [f"{h} is reached, or not there: take it off the list" for h in sorted(left_out - missed)]
print(f"{len(public)} headers", *problems, sep="\n")
sys.exit(bool(problems) or len(public) < 100)
