#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""Checks the front page: README.md has at most 120 lines, its times are those of the pages of performance, its picture is
drawn from them, and it counts the rules rightly.

usage: front.py project-root [--draw]

--draw writes docs/pictures/front.svg."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(root / "tests/benchmarks"))
import svg  # noqa: E402  # pylint: disable=wrong-import-position

readme = (root / "README.md").read_text(encoding="utf-8")
picture = root / "docs/pictures/front.svg"
contestants = ["descent", "PyTorch, fused", "PyTorch, captured"]
columns = [*contestants, "rate of a copy"]
units = {"µs": 1, "ms": 1000}


def rows(page):
    """The table of a page that has all columns: in each row the name, and the cells by the names of the columns."""
    names, found = [], []
    for line in (root / page).read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if set(columns) <= set(cells):
            names = cells
        elif not cells:
            names = []
        elif names and not cells[0].startswith("---"):
            row = dict(zip(names, cells))
            found.append((cells[0], {column: row[column] for column in columns}))
    return found


def microseconds(time):
    number, unit = time.split()
    return float(number) * units[unit]


def drawn(table):
    """The picture: for each row, a bar for each contestant, as a share of the rate of a plain copy."""
    title = "Rate of a step on an H200, relative to a plain copy of memory"
    left, right, bar, gap = 146, svg.page - 100, 16, 34  # at right a bar is as long as that of a copy
    top = svg.heading(title) + 12
    bars, y = "", top + 26
    for name, cells in table:
        bars += svg.text(svg.margin, y, name, 'font-weight="bold"')
        y += 8
        copy, own = float(cells["rate of a copy"].split()[0]), microseconds(cells["descent"])
        for contestant, colour in zip(contestants, (0, 7, 7)):
            length = max((right - left) * copy / 100 * own / microseconds(cells[contestant]), 1)
            bars += svg.text(svg.margin, y + bar - 4, contestant, f'class="n{colour}"')
            bars += f'<rect class="f{colour}" x="{left}" y="{y}" width="{length:.1f}" height="{bar - 3}"/>\n'
            bars += svg.text(right + 14, y + bar - 4, cells[contestant], f'class="n{colour}"')
            y += bar
        y += gap
    bottom = y - gap + 6
    bars += svg.line(right, top + 8, right, bottom, 'class="axis" stroke-dasharray="4 3"')
    bars += svg.text(right, top, "a plain copy", 'text-anchor="middle" class="soft"')
    return svg.document(title, bottom + 12, bars)


problems = []
table, measured = rows("README.md"), rows("docs/performance.md")
if table != measured or len(table) < 4:
    problems.append(f"README.md has the times {table}, but docs/performance.md has {measured}")
if "--draw" in sys.argv:
    picture.write_text(drawn(table), encoding="utf-8")
if not picture.exists() or picture.read_text(encoding="utf-8") != drawn(table):
    problems.append("docs/pictures/front.svg differs from the table: run tests/docs/front.py with --draw")

headers = {path.stem for path in (root / "include/descent/rules").glob("*.hpp")}
for_matrices = {name for name in headers
                if "#include <descent/matrices/" in (root / f"include/descent/rules/{name}.hpp").read_text(encoding="utf-8")}
rules = len(headers - for_matrices - {"larc", "layerwise"})  # these two take a rule
if f"it has {rules} rules" not in readme or f"| {rules} from " not in readme:
    problems.append(f"README.md does not say that there are {rules} rules")
if (lines := readme.count("\n")) > 120:
    problems.append(f"README.md has {lines} lines, more than 120")
print(*problems or [f"README.md has {lines} lines, {len(table)} rows of times"], sep="\n")
sys.exit(bool(problems))
