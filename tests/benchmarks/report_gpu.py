"""The part of the report with the measurements on GPUs."""

import cases
from tables import (answers_table, by_size, contestants_table, count, folded, limit, listed, medians_table, missing,
                    percent, quartiles, rate, ratio, results, rules_table, seconds, shown, table, target, targets_table,
                    time_of, timed, title)

software = "a device in software"


def clocks(of):
    return f"{of['clocks.sm']} of {of['clocks.max.sm']}, memory {of['clocks.mem']}" if of else "–"


def machine(runs):
    rows, said = [], []
    for run in runs:
        d, smi = run["device"], run.get("gpu_at_start", {})
        said.append(f"{d['name']}, {d['multiprocessors']} multiprocessors, L2 {d['l2_bytes'] / 2**20:.0f} MiB, "
                    f"{d['memory_bytes'] / 2**30:.0f} GiB, driver {smi.get('driver_version', '–')}, CUDA {d['cuda']}; "
                    f"processor {run['machine']['cpu']}")
        rows.append([run["file"], run["date"][:16].replace("T", " "), clocks(smi), clocks(run.get("gpu_at_end", {})),
                     run["revision"]])
    files = table(["file", "time, UTC", "clock at the start", "at the end", "revision"], rows)
    return "\n\n".join([listed(said), files, listed(f"`{run['command']}`" for run in runs), contestants_table(runs)])


def answers(runs):
    return answers_table(runs, [
        ("GPT-2 124M, float", "gpt2", "adamw"), ("GPT-2 124M, complete fp16 recipe", "gpt2", "adamw_half_o2"),
        ("Llama-2 7B, bfloat16, stochastic rounding", "llama2_7b", "adamw_bf16_sr"),
        ("1000 tensors of 1024, clipped norm", "1000x1024", "adamw_clip")],
        ["descent", "torch_fused", "torch_captured"], launches=["descent", "torch_fused"])


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


def samples_table(runs, recipe):
    """Everything that was measured, case by case."""
    parts = []
    for case, result in by_size(runs, recipe):
        ours, rows = timed(result).get("descent"), []
        for name, of in timed(result).items():
            s = of["seconds"]
            grown = shown(of["grown_bytes"] / result["elements"] if result["elements"] >= 10**6 else None, 1)
            rows.append([name, time_of(s["median"]), quartiles(s),
                         time_of(of["host_seconds"]["median"]),
                         f"{count(of, 'launches')}; {count(of, 'synchronisations')}",
                         rate(result, s["median"]),
                         " ".join(shown(percent(result, of, kind)) for kind in ("copy", "triad", "four_three")),
                         "" if name == "descent" or not ours else f"{seconds(of) / seconds(ours):.2f}",
                         f"{of['extra_bytes'] / result['elements']:.1f}; {grown}"])
        sets = f"{result['sets']} set" + "s" * (result["sets"] != 1)
        parts.append(f"**{case}**, {result['elements']:,} parameters, {sets}\n\n" + table(
            ["contestant", "device", "quartiles", "host", "launches; waits", "GB/s", "% of copy, triad, 4:3",
             "time / descent", "bytes owned; growth"], rows))
    return "\n\n".join(parts)


def ceilings_table(runs):
    """The rates of the largest case of each run, from the lowest to the highest."""
    rates, moved = {}, {}
    for run in runs:
        result = max((r for r in run["results"] if r["ceilings"]), key=lambda r: r["resident_bytes"], default=None)
        for name, of in result["ceilings"].items() if result else ():
            if "seconds" in of:
                rates.setdefault(name, []).append(of["step_bytes"] / seconds(of) * 1e-9)
                moved[name] = f"{of['step_bytes'] / 2**20:.0f} MiB"
    return table(["kernel", "moved", "runs", "GB/s"],
                 [[name, moved[name], str(len(of)), f"{min(of):.0f} to {max(of):.0f}"] for name, of in rates.items()])


def section(runs, pictures, folder):
    parts = [f"### {heading}\n\n{text}" for heading, text in (
        ("Targets on a GPU", targets(runs)), ("Memory bandwidth", ceilings_table(runs)))]
    if any(run["device"]["name"] == software for run in runs):
        parts.insert(0, f"Times of {software} are meaningless.")
    recipes = list(dict.fromkeys(r["recipe"] for r in results(runs) if timed(r)))
    def shows(some):
        return ["\n".join(f"![{name.removesuffix('.svg').replace('_', ' ')}]({folder}/{name})"
                          for name in pictures if some in name)] if any(some in name for name in pictures) else []
    def all_figures(recipe):
        return folded(f"All figures: {cases.what.get(recipe, recipe)}", samples_table(runs, recipe))
    adamw = by_size(runs, "adamw")
    others = [(f"{cases.what.get(recipe, recipe)}: {case}", r) for recipe in recipes
              if recipe != "adamw" and not recipe.startswith("rule_") for case, r in by_size(runs, recipe)]
    if adamw:
        parts += ["### AdamW in float, on a GPU", *shows("benchmarks_adamw"), medians_table("case", adamw, True),
                  all_figures("adamw")]
    if others:
        parts += ["### Other recipes, on a GPU", *shows("benchmarks_recipes"), medians_table("recipe", others, True)]
        parts += [all_figures(recipe) for recipe in recipes if recipe != "adamw" and not recipe.startswith("rule_")]
    if any(recipe.startswith("rule_") for recipe in recipes):
        parts += ["### Each element-wise rule, on a GPU", *shows("benchmarks_rules"), rules_table(runs)]
    parts += ["### Growth on a GPU", *shows("growth")] if shows("growth") else []
    return "\n\n".join(parts + ["### Which GPU", machine(runs), "### What is missing on a GPU",
                               folded("What was not measured, and why", missing(runs))])
