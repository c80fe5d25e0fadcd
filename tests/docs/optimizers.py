#!/usr/bin/env python3
"""Checks that docs/optimizers.md has a section for each rule and algorithm, and that no section lacks a part.

usage: optimizers.py project-root
"""
import os
import re
import sys

root = sys.argv[1]
with open(os.path.join(root, "docs/optimizers.md"), encoding="utf-8") as page:
    text = page.read()
rules = {name[:-4] for name in os.listdir(os.path.join(root, "include/descent/rules")) if name != "detail"}
around = {"noisy SGD", "SAM", "Lookahead", "gradient_ahead", "L-BFGS", "ESGD"}  # policies and minimizers

others = (r"PyTorch|torch\.optim|optax|pytorch_optimizer|ensmallen|apex|bitsandbytes|DeepSpeed|flashlight|MLX"
          r"|tiny-cuda-nn|authors' code|[Nn]o other framework")
parts = {
    "a picture": r"^!\[[^]]+\]\(pictures/\w+\.svg\)$",
    "the formula in a block": r"^```\n(?:(?!^```)[\s\S])+<-(?:(?!^```)[\s\S])+^```$",
    "'State:' or 'Memory:'": r"^(?:State|Memory):",
    "what the state takes": r"(?:State|Memory)[:,](?:(?!\n\n).|\n)*(?:\bbytes\b|\bnone\b|inner rule's|vectors|copies)",
    "'Defaults:'": r"Defaults(?:\b[^.]*)?:|^\| field \| default \|",
    "what others do": others,
    "'Use it'": r"\bUse it\b",
}

sections = dict(re.findall(r"^### ([^\n]+)\n(.*?)(?=^##|\Z)", text, re.M | re.S))
lacks = [f"no section {name}" for name in sorted((rules | around) - set(sections))]
for name in sorted((rules | around) & set(sections)):
    lacks += [f"{name} lacks {what}" for what, form in parts.items() if not re.search(form, sections[name], re.M)]
for name in re.findall(r"\]\((pictures/\w+\.svg)\)", text):
    if not os.path.exists(os.path.join(root, "docs", name)):
        lacks.append(f"there is no docs/{name}")
print("\n".join(lacks) if lacks else f"{len(sections)} sections have {len(parts)} parts")
sys.exit(bool(lacks))
