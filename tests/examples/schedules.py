#!/usr/bin/env python3
"""Tests the program that draws schedules: every schedule has a curve, tables have its values, docs/ has its picture.

usage: schedules.py project-root program
"""
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

root, program = sys.argv[1:]


def run(*arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True)


def check(holds, what):
    if not holds:
        sys.exit(f"does not hold: {what}")


def table(name, steps):
    head, *rows = run(name, "--steps", str(steps)).stdout.splitlines()
    numbers = [[float(x) for x in row.split()] for row in rows]
    check([row[0] for row in numbers] == list(range(steps + 1)), f"{name}: a row for each step")
    check(len({len(row) for row in numbers}) == 1, f"{name}: equal rows")
    return numbers


names = re.split(r",\s+", re.search(r"There are\s+(.*)\.$", run().stdout.strip(), re.S).group(1))
folder = os.path.join(root, "include/descent/schedules")
classes = {}  # of schedules, with their headers
for header in os.listdir(folder):
    with open(os.path.join(folder, header), encoding="utf-8") as file:
        parts = re.split(r"^(?:template <.*> )?(?:struct|class) (\w+)(?: : .*)? \{$", file.read(), flags=re.M)
    classes |= {name: header for name, body in zip(parts[1::2], parts[2::2])
                if "DESCENT_HD double operator()(std::int64_t" in body}
choices = {"any_of", "per_group"}  # they choose among schedules, at run time or for each group
shown = {"combine": {"scaled", "clamped", "delayed", "per_epoch", "fractional_epochs"},
         "piecewise": {"piecewise_constant", "piecewise_interpolated"}, "table": {"table", "table_schedule"}}
missing = set(classes) - set(names) - choices - set().union(*shown.values())
check(not missing and len(classes) > 30, f"each schedule is there: {missing}")
beside = set(shown) - {"table"} | {"multiplicative", "plateau", "gradual_warmup", "batch_growth"}  # other functions
check(set(names) - set(classes) == beside, f"and nothing else: {set(names) - set(classes)}")
with open(os.path.join(root, "docs/schedules.md"), encoding="utf-8") as page:
    text = page.read()
for name, header in classes.items():
    if name not in choices | {"table", "table_schedule"}:
        check(f"](../include/descent/schedules/{header})" in text and name in text, f"docs/schedules.md has {name}")
with open(os.path.join(root, "docs/schedules_use.md"), encoding="utf-8") as page:
    text = page.read()
for name in choices | {"table"}:
    check(name in text, f"docs/schedules_use.md has {name}")

for name in names:
    table(name, 40)
check(all(row[1] == 0.5 for row in table("constant", 20)), "constant is constant")
check([row[1] for row in table("step", 20)][::4] == [1, 0.5, 0.25, 0.125, 0.0625, 0.03125], "step halves")
growth = table("batch_growth", 100)[::10]
check([row[3] * 16 for row in growth] == [1, 1, 1, 2, 4, 4, 8, 16, 16, 16, 16], "the batch grows after the warm-up")
check([row[2] for row in growth] == [0.1, 1, 1, 1, 1, 1, 1, 1, 1, 0.5, 0.25], "and then the rate falls")
check(min(row[1] for row in table("plateau", 100)) < 0.11, "the plateau is found")

wrong = run("one_cycl")
check(wrong.returncode == 2 and 'there is no schedule "one_cycl": did you mean one_cycle?' in wrong.stderr, wrong.stderr)
check(run("step", "--steps", "3").returncode == 2, "too few steps are refused")

with tempfile.TemporaryDirectory() as folder:
    file = os.path.join(folder, "schedules.svg")
    check(run("--draw", file).returncode == 0, "it draws")
    drawn = [file, os.path.join(folder, "schedules_2.svg")]
    titles = [t.text for one in drawn for t in xml.parse(one).getroot().iter("{http://www.w3.org/2000/svg}text")
              if t.get("font-weight") == "bold" and t.get("font-size") is None]
    check(titles == names, f"a panel for each: {titles}")
    for one in drawn:
        name = os.path.basename(one)
        with open(one, "rb") as new, open(os.path.join(root, "docs/pictures", name), "rb") as old:
            check(new.read() == old.read(), f"docs/pictures/{name} is what it draws")
