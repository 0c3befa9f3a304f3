"""Everything that the README and the pages in docs/ show is run: an example that lies fails here.

A page is read from top to bottom, and its fenced blocks say by their first line what they are:

* `xml stream=NAME` (with `time=`, `unit=`, `slack=`, `origin=` and `domain=s:1,2` where wanted), `json stream=NAME` and
  `xml doc=NAME` are inputs, and `dtd stream=NAME` is a schema, for the rest of the page;
* `xquery` is a query and the `xml` or `json` block behind it the exact answer, but for line breaks between tags, which
  are layout; what the query warns of or sets aside, and why it has ended, stands in a `text` block behind that, and
  nothing where there is none; over a stream that evolves it is answered by a trunk, with `policy=` if it has one;
* `xquery also` has the same answer as the next query;
* `xquery timeline` is followed by a `json` block with what `--timeline` prints;
* `xquery error` is followed by a `text` block with the message;
* `xquery parses` is only parsed and checked; `input=NAME` behind any of the three leaves all other inputs away;
* `sql` is a query in SQL, with the same words;
* `python` shows one of the functions registered here.

Blocks for a shell or without a name are passed over, all others are an error.
Tables between `<!-- NAME -->` and `<!-- end -->` are compared with the code they are about.
`ANABRANCH_REWRITE_DOCS=1 pytest tests/test_docs.py` writes what came out into the pages; read the difference.
"""

from __future__ import annotations

import inspect
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeAlias

import pytest

import papers
from anabranch.endpoint.app import LONGEST_KEY
from anabranch.endpoint.settings import EndpointSettings
from anabranch.engine import inputs as given_inputs
from anabranch.engine.finite import answering
from anabranch.engine.preparing import prepare
from anabranch.engine.reading import looked_into, read_stream
from anabranch.engine.reports.timelines import timelines
from anabranch.errors import AnabranchError
from anabranch.language import ast, check, parse
from anabranch.language.checks.refusals import REFUSALS
from anabranch.language.checks.streams import MAX_OVERLAP
from anabranch.language.parsing.cursor import MAX_CHARACTERS, MAX_DEPTH
from anabranch.language.signatures import SIGNATURES
from anabranch.law import Input, document_input, evaluate, text_input
from anabranch.spark.spool.keys import KEY_SECONDS, MOST_KEYS
from anabranch.sql import Language, read_query
from anabranch.sql.refusals import SQL_REFUSALS
from anabranch.stream.elements import DeadLetter
from anabranch.stream.limits import LONGEST_NAME, Limits
from anabranch.stream.reading.parse import parse_document
from anabranch.stream.reading.reader import Format
from anabranch.stream.reading.source import Source, domains_of
from anabranch.stream.schema import Schema
from anabranch.stream.tree import Document
from anabranch.values.declared import declared_time
from spark.bare import BareTrunk

TOP = Path(__file__).parent.parent
PAGES = sorted([TOP / "README.md", *TOP.glob("docs/**/*.md")])
REWRITE = os.environ.get("ANABRANCH_REWRITE_DOCS") == "1"

SHELL = ("", "sh", "console")
FENCED = re.compile(r"^```(.*)\n((?:(?!```).*\n)*)```$", re.M)


# --- the functions that the pages register ----------------------------------------------------------------


def distance(a: float, b: float) -> float:
    """How far apart two places on a road are."""
    return abs(a - b)


def triangulate(a: float, b: float) -> float:
    """How far from the line through two radars, one apart, both see a vehicle, by their angles to it in degrees."""
    first, second = math.radians(a), math.radians(b)
    return round(math.sin(first) * math.sin(second) / math.sin(first + second), 3)


FUNCTIONS: Mapping[str, Callable[..., object]] = {"distance": distance, "triangulate": triangulate}


