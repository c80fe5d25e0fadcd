"""Code shared by all reports: reading results, formatting numbers, tables."""

import json
import os
import re
import sys

import cases


def load(files):
    runs = []
    for name in files:
        with open(name, encoding="utf-8") as text:
            run = json.load(text)
        if run.get("format") != 1:
            sys.exit(f"{name} is no result of drive.py")
        runs.append({**run, "file": os.path.basename(name)})
    return runs


def title(case):
    return cases.by_name[case].what if case in cases.by_name else case


def seconds(of):
    return of["seconds"]["median"]


def timed(result):
    return {name: of for name, of in result["contestants"].items() if "seconds" in of}


def limit(result, kind):
    """Bytes per second of copy or triad, with the faster kind of stores."""
    rates = [of["step_bytes"] / seconds(of) for name, of in result["ceilings"].items()
             if name.startswith(kind) and "seconds" in of]
    return max(rates, default=None)


def percent(result, of, kind):
    most = limit(result, kind)
    return 100 * result["step_bytes"] / seconds(of) / most if most and result["step_bytes"] else None


def ratio(result, peer, own="descent"):
    of = timed(result)
    return seconds(of[peer]) / seconds(of[own]) if peer in of and own in of else None


def shown(x, digits=0):
    return "–" if x is None else f"{x:.{digits}f}"


def time_of(x):
    if x >= 0.9995:
        return f"{x:.3g} s"
    return f"{x * 1e3:.3g} ms" if x >= 0.9995e-3 else f"{x * 1e6:.3g} µs"


def quartiles(s):
    """Two times; the unit once if it is the same."""
    low, high = time_of(s["q1"]), time_of(s["q3"])
    return f"{low.split()[0] if low.split()[1] == high.split()[1] else low} to {high}"


def table(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head)] +
                     ["| " + " | ".join(row) + " |" for row in rows])


def folded(summary, text):
    """Text that a reader opens."""
    return f"<details><summary>{summary}</summary>\n\n{text}\n\n</details>"


heads = {"torch_fused": "PyTorch, fused", "torch_foreach": "PyTorch, foreach", "torch_captured": "PyTorch, captured",
         "torch_compiled": "PyTorch, compiled", "descent_captured": "descent, captured", "eigen": "Eigen", "jax": "JAX"}


def medians_table(first, rows, launches=False):
    """One row for each pair of a title and a result: the median step of each contestant, the rate of the library."""
    names = list(dict.fromkeys(name for _, result in rows for name in timed(result)))
    def row(what, result):
        of, ours = timed(result), timed(result).get("descent")
        return [what, *(time_of(seconds(of[name])) if name in of else "–" for name in names),
                shown(percent(result, ours, "copy") if ours else None),
                *([count(ours or {}, "launches")] if launches else [])]
    return table([first, *(heads.get(name, name) for name in names), "% of copy", *(["launches"] if launches else [])],
                 [row(*pair) for pair in rows])


def count(of, kind):
    return str(of[kind]) if kind in of else "–"


def brief(x):
    """A time with at most three digits and two decimals."""
    if x < 0.5e-3:
        return f"{x * 1e6:.0f} µs"
    return f"{round(x * 1e3, 2 if x < 10e-3 else 1 if x < 100e-3 else 0):g} ms"


def rate(result, median):
    """In GB/s."""
    of = result["step_bytes"] / median * 1e-9
    return f"{of:.{0 if of >= 100 else 1}f}"


def contestants_table(runs):
    of = {name: about for run in runs for name, about in run["contestants"].items()}
    return table(["contestant", "description", "compiler or version", "flags"], [
        [name, about["name"], about["compiler"], f"`{about['flags']}`"] for name, about in of.items()])


def listed(things):
    """Each once, as a list."""
    return "\n".join(f"- {thing}" for thing in dict.fromkeys(things))


def by_size(runs, recipe):
    """Titles and results: single tensors by their size, models, and numbers split into tensors."""
    of = [(title(r["case"]), r) for r in results(runs) if r["recipe"] == recipe and timed(r)]
    def order(pair):
        case = pair[1]["case"]
        return (0, pair[1]["elements"]) if case.startswith("flat_") else (1 + case.startswith("split_"), 0)
    return sorted(of, key=order)


