#!/usr/bin/env python3
"""Tables and pictures from the results of drive.py: every number comes from the named files.

usage: report.py RESULTS... --out DIR               DIR/report.md and pictures
       report.py RESULTS... --page PAGE... --pictures DIR [--check]

RESULTS are files, or folders with files *.json.

A page contains parts of the report between <!-- benchmarks: PART --> and <!-- end -->. On the host PART is answers,
machine, targets, adamw, recipes, growth, rules or missing; on GPUs gpu_answers, or gpu for all measurements; data has
those of loader.py. --check changes nothing, and fails if a page or a picture is out of date.
"""

import argparse
import glob
import os
import re
import sys

import cases
import report_gpu
import report_loader
import svg
from tables import (answers_table, by_size, contestants_table, folded, limit, listed, load, medians_table, missing,
                    percent, quartiles, rate, ratio, results, rules_table, seconds, shown, table, target, targets_table,
                    time_of, timed, title)


def machine(runs):
    rows, said = [], []
    for run in runs:
        m = run["machine"]
        caches = ", ".join(f"{k} {v}" for k, v in m["caches"].items())
        said.append(f"{m['cpu']}, {m['cores']} cores, {caches}, {m['memory_bytes'] / 2**30:.0f} GiB, {m['system']}; "
                    f"{run['threads']} threads")
        rows.append([run["file"], run["date"][:10], f"{m['load_at_start']:.1f}", run["revision"]])
    files = table(["file", "date", "initial load", "revision"], rows)
    return "\n\n".join([listed(said), files, contestants_table(runs)])


def samples_table(runs, recipe):
    """Everything that was measured, case by case."""
    parts = []
    for case, result in by_size(runs, recipe):
        ours, rows = result["contestants"].get("descent", {}), []
        for name, of in timed(result).items():
            s = of["seconds"]
            times = "" if name == "descent" or "seconds" not in ours else f"{seconds(of) / seconds(ours):.2f}"
            grown = shown(of["grown_bytes"] / result["elements"] if result["elements"] >= 10**6 else None, 1)
            rows.append([name, time_of(s["median"]), quartiles(s),
                         rate(result, s["median"]), shown(percent(result, of, "copy")),
                         shown(percent(result, of, "triad")), times,
                         f"{of['extra_bytes'] / result['elements']:.1f}", grown])
        parts.append(f"**{case}**, {result['elements']:,} parameters\n\n" + table(
            ["contestant", "median", "quartiles", "GB/s", "% of copy", "% of triad", "time / descent", "bytes owned",
             "growth"], rows))
    return "\n\n".join(parts)


def is_growth(recipe):
    return recipe.startswith(("groups_", "policies_"))


def recipes_part(runs, recipes):
    """A table of medians, and below it, folded, all figures of each recipe."""
    rows = by_size(runs, recipes[0])
    if len(recipes) > 1:
        rows = [(f"{cases.what.get(recipe, recipe)}: {case}", r) for recipe in recipes
                for case, r in by_size(runs, recipe)]
    return "\n\n".join([medians_table("case" if len(recipes) == 1 else "recipe", rows),
                        *(folded(f"All figures: {cases.what.get(recipe, recipe)}", samples_table(runs, recipe))
                          for recipe in recipes)])


def targets(runs):
    """Each target with the measured values and whether it is met."""
    rows = []
    def row(*of_target):
        rows.extend(target(*of_target))
    of = [r for r in results(runs) if r["recipe"] == "adamw" and r["ceilings"]]
    big = [r for r in of if r["case"] in ("flat_10000000", "flat_100000000")]
    def ratios(chosen, peer):
        return [(title(r["case"]), ratio(r, peer)) for r in chosen if ratio(r, peer)]
    row("AdamW, float, one large tensor: rate relative to the loop", "at least 0.95", ratios(big, "loop"),
        lambda x: x >= 0.95)
    row("the same, relative to fused PyTorch", "at least 1.2", ratios(big, "torch_fused"), lambda x: x >= 1.2)
    row("AdamW, float, 1000 tensors of 1024: rate relative to fused PyTorch", "at least 3",
        ratios([r for r in of if r["case"] == "1000x1024"], "torch_fused"), lambda x: x >= 3)
    slow = [(r["recipe"][5:], percent(r, c, "copy") / 100) for r in results(runs) for c in timed(r).values()
            if r["recipe"].startswith("rule_")]
    if slow:
        below = [f"{name}: {x:.2f}" for name, x in sorted(slow, key=lambda pair: pair[1]) if x < 0.9]
        rows.append(["each element-wise rule: rate relative to a copy", "at least 0.9",
                     f"{len(slow) - len(below)} of {len(slow)}; below: " + (", ".join(below) or "none"),
                     "no" if below else "yes"])
    return targets_table(rows)


