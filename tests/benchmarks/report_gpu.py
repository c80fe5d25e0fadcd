"""The part of the report with the measurements on GPUs."""

import cases
from tables import (limit, missing, percent, ratio, results, rules_table, seconds, shown, table, target, targets_table,
                    time_of, timed, title)

nothing = "Nothing has been measured on a GPU yet."
software = "a device in software"


def clocks(of):
    return f"{of['clocks.sm']} of {of['clocks.max.sm']}, memory {of['clocks.mem']}" if of else "–"


def machine(runs):
    rows = []
    for run in runs:
        d, smi = run["device"], run.get("gpu_at_start", {})
        rows.append([run["file"], run["date"], f"{d['name']}, {d['multiprocessors']} multiprocessors, L2 "
                     f"{d['l2_bytes'] / 2**20:.0f} MiB, {d['memory_bytes'] / 2**30:.0f} GiB",
                     f"{smi.get('driver_version', '–')}, CUDA {d['cuda']}",
                     f"{clocks(smi)}; {clocks(run.get('gpu_at_end', {}))}", run["machine"]["cpu"], run["revision"],
                     f"`{run['command']}`"])
    out = table(["file", "date", "GPU", "driver", "clocks at start; at end", "processor", "revision", "command"],
                rows)
    peers = {c: about for run in runs for c, about in run["contestants"].items()}
    return out + "\n\n" + table(["contestant", "description", "compiler or version", "flags"], [
        [c, about["name"], about["compiler"], f"`{about['flags']}`"] for c, about in peers.items()])


def targets(runs):
    of = {(r["case"], r["recipe"]): r for r in results(runs)}
    large = "flat_100000000"
    def at_rate(case, recipe, own="descent", bytes_each=None):
        """The rate of the step relative to that of a copy."""
        r = of.get((case, recipe))
        if not r or own not in timed(r) or not limit(r, "copy"):
            return []
        size = bytes_each * r["elements"] if bytes_each else r["step_bytes"]
        return [(title(case), size / seconds(timed(r)[own]) / limit(r, "copy"))]
    def micro(case, recipe, own):
        r = of.get((case, recipe))
        return [(title(case), 1e6 * seconds(timed(r)[own]))] if r and own in timed(r) else []
    def against_torch(case, recipe):
        r = of.get((case, recipe))
        ratios = [ratio(r, peer) for peer in timed(r) if peer.startswith("torch")] if r else []
        return [(title(case), min(filter(None, ratios)))] if any(ratios) else []
    rows = target("AdamW, float, 28 bytes per parameter: rate relative to a copy", "at least 0.92",
                  at_rate(large, "adamw"), lambda x: x >= 0.92)
    rows += target("the same, relative to PyTorch's fastest", "at least 1", against_torch(large, "adamw"),
                   lambda x: x >= 1)
    rows += target("AdamW, bfloat16 with float master, 28 bytes: relative to a copy", "at least 0.92",
                   at_rate(large, "adamw_bf16"), lambda x: x >= 0.92)
    rows += target("AdamW, all bfloat16, stochastic rounding: relative to a copy", "at least 0.88",
                   at_rate(large, "adamw_bf16_sr"), lambda x: x >= 0.88)
    rows += target("LAMB, at 40 bytes per parameter: relative to a copy", "at least 0.90",
                   at_rate(large, "lamb", bytes_each=40) + at_rate("gpt2", "lamb", bytes_each=40), lambda x: x >= 0.9)
    rows += target("AdamW, half, the whole recipe: rate relative to PyTorch's fastest chain", "at least 2",
                   against_torch("gpt2", "adamw_half_o2"), lambda x: x >= 2)
    rows += target("AdamW, float, clipped norm, many small tensors: device time in µs", "below 20",
                   micro("1000x1024", "adamw_clip", "descent"), lambda x: x < 20)
    rows += target("the same, captured", "below 20", micro("1000x1024", "adamw_clip", "descent_captured"),
                   lambda x: x < 20)
    rows += target("AdamW, float, captured: device time in µs", "below 10",
                   micro("flat_100000", "adamw", "descent_captured"), lambda x: x < 10)
    rows += target("the same with clipped norm", "below 10", micro("flat_100000", "adamw_clip", "descent_captured"),
                   lambda x: x < 10)
    return targets_table(rows)


def count(of, kind):
    return str(of[kind]) if kind in of else "–"


def recipe_table(runs, recipe):
    rows = []
    for result in results(runs):
        ours = timed(result).get("descent")
        for name, of in timed(result).items() if result["recipe"] == recipe else ():
            s = of["seconds"]
            rows.append([title(result["case"]), f"{result['elements']:,}", str(result["sets"]), name,
                         time_of(s["median"]), f"{time_of(s['q1'])} to {time_of(s['q3'])}",
                         time_of(of["host_seconds"]["median"]),
                         count(of, "launches"), count(of, "synchronisations"),
                         f"{result['step_bytes'] / s['median'] * 1e-9:.1f}"] +
                        [shown(percent(result, of, kind)) for kind in ("copy", "triad", "four_three")] +
                        ["" if name == "descent" or not ours else f"{seconds(of) / seconds(ours):.2f}",
                         f"{of['extra_bytes'] / result['elements']:.1f}",
                         shown(of["grown_bytes"] / result["elements"] if result["elements"] >= 10**6 else None, 1)])
    return table(["case", "parameters", "sets", "contestant", "device, median", "quartiles", "host, median", "launches",
                  "waits", "GB/s", "% of copy", "% of triad", "% of 4 reads, 3 writes", "time relative to descent",
                  "bytes owned per parameter", "memory growth per parameter"], rows)


def ceilings_table(runs):
    """The rates of the largest case of each run."""
    rows = []
    for run in runs:
        result = max((r for r in run["results"] if r["ceilings"]), key=lambda r: r["resident_bytes"], default=None)
        for name, of in result["ceilings"].items() if result else ():
            if "seconds" in of:
                rows.append([run["file"], name, f"{of['step_bytes'] / 2**20:.0f} MiB", time_of(seconds(of)),
                             f"{of['step_bytes'] / seconds(of) * 1e-9:.1f}"])
    return table(["file", "kernel", "moved", "median", "GB/s"], rows)


def section(runs, pictures, folder):
    if not runs:
        return nothing
    parts = [f"### {heading}\n\n{text}" for heading, text in (
        ("Targets on a GPU", targets(runs)), ("Which GPU", machine(runs)),
        ("Memory bandwidth", ceilings_table(runs)))]
    if any(run["device"]["name"] == software for run in runs):
        parts.insert(0, f"Times of {software} are meaningless.")
    parts += ["\n".join(f"![{name.removesuffix('.svg')}]({folder}/{name})" for name in pictures)] if pictures else []
    recipes = list(dict.fromkeys(r["recipe"] for r in results(runs)))
    if any(recipe.startswith("rule_") for recipe in recipes):
        parts.append(f"### Each element-wise rule, on a GPU\n\n{rules_table(runs)}")
    for recipe in (r for r in recipes if not r.startswith("rule_")):
        parts.append(f"### {cases.what.get(recipe, recipe)}, on a GPU\n\n{recipe_table(runs, recipe)}")
    return "\n\n".join(parts + [f"### What is missing on a GPU\n\n{missing(runs)}"])
