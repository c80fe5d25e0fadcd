#!/usr/bin/env python3
"""Checks how the pictures look: no text is cut, none is too small in the site's column, and all have one style with a dark
form.

usage: pictures.py project-root [picture...]   (all of docs/pictures)
"""
import os
import pathlib
import sys
import xml.etree.ElementTree as xml

root = pathlib.Path(sys.argv[1])
sys.path.insert(0, os.path.join(root, "tests/benchmarks"))
import svg  # pylint: disable=wrong-import-position

column, smallest = 830, 11  # pixels: the width of the site's column, and of the smallest text in it
name_of = "{http://www.w3.org/2000/svg}"


def texts(node, size=13, bold=False):
    """Each text: x, y, anchor, size, whether it is bold, and its letters."""
    size = float(node.get("font-size", size))
    bold = node.get("font-weight", "bold" if bold else "") == "bold"
    if node.tag == name_of + "text":
        yield float(node.get("x")), float(node.get("y")), node.get("text-anchor", "start"), size, bold, "".join(node.itertext())
        return
    for child in node:
        yield from texts(child, size, bold)


def wrong(path):
    picture = xml.parse(path).getroot()
    _, _, width, height = map(float, picture.get("viewBox").split())
    if width > column:
        yield f"is {width:g} wide, the site's column {column}"
    if picture.find(name_of + "style") is None or picture.find(name_of + "style").text != svg.style:
        yield "does not have the style of examples/parts/picture_style.inc"
    if picture.find(name_of + "title") is None or picture.get("role") != "img":
        yield "has no title, or not the role img"
    if any("transform" in node.attrib for node in picture.iter()):
        yield "moves its parts, so that this test does not know where its texts are"
    for colour in ("fill", "stroke"):
        if any(node.get(colour, "none") != "none" for node in picture.iter()):
            yield f"has a {colour} beside its style, the same in the dark"
    for x, y, anchor, size, bold, letters in texts(picture):
        long = svg.width_of(letters, size, bold)
        left = x - {"start": 0, "middle": long / 2, "end": long}[anchor]
        if left < 0 or left + long > width or y < 0.75 * size or y + 0.25 * size > height:
            yield f'cuts "{letters}", from {left:.0f} to {left + long:.0f} of {width:g}, base at {y:g} of {height:g}'
        if size < smallest:
            yield f'writes "{letters}" in {size:g} px'


pictures = [pathlib.Path(name) for name in sys.argv[2:]] or sorted((root / "docs/pictures").glob("*.svg"))
found = [f"{path.name} {what}" for path in pictures for what in wrong(path)]
print(*found, f"{len(pictures)} pictures, {len(found)} faults", sep="\n")
sys.exit(bool(found))
