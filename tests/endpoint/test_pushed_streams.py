"""Streams that are pushed, at work: the same answers as from files, exactly once, in the order of acceptance."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

from anabranch import Engine, Http
from anabranch.errors import StreamError, UsageError
from anabranch.language import parse
from anabranch.law import evaluate, stream_input
from anabranch.site import read_site
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.intake import survey
from anabranch.spark.intake.ranges import Offset
from anabranch.spark.intake.settings import IntakeSettings
from anabranch.spark.spool import spool as spooling
from anabranch.spark.spool.spool import PushedBody, Spool
from anabranch.storage import Location
from anabranch.stream.limits import Limits
from anabranch.stream.reading.source import Source
from endpoint.client import JSON, LINES, XML, ask, pushed
from mass import some
from partitions import read_partitions
from sockets import listening_addresses
from spark.bare import BareTrunk

QUERIES = {
    "big": '<big>{ for $p in stream("s")/r/p where $p/n > 50 return <hit t="{ $p/t }">{ $p/n }</hit> }</big>',
    "tens": '<tens>{ for $w in stream("s")/r/p|t diff 10| return <w n="{ count($w) }">{ sum($w/n) }</w> }</tens>',
    "pairs": '<pairs>{ for $w in stream("s")/r/p|count 2| return <w>{ $w/n }</w> }</pairs>',
    "most": 'for $p in stream("s")/r/p let $k := $p/k group by $k order by $k return <k>{ $k, sum($p/n) }</k>',
}
JSON_QUERIES = {
    "big": 'for $p in stream("s") where $p.n > 50 return { "t": $p.t, "n": $p.n }',
    "tens": 'for $w in stream("s")|t diff 10| return { "count": count($w), "sum": sum($w.n) }',
}
ACCENT = '<s:accent xmlns:s="urn:anabranch:stream"><s:alter path="n" by=". * 2"/></s:accent>'
JSON_ACCENT = '{"$accent": {"alter": {"path": "n", "by": ". * 2"}}}'
BAD = {"lines": "<p><t>1</t>", "json": '{"t": 1, "n": "?"'}
"""Of a document no item can be broken: its whole body would be refused."""


def items(form: str, random: Random, count: int) -> list[str]:
    """Items with rising times, some of them late or bad, an accent in the middle; in the spelling of a format."""
    found = []
    for number in range(count):
        t, n, k = number + random.choice((0, 0, 0, -2)), f"{random.randrange(1_000) / 10:.2f}", random.choice("ab")
        json_item, item = f'{{"t": {t}, "n": {n}, "k": "{k}é"}}', f"<p><t>{t}</t><n>{n}</n><k>{k}é</k></p>"
        found.append(json_item if form == "json" else item)
        if form in BAD and random.random() < 0.05:
            found.insert(-1, BAD[form])
    accent = JSON_ACCENT if form == "json" else ACCENT
    return [*found[: count // 2], accent, *found[count // 2 :]]


def bodies(form: str, random: Random, given: list[str]) -> Iterator[tuple[str, str]]:
    """The items in batches of any size, in any of the forms that bodies may have, with their types."""
    at = 0
    while at < len(given):
        end = at + random.choice((1, 1, 2, 7, 30))
        while all(each == BAD.get(form) for each in given[at:end]):  # else it would be refused
            end += 1
        batch, at = given[at:end], end
        text = random.choice(("\n", "\r\n")).join(batch)
        if form == "document":
            yield random.choice((text, f"<r>\n{text}</r>", f'<?xml version="1.0"?>\n<r>{text}</r>')), XML
        elif form == "lines":
            yield text, random.choice((XML, "text/xml"))
        elif BAD["json"] in batch or random.random() < 0.3:
            yield text, LINES
        else:
            one = batch[0] if len(batch) == 1 else f"[{','.join(batch)}]"
            yield random.choice((one, f"[{', '.join(batch)}]", "[\n " + " ,\r\n ".join(batch) + "\n]")), JSON


def answers_of(engine: Engine, queries: Mapping[str, str]) -> dict[str, str]:
    """The answers of an engine to all that is there."""
    found = [engine.subscribe(text, name) for name, text in queries.items()]
    engine.start()
    engine.trunk.catch_up()
    return {each.name: each.answer() for each in found}


@pytest.mark.mass
@pytest.mark.parametrize("form", some(["json", "lines", "document"]))
def test_the_answers_are_those_of_files(tmp_path: Path, form: str) -> None:
    """Over one input, pushed in batches of any size and form, read in epochs of any size, in run after run."""
    random = Random(len(form))
    given = items(form, random, 200)
    sent = list(bodies(form, random, given))
    queries = JSON_QUERIES if form == "json" else QUERIES
    (tmp_path / "in").write_text(f"<r>{''.join(given)}</r>" if form == "document" else "\n".join(given) + "\n")
    declared = {"format": form, "time": "t", **({} if form == "json" else {"root": "r"})}
    with Engine(local=True, epoch_bytes=200) as engine:
        engine.stream("s", tmp_path / "in", **declared)  # type: ignore[arg-type]  # texts all
        expected = answers_of(engine, queries)
    found: dict[str, str] = {}
    at = 0
    while at < len(sent):
        size = random.choice((50, 300, 10_000))
        with Engine(local=True, checkpoint=tmp_path / "state", epoch_bytes=size, trigger_ms=5) as engine:
            stream = engine.stream("s", Http(), **declared)  # type: ignore[arg-type]  # texts all
            assert stream.url is not None
            for text, kind in sent[at : at + 15]:
                assert ask(stream.url, text, kind).status == 200
            found = answers_of(engine, queries)
        at += 15
    assert found == expected
    assert all(len(each) > (30 if name == "most" else 300) for name, each in found.items())


def test_all_kinds_of_elements_come_in_bodies(tmp_path: Path) -> None:
    """Updates and heartbeats as well as items: a display is corrected by what is pushed."""
    query = 'sum(stream("s")/root/p/n)'
    with Engine(local=True, trigger_ms=5) as engine:
        url = engine.stream("s", Http(), format="lines", updates=True).url
        assert url is not None
        shown = engine.subscribe(query, "sum").display()
        declared = 'xmlns:s="urn:anabranch:stream"'
        for text, expected in (
            (f'<p><s:mutable {declared} id="a"><n>5</n></s:mutable></p>', "5"),
            ("<p><n>7</n></p>", "12"),
            (f'<s:replace {declared} target="a"><n>1</n></s:replace>', "8"),
        ):
            assert ask(url, text, XML).status == 200
            assert any(shown.text == expected for _ in shown)


def test_a_bad_item_is_found_in_its_request(tmp_path: Path) -> None:
    """A dead letter's byte, less the start that its request was told, is the byte in the body, whatever the epochs."""
    sent = ['{"n": 1}\n{"n": \n{"n": 2}', '[{"n": 1},\n {"n": 1, "n": 2}, "text"]', '[{"n": "x"}]']
    for size in (10, 10_000):
        with Engine(local=True, checkpoint=tmp_path / f"state-{size}", trigger_ms=5, epoch_bytes=size) as engine:
            url = engine.stream("s", Http()).url
            assert url is not None
            engine.subscribe('for $p in stream("s") return { "n": $p.n + 1 }', "q")
            engine.start()
            places = [ask(url, text, kind).content for text, kind in zip(sent, (LINES, JSON, JSON), strict=True)]
            engine.trunk.catch_up()
            manifests = engine.log.manifests.since(0)
            found = [letter for manifest in manifests for letter in engine.log.buried(manifest)]
        assert {(each.place.stream, each.place.partition) for each in found} == {("s", "http")}
        bad = {
            (number, each.place.offset - place["start"])
            for each in found
            for number, place in enumerate(places)
            if place["start"] <= each.place.offset < place["end"]
        }
        assert len(found) == 4
        assert bad == {(0, sent[0].index("\n{") + 1), (1, 10), (1, sent[1].index('"text"') - 1), (2, 0)}


