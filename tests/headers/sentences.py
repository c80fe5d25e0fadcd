# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: sentences.py include-folder

Checks that each static_assert says in a sentence what is wrong, except those that a user's code cannot fail."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
# The library's own classes have these concepts, layouts and sizes, whatever a program does.
own = re.compile(r"static_assert\((schedule<|update_rule<|matrix_rule<|2 \* second == chunk_size"
                 r"|std::(is_trivially_copyable|has_unique_object_representations)_v<"
                 r"(note|endpoint|heartbeat|device_place|plateau|plateau_state)>\)"
                 r"|sizeof\(control_block\)|std::atomic<std::uint32_t>)")
without = {
    "static_assert(sizeof(bool) == 1)": "of the compilers that can build the library",
    "static_assert(std::is_trivially_copyable_v<T>)": "sort_plain() sorts the library's own structs",
    "static_assert(members<terms> == members<Rule::template terms> + (members<Stages::template terms> + ...))":
        "the checks of the optimizer, its first base class, refuse terms that are not structs of Real",
    "static_assert(rule_types::template all<makes_optimizer>)": "is true, or one of those checks has failed",
    "static_assert((suits_rule<Ps, Rule, typename matrix_rule_type<policy_of<kind::matrices, void, Ps...>>::type>() && ...))":
        "is true, or a policy's require_rule(), which has a sentence, has failed",
}


def asserts(text):
    """The line and the text of each static_assert."""
    for match in re.finditer(r"\bstatic_assert\(", text):
        end, depth = match.end(), 1
        while depth:
            string = re.compile(r'"(\\.|[^"\\])*"').match(text, end)
            end = string.end() if string else end + 1
            depth += {"(": 1, ")": -1}.get(text[end - 1], 0) if not string else 0
        yield text.count("\n", 0, match.start()) + 1, re.sub(r"\s+", " ", text[match.start():end])


problems, count, used = [], 0, set()
for path in sorted(root.rglob("*.*")):
    for line, text in asserts(re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8"))):
        count += 1
        used.add(text)
        if '"' not in text and text not in without and not own.match(text):
            problems.append(f"{path.relative_to(root)}:{line}: has no sentence: {text}")
problems += [f"there is no {text}: take it off the list" for text in without.keys() - used]
print(f"{count} assertions", *problems, sep="\n")
sys.exit(bool(problems) or count < 100)
