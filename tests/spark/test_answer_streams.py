"""Answers that are streams of the same site (LAWS 3.12)."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from random import Random
from threading import Condition

import pytest

from anabranch import Engine
from anabranch.engine.finite import answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import prepare
from anabranch.errors import UsageError
from anabranch.spark.plan.epoch_plan import Registration
from anabranch.spark.sinks import answer_streams
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from anabranch.stream.settings import Settings

WARM = '<warm>{ for $p in stream("s")/r/p where $p/n > 30 return <w k="{ $p/k }">{ $p/t }{ $p/n }</w> }</warm>'
MEANS = 'for $w in stream("warm")/warm/w|t diff 10| return <m>{ avg($w/n) }</m>'
COUNTS = 'for $w in stream("means")/answer/m|count 2| return <c>{ sum($w) }</c>'


def lines(random: Random, times: range) -> str:
    """Items with a time, a key and a number."""
    return "".join(f"<p><t>{t}</t><k>{random.choice('ab')}</k><n>{random.randrange(100)}</n></p>\n" for t in times)


def reference(query: str, source: Source) -> str:
    """What the law answers over all of a stream; windows that are open at the end are answered then."""
    inputs = Inputs([source])
    with answering([prepare("q", query, inputs, "reference")], inputs, Settings()) as run:
        return "".join(run.answers["q"])


@pytest.mark.mass
def test_answers_of_answers(tmp_path: Path) -> None:
    """Windows over an answer, and windows over theirs, in runs that begin again and again with epochs of any size."""
    random = Random(4)
    (tmp_path / "in").mkdir()
    for part in range(6):
        (tmp_path / "in" / f"{part}").write_text(lines(random, range(part * 20, part * 20 + 20)))
        size = random.choice((100, 300, 5_000))
        with Engine(local=True, checkpoint=tmp_path / "state", once=True, epoch_bytes=size) as engine:
            engine.stream("s", tmp_path / "in", format="lines", root="r")
            warm = engine.subscribe(WARM, "warm")
            engine.stream("warm", warm, time="t")
            means = engine.subscribe(MEANS, "means")
            engine.stream("means", means)
            counts = engine.subscribe(COUNTS, "counts")
            engine.wait()
            found = [each.answer() for each in (warm, means, counts)]
        documents = sorted(each.name for each in (tmp_path / "state" / "answers").glob("warm*/*"))
        assert len(documents) <= 6, "what was read is forgotten"
    source = Source("s", tmp_path / "in", "lines", root="r")
    assert found[0] == reference(WARM, source)
    (tmp_path / "warm.xml").write_text(found[0])
    answered = reference(MEANS, Source("warm", tmp_path / "warm.xml", time=ItemPath.parse("t")))
    assert found[1] == answered[: len(found[1])]
    assert answered.count("<m>") == found[1].count("<m>") + 1, "the last window is open"
    (tmp_path / "means.xml").write_text(f"<answer>{found[1]}</answer>")
    assert found[2] == reference(COUNTS, Source("means", tmp_path / "means.xml"))
    assert found[2].count("<c>") >= 4


def test_an_engine_that_follows(tmp_path: Path) -> None:
    """An answer is read on as it comes, without an end."""
    (tmp_path / "in").mkdir()
    with Engine(local=True, trigger_ms=5) as engine:
        engine.stream("s", tmp_path / "in", format="lines", root="r")
        engine.stream("big", engine.subscribe('for $p in stream("s")/r/p where $p/n > 5 return $p', "big"))
        answers = iter(engine.subscribe('stream("big")/answer/p/n', "numbers"))
        for part, number in enumerate((9, 7, 8)):
            (tmp_path / "in" / f"{part}").write_text(f"<p><n>{number}</n></p>\n<p><n>1</n></p>\n")
            assert next(answers) == f"<n>{number}</n>"


def test_values_are_items_of_their_own(tmp_path: Path) -> None:
    """Numbers are told apart whatever epoch they come in; texts cannot be, and are refused."""
    (tmp_path / "s").write_text("".join(f"<p><n>{number}</n></p>\n" for number in range(6)))
    with Engine(local=True, once=True, epoch_bytes=40) as engine:
        engine.stream("s", tmp_path / "s", format="lines", root="r")
        twice = engine.subscribe('for $p in stream("s")/r/p return $p/n * 2', "twice")
        engine.stream("twice", twice, item="n")
        asked = engine.subscribe('for $w in stream("twice")/answer/n|count 3| return <s>{ sum($w) }</s>')
        assert asked.answer() == "<s>6</s><s>24</s>"
        texts = engine.subscribe('for $p in stream("s")/r/p return string($p/n)', "texts")
        with pytest.raises(UsageError, match="its results may be texts"):
            engine.stream("texts", texts)


def test_what_stands_around_the_results_is_the_root(tmp_path: Path) -> None:
    """The innermost element, with its attributes and namespaces; what stands beside the results is no item."""
    (tmp_path / "s").write_text("<p><n>1</n></p>\n<p><n>2</n></p>\n")
    results = '{ for $p in stream("s")/r/p return <x:i>{ $p/n }</x:i> }'
    query = f'<a xmlns:x="urn:x"><head/><x:b u="F">{results}</x:b></a>'
    with Engine(local=True, once=True) as engine:
        engine.stream("s", tmp_path / "s", format="lines", root="r")
        engine.stream("t", engine.subscribe(query, "q"))
        asked = engine.subscribe(
            'declare namespace x = "urn:x"; for $i in stream("t")/x:b/* return <n>{ string($i/n), local-name($i) }</n>'
        )
        assert asked.answer() == "<n>1 i</n><n>2 i</n>"


def test_a_display_is_a_stream_of_updates(tmp_path: Path) -> None:
    """A display over a display shows what the law says of both."""
    declared = 'xmlns:s="urn:anabranch:stream"'
    (tmp_path / "in").mkdir()
    first = '<i>{ for $i in stream("s")/r/i where $i/v > 3 return <big>{ $i/v }</big> }</i>'
    answers = []
    for part, text in enumerate(
        (
            f'<i {declared}><s:mutable id="a"><v>1</v></s:mutable></i>\n<i><v>5</v></i>\n',
            f'<s:replace {declared} target="a"><v>7</v></s:replace>\n',
            f'<s:replace {declared} target="a"><v>4</v></s:replace>\n<i><v>9</v></i>\n',
        )
    ):
        (tmp_path / "in" / f"{part}").write_text(text)
        with Engine(local=True, checkpoint=tmp_path / "state", once=True, epoch_bytes=60) as engine:
            engine.stream("s", tmp_path / "in", format="lines", root="r", updates=True)
            engine.stream("big", engine.subscribe(first, "big"))
            answers.append(engine.subscribe('sum(stream("big")//big/v)', "sum").answer())
    assert answers == ["5", "12", "18"]


def test_cycles_are_refused(tmp_path: Path) -> None:
    """An answer that would depend on itself is refused by name, also by way of others."""
    (tmp_path / "in").mkdir()
    with Engine(local=True) as engine:
        engine.stream("s", tmp_path / "in", format="lines", root="r")
        one = engine.subscribe('for $p in stream("s")/r/p return $p', "one")
        engine.stream("first", one)
        engine.stream("second", engine.subscribe('for $p in stream("first")/answer/p return $p', "two"))
        one.cancel()
        with pytest.raises(UsageError, match="the stream 'first' is the answer of 'one', which depends on 'first'"):
            engine.subscribe('for $p in stream("second")/answer/p return $p', "one")


def test_an_epoch_behind_one_that_was_not_delivered_is_not_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A delivery fails while the next epoch is at work: the next run delivers both, and no result is lost."""
    (tmp_path / "s").write_text(lines(Random(7), range(40)))
    asked = 'stream("warm")/warm/w/n'
    moved, begun, failing = Condition(), -1, True
    original = answer_streams.AnswerStream.take

    def point(name: str, epoch: int) -> None:
        nonlocal begun
        if name == "plan-written":
            with moved:
                begun = epoch
                moved.notify_all()

    def take(self: answer_streams.AnswerStream, asked: Registration, epoch: int, texts: Iterable[str]) -> None:
        nonlocal failing
        if failing:
            failing = False
            with moved:
                assert moved.wait_for(lambda: begun > epoch, timeout=60)
            raise OSError("the disk was full for a moment")
        original(self, asked, epoch, texts)

    monkeypatch.setattr("anabranch.spark.epoch.trunk.point", point)
    monkeypatch.setattr(answer_streams.AnswerStream, "take", take)
    for raises in (pytest.raises(OSError, match="for a moment"), nullcontext()):
        with raises, Engine(local=True, checkpoint=tmp_path / "state", once=True, epoch_bytes=200) as engine:
            engine.stream("s", tmp_path / "s", format="lines", root="r")
            engine.stream("warm", engine.subscribe(WARM, "warm"))
            numbers = engine.subscribe(asked, "numbers")
            engine.wait()
            found = numbers.answer()
    (tmp_path / "warm.xml").write_text(reference(WARM, Source("s", tmp_path / "s", "lines", root="r")))
    assert found == reference(asked, Source("warm", tmp_path / "warm.xml"))


