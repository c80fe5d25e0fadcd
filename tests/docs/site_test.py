#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""Checks that site.py ends with a sentence, and not with a traceback, if it cannot build the site. Needs no MkDocs.

usage: site_test.py
"""
import pathlib
import subprocess
import sys
import tempfile

site = pathlib.Path(__file__).with_name("site.py")


def says(sentence, *arguments):
    """site.py with these arguments fails with this sentence."""
    run = subprocess.run([sys.executable, site, *arguments], capture_output=True, text=True, check=False)
    if run.returncode != 1 or sentence not in run.stderr or "Traceback" in run.stderr:
        sys.exit(f"site.py {' '.join(map(str, arguments))}: not '{sentence}', but {run.returncode}:\n{run.stderr}")


with tempfile.TemporaryDirectory() as folder:
    root = pathlib.Path(folder)
    says("usage: site.py project-root folder")
    says("is not the folder of the project: it has no README.md", root, root / "site")
    for name in ("docs/learn", "include/descent"):
        (root / name).mkdir(parents=True)
    for name in ("README.md", "docs/learn/README.md"):
        (root / name).write_text("# A page\n", encoding="utf-8")
    (root / "docs/index.md").write_text("# Pages\n\n[one](one.md), [two](../two.hpp)\n", encoding="utf-8")
    says("links to what is not there:\ndocs/index.md: one.md\ndocs/index.md: ../two.hpp\n", root, root / "site")
    (root / "docs/index.md").write_text("# Pages\n", encoding="utf-8")
    (root / "file").touch()
    says("site.py: [Errno 17] File exists", root, root / "file/site")