# --- reading pages ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Given:
    """An input of a page."""

    input: Input
    text: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    schema: Schema | None = None
    updates: bool = False
    format: Format = "document"

    def source(self, name: str, folder: Path) -> Source:
        """The same as a file."""
        (folder / name).write_text(self.text)
        path, _, values = self.settings.get("domain", "").partition(":")
        return Source(
            name,
            folder / name,
            self.format,
            self.schema,
            time=declared_time(self.settings.get("time"), self.settings.get("unit")),
            slack=Fraction(self.settings.get("slack", 0)),
            origin=Fraction(self.settings.get("origin", 0)),
            domains=domains_of({path: values.split(",")} if path else {}),
            updates=self.updates,
        )


Inputs: TypeAlias = dict[str, Given]


@dataclass(frozen=True)
class Block:
    """A fenced block: its number and first line on the page, the words behind the fence, and the text."""

    page: Path
    number: int
    line: int
    kind: str
    words: tuple[str, ...]
    text: str

    @property
    def options(self) -> dict[str, str]:
        return dict(word.split("=", 1) for word in self.words if "=" in word)

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(TOP)}:{self.line}"


@dataclass(frozen=True)
class Example:
    """A query with the inputs that hold at its place, and the blocks that say what comes out."""

    mode: Literal["answers", "timeline", "error", "parses"]
    query: Block
    inputs: Inputs
    expected: tuple[Block, ...]


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    fenced = list(FENCED.finditer(text))
    assert len(re.findall(r"^ *```", text, re.M)) == 2 * len(fenced), f"a fence stands alone in {page}"
    for number, found in enumerate(fenced):
        kind, *words = found[1].split() or [""]
        line = text.count("\n", 0, found.start()) + 2
        yield Block(page, number, line, kind, tuple(words), found[2].removesuffix("\n"))


def examples(page: Path) -> Iterator[Example]:
    inputs: Inputs = {}
    pending = list(blocks(page))
    while pending:
        block = pending.pop(0)
        match block.kind, block.words:
            case "xml" | "json", (word, *_) if word.startswith(("stream=", "doc=")):
                inputs = {**inputs, **given(block)}
            case "dtd", (word,) if word.startswith("stream="):
                stream = block.options["stream"]
                inputs = {**inputs, stream: replace(inputs[stream], schema=Schema.from_dtd(block.text))}
            case _, (word, *_) if word.startswith("file="):
                pass  # of a session, which has a test of its own
            case "xquery" | "sql", words:
                yield example(block, words, inputs, pending)
            case "python", ():
                sources = [inspect.getsource(each).strip() for each in FUNCTIONS.values()]
                assert block.text in sources, f"{block.place} is no function registered here"
            case kind, () if kind in SHELL:
                pass
            case _:
                raise AssertionError(f"{block.place} is of unknown kind '{' '.join((block.kind, *block.words))}'")


def given(block: Block) -> Inputs:
    match block.options:
        case {"stream": name} if block.kind == "json":
            text = f"{block.text}\n"
            if is_edited(name, text, "json"):
                return {name: Given(Input(Document()), text, updates=True, format="json")}
            return {name: Given(json_input(name, text), text, format="json")}
        case {"stream": name, **settings}:
            known = {key: value for key, value in settings.items() if key != "domain"}
            if is_edited(name, block.text):
                return {name: Given(Input(Document()), block.text, settings, updates=True)}
            return {name: Given(text_input(block.text, name=name, **known), block.text, settings)}  # type: ignore[arg-type]
        case {"doc": name}:
            return {name: Given(document_input(parse_document(block.text.encode())))}
    raise AssertionError(f"{block.place} is neither a stream nor a document")


def json_input(name: str, text: str) -> Input:
    """A stream of lines of JSON."""
    with TemporaryDirectory() as folder:
        (Path(folder) / name).write_text(text)
        return read_stream(Source(name, Path(folder) / name, "json"), Limits()).input