@pytest.mark.parametrize("place", ["sinks-moved", "manifest-published", "plan-written", "answer-written"])
def test_a_run_that_dies_delivers_every_result_once(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it dies, the next run reads on: no result is lost, and none comes twice."""
    random = Random(7)
    (tmp_path / "s").write_text(lines(random, range(40)))
    source = Source("s", tmp_path / "s", "lines", root="r")
    asked = 'stream("warm")/warm/w/n'
    deaths = iter([2, 1, 3, 0, 1])

    class Died(Exception):
        pass

    left = 0

    def point(name: str, epoch: int) -> None:
        nonlocal left
        if name == place:
            left -= 1
            if left == 0:
                raise Died

    monkeypatch.setattr("anabranch.spark.epoch.trunk.point", point)
    original = answer_streams.AnswerStream.take

    def take(self: answer_streams.AnswerStream, *given: object) -> None:
        point("answer-written", 0)
        original(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(answer_streams.AnswerStream, "take", take)
    for _ in range(6):
        left = next(deaths, -1)
        with Engine(local=True, checkpoint=tmp_path / "state", once=True, epoch_bytes=200) as engine:
            try:
                engine.stream("s", tmp_path / "s", format="lines", root="r")
                engine.stream("warm", engine.subscribe(WARM, "warm"))
                numbers = engine.subscribe(asked, "numbers")
                engine.wait()
            except Died:
                continue
            found = numbers.answer()
    (tmp_path / "warm.xml").write_text(reference(WARM, source))
    assert found == reference(asked, Source("warm", tmp_path / "warm.xml"))
    assert found.count("<n>") > 10


@pytest.mark.mass
def test_what_is_unread_outlives_retention(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Epochs that are dropped take nothing from a stream that has still to read their answers."""
    monkeypatch.setattr("anabranch.spark.checkpoint.retention.MIN_EPOCHS", 8)
    random = Random(5)
    (tmp_path / "s").write_text(lines(random, range(150)))
    with Engine(local=True, checkpoint=tmp_path / "state", once=True, epoch_bytes=100, keep=8) as engine:
        engine.stream("s", tmp_path / "s", format="lines", root="r")
        engine.stream("warm", engine.subscribe(WARM, "warm"))
        counted = engine.subscribe('for $w in stream("warm")/warm/w|count 5| return <c>{ sum($w/n) }</c>', "counted")
        results = list(counted)
        assert engine.log.manifests.epochs()[0] > 8, "most epochs were dropped"
    warm = reference(WARM, Source("s", tmp_path / "s", "lines", root="r"))
    (tmp_path / "warm.xml").write_text(warm)
    expected = reference(
        'for $w in stream("warm")/warm/w|count 5| return <c>{ sum($w/n) }</c>', Source("warm", tmp_path / "warm.xml")
    )
    assert "".join(results) == expected


PLACED = """
for $r in stream("sensors")/r/reading, $p in stream("placement")/r/place
where $r/s = $p/s
return <placed>{ $r/ts, $p/l, $r/s, $r/t }</placed>
"""
BY_LOCATION = """
for $w in stream("placed")/answer/placed|ts diff 300|
for $p in $w
group by $l := $p/l
return <location><l>{ $l }</l><t>{ avg($p/t) }</t></location>
"""


def test_the_standing_query_of_the_accents_paper(tmp_path: Path) -> None:
    """LAWS case 159: readings joined with placements by the sensor, averaged by location and window; in one or two.

    Sensor 2 changes to Celsius at 400, sensor 1 at 700; with all of them known, so does the answer.
    """
    change = '<s:alter path="t" by="(. - 32) * 5 div 9"/>'
    celsius = f'<s:accent xmlns:s="urn:anabranch:stream" where="s = {{}}">{change}</s:accent>\n'
    reading = "<reading><ts>{}</ts><s>{}</s><t>{}</t></reading>\n"
    told = [reading.format(*each) for each in ((10, 1, 68), (20, 2, 72), (30, 3, 50), (310, 1, 70))]
    told += [celsius.format(2), reading.format(400, 2, 25), reading.format(410, 3, 41), reading.format(610, 1, 68)]
    told += [celsius.format(1), celsius.format(3), reading.format(700, 2, 20), reading.format(710, 3, 10)]
    told += [reading.format(950, 1, 0)]
    places = "".join(
        f"<place><at>{n}</at><s>{n}</s><l>{place}</l></place>\n" for n, place in ((1, "A"), (2, "A"), (3, "B"))
    )
    (tmp_path / "sensors").write_text("".join(told))
    (tmp_path / "placement").write_text(f'{places}<s:punctuation xmlns:s="urn:anabranch:stream" at="2000"/>\n')
    with Engine(local=True, once=True, epoch_bytes=300) as engine:
        domains = {"s": [1, 2, 3]}
        engine.stream("sensors", tmp_path / "sensors", format="lines", root="r", time="ts", domains=domains)
        engine.stream("placement", tmp_path / "placement", format="lines", root="r", time="at", retain="1 h")
        placed = engine.subscribe(PLACED, "placed")
        engine.stream("placed", placed, time="ts", domains=domains)
        averages = engine.subscribe(BY_LOCATION, "averages")
        engine.wait()
        found = averages.answer()
    assert placed.warnings == (
        "'placed' keeps the items of 'sensors' until punctuations of the other streams close their keys (placed:2:5); "
        "'retain' of the stream bounds them",
    )
    with Engine(local=True, once=True, epoch_bytes=300) as engine:
        engine.stream("sensors", tmp_path / "sensors", format="lines", root="r", time="ts", domains=domains)
        engine.stream("placement", tmp_path / "placement", format="lines", root="r", time="at", retain="1 h")
        at_once = engine.subscribe(BY_LOCATION.replace('stream("placed")/answer/placed', f"({PLACED})"), "at_once")
        assert at_once.answer() == found
        kept = "'at_once' keeps the items of 'sensors' until punctuations of the other streams close their keys"
        assert at_once.warnings == (f"{kept} (at_once:3:5); 'retain' of the stream bounds them",)
    accent = '<s:accent xmlns:s="urn:anabranch:stream"><s:alter path="t" by=". * 5 div 9 - 160 div 9"/></s:accent>'
    first = "<location><l>A</l><t>70</t></location><location><l>B</l><t>50</t></location>"
    second = "<location><l>A</l><t>73.5</t></location><location><l>B</l><t>41</t></location>"
    third = "<location><l>A</l><t>20</t></location><location><l>B</l><t>10</t></location>"
    assert found == f"{first}{second}{accent}{third}"
