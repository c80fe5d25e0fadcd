# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: new_rule.py [--page PAGE] NAME [state members]     for example: new_rule.py --page signs lion_w m

Creates a new rule: a header with the step of plain SGD, its row in the list of all rules, its kernel, its include in
descent.hpp, its section in docs/optimizers/PAGE.md (momentum by default), and its row and picture in the index
docs/optimizers.md. Prints what is left to do. `sh tests/run.sh rule NAME` then shows the progress."""
import pathlib
import re
import subprocess
import sys

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

root = pathlib.Path(__file__).resolve().parent.parent
page, words = (sys.argv[2], sys.argv[3:]) if sys.argv[1:2] == ["--page"] and sys.argv[2:] else ("momentum", sys.argv[1:])
if not words or not all(re.fullmatch(r"[a-z][a-z0-9_]*", word) for word in words):
    sys.exit(__doc__)
index = (root / "docs/optimizers.md").read_text(encoding="utf-8")
pages = sorted(set(re.findall(r'^\| <a id=.*\(optimizers/(\w+)\.md#', index, re.M)))
if page not in pages:
    sys.exit(f"there is no page {page} of rules in docs/optimizers; there are {', '.join(pages)}")
name, *members = words
header = root / f"include/descent/rules/{name}.hpp"
if header.exists():
    sys.exit(f"{header.relative_to(root)} is there already")


def edit(path, change):
    file = root / path
    text = file.read_text(encoding="utf-8")
    changed = change(text)
    if changed == text:
        sys.exit(f"{path}: there is no place for {name}")
    file.write_text(changed, encoding="utf-8")
    print(f"changed  {path}")


def among(pattern, line):
    """Inserts a line into the block of matching lines, in sorted order."""
    def change(text):
        lines = text.splitlines(keepends=True)
        places = [i for i, old in enumerate(lines) if re.match(pattern, old)]
        if places:
            lines.insert(next((i for i in places if lines[i] > line), places[-1] + 1), line)
        return "".join(lines)
    return change


state = f"Real {', '.join(members)}; " if members else ""
slots = f'  static constexpr char const* slots[] = {{{", ".join(f"{chr(34)}{m}{chr(34)}" for m in members)}}};\n' if members else ""
between = " " if 97 + 3 * len(name) <= 120 else "\n" + " " * (45 + len(name))
decay = f"{between}{{&{name}::weight_decay, at_least_0}}}};"
header.write_text(f"""// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {{

/// What it is (paper, equation), and where it deviates.
///
///     p <- p - lr (g + wd p)
struct {name} {{
  /// Learning rate lr and weight_decay (wd) at least 0.
  double lr = 1e-3, weight_decay = 0;

  template <class Real> struct state {{ {state}}};
  template <class Real> struct terms {{ Real lr, wd; }};
{slots}
  DESCENT_HD terms<double> at(std::int64_t) const {{ return {{lr, weight_decay}}; }}

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>&, terms<Real> const& k) {{
    return p - k.lr * (g + k.wd * p);
  }}

  static constexpr field_range<{name}> ranges[] = {{{{&{name}::lr, at_least_0}},{decay}
}};
static_assert(update_rule<{name}>);

}}  // namespace descent
""", encoding="utf-8")
print(f"made     {header.relative_to(root)}")

edit("include/descent/descent.hpp", among(r"#include <descent/rules/", f"#include <descent/rules/{name}.hpp>\n"))
rows = "tests/support/rows_more.hpp"
edit(rows, among(r"#include <descent/rules/", f"#include <descent/rules/{name}.hpp>\n"))
edit(rows, lambda text: text.replace("more_rows{\n", f'more_rows{{\n    row{{"{name}", descent::{name}{{.lr = 0.001}}}},\n'
                                     f'    row{{"{name}, decay", descent::{name}{{.lr = 0.001, .weight_decay = 0.1}}}},\n', 1))
accesses = 2 * len(members)
edit("tests/cuda/rules.cu", among(r"RULE\(", f"RULE({name})".ljust(27) + f"// guard: loads {4 + accesses} "
                                  f"stores {2 + accesses} registers {64 if len(members) < 2 else 80 if len(members) < 3 else 128}\n"))
bytes_of_state = 4 * len(members)
row = (f'| <a id="{name}"></a>[`{name}`](optimizers/{page}.md#{name}) | {bytes_of_state} | {12 + 2 * bytes_of_state} '
       "| paper |\n")
edit("docs/optimizers.md", lambda text: re.sub(  # behind the last row of the page
    rf"((?:^\| <a id=[^\n]*\(optimizers/{page}\.md#[^\n]*\n)+)", lambda rows: rows[1] + row, text, count=1, flags=re.M))
taken = f"{', '.join(f'`{m}`' for m in members)}, {bytes_of_state} bytes per parameter" if members else "none, 0 bytes"
edit(f"docs/optimizers/{page}.md", lambda text: text + f"""
## {name}

![{name}: paths on two surfaces, and training](../pictures/{name}.svg)

```
p <- p - lr (g + wd p)
```

State: {taken}. Defaults: lr 1e-3, wd 0.
""")
subprocess.run([sys.executable, root / "tests/docs/optimizers.py", root, "--write"], check=False, stdout=subprocess.DEVNULL)
print(f"""
Left:
- include/descent/rules/{name}.hpp: the paper, the formula, fields, at, update, check
- {rows}: a row for each branch; move them to rows_torch.hpp, rows_optax.hpp, ... if the recorded values come from there
- recorded values of the original: a case in tests/reference/generate_*.py, and `named<ds::{name}>` in the test that reads
  them; if there is none, the formula a second time in tests/rules/formulas_test.cpp
- tests/rules/edges_test.cpp: cases that these values do not cover, and settings that are refused
- tests/mutants.txt: one mutant of the formula, one of decay, bias or an edge, one with the test rules/edges; then
  sh tests/mutants.sh {name}
- tests/cuda/rules.cu: correct the line of its kernel if the numbers differ
- docs/optimizers.md: the paper in its row; docs/optimizers/{page}.md: paper, what other libraries do, when to use it
- docs/changelog.md: a line
- examples/lab/rules.cpp: the rule; a picture, whose first build takes minutes: a row in
  examples/pictures/*_rules.cpp, then ninja -C build examples/pictures && build/examples/pictures docs/pictures {name}
- sh tests/run.sh rule {name}, then sh tests/run.sh rules/edges format sections pictures lists""")