def is_edited(name: str, text: str, format: Format = "document") -> bool:
    """Whether a stream is one of updates."""
    with TemporaryDirectory() as folder:
        (Path(folder) / name).write_text(text)
        return looked_into(Source(name, Path(folder) / name, format), Limits()).updates


def example(block: Block, words: tuple[str, ...], inputs: Inputs, pending: list[Block]) -> Example:
    """The example that begins with `block`; what it expects is taken from `pending`."""
    only = block.options.get("input")
    known = {name: value for name, value in inputs.items() if only in (None, name)}
    match [word for word in words if "=" not in word]:
        case ["parses"]:
            return Example("parses", block, known, ())
        case ["also"]:
            following = next(each for each in pending if each.kind in ("json", "xml") and not each.words)
            return Example("answers", block, known, (following,))
        case ["timeline"]:
            return Example("timeline", block, known, taken("json", pending, block))
        case ["error"]:
            return Example("error", block, known, taken("text", pending, block))
        case []:
            is_json = bool(pending) and pending[0].kind == "json"
            answer = taken("json" if is_json else "xml", pending, block)
            notes = taken("text", pending, block) if pending and pending[0].kind == "text" else ()
            return Example("answers", block, known, (*answer, *notes))
    raise AssertionError(f"{block.place} is a query of unknown kind")


def taken(kind: str, pending: list[Block], behind: Block) -> tuple[Block]:
    """The next block, which has to be of a kind."""
    assert pending, f"{behind.place} is the last block, without '{kind}' behind it"
    block = pending.pop(0)
    assert (block.kind, block.words) == (kind, ()), f"{behind.place} needs '{kind}' behind it"
    return (block,)


# --- examples ---------------------------------------------------------------------------------------------


def run(example: Example) -> tuple[str, str]:
    """The answer, and what was noted on the way, one line each."""
    text = example.query.text
    schemas = {name: each.schema for name, each in example.inputs.items()}
    edited = [name for name, each in example.inputs.items() if each.updates]
    checked = check(read(example), text, inputs=schemas, functions=FUNCTIONS, edited=edited)
    notes = [f"warning: {each.message}" for each in checked.warnings]
    if example.mode == "timeline" or any(example.inputs[name].updates for name in checked.streams):
        answer, more = followed(example)
        return answer, "\n".join([*notes, *more])
    if any(example.inputs[name].input.changes for name in checked.streams):
        answer, more = evolved(example, checked.streams)
        return answer, "\n".join([*notes, *more])
    inputs = {name: each.input for name, each in example.inputs.items()}
    found = evaluate(checked.query, inputs, functions=FUNCTIONS)
    notes += [set_aside(each) for each in found.dead]
    notes += [f"late: {each}" for each in found.late]
    return found.text.removesuffix("\n"), "\n".join(notes)


def read(example: Example) -> ast.Query:
    """The query of an example, in its language."""
    language: Language = "sql" if example.query.kind == "sql" else "xquery"
    tables = [name for name, each in example.inputs.items() if not each.input.elements]
    return read_query(example.query.text, language=language, documents=tables)


def evolved(example: Example, streams: Iterable[str]) -> tuple[str, list[str]]:
    """What a trunk answers over streams that evolve, and what is to be noted; in epochs of any size."""
    policy: Any = example.query.options.get("policy", "accumulate")
    found = []
    for epoch_bytes in (1 << 20, 150):
        with TemporaryDirectory() as folder:
            sources = [example.inputs[name].source(name, Path(folder)) for name in streams]
            state = Path(folder) / "state"
            trunk = BareTrunk(state, sources, Random(1), finite=True, policies={"q": policy})
            trunk.run({"q": example.query.text}, (epoch_bytes,), (1,))
            notes = [set_aside(each) for each in trunk.log.dead_letters()]
            notes += [f"ended: {why}" for each in trunk.log.manifests.since(0) for why in each.aborted.values()]
            found.append((trunk.answer("q"), list(dict.fromkeys(notes))))
    assert found[0] == found[1], example.query.place
    return found[0]


