"""Branches over epochs and runs: what they remember, when they answer, and that neither kills nor shards show."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pyspark import TaskContext

from anabranch.errors import UsageError
from anabranch.spark.epoch.job import Job
from anabranch.spark.hosts import spark_host
from anabranch.spark.state.shard import answer_shards
from spark.trunks import Site, spark_for

PUNCTUATION = '<s:punctuation xmlns:s="urn:anabranch:stream" {}/>\n'
TIMES = '<r>{{ for $w in stream("s")/root/p |{}| return <w>{{ $w/t }}</w> }}</r>'
COUNTS = '<r>{{ for $w in stream("s")/root/p |{}| return <w>{{ count($w) }}</w> }}</r>'
"""The first needs its items, the second is counted by panes."""


def at(*times: float, more: str = "") -> str:
    """Items with these times."""
    return "".join(f"<p><t>{time}</t>{more}</p>\n" for time in times)


def windows(*found: tuple[int, ...]) -> str:
    """The answer to `TIMES`."""
    return "<r>" + "".join(f"<w>{''.join(f'<t>{time}</t>' for time in each)}</w>" for each in found) + "</r>"


def counts(*found: int) -> str:
    """The answer to `COUNTS`."""
    return "<r>" + "".join(f"<w>{each}</w>" for each in found) + "</r>"


@pytest.fixture
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Site:
    """A site with one stream, whose items have times in `t`; on Spark for tests that are marked so."""
    site = Site(spark_for(request), tmp_path)
    site.stream("s", "in", time="t")
    return site


@pytest.mark.spark
def test_count_windows_begin_with_their_subscription(site: Site) -> None:
    """LAWS case 5: A comes with the first item, B with the second; an epoch may end within a window."""
    site.subscribe(a=TIMES.format("count 2"))
    site.write("in/a", at(1))
    site.run()
    site.subscribe(b=TIMES.format("count 2"))
    site.append("in/a", at(2, 3, 4, 5))
    site.run(epoch_bytes=20)
    assert site.answer("a") == windows((1, 2), (3, 4))
    assert site.answer("b") == windows((2, 3), (4, 5))
    assert len(site.seen) > 2


def test_windows_that_reach_back_before_a_subscription_are_left_out(site: Site) -> None:
    """LAWS case 6: B starts behind 5 and 12, and its first window is [20,40), with panes and without."""
    size = "t diff 20 step 10"
    site.subscribe(a=TIMES.format(size), counted_a=COUNTS.format(size))
    site.write("in/a", at(5, 12))
    site.run()
    site.subscribe(b=TIMES.format(size), counted_b=COUNTS.format(size))
    site.append("in/a", at(18, 25, 45))
    site.run(epoch_bytes=20)
    assert site.answer("a") == windows((5, 12, 18), (12, 18, 25), (25,))
    assert site.answer("counted_a") == counts(3, 3, 1)
    assert site.answer("b") == windows((25,))
    assert site.answer("counted_b") == counts(1)


def test_a_heartbeat_is_an_element(site: Site) -> None:
    """LAWS 3.6: what begins behind a heartbeat came late, and has no window that reaches back before its first item."""
    site.subscribe(a=TIMES.format("t diff 20 step 10"))
    site.write("in/a", PUNCTUATION.format('at="100"'))
    site.run()
    site.subscribe(b=TIMES.format("t diff 20 step 10"), counted=COUNTS.format("t diff 20 step 10"))
    site.append("in/a", at(105, 112, 131))
    site.run()
    assert site.answer("a") == windows((105,), (105, 112), (112,))
    assert site.answer("b") == windows((112,))
    assert site.answer("counted") == counts(1)


def test_aggregates_of_nothing(site: Site) -> None:
    """LAWS case 12: in a window whose only item has no `en`, the average is empty, sum and count are 0."""
    site.subscribe(
        all="""<r>{ for $w in stream("s")/root/p |t diff 10|
            return <w><a>{ avg($w/en) }</a><s>{ sum($w/en) }</s><c>{ count($w/en) }</c></w> }</r>"""
    )
    site.write("in/a", at(1) + at(20, 30, more="<en>2</en>"))
    site.run(epoch_bytes=20)
    assert site.answer("all") == "<r><w><a/><s>0</s><c>0</c></w><w><a>2</a><s>2</s><c>1</c></w></r>"


def test_a_step_join_moves_with_its_streams(site: Site) -> None:
    """LAWS case 14: windows move through empty positions, and lose what they leave behind; heartbeats move them too."""
    site.stream("u", "other", time="t")
    site.subscribe(
        join="""<r>{ for $x in stream("s")/root/p |t diff 10| for $y in stream("u")/root/p |t diff 10|
            return <pair>{ $x/t, $y/t }</pair> }</r>"""
    )
    site.write("in/a", at(1, 100))
    site.write("other/a", at(95, 105))
    site.run()
    assert site.answer("join") == "<r/>"
    site.append("in/a", PUNCTUATION.format('at="110"') + PUNCTUATION.format('at="120"'))
    site.append("other/a", PUNCTUATION.format('at="110"'))
    site.run()
    assert site.answer("join") == "<r><pair><t>100</t><t>95</t></pair><pair><t>100</t><t>105</t></pair></r>"
    assert site.answer("join") == site.law("join")


def test_what_closes_a_window(site: Site) -> None:
    """An item that is not selected (LAWS case 13), a punctuation, a heartbeat; the end of what is there does not."""
    chosen = TIMES.replace("root/p", "root/p[t < 50]")
    site.subscribe(times=chosen.format("t diff 10"), counted=COUNTS.format("t diff 10"))
    brought = (
        at(1),
        PUNCTUATION.format('where="t &lt; 10"'),
        at(12),
        PUNCTUATION.format('where="x &lt; 20"'),
        PUNCTUATION.format('at="20"'),
        at(25),
        at(100),
    )
    answers = []
    with site.at_work() as trunk:
        for number, text in enumerate(brought):
            site.append("in/a", text)
            assert trunk.beyond(number - 1)
            answers.append((site.answer("times"), site.answer("counted")))
    one, two = (windows((1,)), counts(1)), (windows((1,), (12,)), counts(1, 1))
    three = (windows((1,), (12,), (25,)), counts(1, 1, 1))
    assert answers == [("<r/>", "<r/>"), one, one, one, two, two, three]


@pytest.mark.spark
def test_late_items_are_counted_and_put_aside(site: Site) -> None:
    """LAWS 3.2: with a slack of 2, 19 behind 20 is in time and 5 is late: for all windows alike, and for them alone."""
    site.set_slack("s", 2)
    site.subscribe(
        times=TIMES.format("t diff 10"),
        counted=COUNTS.format("t diff 10"),
        items='<r>{ for $p in stream("s")/root/p return $p/t }</r>',
        two=TIMES.format("count 2"),
    )
    site.wanted = replace(site.wanted, late_items=site.top / "late")
    site.write("in/a", at(1, 20, 19))
    site.run()
    site.append("in/a", at(5, 45))
    site.run()
    assert site.answer("times") == windows((1,), (19,), (20,))
    assert site.answer("counted") == counts(1, 1, 1)
    assert site.answer("items") == "<r><t>1</t><t>20</t><t>19</t><t>5</t><t>45</t></r>"
    assert site.answer("two") == windows((1, 20), (19, 5))
    assert [each.metrics.late_items for each in site.seen] == [0, 1]
    (line,) = (site.top / "late").read_text().splitlines()
    assert json.loads(line) == {"stream": "s", "partition": "a", "offset": len(at(1, 20, 19))}


# --- shards, inputs that fall behind, growth ----------------------------------------------------------------

SEVERAL = {
    "panes": """<r>{ for $w in stream("u")/root/p |t diff 4 step 2| return <w>{ sum($w/t) }</w> }</r>""",
    "held": TIMES.format("t diff 5"),
    "counted": TIMES.format("count 3 step 2"),
    "steps": """<r>{ for $x in stream("s")/root/p |t diff 3 step 1| for $y in stream("u")/root/p |t diff 4 step 2|
        where $x/t < $y/t return <p>{ $x/t, $y/t }</p> }</r>""",
    "near": """<r>{ for $x in stream("s")/root/p for $y in stream("u")/root/p
        where $x/t >= $y/t - 1 and $x/t <= $y/t + 1 return <p>{ $x/t, $y/t }</p> }</r>""",
    "merged": """<r>{ for $p in stream("s")/root/p return $p/t }</r>""",
}
"""A branch of every kind, over `s` of two partitions and `u`."""
ENDS = "".join(PUNCTUATION.format(f'where="true()" at="{time}"') for time in (1_000_000, 1_000_001))
"""Closes all windows; the second lets the merge take the first of the other inputs."""


@pytest.fixture
def several(request: pytest.FixtureRequest, tmp_path: Path) -> Site:
    """A site with a branch of every kind."""
    site = Site(spark_for(request), tmp_path)
    site.stream("s", "s0", "s1", time="t")
    site.stream("u", "u0", time="t")
    site.subscribe(**SEVERAL)
    return site


def grow(site: Site, start: int, end: int) -> None:
    """Let the streams go on from one time to another."""
    for folder, first, step in (("s0", 0.0, 0.75), ("s1", 0.25, 0.5), ("u0", 0.5, 1.25)):
        times = (first + step * number for number in range(int(end / step) + 1))
        site.append(f"{folder}/a", at(*(time for time in times if start <= time < end)))


@pytest.mark.spark
def test_the_number_of_shards_may_change(several: Site) -> None:
    """One checkpoint with 1, 7 and 2 shards, in epochs of other sizes: the law's answers, and states are found."""
    shards: list[set[int]] = []
    for number, size in ((1, 400), (7, 10_000), (2, 900)):
        grow(several, 10 * len(shards), 10 * len(shards) + 10)
        if len(shards) == 2:
            for folder in ("s0", "s1", "u0"):
                several.append(f"{folder}/a", ENDS)
        several.settings = replace(several.settings, shards=number)
        several.run(epoch_bytes=size)
        shards.append({each.shard for each in several.seen[-1].manifest.states.values()})
    for name in SEVERAL:
        assert several.answer(name) == several.law(name), name
        assert several.answer(name) != "<r/>", name
    assert shards == [{0}, set(range(6)), {0, 1}]


