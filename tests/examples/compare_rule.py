#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""Tests the program that compares a rule of one's own with others: its table, its verdicts, its picture, and what it
says to a wrong command line.

usage: compare_rule.py program
"""
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

program = sys.argv[1]


def check(holds, what):
    if not holds:
        sys.exit(f"does not hold: {what}")


def run(*arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


def refused(sentence, *arguments):
    got = run(*arguments)
    check(got.returncode == 2 and got.stderr.splitlines()[0] == f"compare_rule: {sentence}", f"{arguments}: {got.stderr}")


said = run("--help")
check(said.returncode == 0 and said.stdout.startswith("usage: compare_rule"), "--help says how to call it")
refused('there is no rule "adamv": did you mean adamw?', "--against", "sgd,adamv")
refused('unknown option "--seed": did you mean --seeds?', "--seed", "3")
refused('each of --rates must be above 0, is "-1"', "--rates", "0.1,-1")

with tempfile.TemporaryDirectory() as folder:
    picture = os.path.join(folder, "compare.svg")
    small = ["--against", "sgd,adamw", "--seeds", "2", "--steps", "40", "--picture", picture]
    done = run(*small, "--rates", "0.01,0.001,0.1")
    check(done.returncode == 0, done.stderr)
    lines = done.stdout.splitlines()
    check(lines[1].split() == ["rate", "0.001", "0.01", "0.1"], "the rates, in order")
    rows = [re.fullmatch(r"(\w+) +([\d.]+) +([\d.]+) +([\d.]+)   best at ([\d.]+): ([\d.]+) \(([\d.]+) to ([\d.]+)\)(.*)", line)
            for line in lines[2:5]]
    check(all(rows) and [row[1] for row in rows] == ["my_rule", "sgd", "adamw"], f"a row for each rule: {done.stdout}")
    for row in rows:
        accuracies = [float(row[i]) for i in (2, 3, 4)]
        rate = ["0.001", "0.01", "0.1"].index(row[5])
        check(float(row[6]) == accuracies[rate] == max(accuracies) > 30, f"the best rate is that of the best mean: {row[0]}")
        check(float(row[7]) <= float(row[6]) <= float(row[8]), f"the range has the mean: {row[0]}")
        end = [", the smallest rate given: try smaller ones", "", ", the largest rate given: try larger ones"][rate]
        check(row[9] == end, f"a best rate at an end is said: {row[0]}: {row[9]}")
    for row, verdict in zip(rows[1:], lines[6:]):
        said = re.fullmatch(r"my_rule - (\w+): ([+-][\d.]+) points on average, better with (\d) seeds and worse with (\d)", verdict)
        check(said and said[1] == row[1] and int(said[3]) + int(said[4]) <= 2, f"a verdict for each: {verdict}")
        check(abs(float(said[2]) - (float(rows[0][6]) - float(row[6]))) < 0.11, f"of the difference of means: {verdict}")
    texts = {t.text for t in xml.parse(picture).getroot().iter("{http://www.w3.org/2000/svg}text")}
    check({"my_rule", "sgd", "adamw"} <= texts, f"the picture names the rules: {texts}")
    check(run(*small, "--rates", "0.001,0.01,0.1").stdout == done.stdout, "the same command gives the same result")
