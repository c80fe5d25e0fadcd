#!/usr/bin/env python3
"""Checks that every ```c++ block of README.md and docs/, and every block of another language with a reference, is tested
code.

usage: check.py [--in folder] project-root compiler arguments...

A block after the comment <!-- snippet: path#name --> must equal the lines between `// snippet: name` and `// end` in
that file, up to indentation; comments may also begin with #. A block after <!-- header: path#name --> must equal a
function of that name in include/descent/path, with its template line. Any other block of C++ must compile by itself.
With --in, what is compiled stays in the folder, and is not compiled again while nothing that it includes changes.

In the course, a line that begins with "Picture: " and names the program follows each picture, and a program has at most
60 lines, not counting blank lines, comments and includes.
"""
import os
import re
import sys
import tempfile
import textwrap
from concurrent.futures import ThreadPoolExecutor

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

kept = sys.argv[2] if sys.argv[1] == "--in" else None
root, *compiler = sys.argv[3 if kept else 1:]
sys.path.insert(0, os.path.join(root, "tests"))
import unchanged  # noqa: E402  # pylint: disable=wrong-import-position
sys.path.insert(0, os.path.join(root, "examples/lab"))
import build as lab  # noqa: E402  # pylint: disable=wrong-import-position


def pages():
    yield "README.md"
    for folder, _, files in sorted(os.walk(os.path.join(root, "docs"))):
        for name in sorted(files):
            if name.endswith(".md"):
                yield os.path.relpath(os.path.join(folder, name), root)


def blocks(page):
    """The line number, the reference (kind, path, name) or None, and the text of each block."""
    reference, start, lines = None, 0, []
    with open(os.path.join(root, page), encoding="utf-8") as text:
        for number, line in enumerate(text, 1):
            if start:
                if line.strip() == "```":
                    yield start, reference, textwrap.dedent("".join(lines))
                    reference, start, lines = None, 0, []
                else:
                    lines.append(line)
            elif line.strip() == "```c++" or reference and line.startswith("```"):
                start = number
            elif line.strip():
                mark = re.fullmatch(r"<!-- (snippet|header): (\S+)#(\S+) -->", line.strip())
                reference = mark.groups() if mark else None


def marked(path, name):
    lines, inside = [], False
    with open(os.path.join(root, path), encoding="utf-8") as text:
        for line in text:
            if inside and line.strip() in ("// end", "# end"):
                return textwrap.dedent("".join(lines))
            if inside:
                lines.append(line)
            inside = inside or line.strip() in (f"// snippet: {name}", f"# snippet: {name}")
    raise ValueError(f"has no '// snippet: {name}' ... '// end'")


def functions(path, name):
    """The functions of a header with that name, one for each overload."""
    with open(os.path.join(root, "include/descent", path), encoding="utf-8") as text:
        lines = text.read().splitlines()
    found = [lab.dedented(lab.block(lines, i - 1 if lines[i - 1].strip() == "template <class Real>" else i))
             for i, line in enumerate(lines) if re.search(rf"\bDESCENT_HD .*\b{name}\(", line)]
    if not found:
        raise ValueError(f"has no function {name}")
    return found


def problem(block):
    page, number, reference, text = block
    if reference:
        kind, path, name = reference
        try:
            allowed = functions(path, name) if kind == "header" else [marked(path, name)]
        except (OSError, ValueError) as error:
            return f"{page}:{number}: {path}: {error}"
        same = text.strip() in [want.strip() for want in allowed]
        return None if same else f"{page}:{number}: differs from {path}#{name}"
    unit = os.path.join(folder, f"block_{page.replace('/', '_')}_{number}.cpp")
    with open(unit, "w", encoding="utf-8") as out:
        out.write(f'#line {number + 1} "{page}"\n{text}')
    parsed = [library] if "#include <descent/descent.hpp>" in text else []
    command = [*compiler, *(word for header in parsed for word in ("-include", header)), "-fsyntax-only"]
    run = unchanged.run([*command, "-MD", "-MF", unit + ".d", unit], unit + ".d",
                        reads=[header + ".gch" for header in parsed], capture_output=True, text=True)
    return None if run.returncode == 0 else f"{page}:{number}: does not compile by itself\n{run.stderr[:1500]}"


def course():
    """What is wrong with the lines under the pictures of the course, and with the length of its programs."""
    for page in pages():
        if page.startswith("docs/learn/"):
            with open(os.path.join(root, page), encoding="utf-8") as text:
                found = re.findall(r"^!\[.*\]\(../pictures/(?:learn_)?(\w+)\.svg\)\n\n(.*)", text.read(), re.M)
            for name, line in found:
                said = [f"learn_{name} --picture {name}.svg`, ", f"/pictures . {name}`, ",
                        "Picture: `build/examples/compare_optimizers", "Picture: drawn by hand."]
                if not line.startswith("Picture: ") or not any(part in line for part in said):
                    yield f"{page}: no line under {name}.svg says what draws it"
    programs = os.path.join(root, "examples/learn")
    for name in sorted(os.listdir(programs)):
        with open(os.path.join(programs, name), encoding="utf-8") as text:
            count = sum(not re.match(r"\s*(//|#include|$)", line) for line in text)
        if name.endswith(".cpp") and count > 60:
            yield f"examples/learn/{name} has {count} lines"


todo = [(page, *block) for page in pages() if os.path.exists(os.path.join(root, page)) for block in blocks(page)]
with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(2) as pool:
    folder = kept or temporary
    os.makedirs(folder, exist_ok=True)
    # Blocks with this header get it precompiled.
    library = os.path.join(folder, "library.hpp")
    with open(library, "w", encoding="utf-8") as out:
        out.write("#include <descent/descent.hpp>\n")
    header = [*compiler, "-x", "c++-header", "-MD", "-MF", library + ".d", library, "-o", library + ".gch"]
    if unchanged.run(header, library + ".d", [library + ".gch"]).returncode != 0:
        sys.exit("descent.hpp does not compile")
    problems = [found for found in pool.map(problem, todo) if found] + [*course()]
print(f"{len(todo)} blocks, {len(problems)} wrong", *problems, sep="\n")
sys.exit(bool(problems))
