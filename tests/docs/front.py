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
    """The picture: for each row, a bar for each contestant, as a share of the speed of a plain copy."""
    width, left, right, bar, gap = 830, 130, 730, 16, 34  # at right a bar is as long as that of a copy
    lines, y = [], 40
    for name, cells in table:
        lines.append(f'<text x="12" y="{y}" class="case">{name}</text>')
        y += 8
        copy = float(cells["rate of a copy"].split()[0])
        own = microseconds(cells["descent"])
        for contestant, kind in zip(contestants, ("own", "other", "other")):
            length = max((right - left) * copy / 100 * own / microseconds(cells[contestant]), 1)
            lines += [f'<text x="12" y="{y + bar - 5}" class="{kind}">{contestant}</text>',
                      f'<rect x="{left}" y="{y}" width="{length:.1f}" height="{bar - 3}" class="{kind}"/>',
                      f'<text x="{right + 14}" y="{y + bar - 5}" class="{kind}">{cells[contestant]}</text>']
            y += bar
        y += gap
    height = y - gap + 14
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13">',
        "<title>Rate of a step on an H200, relative to a plain copy of memory</title>",
        "<style>",
        ".page { fill: #ffffff } text { fill: #1a1a1a } text.case { font-weight: 600 } text.own { fill: #0b5cad; font-weight: 600 }",
        "rect.own { fill: #0b5cad } rect.other { fill: #9aa4ae } line { stroke: #1a1a1a; stroke-dasharray: 4 3 }",
        "@media (prefers-color-scheme: dark) {",
        ".page { fill: #0d1117 } text { fill: #e6e6e6 } text.own { fill: #6db3f2 } rect.own { fill: #6db3f2 } rect.other { fill: #66707a }",
        "line { stroke: #e6e6e6 } }",
        "</style>",
        '<rect width="100%" height="100%" class="page"/>',
        *lines,
        f'<line x1="{right}" x2="{right}" y1="26" y2="{height - 8}"/>',
        f'<text x="{right + 14}" y="16" text-anchor="end">rate of a plain copy of memory</text>',
        "</svg>", ""])


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
