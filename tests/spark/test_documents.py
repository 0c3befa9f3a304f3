"""Documents behind `doc()` in trunks that run on, which change between epochs (LAWS 3.12)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

import pytest

from anabranch import Engine
from anabranch.engine.finite import answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import prepare
from anabranch.errors import StreamError, UsageError
from anabranch.spark.plan.documents import DocumentCopies
from anabranch.storage import Location
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.documents import DocumentSource
from anabranch.stream.reading.source import Source
from anabranch.stream.settings import Settings
from mass import Mass
from spark.bare import BareTrunk

KEYS = ("a", "b", "c", "d")


def table(random: Random) -> str:
    """Some rows with keys, of which some are there twice and some are missing."""
    rows = [
        f'<row n="{random.choice(KEYS)}"><k>{random.choice(KEYS)}</k><v>{random.randrange(100)}</v></row>'
        for _ in range(random.randrange(6))
    ]
    return f"<t>{''.join(rows)}<least>{random.randrange(5)}</least></t>"


def lines(random: Random, times: Sequence[int]) -> str:
    """Items with a time, a key and a number."""
    return "".join(
        f"<p><t>{time}</t><k>{random.choice(KEYS)}</k><n>{random.randrange(100)}</n></p>\n" for time in times
    )


def source(path: Path, name: str = "s") -> Source:
    return Source(name, path, "lines", root="r", time=ItemPath.parse("t"))


def law(queries: Mapping[str, str], sources: Sequence[Source], documents: Mapping[str, DocumentSource]) -> list[str]:
    """What the reference answers with a document as it is now."""
    inputs = Inputs(sources, documents)
    prepared = [prepare(name, text, inputs, "reference") for name, text in queries.items()]
    with answering(prepared, inputs, Settings()) as run:
        return ["".join(run.answers[name]) for name in queries]


ITEMS = {
    "joined": 'for $p in stream("s")/r/p for $x in doc("t")/t/row where $x/k = $p/k return <j>{ $p/t }{ $x/v }</j>',
    "looked up": '<a>{ for $p in stream("s")/r/p return <l>{ doc("t")/t/row[k = $p/k]/v }</l> }</a>',
    "some": 'stream("s")/r/p[some $x in doc("t")/t/row satisfies $x/@n = k and $x/v > n]/t',
    "fixed before": 'let $l := doc("t")/t/least for $p in stream("s")/r/p where $p/n > $l * 10 return $p/n',
    "by function": 'declare function local:of($k) { doc("t")/t/row[k = $k]/v }; '
    'for $p in stream("s")/r/p return <f>{ local:of($p/k) }</f>',
    "priced": 'for $p in stream("s")/r/p let $x := doc("t")/t/row[k = $p/k] where $x/v > 30 '
    "return <m>{ sum(for $y in $x return $y/v * $p/n) }{ count($x) }</m>",
    "by number": 'for $p in stream("s")/r/p where doc("t")/t/row[v = $p/n + 0] return <n>{ doc("t")/t/least }</n>',
    "sorted": 'for $p in stream("s")/r/p '
    'return <o>{ for $x in doc("t")/t/row[k = $p/k] order by $x/v return $x/v }</o>',
}


def test_items_see_what_a_document_holds_when_their_epoch_begins(tmp_path: Path, mass: Mass) -> None:
    """Between runs of epochs of random sizes the document changes; each item has the law's answer with that of then."""
    for number in mass.cases(200):
        random = Random(number)
        folder = tmp_path / str(number)
        (folder / "in").mkdir(parents=True)
        documents = {"t": DocumentSource(folder / "t.xml")}
        trunk = BareTrunk(folder / "state", [source(folder / "in")], random, finite=False)
        trunk.documents = documents
        expected = dict.fromkeys(ITEMS, "")
        for part in range(4):
            if part == 0 or random.random() < 0.7:
                (folder / "t.xml").write_text(table(random))
            now = folder / "in" / f"{part}"
            now.write_text(lines(random, range(part * 10, part * 10 + random.randrange(1, 10))))
            trunk.run(ITEMS, (60, 200, 2_000), (1, 2))
            for name, text in zip(ITEMS, law(ITEMS, [source(now)], documents), strict=True):
                inner = text.removeprefix("<a>").removesuffix("</a>").removesuffix("<a/>")
                expected[name] += inner
        expected["looked up"] = f"<a>{expected['looked up']}</a>"
        assert {name: trunk.answer(name) for name in ITEMS} == expected, number


