#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""Builds the documentation as a web site with search, and checks its links.

usage: site.py project-root folder     writes folder/index.html; folder.venv gets MkDocs from PyPI at the first run

The pages are README.md and all Markdown of docs/ and examples/, where they are in the project. A source file that a
page links to becomes a page with its code. The API reference is that of reference.py. The menus follow docs/index.md
and docs/learn/README.md. Nothing is loaded from the network, and a browser needs no server: folder/index.html can be
opened as a file. A link or an anchor that does not exist in the result is an error, and so is a search that does not
find what it must find. Without PyPI the exit status is 77.

MkDocs' own theme needs 15 packages (8 seconds to install), Material for MkDocs 28. Python-Markdown differs from what
GitHub renders; `adapted` has the differences that occur here."""
import fcntl
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse
import venv

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

requirements = ["mkdocs==1.6.1", "pygments==2.21.0"]
must_find = {"adamw": "docs/optimizers/adam.html#adamw", "loss scale": "docs/mixed_precision.html#loss-scale",
             "YellowFin": "docs/optimizers/no_rate.html#yellowfin", "clip_norm": "reference/policies.html#clip_norm"}
# Words that readers search for and that an entry lacks: the title of a page or a section, or a name of the reference.
also = {"Mixed precision": "fp16 float16 bf16 amp apex autocast", "half": "fp16 float16", "bfloat16": "bf16",
        "ema": "exponential moving average evaluation polyak", "swa": "stochastic weight averaging evaluation",
        "A policy of your own": "custom", "accumulate": "micro-batches", "clip_norm": "clipping clip_grad_norm",
        "Data parallelism": "ddp multi-gpu distributed zero fsdp horovod", "replicated": "ddp", "sharded": "zero fsdp",
        "When ranks fail": "hang hangs timeout deadlock", "Overlap": "ddp buckets", "CUDA graph capture": "cudaGraph",
        "Checkpoints": "save load resume restart", "Performance": "fast speed benchmarks"}
asked = {"cautious": "cautious_decay", "fp16": "Train in half (fp16) with a loss scale and masters", "amp": "Mixed precision", "float16": "half", "ema evaluation": "ema",
         "own policy": "A policy of your own", "custom policy": "A policy of your own", "ddp": "Data parallelism",
         "job hangs": "When ranks fail", "how do I freeze": "Other settings during the run", "csv": "csv_numbers"}
languages = {".cu": "cuda", ".cuh": "cuda", ".hpp": "c++", ".cpp": "c++", ".h": "c", ".py": "python", ".sh": "sh",
             ".build": "meson", ".js": "js", ".css": "css", ".html": "html"}
as_they_are = {".html", ".svg", ".png", ".csv", ".json", ".jsonl"}


def skip(why):
    print("skipped:", why)
    sys.exit(77)


def python_with_mkdocs(home):
    """The Python of the virtual environment `home`, which the first run creates."""
    done = home / "installed"
    home.parent.mkdir(parents=True, exist_ok=True)
    with open(home.with_suffix(".lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if done.exists() and done.read_text(encoding="utf-8").split() == requirements:
            return home / "bin" / "python"
        try:
            venv.create(home, clear=True, with_pip=True)
            subprocess.run([home / "bin" / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check",
                            "--retries", "1", "--timeout", "20", *requirements],
                           stderr=subprocess.PIPE, text=True, check=True, timeout=600)
        except (OSError, subprocess.TimeoutExpired) as error:
            skip(f"there is no MkDocs, and it cannot be installed: {error}")
        except subprocess.CalledProcessError as error:
            skip(f"there is no MkDocs, and pip cannot install {' '.join(requirements)}:\n{error.stderr}")
        done.write_text("\n".join(requirements), encoding="utf-8")
        return home / "bin" / "python"


class Pages:
    """The Markdown that MkDocs gets, in the folder `to`."""

    def __init__(self, root, to):
        self.root, self.to, self.sources, self.wrong = root, to, set(), []
        pages = [root / "README.md", *root.glob("docs/**/*.md"), *root.glob("examples/**/*.md")]
        self.documents = sorted(page.relative_to(root) for page in pages)
        for page in self.documents:
            self.write(page, self.adapted(page))
        done = set()
        while self.sources - done:  # the page of a folder links to more files
            for path in self.sources - done:
                done.add(path)
                self.write_source(path)
        if self.wrong:
            sys.exit("\n".join(["site.py: links to what is not there:", *self.wrong]))

    def write(self, path, text):
        path = self.to / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def link(self, page, link):
        """The link in the site's pages. Files without Markdown are pages of their own."""
        if re.match(r"[a-z]+:|#", link):
            return link
        path, mark, anchor = link.partition("#")
        target = pathlib.Path(os.path.relpath((self.root / page).parent / urllib.parse.unquote(path), self.root))
        if not (self.root / target).exists():
            self.wrong.append(f"{page}: {link}")
            return link
        if target.suffix == ".md":
            return link
        if (self.root / target).is_dir():
            if not (self.root / target / "README.md").exists():
                self.sources.add(target)
                return path.rstrip("/") + "/index.md"
            return path.rstrip("/") + "/README.md" + mark + anchor
        if target.suffix in as_they_are:
            (self.to / target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.root / target, self.to / target)
            return path + mark + anchor
        self.sources.add(target)
        return path + ".md"

    def adapted(self, page):
        """A page as Python-Markdown needs it: a blank line before lists and tables, one word behind ```, code in a list
        as an indented block, Markdown inside of <details>. Comments are left out."""
        out, fence = [], None
        for line in (self.root / page).read_text(encoding="utf-8").splitlines():
            if found := re.match(r"( *)```(\S*)", line):
                if fence is not None:
                    fence = None
                    out.append("" if found[1] else "```")
                else:
                    fence = found[1]
                    out += ["", "        :::" + (found[2] or "text")] if fence else ["```" + found[2]]
            elif fence is not None:
                out.append("        " + line[len(fence):] if fence else line)
            elif not re.fullmatch(r"<!--.*-->", line):
                before = out[-1] if out else ""
                starts = re.match(r"(- |\d+\. |\|)", line)
                if starts and before and not before.startswith((" ", starts[1][-1:] if line[0] == "|" else line[0])):
                    out += [""] * (not re.match(r"\d+\. ", before))
                out.append(self.linked(page, line.replace("<details>", '<details markdown="1">')))
            elif out and out[-1]:
                out.append("")
        return "\n".join(out) + "\n"

    def linked(self, page, line):
        code = []  # in code, `[](auto x)` is no link
        line = re.sub(r"`[^`]*`", lambda m: f"\0{code.append(m[0]) or len(code) - 1}\0", line)
        line = re.sub(r"(\]\(<?)([^)<> ]+)(>?\))", lambda m: m[1] + self.link(page, m[2]) + m[3], line)
        line = re.sub(r'((?:href|src)=")([^"]+)', lambda m: m[1] + self.link(page, m[2]), line)
        return re.sub(r"\0(\d+)\0", lambda m: code[int(m[1])], line)

    def write_reference(self):
        """Writes a page for each page of reference.py: a heading for each header, and a mark where its text belongs.
        Returns the menu of these pages, and the parts of each: the text above the first heading, then those below."""
        folder = self.to / "reference"
        made = subprocess.run([sys.executable, self.root / "tests/docs/reference.py", self.root, folder], check=False)
        if made.returncode:
            sys.exit("site.py: reference.py could not write the API reference")
        menu, parts = [], {}
        for path in sorted(folder.glob("*.html"), key=lambda path: (path.stem != "index", path.stem)):
            text = path.read_text(encoding="utf-8")
            title, body = re.search(r"<h1>(.*?)</h1>\n(.*)</html>", text, re.S).groups()
            first, *rest = re.split(r"^<h2>(.*?)</h2>\n", body, flags=re.M)
            names = [re.sub(r"<[^>]*>|&lt;[^<]*/|&gt;", "", heading) for heading in rest[::2]]
            rest[::2] = [re.sub(r"(<a [^>]*>).*(</a>)", r"\1Declarations\2", heading) for heading in rest[::2]]
            parts[f"reference/{path.name}"] = [first, *(
                f"<p>{heading}</p>\n{text}" for heading, text in zip(rest[::2], rest[1::2]))]
            marks = [f"# {title}\n\nREFERENCE0", *(f"## {name}\n\nREFERENCE{i}" for i, name in enumerate(names, 1))]
            self.write(f"reference/{path.stem}.md", "\n\n".join(marks) + "\n")
            menu.append({title if path.stem != "index" else "All names": f"reference/{path.stem}.md"})
            path.unlink()
        return menu, parts

    def write_source(self, path):
        whole = self.root / path
        if whole.is_dir():
            names = sorted(child.name + "/" * child.is_dir() for child in whole.iterdir())
            lines = [f"- [{name}]({self.link(path / 'index.md', name)})" for name in names]
            self.write(path / "index.md", f"# {path}\n\n" + "\n".join(lines) + "\n")
        else:
            code, bar = whole.read_text(encoding="utf-8").rstrip("\n"), "~" * 12
            language = languages.get(path.suffix, "text")
            self.write(f"{path}.md", f"# {path.name}\n\n`{path}`\n\n{bar}{language}\n{code}\n{bar}\n")

    def menus(self, reference, lab):
        """For each section of docs/index.md its pages, each page once."""
        seen, menu = set(), [{"descent": "README.md"}]

        def entries(page, text, within=""):
            for title, link in re.findall(r"\[([^]]+)\]\(([^)#\s]+\.md)\)", text):
                path = os.path.normpath(os.path.join(os.path.dirname(page), link))
                if path not in seen and path.startswith(within) and pathlib.Path(path) in self.documents:
                    seen.add(path)
                    yield {title[0].upper() + title[1:]: path}
                    yield from entries(path, read(path), path.removesuffix(".md") + "/")  # an index and its folder

        def read(path):
            return (self.root / path).read_text(encoding="utf-8")

        seen.update(["README.md", "docs/index.md", "docs/learn/README.md"])
        learn = [{"The course": "docs/learn/README.md"},
                 *entries("docs/learn/README.md", read("docs/learn/README.md"), "docs/learn")]
        menu.append({"Learn": learn})
        seen.update(str(path) for path in self.documents if str(path).startswith("docs/learn/"))
        for section in re.split(r"^## ", read("docs/index.md"), flags=re.M)[1:]:
            title, _, text = section.partition("\n")
            pages = list(entries("docs/index.md", text))
            short = title.split(" and ")[0].split()[-1].capitalize()  # all titles fit into one line
            menu += [{short: pages}] if pages else []
        rest = [str(path) for path in self.documents if str(path) not in seen]
        more = [{"All pages by reader": "docs/index.md"}, *rest]
        return [*menu, {"More": more}, {"Reference": reference}, {"Lab": lab}]


