# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: guard.py source ptx log

Checks what the code of kernels promises, in their PTX and in the report of ptxas.

Every kernel: no local memory in PTX. Every kernel over elements: no stack and no spills; a `spills:` line in the source
names an exception and the bytes of stack that it may have. Every update: no 64-bit floating point unless one of its
arrays is stored in double, and no 64-bit division. masked_rows is excepted: it looks up rows and has terms in double.

A kernel named by a `guard:` line: at most the given number of registers, and no generic access. For whole packets,
exactly the given number of 16-byte loads and stores, no narrower access to elements, and 64-bit integers only in
addresses, unless the kernel draws random bits. With `ranks`, it adds contributions in a loop that compilers unroll, so
the numbers are minima; `narrow` gives the maximum number of narrower stores. In a unit with `guard:` lines for updates,
each update must have one; the same holds for measure_chunks."""
import re
import sys

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

from kernels import demangled, ptx_code, ptxas_texts, readable, resources

# These run in one block, whatever the number of elements.
control = re.compile(r"(control|decide)_step|find_\w*terms|set_\w+")
# Operations on 64-bit integers in addresses. Random bits are drawn with and, or, xor and shr.
addressing = re.compile(r"(add|sub|shl|mul|mad|max|min|cvt|cvta|setp|selp|mov)\.")


def operations(text):
    return re.findall(r"^\s*(?:@\S+\s+)?([a-z]\w*\.[\w.:]+)", text, re.M)


def body(name):
    """The name of the function, or of the body that each_packet runs."""
    return re.match(r"(?:each_packet<)?(\w+)", name)[1]


def check_all(name, code, log, stack_allowed):
    """The checks of every kernel."""
    stack, stores, loads, _ = resources(log)
    if not control.fullmatch(body(name)):
        yield stack <= stack_allowed, f"{stack} bytes of stack"
        yield stack_allowed or stores == loads == 0, f"{stores + loads} bytes of spills"
    yield ".local" not in code, "local memory"
    if body(name) == "update_packets":
        plan = name.split(">(")[0]
        yield re.search("double|masked_rows", plan) or ".f64" not in code, "64-bit floating point"
        yield "masked_rows" in plan or not re.search(r"\b(div|rem)\.[su]64", code), "64-bit division"


def check_guard(guard, code, log):
    registers = resources(log)[3]
    yield registers <= int(guard["registers"]), f"{registers} registers"
    accesses = re.findall(r"\b((?:ld|st|red|atom)\.[\w.:]+)", code)
    spaces = [a for a in accesses if not re.search(r"\.(global|shared|param|const)\b", a)]
    yield not spaces, f"{len(spaces)} local or generic accesses {sorted(set(spaces))}"

    # Straight-line pieces of code. A whole packet is read, and written if at all, in one of them.
    pieces = re.split(r"^\$L\w+:|\bbra\b", code, flags=re.M)
    whole = [p for p in pieces if re.search(r"(ld|st)\.global\S*\.v4\.", p)]
    if guard["zeroing"]:
        zeroing = min(whole, key=len, default="")
        whole = [p for p in whole if p is not zeroing]
        stores = re.findall(r"\bst\.global\S*\.v4", zeroing)
        yield len(stores) == int(guard["zeroing"]), f"{len(stores)} stores of zeros"
        yield not re.search(r"\bld\.global\S*\.v4", zeroing), "loads where zeros are stored"
    ranks = guard["ranks"]
    yield whole and (ranks or len(whole) <= int(guard["pieces"] or 1)), f"{len(whole)} pieces of code for whole packets"
    text = "".join(whole)
    loads, stores = re.findall(r"\bld\.global\S*", text), re.findall(r"\bst\.global\S*", text)
    of_16 = lambda list: sum(bool(re.search(r"\.v4\.[fbu]32$", a)) for a in list)
    for list, what in (loads, "loads"), (stores, "stores"):
        count, promised = of_16(list), int(guard[what])
        yield count >= promised if ranks else count == promised, f"{count} {what} of 16 bytes"
    narrow = len(stores) - of_16(stores)
    yield narrow <= int(guard["narrow"] or 0), f"{narrow} narrower stores"
    # All other loads are of data about the tensor: pointers, and terms that are the same for all elements.
    elements = [a for a in loads if re.search(r"16$|\.[su]8$", a)]
    terms = [a for a in loads if re.search(r"\.global(\.\w+)*\.[fbu]32$", a) and ".v" not in a]
    yield not elements, f"{len(elements)} loads of single 16-bit elements"
    yield len(terms) <= int(guard["terms"] or 11), f"{len(terms)} loads of terms"
    if not guard["random"]:
        integer = {o for o in operations(text) if re.search(r"\.[sub]64\b", o) and not re.match(r"ld|st", o)}
        others = sorted(o for o in integer if not addressing.match(o))
        yield not others, f"64-bit integers beyond addresses: {' '.join(others) or 'none'}"


# `RULE(name)  // guard: ...` guards the update of that rule.
source = re.sub(r"^RULE\((\w+)\) +// guard: ", r"// guard: update_packets \1>  ", open(sys.argv[1]).read(), flags=re.M)
guard_line = (r"guard: (?P<kernel>\w+) +(?P<plan>\S.*?) +loads (?P<loads>\d+) "
              r"stores (?P<stores>\d+) registers (?P<registers>\d+)(?: zeroing (?P<zeroing>\d+))?"
              r"(?: pieces (?P<pieces>\d+))?(?: terms (?P<terms>\d+))?(?P<random> random)?"
              r"(?P<ranks> ranks)?(?: narrow (?P<narrow>\d+))?$")
spills_line = r"spills: (?P<kernel>\w+) +(?P<plan>\S.*?) +stack (?P<stack>\d+)$"


def lines(word, pattern):
    found = [m.groupdict() for m in re.finditer(pattern, source, re.M)]
    if len(found) != source.count(f" {word}: "):
        sys.exit(f"a line is not understood: {pattern}")
    return found


guards, spills = lines("guard", guard_line), lines("spills", spills_line)
codes, logs = ptx_code(sys.argv[2]), ptxas_texts(sys.argv[3])
if not codes or codes.keys() != logs.keys():
    sys.exit(f"{len(codes)} kernels in PTX, {len(logs)} that ptxas compiled")
kernels = {readable(name): (codes[mangled], logs[mangled]) for mangled, name in demangled(codes).items()}
if len(kernels) != len(codes):
    sys.exit(f"{len(codes)} kernels have {len(kernels)} names")
failed = False


def fails(what):
    global failed
    failed = True
    print(f"not allowed: {what}")


def named(line):
    """The one kernel that a line of the source refers to."""
    plan = re.compile(r"(?<!\w)" + re.escape(line["plan"]))
    found = [name for name in kernels if body(name) == line["kernel"] and plan.search(name.split(">(")[0] + ">")]
    if len(found) != 1:
        sys.exit(f"{len(found)} kernels are {line['kernel']} of {line['plan']}")
    return found[0]


def judge(name, results):
    for holds, what in results:
        if not holds:
            fails(f"{name.split('>(')[0]}: {what}")


exceptions = {named(line): int(line["stack"]) for line in spills}
for name, (code, log) in kernels.items():
    judge(name, check_all(name, code, log, exceptions.get(name, 0)))
guarded = {}
for guard in guards:
    name = named(guard)
    if name in guarded:
        fails(f"two lines guard {name.split('>(')[0]}")
    guarded[name] = [*check_guard(guard, *kernels[name])]
    print(guard["kernel"], guard["plan"] + ":", "; ".join(what for _, what in guarded[name]))
    judge(name, guarded[name])
for kind in ("update_packets", "measure_chunks"):
    of = [name for name in kernels if body(name) == kind]
    if any(guard["kernel"] == kind for guard in guards):
        for name in set(of) - guarded.keys():
            fails(f"no line guards {name.split('>(')[0]}")
print(f"{len(kernels)} kernels, of which {len(guards)} are guarded and {len(exceptions)} may spill")
sys.exit(failed)
