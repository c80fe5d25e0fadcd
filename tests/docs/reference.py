#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""The API reference, from the `///` comments of the public headers: all of include/descent except engine/,
optimizer/ and the folders detail/.

usage: reference.py project-root             fails if a public name has no comment, or if a header is left out
       reference.py project-root folder      writes the reference as HTML, starting at folder/index.html

A name has a comment above it or a ///< behind it, or it shares the comment above a run of declarations without an empty
line in between. A field may instead appear in backticks in the comment of its class. Members that concepts describe for
all classes, such as a rule's update(), need no comment.

Doxygen 1.9.4 (Debian's) was tried first and fails on these headers: its pages drop the requires clause of a function
that is no template, give the comment above a run of declarations to the first one only, merge the comments of 25
files into one text about the namespace, and omit what optimizer inherits from optimizer/. It makes 650 pages with an
entry per field, where one line of the declaration as written says the same."""
import html
import os
import re
import sys

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

from declarations import Header

roles = {
    "": ("The optimizer", "The optimizer, its parameters, and its reports."),
    "rules": ("Rules", "Update rules: how a step follows from the gradient. One header each."),
    "transforms": ("Transforms", "Transforms of the gradient, chained in front of a rule."),
    "schedules": ("Schedules", "Hyperparameters as functions of the step."),
    "policies": ("Policies", "Options of an optimizer; each enables one feature."),
    "backends": ("Backends", "Where the memory is and what runs the loops."),
    "ranks": ("Ranks", "Policies for several ranks: data parallelism, and models that are divided."),
    "training": ("Training", "Shared loss scales, large batches, ranks that rarely meet, the learning-rate finder."),
    "data": ("Data", "Sources, orders, the loader with its workers, data on the device, the sampler for ranks."),
    "io": ("Files", "Checkpoints, saved at once or by a thread, and safetensors files."),
    "adapters": ("Adapters", "Parameters from tensors of other libraries."),
    "comm": ("Communicators", "Ranks as threads or as processes over MPI or NCCL, and how they find each other."),
    "matrices": ("Matrices", "Matrix products for the rules for matrices, on the host and on a device."),
    "minimizers": ("Minimizers", "Algorithms that evaluate the loss themselves."),
    "presets": ("Presets", "Rules, schedules and mixed precision under the names of other frameworks."),
    "core": ("Core", "Concepts: what a rule, a schedule, a policy and a communicator are."),
}
# Described in core/rule.hpp, core/range.hpp, core/transform.hpp, core/schedule.hpp, core/policy.hpp,
# core/communicator.hpp, matrices/matrices.hpp and backends/systems.hpp.
of_concepts = set("""state kept idle terms sums memory inputs slots sums_over step_needs_p start at sum update averaged ahead uses
    unbounded for_sums_only counts after apply direction transform scratch ranges check check_groups policy_kind engine scaler
    each on_device rank size all_reduce reduce_scatter all_gather all_to_all broadcast abort""".split())


def lacking(items, spaces, about=None, where=""):
    """Line and name of each item without a comment. `about` is the comment of the class, if it is one."""
    said = {name for item in items for name in item.names if item.above[0] or "///" in item.behind}
    said |= spaces if about is None else of_concepts | set(re.findall(r"`(\w+)[^`]*`", about))
    for item in items:
        inherited = item.kind == "using" and "=" not in item.code and about is not None
        for name in item.names if item.kind not in ("text", "made") and not inherited else []:
            if name not in said and not name.startswith("operator"):
                yield item.line, where + name
        if item.kind == "namespace":
            yield from lacking(item.parts, spaces)
        elif not set(item.names) & of_concepts:
            yield from lacking(item.parts, spaces, item.above[0], f"{where}{item.names[0]}::" if item.names else "")


def prose(comment, links):
    """HTML of a comment: paragraphs, indented formulas, code in backticks."""
    out = ""
    for block in re.split(r"\n *\n", re.sub(r"^ ", "", comment, flags=re.M).strip("\n")):
        text = html.escape(block, False)
        if block.startswith("    "):
            text = re.sub("^    |`", "", text, flags=re.M)
            out += f"<pre class=formula>{text}</pre>\n"
        elif text:
            text = re.sub(r"`(\w*)([^`]*)`", lambda m: f"<code>{links.get(m[1], m[1])}{m[2]}</code>", text)
            out += f"<p>{text}\n"
    return out


def summary(comment):
    """The first sentence, on one line."""
    text = re.sub(r"\s+", " ", re.split(r"\n *\n", comment.strip())[0])
    return re.split(r"(?<!\bal)(?<!\beq)\. (?=[A-Z`])", text)[0].rstrip(".:")


def shown(item):
    """The declaration, with the comments behind it."""
    notes = [re.sub("^///?<?", "//", line) for line in item.behind.splitlines()]
    column = len(item.code.split("\n")[-1]) + 2
    return item.code + ("  " + ("\n" + " " * column).join(notes) if notes else "")


def entries(items, links, level=3, prefix=""):
    """HTML of items. Those that share a comment stand together."""
    out, i = "", 0
    while i < len(items):
        run, i = [items[i]], i + 1
        while i < len(items) and items[i].above is run[0].above and not items[i].parts and not run[-1].parts:
            run.append(items[i])
            i += 1
        run = [item for item in run if "check" not in item.names and (item.kind, level) != ("made", 3)]
        if run and run[0].kind == "text":
            out += prose(run[0].above[0], links)
        elif run:
            first = run[0].names[0]
            anchors = "".join(f"<a id='{prefix}{name}'></a>" for name in dict.fromkeys(n for r in run for n in r.names))
            titled = level == 3 or (run[0].kind == "class" and run[0].parts)
            title = f"<h{level}>{html.escape(first)}</h{level}>\n" if titled else ""
            code = html.escape("\n".join(map(shown, run)), False)
            own = {first, *(name for part in run[0].parts for name in part.names)}
            others = {name: link for name, link in links.items() if name not in own}
            out += f"<div class=l{level}>{anchors}{title}<pre>{code}</pre>\n{prose(run[0].above[0], others)}"
            out += entries(run[0].parts, others, level + 1, f"{prefix}{first}.") + "</div>\n"
    return out


style = """
body { max-width: 62em; margin: 2em auto; padding: 0 1em; font: 16px/1.45 sans-serif; color-scheme: light dark }
pre, code { font: 14px/1.4 monospace } pre { background: #8882; padding: .4em .7em; overflow-x: auto; margin: .6em 0 }
pre.formula { background: none } p { margin: .4em 0 } a { text-decoration: none } h2, h3, h4 { margin: 1.6em 0 .2em }
.l4, .l5 { margin-left: 1.5em } nav a { margin-right: .8em }
@media (max-width: 40em) { .names td { display: block } }
td { padding: .1em .8em .1em 0; vertical-align: top; overflow-wrap: anywhere }
"""


def name_of(folder):
    return f"{folder or 'optimizer'}.html"


def write(out, name, title, body):
    nav = " ".join(f"<a href='{name_of(folder)}'>{role[0]}</a>" for folder, role in roles.items())
    with open(os.path.join(out, name), "w", encoding="utf-8") as file:
        file.write(f"<!DOCTYPE html>\n<html lang=en><meta charset=utf-8><title>descent: {title}</title>\n"
                   "<meta name=viewport content='width=device-width, initial-scale=1'>\n"
                   f"<style>{style}</style>\n<nav><a href='index.html'>Index</a> {nav}</nav>\n"
                   f"<h1>{title}</h1>\n{body}</html>\n")


def left_out(headers, texts):
    """The headers of which no page has a section. A header without comments and names has none: it only includes."""
    for header in headers:
        if (header.items or header.comment) and not any(f"&lt;descent/{header.path}&gt;" in text for text in texts):
            yield f"include/descent/{header.path}: no page of the reference has this header: add its folder to `roles`"


def pages(headers):
    """File name, title and body of each page, index.html first."""
    folders = {folder: [h for h in headers if os.path.dirname(h.path) == folder] for folder in roles}
    named = {folder: [item for header in folders[folder] for item in header.items
                      if item.kind not in ("text", "made") and item.above[0]] for folder in roles}
    links = {item.names[0]: f"<a href='{name_of(folder)}#{item.names[0]}'>{item.names[0]}</a>"
             for folder in roles for item in named[folder]}
    index = "<p>What the public headers declare, by folder of <code>include/descent</code>.\n"
    out = {}
    for folder, (title, role) in roles.items():
        body, rows = f"<p>{role}\n", {}
        for header in folders[folder]:
            if header.items or header.comment:
                body += f"<h2><code>&lt;descent/{header.path}&gt;</code></h2>\n{prose(header.comment, links)}"
                body += entries(header.items, links)
        out[name_of(folder)] = title, body
        for item in named[folder]:
            rows.setdefault(item.names[0], prose(summary(item.above[0]), {})[3:])
        index += f"<h2><a href='{name_of(folder)}'>{title}</a></h2>\n<p>{role}\n<table class=names>\n" + "".join(
            f"<tr><td><code>{links[name]}</code><td>{text}" for name, text in rows.items()) + "</table>\n"
    return {"index.html": ("API reference", index)} | out


def inherited(item, inside):
    """The members of public bases that are in optimizer/."""
    bases = [inside[base] for base in item.bases if base in inside]
    return [part for base in bases for part in base.parts + inherited(base, inside)]


include = os.path.join(sys.argv[1], "include/descent")
paths = sorted(os.path.relpath(os.path.join(folder, name), include)
               for folder, _, names in os.walk(include) for name in names)
headers = [Header(include, path) for path in paths if not re.search("^engine/|^optimizer/|/detail/", path)]
inside = {item.names[0]: item for path in paths if path.startswith("optimizer/")
          for item in Header(include, path, everything=True).items if item.kind in ("class", "using")}
for header in headers:
    for item in header.items:
        item.parts += inherited(item, inside)
written = pages(headers)
if len(sys.argv) > 2:
    os.makedirs(sys.argv[2], exist_ok=True)
    for name, page in written.items():
        write(sys.argv[2], name, *page)
    sys.exit()
spaces = [item for header in headers for item in header.items if item.kind == "namespace"]
spaces += [item for space in spaces for item in space.parts if item.kind == "namespace"]
spaces = {space.names[0] for space in spaces if space.above[0]}
lacks = [f"include/descent/{h.path}:{line}: {name} has no comment"
         for h in headers for line, name in lacking(h.items, spaces)]
print(f"{len(headers)} headers, {len(lacks)} names without a comment", *lacks, sep="\n")
lacks += (missing := [*left_out(headers, [body for _, body in written.values()])])
print(*missing, sep="\n", end="\n" if missing else "")
sys.exit(bool(lacks) or len(headers) < 100)