class Reader(html.parser.HTMLParser):
    """The links and the anchors of a page, and for a page of the reference its entries: anchor, title, text."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors, self.entries, self.titled = [], {"", "top"}, [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.anchors |= {value for name, value in attrs if name in ("id", "name") and value}
        self.links += [value for name, value in attrs if name in ("href", "src") and value]
        if tag == "a" and "id" in attributes and "." not in attributes["id"]:
            self.entries.append([attributes["id"], ""])

    def handle_data(self, data):
        if self.entries:
            self.entries[-1][1] += data


def wrong_links(site):
    """Links of the built pages to what does not exist in the site."""
    pages = {path: Reader(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    count = 0
    for path, page in sorted(pages.items()):
        if path.name in ("lab.html", "404.html"):  # the lab's are in its script, and the server decides where 404 is
            continue
        for link in page.links:
            address, _, anchor = link.partition("#")
            address = address.partition("?")[0]
            if re.match(r"[a-z]+:", link):
                continue
            count += 1
            target = pathlib.Path(os.path.normpath(path.parent / urllib.parse.unquote(address))) if address else path
            if not target.is_file():
                yield f"{path.relative_to(site)}: {link} does not exist"
            elif target.name == "lab.html" and "=" in anchor:  # a state of the lab, which its script reads
                continue
            elif target in pages and urllib.parse.unquote(anchor) not in pages[target].anchors:
                yield f"{path.relative_to(site)}: {link}: there is no such anchor"
    print(f"{len(pages)} pages, {count} links")
    if count < 5000:
        yield f"only {count} links"


def github_name(text, _):
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def insert(site, reference):
    """The texts of the API reference, at their marks."""
    for location, parts in reference.items():
        path = site / location
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub(r"<p>REFERENCE(\d+)</p>", lambda mark: parts[int(mark[1])], text), encoding="utf-8")


def give_sizes(site):
    """Width and height for each picture, so that a page does not move below an anchor while they load. A width that is
    given stays. And in a table, a number stays on one line with its unit."""
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")

        def sized(image, page=path):
            picture = page.parent / urllib.parse.unquote(image[2])
            box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', picture.read_text(encoding="utf-8")[:1000])
            if not box:
                return image[0]
            if given := re.search(r' width="(\d+)"', image[1]):
                return f'{image[1]}{image[2]}" height="{float(given[1]) * float(box[2]) / float(box[1]):.0f}"'
            return f'{image[1]}{image[2]}" width="{box[1]}" height="{box[2]}"'
        if path.name != "lab.html":
            text = re.sub(r'(<img [^>]*src=")([^":]+\.svg)"', sized, text)
            text = re.sub(r"(?<=>)\d[^<]{0,14}(?=</td>)", lambda cell: cell[0].replace(" ", "&nbsp;"), text)
            path.write_text(text, encoding="utf-8")


def link_lab(site):
    """A way back from the lab, which is a page without menus."""
    path = site / "docs/learn/lab.html"
    title, link = "<h1>The lab</h1>", '<a style="color: inherit" href="index.html">descent: the course</a>'
    text = path.read_text(encoding="utf-8").replace(title, f"<p>{link}</p>\n{title}", 1)
    path.write_text(text, encoding="utf-8")


search_script = """// Searches in the page itself, so that it also works without a server. MkDocs' own script needs one.
document.addEventListener('DOMContentLoaded', function () {
  var input = document.getElementById('mkdocs-search-query'), list = document.getElementById('mkdocs-search-results');
  var index, pages = {};
  function load(name, then) {
    var script = document.createElement('script');
    script.src = base_url + '/search/' + name;
    script.onload = then;
    document.head.append(script);
  }
  function node(tag, text, parent) {
    var made = parent.appendChild(document.createElement(tag));
    made.textContent = text;
    return made;
  }
  function excerpt(text, word) {
    var at = Math.max(0, text.toLowerCase().indexOf(word.toLowerCase()) - 80);
    return (at ? '\\u2026 ' : '') + text.slice(at, at + 240) + (at + 240 < text.length ? ' \\u2026' : '');
  }
  function search() {
    list.replaceChildren();
    if (input.value.trim().length < 2) return;
    var found = find(index, input.value), words = lunr.tokenizer(input.value).map(String);
    if (!found.length) node('p', list.dataset.noResultsText || 'No results found', list);
    found.slice(0, 40).forEach(function (one) {
      var page = pages[one.ref], article = node('article', '', list), title = node('h3', '', article);
      node('a', page.title, title).href = base_url + '/' + page.location;
      node('small', page.of || '', article);
      node('p', excerpt(page.text, words[0]), article);
    });
  }
  function start() {
    if (index) return search();
    load('lunr.js', function () {
      load('search_index.js', function () {
        index = build_index(search_pages);
        search_pages.forEach(function (page) { pages[page.location] = page; });
        search();
      });
    });
  }
  input.addEventListener('input', start);
  input.addEventListener('focus', start);
});
"""
# The index, in which a name with underscores is found by its words, too; and a search: entries with all words that are
# not as common as "how" and "of", else entries in which a word begins with one of them.
build_index = """function build_index(pages) {
  lunr.tokenizer.separator = /[^\\w.]+|\\.(?!\\d)/;
  return lunr(function () {
    this.pipeline.remove(lunr.stopWordFilter);
    this.tokenizer = function (text, metadata) {
      var all = [];
      lunr.tokenizer(text, metadata).forEach(function (token) {
        all.push(token);
        var parts = String(token).split('_').filter(Boolean);
        if (parts.length > 1) parts.forEach(function (part) { all.push(token.clone(function () { return part; })); });
      });
      return all;
    };
    this.ref('location'), this.field('title', {boost: 10}), this.field('also', {boost: 8}), this.field('text');
    pages.forEach(function (page) { this.add(page); }, this);
  });
}
function find(index, input) {
  var words = lunr.tokenizer(input).map(String).filter(Boolean);
  var rare = words.filter(function (word) { return lunr.stopWordFilter(new lunr.Token(word)); });
  if (!words.length) return [];
  var found = index.query(function (query) {
    words.forEach(function (word) {
      var needed = !rare.length || rare.indexOf(word) >= 0;
      query.term(word, {boost: 10, usePipeline: true, wildcard: lunr.Query.wildcard.NONE,
        presence: needed ? lunr.Query.presence.REQUIRED : lunr.Query.presence.OPTIONAL});
    });
  });
  return found.length ? found : index.query(function (query) {
    (rare.length ? rare : words).forEach(function (word) {
      query.term(word, {wildcard: lunr.Query.wildcard.TRAILING, usePipeline: false});
    });
  });
}
"""


def write_search(site, reference):
    """MkDocs' index without the pages of source files and with the reference's entries, and the script that uses it."""
    with open(site / "search/search_index.json", encoding="utf-8") as file:
        pages = json.load(file)["docs"]
    documents = re.compile(r"(index|(docs|examples)/[^.]*)\.html")  # a source file's page has its suffix in its name
    pages = [page for page in pages if documents.match(page["location"] or "index.html")]
    titles = {page["location"]: page["title"] for page in pages if "#" not in page["location"]}
    for page in pages:
        page["of"] = titles.get(page["location"].partition("#")[0], "") if "#" in page["location"] else ""
    for location, parts in sorted(reference.items()):
        for name, text in Reader("".join(parts)).entries:
            pages.append({"location": f"{location}#{name}", "title": name, "text": " ".join(text.split()),
                          "of": "API reference"})
    for page in pages:
        page["also"] = also.get(page["title"], "")
    for name in ("search_index.json", "worker.js"):
        (site / "search" / name).unlink()
    script = f"var search_pages = {json.dumps(pages, ensure_ascii=False)};\n{build_index}"
    (site / "search/search_index.js").write_text(script, encoding="utf-8")
    (site / "search/main.js").write_text(search_script, encoding="utf-8")
    return pages


def unfound(site, pages):
    """What the search must find among the first ten and does not: with node by the page's own index, else by looking
    into the pages."""
    node, titles = shutil.which("node"), {page["location"]: page["title"] for page in pages}
    for title in also.keys() - set(titles.values()):
        yield f"there is no page, section or name {title}, whose words `also` has"
    queries = [*((words, location, None) for words, location in must_find.items()),
               *((words, None, title) for words, title in asked.items())]
    script = (f"const fs = require('fs'), lunr = require({json.dumps(str(site / 'search/lunr.js'))});"
              f"eval(fs.readFileSync({json.dumps(str(site / 'search/search_index.js'))}, 'utf8') + "
              "';globalThis.index = build_index(search_pages), globalThis.find = find');"
              f"for (const words of {json.dumps([query[0] for query in queries])})"
              " console.log(find(index, words).slice(0, 10).map(x => x.ref).join(' '))")
    if node:
        run = subprocess.run([node, "-e", script], capture_output=True, text=True, check=False)
        if run.returncode:
            yield f"the search fails in node: {run.stderr.strip()}"
            return
        lines = run.stdout.split("\n")
    for i, (words, location, title) in enumerate(queries):
        found = lines[i].split() if node else [page["location"] for page in pages if all(
            word in (page["title"] + page["text"] + page["also"]).lower() for word in words.lower().split())]
        if not (location in found or title in [titles[ref] for ref in found]):
            yield f"searching {words} does not find {location or title} but {' '.join(found)}"


style = """
/* The theme's blue has a contrast of 2.8 to white, and its grid runs behind the text. */
:root:not([data-bs-theme=dark]) { --bs-link-color: #0b66a8; --bs-link-color-rgb: 11, 102, 168;
  --bs-link-hover-color: #084c7d; --bs-link-hover-color-rgb: 8, 76, 125; }
.navbar.bg-primary { background: #17649b !important; --bs-navbar-color: #e8f1f8; }
body::before { display: none; }
pre { padding: .6em .8em; overflow-x: auto; border-radius: 6px; background: var(--bs-tertiary-bg);
  font-size: .75rem; }
pre code { white-space: pre; overflow-wrap: normal; padding: 0; background: none; border: 0; color: inherit;
  font-size: inherit; }
code { overflow-wrap: anywhere; -webkit-box-decoration-break: clone; box-decoration-break: clone; }
a { text-underline-offset: .3em; }
a:has(> code) { text-decoration: none; }  /* a line under the name hides its underscores */
a > code { border-color: currentColor; }
td code { overflow-wrap: normal; }
.bs-sidebar:not(:has(li)) { display: none; }
.bs-sidebar .nav { flex-shrink: 0; flex-wrap: nowrap; }
.bs-sidebar .nav-link { overflow-wrap: anywhere; }
.bs-sidebar .navbar-toggler { padding: .3rem .7rem; font-size: .95rem; color: inherit;
  border: 1px solid var(--bs-border-color); }
.bs-sidebar .navbar-toggler::before { content: "On this page "; }
@media (min-width: 768px) { #toc-collapse { max-height: calc(100vh - 3.5rem - 40px); overflow-y: auto; } }
table { display: block; overflow-x: auto; max-width: 100%; }
.table { font-size: .92em; }
.table > :not(caption) > * > * { padding: .3rem .5rem; }
pre.formula { background: none; }
.l4, .l5 { margin-left: 1.5em; }
#mkdocs-search-results h3 { font-size: 1.25rem; margin: 1rem 0 0; }
#mkdocs-search-results h3 a { text-decoration: none; }
.l3 h3, .l4 h4 { margin-top: 1.4em; }
.col-md-9 img { max-width: 100%; height: auto; border: 0; border-radius: 6px; padding: 0; background: none;
  margin: .4em 0 .6em; }
.table:has(td img) { --bs-table-striped-bg: transparent; }
.table:has(td img) thead { display: none; }
.table:has(td img) td { border: 0; }
@media (max-width: 767px) {
  .bs-sidebar .navbar-header { margin-bottom: .8rem; }
  .table th, .table td { min-width: 4.5em; }
  .table th:first-child, .table td:first-child { min-width: 8.5em; }
  .table:has(td img) tbody { display: flex; flex-wrap: wrap; }
  .table:has(td img) tr { display: contents; }
  .table:has(td img) td { flex: 0 0 50%; }
  .table:has(td img) td:empty { display: none; }
  table.names tr, table.names td { display: block; }
  .table.names td:first-child { border: 0; padding-bottom: 0; }
}
details { border: 1px solid var(--bs-border-color); border-radius: 6px; padding: .4em 1em; margin: 1em 0; }
summary { cursor: pointer; font-weight: 600; }
h1, h2, h3, h4 { overflow-wrap: anywhere; font-weight: 400; }
article small { color: var(--bs-secondary-color); }
.navbar-nav > li:first-child > a[href$="index.html"] { display: none; }  /* the name of the site is that link */
@media (min-width: 992px) {
  [rel=prev], [rel=next] { font-size: 0; display: flex; align-items: center; height: 2.5rem; }
}
[rel=prev] i, [rel=next] i { font-size: 1rem; }
.dropdown-menu { max-height: 80vh; overflow-y: auto; }
@media print { .navbar, .bs-sidebar, footer { display: none !important; } }
"""


def build(root, site):
    """Everything in an environment that has MkDocs."""
    # pylint: disable=import-outside-toplevel
    import logging

    from mkdocs.commands.build import build as build_pages
    from mkdocs.config import load_config
    from mkdocs.exceptions import Abort
    from pygments.formatters import HtmlFormatter

    with tempfile.TemporaryDirectory() as folder:
        staged = pathlib.Path(folder) / "pages"
        pages = Pages(root, staged)
        menu, reference = pages.write_reference()
        light, dark = (HtmlFormatter(style=name).get_style_defs(f"[data-bs-theme={theme}] .codehilite")
                       for name, theme in (("default", "light"), ("github-dark", "dark")))
        colours = re.sub(r"^.*(background|line-height|linenos|\.hll).*$", "", light + "\n" + dark, flags=re.M)
        pages.write("site.css", style + colours)
        settings = pathlib.Path(folder) / "mkdocs.yml"
        settings.touch()
        config = load_config(
            config_file=str(settings), docs_dir=str(staged), site_dir=str(site),
            site_name="descent", use_directory_urls=False, strict=True, extra_css=["site.css"],
            theme={"name": "mkdocs", "highlightjs": False, "color_mode": "auto", "user_color_mode_toggle": True,
                   "navigation_depth": 3},
            nav=pages.menus(menu, "docs/learn/lab.html"),
            not_in_nav="*", plugins=["search"],
            validation={"nav": {"not_found": "ignore"}, "links": {"anchors": "warn", "unrecognized_links": "warn"}},
            markdown_extensions=["tables", "fenced_code", "md_in_html", "sane_lists",
                                 {"codehilite": {"guess_lang": False}},
                                 {"toc": {"slugify": github_name, "toc_depth": "2-3"}}])
        logging.basicConfig(level=logging.WARNING, format="%(message)s")
        try:
            build_pages(config)
        except Abort as error:
            sys.exit(f"site.py: MkDocs does not accept the pages, for the reasons above. {error}")
    insert(site, reference)
    give_sizes(site)
    link_lab(site)
    found = write_search(site, reference)
    colours = site / "js/darkmode.js"  # expects the style sheets of highlight.js
    colours.write_text(re.sub(r"^.*hljs.*\n", "", colours.read_text(encoding="utf-8"), flags=re.M), encoding="utf-8")
    return [*wrong_links(site), *unfound(site, found)]


def main():
    if len(sys.argv) < 3:
        sys.exit("usage: site.py project-root folder")
    root, site = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    for name in ("README.md", "docs/index.md", "docs/learn/README.md", "include/descent"):
        if not (root / name).exists():
            sys.exit(f"site.py: {root} is not the folder of the project: it has no {name}")
    try:
        if sys.argv[3:] != ["inside"]:
            with tempfile.TemporaryDirectory() as folder:
                Pages(root, pathlib.Path(folder))  # reports what is wrong with the pages before anything is installed
            python = python_with_mkdocs(site.with_name(site.name + ".venv"))
            sys.exit(subprocess.run([python, __file__, root, site, "inside"], check=False).returncode)
        start = time.perf_counter()
        problems = build(root, site)
    except OSError as error:
        sys.exit(f"site.py: {error}")
    print(f"{site / 'index.html'}: {time.perf_counter() - start:.0f} s, {len(problems)} problems", *problems, sep="\n")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
