# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: nearest.py WHAT WORD NAME...

Prints that a word is unknown, with the name that was probably meant, or with all names if none is near:
`no exercise 'momntum': did you mean momentum?`. Scripts call it for a wrong option or name, and end with status 2."""
import sys
import textwrap

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()


def edits(a, b):
    """How many letters of a must be replaced, left out, inserted or swapped with the next one to get b."""
    above, row = [], [*range(len(b) + 1)]
    for i, letter in enumerate(a):
        before, above, row = above, row, [i + 1]
        for j, other in enumerate(b):
            row.append(min(row[j] + 1, above[j + 1] + 1, above[j] + (letter != other)))
            if i and j and letter == b[j - 1] and a[i - 1] == other:
                row[-1] = min(row[-1], before[j - 1] + 1)
    return row[-1]


def unknown(what, word, names):
    """As did_you_mean() in examples/parts/arguments.hpp."""
    def distance(name):
        return 1 if len(word) > 2 and name.startswith(word) else edits(word, name), abs(len(name) - len(word))

    near = min(names, key=distance)
    if distance(near)[0] <= (len(word) + 2) // 3:
        return f"{what} '{word}': did you mean {near}?"
    listed = textwrap.fill(", ".join(names), 118, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
    return f"{what} '{word}'; there are\n{listed}"


if __name__ == "__main__":
    print(unknown(sys.argv[1], sys.argv[2], sys.argv[3:]))
