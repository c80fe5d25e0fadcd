# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""The part of the report with the measurements of loader.py."""

import math

from tables import folded, quartiles, seconds, table, target, targets_table, time_of, timed


def results(runs):
    """All results. If several files have the same case, the first file counts."""
    of = {}
    for run in runs:
        for result in run["results"]:
            of.setdefault(result["case"], result)
    return list(of.values())


def machine(runs):
    said = []
    for run in runs:
        m = run["machine"]
        loads = [r["load"] for r in run["results"]]
        said.append(f"- {run['file']}: {run['date'][:10]}, {m['cpu']}, {m['cores']} cores, "
                    f"{m['memory_bytes'] / 2**30:.0f} GiB, {m['system']}; load {m['load_at_start']:.1f} at the start, "
                    f"{min(loads):.1f} to {max(loads):.1f} after the cases; {run['repetitions']} repetitions, revision "
                    f"{run['revision']}, `{run['command']}`")
    programs = {name: about for run in runs for name, about in run["contestants"].items()}
    return "\n".join(said) + "\n\n" + table(["program", "description", "compiler or version", "flags"], [
        [name, about["name"], about["compiler"], f"`{about['flags']}`"] for name, about in programs.items()])


def titled(of):
    """As the table calls a contestant."""
    if of["program"] == "torch":
        return {"loader": "PyTorch", "lists": "PyTorch, lists", "index": "PyTorch, indexed"}[of["way"]]
    return of["way"]


def targets(runs):
    values = [(r["what"].split(", batches of ")[1], seconds(timed(r)["loop_0"]) / seconds(timed(r)["descent_0"]))
              for r in results(runs) if r["case"].startswith("bytes_") and
              {"loop_0", "descent_0"} <= set(timed(r))]
    return targets_table(target("records in order from memory: rate relative to memcpy", "at least 0.9", values,
                                lambda x: x >= 0.9))


def short(x):
    """Two digits, and no exponent."""
    return f"{x:.{max(0, 1 - math.floor(math.log10(x)))}f}"


def case_table(result):
    rows, of = [], timed(result)
    batches = -(-result["records"] // result["batch"])
    moves = result["bytes"] >= 1024  # a rate in bytes says nothing about smaller records
    for name, one in of.items():
        s, ours = one["seconds"], of.get(f"descent_{one['workers']}")
        rows.append([titled(one), str(one["workers"]), time_of(s["median"]),
                     quartiles(s), f"{result['records'] / s['median']:,.0f}"] +
                    [f"{result['records'] * result['bytes'] / s['median'] * 1e-9:.2f}"] * moves +
                    [time_of(s["median"] / batches),
                     short(seconds(of["loop_0"]) / s["median"]) if "loop_0" in of and name != "loop_0" else "",
                     short(s["median"] / seconds(ours)) if ours and one["program"] == "torch" else ""])
    return table(["contestant", "workers", "epoch, median", "quartiles", "records/s"] + ["GB/s"] * moves +
                 ["batch", "rate / loop", "time / descent"], rows)


def sentence(text):
    return text[0].upper() + text[1:]


def batches_table(runs):
    """The time of a batch of each contestant, with the fewest workers that it was measured with."""
    rows, names = [], {}
    for result in results(runs):
        least = {}
        for one in timed(result).values():
            if titled(one) not in least or one["workers"] < least[titled(one)]["workers"]:
                least[titled(one)] = one
        names |= dict.fromkeys(least)
        rows.append((sentence(result["what"]), -(-result["records"] // result["batch"]), least))
    def each(of, batches):
        return [time_of(seconds(of[name]) / batches) + " +" * (of[name]["workers"] > 0) if name in of else "–"
                for name in names]
    return table(["median time of a batch", *names], [[what, *each(of, batches)] for what, batches, of in rows]) + \
        "\n\n+: with one worker; all others without workers."


def missing(runs):
    said = [f"{run['file']}: {note}" for run in runs for note in run["notes"] if note]
    said += [f"{run['file']}: {r['what']}: {name} is refused: {of['refused']}" for run in runs for r in run["results"]
             for name, of in r["contestants"].items() if "refused" in of]
    return "\n".join("- " + text for text in said)


def section(runs):
    parts = [targets(runs), batches_table(runs)]
    parts += [folded(sentence(r["what"]), case_table(r)) for r in results(runs) if timed(r)]
    return "\n\n".join(filter(None, parts + [machine(runs), missing(runs)]))
