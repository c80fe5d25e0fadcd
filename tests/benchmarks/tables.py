"""Code shared by all reports: reading results, formatting numbers, tables."""

import json
import os
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


def table(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head)] +
                     ["| " + " | ".join(row) + " |" for row in rows])


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
    rows = []
    for result in results(runs):
        for of in timed(result).values():
            if result["recipe"].startswith("rule_"):
                rate, of_copy = result["step_bytes"] / seconds(of), percent(result, of, "copy")
                rows.append((-(of_copy or 0), [
                    result["recipe"][5:], title(result["case"]), f"{result['step_bytes'] / result['elements']:.0f}",
                    time_of(seconds(of)), f"{rate * 1e-9:.1f}", shown(of_copy), shown(percent(result, of, "triad"))]))
    return table(["rule, in float", "parameters", "bytes per parameter", "step, median", "GB/s", "% of copy",
                  "% of triad"], [row for _, row in sorted(rows)])


def missing(runs):
    measured = {(r["case"], r["recipe"]) for run in runs for r in run["results"]}
    said = [f"{run['file']}: {note}" for run in runs for note in run["notes"] if note]
    for run in runs:
        skipped = {}  # what no other run has, by reason
        for s in run["skipped"]:
            if (s["case"], s["recipe"]) not in measured or "gone by" not in s["why"]:
                skipped.setdefault(s["why"], []).append(f"{title(s['case'])}, {s['recipe']}")
        said += [f"{run['file']}: {'; '.join(some)}: {why}" for why, some in skipped.items()]
    said += [f"{run['file']}: {title(r['case'])}, {r['recipe']}: {name} is refused: {of['refused']}" for run in runs
             for r in run["results"] for name, of in r["contestants"].items() if "refused" in of]
    said += [f"{run['file']}: {title(r['case'])}, {r['recipe']}: not compared with the oracle: too little memory, "
             "or the oracle lacks the recipe" for run in runs for r in run["results"]
             if not r["checked"] and r["recipe"] in cases.resident]
    return "\n".join("- " + text for text in said) or "Nothing."
