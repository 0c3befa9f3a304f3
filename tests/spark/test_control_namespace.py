"""LAWS 2.1: the namespace of control elements is not copied into answers, on trunks as by the reference."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from xml.etree import ElementTree

import pytest

from anabranch.engine.evolved import answer_evolving, fed, text_of
from anabranch.engine.reading import read_stream
from anabranch.runtime.standing import standing
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from anabranch.stream.tree import STREAM_NAMESPACE
from evolving.outlets import checked
from mass import some
from spark.bare import BareTrunk

S = f'xmlns:s="{STREAM_NAMESPACE}"'
QUERIES = {
    "items": 'for $i in stream("a")/r/i where $i/v > 3 return $i',
    "parts": 'for $i in stream("a")/r/i return <o xmlns:c="urn:anabranch:stream" k="{ $i/k }">{ $i/v }{ $i/more }</o>',
    "deep": '<all>{ for $i in stream("a")/r/i return <o>{ <p>{ $i/more/* }</p> }</o> }</all>',
    "windows": 'for $w in stream("a")/r/i|count 2| return <w>{ $w/v }{ $w/more }</w>',
    "panes": 'for $w in stream("a")/r/i|t diff 10| return <w>{ avg($w/v) }</w>',
    "join": """for $i in stream("a")/r/i|t diff 10| for $j in stream("a")/r/i|t diff 10|
        where $i/k = $j/k and $i/t < $j/t return <pair>{ $i/v }{ $j/more }</pair>""",
}
ACCENT = '<s:accent where="k = 1"><s:alter path="v" by=". * 10"/></s:accent>'
ROOTS = [
    S,
    f'{S} xmlns:n="urn:n"',
    f'xmlns:n="urn:n" xmlns:c="{STREAM_NAMESPACE}" {S}',
    f'{S} xmlns:s2="{STREAM_NAMESPACE}"',
]


def stream(declared: str, *, accents: bool) -> str:
    """A document whose root declares some prefixes, with items that declare others."""
    items = [
        f"<i><t>{number}</t><k>{number % 3}</k><v>{number}</v><more><x>{number}</x></more></i>" for number in range(24)
    ]
    items[5] = items[5].replace("<i>", '<i s:at="5">')
    items[7] = items[7].replace("<more>", f'<more xmlns:own="{STREAM_NAMESPACE}" xmlns:other="urn:o">')
    items[9] = items[9].replace("<i>", '<i xmlns:s="urn:mine">')
    said = [*items[:12], ACCENT, *items[12:]] if accents else items
    said.insert(20, '<s:punctuation where="t &lt; 2"/>')
    return f"<r {declared}>\n" + "\n".join(said) + "\n</r>"


@pytest.mark.parametrize("declared", some(ROOTS))
@pytest.mark.parametrize("accents", [False, True])
def test_no_answer_declares_it_for_nothing(tmp_path: Path, declared: str, accents: bool) -> None:
    """Whatever is copied, and however: only accents in an answer declare it, and other prefixes stay."""
    (tmp_path / "a").write_text(stream(declared, accents=accents))
    source = Source("a", tmp_path / "a", "document", time=ItemPath.parse("t"))
    read = read_stream(source, Limits())
    trunk = BareTrunk(tmp_path / "state", [source], Random(len(declared)), finite=True)
    trunk.run(QUERIES, (400, 1 << 20), (1, 2))
    for name, text in QUERIES.items():
        query = standing(checked(text))
        law = text_of(query, answer_evolving(query, name, {"a": fed(read)}, {}, {}, "accumulate"))
        answer = trunk.answer(name)
        assert answer == law, name
        ElementTree.fromstring(f"<answer>{answer}</answer>")
        results, found = re.subn(f"<s:accent {S}.*?</s:accent>", "", answer)
        assert STREAM_NAMESPACE not in results, name
        assert accents or not found
        assert ("urn:n" in results) == ("urn:n" in declared and name != "panes"), name
    assert (trunk.answer("items").count("<s:accent") > 0) == accents
