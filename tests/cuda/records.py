# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""Tables of recorded figures: a line that says which tools they hold for, then groups of rows. A row is some figures
and the name of what has them:

    gcc 12.2.0

    headers: lines KiB
      25763  961 | accumulate.hpp"""
import sys


def write(table, tools, groups):
    with open(table, "w") as out:
        print(tools, file=out)
        for group, rows in groups.items():
            print(f"\n{group}", file=out)
            widths = [max(len(str(figure)) for figure in column) for column in zip(*rows)]
            for *figures, name in rows:
                print(" ", *(f"{figure:>{width}}" for figure, width in zip(figures, widths)), "|", name, file=out)


def read(table):
    """The tools, and the rows of each group."""
    tools, *lines = open(table).read().splitlines()
    groups = {}
    for line in lines:
        if line.startswith(" "):
            figures, name = line.split(" | ", 1)
            rows.append((*map(number, figures.split()), name))
        elif line:
            rows = groups[line] = []
    return tools, groups


def number(text):
    return int(text) if text.isdigit() else text


def differences(found, recorded):
    """Names that only one of the two has."""
    yield from (f"{name}: not recorded" for name in sorted(found.keys() - recorded.keys()))
    yield from (f"{name}: recorded, and not there" for name in sorted(recorded.keys() - found.keys()))


def judge(problems, recorded_tools, tools, to_record):
    """Problems are only printed where the tools are others than those that the table holds for."""
    print(*problems, sep="\n", end="\n" if problems else "")
    if tools != recorded_tools:
        print(f"not compared: the table is of {recorded_tools}, this is {tools}")
    elif problems:
        sys.exit(f"If this is meant, record it: {to_record}")
