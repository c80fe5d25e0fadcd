#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""Writes the library as one header, for projects and web compilers that take single files.

usage: single.py header output

header is one of those in include/descent, such as descent.hpp, descent.cuh or rules/muon.hpp; it may be several, separated
by commas. The output has all that they include from the library, each header once, in the order in which a compiler sees
them. Standard, CUDA and Thrust headers are included as before.
"""
import pathlib
import re
import sys

include = pathlib.Path(__file__).resolve().parents[2] / "include"
headers, output = sys.argv[1].split(","), pathlib.Path(sys.argv[2])
license = ["// SPDX-FileCopyrightText: 2026 the descent authors", "// SPDX-License-Identifier: MIT"]
seen = set()


def lines_of(header):
    """The lines of a header, with the headers of the library that it includes in their places."""
    if header in seen:
        return
    seen.add(header)
    for line in (include / header).read_text(encoding="utf-8").splitlines():
        inner = re.fullmatch(r"#include <(descent/[^>]+)>", line)
        if inner:
            yield from lines_of(inner[1])
        elif line not in license and line != "#pragma once":
            yield line


for header in headers:
    if not (include / "descent" / header).is_file():
        sys.exit(f"single.py: there is no header descent/{header}")
lines = [line for header in headers for line in lines_of(f"descent/{header}")]
version = next(line for line in lines if "version[] =" in line).split('"')[1]
text = "\n".join([*license, f"// descent {version}: {', '.join(headers)} as a single header, written by docs/install/single.py",
                  "#pragma once", *lines])
output.write_text(re.sub(r"\n{3,}", "\n\n", text) + "\n", encoding="utf-8")
