# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: sizes.py table folder unit arch       reports where the optimizers of folder/unit.arch.* differ from the table
       sizes.py --write table folder unit...  rewrites the table

What one optimizer adds to a device program: kernels, and bytes of machine code for each architecture. Differences are
only reported. The table names the compiler that it was recorded with."""
import sys

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

import records
from figures import archs, compiler
from kernels import demangled, machine_code, readable


def plan_in(name):
    """The plan of a kernel, as in source code; kernels without a plan are shared."""
    start = name.find("plan<")
    if start < 0:
        return "what they share"
    depth = 0
    for end in range(start + 4, len(name)):
        depth += {"<": 1, ">": -1}.get(name[end], 0)
        if depth == 0:
            break
    return readable(name[start + 5:end]).strip()


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
    recorded = {row[-1]: dict(kernels=row[0], bytes=row[1 + archs.index(arch)]) for row in groups.get(unit, [])}
    found = {plan: dict(kernels=kernels, bytes=size) for plan, (kernels, size) in sizes(folder, unit, arch).items()}
    if not found:
        sys.exit(f"there are no kernels in {unit}.{arch}")
    records.report(f"sizes of {unit} on {arch}", found, recorded, recorded_tools, tools(folder, unit, arch))


if sys.argv[1] == "--write":
    write(sys.argv[2], sys.argv[3], sys.argv[4:])
else:
    check(*sys.argv[1:])
