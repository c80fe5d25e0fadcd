# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: code.py source cubin arch nvcc-version

Reports whether the hash of the machine code of the plain updates equals the one in the `code:` lines of the source. It
does not fail, because any change of an update changes its code."""
import hashlib
import re
import sys

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

from kernels import demangled, machine_code, readable

source, cubin, arch, version = sys.argv[1:5]
plans = {"float, float, adamw": "float", "half, half, adamw, master<float>": "half",
         "bfloat16, bfloat16, adamw, states<bfloat16>": "bfloat16"}
codes = machine_code(cubin)
found = {}
for mangled, name in demangled(codes).items():
    plan = re.match(r"each_packet<update_packets<plan<(.*?)>>>\(", readable(name))
    if plan and plan[1] in plans:
        found[plans[plan[1]]] = hashlib.sha256(codes[mangled]).hexdigest()[:16]
if len(found) != len(plans):
    sys.exit(f"of {list(plans)} there are {sorted(found)}")

line = re.compile(r"code: (\S+) (\S+) (\w+) +(\w+)")
recorded = {m[3]: m[4] for m in line.finditer(open(source).read()) if (m[1], m[2]) == (version, arch)}
for plan, code in sorted(found.items()):
    print(f"code: {version} {arch} {plan} {code}:", "as recorded" if recorded.get(plan) == code else "not as recorded")
