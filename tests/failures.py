# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: failures.py build-folder

Prints what failed in the last run of tests/run.sh: what did not build, and the end of what each failed test wrote."""
import json
import pathlib
import re
import sys

build = pathlib.Path(sys.argv[1])


def lines(name):
    log = build / name
    return log.read_text(errors="replace").splitlines() if log.exists() else []


if not lines("build.log"):
    print(*lines("setup.log")[-40:], sep="\n")
print(*[line for line in lines("build.log") if not re.match(r"\[|ninja: ", line)][:200], sep="\n")
for test in map(json.loads, lines("meson-logs/testlog.json")):
    if test["result"] not in ("OK", "SKIP"):
        print(f"{test['result']} {test['name']}")
        print(*(test.get("stdout", "") + test.get("stderr", "")).splitlines()[-40:], sep="\n")
print(*[line for line in lines("software.log") if not line.startswith("pass ")], sep="\n")
