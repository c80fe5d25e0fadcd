# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: cost.py [--units | --write | --times] cpp|cu compiler arguments...

Measures the cost of including and compiling, in figures that depend only on the compiler and its libraries:

    headers      lines, KiB and files of preprocessed text that each public header brings in
    units        MB that GCC needs to compile, functions and bytes of the object file
    optimizers   functions and bytes of code that one more optimizer adds, with -O2: see optimizers.cpp

Reports differences from costs_cpp.txt or costs_cu.txt, which name the compiler and the libraries they were recorded
with. Differences are not failures. --write records the figures again, also those of a unit with an optimizer of every
rule, which takes a minute. --units leaves out headers and optimizers. Seconds are printed as well. --times prints a
table of times; use it on an idle machine."""
import concurrent.futures
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

here = pathlib.Path(__file__).parent
root = here.parent.parent
sys.path.insert(0, str(here.parent / "cuda"))
import records  # noqa: E402
from kernels import demangled, machine_code  # noqa: E402

columns = {"headers": ["lines", "KiB", "files"], "units": ["MB", "functions", "bytes"],
           "optimizers": ["functions", "bytes"]}
# These bring in text of another library: MPI, TBB, NCCL.
left_out = {"comm/mpi.hpp", "comm/mpi_session.hpp", "backends/tbb.hpp", "comm/nccl.cuh"}

every_rule = """namespace ds = descent;
template <class Rule> void step(ds::parameters<float> const& p) {
  if constexpr (ds::has_loss<Rule>) ds::optimizer{p, Rule{}, ds::loss_at{}}.step();
  else if constexpr (ds::update_rule<Rule>) ds::optimizer{p, Rule{}}.step();
  else ds::optimizer{p, ds::sgd{}, ds::matrices{Rule{}}}.step();
}
void step_each(ds::parameters<float> const& p) {"""


def unit_of(headers, code=""):
    return "".join(f"#include <{h}>\n" for h in headers) + code + "\n"


def units(kind, whole):
    yield "nothing", unit_of([])
    yield "one rule and one schedule", unit_of(["descent/rules/adamw.hpp", "descent/schedules/cosine.hpp"])
    yield "descent.hpp", unit_of(["descent/descent.hpp"])
    if kind == "cu":
        yield "descent.cuh", unit_of(["descent/descent.cuh"])
    elif whole:
        rules = sorted(p.stem for p in (root / "include/descent/rules").glob("*.hpp"))
        arguments = {"larc": "larc<ds::sgd>", "layerwise": "layerwise<ds::adam>"}
        steps = "".join(f"\n  step<ds::{arguments.get(r, r)}>(p);" for r in rules)
        headers = ["descent/descent.hpp", "descent/matrices/host.hpp", *(f"descent/rules/{r}.hpp" for r in rules)]
        yield "every rule, one optimizer each", unit_of(headers, every_rule + steps + "\n}")


class compiler:
    def __init__(self, kind, command):
        self.kind, self.command = kind, command
        self.folder = tempfile.TemporaryDirectory()
        self.object = f"{self.folder.name}/unit.o"

    def run(self, code, *arguments, name="unit"):
        """The compiler's output, and the seconds it took."""
        source = pathlib.Path(self.folder.name) / f"{name}.{self.kind}"
        source.write_text(code)
        start = time.monotonic()
        done = subprocess.run([*self.command, *arguments, source], capture_output=True, text=True,
                              env=dict(os.environ, LC_ALL="C"))
        seconds = time.monotonic() - start
        if done.returncode != 0:
            sys.exit(f"does not compile:\n{code[:400]}\n{done.stderr[:4000]}")
        return done, seconds

    def preprocessed(self, header):
        """The number of non-empty lines, their KiB, and the number of files."""
        code, name = unit_of([f"descent/{header}"]), header.replace("/", "_")
        text = self.run(code, "-E", name=name)[0].stdout.splitlines()
        lines = [line for line in text if line.strip() and not line.startswith("#")]
        files = {m[1] for line in text if (m := re.match(r'# \d+ "([^<"][^"]*)"', line))}
        return dict(lines=len(lines), KiB=sum(len(line) + 1 for line in lines) // 1024, files=len(files) - 1)

    def compile(self, code, *arguments):
        """Compiles the code to an object file. The memory that it took, and the seconds."""
        report = ["-ftime-report"] if self.kind == "cpp" else []
        done, seconds = self.run(code, *report, *arguments, "-c", "-o", self.object)
        figures = {}
        if taken := re.search(r"^ TOTAL .* (\d+)([kM])\s*$", done.stderr, re.M):
            figures["MB"] = int(taken[1]) // (1024 if taken[2] == "k" else 1)
        return figures, seconds

    def versions(self):
        keep = ["-Xcompiler", "-dM"] if self.kind == "cu" else ["-dM"]
        text = self.run(unit_of(["cuda/version", "features.h"]), "-E", *keep)[0].stdout
        of = dict(re.findall(r'^#define (\w+) "?([\w.]+)"?$', text, re.M))
        cccl = int(of["CCCL_VERSION"])
        names = [f"gcc {of['__VERSION__']}" if "__clang__" not in of else f"clang {of['__clang_major__']}",
                 f"glibc {of.get('__GLIBC__')}.{of.get('__GLIBC_MINOR__')}",
                 f"CCCL {cccl // 1000000}.{cccl // 1000 % 1000}.{cccl % 1000}"]
        if self.kind == "cu":
            names.append("nvcc " + ".".join(of[f"__CUDACC_VER_{x}__"] for x in ("MAJOR", "MINOR", "BUILD")))
        return ", ".join(names)


def size_of(functions):
    return dict(functions=len(functions), bytes=sum(map(len, functions)))


def optimizers(cc):
    """Sizes per optimizer, found by the word in its `optimizer:` line of optimizers.cpp, and the size of the rest."""
    code = (here / "optimizers.cpp").read_text()
    words = re.findall(r"optimizer: (\w+) +(\S+)", code)
    cc.compile(code, "-O2", "-ffunction-sections")
    found = {name: [] for name, _ in words} | {"what they share": []}
    sections = {re.sub(r"^(unlikely|startup)\.", "", name): [] for name in machine_code(cc.object)}
    for name, code in machine_code(cc.object).items():
        sections[re.sub(r"^(unlikely|startup)\.", "", name)].append(code)
    for section, name in demangled(sections).items():
        found[next((o for o, word in words if word in name), "what they share")] += sections[section]
    return {name: size_of(list) for name, list in found.items()}


def measure(cc, tables, whole=False):
    figures = {}
    if tables:
        ends = ["*.hpp"] if cc.kind == "cpp" else ["*.cuh"]
        public = sorted(str(p.relative_to(root / "include/descent")) for end in ends
                        for p in (root / "include/descent").rglob(end) if not {"detail", "engine"} & set(p.parts))
        public = [header for header in public if header not in left_out]
        if not public:
            sys.exit("there are no headers")
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            figures["headers"] = dict(zip(public, pool.map(cc.preprocessed, public)))
    figures["units"] = {}
    for name, code in units(cc.kind, whole):
        row, seconds = cc.compile(code)
        print(f"include cost: {name} (.{cc.kind}): {seconds:.2f} s")
        if cc.kind == "cpp":
            figures["units"][name] = row | size_of(list(machine_code(cc.object).values()))
    if tables and cc.kind == "cpp":
        figures["optimizers"] = optimizers(cc)
    return figures


def write(cc, table):
    groups = {}
    for group, of in measure(cc, tables=True, whole=True).items():
        if of:
            names = columns[group]
            groups[f"{group}: {' '.join(names)}"] = [(*(row[c] for c in names), name) for name, row in of.items()]
    records.write(table, cc.versions(), groups)


def rows_of(groups):
    """The figures of each row, by column. Rows are named `name (group)`."""
    for group, rows in groups.items():
        group, names = group.split(": ")
        for *figures, name in rows:
            yield f"{name} ({group})", dict(zip(names.split(), figures))


def check(cc, table, tables):
    recorded_versions, groups = records.read(table)
    found = measure(cc, tables)
    recorded = {name: row for name, row in rows_of(groups) if any(name.endswith(f"({group})") for group in found)}
    recorded.pop("every rule, one optimizer each (units)", None)
    rows = {f"{name} ({group})": row for group, of in found.items() for name, row in of.items()}
    records.report(f"costs of .{cc.kind}", rows, recorded, recorded_versions, cc.versions())


def times(cc, repeats=5):
    """Medians of processor time, which depends less on other work on the machine than wall-clock time."""
    cases = [(name, code, []) for name, code in units(cc.kind, whole=True)]
    thrust = ["thrust/for_each.h", "thrust/iterator/counting_iterator.h"]
    standard = ["vector", "string", "algorithm", "memory"]
    cases[1:1] = [("standard headers: " + ", ".join(standard), unit_of(standard), []),
                  ("Thrust's for_each", unit_of(thrust), [])]
    include, place = ("descent.cuh", ", ds::cuda{}") if cc.kind == "cu" else ("descent.hpp", "")
    body = ("namespace ds = descent;\nvoid train(ds::parameters<float> const& params) "
            "{{ ds::optimizer{{params, ds::adamw{{}}{0}{1}}}.step(); }}")
    one, policies = (unit_of([f"descent/{include}"], body.format(p, place))
                     for p in ("", ", ds::clip_norm{}, ds::dynamic_loss_scale{}, ds::ema{}, ds::zero_grad{}"))
    cases += [("one optimizer", one, ["-O0"]), ("one optimizer", one, ["-O2"]),
              ("one optimizer with four policies", policies, ["-O2"])]
    seconds = [[] for _ in cases]
    for _ in range(repeats):
        for case, of in zip(cases, seconds):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            cc.run(case[1], *case[2], "-c", "-o", cc.object)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            of.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    peak = after.ru_maxrss // 1024
    base = statistics.median(seconds[1])
    print(f"{cc.versions()}; medians of {repeats}; load {os.getloadavg()[0]:.1f}; at most {peak} MiB\n")
    print("| unit | flags | seconds | lowest to highest | relative to the standard headers |\n|---|---|---|---|---|")
    for (name, _, flags), of in zip(cases, seconds):
        middle = statistics.median(of)
        flags = " ".join(f"`{flag}`" for flag in flags)
        print(f"| {name} | {flags} | {middle:.2f} | {min(of):.2f} to {max(of):.2f} | {middle / base:.1f} |")


mode = sys.argv.pop(1) if sys.argv[1].startswith("--") else "--check"
cc = compiler(sys.argv[1], sys.argv[2:])
table = here / f"costs_{cc.kind}.txt"
if mode == "--times":
    times(cc)
elif mode == "--write":
    write(cc, table)
else:
    check(cc, table, tables=mode != "--units")
