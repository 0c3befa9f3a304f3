"""The documentation as a site: what is generated from the code is whole, links lead somewhere, and messages are real.

The whole site is built by one test of these, as `make docs` does; all others need no Sphinx.
"""

from __future__ import annotations

import ast
import re
import runpy
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from anabranch.cli.parser import command_parser
from anabranch.cli.remote import remote_parser
from anabranch.site import read_site
from test_docs import PAGES, TOP, Block, blocks

DOCS = TOP / "docs"
SITE = runpy.run_path(str(TOP / "scripts/docs.py"))
OURS = [*(DOCS / "howto").glob("*.md"), DOCS / "tutorial.md", DOCS / "faq.md", TOP / "deploy/README.md"]


def generated(name: str) -> str:
    """The part of a page that the code gives."""
    text: str = SITE["GENERATORS"][name]()
    return text


# --- what is generated ------------------------------------------------------------------------------------


def test_the_command_line_is_whole() -> None:
    """Each command and each option that a parser knows is in the reference, and `--url` has its own."""
    text = generated("command_line")
    for command in ("query", "explain", "run", "answer", "network run", "generate photons", "demo", "bench"):
        assert f"\n## anabranch {command}\n" in f"\n{text}\n", command
    for option in ("--dead-letter FILE", "--master URL", "--engine {local,spark,reference}", "--partition N"):
        assert f"`{option}`" in text, option
    assert "%(" not in text
    assert "\n## anabranch --url URL subscribe\n" in text


def test_every_key_of_a_site_is_told() -> None:
    """The reference has each key that the reader of SITE.toml asks for anywhere in its code, with a meaning."""
    asked = {each.name for each in SITE["asked_keys"]()}
    written = set()
    for module in ("site.py", "stream/reading/toml_tables.py"):
        tree = ast.parse((TOP / "src/anabranch" / module).read_text(encoding="utf-8"))
        written |= {key for node in ast.walk(tree) if isinstance(node, ast.Call) for key in keys_of(node)}
    tables = {"engine", "streams", "subscriptions", "functions", "documents", "kafka", "http"}
    assert written - tables - asked == set()
    assert set(SITE["told_keys"]()) == {(each.table, each.name) for each in SITE["asked_keys"]()}
    assert len(re.findall(r"^\| `", generated("site_keys"), re.M)) > 50


def keys_of(call: ast.Call) -> list[str]:
    """The keys that a call asks a table for."""
    asking = ("text", "needed", "where", "path", "named", "paths", "whole", "amount", "flag", "take")
    match call:
        case ast.Call(func=ast.Attribute(attr=method), args=[ast.Constant(value=str(key)), *_]) if method in asking:
            return [key]
        case ast.Call(func=ast.Name(id="sized"), args=[_, ast.Constant(value=str(key)), *_]):
            return [key]
    return []


@pytest.mark.mass
def test_the_service_is_told_from_its_own_description() -> None:
    """Each path and method of the OpenAPI document has a heading, with the statuses that it may have."""
    from anabranch.service.app import routes

    text = generated("http_api")
    wanted = [
        f"### `{method.upper()} {path}`" for path, methods in routes().openapi()["paths"].items() for method in methods
    ]
    assert len(wanted) > 15
    assert [each for each in wanted if each not in text] == []


def test_the_metrics_are_those_that_are_given() -> None:
    """The reference names the metrics that the service gives, each with its help."""
    rows = [line for line in generated("metrics").splitlines() if line.startswith("| `anabranch_")]
    assert len(rows) > 10
    assert [row for row in rows if row.split(" | ")[-1].strip(" |") == ""] == []


def test_a_page_is_completed_as_it_is_read() -> None:
    """Links of a file that lies elsewhere lead to the pages of the site, and addresses stay what they are."""
    text = "[a](docs/running.md#sinks) [b](CONTRIBUTING.md) [c](https://example.org/x.md) [d](#here) [e](docs/a.svg)"
    linked = SITE["linked"](text, "ARCHITECTURE.md", "docs/project/architecture.md")
    assert (
        linked == "[a](../running.md#sinks) [b](contributing.md) [c](https://example.org/x.md) [d](#here) [e](../a.svg)"
    )
    assert SITE["linked"]("[r](../README.md)", "docs/storage.md", "docs/storage.md") == "[r](project/readme.md)"


# --- pages ------------------------------------------------------------------------------------------------


