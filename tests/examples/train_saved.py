#!/usr/bin/env python3
"""Tests that `train --save` and `--resume` give back a run to the bit: one that was stopped again and again at random
moments, by Ctrl-C, SIGTERM or kill -9, ends with the tensors, the table and the curves of one that was never stopped.
Times differ and are not compared. DESCENT_SEEDS (default: 1) is the number of such runs for each setting.

usage: train_saved.py program
"""
import json
import os
import random
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

program = sys.argv[1]
environment = {**os.environ, "OMP_NUM_THREADS": "1"}
chance = random.Random(5)
small = "--limit 150 --batch 16 --network relu16 --epochs 6".split()  # 60 steps; the last batch of an epoch has 6 images


def check(holds, what):
    if not holds:
        sys.exit(f"does not hold: {what}")


def start(*options, limit=None):
    def prepare():
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if limit is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    return subprocess.Popen([program, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=environment, preexec_fn=prepare)


def run(*options, limit=None, status=0):
    process = start(*options, limit=limit)
    out, error = process.communicate()
    check(process.returncode == status, f"status {status} of {options}, is {process.returncode}: {out}{error}")
    return out if status == 0 else error


def contents(path):
    with open(path, "rb") as file:
        return file.read()


def tensors(path):
    """Everything in a file that is not a time: name to type, shape and bytes; and the metadata."""
    data = contents(path)
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    texts = {k: v for k, v in header.pop("__metadata__").items() if not k.startswith("xxh3")}
    all_tensors = {}
    for name, t in header.items():
        first, last = t["data_offsets"]
        if not name.endswith("seconds"):
            all_tensors[name] = (t["dtype"], t["shape"], data[8 + size + first:8 + size + last])
    return all_tensors, texts


def differ(a, b):
    """Names of what is not the same in two files."""
    pairs = list(zip(tensors(a), tensors(b)))
    return sorted({k for x, y in pairs for k in {*x, *y} if x.get(k) != y.get(k)})


def curves(folder):
    with open(os.path.join(folder, "curves.csv"), encoding="utf-8") as text:
        return [line.rsplit(",", 2)[0] for line in text]


def table(out):
    return [line.split()[:-2] for line in re.findall(r"^ +\d+  .*", out, re.M)]


def stopped_and_resumed(how, options, file, whole):
    """Stops a run until it has ended; returns how often that was after its first save, and the last output."""
    stops = 0
    for attempt in range(1000):
        resume = ["--resume", file] if os.path.exists(file) else []
        process = start(*options, *resume)
        try:
            out, error = process.communicate(timeout=chance.uniform(0, whole * (4 + attempt) / 12))
        except subprocess.TimeoutExpired:
            by = chance.choice(how)
            process.send_signal(by)
            out, error = process.communicate()
            check(process.returncode in (0, 130, -by), f"{options} ends as it must: {process.returncode} {error}")
            if process.returncode == 130:
                check("stopped after step" in error and f"--resume {file}" in error, f"it says how to go on: {error}")
            stops += process.returncode != 0 and os.path.exists(file)
        else:
            check(process.returncode == 0, f"{options} {resume} goes on: {error}")
        if process.returncode == 0:
            return stops, out
    sys.exit(f"{options} makes no progress")


def random_stops(folder):
    asked, killed = (signal.SIGINT, signal.SIGTERM), (signal.SIGKILL,)
    settings = [
        (asked, "--workers 0 --every 1"),
        (killed, "--workers 2 --every 1"),
        (killed, "--workers 0 --optimizer adopt --clip 1 --schedule linear"),
        (asked, "--workers 2 --optimizer sgd --precision bfloat16 --warmup 5 --every 7"),
        (killed, "--workers 2 --precision bfloat16 --every 1"),
    ]
    for number, (how, text) in enumerate(settings):
        where, file = [os.path.join(folder, name + str(number)) for name in ("whole", "whole.safetensors")]
        options = [*small, *text.split()]
        began = time.monotonic()
        out = run(*options, "--out", where, "--save", file)
        whole = time.monotonic() - began
        check(differ(file, file) == [], "a file is itself")
        stops = 0
        for again in range(int(os.environ.get("DESCENT_SEEDS", "1"))):
            there, copy, wanted = f"{where}-{again}", f"{file}-{again}", stops + 4
            while stops < wanted:
                if os.path.exists(copy):
                    os.remove(copy)
                more, out2 = stopped_and_resumed(how, [*options, "--out", there, "--save", copy], copy, whole)
                stops += more
                check(differ(file, copy) == [], f"{text}: the same tensors, not {differ(file, copy)}")
                check(curves(where) == curves(there), f"{text}: the same curves, {curves(where)} {curves(there)}")
                check(table(out) == table(out2) and len(table(out)) == 6, f"{text}: the same table, {out} {out2}")
        check(not [name for name in os.listdir(folder) if name.endswith(".tmp")], "nothing is left beside the file")
        print(f"{text}: stopped {stops} times, by {[by.name for by in how]}")


def ctrl_c(folder):
    """The command that is printed goes on; without --save nothing does."""
    options = "--limit 150 --batch 16 --network relu16 --schedule constant --epochs".split()
    file = os.path.join(folder, "it's a run")
    process = start(*options, "1000000", "--save", file, "--out", os.path.join(folder, "endless"))
    while not re.match(r" +2  ", process.stdout.readline()):
        pass
    process.send_signal(signal.SIGINT)
    out, error = process.communicate()
    check(process.returncode == 130, f"status 130, is {process.returncode}: {error}")
    said = re.fullmatch(r".*: stopped after step (\d+) of 10000000, resume with\n(.*)\n", error)
    check(said, f"it says how to go on: {error}")
    check(not os.path.exists(os.path.join(folder, "endless")), "a run that goes on has written no curves")
    at = int(said[1])
    step = struct.unpack("<q", tensors(file)[0]["run.step"][2])[0]
    check(step == at >= 20, f"the file has that step: {step} {at}")

    epochs = str(at // 10 + 2)
    command = said[2].replace(" 1000000 ", f" {epochs} ") + f" --out '{folder}/ended'"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, env=environment)
    check(done.returncode == 0, f"the command goes on: {command} {done.stderr}")
    whole = os.path.join(folder, "whole-c")
    run(*options, epochs, "--save", whole, "--out", os.path.join(folder, "never"))
    check(differ(file, whole) == [], f"to the same bits, not {differ(file, whole)}")
    check(curves(os.path.join(folder, "ended")) == curves(os.path.join(folder, "never")), "and the same curves")

    process = start(*options, "1000000", "--out", os.path.join(folder, "endless"))
    while not re.match(r" +1  ", process.stdout.readline()):
        pass
    process.send_signal(signal.SIGTERM)
    out, error = process.communicate()
    check(process.returncode == 130 and "not saved without --save" in error, f"{process.returncode} {error}")


def longer_runs(folder):
    """A finished run is resumed at once, and a longer one goes on in the middle of an epoch."""
    constant = "--limit 150 --batch 16 --network relu16 --schedule constant".split()

    def saved(name, *options, status=0):
        path = os.path.join(folder, name)
        out = run(*constant, "--save", path, "--out", path + ".out", *options, status=status)
        return path, table(out)

    first, table1 = saved("13", "--steps", "13")
    again, table2 = saved("13again", "--steps", "13", "--resume", first)
    check(differ(first, again) == [] and table1 == table2, f"a finished run ends again: {table1} {table2}")
    check(curves(first + ".out") == curves(again + ".out"), "with the same curves")
    longer, table3 = saved("34", "--steps", "34", "--resume", first)
    whole, table4 = saved("34whole", "--steps", "34")
    check(differ(longer, whole) == [] and table3 == table4, f"a longer run: {differ(longer, whole)} {table3} {table4}")
    infinite = ["--optimizer", "sgd", "--lr", "1e30"]  # from the third step on, none is applied
    short, _ = saved("nan", *infinite, "--steps", "5", status=1)
    longer, _ = saved("nanlonger", *infinite, "--steps", "12", "--resume", short, status=1)
    whole, _ = saved("nanwhole", *infinite, "--steps", "12", status=1)
    check(differ(longer, whole) == [], f"where steps are skipped: {differ(longer, whole)}")
    check(curves(longer + ".out") == curves(whole + ".out"), "also in the curves")
    less = run(*constant, "--steps", "12", "--resume", first, "--out", folder, status=2)
    check("13 was saved after 13 steps, more than the 12 of --epochs and --steps" in less, less)


def refusals(folder):
    file = os.path.join(folder, "run")
    out = ["--out", os.path.join(folder, "refused")]
    run(*small, *out, "--save", file)
    before = contents(file)
    sentences = {
        "--batch 8 --seed 2": "run was saved with --batch 16, not 8; --seed 1, not 2; a schedule of 60 steps, not 114 ",
        "--lr 0.1": "run was saved with adamw:lr 0.003, not 0.1\n",
        "--optimizer lion": "run was saved with --optimizer adamw, not lion\n",
        "--epochs 7": "run was saved with a schedule of 60 steps, not 70 (--epochs, --steps)\n",
        "--limit 151": "run was saved with other images (--data, --limit)\n",
        "--network relu16,relu16": "run was saved with --network relu16, not relu16,relu16\n",
        "--precision half": "run was saved with --precision float, not half\n",
    }
    for options, sentence in sentences.items():
        error = run(*small, *options.split(), *out, "--resume", file, "--save", file, status=2)
        check(sentence in error, f"{options}: {error}")
    missing = run(*small, *out, "--resume", file + "-", status=1)
    check("run-: cannot be opened: No such file or directory" in missing, missing)
    printed = start(*small, *out, "--resume", file + "-").communicate()[0]
    check(printed == "", f"a run that cannot be resumed prints no table: {printed}")
    for name, damaged in ("short", before[:-1]), ("flipped", before[:-9] + bytes([before[-9] ^ 1]) + before[-8:]):
        with open(file + name, "wb") as other:
            other.write(damaged)
        check(f"run{name}: " in run(*small, *out, "--resume", file + name, status=1), f"{name} is refused")

    check("is no regular file" in run(*small, *out, "--save", "/dev/null", status=1), "a device is refused at once")
    check("is no regular file" in run(*small, *out, "--save", folder, status=1), "and a folder")
    full = run(*small, *out, "--save", file, "--steps", "30", limit=len(before) // 2, status=1)
    check(f"{file}: cannot be written: File too large" in full, f"where the disk is full: {full}")
    check(contents(file) == before, "the old file stays")
    check(not [name for name in os.listdir(folder) if name.endswith(".tmp")], "and nothing is left beside it")


with tempfile.TemporaryDirectory() as temporary:
    for test in random_stops, ctrl_c, longer_runs, refusals:
        began_test = time.monotonic()
        os.mkdir(os.path.join(temporary, test.__name__))
        test(os.path.join(temporary, test.__name__))
        print(f"{test.__name__}: {time.monotonic() - began_test:.1f} s")
