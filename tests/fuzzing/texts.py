"""Texts of users under the fuzzer: queries, SQL, paths and files of settings; what is read can be printed and read."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from anabranch.errors import AnabranchError, QueryError
from anabranch.language import ast, check, parse, print_query
from anabranch.language.rewrite import with_plain_names
from anabranch.network.description import read_network
from anabranch.site import read_site
from anabranch.sql.queries import parse_sql
from anabranch.stream.path import Path as ItemPath
from fuzzing.target import Target

_ROOT = Path(__file__).parent.parent.parent
_XQUERY_WORDS = (
    "for $p in stream(\"s\")/root/p", " let $a := ", " where ", " order by ", " group by $k := ", " return ", "<e>{",
    "}</e>",
    "|t diff 10 step 5|", "|count 3|", "|t gap 2|", "[", "]", "(", ")", "if (", ") then ", " else ", "some $x in ",
    " satisfies ", " to ", " idiv ", "//", "/@k", "#1", "?[5]", "declare function local:f($x) { $x }; ", "(: c :)",
    "typeswitch (", " instance of xs:integer", "try {", "} catch * {", "element {", " ! ", " => ", "'text'", "&lt;",
    "{{",
    "<![CDATA[", "declare namespace a = 'u'; ", "$p.a.b", "[[1]]", "{'k': 1}", " union ", " allowing empty ", " at $i ",
)  # fmt: skip
_SQL_WORDS = (
    "SELECT ", " FROM s", " WHERE ", " GROUP BY ", " ORDER BY ", " LIMIT 1", "TUMBLE(s, t, 10)", "HOP(s, t, 5, 10)",
    "COUNT(*)",
    " JOIN o ON ", " AND ", " BETWEEN 1 AND 2", " LIKE '%a%'", "CASE WHEN ", " THEN ", " END", "CAST(a AS INT)",
    " IS NULL",
    " UNION ALL ", "INTERVAL '1' DAY", '"a b"', " OVER (PARTITION BY ", "ARRAY[1]", "a.b", " AS x", "||", "::", "--",
    "/*",
)  # fmt: skip


def _query(data: bytes) -> None:
    """A query is refused with a place in its text, or printed such that it reads as the same."""
    text = data.decode(errors="surrogateescape")
    try:
        tree = parse(text)
    except QueryError as error:
        str(error)
        return
    assert parse(print_query(tree)) == tree
    try:
        plain = with_plain_names(check(tree, text).query)
    except AnabranchError as error:
        str(error)
        return
    _same_again(plain)


def _same_again(query: ast.Query) -> None:
    """What was checked can be written down, as a plan does, and read again."""
    assert print_query(parse(print_query(query))) == print_query(query)


def _sql(data: bytes) -> None:
    """A query in SQL is refused, or is one in XQuery."""
    text = data.decode(errors="surrogateescape")
    try:
        tree = parse_sql(text)
    except AnabranchError as error:
        str(error)
        return
    _same_again(tree)


def _path(data: bytes) -> None:
    """A path is refused, or written as it reads."""
    try:
        found = ItemPath.parse(data.decode(errors="surrogateescape"), itself=True)
    except AnabranchError as error:
        str(error)
        return
    assert ItemPath.parse(str(found), itself=True) == found


@cache
def _folder() -> Path:
    """A folder with what the settings of seeds name; it lasts as long as the process."""
    folder = Path(tempfile.mkdtemp(prefix="anabranch-fuzzing-"))
    (folder / "in").mkdir()
    (folder / "q.xq").write_text('for $p in stream("s")/root/p return $p')
    return folder


def _settings(data: bytes) -> None:
    """A site and a network are refused, or read."""
    if b"http" in data or b"s3" in data:
        return  # nothing is fetched, but clients of such addresses are made
    file = _folder() / "SITE.toml"
    file.write_bytes(data)
    for read in (read_site, read_network):
        try:
            read(file)
        except AnabranchError as error:
            str(error)


def _files(*patterns: str) -> list[bytes]:
    return [each.read_bytes() for pattern in patterns for each in sorted(_ROOT.glob(pattern))]


def _blocks(file: str, *fences: str) -> list[bytes]:
    """The examples in a page of the docs."""
    parts = (_ROOT / file).read_text().split("```")
    return [body.encode() for part in parts[1::2] for head, _, body in (part.partition("\n"),) if head in fences]


def _encoded(texts: Iterable[str]) -> list[bytes]:
    return [each.encode() for each in texts]


_SITE = b"""
[engine]
checkpoint = "state"
keep = "20 GB"
policy = "absorb"
[streams.s]
path = "in"
format = "lines"
time = "t"
slack = 5
domains = { s = [1, 2] }
[documents.d]
path = "q.xq"
[subscriptions.q]
query = "q.xq"
sink = "files"
path = "out"
from = "now"
[network]
shape = "chain"
peers = 3
"""
TARGETS = [
    Target(
        "a query",
        _query,
        [
            *_files("docs/queries/*.xq", "src/anabranch/examples/*.xq"),
            *_blocks("docs/language.md", "", "xquery"),
            *_encoded(f'for $p in stream("s")/root/p {each} return $p' for each in _XQUERY_WORDS),
        ],
        _encoded(_XQUERY_WORDS),
    ),
    Target(
        "a query in SQL",
        _sql,
        [*_blocks("docs/sql.md", "", "sql"), *_encoded(f"SELECT a FROM s {each}" for each in _SQL_WORDS)],
        _encoded(_SQL_WORDS),
    ),
    Target("a path", _path, [b"a/b/@c", b"./a", b".", b"a:b/c", b"@k", b"a//b"], [b"/", b"@", b":", b".", b"..", b"*"]),
    Target("settings", _settings, [_SITE, *_SITE.split(b"\n[")[1:]], _SITE.split(b"\n")),
]