WINDOWS = {
    "by panes elsewhere": 'for $w in stream("s")/r/p|t diff 10| return <w>{ count($w[k = doc("t")/t/row/k]) }</w>',
    "held": 'for $w in stream("s")/r/p|t diff 10| return <w>{ for $p in $w return doc("t")/t/row[k = $p/k]/v }</w>',
    "behind aggregates": 'for $w in stream("s")/r/p|t diff 10| where avg($w/n) > doc("t")/t/least * 10 '
    "return <w>{ sum($w/n) }</w>",
    "let before": 'let $l := doc("t")/t/least for $w in stream("s")/r/p|t diff 10| return <w>{ $l * count($w) }</w>',
}


def test_windows_see_what_a_document_holds_when_they_close(tmp_path: Path, mass: Mass) -> None:
    """Each part of the input closes one window; it has the law's answer with the document of that part."""
    for number in mass.cases(100):
        random = Random(number)
        folder = tmp_path / str(number)
        (folder / "in").mkdir(parents=True)
        documents = {"t": DocumentSource(folder / "t.xml")}
        trunk = BareTrunk(folder / "state", [source(folder / "in")], random, finite=False)
        trunk.documents = documents
        expected = dict.fromkeys(WINDOWS, "")
        last = lines(random, [0, 3])
        for part in range(4):
            (folder / "t.xml").write_text(table(random))
            (folder / "in" / f"{part}").write_text(last if part == 0 else "")
            begun = lines(random, [10 * (part + 1), 10 * (part + 1) + 4])
            with (folder / "in" / f"{part}").open("a") as file:
                file.write(begun)
            trunk.run(WINDOWS, (60, 200, 2_000), (1, 2))
            (folder / "one").write_text(last)
            for name, text in zip(WINDOWS, law(WINDOWS, [source(folder / "one")], documents), strict=True):
                expected[name] += text
            last = begun
        assert {name: trunk.answer(name) for name in WINDOWS} == expected, number


def test_joins_of_streams_look_things_up(tmp_path: Path) -> None:
    """A step join and an interval join whose pairs are looked up in a document."""
    random = Random(1)
    for name in ("a", "b"):
        (tmp_path / name).write_text(lines(random, range(0, 60, 2)))
    (tmp_path / "t.xml").write_text(table(random))
    sources = [source(tmp_path / name, name) for name in ("a", "b")]
    documents = {"t": DocumentSource(tmp_path / "t.xml")}
    queries = {
        "step": 'for $x in stream("a")/r/p|t diff 10| for $y in stream("b")/r/p|t diff 10| '
        'where $x/k = $y/k and $x/k = doc("t")/t/row/k return <p>{ $x/t }{ doc("t")/t/row[k = $y/k]/v }</p>',
        "interval": 'for $x in stream("a")/r/p for $y in stream("b")/r/p '
        "where $x/t >= $y/t - 4 and $x/t <= $y/t + 4 "
        'return <p>{ $x/t }{ for $z in doc("t")/t/row where $z/k = $x/k return $z/v }</p>',
    }
    trunk = BareTrunk(tmp_path / "state", sources, random, finite=True)
    trunk.documents = documents
    trunk.run(queries, (200, 800), (1, 2))
    assert [trunk.answer(name) for name in queries] == law(queries, sources, documents)
    assert all("<v>" in trunk.answer(name) for name in queries)


