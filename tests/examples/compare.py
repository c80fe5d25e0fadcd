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

long = {}
with open(os.path.join(pictures, "comparison_42.csv"), encoding="utf-8") as file:
    for row in csv.DictReader(file):
        long.setdefault(row["network"], {}).setdefault(row["optimizer"], []).append(row)
with open(os.path.join(root, "docs/learn/which.md"), encoding="utf-8") as page:
    of_which = page.read()
for network, of in long.items():
    check(list(of) == ["momentum", "adagrad", "rmsprop", "adam", "adamw"], f"the columns of {network}")
    accuracy = {name: [float(row["test_accuracy"]) for row in rows] for name, rows in of.items()}
    for what, cells in {
            "after 5": [f"{x[4]:.2f}" for x in accuracy.values()],
            "38 to 42": [f"{statistics.mean(x[37:]):.2f}" for x in accuracy.values()],
            "training loss": [f"{float(rows[-1]['train_loss']):.3f}" for rows in of.values()],
            "lowest test loss": [min(rows, key=lambda row: float(row["test_loss"]))["epoch"] for rows in of.values()],
    }.items():
        line = f"| {what} | {' | '.join(cells)} |"
        check(line in of_which, f"docs/learn/which.md has {line}")
