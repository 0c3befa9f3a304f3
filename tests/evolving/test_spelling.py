"""Queries that call a namespace otherwise than the items do: what they answer may not depend on it (LAWS 4)."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from algebra.accented import path
from anabranch.cli import main
from anabranch.language import ast
from anabranch.law.spelling import Spelling
from anabranch.runtime.evolution.tracing import lineage_of
from anabranch.stream.affine import parse as parse_map
from anabranch.stream.elements import Alter
from anabranch.stream.reading.source import Source
from evolving.outlets import taken
from spark.bare import BareTrunk

CELSIUS = 'by="(. - 32) * 5 div 9"'
STREAM = f"""<p:r xmlns:s="urn:anabranch:stream" xmlns:p="urn:x" xmlns:z="urn:z">
<p:i p:n="1"><p:k>1</p:k><p:t>68</p:t><z:t>1</z:t></p:i>
<s:accent><s:alter path="p:t" {CELSIUS}/></s:accent>
<s:accent><s:alter path="@p:n" by=". * 100"/></s:accent>
<p:i p:n="200"><p:k>4</p:k><p:t>25.0</p:t><z:t>2</z:t></p:i>
<s:accent><s:alter path="z:t" by=". * 10"/></s:accent>
<s:punctuation where="p:k &lt; 10"/>
<p:i p:n="300"><p:k>12</p:k><p:t>30</p:t><z:t>30</z:t></p:i>
<s:accent><s:drop path="z:t"/></s:accent>
<p:i p:n="400"><p:k>14</p:k><p:t>35</p:t></p:i>
<s:accent><s:drop path="p:t"/></s:accent>
<p:i p:n="500"><p:k>25</p:k></p:i>
</p:r>
"""
ITEMS = "stream('d')/P:r/P:i"
QUERIES = {
    "copies": f"for $i in {ITEMS} return <o>{{$i/P:t}}</o>",
    "items": f"for $i in {ITEMS} return <o>{{$i}}</o>",
    "condition": f"for $i in {ITEMS} where $i/P:t > 60 return <o>{{$i/*:t}}</o>",
    "computed": f"for $i in {ITEMS} return <o n='{{$i/@P:n}}'>{{$i/P:t + 1}}</o>",
    "function": f"declare function local:f($i) {{ $i/P:t }}; for $i in {ITEMS} return <o>{{local:f($i)}}</o>",
    "window": f"for $w in {ITEMS} |P:k diff 10| return <w>{{avg($w/P:t)}}</w>",
    "absolute": f"for $w in {ITEMS} |/P:r/P:i/P:k diff 10| return <w>{{$w/P:t}}</w>",
    "join": f"for $a in {ITEMS} |count 2|, $b in {ITEMS} |count 2| where $a/P:t = $b/P:t return <j>{{$b/@P:n}}</j>",
    "whole": f"count({ITEMS}[P:t > 60])",
}
"""P is the prefix of `urn:x`."""


def prefixed(query: str, prefix: str) -> str:
    return f"declare namespace {prefix} = 'urn:x'; {query.replace('P:', f'{prefix}:')}"


@pytest.mark.parametrize("name", QUERIES)
def test_the_prefix_of_a_query_does_not_show(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Units, accents, windows and the end by a drop are the same under `q`, and under the stream's name for another."""
    file, query = tmp_path / "d.xml", tmp_path / "query.xq"
    file.write_text(STREAM)
    told: list[tuple[str, str]] = []
    for prefix in ("p", "q", "z"):
        query.write_text(prefixed(QUERIES[name], prefix))
        main(["query", str(query), "--stream", f"d={file}", "--engine", "reference"])
        read = capsys.readouterr()
        told.append((read.out, read.err))
    assert told[1:] == told[:1] * 2
    answer, notes = told[0]
    assert ("has ended" in notes) == (name in ("condition", "join", "whole"))
    assert "<s:accent" in answer or name in ("join", "whole")