DISPLAYS = {
    "each": 'for $i in stream("s")/r/i return <e>{ doc("t")/t/row[k = $i/k]/v }</e>',
    "ordered": 'for $i in stream("s")/r/i for $x in doc("t")/t/row where $x/k = $i/k order by $x/v return $x/v',
    "folded": 'sum(stream("s")/r/i[k = doc("t")/t/row/k]/n) + doc("t")/t/least',
    "fixed": '<a>{ doc("t")/t/row/v }<b>{ count(stream("s")/r/i) }</b></a>',
    "attribute": '<a l="{ doc("t")/t/least }">{ stream("s")/r/i[n > 50]/k }</a>',
    "let first": 'let $l := doc("t")/t/least + 0 for $i in stream("s")/r/i where $i/n > $l * 10 return $i/n',
}


def test_displays_are_corrected_when_a_document_has_changed(tmp_path: Path, mass: Mass) -> None:
    """Behind the first element of an epoch, a display over updates shows what evaluating it anew would show."""
    for number in mass.cases(100):
        random = Random(number)
        folder = tmp_path / str(number)
        (folder / "in").mkdir(parents=True)
        edited = Source("s", folder / "in", "lines", root="r", updates=True)
        documents = {"t": DocumentSource(folder / "t.xml")}
        trunk = BareTrunk(folder / "state", [edited], random, finite=False)
        trunk.documents = documents
        for part in range(4):
            if part == 0 or random.random() < 0.7:
                (folder / "t.xml").write_text(table(random))
            elements = [_edit(random, part, at) for at in range(random.randrange(1, 6))]
            (folder / "in" / f"{part}").write_text("".join(elements))
            trunk.run(DISPLAYS, (60, 200, 2_000), (1, 2))
            assert [trunk.answer(name) for name in DISPLAYS] == law(DISPLAYS, [edited], documents), (number, part)
            if part == 3:  # what others read of the answer is the same as what is kept of it
                assert [_told(trunk, name) for name in DISPLAYS] == [trunk.answer(name) for name in DISPLAYS], number


def _told(trunk: BareTrunk, name: str) -> str:
    """What a reader of the answer has on display at the end."""
    found = trunk.log.subscription(name)
    assert found is not None
    return ["", *(moment.text for moment in trunk.log.moments(found))][-1]


def _edit(random: Random, part: int, at: int) -> str:
    """A new entry, or another version of an old one."""
    content = f"<k>{random.choice(KEYS)}</k><n>{random.randrange(100)}</n>"
    declared = 'xmlns:s="urn:anabranch:stream"'
    if part == 0 or random.random() < 0.5:
        return f'<i {declared}><s:mutable id="{part}.{at}">{content}</s:mutable></i>\n'
    return f'<s:replace {declared} target="0.0">{content}</s:replace>\n'


def test_a_file_that_cannot_be_read_leaves_what_was_there(tmp_path: Path) -> None:
    """Half a file, one that is gone, and one in the midst of JSON: a warning each, once, and the last good content."""
    (tmp_path / "in").mkdir()
    file = tmp_path / "t.xml"
    warned: list[str] = []
    query = 'for $p in stream("s")/r/p return <l>{ doc("t")/t/row[k = $p/k]/v }</l>'

    def answered(part: int) -> str:
        (tmp_path / "in" / f"{part}").write_text("<p><k>a</k></p>\n")
        with Engine(local=True, checkpoint=tmp_path / "state", once=True, on_warning=warned.append) as engine:
            engine.stream("s", tmp_path / "in", format="lines", root="r")
            engine.document("t", file)
            return engine.subscribe(query, "q").answer()

    file.write_text("<t><row><k>a</k><v>1</v></row></t>")
    assert answered(0) == "<l><v>1</v></l>"
    for part, (text, reason) in enumerate(
        [
            ("<t><row><k>a</k><v>2", "not well-formed: no element found at byte 20"),
            ('{"k": "a", "v": 2}\n{"k": "b', "line 2: not JSON"),
            ("<!DOCTYPE t [<!ENTITY e 'x'>]><t>&e;</t>", "undefined entity"),
            (None, "No such file"),
        ],
        1,
    ):
        if text is None:
            file.unlink()
        else:
            file.write_text(text)
        assert answered(part) == "<l><v>1</v></l>" * (part + 1)
        (warning,) = warned
        assert "the document 't' stays as it was" in warning
        assert str(file) in warning
        assert reason in warning
        warned.clear()
    file.write_text("<t><row><k>a</k><v>3</v></row></t>")
    assert answered(5) == "<l><v>1</v></l>" * 5 + "<l><v>3</v></l>"
    assert not warned


