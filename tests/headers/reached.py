#!/usr/bin/env python3
"""Checks that descent.hpp includes every header that a host compiler can build, except those in left_out. elsewhere.hpp
declares the classes of these and of communicators, each on a line that names its header, except those in undeclared.

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
left_out |= {"descent/training/lr_finder.hpp", "descent/optimizer/find_nonfinite.hpp"}  # not part of a step
# For several ranks; communicators include the policies.
left_out |= {f"descent/{name}.hpp" for name in ("core/communicator", "ranks/parallel", "ranks/model_parallel", "training/diloco")}
left_out |= {"descent/matrices/host.hpp", "descent/matrices/matrices.hpp"}  # need a BLAS, like the rules for matrices
left_out |= {f"descent/{name}.hpp" for name in ("any_optimizer", "core/tensor_info")}  # for run time, files
left_out |= {"descent/policies/nvtx.hpp"}  # needs the headers of NVTX
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
undeclared = {"struct tbb"}  # would hide the namespace of oneTBB from programs with `using namespace descent`
undeclared |= {f"struct {name}" for name in ("factored_adafactor", "sm3_for_matrices", "newton_schulz")}  # made of rules, and a part of one
undeclared |= {"class lbfgs_optimizer", "class esgd_optimizer"}  # made by functions, and their results:
undeclared |= {f"struct {name}" for name in ("nonfinite_elements", "lbfgs_result", "esgd_result", "lr_point", "lr_curve")}
undeclared |= {f"struct {name}" for name in ("native_sum", "float_sum", "ordered_sum", "wire", "overlap", "missing_is_zero", "agree_every")}  # options of ranks
undeclared |= {f"struct {name}" for name in ("device_place", "by_ranks", "comm_progress", "tensor_info")}  # parts of communicators and of files
declared = dict(re.findall(r"^(?:template <.*> )?((?:class|struct) \w+); *// #include <(descent/[^>]+)>", (root / "descent/core/detail/elsewhere.hpp").read_text(encoding="utf-8"), re.M))


def classes_of(header):
    """The classes that a header defines in descent or descent::comm."""
    inner, names = [], set()
    for line in (root / header).read_text(encoding="utf-8").splitlines():
        space = re.match(r"(?:inline )?namespace (\S+) \{$", line)
        if space:
            inner.append(space[1])
        elif line.startswith("}  // namespace"):
            inner.pop()
        elif inner in (["descent"], ["descent::comm"], ["descent", "comm"]):
            names |= set(re.findall(r"^(?:template <.*> )?((?:class|struct) \w+)(?: final)?(?: :.*)? \{", line))
    return names


communicators = {str(p.relative_to(root)) for p in (root / "descent/comm").glob("*.*")}
defined = {name: header for header in left_out | communicators for name in classes_of(header)}
problems += [f"elsewhere.hpp does not declare {name}, which {defined[name]} defines" for name in sorted(defined.keys() - declared.keys() - undeclared)]
problems += [f"{name} is declared, or not there: take it off the list" for name in sorted(undeclared - (defined.keys() - declared.keys()))]
shown = {"struct matrices": "descent/matrices/host.hpp", "struct cuda": "descent/descent.cuh"}  # which include the definitions
problems += [f"{name} is defined in {defined.get(name)}, not in {header}" for name, header in declared.items()
             if (shown.get(name) or defined.get(name)) != header]
print(f"{len(public)} headers, {len(declared)} classes declared", *problems, sep="\n")
sys.exit(bool(problems) or len(public) < 100 or len(declared) < 20)
