# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: programs.py sources those-without-a-picture programs...

The command line of the course's programs. Each one has --help, refuses what it does not know before it prints anything,
and has --picture if its source writes one. The quickest one that trains writes its picture and its figures."""
import csv
import pathlib
import re
import subprocess
import sys
import tempfile

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

sources, without_picture, programs = pathlib.Path(sys.argv[1]), sys.argv[2].split(","), sys.argv[3:]
failures = []


def check(holds, what):
    if not holds:
        print("FAILED", what)
        failures.append(what)


def run(program, *arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


def check_refused(program, *arguments, message):
    """The status is 2, and the message all that is printed."""
    name, refused = pathlib.Path(program).name, run(program, *arguments)
    check((refused.returncode, refused.stdout, refused.stderr) ==
          (2, "", f"{name}: {message}\n{name} --help lists the options\n"), f"{name} {arguments}: {refused}")


for program in programs:
    name = pathlib.Path(program).name.removeprefix("learn_")
    said = run(program, "--help")
    check(said.returncode == 0 and said.stdout.startswith(f"usage: learn_{name}"), f"{name} --help")
    sentence = said.stdout.split("\n\n")[1]
    check(re.fullmatch(r"[A-Z][^\n]+\.", sentence) and max(map(len, said.stdout.splitlines())) <= 120,
          f"{name} --help says in one sentence what it does: {sentence}")
    draws = ".write(" in (sources / f"{name}.cpp").read_text(encoding="utf-8")
    check(("--picture" in said.stdout) == draws == (name not in without_picture), f"{name} draws what --help promises")
    unknown = ["--nothing"] + [option for option in ("--picture", "--csv") if option not in said.stdout]
    for option in unknown:
        check_refused(program, option, "x", message=f'unknown option "{option}"')
    if draws:
        check_refused(program, "--pictur", "x", message='unknown option "--pictur": did you mean --picture?')

batch_size = next(program for program in programs if program.endswith("learn_batch_size"))
for wrong, message in {"8,x": 'each batch of --batch must be an integer from 1 to 1438, is "x"',
                       "": 'each batch of --batch must be an integer from 1 to 1438, is ""',
                       "1439": 'each batch of --batch must be an integer from 1 to 1438, is "1439"',
                       "32,8": 'the batches of --batch must increase, are "32,8"'}.items():
    check_refused(batch_size, "--batch", wrong, message=message)

for wrong in "0", "1001", "two":
    check_refused(batch_size, "--seeds", wrong, message=f'--seeds must be an integer from 1 to 1000, is "{wrong}"')

with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    done = run(batch_size, "--seed", "2", "--seeds", "2", "--batch", "256,512", "--csv", folder / "new/a.csv",
               "--picture", folder / "a.svg")
    check(done.returncode == 0 and [line.split()[0] for line in done.stdout.splitlines()] == ["batch", "256", "512"],
          f"batches of 256 and 512: {done}")
    with open(folder / "new/a.csv", newline="", encoding="utf-8") as text:
        rows = list(csv.reader(text))
    check(rows[0] == ["panel", "curve", "x", "y"] and {row[2] for row in rows[1:]} == {"256", "512"} and
          {row[1] for row in rows[1:]} == {curve + of for curve in ("same rate", "square root", "linear")
                                           for of in ("", ", lowest", ", highest")} and
          all(float(row[3]) > 0 for row in rows[1:]), f"the figures are written: {rows}")
    svg = (folder / "a.svg").read_text(encoding="utf-8")
    lines = re.findall(r'<path d="M[\d.]+ [\d.]+L', svg)
    check(len(lines) == 6 and "nan" not in svg and "images seen until then" in svg and ">batch<" in svg,
          f"two panels with three curves are drawn: {len(lines)}")
    points = {(row[0], row[1], row[2]): float(row[3]) for row in rows[1:]}
    check(all(points[p, c + ", lowest", x] <= y <= points[p, c + ", highest", x]
              for (p, c, x), y in points.items() if ", " not in c), f"means are between the extremes: {points}")
    other = run(batch_size, "--seed", "3", "--seeds", "1", "--batch", "256,512")
    check(other.returncode == 0 and other.stdout != done.stdout, "another seed has other figures")
    full = run(batch_size, "--seeds", "1", "--batch", "512", "--csv", folder)
    check(full.returncode == 1 and full.stdout == "" and "cannot be written" in full.stderr,
          f"a folder as file: {full}")

sys.exit(f"{len(failures)} failed" if failures else 0)
