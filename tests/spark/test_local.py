"""Trunks whose host is this process: answers, dead letters and late items are those of the law."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

from anabranch import Engine
from anabranch.engine.finite import answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import EngineName, prepare
from anabranch.errors import Unsupported, UsageError
from anabranch.spark.epoch.metrics import Metrics
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from anabranch.stream.settings import Settings
from mass import sized, some
from papers import INTERVAL_JOIN, SHARING
from spark.test_branches import photon_files


def found(
    engine: EngineName, sources: Sequence[Source], queries: Mapping[str, str], epoch_bytes: int
) -> tuple[dict[str, str], set[str], int, int]:
    """All that an engine tells of queries."""
    inputs = Inputs(sources)
    prepared = [prepare(name, text, inputs, engine) for name, text in queries.items()]
    with answering(prepared, inputs, Settings(epoch_bytes=epoch_bytes, shards=2)) as run:
        answers = {name: "".join(answer) for name, answer in run.answers.items()}
        return answers, {letter.to_json() for letter in run.dead}, run.items, run.late


@pytest.mark.parametrize("partitions", some([3, 1]))
def test_the_papers_queries(tmp_path: Path, partitions: int) -> None:
    """q1 to q8 and the interval join over photons, with epochs of some random size."""
    names = enumerate(("photons", "photon1", "photon2"))
    sources = [photon_files(tmp_path, name, sized(80, fast=30), seed, partitions) for seed, name in names]
    queries = {**SHARING, "interval": INTERVAL_JOIN}
    size = Random(partitions).randrange(4_000, 9_000)
    answers, *rest = found("local", sources, queries, size)
    law, *of_law = found("reference", sources, queries, size)
    assert answers == law
    assert rest == of_law
    assert sum(map(len, answers.values())) > 1_000


def test_what_is_set_aside(tmp_path: Path) -> None:
    """Items that are no XML, values that are no numbers, and items that come too late."""
    times = [*range(30), 3, *range(30, 40)]
    lines = [f"<p><t>{time}</t><e>{'x' if time == 7 else time}</e></p>" for time in times]
    (tmp_path / "s").write_text("\n".join([*lines[:9], "<p><t>", *lines[9:], ""]))
    source = Source("s", tmp_path / "s", "lines", root="r", time=ItemPath.parse("t"))
    queries = {
        "items": '<a>{ for $p in stream("s")/r/p where $p/e + 1 > 20 return $p/e }</a>',
        "windows": '<a>{ for $w in stream("s")/r/p|t diff 10| return <w>{ count($w) }</w> }</a>',
    }
    answers, dead, items, late = found("local", [source], queries, 200)
    assert (answers, dead, items, late) == found("reference", [source], queries, 200)
    assert (len(dead), items, late) == (2, len(times), 1)


@pytest.mark.parametrize(
    ("change", "answer"),
    [
        (
            '<s:alter path="n" by=". * 2"/>',
            '<s:accent xmlns:s="urn:anabranch:stream"><s:alter path="." by=". * 2"/></s:accent>'
            '<w s="1">6</w><w s="10">6</w><w s="40">8</w>',
        ),
        ('<s:alter path="t" by=". * 2"/>', '<w s="5">6</w><w s="1">3</w><w s="20">8</w>'),
        ('<s:drop path="u"/>', ""),
        ('<s:drop path="t"/>', ""),
    ],
)
def test_sessions_follow_accents(tmp_path: Path, change: str, answer: str) -> None:
    """Values come out in their new unit, references keep their places, and reference and key are foundation."""
    items = [(1, "a", 1), (9, "a", 2), (10, "b", 6), (40, "b", 8)]
    lines = [f"<i><t>{time}</t><u>{user}</u><n>{number}</n></i>" for time, user, number in items]
    lines.insert(2, f'<s:accent xmlns:s="urn:anabranch:stream">{change}</s:accent>')
    (tmp_path / "s").write_text("\n".join((*lines, "")))
    source = Source("s", tmp_path / "s", "lines", root="r", slack=Fraction(5))
    query = 'for $w in stream("s")/r/i|t gap 10 by u| return <w s="{ window-start($w) }">{ sum($w/n) }</w>'
    queries = {"q": f"<a>{{ {query} }}</a>"}
    answers, *rest = found("local", [source], queries, 60)
    assert (answers, *rest) == found("reference", [source], queries, 60)
    assert answers["q"] == (f"<a>{answer}</a>" if answer else "<a/>")


@pytest.mark.mass
def test_positions_and_groups_that_differ_in_constants(tmp_path: Path) -> None:
    """Queries of one shape share their compiled form, and each has its own positions."""
    items = (f"<i><t>{each}</t><t>{each + 1}</t><t>{each + 2}</t><k>{each % 3}</k></i>\n" for each in range(30))
    (tmp_path / "s").write_text("".join(items))
    item, window = 'for $p in stream("s")/r/i ', 'for $w in stream("s")/r/i|count 4| '
    forms = (
        item + "return <o>{{ $p/t[position() <= {0}] }}</o>",
        item + "where $p/t[{0}] > 5 return <o>{{ $p/t[{0}] }}</o>",
        item + "where some $t in $p/t[{0}] satisfies $t > 4 return <o>{{ sum($p/t[position() > {0}]) }}</o>",
        item + "return <o>{{ for $t in $p/t group by $g := $t > {0} return <g>{{ $g, count($t) }}</g> }}</o>",
        item + "return <o>{{ round($p/k div 7, {0}), string-join($p/t[last() - {0}], '') }}</o>",
        window + "for $o in $w group by $g := $o/k where count($o) > {0} return <o>{{ $g, sum($o/t[{0}]) }}</o>",
        window + "return <o>{{ avg($w/t[{0}]), sum(for $i in $w where $i/t[{0}] > 2 return $i/k) }}</o>",
    )
    queries = {f"{number} {each}": form.format(each) for number, form in enumerate(forms) for each in range(4)}
    sources = [Source("s", tmp_path / "s", "lines", root="r")]
    assert found("local", sources, queries, 300) == found("reference", sources, queries, 300)


def test_updates(tmp_path: Path) -> None:
    """A display that is corrected."""
    elements = (
        '<r xmlns:s="urn:anabranch:stream">',
        '<i><s:mutable id="a"><v>1</v></s:mutable></i>',
        "<i><v>5</v></i>",
        '<s:replace target="a" at="3"><v>7</v></s:replace>',
        "</r>",
    )
    (tmp_path / "s.xml").write_text("\n".join(elements))
    source = Source("s", tmp_path / "s.xml", updates=True)
    queries = {"sum": 'sum(stream("s")/r/i/v)'}
    answers, *rest = found("local", [source], queries, 50)
    assert (answers, rest[0]) == ({"sum": "12"}, set())
    assert (answers, *rest) == found("reference", [source], queries, 50)


def test_groups_and_positions_over_updates(tmp_path: Path) -> None:
    """They are those of the document as it stands; an entry with two keys is set aside."""
    elements = (
        '<r xmlns:s="urn:anabranch:stream">',
        '<i><k>a</k><s:mutable id="1"><v>1</v></s:mutable><v>9</v></i>',
        "<i><k>b</k><v>5</v></i>",
        '<i><s:mutable id="2"><k>a</k></s:mutable><v>4</v></i>',
        '<s:replace target="1" at="3"><v>7</v></s:replace>',
        '<s:replace target="2" at="4"><k>b</k></s:replace>',
        "<i><k>c</k><k>d</k><v>4</v></i>",
        '<s:replace target="1" at="5"/>',
        "</r>",
    )
    (tmp_path / "s.xml").write_text("\n".join(elements))
    source = Source("s", tmp_path / "s.xml", updates=True)
    loop = 'for $o in stream("s")/r/i '
    queries = {
        "groups": loop + "group by $k := $o/k return <g k='{$k}'>{ sum($o/v), count($o) }</g>",
        "first": f"({loop}order by $o/v[1] descending return $o/v[1])[position() <= 2]",
        "numbered": f"for $v at $n in ({loop}return $o/v) return <v n='{{$n}}'>{{ $v/text() }}</v>",
        "inside": loop + "return <o>{ $o/v[last()], $o/*[1] }</o>",
    }
    answers, dead, *rest = found("local", [source], queries, 60)
    assert (answers, dead, *rest) == found("reference", [source], queries, 60)
    assert answers["groups"] == '<g k="a">9 1</g><g k="b">9 2</g>'
    assert answers["first"] == "<v>9</v><v>5</v>"
    assert answers["numbered"] == '<v n="1">9</v><v n="2">5</v><v n="3">4</v><v n="4">4</v>'
    assert len(dead) == 1


def test_groups_and_positions_in_the_past(tmp_path: Path) -> None:
    """Versions are a sequence like others, newest first."""
    items = (f"<i><t>{each}</t><k>{each % 2}</k><v>{each * 7 % 5}</v></i>\n" for each in range(12))
    (tmp_path / "s").write_text("".join(items))
    source = Source("s", tmp_path / "s", "lines", root="r", time=ItemPath.parse("t"))
    path = 'stream("s")/r/i'
    queries = {
        "numbered": f"for $p in {path} return <o>{{ for $x at $n in {path}#[2] return <x>{{ $n, $x/v }}</x> }}</o>",
        "groups": f"for $p in {path} return <o>{{ for $x in {path}#[4] group by $k := $x/k return sum($x/v) }}</o>",
        "some": f"for $p in {path} return <o>{{ head({path}#[3])/v, subsequence({path}?[3], 2)/v, {path}#1/*[1] }}</o>",
    }
    answers, *rest = found("local", [source], queries, 200)
    assert (answers, *rest) == found("reference", [source], queries, 200)
    assert answers["numbered"].endswith("<x>1<v>2</v></x><x>2<v>0</v></x><x>3<v>3</v></x></o>")


def test_an_engine_that_follows_its_streams(tmp_path: Path) -> None:
    """What comes is answered, and another engine goes on where this one ended."""
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(3):
        with Engine(local=True, checkpoint=tmp_path / "state", trigger_ms=5) as engine:
            engine.stream("s", folder, format="lines", root="r")
            answers = iter(engine.subscribe('for $p in stream("s")/r/p return $p/v', name="q"))
            for old in range(number):
                assert next(answers) == f"<v>{old}</v>"
            (folder / f"{number}").write_text(f"<p><v>{number}</v></p>\n")
            assert next(answers) == f"<v>{number}</v>"


def test_who_asks_for_the_present_input_does_not_wait_for_a_poll(tmp_path: Path) -> None:
    """Where a stream is looked at once an hour, what is there is answered as soon as somebody wants it."""
    (tmp_path / "in").mkdir()
    with Engine(local=True, trigger_ms=3_600_000) as engine:
        engine.stream("s", tmp_path / "in", format="lines", root="r")
        asked = engine.subscribe('for $p in stream("s")/r/p return $p/v', name="q")
        engine.start()
        for number in range(3):
            (tmp_path / "in" / f"{number}").write_text(f"<p><v>{number}</v></p>\n")
            engine.trunk.catch_up()
            assert asked.answer() == "".join(f"<v>{each}</v>" for each in range(number + 1))


def test_an_engine_that_fails(tmp_path: Path) -> None:
    """The error of an epoch comes out where an answer is asked for."""
    (tmp_path / "s").write_text("<p/>\n")

    def fail(metrics: Metrics) -> None:
        raise KeyError("the display broke")

    with Engine(local=True, once=True, on_epoch=fail) as engine:
        engine.stream("s", tmp_path / "s", format="lines", root="r")
        asked = engine.subscribe('stream("s")/r/p', name="q")
        with pytest.raises(KeyError, match="the display broke"):
            list(asked)


def test_an_engine_has_one_host() -> None:
    """A session of Spark and this process are two."""
    with pytest.raises(UsageError, match="not both"):
        Engine(object(), local=True)  # type: ignore[arg-type]


def test_what_a_trunk_cannot_do_is_refused(tmp_path: Path) -> None:
    """As on Spark; where nobody names an engine, the reference answers it."""
    (tmp_path / "s.xml").write_text("<r><p/></r>")
    inputs = Inputs([Source("s", tmp_path / "s.xml")])
    query = 'let $all := (for $w in stream("s")/r/p|count 2| return $w) return $all/t'
    with pytest.raises(Unsupported, match="no timeline"):
        prepare("q", query, inputs, "local", timeline=True)
    assert prepare("q", query, inputs, timeline=True).engine == "reference"
