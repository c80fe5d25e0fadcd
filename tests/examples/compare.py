#!/usr/bin/env python3
"""Tests that the pictures of docs/comparison.md are what the program draws from the recorded runs, and that the tables
of that page have the means and standard deviations of these runs.

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
