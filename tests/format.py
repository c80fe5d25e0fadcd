# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: format.py [--fix]

Fails if a source is not formatted as .clang-format says, and prints what differs. Lines that are set by hand may stay:
clang-format must need more of them, or pad a list into columns, and none may have more than 120 columns. So a formula
stays on its line, and a table keeps its rows. --fix formats what must not stay; only comments are wrapped by hand.

It needs one version of clang-format, which it takes from PyPI if PATH has another one. Without it the test is skipped."""
import difflib
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import nearest

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

version = "23.1.5"
columns = 120
root = pathlib.Path(__file__).resolve().parent.parent


def has_version(program):
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    return f"version {version}" in said.stdout


def installed():
    """A program of the wanted version, or None."""
    program = shutil.which("clang-format")
    if program and has_version(program):
        return program
    folder = pathlib.Path(tempfile.gettempdir()) / f"clang-format-{version}"
    program = folder / "clang_format" / "data" / "bin" / "clang-format"
    if not program.exists():
        command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--retries", "0",
                   "--timeout", "10", "--target", folder, f"clang-format=={version}"]
        try:
            subprocess.run(command, capture_output=True, timeout=60, check=False)
        except subprocess.TimeoutExpired:
            return None
    return program if program.exists() and has_version(program) else None


def formatted(program, path):
    return subprocess.run([program, path], cwd=root, capture_output=True, text=True, check=True).stdout


def pads(lines):
    return any(re.search(r",  +[^ /]", line) for line in lines)


def may_stay(now, then):
    by_hand = len(now) < len(then) or pads(then) and not pads(now)
    return by_hand and all(len(line) <= columns for line in now)


program = installed()
if not program:
    print(f"skipped: there is no clang-format {version}, neither here nor on PyPI")
    sys.exit(77)
for word in sys.argv[1:]:
    if word != "--fix":
        print(nearest.unknown("unknown option", word, ["--fix", "--help"]), file=sys.stderr)
        sys.exit(2)
fix = "--fix" in sys.argv
wrong = 0
for path in sorted(path for folder in ("include", "tests", "examples") for path in (root / folder).rglob("*")
                   if re.fullmatch(r"\.[ch](pp|u|uh)", path.suffix)):
    now = path.read_text().splitlines()
    then = formatted(program, path).splitlines()
    kept = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, now, then, autojunk=False).get_opcodes():
        stays = kind == "equal" or may_stay(now[a:b], then[c:d])
        kept += now[a:b] if stays or not fix else then[c:d]
        if not stays:
            wrong += not fix
            print(f"{path.relative_to(root)}:{a + 1}:", *(f"-{line}" for line in now[a:b]),
                  *(f"+{line}" for line in then[c:d]), sep="\n")
    for i, line in enumerate(kept):
        if len(line) > columns and not line.startswith("// expect: "):
            wrong += 1
            print(f"{path.relative_to(root)}:{i + 1}: {len(line)} columns")
    if fix and kept != now:
        path.write_text("\n".join(kept) + "\n")
sys.exit(1 if wrong else 0)
