# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: choose.py build-folder hardware|software|none quick|rest|all|NAME...

Chooses what tests/run.sh builds and runs: the tests of the suite quick, all others, all, or the tests whose names
contain a NAME. The second argument is the CUDA device that runs the suite gpu. Without one, quick leaves that suite to
the rest, which compiles it. Writes these files into the build folder, one item per line:

    chosen_targets   the targets to build
    chosen_tests     names of tests for Meson, each followed by the files it needs, separated by tabs
    chosen_gpu       names of tests for the device in software
    done_gpu         with `rest`: tests that quick has already run in order
    not_chosen       a sentence about the other tests
"""
import collections
import json
import pathlib
import subprocess
import sys

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

import nearest

build, device, *words = sys.argv[1:]
folder = pathlib.Path(build)


def introspect(what):
    return json.loads(subprocess.run(["meson", "introspect", build, what], stdout=subprocess.PIPE, check=True).stdout)


def has(test, suite):
    return any(of.endswith(f":{suite}") for of in test["suite"])


def write(name, lines):
    (folder / name).write_text("".join(f"{line}\n" for line in lines))


def is_quick(test):
    return has(test, "quick") and (device != "none" or not has(test, "gpu"))


tests = introspect("--tests")
if words == ["all"]:
    chosen = tests
elif words in (["quick"], ["rest"]):
    chosen = [test for test in tests if is_quick(test) == (words == ["quick"])]
else:
    chosen = [test for test in tests if any(word in test["name"] for word in words)]
    if not chosen:
        sys.exit(nearest.unknown("no test has in its name", " ".join(words), [test["name"] for test in tests]))
in_order = [test for test in tests if words == ["rest"] and has(test, "gpu") and is_quick(test)]

files = {target["id"]: target["filename"] for target in introspect("--targets")}
depends = dict.fromkeys(id for test in chosen for id in test["depends"])
write("chosen_targets", [pathlib.Path(file).relative_to(folder.resolve()) for id in depends for file in files[id]])
to_run_here = [test for test in chosen if device == "software" and has(test, "gpu")]
write("chosen_gpu", [test["name"] for test in to_run_here + (in_order if device == "software" else [])])
write("done_gpu", [test["name"] for test in in_order])
write("chosen_tests", ["\t".join([test["name"], *(file for id in test["depends"] for file in files[id])])
                       for test in chosen if test not in to_run_here])

others = collections.Counter(next(suite.split(":")[1] for suite in test["suite"]) for test in tests
                             if test not in chosen and test not in in_order)
kinds = ", ".join(f"{count} {suite}" for suite, count in others.most_common())
write("not_chosen", [f"{others.total()} other tests: {kinds}"] if others else [])