def test_a_document_that_was_never_good_is_an_error(tmp_path: Path) -> None:
    """Where nothing is known of it, the file and the reason are named at once."""
    with Engine(local=True) as engine:
        with pytest.raises(UsageError, match=r"cannot read '.*t.xml': No such file"):
            engine.document("t", tmp_path / "t.xml")
        (tmp_path / "t.xml").write_text("<t>")
        with pytest.raises(StreamError, match=r"'.*t.xml': the document cannot be read: not well-formed"):
            engine.document("t", tmp_path / "t.xml")
        (tmp_path / "t.xml").write_text("<t/>")
        engine.document("t", tmp_path / "t.xml")
        with pytest.raises(UsageError, match="there is a document 't' already"):
            engine.document("t", tmp_path / "t.xml")
        (tmp_path / "in").mkdir()
        with pytest.raises(UsageError, match="there is a document 't' already"):
            engine.stream("t", tmp_path / "in")


def test_json_documents(tmp_path: Path) -> None:
    """A table in lines of JSON, and one in an array, are what a stream of JSON would be."""
    (tmp_path / "s").write_text("<p><k>b</k></p>\n<p><k>a</k></p>\n")
    records = '{"k": "a", "v": 1}', '{"k": "b", "v": 2}'
    for number, text in enumerate(("\n\n".join(records), f"[{', '.join(records)}]")):
        (tmp_path / f"{number}.json").write_text(text)
        with Engine(local=True, once=True) as engine:
            engine.stream("s", tmp_path / "s", format="lines", root="r")
            engine.document("t", tmp_path / f"{number}.json", root="t", item="row")
            asked = engine.subscribe('for $p in stream("s")/r/p return doc("t")/t/row[k = $p/k]/v')
            assert asked.answer() == "<v>2</v><v>1</v>"


def test_what_of_a_window_is_fixed_by_a_document_that_is_wrong(tmp_path: Path) -> None:
    """The windows that close meanwhile are set aside, and when it is right again the next are answered."""
    (tmp_path / "in").mkdir()
    query = 'let $f := doc("t")/f + 0 for $w in stream("s")/r/p|t diff 10| return <w>{ $f * count($w) }</w>'
    answers = []
    for part, factor in enumerate(("2", "x", "3")):
        (tmp_path / "t.xml").write_text(f"<f>{factor}</f>")
        (tmp_path / "in" / f"{part}").write_text(f"<p><t>{10 * part}</t></p>\n<p><t>{10 * part + 10}</t></p>\n")
        with Engine(local=True, checkpoint=tmp_path / "state", once=True) as engine:
            engine.stream("s", tmp_path / "in", format="lines", root="r")
            engine.document("t", tmp_path / "t.xml")
            answers.append(engine.subscribe(query, "q").answer())
            dead = list(engine.log.dead_letters())
    assert answers == ["<w>2</w>", "<w>2</w>", "<w>2</w><w>6</w>"]
    assert [(each.code, each.place.offset) for each in dead] == [("FORG0001", 16)]