def test_a_partition_that_is_taken_away_is_missed(several: Site) -> None:
    """Branches wait for the partitions they know, and know them by number: a stream that has lost one is refused."""
    grow(several, 0, 5)
    several.run()
    fewer = replace(several.wanted.streams["s"], more=())
    several.wanted = replace(several.wanted, streams={**several.wanted.streams, "s": fewer})
    grow(several, 5, 8)
    with pytest.raises(UsageError, match="stream 's' had 2 partitions until now, and has 1"):
        several.run()


@pytest.mark.mass
def test_an_input_that_falls_behind_makes_the_others_wait_on_disk(site: Site) -> None:
    """400 items of `u` wait for `s`: on disk, and the metrics say so; when it has caught up they are answered."""
    site.stream("u", "other", time="t")
    site.subscribe(
        join="""<r>{ for $x in stream("s")/root/p |t diff 2| for $y in stream("u")/root/p |t diff 2|
            return <pair>{ $x/t, $y/t }</pair> }</r>"""
    )
    site.write("in/a", at(0))
    fillings = (Random(number).randbytes(1_000).hex() for number in range(400))
    site.write("other/a", "".join(at(n, more=f"<filling>{each}</filling>") for n, each in enumerate(fillings)))
    site.run(epoch_bytes=600_000)
    behind = site.seen[-1]
    assert behind.metrics.waiting == {"u/0": 400}
    (kept,) = behind.manifest.states.values()
    assert len(kept.spilled) > 1
    assert behind.metrics.held < 10
    assert site.answer("join") == "<r/>"
    state = site.top / "state" / "state"
    assert 400_000 < kept.size <= sum(file.stat().st_size for file in state.rglob("*") if file.is_file())

    site.append("in/a", at(*range(1, 400)) + ENDS)
    site.append("other/a", ENDS)
    site.run()
    assert site.answer("join") == site.law("join")
    assert site.answer("join").count("<pair>") > 400
    (kept,) = site.seen[-1].manifest.states.values()
    assert kept.spilled == ()
    assert kept.size < 10_000


