#!/usr/bin/env python3
"""Tests that the pictures of docs/comparison.md are what the program draws from the recorded runs, that the tables of
that page have the means and standard deviations of these runs, and that the table of docs/learn/which.md has the
figures of its own.

usage: compare.py project-root program
"""
import csv
import os
import statistics
import subprocess
import sys
import tempfile

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

root, program = sys.argv[1:]
pictures = os.path.join(root, "docs/pictures")
runs = os.path.join(pictures, "comparison.csv")
networks = ("softmax", "shallow", "deep")


def check(holds, what):
    if not holds:
        sys.exit(f"does not hold: {what}")


with tempfile.TemporaryDirectory() as folder:
    drawn = subprocess.run([program, "--runs", runs, "--out", folder], capture_output=True, text=True)
    check(drawn.returncode == 0, drawn.stderr)
    for network in networks:
        name = f"comparison_{network}.svg"
        with open(os.path.join(folder, name), "rb") as new, open(os.path.join(pictures, name), "rb") as old:
            check(new.read() == old.read(), f"docs/pictures/{name} is what it draws")
missing = subprocess.run([program, "--runs", "none.csv"], capture_output=True, text=True)
check(missing.returncode == 1 and "none.csv: cannot be read" in missing.stderr, "a file that is not there")

ends = {}
with open(runs, encoding="utf-8") as file:
    for row in csv.DictReader(file):
        of = ends.setdefault((row["network"], row["optimizer"], row["learning_rate"]), {})
        of[row["run"]] = float(row["train_loss"]), float(row["test_accuracy"])  # the last epoch comes last
with open(os.path.join(root, "docs/comparison.md"), encoding="utf-8") as page:
    parts = page.read().split("\n### ")
for (network, optimizer, rate), of in ends.items():
    loss, accuracy = zip(*of.values())
    row = (f"| {optimizer} | {rate} | {statistics.mean(loss):.4f} ± {statistics.stdev(loss):.4f} | "
           f"{statistics.mean(accuracy):.2f} ± {statistics.stdev(accuracy):.2f} |")
    check(any(part.startswith(network + "\n") and row in part for part in parts), f"docs/comparison.md has {row}")

# 42 epochs with three seeds: the table of docs/learn/which.md, and what the page says of every seed
long = {}
with open(os.path.join(pictures, "comparison_42.csv"), encoding="utf-8") as file:
    for row in csv.DictReader(file):
        of_runs = long.setdefault(row["network"], {}).setdefault(row["optimizer"], {})
        of_runs.setdefault(row["run"], []).append([float(row[name]) for name in ("train_loss", "test_loss", "test_accuracy")])
with open(os.path.join(root, "docs/learn/which.md"), encoding="utf-8") as page:
    of_which = page.read()


def after_5(run):
    return run[4][2]


def at_end(run):
    return statistics.mean(accuracy for _, _, accuracy in run[37:])


def lowest(run):
    return min(range(len(run)), key=lambda epoch: run[epoch][1])


def rise(run):
    return run[-1][1] - run[lowest(run)][1]


def span(values, digits):
    return f"{statistics.mean(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


for network, of in long.items():
    check(list(of) == ["momentum", "adagrad", "rmsprop", "adam", "adamw"], f"the columns of {network}")
    runs_of = [list(of_runs.values()) for of_runs in of.values()]
    check(all(len(runs) == 3 and all(len(run) == 42 for run in runs) for runs in runs_of), f"three runs of {network}")
    for what, cells in {
            "after 5": [span([*map(after_5, runs)], 1) for runs in runs_of],
            "38 to 42": [span([*map(at_end, runs)], 1) for runs in runs_of],
            "training loss": [span([run[-1][0] for run in runs], 3) for runs in runs_of],
            "lowest test loss": [", ".join(str(lowest(run) + 1) for run in runs) for runs in runs_of],
            "risen by": [span([*map(rise, runs)], 2) for runs in runs_of],
    }.items():
        line = f"| {what} | {' | '.join(cells)} |"
        check(line in of_which, f"docs/learn/which.md has {line}")
    for seed in ("1", "2", "3"):
        by_name = {name: of_runs[seed] for name, of_runs in of.items()}
        order = sorted(by_name, key=lambda name: -at_end(by_name[name]))
        here = f"{network}, seed {seed}: "
        check(rise(by_name["adagrad"]) < 0.03, here + "adagrad's test loss ends within 0.03 of its lowest")
        for name, run in by_name.items():
            best = max(range(42), key=lambda epoch: run[epoch][2])
            check(name == "adagrad" or best >= lowest(run), here + name + " is most accurate at its lowest loss or later")
        if network == "softmax":
            check(order[0] == "adagrad", here + "adagrad is best")
            check(max(lowest(by_name["adam"]), lowest(by_name["adamw"])) < 7, here + "the loss of adam and adamw is lowest by epoch 7")
        else:
            check(min(by_name, key=lambda name: by_name[name][-1][0]) == "rmsprop", here + "rmsprop fits the training images best")
        if network == "shallow":
            check(set(order[3:]) == {"adam", "adamw"}, here + "adam and adamw are last")
        if network == "deep":
            first = max(by_name, key=lambda name: after_5(by_name[name]))
            check(order[0] != first, here + "another is best than after five epochs")
            check(at_end(by_name[order[0]]) - at_end(by_name[order[-1]]) < 0.9, here + "less than 0.9 % lie between them")
    if network == "deep":
        best = {max(of, key=lambda name: at_end(of[name][seed])) for seed in ("1", "2", "3")}
        check(len(best) == 3, "the deep network: each seed has another best optimizer")
