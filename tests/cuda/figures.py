# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: figures.py table folder unit arch      reports where the kernels of folder/unit.arch.* differ from the table
       figures.py --write table folder unit...  rewrites the table

The cost of kernels over elements, for each architecture. Differences are only reported; guard.py checks promises.

    registers      per thread
    spilled        bytes of spills and stack
    instructions   in the machine code
    wide, narrow   accesses to global memory of 16 bytes, and of fewer bytes
    f64, i64       PTX operations on 64-bit floating point, and on 64-bit integers

The table names the compiler that it was recorded with."""
import re
import sys

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

import records
from kernels import demangled, machine_code, ptx_code, ptxas_texts, readable, resources

archs = ["sm_80", "sm_90", "sm_100"]
columns = ["registers", "spilled", "instructions", "wide", "narrow", "f64", "i64"]


def short(name):
    """The name of a kernel's body and its plan."""
    return re.sub(r"^each_packet<(.*)>>$", r"\1", readable(name.split(">(")[0] + ">"))


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
    recorded = {name: dict(zip(columns, row)) for a, *row, name in groups.get(unit, []) if a == arch}
    found = figures(unit, arch, folder)
    if not found:
        sys.exit(f"there are no kernels over elements in {unit}.{arch}")
    records.report(f"figures of {unit} on {arch}", found, recorded, recorded_tools, tools(folder, unit, arch))


if __name__ == "__main__" and sys.argv[1] == "--write":
    write(sys.argv[2], sys.argv[3], sys.argv[4:])
elif __name__ == "__main__":
    check(*sys.argv[1:])
