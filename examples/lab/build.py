# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: build.py project-root output.html [clang++]

Compiles rules.cpp to WebAssembly and puts it, the scripts and what the rules' headers say into one HTML file. The
same sources and compiler give the same bytes. Needs clang, as tested 14, with lld, wasi-libc, libc++ and compiler-rt
for wasm32 (Debian: clang-14 lld-14 wasi-libc libc++-14-dev-wasm32 libclang-rt-14-dev-wasm32) and the headers of the
CUDA Toolkit, in $CUDA_HOME/include."""
import base64
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

scripts = ["engine.js", "model.js", "picture.js", "panel.js", "inside.js", "numbers.js", "lessons.js", "lab.js"]


def compiler(named="clang++-14"):
    """The path of that clang++ if it can compile and link for wasm32-wasi, else None."""
    path = shutil.which(named)
    program = '#include <string>\nextern "C" std::size_t f(char const* x) { return std::string(x).size(); }'
    command = [path, "--target=wasm32-wasi", "-x", "c++", "-", "-nostartfiles", "-Wl,--no-entry", "-Wl,--export=f",
               "-o", os.devnull]
    if path and subprocess.run(command, input=program.encode(), capture_output=True, check=False).returncode == 0:
        return path
    return None


def module(root, clang):
    """The rules as WebAssembly. Contraction of a * b + c is off, so that the bits are those of the host."""
    toolkit = pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "include"
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "rules.wasm"
        subprocess.run([clang, "--target=wasm32-wasi", "-std=c++20", "-Os", "-ffp-contract=off", "-fexceptions",
                        "-I" + str(root / "include"), "-isystem", str(toolkit), "-nostartfiles",
                        str(root / "examples/lab/rules.cpp"), "-o", str(out), "-Wl,--no-entry", "-Wl,--strip-all",
                        "-Wl,--export=__stack_pointer", "-Wl,-z,stack-size=1048576"], check=True)
        return out.read_bytes()


def comment_above(lines, at):
    """The lines of the /// comment that ends above line `at`, without the slashes."""
    first = at
    while lines[first - 1].lstrip().startswith("///"):
        first -= 1
    return [re.sub(r"^\s*/// ?", "", line) for line in lines[first:at]]


def paragraphs(comment):
    """A comment as ["text" or "formula", text] in order. A formula is indented by four spaces."""
    parts = []
    for line in comment:
        kind = "formula" if line.startswith("    ") else "text"
        if not line.strip():
            parts.append(["", ""])
        elif parts and parts[-1][0] == kind:
            parts[-1][1] += ("\n" if kind == "formula" else " ") + (line[4:] if kind == "formula" else line)
        else:
            parts.append([kind, line[4:] if kind == "formula" else line])
    return [part for part in parts if part[0]]


def block(lines, first):
    """The lines from `first` to the end of the block that begins there."""
    depth, taken = 0, []
    for line in lines[first:]:
        taken.append(line)
        depth += line.count("{") - line.count("}")
        if depth <= 0 and "{" in "".join(taken):
            return taken
    raise ValueError("a block without end")


def dedented(lines):
    indent = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return "\n".join(line[indent:] for line in lines)


def update_of(lines):
    """The functions that an update runs: update() and what it calls in the same header."""
    starts = [i for i, line in enumerate(lines) if re.search(r"\bDESCENT_HD static\b", line)]
    functions = {}
    for i in starts:
        first = i - 1 if lines[i - 1].strip() == "template <class Real>" else i
        name = re.search(r"(\w+)\(", lines[i].split("DESCENT_HD static")[1]).group(1)
        functions.setdefault(name, dedented(block(lines, first)))
    update = functions["update"]
    called = [text for name, text in functions.items() if name != "update" and re.search(rf"\b{name}\(", update)]
    return "\n\n".join(called + [update])


def from_header(path, name):
    lines = path.read_text(encoding="utf-8").splitlines()
    start = lines.index(f"struct {name} {{")
    whole = block(lines, start)
    said = []
    for line in whole[1:]:
        if not line.strip().startswith("///"):
            break
        said.append(line.strip()[4:])
    return {"comment": paragraphs(comment_above(lines, start)), "said": " ".join(said), "code": update_of(whole),
            "whole": "\n".join(lines[start - len(comment_above(lines, start)):start] + whole)}


def rules_of(root):
    text = (root / "examples/lab/rules.cpp").read_text(encoding="utf-8")
    return re.findall(r"^ +LAB_RULE\((\w+)\)", text, re.MULTILINE)


def page(root, clang):
    folder = root / "examples/lab"

    def text(name):
        return (folder / name).read_text(encoding="utf-8")

    headers = {name: from_header(root / f"include/descent/rules/{name}.hpp", name) for name in rules_of(root)}
    wasm = base64.b64encode(module(root, clang)).decode()
    parts = {
        "/* lab.css */": text("lab.css"),
        "/* rules */": json.dumps(headers, ensure_ascii=False, sort_keys=True).replace("</", "<\\/"),
        "/* wasm */": "\n".join(wasm[i:i + 8192] for i in range(0, len(wasm), 8192)),
        "/* scripts */": "\n".join(text(name) for name in scripts),
    }
    html = text("lab.html")
    for mark, content in parts.items():
        before, after = html.split(mark + "\n")
        html = before + content.rstrip("\n") + "\n" + after
    return html


def main():
    if not 3 <= len(sys.argv) <= 4:
        print(__doc__.strip(), file=sys.stderr)
        sys.exit(2)
    root, out = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    clang = compiler(*sys.argv[3:4])
    if not clang:
        sys.exit("build.py: there is no clang++ that compiles for wasm32-wasi; see the comment at the top")
    html = page(root, clang)
    out.write_text(html, encoding="utf-8")
    print(f"{out}: {len(html.encode()) / 1000:.0f} kB")


if __name__ == "__main__":
    main()
