"""The benchmarks as a test: small cases run, their results parse, the report contains them, and a contestant with wrong
numbers is refused. Nothing here depends on times.    usage: suite_test.py descent loop oracle loader
"""

import json
import os
import subprocess
import sys
import tempfile

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

import peer

here = os.path.dirname(os.path.abspath(__file__))
descent, loop, oracle, loader = map(os.path.abspath, sys.argv[1:5])
faults = ("off", "late", "short", "silent", "not_a_number", "failed", "garbled", "dead", "dead_later")
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
             "<!-- benchmarks: lion -->\nold\n<!-- end -->\n<!-- benchmarks: gpu -->\n<!-- end -->\n")
    with open(page, "w", encoding="utf-8") as out:
        out.write(empty)
    ended = run("report.py", results, "--page", page, "--pictures", folder)
    check(ended.returncode == 0, f"report.py: {ended.stderr}")
    with open(page, encoding="utf-8") as text:
        now = text.read()
    check("| case | descent | loop | % of copy |" in now and "| one tensor of 40,003 | " in now, "medians have a row")
    check("<details>" in now and "**one tensor of 40,003**, 40,003 parameters" in now, "all figures are folded below")
    check("Text stays." in now and "\nold\n" in now, "what is not in the results stays")
    check("<!-- benchmarks: gpu -->\n<!-- end -->" in now, "without results of a GPU its part stays as it is")
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
    """Runs all faults at once: faulty contestants are refused, the others continue."""
    faulty = [f"{fault}={sys.executable} {here}/broken.py {fault} {loop}" for fault in ("none", *faults)]
    code, run_, _ = drive(folder, (f"descent={descent}", *faulty), "--cases", "quick_many", "--recipes", "adamw")
    check(code == 1, f"drive.py with refused contestants ended with {code}")
    of = run_["results"][0]["contestants"]
    for fault in faults:
        check("refused" in of[fault] and "seconds" not in of[fault], f"'{fault}' is refused")
    check("seconds" in of["none"] and "seconds" in of["descent"], "those without a fault are timed")


def slow_and_mute(folder):
    """A contestant that does not answer hello takes no part. A slow one skips later cases of as many tensors."""
    def broken(fault):
        return gpu(fault, f"{sys.executable} {here}/broken.py {fault} {loop}")
    code, run_, _ = drive(folder, (gpu("descent", descent), broken("mute"), broken("slow")), "--recipes", "adamw",
                          "--cases", "quick_flat,quick_many", "--patience", "5")
    check(code == 1 and list(run_["contestants"]) == ["descent", "slow"], "a mute contestant takes no part")
    check(any("mute does not take part" in note for note in run_["notes"]), "and the results say so")
    of = {r["case"]: r["contestants"] for r in run_["results"]}
    check("5 s" in of["quick_flat"]["slow"]["refused"] and "slow" not in of["quick_many"], "a slow one is refused once")
    check(all("seconds" in c["descent"] for c in of.values()), "the others are timed")


def counted_from_trace():
    def event(category, name, phase="X"):
        return {"ph": phase, "cat": category, "name": name}
    trace = [event("kernel", "k"), event("gpu_memcpy", "Memcpy"), event("gpu_memset", "Memset"),
             event("kernel", "k", "f"), event("gpu_user_annotation", "Optimizer.step"),
             event("cuda_runtime", "cudaLaunchKernel"), event("cuda_runtime", "cudaStreamSynchronize"),
             event("cpu_op", "cudaStreamSynchronize")]
    check(peer.counted({"traceEvents": trace}) == {"launches": 3, "synchronisations": 1},
          "a trace is counted: what the device did, and waits of the host")


def too_large(folder):
    """A case that does not fit into memory is skipped, with a message that says how much it needs."""
    code, run_, _ = drive(folder, (f"descent={descent}",), "--memory", "0.01", "--cases", "quick_flat", "--recipes",
                          "adamw")
    check(code == 0 and not run_["results"] and len(run_["skipped"]) == 1, "a case without room is skipped")
    check("GiB" in run_["skipped"][0]["why"], "and what it needs is said")