def test_a_later_run_goes_on(tmp_path: Path) -> None:
    """What nobody has read is read by the next run, once; keys, positions and the address of the record go on, too."""
    query = 'for $p in stream("s") return { "n": $p.n }'

    def engine(**more: object) -> Engine:
        return Engine(local=True, checkpoint=tmp_path / "state", trigger_ms=5, **more)  # type: ignore[arg-type]

    with engine() as first:
        url = first.stream("s", Http()).url
        assert url is not None
        record = json.loads((tmp_path / "state" / "endpoint.json").read_text().splitlines()[0])
        assert url == f"{record['address']}/streams/s"
        assert ask(url, '{"n": 1}', Idempotency_Key="one").status == 200
        assert ask(url).content["behind"] == 9
    with engine(once=True) as second:
        second.stream("s", Http())
        assert second.subscribe(query, "q").answer() == '{"n": 1}\n'
    with engine() as third:
        url = third.stream("s", Http()).url
        assert url is not None
        assert ask(url, '{"n": 1}', Idempotency_Key="one").content == {
            "stream": "s",
            "start": 0,
            "end": 8,
            "repeated": True,
        }
        assert ask(url, '{"n": 2}').content["start"] == 9
        asked = third.subscribe(query, "q")
        third.start()
        third.trunk.catch_up()
        assert asked.answer() == '{"n": 1}\n{"n": 2}\n'
        assert ask(url).content == {"stream": "s", "accepted": 18, "read": 18, "behind": 0}


