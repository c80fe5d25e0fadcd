#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""Writes the library as one header, or a program and the library as one file, for projects and web compilers that take
single files.

usage: single.py header output
       single.py --program source output

header is one of those in include/descent, such as descent.hpp, descent.cuh or rules/muon.hpp, or several, separated by
commas. source is a file that includes such headers as <descent/...>. The output has all that they include from the
library, each header once, in the order in which a compiler sees them. Standard, CUDA and Thrust headers are included as
before.
"""
import pathlib
import re
import sys

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

include = pathlib.Path(__file__).resolve().parents[2] / "include"
license = ["// SPDX-FileCopyrightText: 2026 the descent authors", "// SPDX-License-Identifier: MIT"]
seen = set()


def lines_of(header):
    """The lines of a header, with the headers of the library that it includes in their places."""
    if header in seen:
        return
    seen.add(header)
    if not (include / header).is_file():
        sys.exit(f"single.py: there is no header {header}")
    for line in expanded((include / header).read_text(encoding="utf-8")):
        if line not in license and line != "#pragma once":
            yield line


def expanded(text):
    for line in text.splitlines():
        inner = re.fullmatch(r"#include <(descent/[^>]+)>.*", line)
        if inner:
            yield from lines_of(inner[1])
        else:
            yield line


def version():
    text = (include / "descent/version.hpp").read_text(encoding="utf-8")
    return re.search(r'version\[\] = "([^"]+)"', text)[1]


if len(sys.argv) == 4 and sys.argv[1] == "--program":
    source = pathlib.Path(sys.argv[2])
    lines = [line for line in expanded(source.read_text(encoding="utf-8")) if line not in license]
    if not seen:
        sys.exit(f"single.py: {source} includes no header as <descent/...>")
    of, top = f"{source.name} with the library", license
elif len(sys.argv) == 3:
    headers = sys.argv[1].split(",")
    lines = [line for header in headers for line in lines_of(f"descent/{header}")]
    of, top = f"{', '.join(headers)} as a single header", [*license, "#pragma once"]
else:
    print("usage: single.py header output | single.py --program source output", file=sys.stderr)
    sys.exit(2)
text = "\n".join([*top[:2], f"// descent {version()}: {of}, written by docs/install/single.py", *top[2:], *lines])
pathlib.Path(sys.argv[-1]).write_text(re.sub(r"\n{3,}", "\n\n", text) + "\n", encoding="utf-8")
