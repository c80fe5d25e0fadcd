#!/usr/bin/env python3
"""Tests the program that draws the rules: its pictures match its output, and every rule of the library has a picture.

usage: pictures.py project-root program
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

root, program = sys.argv[1:]
svg = "{http://www.w3.org/2000/svg}"


def run(*arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True)


def check(holds, what):
    if not holds:
        sys.exit(f"does not hold: {what}")


def numbers(text):
    return [float(x) for x in re.findall(r"-?[0-9.]+(?:e[-+]?[0-9]+)?", text)]


def ends(picture):
    """The last point of each path, in the coordinates of its panel."""
    frames = [r for r in picture.iter(svg + "rect") if "data-range" in r.attrib]
    paths = [p for p in picture.iter(svg + "path") if p.get("class") == "path"]
    for frame, path in zip(frames, paths):
        left, top, width, height = (float(frame.get(k)) for k in ("x", "y", "width", "height"))
        x0, x1, y0, y1 = numbers(frame.get("data-range"))
        x, y = numbers(path.get("d"))[-2:]
        yield x0 + (x - left) / width * (x1 - x0), y1 - (y - top) / height * (y1 - y0)


listed = run("--list").stdout.split()
rules = {name[:-4] for name in os.listdir(os.path.join(root, "include/descent/rules")) if name != "detail"}
around = {"sam", "lookahead", "gradient_ahead", "noisy_sgd", "lbfgs", "esgd"}
check(set(listed) == rules | around | {"stochastic_rounding", "together"}, f"each rule has a picture: {rules ^ set(listed)}")
shown = {name for page in pathlib.Path(root, "docs/optimizers").glob("*.md")
         for name in re.findall(r"\]\(\.\./pictures/(\w+)\.svg\)", page.read_text(encoding="utf-8"))}
check(rules | around <= shown, f"docs/optimizers/ shows each: {(rules | around) - shown}")
notes = {  # of pictures whose settings are not the defaults
    "qhm": "beta 0.9", "acprop": "eps 10, eps_root 1e-6", "sophia": "gamma 1", "dog": "reps 0.01",
    "prodigy": "d0 0.01", "dadapt_adamw": "d0 0.01", "yellowfin": "beta 0.9, first_lr 0.01",
    "cocob": "alpha 3", "radam": "beta2 0.9", "larc": "around sgd, trust 0.1",
    "lookahead": "sgd, momentum 0.9", "muon": "adam for biases"}
for name in listed:
    file = os.path.join(root, "docs/pictures", name + ".svg")
    check(os.path.exists(file) and os.path.getsize(file) < 16000, f"docs/pictures/{name}.svg is there and small")
    told = "".join(xml.parse(file).getroot().itertext())
    check(notes.get(name, "") in told, f"docs/pictures/{name}.svg says {notes.get(name)}")

wrong = run(tempfile.gettempdir(), "adamm")
check(wrong.returncode == 2 and 'there is no picture "adamm": did you mean adamw?' in wrong.stderr, wrong.stderr)
check(run().returncode == 2, "without a folder it fails")

with tempfile.TemporaryDirectory() as folder:
    # a searched rate, a rule that uses the loss, a rule without a rate, two gradients per step, a minimizer
    names = ["sgd", "polyak", "dog", "sam", "lbfgs"]
    drawn = run(folder, *names)
    check(drawn.returncode == 0, drawn.stderr)
    check(sorted(os.listdir(folder)) == sorted(name + ".svg" for name in names), "it draws what is asked for")
    first = {name: open(os.path.join(folder, name + ".svg"), "rb").read() for name in names}
    for name in names:
        printed = [numbers(line.split(" at ")[1]) for line in drawn.stdout.splitlines()
                   if line.startswith(name + " ") and " at " in line]
        got = list(ends(xml.fromstring(first[name])))
        check(len(got) == len(printed) == 2, f"{name}: two paths")
        for (x, y), (want_x, want_y) in zip(got, printed):  # 0.05 pixels and 6 digits
            check(abs(x - want_x) < 2e-3 and abs(y - want_y) < 2e-3,
                  f"{name}: ends at {x} {y}, prints {want_x} {want_y}")
    check(run(folder, "dog").returncode == 0, "it draws again")
    check(open(os.path.join(folder, "dog.svg"), "rb").read() == first["dog"], "the same bytes")
