# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: unite.py tests-folder unit sources...

Writes a unit of several test sources, which are then compiled as one: what they share is parsed and instantiated once.
Each source of several is in a namespace of its own; what they include comes first, outside of it."""
import pathlib
import re
import sys

tests = pathlib.Path(sys.argv[1])
unit, sources = pathlib.Path(sys.argv[2]), sys.argv[3:]
headers, bodies = {}, []
for source in sources:
    for opening, name, closing in re.findall(r'^#include ([<"])([^>"]+)([>"])', (tests / source).read_text(), re.M):
        beside = pathlib.PurePosixPath(source).parent / name
        if opening == '"' and (tests / beside).exists():
            name = str(beside)
        headers[f"#include {opening}{name}{closing}"] = None
    namespace = "in_" + re.sub(r"\W", "_", source.removesuffix(".cpp"))
    body = f'#include "{source}"'
    bodies.append(f"namespace {namespace} {{\n{body}\n}}" if len(sources) > 1 else body)
text = "\n".join([*headers, *bodies]) + "\n"
if not unit.exists() or unit.read_text() != text:
    unit.write_text(text)
