#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: command_lines.py project-root [program...]

With programs: each answers --help with what it does and its options, and a wrong option with the nearest one and status
2, before it prints anything else. Without: the same of the scripts, in shell and in Python. No line has more than 120
columns."""
import os
import pathlib
import re
import subprocess
import sys

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

root, programs = pathlib.Path(sys.argv[1]), [str(pathlib.Path(program).resolve()) for program in sys.argv[2:]]
failures = []


def check(holds, what):
    if not holds:
        print("FAILED", what)
        failures.append(what)


def run(*command):
    nothing_built = os.environ | {"DESCENT_RELEASE": "no such folder"}
    return subprocess.run(command, capture_output=True, text=True, cwd=root, stdin=subprocess.DEVNULL, env=nothing_built,
                          check=False)


def helps(*command):
    said = run(*command, "--help")
    check(said.returncode == 0 and said.stderr == "", f"{command} --help: {said}")
    check("usage: " in said.stdout, f"{command} --help says how it is used: {said.stdout}")
    check(re.search(r"^[A-Z].{20,}", said.stdout, re.M), f"{command} --help says what it does: {said.stdout}")
    long = [line for line in said.stdout.splitlines() if len(line) > 120]
    check(not long, f"{command} --help: more than 120 columns: {long}")


def refuses(command, message):
    said = run(*command)
    check((said.returncode, said.stdout) == (2, "") and message in said.stderr, f"{command}: {message}, not {said}")


for program in programs:
    helps(program)
    refuses([program, "--hlep", "x"], 'unknown option "--hlep": did you mean --help?')
    name = pathlib.Path(program).name
    check(f"{name} --help lists the options\n" in run(program, "--hlep", "x").stderr, f"{name} says who lists them")

if not programs:
    scripts = [path for folder in ("tests", "tests/benchmarks", "examples") for path in sorted((root / folder).glob("*.sh"))]
    scripts = [path.relative_to(root) for path in scripts if path.name != "setup.sh"]  # it is a part of others
    check(len(scripts) > 15, f"the scripts are found: {scripts}")
    for script in scripts:
        said = run("sh", script, "--help")
        check(said.returncode == 0 and said.stderr == "" and said.stdout.count("\n") >= 1, f"{script} --help: {said}")
        check(all(len(line) <= 120 for line in said.stdout.splitlines()), f"{script} --help has lines of 120 columns")
    for script in "tests/run.sh", "tests/learn.sh", "tests/gpu.sh", "tests/benchmarks/run.sh", "tests/benchmarks/gpu.sh", \
            "tests/mutants.sh", "tests/rule.sh", "examples/run.sh", "examples/scaling.sh":
        helps("sh", script)
    for script in sorted(root.glob("**/*.py")):
        text = script.read_text(encoding="utf-8")
        if "build" not in script.parts[-2] and 'in (["-h"], ["--help"])' in text:
            helps(sys.executable, str(script))
            name = f"usage: {script.name}"
            check(name in run(sys.executable, str(script), "--help").stdout, f"{script} --help says '{name}'")
    for words, message in {
            "sh tests/run.sh --al": "unknown option '--al': did you mean --all?",
            "sh tests/rule.sh adamv": "no rule 'adamv': did you mean adamw?",
            "sh tests/rule.sh nothing_near": "no rule 'nothing_near'; there are\n  acprop, ",
            "sh tests/learn.sh momntum": "no exercise 'momntum': did you mean momentum?",
            "sh tests/learn.sh --chek": "unknown option '--chek': did you mean --check?",
            "sh tests/mutants.sh --chnged": "no mutant and no rule '--chnged': did you mean --changed?",
            "sh tests/mutants.sh adamv": "no mutant and no rule 'adamv': did you mean adamw?",
            "sh tests/gpu.sh --gathr": "unknown option '--gathr': did you mean --gather?",
            "sh tests/benchmarks/run.sh --quik": "unknown option '--quik': did you mean --quick?",
            "sh tests/benchmarks/gpu.sh --hole": "unknown option '--hole': did you mean --whole?",
            "python3 tests/format.py --fixx": "unknown option '--fixx': did you mean --fix?",
            "python3 tests/times.py": "usage: times.py build-folder",
            "python3 docs/install/single.py descent.hpp": "usage: single.py header output",
    }.items():
        refuses(words.split(), message)

sys.exit(f"{len(failures)} failed" if failures else 0)
