# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""What a header declares, with its comments. Reads as much of C++ as the headers of this project use."""
import os
import re

blank = re.compile(r"//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])'|^[ \t]*#(?:\\\n|[^\n])*", re.M)
closing = {"(": ")", "[": "]", "{": "}", "<": ">"}
classes = ("class", "struct", "union", "enum")


class Item:
    """A declaration or, of kind 'text', a comment that stands for itself. Kind 'made': constructors and the like."""

    def __init__(self, kind, names, code, above, line, parts=(), bases=()):
        self.kind, self.names, self.code, self.line = kind, names, code, line
        self.above = above  # the comment above, in a list that the items share which share the comment
        self.behind = ""  # the comments behind it
        self.parts, self.bases = list(parts), bases


class Header:
    """With `everything`, what is in namespace detail, too."""

    def __init__(self, include, path, everything=False):
        self.path, self.everything, self.comment = path, everything, ""
        with open(os.path.join(include, path), encoding="utf-8") as file:
            self.text = file.read()
        # The same text with comments, strings and directives blank, so that brackets can be counted.
        self.bare = blank.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), self.text)
        self.items = self.scope(self.text.index("#pragma once") + len("#pragma once"), len(self.text))

    def behind(self, at):
        """Where the bracket that opens at `at` has been closed."""
        last = closing[self.bare[at]]
        stops = re.compile(r"[\[({<>\])}]" if last == ">" else r"[\[({\])}]")
        while True:
            at = stops.search(self.bare, at + 1).start()
            if self.bare[at] == last:
                return at + 1
            at = self.behind(at) - 1

    def here(self, pattern, at):
        return re.compile(pattern).match(self.bare, at)

    def scope(self, at, end, owner="", public=True, comment=""):
        """The public items between. The owner is a class; without one it is a namespace with that comment."""
        items, doc, above, fresh, last, ended = [], "", [comment], not comment, None, at
        while (found := re.compile(r"\S").search(self.text, at, end)):
            begin = found.start()
            line = self.text.count("\n", 0, begin) + 1
            if self.text.count("\n", at, begin) > 1:
                fresh = True
                if doc:
                    items.append(Item("text", [], "", [doc], line))
                    doc = ""
            at = begin
            if self.text.startswith("//", at):
                at = self.text.find("\n", at)
                if self.text.startswith("///<", begin) or "\n" not in self.text[ended:begin]:
                    if last:
                        last.behind += self.text[begin:at] + "\n"
                elif self.text.startswith("///", begin):
                    doc += self.text[begin + 3:at] + "\n"
            elif self.text[at] == "#":
                at = blank.match(self.text, self.text.rfind("\n", 0, at) + 1).end()
                macro = re.match(r"#define (DESCENT_\w+)", self.text[begin:at])
                if macro and not any(macro[1] in item.names for item in items):
                    items.append(Item("macro", [macro[1]], self.text[begin:at], [doc], line))
                elif self.text.startswith("#include", begin):
                    self.comment += doc
                doc = doc if self.text.startswith("#if", begin) else ""
            elif access := self.here(r"(public|private|protected):", at):
                public, at, fresh = access[1] == "public", access.end(), True
            elif self.text[at] in ";}":
                at += 1
            elif space := self.here(r"namespace (descent::)?([\w:]+) *\{", at):
                at, name = self.behind(space.end() - 1), space[2]
                fresh, last, ended = True, None, at
                if name == "detail" and not self.everything:
                    if not space[1]:
                        continue  # a comment above is about what follows
                    self.comment += doc
                elif name in ("descent", "comm", "detail"):
                    self.comment += doc
                    items += self.scope(space.end(), at - 1)
                else:
                    parts = self.scope(space.end(), at - 1, comment=doc)
                    items.append(Item("namespace", [name.split("::")[-1]], f"namespace {name}", [doc], line, parts))
                doc = ""
            else:
                if doc or fresh:
                    above = [doc]
                item, at = self.declaration(begin, owner, above, line)
                last, ended, doc, fresh = item if public else None, at, "", False
                items += [last] if last else []
        items += [Item("text", [], "", [doc], self.text.count("\n", 0, at) + 1)] if doc else []
        return united(items)

    def extent(self, begin):
        """Of a declaration: its start behind `template <...>`, its keyword, the `(` of a function, the `:` in front
        of its initializers, its body, and its end."""
        at = begin
        while head := self.here(r"\s*(?:template\s*(?=<)|requires\s*(?=\()|DESCENT_CALLS\s)", at):
            at = self.behind(head.end()) if self.bare[head.end()] in "<(" else head.end()
        start = at = self.here(r"\s*", at).end()
        keyword = self.here(r"(class|struct|union|enum|concept|using|static_assert|friend|extern)\b|", at)[1]
        paren = equals = colon = body = None
        operator = r"operator\s*(?:\(\)|[^\w\s(]+)"
        while self.bare[at := re.compile(operator + r"|::|[=:;({\[]").search(self.bare, at).start()] != ";":
            before, to = self.bare[start:at].rstrip(), at + 1
            if self.bare[at] == "o":
                paren = self.here(operator, at).end()
                to = self.behind(paren)
            elif self.bare[at:at + 2] == "::":
                to = at + 2
            elif self.bare[at] == ":":
                colon = colon or (at if paren and not equals else None)
            elif self.bare[at] == "=":
                equals = equals or at
            else:
                to = self.behind(at)
                if self.bare[at] == "{" and keyword in classes:
                    body = (at + 1, to - 1)
                elif self.bare[at] == "{" and paren and not (colon and re.search(r"[\w>]$", before)) and \
                        not re.search(r"\brequires(\s+requires\s*\([^()]*\))?$", before):
                    body = (at + 1, to - 1)
                    while handler := self.here(r"\s*catch\s*\([^()]*\)\s*", to):
                        to = self.behind(handler.end())
                    return start, keyword, paren, colon, body, to
                elif self.bare[at] == "(" and not paren and not equals and not re.search(
                        r"\b(alignas|decltype|requires|noexcept)$|<[^>]*$", before):
                    paren = at
            at = to
        return start, keyword, paren, colon, body, at + 1

    def declaration(self, begin, owner, above, line):
        """The item that begins there, or None if it is to be left out, and where it ends."""
        start, keyword, paren, colon, body, end = self.extent(begin)
        code = self.text[begin:colon or (body[0] - 1 if body else end - 1)].rstrip()
        whole = body and keyword and (keyword == "enum" or "\n" not in self.text[begin:end])
        if whole:
            code = self.text[begin:end - 1]
        indent = "\n" + " " * (begin - self.text.rfind("\n", 0, begin) - 1)
        code = re.sub(r"\s+try$", "", code).replace(indent, "\n").replace("///<", "//")
        code += "" if keyword in classes and body and not whole else ";"

        def item(kind, *names, parts=(), bases=()):
            return Item(kind, names, code, above, line, parts, bases), end

        if keyword in ("static_assert", "friend", "extern"):
            return None, end
        if keyword in classes:
            aligned = r"(?:alignas\((?:[^()]|\([^()]*\))*\)\s*)?"
            name, then = self.here(r"\w+(?: class| struct)?\s+" + aligned + r"([\w:]+)\s*(.)", start).groups()
            if then == "<":  # a specialization
                return None, end
            bases = re.findall(r"public\s+(?:detail::)?(\w+)", self.bare[start:body[0]]) if body else []
            parts = self.scope(*body, name.split("::")[-1], keyword != "class") if body and not whole else []
            return item("enum" if keyword == "enum" else "class", name, parts=parts, bases=bases)
        if keyword:
            name = self.here(r"\w+\s+(?:typename\s+)?([\w:]+)", start)[1].split("::")[-1]
            return item(keyword, name, bases=re.findall(r"^using \w+ = (\w+)", self.bare[start:end]))
        if paren:
            name = re.search(r"(operator\s*\S+|[\w:~]+)\s*$", self.bare[start:paren])[1]
            guide = self.here(r"\s*->", self.behind(paren)) and "auto" not in self.bare[start:paren]
            if "::" in name:  # defined outside of its class
                return None, end
            return item("made" if guide or name.lstrip("~") == owner else "function", name)
        flat = re.sub(r"<[^<>]*(<[^<>]*>[^<>]*)*>", lambda m: " " * len(m[0]), self.bare[start:end - 1])
        while nested := re.search(r"\([^()]*\)|\{[^{}]*\}|\[[^][]*\]", flat):
            flat = flat[:nested.start()] + "=" * len(nested[0]) + flat[nested.end():]
        return item("variable", *(re.findall(r"\w+", part.split("=")[0])[-1] for part in flat.split(",")))


def united(items):
    """Without forward declarations; a class that was defined outside of its own is in there."""
    for item in [i for i in items if i.kind == "class" and "::" in i.names[0]]:
        outer, inner = item.names[0].split("::")
        for part in [p for i in items if i.names == (outer,) for p in i.parts if p.names == (inner,)]:
            part.above, part.parts, part.code = item.above, item.parts, item.code
        items.remove(item)
    full = {i.names for i in items if i.kind == "class" and i.parts}
    return [i for i in items if i.kind != "class" or i.parts or i.names not in full]
