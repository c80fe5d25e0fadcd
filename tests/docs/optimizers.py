#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""Checks the pages docs/optimizers/*.md and their index docs/optimizers.md: each rule and algorithm has one section with
all its parts; the index has its row, and under the title of each page the pictures of that page.

usage: optimizers.py project-root            checks
       optimizers.py project-root --write    writes the tables of pictures in the index
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
index_page = root / "docs/optimizers.md"
index = index_page.read_text(encoding="utf-8")
rules = {path.stem for path in (root / "include/descent/rules").glob("*.hpp")}
around = {"noisy SGD", "SAM", "Lookahead", "gradient_ahead", "L-BFGS", "ESGD"}  # policies and minimizers

others = (r"PyTorch|torch\.optim|optax|pytorch_optimizer|ensmallen|apex|bitsandbytes|DeepSpeed|flashlight|MLX"
          r"|tiny-cuda-nn|authors' code|[Nn]o other framework")
parts = {
    "a picture": r"^!\[[^]]+\]\(\.\./pictures/\w+\.svg\)$",
    "the formula in a block": r"^```\n(?:(?!^```)[\s\S])+<-(?:(?!^```)[\s\S])+^```$",
    "'State:' or 'Memory:'": r"^(?:State|Memory):",
    "what the state takes": r"(?:State|Memory)[:,](?:(?!\n\n).|\n)*(?:\bbytes\b|\bnone\b|inner rule's|vectors|copies)",
    "'Defaults:'": r"Defaults(?:\b[^.]*)?:|^\| field \| default \|",
    "what others do": others,
    "'Use it'": r"\bUse it\b",
}


def anchor(title):
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def pictures(page, found):
    """The table of a page's pictures, three in a row. A name may break after an underscore, so that a phone shows all."""
    cells = [f'[<img width="240" src="pictures/{picture[1]}.svg" alt=""><br>{title.replace("_", "_<wbr>")}]'
             f"(optimizers/{page}#{anchor(title)})"
             for title, text in found if (picture := re.search(r"\]\(\.\./pictures/(\w+)\.svg\)", text))]
    cells += [""] * (-len(cells) % 3)
    rows = ["| " + " | ".join(cells[i:i + 3]) + " |" for i in range(0, len(cells), 3)]
    return "".join(line + "\n" for line in ["| | | |", "|---|---|---|", *rows]) if rows else ""


problems, sections = [], {}
for path in sorted((root / "docs/optimizers").glob("*.md")):
    text = path.read_text(encoding="utf-8")
    found = re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    problems += [f"{path.name} has a second section {title}" for title, _ in found if title in sections]
    sections |= dict(found)
    title = re.match(r"# (.*)\n", text)[1]
    family = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## )", index, re.M | re.S)
    if not family:
        problems.append(f"docs/optimizers.md has no section {title}")
        continue
    if f"](optimizers/{path.name})" not in family[1]:
        problems.append(f"docs/optimizers.md: {title} has no link to {path.name}")
    prose = re.sub(r"^\|.*\n", "", family[1], flags=re.M)
    shown = pictures(path.name, found)
    wanted = prose.rstrip("\n") + "\n\n" + (shown + "\n" if shown else "")
    if sys.argv[2:] == ["--write"]:
        index = index.replace(family[0], f"## {title}\n{wanted}")
    elif family[1] != wanted:
        problems.append(f"docs/optimizers.md does not show the pictures of {path.name}: optimizers.py --write")
    for name, text in found:
        row = rf'^\| <a id="{anchor(name)}"></a>\[[^]]+\]\(optimizers/{path.name}#{anchor(name)}\) \|'
        if re.search(parts["'State:' or 'Memory:'"], text, re.M) and not re.search(row, index, re.M):
            problems.append(f"docs/optimizers.md has no row for {name}")
problems += [f"no section {name}" for name in sorted((rules | around) - set(sections))]
for name in sorted((rules | around) & set(sections)):
    problems += [f"{name} lacks {what}" for what, form in parts.items() if not re.search(form, sections[name], re.M)]
shown = set(re.findall(r"\bpictures/\w+\.svg\b", index + "".join(sections.values())))
problems += [f"there is no docs/{name}" for name in sorted(shown) if not (root / "docs" / name).exists()]
if sys.argv[2:] == ["--write"]:
    index_page.write_text(index, encoding="utf-8")
print("\n".join(problems) if problems else f"{len(sections)} sections have {len(parts)} parts")
sys.exit(bool(problems))
