"""usage: guard.py source ptx log

Says which kernels have a stack, and checks those that `guard:` lines in the source name, in their
PTX and in what ptxas said of them: registers, stack and spills, 16-byte accesses in the path of
whole packets, no local memory, no generic access, no 64-bit floating point in an update."""
import re
import sys

from kernels import demangled, ptx_code, ptxas_texts, resources


def find(table, guard):
    wanted = (guard["kernel"], guard["plan"])
    found = [text for name, text in table.items() if all(part in name for part in wanted)]
    if len(found) != 1:
        sys.exit(f"{len(found)} kernels are {guard['kernel']} of {guard['plan']}")
    return found[0]


def check_resources(guard, text):
    stack, stores, loads, registers = resources(text)
    yield registers <= int(guard["registers"]), f"{registers} registers"
    yield stack == stores == loads == 0, f"{stack} bytes of stack, {stores + loads} of spills"


def check_code(guard, text):
    accesses = re.findall(r"\b((?:ld|st|red|atom)\.[\w.:]+)", text)
    spaces = [a for a in accesses if not re.search(r"\.(global|shared|param|const)\b", a)]
    yield not spaces, f"{len(spaces)} local or generic accesses {sorted(set(spaces))}"
    yield ".local" not in text, "no local memory"
    if guard["kernel"] == "update_packets":
        yield not re.search(r"\.f64\b", text), "no 64-bit floating point"

    # Straight pieces of code: a whole packet is read, and written if at all, in one of them.
    pieces = re.split(r"^\$L\w+:|\bbra\b", text, flags=re.M)
    whole = [p for p in pieces if re.search(r"(ld|st)\.global\S*\.v4\.", p)]
    if guard["zeroing"]:
        zeroing = min(whole, key=len)
        whole.remove(zeroing)
        stores = re.findall(r"\bst\.global\S*\.v4", zeroing)
        yield len(stores) == int(guard["zeroing"]) and not re.search(r"\bld\.global\S*\.v4", zeroing), f"{len(stores)} stores of zeros"
    pieces = int(guard["pieces"] or 1)
    yield 1 <= len(whole) <= pieces, f"{len(whole)} pieces of code for whole packets"
    code = "".join(whole)
    loads, stores = re.findall(r"\bld\.global\S*", code), re.findall(r"\bst\.global\S*", code)
    wide = lambda list: sum(bool(re.search(r"\.v4\.[fbu]32$", a)) for a in list)
    yield wide(loads) == int(guard["loads"]), f"{wide(loads)} loads of 16 bytes"
    yield wide(stores) == int(guard["stores"]), f"{wide(stores)} stores of 16 bytes"
    yield len(stores) == wide(stores), f"{len(stores) - wide(stores)} narrower stores"
    # The rest are facts about the tensor: pointers, and terms that are the same for all elements.
    elements = [a for a in loads if re.search(r"16$|\.[su]8$", a)]
    terms = [a for a in loads if re.search(r"\.global(\.\w+)*\.[fbu]32$", a) and ".v" not in a]
    yield not elements, f"{len(elements)} loads of single 16-bit elements"
    yield len(terms) <= int(guard["terms"] or 11), f"{len(terms)} loads of terms"


source = open(sys.argv[1]).read()
guard_line = (r"guard: (?P<kernel>\w+) +(?P<plan>\S.*?) +loads (?P<loads>\d+) "
              r"stores (?P<stores>\d+) registers (?P<registers>\d+)(?: zeroing (?P<zeroing>\d+))?"
              r"(?: pieces (?P<pieces>\d+))?(?: terms (?P<terms>\d+))?")

guards = [m.groupdict() for m in re.finditer(guard_line, source)]
if len(guards) != source.count("guard:"):
    sys.exit(f"a guard line is not understood: {guard_line}")
codes, logs = ptx_code(sys.argv[2]), ptxas_texts(sys.argv[3])
names = demangled(codes.keys() | logs.keys())
codes, logs = ({names[k]: v for k, v in table.items()} for table in (codes, logs))

for name, text in logs.items():
    stack, stores, loads, registers = resources(text)
    if stack:
        print(f"{name.split('(')[0]}: {stack} bytes of stack, {stores + loads} of spills")
print(f"{len(logs)} kernels, of which {len(guards)} are guarded")

failed = False
for guard in guards:
    results = [*check_resources(guard, find(logs, guard)), *check_code(guard, find(codes, guard))]
    print(guard["kernel"], guard["plan"] + ":", "; ".join(what for _, what in results))
    for holds, what in results:
        if not holds:
            print(f"  not allowed: {what}")
            failed = True
sys.exit(failed)
