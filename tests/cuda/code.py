"""usage: code.py source cubin arch nvcc-version

Compares the machine code of kernels with the hashes in the `code:` lines of the source."""
import hashlib
import re
import sys

from kernels import machine_code

source, cubin, arch, version = sys.argv[1:5]
plans = {"If": "float", "I6__half": "half", "I13__nv_bfloat16": "bfloat16"}
found = {}
for name, code in machine_code(cubin).items():
    if "update_packets" in name:
        (plan,) = (text for mark, text in plans.items() if "4plan" + mark in name)
        found[plan] = hashlib.sha256(code).hexdigest()[:16]

line = re.compile(r"code: (\S+) (\S+) (\w+) +(\w+)")
wanted = {m[3]: m[4] for m in line.finditer(open(source).read()) if (m[1], m[2]) == (version, arch)}
for plan, code in sorted(found.items()):
    print(f"code: {version} {arch} {plan} {code}")
if len(found) != 3:
    sys.exit(f"{len(found)} update kernels instead of 3")
if not wanted:
    print("nothing is recorded for this compiler and architecture")
elif wanted != found:
    sys.exit(f"recorded is {wanted}")
