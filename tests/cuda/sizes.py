# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: sizes.py table folder unit arch          compares the optimizers of folder/unit.arch.cubin with the table
       sizes.py --write table folder unit...     writes the table anew

What one optimizer puts into a program for a device: kernels, and bytes of machine code for each architecture. Neither
another number of kernels is allowed, nor 5 % of bytes more or less than recorded. The table holds for the compiler that
it names; for another one differences are only printed."""
import re
import sys

import records
from figures import archs, compiler
from kernels import demangled, machine_code


def plan_in(name):
    """The plan that a kernel is of, as people write it; what is of none is shared."""
    start = name.find("plan<")
    if start < 0:
        return "what they share"
    depth = 0
    for end in range(start + 4, len(name)):
        depth += {"<": 1, ">": -1}.get(name[end], 0)
        if depth == 0:
            break
    short = re.sub(r"descent::(detail::)?", "", name[start + 5:end])
    return short.replace("__nv_bfloat16", "bfloat16").replace("__half", "half").replace("> >", ">>").strip()


def tools(folder, unit, arch):
    return f"nvcc {compiler(folder, unit, arch)}: kernels, bytes for {', '.join(archs)}"


def sizes(folder, unit, arch):
    result = {}
    code = machine_code(f"{folder}/{unit}.{arch}.cubin")
    for mangled, name in demangled(code).items():
        kernels, size = result.get(plan_in(name), (0, 0))
        result[plan_in(name)] = kernels + 1, size + len(code[mangled])
    return result


def write(table, folder, units):
    groups = {}
    for unit in units:
        of = [sizes(folder, unit, arch) for arch in archs]
        groups[unit] = [(of[0][plan][0], *(o[plan][1] for o in of), plan) for plan in sorted(of[0])]
    records.write(table, tools(folder, units[0], archs[0]), groups)


def check(table, folder, unit, arch):
    recorded_tools, groups = records.read(table)
    recorded = {row[-1]: (row[0], row[1 + archs.index(arch)]) for row in groups[unit]}
    found = sizes(folder, unit, arch)
    problems = [*records.differences(found, recorded)]
    for plan in sorted(found.keys() & recorded.keys()):
        (kernels, size), (kernels_before, before) = found[plan], recorded[plan]
        if kernels != kernels_before:
            problems.append(f"{plan}: {kernels} kernels, recorded {kernels_before}")
        if abs(size - before) > before // 20:
            problems.append(f"{plan}: code {'grew' if size > before else 'sank'} from {before} to {size} bytes")
    print(f"{len(found)} optimizers of {unit} on {arch} compared with {table}")
    records.judge(problems, recorded_tools, tools(folder, unit, arch),
                  f"python3 tests/cuda/sizes.py --write {table} {folder} {' '.join(groups)}")


if sys.argv[1] == "--write":
    write(sys.argv[2], sys.argv[3], sys.argv[4:])
else:
    check(*sys.argv[1:])
