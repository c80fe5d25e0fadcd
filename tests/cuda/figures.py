# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: figures.py table folder unit arch      compares the kernels of folder/unit.arch.* with the table
       figures.py --write table folder unit...  writes the table anew

What kernels over elements cost, for each architecture:

    registers      of a thread
    spilled        bytes of spills and stack
    instructions   of the machine code
    wide, narrow   accesses of global memory of 16 bytes, and of less
    f64, i64       operations in PTX on 64-bit floating point, and on 64-bit integers

A kernel may have 2 registers and 5 % of instructions or 64-bit operations more than recorded, and nothing else more.
Figures hold for the compiler that the table names; for another one they are only printed."""
import re
import sys

import records
from kernels import demangled, machine_code, ptx_code, ptxas_texts, resources

archs = ["sm_80", "sm_90", "sm_100"]
columns = ["registers", "spilled", "instructions", "wide", "narrow", "f64", "i64"]
slack = {"registers": lambda n: n + 2, **{c: lambda n: n + max(n // 20, 2) for c in ("instructions", "f64", "i64")}}


def short(name):
    """The body and the plan, as people write them."""
    name = re.sub(r"descent::(detail::)?", "", name.split(">(")[0] + ">")
    name = re.sub(r"^void (each_packet<)?", "", name).replace("__nv_bfloat16", "bfloat16").replace("__half", "half")
    return re.sub(r" (?=>)|>+ ?>$", "", name).strip()


def figures(unit, arch, folder):
    cubin, ptx, log = (f"{folder}/{unit}.{arch}.{kind}" for kind in ("cubin", "ptx", "log"))
    machine, codes, logs = machine_code(cubin), ptx_code(ptx), ptxas_texts(log)
    result = {}
    for mangled, name in demangled(codes).items():
        if not re.search(r"update_packets|measure_chunks", name):
            continue
        stack, stores, loads, registers = resources(logs[mangled])
        accesses = re.findall(r"\b(?:ld|st)\.global\S*", codes[mangled])
        wide = sum(bool(re.search(r"\.v4\.\w32$|\.v2\.\w64$", a)) for a in accesses)
        operations = re.findall(r"^\s*(?:@\S+\s+)?((?!ld|st|mov|cvta)[a-z]\w*(?:\.\w+)*)", codes[mangled], re.M)
        result[short(name)] = dict(
            registers=registers, spilled=stack + stores + loads,
            instructions=len(machine[mangled]) // 16, wide=wide, narrow=len(accesses) - wide,
            f64=sum(".f64" in o for o in operations),
            i64=sum(bool(re.search(r"\.[sub]64", o)) for o in operations))
    return result


def compiler(folder, unit, arch):
    text = open(f"{folder}/{unit}.{arch}.ptx").read()
    return re.search(r"Cuda compilation tools, release .*?, V([\d.]+)", text)[1]


def tools(folder, unit, arch):
    return f"nvcc {compiler(folder, unit, arch)}: {' '.join(columns)}, for {', '.join(archs)}"


def write(table, folder, units):
    groups = {}
    for unit in units:
        of = [figures(unit, arch, folder) for arch in archs]
        groups[unit] = [(arch, *(rows[name][c] for c in columns), name)
                        for name in sorted(of[0]) for arch, rows in zip(archs, of)]
    records.write(table, tools(folder, units[0], archs[0]), groups)


def check(table, folder, unit, arch):
    recorded_tools, groups = records.read(table)
    recorded = {name: dict(zip(columns, row)) for a, *row, name in groups[unit] if a == arch}
    found = figures(unit, arch, folder)
    problems = [*records.differences(found, recorded)]
    for name in sorted(found.keys() & recorded.keys()):
        for c in columns:
            was, now = recorded[name][c], found[name][c]
            if now > slack.get(c, int)(was):
                problems.append(f"{name}: {now} {c}, recorded {was}")
            elif now < was:
                print(f"{name}: {now} {c}, recorded {was}: better")
    print(f"{len(found)} kernels of {unit} on {arch} compared with {table}")
    records.judge(problems, recorded_tools, tools(folder, unit, arch),
                  f"python3 tests/cuda/figures.py --write {table} {folder} {' '.join(groups)}")


if __name__ == "__main__" and sys.argv[1] == "--write":
    write(sys.argv[2], sys.argv[3], sys.argv[4:])
elif __name__ == "__main__":
    check(*sys.argv[1:])