def answers(runs):
    return answers_table(runs, [
        ("GPT-2 124M, float", "gpt2", "adamw"), ("1000 tensors of 1024, float", "1000x1024", "adamw"),
        ("GPT-2 124M, complete fp16 recipe", "gpt2", "adamw_half_o2"),
        ("GPT-2 124M, bfloat16, stochastic rounding", "gpt2", "adamw_bf16_sr")],
        ["descent", "loop", "torch_fused", "torch_foreach"])


def parts(runs):
    if not runs:
        return {}
    out = {"answers": answers(runs), "machine": machine(runs), "targets": targets(runs)}
    recipes = list(dict.fromkeys(r["recipe"] for r in results(runs) if timed(r)))
    others = [r for r in recipes if r != "adamw" and not r.startswith("rule_") and not is_growth(r)]
    if "adamw" in recipes:
        out["adamw"] = recipes_part(runs, ["adamw"])
    if others:
        out["recipes"] = recipes_part(runs, others)
    if any(map(is_growth, recipes)):
        out["growth"] = medians_table("case", [
            (f"{title(r['case'])}, {r['recipe'].split('_')[0]}: {number_in('recipe', r)}", r) for r in results(runs)
            if is_growth(r["recipe"]) and timed(r)])
    if any(r.startswith("rule_") for r in recipes):
        out["rules"] = rules_table(runs)
    return {name: text for name, text in out.items() if text} | {"missing": missing(runs)}


def number_in(name, result):
    return int(re.search(r"(\d+)$", result[name]).group(1))


# what ours_growth.cpp adds, one after the other
policies = ["AdamW", "learning_rate", "clip_norm", "static_loss_scale", "ema", "zero_grad"]


def growth(runs):
    """Pictures of cost against numbers: file name, title, labels, curves and the axes that are linear."""
    chosen = results(runs)
    def curve(fits, x, y):
        of = {}
        for r in filter(fits, chosen):
            for name, c in timed(r).items():
                of.setdefault(name, {})[x(r)] = y(r, c)
        return {name: sorted(points.items()) for name, points in of.items() if len(points) > 1}
    def micro(_, c):
        return seconds(c) * 1e6
    def flat(r):
        return r["recipe"] == "adamw" and r["case"].startswith("flat_")
    def elements(r):
        return r["elements"]
    yield ("growth_parameters", "AdamW in float, one tensor", "parameters", "µs a step", curve(flat, elements, micro))
    yield ("growth_tensors", "AdamW in float, 1,024,000 parameters in more and more tensors", "tensors", "µs a step",
           curve(lambda r: r["case"].startswith("split_"), lambda r: r["tensors"], micro))
    yield ("growth_groups", "AdamW in float, 1000 tensors of 1024 in more and more groups", "groups", "µs a step",
           curve(lambda r: r["recipe"].startswith("groups_"), lambda r: number_in("recipe", r), micro))
    yield ("growth_memory", "AdamW in float: memory beside values and gradients", "parameters", "bytes a parameter",
           curve(flat, elements, lambda r, c: c["extra_bytes"] / r["elements"]), "y")