@pytest.mark.mass
def test_what_was_read_leaves_the_checkpoint(tmp_path: Path) -> None:
    """After hundreds of requests in many epochs one file of the spool is left, and the order log has one line."""
    with Engine(local=True, checkpoint=tmp_path / "state", trigger_ms=5) as engine:
        url = engine.stream("s", Http()).url
        assert url is not None
        asked = engine.subscribe('for $p in stream("s") where $p.n mod 100 = 0 return { "n": $p.n }', "q")
        engine.start()
        for number in range(300):
            assert ask(url, f'{{"n": {number}}}').status == 200
        engine.trunk.catch_up()
        assert asked.answer() == '{"n": 0}\n{"n": 100}\n{"n": 200}\n'
    (spool,) = (tmp_path / "state" / "spool").iterdir()
    assert len(list(spool.iterdir())) == 1
    lines = [line for part in (tmp_path / "state" / "order").glob("*/*") for line in part.read_text().splitlines()]
    assert len(lines) == 2


def test_a_stream_stays_what_it_is(tmp_path: Path) -> None:
    """Pushed or from files, and its format: another declaration under the same name is refused."""
    (tmp_path / "in").write_text('{"n": 1}\n')
    (tmp_path / "state").mkdir()

    def run(**declared: object) -> None:
        with Engine(local=True, checkpoint=tmp_path / "state", once=True) as engine:
            source = Http() if "format" in declared else tmp_path / "in"
            url = engine.stream("s", source, **declared).url  # type: ignore[arg-type]  # texts all
            if url is not None:
                assert ask(url, '{"n": 1}').status == 200
            engine.subscribe('stream("s")//n', "q")
            engine.wait()

    run(format="json")
    with pytest.raises(UsageError, match="the stream 's' was pushed until now, not read from files"):
        run()
    with pytest.raises(UsageError, match="was read as 'json' until now, not as 'lines'"):
        run(format="lines")
    with Engine(local=True, checkpoint=tmp_path / "files", once=True) as engine:
        engine.stream("s", tmp_path / "in", format="json")
        engine.subscribe('stream("s")//n', "q")
        engine.wait()
    with (
        Engine(local=True, checkpoint=tmp_path / "files") as engine,
        pytest.raises(UsageError, match="the stream 's' was read from files until now, not pushed"),
    ):
        engine.stream("s", Http())


def test_an_engine_that_cannot_listen(tmp_path: Path) -> None:
    """An address that is taken, or a token that is missing, is told before the engine has the stream."""
    (tmp_path / "in").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        with Engine(local=True, listen=listen) as engine:
            with pytest.raises(UsageError, match=f"cannot listen on '{listen}': Address already in use"):
                engine.stream("s", Http())
            engine.stream("s", tmp_path / "in")
    with Engine(local=True, listen="0.0.0.0:0") as engine:
        with pytest.raises(UsageError, match="takes a token, for others can reach it"):
            engine.stream("s", Http())
        assert not [each for each in listening_addresses() if not each.is_loopback]


def test_a_stream_that_is_refused_leaves_nobody_listening(tmp_path: Path) -> None:
    """Who connects in vain should be told so; the next stream opens the endpoint."""
    (tmp_path / "d.dtd").write_text("<!ELEMENT r (p*)> <!ELEMENT p (#PCDATA)>")
    with Engine(local=True, trigger_ms=5) as engine:
        before = listening_addresses()
        with pytest.raises(UsageError, match="a pushed stream with a DTD is one of XML"):
            engine.stream("s", Http(), dtd=tmp_path / "d.dtd")
        with pytest.raises(UsageError, match="must be at least 1 byte"):
            engine.stream("s", Http(0))
        with pytest.raises(UsageError, match="is unknown"):
            engine.stream("s", Http(), format="csv")
        assert listening_addresses() == before
        url = engine.stream("s", Http()).url
        assert url is not None
        assert ask(url, '{"n": 1}').status == 200


