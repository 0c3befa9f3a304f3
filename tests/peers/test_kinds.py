"""Streams of other kinds travel, too: edited ones, several partitions, JSON, and questions of the past."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from anabranch.errors import UsageError
from anabranch.network.description import RegisteredStream
from anabranch.network.topology import line
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from disk import on_disk
from peers.working import Alone, GrowingStream, bare_network, dead_letters_of, network_of

S = 'xmlns:s="urn:anabranch:stream"'
EDITED = (
    f'<ticker {S} s:at="1"><name>A</name><s:mutable id="1"><quote>100</quote></s:mutable></ticker>',
    f'<ticker {S} s:at="2"><name>B</name><s:mutable id="2"><quote>7</quote></s:mutable></ticker>',
    f'<s:replace {S} target="9" at="3"><quote>7</quote></s:replace>',
    f'<s:replace {S} target="1" id="3" at="12.5"><quote>120</quote></s:replace>',
    f'<s:replace {S} target="2" at="14"><quote>8</quote></s:replace>',
    f'<ticker {S} s:at="15"><name>C</name><s:mutable id="4"><quote>1</quote></s:mutable></ticker>',
    f'<s:replace {S} target="3" at="16"><quote>121</quote></s:replace>',
    f'<s:replace {S} target="4" at="17"/>',
)
QUOTES = 'for $t in stream("s")/root/ticker where $t/quote > $t/quote#1 return <risen>{ $t/name }{ $t/quote }</risen>'
ALL = '<all>{ stream("s")/root/ticker/quote }</all>'
ITEMS = tuple(
    f"<i><t>{time}</t><k>{place % 3}</k><v>{place}</v></i>"
    for place, time in enumerate((1, 2, 2, 5, 4, 9, 11, 12, 15, 14, 20, 21, 30))
)
RECENT = 'for $i in stream("s")/root/i where $i/k = 1 return <r>{ $i/v }{ count(stream("s")/root/i?[5]) }</r>'
WINDOWS = 'for $w in stream("s")/root/i[k >= 1]|t diff 10 step 5| return <w>{ $w/v }</w>'
COUNTS = 'for $w in stream("s")/root/i[k >= 1]|count 2| return <w>{ $w/v }</w>'


def both(
    folder: Path,
    source: Source,
    grown: list[GrowingStream],
    queries: dict[str, str],
    *,
    portion: int,
    accents: bool = True,
) -> None:
    """Register queries along a line, between portions of a stream; the answers must be those of a single engine."""
    random = Random(7)
    alone = Alone(folder / "alone", [source], random)
    registered = RegisteredStream(source, "SP0", "SP0", None, accents)
    with bare_network(network_of(line(3), [registered]), folder / "network", random) as network:
        for number, (name, text) in enumerate(queries.items()):
            network.register(name, text, f"SP{2 - number % 2}")
            alone.drain()
            alone.queries[name] = text
            for each in grown:
                each.grow(portion)
            network.drain()
            alone.drain()
        for each in grown:
            each.grow(100)
        network.drain()
        alone.drain()
        for name in queries:
            assert network.answer(name) == alone.answer(name)
        assert any(len(network.answer(name)) > 20 for name in queries), "nothing was answered"


def test_a_stream_of_updates(tmp_path: Path) -> None:
    """Updates travel as they came, and who begins late starts from the document as it stands (LAWS 3.6, 5)."""
    source = Source("s", tmp_path / "s", "lines", updates=True)
    queries = {"a": ALL, "b": QUOTES, "c": ALL, "d": QUOTES}
    both(tmp_path, source, [GrowingStream(tmp_path / "s", EDITED)], queries, portion=2)


def test_streams_of_updates_and_of_items_meet(tmp_path: Path) -> None:
    """A join of two documents that are edited, and items beside one: all are merged by their times (LAWS 1.2, 5)."""
    made = {
        "s": [each.replace("<k>", "<name>A</name><k>") for each in ITEMS],
        "x": EDITED,
        "y": [each.replace("<quote>", "<quote>1") for each in EDITED],
    }
    time = ItemPath.parse("t")
    sources = [Source(name, tmp_path / name, "lines", time=time, updates=name != "s") for name in made]
    grown = [GrowingStream(on_disk(each.path), made[each.name]) for each in sources]
    queries = {
        "join": 'for $a in stream("x")/root/ticker, $b in stream("y")/root/ticker where $a/name = $b/name and '
        "$a/quote < $b/quote return <r>{ $a/quote }{ $b/quote }</r>",
        "mixed": 'for $i in stream("s")/root/i return <r>{ $i/v }{ stream("x")/root/ticker[name = $i/name]/quote }</r>',
    }
    random = Random(7)
    alone = Alone(tmp_path / "alone", sources, random)
    registered = [RegisteredStream(each, f"SP{number}", f"SP{number}") for number, each in enumerate(sources)]
    with bare_network(network_of(line(3), registered), tmp_path / "network", random) as network:
        for name, text in queries.items():
            network.register(name, text, "SP1")
            alone.drain()
            alone.queries[name] = text
            for each in grown:
                each.grow(2)
        for each in grown:
            each.grow(100)
        network.drain()
        alone.drain()
        assert (
            network.answer("join")
            == alone.answer("join")
            == "<r><quote>121</quote><quote>1121</quote></r>" + ("<r><quote>8</quote><quote>18</quote></r>")
        )
        assert network.answer("mixed") == alone.answer("mixed")
        assert network.answer("mixed").count("<quote>") > 5


@pytest.mark.parametrize("accents", [True, False])
def test_answers_at_once_groups_and_sessions(tmp_path: Path, accents: bool) -> None:
    """Displays over items, grouped windows and sessions have the items that they need (LAWS 3.8, 3.9, 3.11)."""
    source = Source("s", tmp_path / "s", "lines", time=ItemPath.parse("t"))
    queries = {
        "sorted": 'for $i in stream("s")/root/i order by $i/v descending return $i/v',
        "whole": '<a>{ max(stream("s")/root/i/v), count(stream("s")/root/i) }</a>',
        "groups": 'for $w in stream("s")/root/i|t diff 3| for $i in $w group by $k := $i/k '
        'return <g k="{ $k }">{ sum($i/v), count($i) }</g>',
        "sessions": 'for $w in stream("s")/root/i|t gap 2 by k| return <s>{ $w/v }</s>',
        "first": '(for $i in stream("s")/root/i group by $k := $i/k order by $k return <k>{ $k }</k>)[1]',
    }
    both(tmp_path, source, [GrowingStream(tmp_path / "s", ITEMS)], queries, portion=3, accents=accents)


@pytest.mark.parametrize("accents", [True, False])
def test_the_past_of_items(tmp_path: Path, accents: bool) -> None:
    """A query that asks when items came is told (LAWS 5.5)."""
    source = Source("s", tmp_path / "s", "lines", time=ItemPath.parse("t"))
    queries = {"a": RECENT, "b": COUNTS, "c": RECENT, "d": WINDOWS}
    both(tmp_path, source, [GrowingStream(tmp_path / "s", ITEMS)], queries, portion=3, accents=accents)


def test_several_partitions(tmp_path: Path) -> None:
    """Partitions travel side by side: what is late is late in its own (LAWS 3.2)."""
    paths = [tmp_path / "s" / each for each in "ab"]
    source = Source("s", paths[0], "lines", time=ItemPath.parse("t"), more=(paths[1],))
    grown = [GrowingStream(path, ITEMS[number::2]) for number, path in enumerate(paths)]
    both(tmp_path, source, grown, {"a": WINDOWS, "b": COUNTS, "c": WINDOWS}, portion=2)


def test_a_document_that_grows(tmp_path: Path) -> None:
    """Where a portion ends inside an item, the rest of it comes with the next; accents and all travel as they came."""
    accent = f'<s:accent {S} where="k = 1"><s:alter path="v" by=". * 10"/></s:accent>'
    text = "".join(("<root>", *ITEMS[:8], accent, *ITEMS[8:]))
    source = Source("s", tmp_path / "s", "document", time=ItemPath.parse("t"))
    cuts = [text[place : place + 70] for place in range(0, len(text), 70)]
    grown = [GrowingStream(tmp_path / "s", cuts, one_file=True)]
    both(tmp_path, source, grown, {"a": COUNTS, "b": WINDOWS, "c": WINDOWS, "d": COUNTS}, portion=1)


def test_a_root_that_declares_control_elements(tmp_path: Path) -> None:
    """Control elements whose prefix the root declares travel, also a bad one; nothing of it is copied (LAWS 2.1)."""
    accent = '<s:accent where="k = 1"><s:alter path="v" by=". * 10"/></s:accent>'
    bad = '<s:accent where="k = 2"><s:alter path="k" by="?"/></s:accent>'
    timed = ITEMS[2].replace("<i>", '<i s:at="2">')
    items = (*ITEMS[:2], timed, *ITEMS[3:6], accent, *ITEMS[6:10], bad, *ITEMS[10:])
    for name, root in {"plain": f"<root {S}>", "other": f'<root xmlns:n="urn:n" {S}>'}.items():
        folder = tmp_path / name
        folder.mkdir()
        source = Source("s", folder / "s", "document", time=ItemPath.parse("t"))
        whole = 'for $i in stream("s")/root/i where $i/t > 1 return <o>{ $i/t }{ $i }</o>'
        queries = {"a": whole, "b": COUNTS, "c": WINDOWS, "d": whole}
        both(folder, source, [GrowingStream(folder / "s", (root, *items), one_file=True)], queries, portion=4)


def test_what_fails_on_the_way(tmp_path: Path) -> None:
    """An item for which the flow's query fails goes on, and the subscriber's own query fails for it (LAWS 2.4)."""
    source = Source("s", tmp_path / "s", "lines", time=ItemPath.parse("t"))
    grown = GrowingStream(tmp_path / "s", (*ITEMS[:3], "<i><t>3</t><k>1</k><v>much</v></i>", *ITEMS[3:]))
    registered = RegisteredStream(source, "SP0", "SP0", None, accents=False)
    text = 'for $i in stream("s")/root/i where $i/v >= 2 return $i/v'
    with bare_network(network_of(line(3), [registered]), tmp_path / "network", Random(8)) as network:
        network.register("a", text, "SP2")
        grown.grow(50)
        network.drain()
        assert network.answer("a") == "".join(f"<v>{place}</v>" for place in range(2, len(ITEMS)))
        (letter,) = dead_letters_of(network, "a")
        assert (letter.code, letter.raw) == ("FORG0001", "<i><t>3</t><k>1</k><v>much</v></i>")


def test_an_accent_against_the_promise(tmp_path: Path) -> None:
    """It is bad (LAWS 4.5): who reads its path ends there, everywhere, also who comes later; others go on.

    One that is too long for a dead letter leaves its path in doubt, too.
    """
    source = Source("s", tmp_path / "s", "lines", time=ItemPath.parse("t"), evolves=False)
    long = " or ".join(f"v = {each}" for each in range(100, 300))
    first, second = (
        f'<s:accent {S} where="{where}"><s:alter path="{path}" by=". * 2"/></s:accent>'
        for path, where in (("v", "k = 1"), ("k", long))
    )
    items = [each.replace("<v>", "<u>1</u><v>") for each in ITEMS]
    sums = WINDOWS.replace("{ $w/v }", "{ sum($w/v) }")
    others = sums.replace("$w/v", "$w/u")
    queries = {"v": sums, "u": others, "items": 'for $i in stream("s")/root/i return $i/u', "late": sums}
    grown = GrowingStream(tmp_path / "s", [*items[:5], first, *items[5:9], second, *items[9:]])
    both(tmp_path, source, [grown], queries, portion=3, accents=False)


VALUES = ('"5"', "5", "5.0", "[]", '["a"]', '"a"', "null", "true", '{"x": [], "y": [1, "1"]}', '"\\n<é"', "1e2")
TYPED = {
    "look": 'for $i in stream("s") where $i.k >= 1 return { "v": $i.v, "n": count($i.v[]) }',
    "copy": 'for $i in stream("s") where $i/k >= 1 return $i',
    "window": 'for $w in stream("s")|t diff 10 step 5| return { "v": array { $w.v }, "s": sum($w.k) }',
    "paths": WINDOWS,
    "count": 'for $w in stream("s")|count 2| for $i in $w group by $k := $i.k return [$k, count($i)]',
    "pairs": 'for $a in stream("s")|count 2|, $b in stream("s")|count 2| where $a.k = $b.k return [$a.v, $b]',
    "top": '(for $i in stream("s") order by $i.k descending, $i.t return { "t": $i.t, "v": $i.v })[position() <= 3]',
    "past": 'for $i in stream("s") where $i.k = 1 return { "v": $i.v, "n": count(stream("s")/root/i?[5]) }',
    "again": 'for $i in stream("s") where $i.k >= 1 return { "v": $i.v, "n": count($i.v[]) }',
}


@pytest.mark.parametrize("timed", [True, False])
def test_json_items(tmp_path: Path, timed: bool) -> None:
    """Items of JSON travel as lines, so lookups and copies behind a link have the types that they have at the source.

    Where the stream has no declared time, that of its arrival travels with each of them.
    """
    values = (VALUES[place % len(VALUES)] for place in range(26))
    items = [f'{{"t": {place}, "k": {place % 3}, "v": {value}}}' for place, value in enumerate(values)]
    source = Source("s", tmp_path / "s", "json", item="i", time=ItemPath.parse("t") if timed else None)
    queries = {name: text for name, text in TYPED.items() if timed or name != "past"}
    both(tmp_path, source, [GrowingStream(tmp_path / "s", items)], queries, portion=3, accents=False)


def test_json_that_evolves(tmp_path: Path) -> None:
    """Accents travel between the lines, also one that cannot be read."""
    accent = '{"$accent": {"where": "v = 2", "alter": {"path": "k", "by": ". * 2"}}}'
    bad = '{"$accent": {"alter": {"path": "v", "by": "?"}}}'
    items = [f'{{"t": {place}, "k": {place % 3}, "v": {place}}}' for place in range(20)]
    source = Source("s", tmp_path / "s", "json", item="i", time=ItemPath.parse("t"))
    grown = GrowingStream(tmp_path / "s", [*items[:8], accent, *items[8:15], bad, *items[15:]])
    copied = 'for $i in stream("s") where $i/t >= 1 return $i'
    looked = 'for $i in stream("s") where $i.t >= 1 return { "k": $i.k }'
    both(tmp_path, source, [grown], {"a": copied, "b": looked, "c": COUNTS, "d": copied}, portion=4)


def test_edited_json(tmp_path: Path) -> None:
    """A stream of updates in JSON travels with the types of its versions, and displays behind a link are JSON."""
    edited = (
        '{"$at": 1, "k": "a", "v": {"$mutable": {"id": "1", "content": 5.0}}}',
        '{"$at": 2, "k": "b", "v": {"$mutable": {"id": "2", "content": {"x": [], "y": "q"}}}}',
        '{"$replace": {"target": "1", "at": 3, "content": "5.0"}}',
        '{"$replace": {"target": "9", "at": 3, "content": 1}}',
        '{"$replace": {"target": "2", "at": 4, "content": null}}',
        '{"$at": 5, "k": "c", "v": [true, {"$mutable": {"id": "3", "content": "x"}}]}',
        '{"$replace": {"target": "1", "at": 6}}',
        '{"$before": {"target": "1", "id": "4", "at": 7, "content": {"z": 1}}}',
    )
    source = Source("s", tmp_path / "s", "json", updates=True)
    copied = 'for $i in stream("s") order by $i.k descending return $i'
    looked = 'for $i in stream("s") return { "k": $i.k, "v": $i.v }'
    grown = [GrowingStream(tmp_path / "s", edited)]
    both(tmp_path, source, grown, {"a": copied, "b": looked, "c": copied}, portion=3)


def test_undeclared_json_is_refused(tmp_path: Path) -> None:
    """A stream that may be JSON says so, before the types of its values are asked for."""
    (tmp_path / "s").mkdir()
    source = Source("s", tmp_path / "s")
    with bare_network(network_of(line(3), [RegisteredStream(source, "SP0", "SP0")]), tmp_path / "n", Random(3)) as net:
        with pytest.raises(UsageError, match="its format is not declared"):
            net.register("a", 'for $i in stream("s") return { "v": $i.v }', "SP2")
        net.register("b", 'for $i in stream("s")/root/item return $i/v', "SP2")
        (tmp_path / "s" / "0").write_text('{"v": 1}\n')
        with pytest.raises(UsageError, match="its format is not declared"):
            net.register("c", 'for $i in stream("s") return $i', "SP2")