def pictures(runs):
    """File names and pictures."""
    names = list(dict.fromkeys(name for r in results(runs) for name in timed(r)))
    def groups(fits):
        return [(f"{title(r['case'])}" if r["recipe"] == "adamw" else r["recipe"].removeprefix("rule_"),
                 {name: percent(r, of, "copy") for name, of in timed(r).items()})
                for r in results(runs) if fits(r) and limit(r, "copy") and timed(r) and r["step_bytes"]]
    what_fits = {"benchmarks_adamw": ("AdamW in float: bytes that the rule needs, at the rate of a copy",
                                 lambda r: r["recipe"] == "adamw" and not r["case"].startswith("split_")),
            "benchmarks_recipes": ("Recipes on GPT-2 124M: bytes that the rule needs, at the rate of a copy",
                                   lambda r: r["case"] == "gpt2" and r["recipe"] != "adamw"),
            "benchmarks_rules": ("Each element-wise rule, 10⁸ parameters in float, at the rate of a copy",
                                 lambda r: r["recipe"].startswith("rule_"))}
    for name, (what, fits) in what_fits.items():
        if groups(fits):
            here = [n for n in names if any(n in values for _, values in groups(fits))]
            yield name + ".svg", svg.dots(what, here, groups(fits), says="100 is a copy in the same run")
    added = [(number_in("recipe", r), {name: seconds(of) * 1e6 for name, of in timed(r).items()})
             for r in results(runs) if r["recipe"].startswith("policies_")]
    if added:
        of_step = [("+ " if k else "") + policies[k] for k, _ in sorted(added, key=lambda one: one[0])]
        here = [n for n in names if any(n in values for _, values in added)]
        yield "growth_policies.svg", svg.dots(
            "AdamW in float, 10⁷ parameters: each line has one policy more", here,
            list(zip(of_step, [values for _, values in sorted(added, key=lambda one: one[0])])), None, "µs a step")
    for name, what, x, y, curves, *linear in growth(runs):
        if curves:
            yield name + ".svg", svg.curves(what, x, y, curves, *linear)


def filled(page, of):
    """The page with its parts replaced; a part that is not in the results stays as it is."""
    def part(match):
        name = match.group(2)
        return f"{match.group(1)}\n{of[name]}\n<!-- end -->" if name in of else match.group(0)
    return re.sub(r"(<!-- benchmarks: (\S+) -->)\n.*?<!-- end -->", part, page, flags=re.S)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("results", nargs="+", help="files, or folders with files *.json")
    parser.add_argument("--out", help="folder for report.md and pictures")
    parser.add_argument("--page", nargs="+", default=[], help="pages whose parts are written")
    parser.add_argument("--pictures")
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    runs = load([name for path in given.results for name in
                 (sorted(glob.glob(os.path.join(path, "*.json"))) if os.path.isdir(path) else [path])])
    of_loader, runs = [r for r in runs if r["set"] == "loader"], [r for r in runs if r["set"] != "loader"]
    on_gpu, on_host = [r for r in runs if "device" in r], [r for r in runs if "device" not in r]
    drawn = dict(pictures(on_host)) | {"gpu_" + name: picture for name, picture in pictures(on_gpu)}
    folder = given.pictures or given.out
    shown_from = os.path.dirname(given.page[0]) if given.page else given.out
    where = os.path.relpath(folder, shown_from or ".") if folder else ""
    of_gpu = [name for name in drawn if name.startswith("gpu_")]
    of = parts(on_host)
    if on_gpu:
        of |= {"gpu_answers": report_gpu.answers(on_gpu), "gpu": report_gpu.section(on_gpu, of_gpu, where)}
    if of_loader:
        of["data"] = report_loader.section(of_loader)
    files = {}
    if given.out:
        names = {"answers": "Answers", "machine": "Machine", "targets": "Targets", "missing": "What is missing",
                 "adamw": "AdamW, float", "recipes": "Other recipes", "growth": "Growth", "rules": "Rules",
                 "gpu_answers": "Answers on a GPU", "gpu": "On a GPU", "data": "Data"}
        files[os.path.join(given.out, "report.md")] = "# Benchmarks\n\n" + "\n\n".join(
            f"## {names[part]}\n\n{text}" for part, text in of.items() if text) + "\n"
    for page in given.page:
        with open(page, encoding="utf-8") as text:
            files[page] = filled(text.read(), of)
    if folder:
        files |= {os.path.join(folder, name): picture for name, picture in drawn.items()}
    if given.check:
        def now(name):
            with open(name, encoding="utf-8") as text:
                return text.read()
        wrong = [name for name, text in files.items() if not os.path.exists(name) or now(name) != text]
        print(*(f"{name} is not what the results say" for name in wrong), sep="\n")
        return bool(wrong)
    for folder in filter(None, (given.out, given.pictures)):
        os.makedirs(folder, exist_ok=True)
    for name, text in files.items():
        with open(name, "w", encoding="utf-8") as out:
            out.write(text)
    print(of["targets"] if on_host else report_gpu.targets(on_gpu) if on_gpu else of["data"])
    print("Written:", *files)
    return 0


if __name__ == "__main__":
    sys.exit(main())