def test_copies_that_nobody_needs_are_removed(tmp_path: Path) -> None:
    """There is one copy of a document, and none of one that is no longer registered."""
    (tmp_path / "in").mkdir()
    for part, text in enumerate(("<t>1</t>", "<t>2</t>", "<t>2</t>", None)):
        (tmp_path / "in" / f"{part}").write_text("<p/>\n")
        with Engine(local=True, checkpoint=tmp_path / "state", once=True) as engine:
            engine.stream("s", tmp_path / "in", format="lines", root="r")
            if text is not None:
                (tmp_path / "t.xml").write_text(text)
                engine.document("t", tmp_path / "t.xml")
            engine.wait()
        copies = [path.read_text() for path in (tmp_path / "state" / "plans").rglob("*.document")]
        assert copies == ([] if text is None else [text])


def test_a_change_that_shows_in_no_time_of_the_file_is_seen(tmp_path: Path) -> None:
    """A file that was written a moment ago may be written again at the same tick, in the same length."""
    file = tmp_path / "t.xml"
    (tmp_path / "plans").mkdir()
    copies = DocumentCopies(Location.of(tmp_path / "plans"), None, lambda message: None)
    file.write_text("<t>1</t>")
    before = file.stat()
    (first,) = copies.look({"t": DocumentSource(file)})
    file.write_text("<t>2</t>")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    (second,) = copies.look({"t": DocumentSource(file)})
    assert first.digest != second.digest


PLACEMENT = """<placement>
<sensor id="1"><location>hall</location></sensor>
<sensor id="2"><location>attic</location></sensor>
<sensor id="3"><location>hall</location></sensor>
</placement>"""
AVERAGES = """<averages>{ for $w in stream("readings")/readings/reading |time diff 10|
for $r in $w, $s in doc("placement")/placement/sensor
where $s/@id = $r/s
group by $location := $s/location
return <average location="{ $location }" readings="{ count($r) }">{ avg($r/t) }</average> }</averages>"""
HALL = """<averages>{ for $w in stream("readings")/readings/reading |time diff 10|
let $hall := $w[s = doc("placement")/placement/sensor[location = "hall"]/@id]
return <average location="hall" readings="{ count($hall) }">{ avg($hall/t) }</average> }</averages>"""
PLACED = """for $r in stream("readings")/readings/reading
for $s in doc("placement")/placement/sensor where $s/@id = $r/s and $r/t > 20
return <placed>{ $s/location }{ $r/t }</placed>"""


def test_readings_and_where_their_sensors_are(tmp_path: Path) -> None:
    """The standing query of the accents paper (section 2), as it is and for one location: units change on the way.

    Locations are looked up by the law, and what accents do to temperatures is as without a table.
    """
    alter = '<s:alter path="t" by="(. - 32) * 5 div 9"/>'
    accents = [
        f'<s:accent xmlns:s="urn:anabranch:stream"{where}>{alter}</s:accent>' for where in ("", ' where="s = 2"')
    ]
    for number in range(6):
        random = Random(number)
        readings = []
        for time in range(60):
            sensor, degrees = random.randrange(1, 5), random.randrange(50, 90)
            readings.append(f"<reading><s>{sensor}</s><t>{degrees}</t><time>{time}</time></reading>")
        readings.insert(30, accents[number % 2])
        folder = tmp_path / f"{number}"
        folder.mkdir()
        (folder / "s").write_text("\n".join([*readings, ""]))
        (folder / "placement.xml").write_text(PLACEMENT)
        placed = {"placement": DocumentSource(folder / "placement.xml")}
        stream = Source("readings", folder / "s", "lines", root="readings", time=ItemPath.parse("time"))
        queries = {"averages": AVERAGES, "hall": HALL, "placed": PLACED}
        trunk = BareTrunk(folder / "state", [stream], random, finite=True)
        trunk.documents = placed
        trunk.run(queries, (300, 1_000), (1, 2))
        assert [trunk.answer(name) for name in queries] == law(queries, [stream], placed), number
        assert trunk.answer("placed").count("<location>hall</location>") > 5
