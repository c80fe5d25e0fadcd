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
# The rows of the front page: the part of the tables and the case, as the benchmarks name them.
cases = [("AdamW, float, on a GPU", "GPT-2 124M"),
         ("AdamW, half with float master, dynamic loss scale, clipped norm, EMA, zeroed gradients, on a GPU",
          "GPT-2 124M"),
         ("AdamW, all bfloat16, stochastic rounding, on a GPU", "Llama-2 7B"),
         ("AdamW, float, clipped norm, on a GPU", "1000 tensors of 1024")]
contestants = {"descent": "descent", "PyTorch, fused": "torch_fused", "PyTorch, captured": "torch_captured"}
units = {"µs": 1, "ms": 1000, "s": 1e6}


def tables():
    """What the pages of performance say: by heading and case, the cells of each contestant by the names of columns."""
    of = {}
    for page in sorted(root.glob("docs/performance*.md")):
        heading, names = "", []
        for line in page.read_text(encoding="utf-8").splitlines():
            if title := re.match(r"(?:#+ |<details><summary>)(.*?)(?:</summary>)?$", line):
                heading, names = title[1], []
            elif line.startswith("|"):
                cells = [cell.strip() for cell in line.strip("|").split("|")]
                if "contestant" in cells:
                    names = cells
                elif names and len(cells) == len(names):
                    row = dict(zip(names, cells))
                    of.setdefault((heading, row.get("case")), {})[row["contestant"]] = row
    return of


def microseconds(time):
    number, unit = time.split()
    return float(number) * units[unit]


def rows():
    """The rows of README's table: the name, and the cells by the names of columns."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in readme.splitlines() if line[:1] == "|"]
    start = next(i for i, cells in enumerate(lines) if cells[-1] == "speed of a plain copy")
    return [(cells[0], dict(zip(lines[start][1:], cells[1:]))) for cells in lines[start + 2:start + 2 + len(cases)]]


def drawn(table):
    """The picture: for each row, a bar for each contestant, as a share of the speed of a plain copy."""
    width, left, right, bar, gap = 830, 130, 730, 16, 34  # at right a bar is as long as that of a copy
    lines, y = [], 40
    for name, cells in table:
        lines.append(f'<text x="12" y="{y}" class="case">{name}</text>')
        y += 8
        copy = float(cells["speed of a plain copy"].split()[0])
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
        "<title>Speed of a step on an H200, as a share of the speed of a plain copy</title>",
        "<style>",
        "text { fill: #1a1a1a } text.case { font-weight: 600 } text.own { fill: #0b5cad; font-weight: 600 }",
        "rect.own { fill: #0b5cad } rect.other { fill: #9aa4ae } line { stroke: #1a1a1a; stroke-dasharray: 4 3 }",
        "@media (prefers-color-scheme: dark) {",
        "text { fill: #e6e6e6 } text.own { fill: #6db3f2 } rect.own { fill: #6db3f2 } rect.other { fill: #66707a }",
        "line { stroke: #e6e6e6 } }",
        "</style>",
        *lines,
        f'<line x1="{right}" x2="{right}" y1="26" y2="{height - 8}"/>',
        f'<text x="{right + 14}" y="16" text-anchor="end">speed of a plain copy of the same bytes</text>',
        "</svg>", ""])


problems = []
measured, table = tables(), rows()
for (heading, case), (name, cells) in zip(cases, table):
    of = measured.get((heading, case), {})
    for column, contestant in contestants.items():
        found = of.get(contestant, {}).get("device, median")
        if cells[column] != found:
            problems.append(f"README.md, {name}, {column}: {cells[column]}, but the page has {found} ({heading}, {case})")
    found = of.get("descent", {}).get("% of copy")
    if cells["speed of a plain copy"] != f"{found} %":
        problems.append(f"README.md, {name}: {cells['speed of a plain copy']} of a copy, but the page has {found}")
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
