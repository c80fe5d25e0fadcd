# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: unite.py tests-folder unit sources...

Writes a unit that compiles several test sources together, so that shared code is parsed and instantiated once. If there
are several sources, each gets its own namespace. Their includes come first, outside of the namespaces."""
import pathlib
import re
import sys

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

tests = pathlib.Path(sys.argv[1])
unit, sources = pathlib.Path(sys.argv[2]), sys.argv[3:]


def headers_of(source):
    """The includes of a source, each with the preprocessor conditions around it."""
    conditions = []
    for line in (tests / source).read_text().splitlines():
        if line.startswith("#define"):
            sys.exit(f"{source}: no header of a unit would see this: {line}")
        if re.match(r"#if", line):
            conditions.append(line)
        elif line.startswith("#el"):
            conditions[-1] = None
        elif line.startswith("#endif"):
            conditions.pop()
        elif include := re.match(r'#include ([<"])([^>"]+)([>"])', line):
            opening, name, closing = include.groups()
            beside = pathlib.PurePosixPath(source).parent / name
            if None in conditions:
                sys.exit(f"{source}: {name} is included in a branch that is not followed here")
            if opening == '"' and (tests / beside).exists():
                name = beside
            yield "\n".join([*conditions, f"#include {opening}{name}{closing}", *["#endif"] * len(conditions)])


def alone(source):
    namespace = "in_" + re.sub(r"\W", "_", source.rpartition(".")[0])
    return f'namespace {namespace} {{\n#include "{source}"\n}}'


if len(sources) == 1:
    lines = [f'#include "{sources[0]}"']
else:
    lines = [*dict.fromkeys(header for source in sources for header in headers_of(source)), *map(alone, sources)]
unit.write_text("\n".join(lines) + "\n")