@pytest.mark.mass
def test_a_state_stops_growing(several: Site) -> None:
    """Many epochs: what a branch remembers in the last ones is about what it remembered in the middle."""
    grow(several, 0, 120)
    several.run(epoch_bytes=400)
    assert len(several.seen) > 20
    sizes = [{number: each.size for number, each in epoch.manifest.states.items()} for epoch in several.seen]
    third = len(sizes) // 3
    for number in sizes[-1]:
        middle, last = (max(each[number] for each in part) for part in (sizes[third:-third], sizes[-third:]))
        assert last < 1.3 * middle, several.seen[-1].plan.subscriptions
    held = [epoch.metrics.held for epoch in several.seen]
    assert max(held[-third:]) < 1.3 * max(held[third:-third])
    files = [file for file in (several.top / "state" / "state").rglob("*") if file.is_file()]
    assert len(files) <= 2 * len(SEVERAL)


# --- tasks that die ------------------------------------------------------------------------------------------


@pytest.mark.spark
def test_a_task_that_dies_is_tried_again(several: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed when its states and answers are written: Spark runs it again, and only what the second wrote counts."""
    grow(several, 0, 20)
    for folder in ("s0", "s1", "u0"):
        several.append(f"{folder}/a", ENDS)

    def dying(job: Job, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = list(answer_shards(job, batches))
        context = TaskContext.get()
        if context is not None and context.attemptNumber() == 0 and context.partitionId() == job.epoch % 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return iter(found)

    with monkeypatch.context() as patch:
        patch.setattr(spark_host, "answer_shards", dying)
        several.settings = replace(several.settings, shards=2)
        several.run(epoch_bytes=700)
    for name in SEVERAL:
        assert several.answer(name) == several.law(name), name
    named = {file for each in several.seen[-1].manifest.states.values() for file in each.files}
    state = several.top / "state" / "state"

    def written() -> set[str]:
        return {str(file.relative_to(state)) for file in state.rglob("*") if file.is_file()}

    assert len(several.seen) > 2
    assert written() > named, "what the killed ones wrote"
    several.run(epoch_bytes=700)
    assert written() == named, "the next run sweeps"