def test_links_lead_somewhere() -> None:
    """Each relative link on a page leads to a file that is there."""
    broken = []
    for page in [*PAGES, *TOP.glob("*.md"), TOP / "deploy/README.md"]:
        text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
        for target in re.findall(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)", re.sub(r"`[^`\n]*`", "", text)):
            if not re.match(r"[a-z]+:", target) and not (page.parent / target).exists():
                broken.append(f"{page.relative_to(TOP)}: {target}")
    assert broken == []


def test_every_page_is_in_the_site() -> None:
    """Each page in docs/ is named by a table of contents, so that readers find it."""
    listed = {"index"}
    for index in (DOCS / "index.md", DOCS / "design/index.md"):
        for tree in re.findall(r"^:::\{toctree\}\n(.*?)^:::$", index.read_text(encoding="utf-8"), re.M | re.S):
            lines = [line for line in tree.splitlines() if line and not line.startswith(":")]
            entries = [re.sub(r".*<(.*)>", r"\1", line) for line in lines]
            for entry in entries:
                listed |= {str(each.relative_to(DOCS).with_suffix("")) for each in index.parent.glob(f"{entry}.md")}
    assert {str(each.relative_to(DOCS).with_suffix("")) for each in DOCS.rglob("*.md")} - listed == set()


@pytest.mark.parametrize("page", OURS, ids=lambda page: page.name)
def test_commands_on_pages_can_be_parsed(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each `anabranch` command of a how-to has the commands and options that there are."""
    commands = [line for block in blocks(page) for line in lines_of(block)]
    for line in commands:
        words = shlex.split(line, comments=True)[1:]
        parser = remote_parser() if words[0].startswith("--") else command_parser()
        assert parser.parse_args(words).run, line


def lines_of(block: Block) -> list[str]:
    """The lines of a shell's block that call `anabranch`, put together where they go on."""
    if block.kind not in ("sh", "console"):
        return []
    text = block.text.replace("\\\n", " ")
    lines = text.splitlines() if block.kind == "sh" else [line[2:] for line in text.splitlines() if line[:2] == "$ "]
    return [line for line in lines if re.match(r"(\S*/)?anabranch ", line)]


@pytest.mark.parametrize("page", sorted((DOCS / "howto").glob("*.md")), ids=lambda page: page.name)
def test_sites_of_how_tos_can_be_read(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A SITE.toml of a how-to is one that is taken, with the queries and folders beside it; modules compile."""
    files = [each for each in blocks(page) if "file" in each.options]
    for folder in ("in", "secrets"):
        (tmp_path / folder).mkdir()
    for block in files:
        (tmp_path / block.options["file"]).write_text(f"{block.text}\n")
    monkeypatch.setenv("KAFKA_PASSWORD", "sixteen characters")
    for block in files:
        if block.kind == "toml":
            assert read_site(tmp_path / block.options["file"]).subscriptions
        elif block.kind == "python":
            compile(block.text, block.place, "exec")


# --- messages ---------------------------------------------------------------------------------------------

PREFIX = r"(?:anabranch: |hint: )?(?:'[^']*'(?:, line \d+)?, (?:\[[\w.]+\]|the file): )?(?:[\w.]+:\d+:\d+: )?"
SUFFIX = r"(?: \[[A-Z]{4}\d{4}\])?"


@cache
def spoken() -> list[re.Pattern[str]]:
    """All texts in the code that could be messages; what they put in may be anything."""
    found = set()
    for path in (TOP / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Constant(value=str(text)) if len(text) >= 8 and "\n" not in text:
                    found.add(re.escape(text))
                case ast.JoinedStr(values=parts):
                    texts = [str(each.value) if isinstance(each, ast.Constant) else "" for each in parts]
                    if sum(map(len, texts)) >= 7:
                        found.add("".join(re.escape(text) or ".*" for text in texts))
    return [re.compile(each) for each in found]


def is_spoken(line: str) -> bool:
    """Whether the code has this message; one that is put together has parts, each of which it has."""
    bare = re.sub(f"{SUFFIX}$", "", re.sub(f"^{PREFIX}", "", line))
    return any(pattern.fullmatch(bare) for pattern in spoken()) or (
        ", " in bare and all(map(is_spoken, bare.split(", ")))  # as in the line that ends `query`
    )


@pytest.mark.mass  # all of the code is read
def test_questions_quote_messages_that_there_are() -> None:
    """Each line of each message in the FAQ is one that the code can say, and a changed word is noticed."""
    quoted = [line for block in blocks(DOCS / "faq.md") if block.kind == "" for line in block.text.splitlines()]
    assert len(quoted) > 40
    assert [line for line in quoted if not is_spoken(line)] == []
    assert not is_spoken("anabranch: the checkpoint 'state' belonged to the site 'SITE.toml', not to 'OTHER.toml'")
    assert not is_spoken("anabranch: 'SITE.toml', line 5, [streams.orders]: 'tme' is not known")


# --- the site ---------------------------------------------------------------------------------------------


@pytest.mark.mass
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    """All pages become a site with a search, nothing of which is fetched from elsewhere."""
    done = subprocess.run(
        [sys.executable, str(TOP / "scripts/docs.py"), str(tmp_path / "site")],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    site = tmp_path / "site"
    assert (site / "searchindex.js").stat().st_size > 100_000
    pages = {each.relative_to(site).with_suffix(".md") for each in site.rglob("*.html")}
    assert {each.relative_to(DOCS) for each in DOCS.rglob("*.md")} <= pages
    fetched: list[Any] = []
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        fetched += re.findall(r"<(?:script|img|iframe)[^>]* src=\"(?:https?:)?//[^\"]*\"", text)
        fetched += re.findall(r"<link[^>]* rel=\"(?:stylesheet|preload)\"[^>]* href=\"(?:https?:)?//[^\"]*\"", text)
    assert fetched == []
    reference = (site / "reference/python.html").read_text(encoding="utf-8")
    assert 'id="anabranch.Engine.subscribe"' in reference
