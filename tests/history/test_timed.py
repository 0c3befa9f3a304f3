"""Answers that only grow, told with their moments: on a trunk as by the law, for any epochs and shards."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import prepare
from anabranch.engine.reports.timelines import line, timelines
from anabranch.errors import Unsupported
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from history.past import item, stream
from mass import some
from spark.bare import BareTrunk

GROWING = (
    "stream('a')/r/i/v",
    "<o>{ stream('a')/r/i[v > 4]/v }</o>",
    "for $x in stream('a')/r/i where $x/v > 2 return $x/v + 1",
    "for $x in stream('a')/r/i return ($x/v * 1, 'x')",
    "for $w in stream('a')/r/i|count 3 step 2| return <n>{ $w/v }</n>",
    "<all>{ for $w in stream('a')/r/i|t diff 2| return count($w) }</all>",
    "for $w in stream('a')/r/i|t diff 3 step 1| return sum($w/v)",
    "for $w in stream('a')/r/i[v < 7]|t diff 4| return <m>{ max($w/v), $w/t }</m>",
    "for $x in stream('a')/r/i|t diff 2|, $y in stream('b')/r/i|t diff 3| where $x/v < $y/v return ($x/v, $y/v)",
    "for $x in stream('b')/r/i|count 2|, $y in stream('a')/r/i|t diff 3 step 1| return <p>{ $x/v, $y/t }</p>",
    "for $x in stream('a')/r/i where $x/v >= stream('b')/r/i/v#0 return <up>{ $x/v, stream('b')/r/i#[1]/v }</up>",
    "<o>{ for $x in stream('b')/r/i return count(stream('a')/r/i?[2]) }</o>",
    "for $x in stream('b')/r/i return <at>{ $x/t, stream('d')/r/e/q, stream('d')/r/e/q#1 }</at>",
)
"""Items, windows, joins, questions about the past, and documents beside them; `d` is edited."""


def some_items(random: Random, count: int) -> str:
    """Items that are out of order here and there; some values are no numbers, and some elements only move time."""
    now, found = 0, []
    for _ in range(count):
        now += random.choice((0, 0, 1, 1, 2, 5))
        late = random.choice((0, 0, 0, 0, 1))
        value = random.choice((*range(10), *range(10), "x"))
        found.append(item(max(0, now - late), v=value))
        if random.random() < 0.15:
            found.append(f'<s:punctuation xmlns:s="urn:anabranch:stream" at="{now}"/>')
    return stream(*found)


def edited(random: Random, count: int) -> str:
    """A stream of updates, some of them bad."""
    now = random.choice((0, 2))  # there may be a moment inside an element that is later than it
    found = [f'<e s:at="0"><s:mutable id="1" at="{now}"><q>0</q></s:mutable></e>']
    for number in range(count):
        now += random.choice((0, 1, 2, 5))
        found.append(f'<s:replace target="{random.choice((1, 1, 1, 7))}" at="{now}"><q>{number}</q></s:replace>')
    return stream(*found).replace("<r>", '<r xmlns:s="urn:anabranch:stream">')


def inputs_of(folder: Path, random: Random) -> Inputs:
    """The streams as files; `a` has several partitions."""
    texts = {
        "a": [some_items(random, random.randrange(1, 10)) for _ in range(random.choice((1, 1, 2)))],
        "b": [some_items(random, random.randrange(1, 10))],
        "d": [edited(random, 6)],
    }
    found = []
    for name, partitions in texts.items():
        files = [folder / f"{name}{number}.xml" for number in range(len(partitions))]
        for file, text in zip(files, partitions, strict=True):
            file.write_text(text)
        time = None if name == "d" else ItemPath.parse("t")
        found.append(Source(name, files[0], more=tuple(files[1:]), time=time, updates=name == "d"))
    return Inputs(found)


@pytest.mark.parametrize("seed", some(range(2)))
def test_moments_on_a_trunk(seed: int, tmp_path: Path) -> None:
    """Each moment has what the law shows then, also what comes with the end of a stream, in an epoch of its own."""
    random = Random(seed)
    inputs = inputs_of(tmp_path, random)
    queries = {f"q{number}": text for number, text in enumerate(GROWING)}
    trunk = BareTrunk(tmp_path / "state", inputs.streams, random, finite=True)
    trunk.timed = True
    trunk.run(queries, [40, 200, 1_000], [1, 2, 3])
    with timelines([prepare(name, text, inputs, "reference") for name, text in queries.items()], inputs) as law:
        for name, text in queries.items():
            subscription = trunk.log.subscription(name)
            assert subscription is not None
            found = "".join(map(line, trunk.log.answer(subscription).moments()))
            assert found == "".join(law.answers[name]), text


def test_what_waits_for_the_end_has_none(tmp_path: Path) -> None:
    """Who insists on Spark is told so; else the reference goes through all moments."""
    (tmp_path / "s.xml").write_text(stream(item(1, v=2)))
    inputs = Inputs([Source("s", tmp_path / "s.xml")])
    text = "let $all := (for $w in stream('s')/r/i|count 2| return $w) return $all/v"
    with pytest.raises(Unsupported, match="has no timeline on Spark"):
        prepare("q", text, inputs, "spark", timeline=True)
    assert prepare("q", text, inputs, timeline=True).engine == "reference"
    assert prepare("q", "stream('s')/r/i", inputs, timeline=True).engine == "local"