def answers_table(runs, rows, columns, launches=()):
    """The first table that a reader sees: rows are a title, a case and a recipe; columns are contestants."""
    of, out = {(r["case"], r["recipe"]): r for r in results(runs)}, []
    for what, *key in rows:
        if not (result := of.get(tuple(key))) or "descent" not in timed(result):
            continue
        each = timed(result)
        out.append([what, *(brief(seconds(each[name])) if name in each else "–" for name in columns),
                    f"{shown(percent(result, each['descent'], 'copy'))} %",
                    *([", ".join(count(each.get(name, {}), "launches") for name in launches)] if launches else [])])
    return table(["AdamW", *(heads.get(name, name) for name in columns), "rate of a copy",
                  *(["launches: " + ", ".join(heads.get(name, name).split(",")[0] for name in launches)]
                    if launches else [])], out) if out else ""


def target(what, wanted, values, holds):
    """A row of the targets, or no row if nothing was measured: values are pairs of a place and a number."""
    return [[what, wanted, ", ".join(f"{where}: {value:.2f}" for where, value in values),
             "yes" if all(holds(value) for _, value in values) else "no"]] if values else []


def targets_table(rows):
    return table(["target", "required", "measured", "met"], rows) if rows else "No case here has a target."


def results(runs):
    """All results. If several files have the same case and recipe, the first file counts."""
    of = {}
    for run in runs:
        for result in run["results"]:
            of.setdefault((result["case"], result["recipe"]), result)
    return list(of.values())


def rules_table(runs):
    """The rules from the fastest to the slowest, relative to a copy; folded below a sentence with the extremes."""
    rows, of = [], {}
    for result in results(runs):
        for ours in timed(result).values():
            if result["recipe"].startswith("rule_"):
                rate, of_copy = result["step_bytes"] / seconds(ours), percent(result, ours, "copy")
                of.setdefault(title(result["case"]), []).append(of_copy or 0)
                rows.append((-(of_copy or 0), [
                    result["recipe"][5:], f"{result['step_bytes'] / result['elements']:.0f}", time_of(seconds(ours)),
                    f"{rate * 1e-9:.1f}", shown(of_copy), shown(percent(result, ours, "triad"))]))
    said = "; ".join(f"{case}: {len(rates)} rules, at {min(rates):.0f} to {max(rates):.0f} % of the rate of a copy"
                     for case, rates in of.items())
    return f"{said[0].upper()}{said[1:]}.\n\n" + folded("Each rule", table(
        ["rule, in float", "bytes per parameter", "step, median", "GB/s", "% of copy", "% of triad"],
        [row for _, row in sorted(rows)]))


def missing(runs):
    measured, said = {(r["case"], r["recipe"]) for run in runs for r in run["results"]}, {}
    def say(run, text):
        said.setdefault(text, {})[run["file"]] = None
    for run in runs:
        for note in filter(None, run["notes"]):
            say(run, re.sub(r": \.$", ".", note))  # a peer that is missing without a message
    for run in runs:
        skipped = {}  # what no other run has, by reason
        for s in run["skipped"]:
            if (s["case"], s["recipe"]) not in measured or "gone by" not in s["why"]:
                skipped.setdefault(s["why"], []).append(f"{title(s['case'])}, {s['recipe']}")
        for why, some in skipped.items():
            say(run, f"{'; '.join(some)}: {why}")
        for r in run["results"]:
            for name, of in r["contestants"].items():
                if "refused" in of:
                    say(run, f"{title(r['case'])}, {r['recipe']}: {name} is refused: {of['refused']}")
            if not r["checked"] and r["recipe"] in cases.resident:
                say(run, f"{title(r['case'])}, {r['recipe']}: not compared with the oracle: too little memory, or the "
                         "oracle lacks the recipe")
    return "\n".join(f"- {text.rstrip('.')} ({', '.join(files)})" for text, files in said.items()) or "Nothing."
