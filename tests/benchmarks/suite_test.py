"""The benchmarks as a test: small cases run, their results parse, the report says them, and a contestant whose numbers
are wrong is refused. Nothing here depends on a time.    usage: suite_test.py descent loop oracle
"""

import json
import os
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
descent, loop, oracle = map(os.path.abspath, sys.argv[1:4])
faults = ("off", "late", "short", "silent", "not_a_number", "failed", "dead", "dead_later")
failures = []


def check(holds, what):
    if not holds:
        failures.append(what)


def run(script, *arguments):
    return subprocess.run([sys.executable, os.path.join(here, script), *arguments], capture_output=True, text=True,
                          check=False)


def drive(folder, contestants, *more):
    out = os.path.join(folder, f"results_{len(contestants)}.json")
    ended = run("drive.py", "--set", "quick", "--oracle", oracle, "--work", folder, "--out", out, "--least", "3",
                "--most", "3", "--seconds", "0.01", "--note", "a note",
                *(word for text in contestants for word in ("--contestant", text)), *more)
    if not os.path.exists(out):
        sys.exit(f"drive.py wrote nothing:\n{ended.stdout}{ended.stderr}")
    with open(out, encoding="utf-8") as text:
        return ended.returncode, json.load(text), out


def right(folder):
    code, run_, out = drive(folder, (f"descent={descent}", f"loop={loop}"))
    check(code == 0, f"drive.py ended with {code}")
    check(len(run_["results"]) == 4 and not run_["skipped"], "quick has four results and skips nothing")
    for result in run_["results"]:
        check(result["checked"], "the oracle has every recipe of quick")
        check(result["step_bytes"] == result["elements"] * {"adamw": 28, "adamw_bf16_clip": 30}[result["recipe"]],
              "bytes of a step are those of the recipe")
        check(set(result["contestants"]) == {"descent", "loop"}, "both contestants take part")
        for name, of in result["contestants"].items():
            check("refused" not in of, f"{name} is refused: {of.get('refused')}")
            check(len(of.get("seconds", {}).get("samples", [])) == 3, f"{name} has three samples")
            check(of["extra_bytes"] >= 8 * result["elements"], f"{name} owns its state")
        check({"copy", "triad", "scale"} <= set(result["ceilings"]), "copy, triad and scale are measured in each case")
    for member in ("date", "revision", "machine", "threads", "contestants"):
        check(run_.get(member), f"the results say {member}")
    return out


def reported(folder, results):
    page = os.path.join(folder, "page.md")
    empty = ("# A page\n\n<!-- benchmarks: adamw -->\n<!-- end -->\n\nText stays.\n"
             "<!-- benchmarks: lion -->\nold\n<!-- end -->\n")
    with open(page, "w", encoding="utf-8") as out:
        out.write(empty)
    ended = run("report.py", results, "--page", page, "--pictures", folder)
    check(ended.returncode == 0, f"report.py: {ended.stderr}")
    with open(page, encoding="utf-8") as text:
        now = text.read()
    check("| one tensor of 40,003 | 40,003 | descent |" in now, "the table has a row")
    check("Text stays." in now and "\nold\n" in now, "what is not in the results stays")
    picture = os.path.join(folder, "benchmarks_adamw.svg")
    check(os.path.exists(picture), "the picture is drawn")
    same = ("report.py", results, "--page", page, "--pictures", folder, "--check")
    check(run(*same).returncode == 0, "the page is what --check expects")
    with open(page, "w", encoding="utf-8") as out:
        out.write(now.replace("| descent |", "| descents |", 1))
    check(run(*same).returncode == 1, "--check sees a changed page")
    ended = run("report.py", results, "--out", folder)
    with open(os.path.join(folder, "report.md"), encoding="utf-8") as text:
        check("a note" in text.read() and ended.returncode == 0, "the report says the notes")


def broken(folder):
    """All at once: the faulty ones are refused, the others go on."""
    faulty = [f"{fault}={sys.executable} {here}/broken.py {fault} {loop}" for fault in ("none", *faults)]
    code, run_, _ = drive(folder, (f"descent={descent}", *faulty), "--cases", "quick_many", "--recipes", "adamw")
    check(code == 1, f"drive.py with refused contestants ended with {code}")
    of = run_["results"][0]["contestants"]
    for fault in faults:
        check("refused" in of[fault] and "seconds" not in of[fault], f"'{fault}' is refused")
    check("seconds" in of["none"] and "seconds" in of["descent"], "those without a fault are timed")


def too_large(folder):
    """A case that does not fit the memory is skipped, and how much it needs is said."""
    code, run_, _ = drive(folder, (f"descent={descent}",), "--memory", "0.01", "--cases", "quick_flat", "--recipes",
                          "adamw")
    check(code == 0 and not run_["results"] and len(run_["skipped"]) == 1, "a case without room is skipped")
    check("GiB" in run_["skipped"][0]["why"], "and what it needs is said")


with tempfile.TemporaryDirectory() as where:
    reported(where, right(where))
    broken(where)
    too_large(where)
print(*failures, sep="\n")
print("failed" if failures else "all as it should be")
sys.exit(bool(failures))