def followed(example: Example) -> tuple[str, list[str]]:
    """What `anabranch query` prints over the streams of an example, and what is to be noted."""
    with TemporaryDirectory() as folder:
        sources = [each.source(name, Path(folder)) for name, each in example.inputs.items() if each.text]
        inputs = given_inputs.Inputs(sources, functions=FUNCTIONS)
        queries = [prepare("q", example.query.text, inputs, "reference")]
        if example.mode == "timeline":
            with timelines(queries, inputs) as run:
                return "".join(run.answers["q"]).removesuffix("\n"), [set_aside(each) for each in run.dead]
        with answering(queries, inputs) as found:
            return "".join(found.answers["q"]).removesuffix("\n"), [set_aside(each) for each in found.dead]


def set_aside(letter: DeadLetter) -> str:
    return f"set aside: {letter.reason}" + (f" [{letter.code}]" if letter.code else "")


def unfolded(text: str) -> str:
    """An answer without the line breaks between tags that make it readable on a page."""
    return re.sub(r">\n *<", "><", text)


def show(block: Block, found: str) -> None:
    """Compare a block with what came out, or rewrite it."""
    if not REWRITE:
        assert found == unfolded(block.text), block.place
    elif found != unfolded(block.text):
        text = block.page.read_text(encoding="utf-8")
        old = list(FENCED.finditer(text))[block.number]
        block.page.write_text(text[: old.start(2)] + found + "\n" + text[old.end(2) :], encoding="utf-8")


EXAMPLES = [each for page in PAGES for each in examples(page)]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.query.place)
def test_example(example: Example) -> None:
    """A query on a page gives the answer, the notes or the error that the page shows."""
    match example.mode:
        case "parses":
            text = example.query.text
            inputs = dict.fromkeys(example.inputs) if example.query.options.get("input") else None
            check(read(example), text, inputs=inputs, functions=FUNCTIONS)
        case "error":
            with pytest.raises(AnabranchError) as raised:
                run(example)
            show(example.expected[0], str(raised.value))
        case "answers" | "timeline":
            answer, notes = run(example)
            block, *more = example.expected
            show(block, answer)
            if more:
                show(more[0], notes)
            else:
                assert notes == "", f"{block.place} lacks a text block with the notes"


def test_the_language_page_has_its_examples() -> None:
    """The reference is full of examples; were they no longer found, the tests above would pass for nothing."""
    found = [each for each in EXAMPLES if each.query.page.name == "language.md"]
    assert len(found) >= 80
    assert {each.mode for each in found} == {"answers", "timeline", "error", "parses"}


def test_the_language_page_shows_the_papers_queries() -> None:
    """Each example query of the papers is on the page, word for word."""
    shown = {each.query.text.replace("≥", ">=") for each in EXAMPLES if each.query.page.name == "language.md"}
    queries = {**papers.SHARING, "figure 11": papers.INTERVAL_JOIN, **papers.HISTORY, "snapshot": papers.SNAPSHOT}
    wanted = {**queries, **{text: text for text in papers.TEMPORAL}}
    assert [name for name, text in wanted.items() if text.strip() not in shown] == []


# --- tables -----------------------------------------------------------------------------------------------


def row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def code(text: str) -> str:
    """Text as code in a table cell, where a bar would end the cell."""
    return "`" + text.replace("|", r"\|") + "`"


def plain(text: str) -> str:
    """Text in a table cell, where a tag would vanish."""
    return text.replace("|", r"\|").replace("<", "&lt;")


def refusals() -> list[str]:
    rows = [row(each.name, plain(each.hint), code(each.example)) for each in REFUSALS.values()]
    return [row("refused", "instead", "example"), row("---", "---", "---"), *rows]


