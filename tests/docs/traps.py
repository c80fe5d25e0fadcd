#!/usr/bin/env python3
"""Checks that every test named in docs/design/traps.md exists.

usage: traps.py project-root

In the third column of its tables, a test is written as `file`: name of the test case. Several tests are separated
by "; ". The file is relative to tests/; a file of compile_fail/ needs no name. Other text says why there is no test.
"""
import os
import re
import sys

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

root = sys.argv[1]
page = os.path.join(root, "docs/design/traps.md")
texts, problems, named = {}, [], 0


def cases(file):
    """The names of a file's test cases, string literals joined."""
    if file not in texts:
        with open(os.path.join(root, "tests", file), encoding="utf-8") as text:
            joined = re.sub(r'"\s*\n\s*"', "", text.read())
        texts[file] = re.findall(r'TEST_CASE(?:_TEMPLATE)?\(\s*"((?:[^"\\]|\\.)*)"', joined)
    return texts[file]


with open(page, encoding="utf-8") as text:
    for number, line in enumerate(text, 1):
        if not line.startswith("| ") or line.startswith("| trap"):
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if len(cells) != 3 or not all(cells):
            problems.append(f"{number}: {len(cells)} columns")
            continue
        for test in re.split(r"; (?=`)", cells[2]) if cells[2].startswith("`") else []:
            file, _, name = re.fullmatch(r"`([^`]+)`(: (.+))?", test).groups()
            named += 1
            if not os.path.exists(os.path.join(root, "tests", file)):
                problems.append(f"{number}: there is no tests/{file}")
            elif not file.startswith("compile_fail/") and name not in cases(file):
                problems.append(f"{number}: tests/{file} has no test case '{name}'")
print(f"{named} tests named, {len(problems)} wrong", *problems, sep="\n")
sys.exit(bool(problems) or named < 100)
