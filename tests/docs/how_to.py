#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""Checks docs/how_to.md: the index at its top has each task once, in the order of the page; a task has text, and code
that a program runs or a link to where it is; and each snippet of the programs in examples/how_to is in the page.

usage: how_to.py project-root
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
page = (root / "docs/how_to.md").read_text(encoding="utf-8")
top, *sections = re.split(r"^## ", page, flags=re.M)
problems, tasks = [], []
for section in sections:
    name, *parts = re.split(r"^### ", section, flags=re.M)
    tasks.append(name.splitlines()[0])
    for part in parts:
        task, _, text = part.partition("\n")
        tasks.append(task)
        blocks = re.findall(r"^```.*?\n(.*?)^```", text, re.M | re.S)
        if re.match(r"\s*(<!--|```)", text):
            problems.append(f"'{task}' begins with no sentence")
        if not blocks and "](" not in text:
            problems.append(f"'{task}' has neither code nor a link")
        for block in blocks:
            if len(block.splitlines()) > 16:
                problems.append(f"'{task}' has a block of {len(block.splitlines())} lines")
index = re.findall(r"^(?:- \[(.*)\]\(#.*\)|\*\*(.*)\*\*)$", top, re.M)
listed = [link or section for link, section in index]
for name in [name for name in tasks if listed.count(name) != 1] + [name for name in listed if name not in tasks]:
    problems.append(f"'{name}' is {listed.count(name)} times in the index and {tasks.count(name)} times in the page")
if not problems and listed != tasks:
    problems.append("the index has another order than the page")

shown = set(re.findall(r"<!-- snippet: (examples/how_to/\S+) -->", page))
for path in sorted(root.glob("examples/how_to/*.c*")):
    for name in re.findall(r"// snippet: (\S+)", path.read_text(encoding="utf-8")):
        if f"examples/how_to/{path.name}#{name}" not in shown:
            problems.append(f"{path.name} has the snippet {name}, and the page does not")
count = len(re.findall(r"^### ", page, re.M))
print(f"{count} tasks, {len(shown)} snippets", *problems, sep="\n")
sys.exit(bool(problems) or count < 25)
