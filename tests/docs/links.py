#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""Checks the links of README.md and of all pages in docs/ and examples/: files that are linked to or shown exist, and
so do the headings that links name, as GitHub names them.

usage: links.py project-root"""
import pathlib
import re
import sys
import urllib.parse

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

root = pathlib.Path(sys.argv[1]).resolve()
pages = [root / "README.md", *sorted(root.glob("docs/**/*.md")), *sorted(root.glob("examples/**/*.md"))]


def prose(page):
    """The lines that are not in a block of code, with their numbers."""
    inside = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            inside = not inside
        elif not inside:
            yield number, line


def anchors(page):
    """The names of the headings: lower case, without punctuation, spaces as hyphens, repeated ones numbered. And the ids."""
    seen = {}
    for _, line in prose(page):
        yield from re.findall(r'<a id="([^"]+)">', line)
        if title := re.match(r"#+ +(.*?)[ #]*$", line):
            text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title[1]).replace("`", "")
            name = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            count = seen.get(name, 0)
            seen[name] = count + 1
            yield f"{name}-{count}" if count else name


problems, count = [], 0
for page in pages:
    for number, line in prose(page):
        line = re.sub(r"`[^`]*`", "", line)
        for link in re.findall(r"\]\(<?([^)<> ]+)>?\)", line) + re.findall(r'(?:href|src)="([^"]+)"', line):
            if re.match(r"[a-z]+:", link):
                continue
            count += 1
            path, _, anchor = urllib.parse.unquote(link).partition("#")
            target = (page.parent / path).resolve() if path else page
            where = f"{page.relative_to(root)}:{number}: {link}"
            if not target.exists():
                problems.append(f"{where}: does not exist")
            elif root not in target.parents:
                problems.append(f"{where}: is outside of the project")
            elif anchor and target.suffix == ".md" and anchor not in set(anchors(target)):
                problems.append(f"{where}: there is no such heading")
print(f"{len(pages)} pages, {count} links, {len(problems)} wrong", *problems, sep="\n")
sys.exit(bool(problems) or count < 300)
