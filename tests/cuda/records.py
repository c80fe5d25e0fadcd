# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""Tables of recorded figures: a line that names the tools they were recorded with, then groups of rows. A row has some
figures and the name of the item they belong to:

    gcc 12.2.0

    headers: lines KiB
      25763  961 | accumulate.hpp"""


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


def report(title, found, recorded, recorded_tools, tools):
    """Reports which figures differ by 2 % or more from the record, and how many rows differ at all. Never fails."""
    differ = 0
    for name in sorted(found.keys() | recorded.keys()):
        was, now = recorded.get(name, {}), found.get(name, {})
        if was == now:
            continue
        differ += 1
        if not was:
            print(f"{name}: new, {', '.join(f'{column} {figure}' for column, figure in now.items())}")
        elif not now:
            print(f"{name}: recorded, and not there")
        elif large := [f"{column} from {was[column]} to {now[column]}" for column in now
                       if was[column] != now[column] and 50 * abs(now[column] - was[column]) >= was[column]]:
            print(f"{name}: {', '.join(large)}")
    other = "" if tools == recorded_tools else f"; recorded with {recorded_tools}, these are of {tools}"
    print(f"{title}: {differ} of {len(found)} rows differ from what is recorded{other}")