def nothing_left(folder):
    """An unknown name ends the run, with a message that lists the known names."""
    out = os.path.join(folder, "nothing.json")
    ended = run("drive.py", "--set", "quick", "--oracle", oracle, "--work", folder, "--out", out, "--contestant",
                f"descent={descent}", "--cases", "quick_fat")
    check(ended.returncode == 1 and not os.path.exists(out), "without a case there are no results")
    check("quick_flat, quick_many" in ended.stderr and "adamw, adamw_bf16_clip" in ended.stderr, "and it says the names")


def gpu(name, command, room=1 << 40):
    return f"{name}={sys.executable} {here}/as_gpu.py {room} {command}"


def on_gpu(folder):
    """Tests the driver and the report for a GPU, with host contestants in its place."""
    broken_loop = f"{sys.executable} {here}/broken.py off {loop}"
    code, run_, out = drive(folder, (gpu("descent", descent), gpu("descent_captured", loop), gpu("off", broken_loop)),
                            "--cases", "quick_flat,quick_many", "--recipes", "adamw,lars")
    check(code == 1, f"drive.py with a refused contestant on a GPU ended with {code}")
    check(run_["device"]["name"] == "no GPU" and "gpu_at_start" in run_ and run_["command"], "the results say the GPU")
    of = {(r["case"], r["recipe"]): r for r in run_["results"]}
    check(len(of) == 4 and of["quick_many", "adamw"]["sets"] == 3 and of["quick_flat", "adamw"]["sets"] == 3,
          "steps go round three sets beyond half of the L2 cache")
    check(of["quick_flat", "lars"]["sets"] == 1, "and round one within")
    for r in run_["results"]:
        ours = r["contestants"]["descent"]
        check(ours["launches"] == 7 and ours["synchronisations"] == 2, "what is counted last is in the results")
        check(len(ours["host_seconds"]["samples"]) == len(ours["seconds"]["samples"]) == 3, "the host's time is, too")
    check("refused" in of["quick_many", "adamw"]["contestants"]["off"], "what computes something else is refused")
    page = os.path.join(folder, "gpu.md")
    with open(page, "w", encoding="utf-8") as text:
        text.write("<!-- benchmarks: gpu -->\n<!-- end -->\n<!-- benchmarks: adamw -->\nkept\n<!-- end -->\n")
    ended = run("report.py", out, "--page", page, "--pictures", folder)
    with open(page, encoding="utf-8") as text:
        now = text.read()
    check(ended.returncode == 0, f"report.py: {ended.stderr}")
    check("**one tensor of 40,003**, 40,003 parameters, 3 sets" in now and "| 7; 2 |" in now, "the table has a row")
    check("kept" in now and "off is refused" in now, "tables of the host stay, and who is refused is said")
    check("(gpu_benchmarks_adamw.svg)" in now or "(./gpu_benchmarks_adamw.svg)" in now, "the picture is shown")


