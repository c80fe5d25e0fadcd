#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""Results as docs/benchmarks keeps them: medians and quartiles, without the samples that they come from.

usage: compact.py RESULT.json... EXPERIMENTS.jsonl...

Rewrites results of drive.py and loader.py, one case a line; writes EXPERIMENTS.csv beside those of experiments.cu, in
which lines that begin with # have the device and the checks.
"""

import csv
import json
import pathlib
import sys

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()


def without_samples(of):
    if isinstance(of, dict):
        return {key: without_samples(value) for key, value in of.items() if key != "samples"}
    return [without_samples(value) for value in of] if isinstance(of, list) else of


def compact(run):
    def entry(key, value):
        if key != "results":
            return f"{json.dumps(key)}: {json.dumps(value)}"
        return '"results": [\n' + ",\n".join(json.dumps(result, separators=(",", ":")) for result in value) + "\n]"
    return "{\n" + ",\n".join(entry(*pair) for pair in without_samples(run).items()) + "\n}\n"


def experiments(lines, out):
    rows, checks = [], []
    for line in map(json.loads, lines):
        if "experiment" in line:
            rows.append(line)
        elif "check" in line:
            checks.append(line)
        elif "device" in line:
            out.write(f"# {json.dumps(line)}\n")
    if checks:
        out.write(f"# {sum(line['holds'] for line in checks)} of {len(checks)} checks hold\n")
    columns = ["experiment", "case", "graphs", "variant", "parameters", "bytes_per_parameter", "us"]
    if "engine" in rows[0]:  # several engines are compared
        columns.insert(0, "engine")
    table = csv.writer(out, lineterminator="\n")
    table.writerow(columns + ["q1", "q3"])
    table.writerows([row[column] for column in columns] + row["quartiles"] for row in rows)


def main():
    for path in map(pathlib.Path, sys.argv[1:]):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".jsonl":
            with open(path.with_suffix(".csv"), "w", encoding="utf-8") as out:
                experiments(text.splitlines(), out)
        else:
            path.write_text(compact(json.loads(text)), encoding="utf-8")


if __name__ == "__main__":
    main()