@pytest.mark.mass
def test_the_trunk_agrees_with_the_law(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All of them at once, in ranges and epochs of any size, give what the law gives under the stream's own prefix."""
    file = tmp_path / "d.xml"
    file.write_text(STREAM)
    asked = {f"{name}_{p}": prefixed(text, p) for name, text in QUERIES.items() for p in ("p", "q", "z")}
    trunk = BareTrunk(tmp_path / "state", [Source("d", file)], Random(5), finite=True)
    trunk.run(asked, (150, 400), (1, 2))
    for name in QUERIES:
        query = tmp_path / f"{name}.xq"
        query.write_text(asked[f"{name}_p"])
        main(["query", str(query), "--stream", f"d={file}", "--engine", "reference"])
        law = capsys.readouterr().out.removesuffix("\n")
        assert [trunk.answer(f"{name}_{prefix}") for prefix in ("p", "q", "z")] == [law] * 3, name


def test_a_default_namespace_is_a_prefix_like_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The items have none; a query may give it one, or say that it is its own default, too."""
    file, query = tmp_path / "d.xml", tmp_path / "query.xq"
    file.write_text(
        f'<r xmlns="urn:x" xmlns:s="urn:anabranch:stream"><i><t>68</t></i>'
        f'<s:accent><s:alter path="t" {CELSIUS}/></s:accent><i><t>25.0</t></i></r>'
    )
    told: list[str] = []
    for text in (
        "declare default element namespace 'urn:x'; stream('d')/r/i/t",
        "declare namespace q = 'urn:x'; stream('d')/q:r/q:i/q:t",
    ):
        query.write_text(text)
        assert main(["query", str(query), "--stream", f"d={file}", "--engine", "reference"]) == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1]
    assert told[0].index(">68<") < told[0].index("<s:alter") < told[0].index(">25.0<")


@pytest.mark.parametrize(
    ("prefix", "written", "names"),
    [
        ("q", {"p": "urn:x"}, ("p:t",)),
        ("q", {"p": "urn:x", "r": "urn:x", "z": "urn:z"}, ("p:t", "r:t")),
        ("q", {"": "urn:x"}, ("t",)),
        ("q", {"q": "urn:z"}, ("{urn:x}t",)),
        ("q", {}, ("q:t",)),
        (None, {}, ("t",)),
        (None, {"": "urn:x"}, ("{}t",)),
        ("*", {"p": "urn:x"}, ("*",)),
    ],
)
def test_spellings(prefix: str | None, written: dict[str, str], names: tuple[str, ...]) -> None:
    """A name is what the stream's root makes of its namespace; without a word from it, what the query writes."""
    assert Spelling({"q": "urn:x"}, written).of(ast.NameTest("t", prefix)) == names


def test_attributes_have_no_default_namespace() -> None:
    """Without a prefix they are in none, and a default namespace is no prefix for them."""
    names = Spelling({"": "urn:x", "q": "urn:x"}, {"": "urn:x", "p": "urn:x"})
    assert names.of(ast.NameTest("t"), attribute=True) == ("t",)
    assert names.of(ast.NameTest("t", "q"), attribute=True) == ("p:t",)


def test_two_prefixes_of_one_namespace() -> None:
    """Copies follow both; what is computed may be of either, and stays in the units of the start."""
    roots = {"a": {"p": "urn:x", "r": "urn:x"}}
    query = "declare namespace q = 'urn:x'; for $i in stream('a')/r/i return <o>{$i/q:t}<c>{$i/q:t + 1}</c></o>"
    lineage = lineage_of(taken(query), roots=roots)
    found = [lineage.targets(0, Alter(path(each), parse_map(". * 2"))) for each in ("p:t", "r:t", "q:t")]
    assert [[str(each.at) for each in targets] for targets in found] == [["p:t"], ["r:t"], []]


def test_prefixes_that_a_constructor_declares() -> None:
    """They hold inside it, and nowhere else; a function has those of the prolog."""
    query = (
        "declare namespace q = 'urn:z'; declare function local:f($i) { $i/q:t }; "
        "for $i in stream('a')/r/i return <o><a xmlns:q='urn:x'>{$i/q:t, local:f($i)}</a><b>{$i/q:t}</b></o>"
    )
    lineage = lineage_of(taken(query), roots={"a": {"p": "urn:x", "z": "urn:z"}})
    found = [lineage.targets(0, Alter(path(each), parse_map(". * 2"))) for each in ("p:t", "z:t")]
    assert [[str(each.at) for each in targets] for targets in found] == [["a/p:t"], ["a/z:t", "b/z:t"]]
