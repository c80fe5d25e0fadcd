#!/usr/bin/env python3
"""Checks that the block of a page after the comment <!-- output: name --> equals the output of a program, and that the
program draws the picture with `--picture`.

usage: output.py page name program [picture]
"""
import pathlib
import re
import subprocess
import sys
import tempfile

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

page, name, program, *pictures = sys.argv[1:]
with open(page, encoding="utf-8") as text:
    quoted = re.search(rf"<!-- output: {re.escape(name)} -->\n```\n(.*?)```\n", text.read(), re.DOTALL)
if not quoted:
    sys.exit(f"{page}: there is no block after <!-- output: {name} -->")
run = subprocess.run([program], capture_output=True, text=True, check=True)
if quoted[1] != run.stdout:
    sys.exit(f"{page}: {name} prints something else:\n{run.stdout}")
for picture in pictures:
    with tempfile.TemporaryDirectory() as folder:
        drawn = pathlib.Path(folder) / "picture.svg"
        subprocess.run([program, "--picture", drawn], stdout=subprocess.DEVNULL, check=True)
        if drawn.read_bytes() != pathlib.Path(picture).read_bytes():
            sys.exit(f"{picture} is not what {name} draws")