def test_what_a_run_waits_for(tmp_path: Path) -> None:
    """A stream into which nothing was pushed yet is named; then nothing is waited for."""
    source = pushed(tmp_path, "s", "lines")
    trunk = BareTrunk(tmp_path / "state", [source], Random(1), finite=False)
    (wait,) = trunk.waits()
    assert (wait.stream, wait.message) == ("s", "nothing was pushed into 's' yet")
    spool = Spool(source, 0)
    spool.accept(PushedBody(b"<p/>\n", "lines", "")).result(60)
    trunk.run({"q": 'stream("s")/root/p'}, [100], [1])
    assert trunk.waits() == []
    spool.close()


JOIN = """<o>{ for $x in stream("a")/root/p |count 2| for $y in stream("b")/root/p |count 2|
    return <w>{ $x/n, $y/n }</w> }</o>"""


@pytest.mark.parametrize("form", some(["lines", "document"]))
def test_elements_have_the_moment_of_acceptance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    """Two streams without times are merged in the order in which requests were accepted, whenever they are read.

    The judge is the law over files in which each item carries its moment: when it was accepted, by a clock that ticks
    twenty times a second, but behind all that was looked at before.
    """
    for seed in some(range(8)):
        random, now = Random(seed), [1_000_000]
        monkeypatch.setattr(spooling, "time_ns", lambda now=now: now[0] * 1_000)
        monkeypatch.setattr(survey, "time_ns", lambda now=now: now[0] * 1_000)
        top = tmp_path / str(seed)
        top.mkdir()
        sources = [pushed(top, name, form) for name in "ab"]
        spools = [Spool(each, 0) for each in sources]
        trunk = BareTrunk(top / "state", sources, random, finite=False)
        told: dict[str, list[str]] = {"a": [], "b": []}
        looked, fresh = 0, False
        for number in range(40):
            now[0] += random.choice((1_000, 20_000, 60_000, 200_000))
            if random.random() < 0.3 or number == 39:
                trunk.run({"join": JOIN}, [30, 1_000], [1, 2])
                looked, fresh = (now[0], False) if fresh else (looked, False)
                continue
            which = random.randrange(2)
            item, name = f"<p><n>{number}</n></p>", "ab"[which]
            text = f"<root>{item}</root>\n" if form == "document" else f"{item}\n"
            spools[which].accept(PushedBody(text.encode(), form, "")).result(60)  # type: ignore[arg-type]
            at = Decimal(max(now[0] // 50_000 * 50_000, looked + 1)) / 1_000_000
            told[name].append(item.replace("<p>", f'<p xmlns:s="urn:anabranch:stream" s:at="{at}">'))
            fresh = True
        inputs = {}
        for name, lines in told.items():
            (top / f"{name}.xml").write_text("".join(f"{line}\n" for line in lines))
            root, partitions = read_partitions(Source(name, top / f"{name}.xml", "lines"), Limits())
            inputs[name], _ = stream_input(root, partitions, time=None, slack=Fraction(0), endless=True)
        found = trunk.answer("join")
        expected = evaluate(parse(JOIN), inputs).text
        assert found.count("<w>") > 10
        assert expected.startswith(found.removesuffix("</o>"))
        assert found.count("<w>") >= expected.count("<w>") - 2, "what waits is the last that came"
        for each in spools:
            each.close()


def test_moments_lie_between_two_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was accepted while the survey looked has a moment behind that look, whatever the size of epochs."""
    now = [0]
    monkeypatch.setattr(spooling, "time_ns", lambda: now[0] * 1_000)
    monkeypatch.setattr(survey, "time_ns", lambda: now[0] * 1_000)
    checkpoint = Checkpoint.make(tmp_path / "state")
    source, other = pushed(tmp_path, "s", "lines"), pushed(tmp_path, "t", "lines")
    spools = [Spool(source, 0), Spool(other, 0)]
    for size in (1, 1_000):
        looks: list[tuple[int, int, int, int]] = []
        start: Offset = {}
        IntakeSettings((source, other), size, None, 2, False).save(checkpoint)
        for moment in (1_010_000, 1_020_000, 1_060_000, 1_200_000):
            if size == 1:
                now[0] = moment
                for spool in spools:
                    spool.accept(PushedBody(b"<p/>\n<p/>\n", "lines", "")).result(60)
            now[0] = moment + 1_000
            looked = survey.Survey(checkpoint)
            while (end := looked.latest(start)) != start:
                found = [each for each in looked.ranges(start, end) if each.mark is None]
                assert found == [each for each in survey.Survey(checkpoint).ranges(start, end) if each.mark is None]
                looks += [(each.start, each.end, each.arrived or 0, now[0]) for each in found if each.stream == "s"]
                start = end
        times = [(at, look) for first, end, at, look in looks for _ in range(first, end, 5)]
        if size == 1:
            assert times == [
                *[(1_000_000, 1_011_000)] * 2,
                *[(1_011_001, 1_021_000)] * 2,  # its tick is that of the first
                *[(1_050_000, 1_061_000)] * 2,
                *[(1_200_000, 1_201_000)] * 2,
            ]
        else:
            assert [at for at, _ in times] == [*[1_000_000] * 4, *[1_011_000] * 4], "nothing is behind its look"
        checkpoint = Checkpoint.make(tmp_path / "another")
    for spool in spools:
        spool.close()


# --- sites ------------------------------------------------------------------------------------------------

SITE = '[engine]\ncheckpoint = "state"\n[streams.s]\nsource = "http"\n'


def site(top: Path, text: str) -> Path:
    (top / "site.toml").write_text(text)
    return top / "site.toml"


def test_sites_declare_pushed_streams(tmp_path: Path) -> None:
    """With their backlog, and the endpoint for all of them; a stream is one of JSON unless it says otherwise."""
    (tmp_path / "token").write_text("0123456789abcdef")
    text = f'{SITE}backlog = "2 MB"\n[http]\nlisten = "0.0.0.0:80"\ntoken_file = "token"\nmax_body = 1000\n'
    found = read_site(site(tmp_path, f"{text}connections = 7\n"))
    stream, endpoint = found.streams["s"], found.endpoint
    assert (stream.http, stream.format) == (Http(2_000_000), "json")
    assert stream.path == Checkpoint(Location.of(tmp_path / "state")).spool("s")
    assert (endpoint.address(), endpoint.token_file) == (("0.0.0.0", 80), tmp_path / "token")
    assert (endpoint.max_body, endpoint.connections, endpoint.token()) == (1_000, 7, "0123456789abcdef")
    assert "0123456789abcdef" not in repr(found)
    plain = read_site(site(tmp_path, SITE + 'format = "document"\n'))
    assert (plain.streams["s"].http, plain.streams["s"].format) == (Http(), "document")
    assert plain.endpoint.address() == ("127.0.0.1", 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{SITE}path = 'in'\n", "line 5, [streams.s]: 'path' is unknown"),
        (f"{SITE}backlog = 0\n", "line 5, [streams.s]: 'backlog' takes a number of bytes or a size, not '0'"),
        (f"{SITE}backlog = 'much'\n", "line 5, [streams.s]: 'backlog' takes a number of bytes or a size, not 'much'"),
        (f"{SITE}format = 'csv'\n", "line 5, [streams.s]: the format 'csv' is unknown"),
        (f"{SITE}dtd = 'd.dtd'\n", "a pushed stream with a DTD is one of XML, and its format must be said"),
        (f"{SITE}[http]\nlisten = '80'\n", "line 6, [http]: 'listen' takes an address and a port, not '80'"),
        (f"{SITE}[http]\nmax_body = -1\n", "line 6, [http]: 'max_body' takes a number of bytes or a size, not '-1'"),
        (f"{SITE}[http]\nport = 80\n", "line 6, [http]: 'port' is unknown"),
        (SITE.replace("http", "https"), "line 4, [streams.s]: the source 'https' is unknown"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, message: str) -> None:
    """With the line and the table that they stand in."""
    (tmp_path / "d.dtd").write_text("<!ELEMENT r (p*)> <!ELEMENT p (#PCDATA)>")
    with pytest.raises(UsageError) as found:
        read_site(site(tmp_path, text))
    assert message in found.value.message


def test_the_token_is_not_written_over(tmp_path: Path) -> None:
    """No log or sink may be the file with the token."""
    (tmp_path / "token").write_text("0123456789abcdef")
    text = SITE.replace("[streams.s]", 'log = "token"\n[streams.s]') + '[http]\ntoken_file = "token"\n'
    with pytest.raises(UsageError, match="that is the file with the token"):
        read_site(site(tmp_path, text))


def test_accents_are_sent_not_published(tmp_path: Path) -> None:
    """Only the endpoint of the run that holds the checkpoint adds to a spool."""
    from anabranch.site_reports import accent_plan

    with pytest.raises(StreamError, match="the stream 's' is pushed") as found:
        accent_plan(site(tmp_path, SITE), "s", "<s:accent><s:drop path='n'/></s:accent>", None)
    assert found.value.hint == "send the accent there, as any item"
