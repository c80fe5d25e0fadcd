#!/usr/bin/env python3
"""Checks that the block of a page after the comment <!-- output: name --> equals the output of a program.

usage: output.py page name program
"""
import re
import subprocess
import sys

page, name, program = sys.argv[1:]
with open(page, encoding="utf-8") as text:
    quoted = re.search(rf"<!-- output: {re.escape(name)} -->\n```\n(.*?)```\n", text.read(), re.DOTALL)
if not quoted:
    sys.exit(f"{page}: there is no block after <!-- output: {name} -->")
run = subprocess.run([program], capture_output=True, text=True, check=True)
if quoted[1] != run.stdout:
    sys.exit(f"{page}: {name} prints something else:\n{run.stdout}")