def sql_refusals() -> list[str]:
    rows = [row(each.name, plain(each.hint), code(each.example)) for each in SQL_REFUSALS.values()]
    return [row("refused", "instead", "example"), row("---", "---", "---"), *rows]


def limits() -> list[str]:
    item = Limits()
    known = {
        "characters of a query": MAX_CHARACTERS,
        "depth of nested expressions": MAX_DEPTH,
        "windows that one item may be in": MAX_OVERLAP,
        "bytes of an item": item.item_bytes,
        "depth of an item": item.depth,
        "nodes of an item": item.nodes,
        "attributes of one element": item.attributes,
        "characters of a name in an item": LONGEST_NAME,
        "steps of one evaluation, for each item in it": item.steps,
    }
    return [row("limit", "value"), row("---", "---:"), *(row(what, f"{value:,}") for what, value in known.items())]


def endpoint_limits() -> list[str]:
    known = EndpointSettings()
    rows = [
        ("bytes of a body, also unpacked", known.max_body, '`max_body = "32 MB"`'),
        ("connections at once", known.connections, "`connections = 500`"),
        ("bytes of the request line and the headers", known.max_headers, ""),
        ("seconds for the headers, and without a request", known.header_seconds, ""),
        ("seconds for a body", known.body_seconds, ""),
        ("characters of a key", LONGEST_KEY, ""),
        ("keys that are remembered of a stream", MOST_KEYS, ""),
        ("seconds for which a key is remembered", KEY_SECONDS, ""),
    ]
    found = (row(what, f"{value:,.0f}", where).replace("|  |", "| |") for what, value, where in rows)
    return ["| | | `[http]` |", row("---", "---", "---"), *found]


@pytest.mark.parametrize(
    ("table", "page"),
    [(refusals, "language"), (limits, "language"), (sql_refusals, "sql"), (endpoint_limits, "http")],
    ids=lambda given: given if isinstance(given, str) else str(given.__name__),
)
def test_table(table: Callable[[], list[str]], page: str) -> None:
    """A table on a page says what the code says."""
    file = TOP / f"docs/{page}.md"
    text = file.read_text(encoding="utf-8")
    found = re.search(rf"<!-- {table.__name__} -->\n\n(.*?)\n\n<!-- end -->", text, re.S)
    assert found
    if REWRITE:
        file.write_text(text[: found.start(1)] + "\n".join(table()) + text[found.end(1) :], encoding="utf-8")
    else:
        assert found[1].split("\n") == table()


def test_table_of_functions() -> None:
    """The functions listed are those there are, with the right numbers of arguments, and each example holds."""
    text = (TOP / "docs/language.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w:-]+)\((.*?)\)` \| [^|]* \| `(.*)` \| `(.*)` \|$", text, re.M)
    assert [name for name, *_ in rows] == list(dict.fromkeys(name for name, *_ in rows))
    assert {name for name, *_ in rows} == {name for name in SIGNATURES if not name.startswith("op:")}
    for name, written, query, answer in rows:
        parameters = [each for each in written.split(", ") if each]
        least = sum(not each.endswith(("?", "...")) for each in parameters)
        accepted = [count for count in range(10) if SIGNATURES[name].accepts(count)]
        assert accepted == [*range(least, 10 if "..." in parameters else len(parameters) + 1)], name
        query = query.replace(r"\|", "|")  # a bar would end the cell
        assert evaluate(check(parse(query), query).query, {}).text == answer, name


def test_the_map_of_folders_is_whole() -> None:
    """ARCHITECTURE.md names every package and module at the top of the code, and none that is not there."""
    text = (TOP / "ARCHITECTURE.md").read_text(encoding="utf-8")
    there = {
        path.name + "/" * path.is_dir() for path in (TOP / "src/anabranch").iterdir() if path.suffix in ("", ".py")
    }
    named = re.findall(r"^\| `([\w./]+)` \|", text, re.M)
    assert sorted(named) == sorted(there - {"__init__.py", "__pycache__/"})
