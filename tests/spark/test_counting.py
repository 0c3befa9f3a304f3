from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

from anabranch.columnar.panes.query import relaxed, shared
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from branch.counting import FILE, Stream
from branch.test_grouped import one_query as one_grouped_query
from branch.test_grouped import one_stream as one_grouped_stream
from branch.test_panes import one_query, one_stream
from disk import on_disk
from spark.bare import BareTrunk

SUM = 'for $w in stream("s")/r/i[n > 1] |{}| return <o>{{ sum($w/n), max($w/n) }}</o>'
MIN = 'for $w in stream("s")/r/i[n > 1] |{}| let $a := min($w/n) where $a < 5 return <o>{{ $a }}</o>'


def laid(stream: Stream, folder: Path) -> Source:
    """The stream on disk."""
    folder.mkdir()
    (folder / FILE).write_bytes(stream.data)
    time = None if stream.time is None else ItemPath.parse(stream.time)
    return Source("s", folder, "lines", None, "r", None, time, Fraction(stream.slack), Fraction(stream.origin))


@pytest.mark.mass
def test_windows_are_counted_together_and_answered_apart(tmp_path: Path) -> None:
    """Many window queries on one trunk, with 1, 7 and 2 shards in turn over one checkpoint: each has the law's answer.

    Their states lie together, and are found by whoever has the branch next.
    """
    dead, late = 0, 0
    for number in (1, 2, 5):
        random = Random(f"counting {number}")
        stream = one_stream(random)
        stream.late = False
        while len(stream.items) < 20:
            stream.items = one_stream(random).items
        found = (one_query(random) for _ in range(8))
        queries = {f"q{each}": query for each, query in enumerate(dict.fromkeys(found)) if stream.plan(query)}
        trunk = BareTrunk(tmp_path / f"state-{number}", [laid(stream, tmp_path / f"in-{number}")], random, finite=True)
        size = len(stream.data)
        trunk.run(queries, (size // 9 + 1, size // 3 + 1), (1, 7, 2))
        for name, query in queries.items():
            law = stream.by_law(query)
            assert trunk.answer(name) == law.text, (number, query, stream)
            letters = {
                (each.place.offset, each.reason) for each in trunk.log.dead_letters() if each.subscription == name
            }
            assert letters == {(each.place.offset, each.reason) for each in law.dead if each.subscription}, query
            dead, late = dead + len(letters), late + len(law.late)
    assert dead, "there is something to set aside"
    assert late, "something is late"


def test_grouped_windows_on_a_trunk(tmp_path: Path) -> None:
    """Queries with groups and without on one trunk, with shards in turn over one checkpoint, are those of the law."""
    letters = 0
    for number in range(3):
        random = Random(f"grouped {number}")
        stream = one_grouped_stream(random)
        stream.late = False
        while len(stream.items) < 30:
            stream.items = one_grouped_stream(random).items
        found = [*(one_grouped_query(random) for _ in range(5)), SUM.format("t diff 2 step 1")]
        queries = {f"q{each}": query for each, query in enumerate(dict.fromkeys(found)) if stream.plan(query)}
        source = laid(stream, tmp_path / f"in-{number}")
        trunk = BareTrunk(tmp_path / f"state-{number}", [source], random, finite=True, sharing=number != 1)
        size = len(stream.data)
        trunk.run(queries, (size // 9 + 1, size // 3 + 1), (1, 7, 2))
        assert trunk.plan is not None
        assert {each.kind for each in trunk.plan.subscriptions} == {"windows by panes"}
        for name, query in queries.items():
            law = stream.by_law(query)
            assert trunk.answer(name) == law.text, (number, query, stream)
            dead = [(each.place.offset, each.reason) for each in trunk.log.dead_letters() if each.subscription == name]
            assert sorted(dead) == sorted((each.place.offset, each.reason) for each in law.dead if each.subscription)
            letters += len(dead)
    assert letters, "there is something to set aside"


def test_windows_of_other_sizes_are_counted_once() -> None:
    """Panes are relaxed where that makes no more of them, and only between windows over the same values."""
    stream = Stream([])
    windows = ("t diff 20 step 10", "t diff 30 step 15", "t diff 60", "t diff 7", "t diff 0.3 step 0.1", "count 3")
    texts = [SUM.format(each) for each in (*windows, "t diff 0.2 step 0.2", "count 2 step 1")]
    texts += [MIN.format("t diff 40"), SUM.format("t diff 20").replace("n > 1", "n > 2"), SUM.format("c/m diff 20")]
    queries = [plan.query for text in texts if (plan := stream.plan(text))]
    groups = sorted(sorted(each) for each in shared(queries))
    assert groups == [[0, 2, 8], [1], [3], [4, 6], [5, 7], [9], [10]]
    together = relaxed([queries[each] for each in (0, 2, 8)])
    assert together.panes.width == 10
    assert together.asked == (frozenset(("sum", "max", "min")),)
    assert relaxed([queries[4], queries[6]]).panes.width == Fraction("0.1"), "LAWS case 9"


@pytest.mark.mass
def test_sharing_panes_changes_nothing(tmp_path: Path) -> None:
    """LAWS 3.7: subscriptions join and leave those with whom they share; their answers are those they have apart."""
    windows = ("t diff 20 step 10", "t diff 30 step 10", "t diff 10 step 5", "t diff 2.5", "count 3 step 1", "count 2")
    texts = [each.format(window) for window in windows for each in (SUM, MIN)]
    for number in range(2):
        random = Random(f"sharing panes {number}")
        stream = one_stream(random)
        while len(stream.items) < 40:
            stream = one_stream(random)
        third = len(stream.items) // 3
        wanted = [dict(enumerate(texts)), {}, {}]
        wanted[1] = {each: texts[each] for each in wanted[0] if random.random() < 0.7}
        wanted[2] = {each: texts[each] for each in wanted[0] if random.random() < 0.7}
        wanted[0] = {each: texts[each] for each in wanted[0] if random.random() < 0.5}
        answers: list[dict[int, str]] = []
        for sharing in (True, False):
            source = laid(replace(stream, items=()), tmp_path / f"in-{number}-{sharing}")
            folder = tmp_path / f"state-{number}-{sharing}"
            trunk = BareTrunk(folder, [source], Random(number), finite=False, sharing=sharing)
            for phase, queries in enumerate(wanted):
                more = stream.items[phase * third : (phase + 1) * third]
                with (on_disk(source.path) / FILE).open("a") as file:
                    file.writelines(f"{item}\n" for item in more)
                trunk.run({f"q{each}": text for each, text in queries.items()}, (300, 2_000), (1, 7, 2))
            answers.append({each: trunk.answer(f"q{each}") for each in wanted[2]})
        assert answers[0] == answers[1]
        assert any(answers[0].values())