def little_room(folder):
    """If not all contestants fit at once, they are loaded one after the other; one that does not fit is skipped."""
    most, room = 40003 * 16, (1 << 28) + 3 * 40003 * 16
    def of(free):
        _, run_, _ = drive(folder, (gpu("descent", descent, free), gpu("other", loop, free)), "--cases", "quick_flat",
                           "--recipes", "adamw")
        return run_
    one = of(room + int(1.5 * most))["results"][0]
    check(one["batches"] == 2 and all("seconds" in c for c in one["contestants"].values()), "both are timed, in turn")
    none = of(room + most // 2)
    check(not none["results"] and len(none["skipped"]) == 2, "what does not fit alone is skipped")


def cut_off(folder):
    code, run_, _ = drive(folder, (f"descent={descent}",), "--limit", "0")
    check(code == 0 and not run_["results"] and len(run_["skipped"]) == 4, "no case begins after the limit")


def targets(folder):
    """The targets of a GPU, from made-up numbers: a copy of 3 TB/s, steps of 1 ms."""
    def timed(seconds):
        return {"seconds": {"median": seconds, "q1": seconds, "q3": seconds, "samples": [seconds]},
                "host_seconds": {"median": seconds, "q1": seconds, "q3": seconds, "samples": [seconds]},
                "extra_bytes": 8, "grown_bytes": 8}
    def result(case, recipe, size, **contestants):
        return {"case": case, "recipe": recipe, "elements": 10**8, "tensors": 1, "step_bytes": size, "checked": True,
                "sets": 3, "batches": 1, "resident_bytes": 1, "ceilings": {"copy": {"step_bytes": 3e9} | timed(1e-3)},
                "contestants": {name: timed(s) for name, s in contestants.items()}}
    made_up = {"format": 1, "date": "", "set": "", "command": "", "threads": 1, "revision": "",
               "notes": ["JAX does not take part: ."],
               "machine": {"cpu": ""}, "contestants": {}, "skipped": [],
               "device": {"name": "X", "multiprocessors": 1, "l2_bytes": 1, "memory_bytes": 1, "cuda": ""},
               "results": [result("flat_100000000", "adamw", 28e8, descent=1e-3),
                           result("flat_100000000", "adamw_bf16_sr", 16e8, descent=0.8e-3),
                           result("gpt2", "adamw_half_o2", 40e8, descent=1e-3, torch_fused=3e-3, torch_captured=2.5e-3),
                           result("1000x1024", "adamw_clip", 1, descent=25e-6),
                           result("flat_100000", "adamw", 1, descent_captured=8e-6)]}
    with open(os.path.join(folder, "made_up.json"), "w", encoding="utf-8") as out:
        json.dump(made_up, out)
    said = run("report.py", os.path.join(folder, "made_up.json"), "--out", folder).stdout
    for row in ("| at least 0.92 | one tensor of 100,000,000: 0.93 | yes |",
                "| at least 0.88 | one tensor of 100,000,000: 0.67 | no |", "| at least 2 | GPT-2 124M: 2.50 | yes |",
                "| below 20 | 1000 tensors of 1024: 25.00 | no |", "| below 10 | one tensor of 100,000: 8.00 | yes |"):
        check(row in said, f"the targets say {row}")
    with open(os.path.join(folder, "report.md"), encoding="utf-8") as text:
        report = text.read()
    check("| GPT-2 124M, complete fp16 recipe | 1 ms | 3 ms | 2.5 ms | 133 % |" in report, "the answers have a row")
    check("- JAX does not take part (made_up.json)\n" in report, "a note without a reason is a sentence")


def loaders(folder):
    """The benchmark of the loader runs on small cases without PyTorch, and the report has its tables."""
    out = os.path.join(folder, "loader.json")
    ended = run("loader.py", "--set", "quick", "--contestant", f"descent={loader}", "--contestant",
                "torch=no_such_program", "--file-bytes", str(1 << 20), "--repetitions", "2", "--turns", "1", "--sample",
                "0.001", "--work", folder, "--out", out)
    check(ended.returncode == 0, f"loader.py ended with {ended.returncode}: {ended.stdout}{ended.stderr}")
    with open(out, encoding="utf-8") as text:
        run_ = json.load(text)
    check(len(run_["results"]) == 8, "each case has a result")
    for result in run_["results"]:
        for name, of in result["contestants"].items():
            check(len(of.get("seconds", {}).get("samples", [])) >= 2, f"{result['case']}: {name} has samples")
    check(any("torch does not take part" in note for note in run_["notes"]), "a program that is not there is named")
    page = os.path.join(folder, "data.md")
    with open(page, "w", encoding="utf-8") as text:
        text.write("<!-- benchmarks: data -->\n<!-- end -->\n<!-- benchmarks: gpu -->\nkept\n<!-- end -->\n")
    ended = run("report.py", out, "--page", page, "--pictures", folder)
    with open(page, encoding="utf-8") as text:
        now = text.read()
    check(ended.returncode == 0 and "| descent | 2 |" in now and "kept" in now, f"the page has a row: {ended.stderr}")


with tempfile.TemporaryDirectory() as where:
    reported(where, right(where))
    broken(where)
    slow_and_mute(where)
    counted_from_trace()
    too_large(where)
    nothing_left(where)
    on_gpu(where)
    little_room(where)
    cut_off(where)
    targets(where)
    loaders(where)
print(*failures, sep="\n")
print("failed" if failures else "all as it should be")
sys.exit(bool(failures))
