"""The benchmarks of a CUDA device as a test: the recipes of a small program agree with the oracle, eager and captured,
and their launches and bytes are those that the library reports.    usage: device_test.py DEVICE ORACLE
"""

import json
import os
import subprocess
import sys
import tempfile

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

here = os.path.dirname(os.path.abspath(__file__))
device, oracle = map(os.path.abspath, sys.argv[1:3])
bytes_each = {"adamw_bf16_clip": 30, "adamw_half_o2": 40}
launches = {"adamw_bf16_clip": 3, "adamw_half_o2": 3}
failures = []


def check(holds, what):
    if not holds:
        failures.append(what)


with tempfile.TemporaryDirectory() as folder:
    out = os.path.join(folder, "results.json")
    code = subprocess.run([sys.executable, os.path.join(here, "drive.py"), "--set", "few",
                           "--recipes", ",".join(bytes_each), "--contestant", f"descent={device}", "--contestant",
                           f"descent_captured={device} captured", "--oracle", oracle, "--work", folder, "--out", out,
                           "--least", "1", "--most", "1", "--seconds", "0.01", "--sample", "1e-5", "--sets", "2"],
                          check=False).returncode
    check(code == 0, f"drive.py ended with {code}")
    with open(out, encoding="utf-8") as text:
        results = json.load(text)["results"]
check(len(results) == len(bytes_each), "each recipe has a result")
for result in results:
    recipe = result["recipe"]
    check(result["step_bytes"] == bytes_each[recipe] * result["elements"], f"{recipe}: the bytes of a step")
    check(all("seconds" in of for of in result["ceilings"].values()), f"{recipe}: all ceilings are measured")
    for name, of in result["contestants"].items():
        check("seconds" in of and "host_seconds" in of, f"{recipe}: {name} is timed")
        check(of.get("launches") == launches[recipe], f"{recipe}: {name} makes {of.get('launches')} launches")
        check(of.get("synchronisations") == 0, f"{recipe}: {name} waits {of.get('synchronisations')} times")
print(*failures, sep="\n")
print("failed" if failures else "all as it should be")
sys.exit(bool(failures))
