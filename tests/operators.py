# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: operators.py mutants.txt --changed [REV] [option...]
       operators.py mutants.txt --in HEADER[:LINE[-LINE]]... [option...]

Writes mutants for mutants.sh, as lines like those of mutants.txt: small changes by operators in the code lines of
include/descent that differ from REV (default: the merge base with main), or in the named headers. A mutant has the
tests that mutants.txt names for its header, or else the test with the header's name. Options: --most N draws N mutants
at random (default 40), --seed N is the seed of the draw (default 1), --tests a,b replaces the tests.
"""

import argparse
import pathlib
import random
import re
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent
headers = root / "include/descent"

SWAPS = {"+": "-", "-": "+", "*": "/", "/": "*", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
         "&&": "||", "||": "&&", "+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=", "0": "1", "1": "0"}
# Binary operators have spaces around them, which brackets of templates, pointers and signs have not.
TOKEN = re.compile(r"(?<= )(?:[-+*/]=?|[<>]=?|[=!]=|&&|\|\|)(?= )|(?<![\w.'])[01](?![\w.'])")
# What separates operands: binary operators, and what binds more weakly than any.
WORD = re.compile(r" (?:[-+*/|&]?=|[-+*/%]|[<>]=?|[=!]=|&&|\|\||\?|:) |(?:\b(?:return|co_return|else) )")
ENDS = ("=", "+=", "-=", "*=", "/=", "|=", "&=", "?", ":", "return", "co_return", "else")
CONDITION = re.compile(r"\b(?:if|while)(?: constexpr)? \(")
STATEMENT = re.compile(r"(?:^ *|\) |; |\{ |else )((?:(?:\+\+|--)[\w.>\[\]-]+"
                       r"|(?!(?:return|throw|delete|using|static_assert|if|for|while|switch)\b)"
                       r"[\w:.>\[\]()-]+(?: [-+*/|&]?= [^;{}]+|\([^;{}]*\)));)")


def code_of(text):
    """The lines, with comments, string literals, includes and declarations of templates blanked out."""
    blank = lambda found: re.sub(r"[^\n]", " ", found.group(0))
    text = re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'', blank, text, flags=re.S)
    text = re.sub(r"\bstatic_assert\b[^;]*;", blank, text)
    text = re.sub(r"^ *(?:#|template <|requires\b|concept\b|using\b|namespace\b)[^\n]*", blank, text, flags=re.M)
    return text.splitlines()


def closing(line, start):
    """The place of the parenthesis that closes the one before `start`, or None if it is on another line."""
    depth = 1
    for i in range(start, len(line)):
        depth += (line[i] == "(") - (line[i] == ")")
        if depth == 0:
            return i
    return None


def strength(operator):
    """How strongly a binary operator binds."""
    return next(i for i, of in enumerate(("||", "&&", "== !=", "< <= > >=", "+ -", "* / %")) if operator in of.split())


def operand(code, start, step, binds):
    """Where an operand ends, to the left (step -1) or right (1) of an operator of this strength."""
    depth, i = 0, start
    while 0 <= i < len(code):
        depth += ((code[i] in ")]}") - (code[i] in "([{")) * -step
        if depth < 0 or depth == 0 and code[i] in ",;":
            return i
        if depth == 0 and (found := WORD.match(code, i)):
            word = found.group(0).strip()
            if word in ENDS or strength(word) < binds + (step > 0):
                return found.end() - 1 if step < 0 else i
        i += step
    return i


def operands(code):
    """Changes that leave one of two operands, such as the left of the + at column 10; as those of changes()."""
    for found in WORD.finditer(code):
        word = found.group(0).strip()
        if word in ("||", "&&", "+", "-", "*", "/"):
            binds = strength(word)
            first = operand(code, found.start() - 1, -1, binds) + 1
            last = operand(code, found.end(), 1, binds)
            first += len(code[first:]) - len(code[first:].lstrip())
            left, right = code[first:found.start()], code[found.end():last]
            if left and right and "<<" not in code[first:last]:
                yield first, code[first:last], left, f"left-of-{word}-at-{found.start() + 2}"
                yield first, code[first:last], right, f"right-of-{word}-at-{found.start() + 2}"
        elif word == "?":
            first = operand(code, found.start() - 1, -1, -1) + 1
            middle = operand(code, found.end(), 1, -1)
            last = operand(code, middle + 3, 1, -1)
            first += len(code[first:]) - len(code[first:].lstrip())
            if code[middle:middle + 3] == " : " and "?" not in code[middle:last]:
                yield first, code[first:last], code[found.end():middle], "always"
                yield first, code[first:last], code[middle + 3:last], "never"


def changes(code):
    """All changes of a line: column, text, what takes its place, and their name."""
    for found in TOKEN.finditer(code):
        old = found.group(0)
        yield found.start(), old, SWAPS[old], f"{old}-is-{SWAPS[old]}"
    yield from operands(code)
    for found in CONDITION.finditer(code):
        end = closing(code, found.end())
        if end is not None and ";" not in (condition := code[found.end():end]):
            yield found.end(), condition, f"!({condition})", "negated"
            yield found.end(), condition, "true", "always"
            yield found.end(), condition, "false", "never"
    for found in STATEMENT.finditer(code):
        yield found.start(1), found.group(1), ";", "dropped"
    for found in re.finditer(r"(?<=[ (])!(?=[\w(])", code):
        yield found.start(), "!", "", "not-negated"


def mutants(header, lines=None):
    """Line numbers, columns and changes of a header; does not apply them."""
    text = (headers / header).read_text(encoding="utf-8")
    for number, (line, code) in enumerate(zip(text.splitlines(), code_of(text)), 1):
        if lines is None or number in lines:
            for column, old, new, name in changes(code):
                if line[column:column + len(old)] == old and line[:column].isascii():
                    yield number, column, old, new, name


def expression(number, column, old, new):
    """The sed expression that replaces exactly the text at this place."""
    pattern = re.sub(r"[][\\.*^$/]", r"\\\g<0>", old)
    replacement = re.sub(r"[\\&/]", r"\\\g<0>", new)
    return rf"{number}s/^\(.\{{{column}\}}\){pattern}/\1{replacement}/"


def tests_of(listed):
    """The tests of each header in mutants.txt, those with the most lines first."""
    of = {}
    for line in listed.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            header, tests, *_ = line.split()
            for test in tests.split(","):
                counts = of.setdefault(header, {})
                counts[test] = counts.get(test, 0) + 1
    return {header: sorted(counts, key=lambda test: -counts[test]) for header, counts in of.items()}


def git(*words):
    return subprocess.run(["git", "-C", root, *words], stdout=subprocess.PIPE, text=True, check=True).stdout


def changed(revision):
    """The changed lines of each header, including uncommitted ones."""
    lines, header = {}, None
    revision = revision or git("merge-base", "main", "HEAD").strip()
    for line in git("diff", "-U0", revision, "--", "include/descent").splitlines():
        if line.startswith("+++ "):
            header = line.removeprefix("+++ b/include/descent/")
        elif hunk := re.match(r"@@ [^+]*\+(\d+)(?:,(\d+))?", line):
            first, count = int(hunk[1]), int(hunk[2] or 1)
            lines.setdefault(header, set()).update(range(first, first + count))
    return {header: of for header, of in lines.items() if of}


def named(words):
    lines = {}
    for word in words:
        header, _, of = word.partition(":")
        first, _, last = of.partition("-")
        if not (headers / header).is_file():
            sys.exit(f"there is no include/descent/{header}")
        lines[header] = set(range(int(first), int(last or first) + 1)) if of else None
    return lines


def main():
    parser = argparse.ArgumentParser(usage=__doc__.removeprefix("usage: "))
    parser.add_argument("listed", type=pathlib.Path)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--changed", nargs="?", const="", metavar="REV")
    where.add_argument("--in", nargs="+", dest="named", metavar="HEADER")
    parser.add_argument("--most", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tests")
    given = parser.parse_args()
    tests, possible = tests_of(given.listed), []
    for header, lines in sorted((named(given.named) if given.named else changed(given.changed)).items()):
        own = header.rpartition(".")[0]
        if not given.tests and header not in tests and not (root / f"tests/{own}_test.cpp").is_file():
            print(f"no test is known for {header}: it is left out, see --tests", file=sys.stderr)
            continue
        by = given.tests or ",".join(tests.get(header, [own]))
        possible += [(header, by, *of) for of in mutants(header, lines)]
    chosen = sorted(random.Random(given.seed).sample(range(len(possible)), min(given.most, len(possible))))
    print(f"{len(chosen)} of {len(possible)} possible mutants", file=sys.stderr)
    for header, by, number, column, old, new, name in (possible[i] for i in chosen):
        print(header, by, f"{header}:{number}:{column + 1}:{name}", expression(number, column, old, new))


if __name__ == "__main__":
    main()
