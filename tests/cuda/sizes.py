# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: sizes.py table folder unit arch          compares the optimizers of folder/unit.arch.cubin with the table
       sizes.py --write table folder unit...     writes the table anew

What one optimizer puts into a program for a device: kernels, and bytes of machine code for each architecture. Neither
another number of kernels is allowed, nor 5 % of bytes more or less than recorded. The table holds for the compiler that
it names; for another one differences are only printed."""
import re
import sys

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


def sizes(folder, unit, arch):
    result = {}
    code = machine_code(f"{folder}/{unit}.{arch}.cubin")
    for mangled, name in demangled(code).items():
        kernels, size = result.get(plan_in(name), (0, 0))
        result[plan_in(name)] = kernels + 1, size + len(code[mangled])
    return result


def write(table, folder, units):
    with open(table, "w") as out:
        print(f"nvcc {compiler(folder, units[0])}: kernels, bytes for {', '.join(archs)}", file=out)
        for unit in units:
            print(f"\n{unit}", file=out)
            of = [sizes(folder, unit, arch) for arch in archs]
            for plan in sorted(of[0]):
                print(f"{of[0][plan][0]:4}", *(f"{o[plan][1]:7}" for o in of), f" {plan}", file=out)


def read(table, unit, arch):
    first, *lines = open(table).read().splitlines()
    recorded, of = {}, None
    for line in lines:
        if line and not line.startswith(" "):
            of = line
        elif line and of == unit:
            kernels, *bytes, plan = line.split(None, 1 + len(archs))
            recorded[plan] = int(kernels), int(bytes[archs.index(arch)])
    return re.match(r"nvcc ([\d.]+)", first)[1], recorded


def check(table, folder, unit, arch):
    version, recorded = read(table, unit, arch)
    found = sizes(folder, unit, arch)
    problems = [f"{plan}: not recorded" for plan in found.keys() - recorded.keys()]
    problems += [f"{plan}: recorded, and no kernel" for plan in recorded.keys() - found.keys()]
    for plan in sorted(found.keys() & recorded.keys()):
        (kernels, size), (kernels_before, before) = found[plan], recorded[plan]
        if kernels != kernels_before:
            problems.append(f"{plan}: {kernels} kernels, recorded {kernels_before}")
        if abs(size - before) > before // 20:
            problems.append(f"{plan}: code {'grew' if size > before else 'sank'} from {before} to {size} bytes")
    print(f"{len(found)} optimizers of {unit} on {arch} compared with {table}", *problems, sep="\n")
    if compiler(folder, unit) != version:
        print(f"not compared: the table is of nvcc {version}")
    elif problems:
        sys.exit(f"If this is meant, record it: python3 tests/cuda/sizes.py --write {table} {folder} paths matrix")


if sys.argv[1] == "--write":
    write(sys.argv[2], sys.argv[3], sys.argv[4:])
else:
    check(*sys.argv[1:5])
