"""LAWS 2.9 on Spark, while a run is at work: who takes too much ends by name, and the others are answered as before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import monotonic

import pytest
from pyspark.sql import SparkSession

from anabranch import CostCaps, Engine
from anabranch.language import check, parse, print_query
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from mass import Mass
from spark.law import CLOSING, law_of

CAPS = CostCaps(held=50, overruns=2)
PARTS = 101
"""So many parts of an item, by threes, are more than a million steps."""
USUAL = {
    "plain": 'for $p in stream("s")/r/p where $p/v > 4 return <n>{ $p/t }</n>',
    "narrow": 'for $w in stream("s")/r/p |t diff 8 step 4| return <w>{ $w/t }</w>',
    "sums": 'for $w in stream("s")/r/p |t diff 8| return <w>{ sum($w/v) }</w>',
}
COSTLY = {
    "steps": 'for $p in stream("s")/r/p return '
    "<h>{ some $a in $p/x, $b in $p/x, $c in $p/x satisfies $a + $b + $c = -1 }</h>",
    "all": 'for $w in stream("s")/r/p |t diff 1000 step 4| return <w>{ $w/v }</w>',
    "groups": 'for $w in stream("s")/r/p |t diff 60| for $p in $w group by $t := $p/t return <g>{ $t, count($p) }</g>',
}
ENDS = {
    "steps": "2 of its evaluations have taken too many steps; 'max_overruns' allows more",
    "all": "it holds more than 50 nodes of its streams; 'max_held' allows more",
    "groups": "it holds more than 50 panes of its windows; 'max_held' allows more",
}


def items() -> Iterator[str]:
    """Items of a moment each, for ever."""
    parts, number = "".join(f"<x>{part}</x>" for part in range(PARTS)), 0
    while True:
        yield f"<p><t>{number}</t><v>{number % 11}</v>{parts}</p>\n"
        number += 1


@pytest.mark.kills
@pytest.mark.spark
def test_others_go_on_as_before(spark: SparkSession, tmp_path: Path, mass: Mass) -> None:
    """Three that take too much come while others are answered: each ends by its name, and only those do.

    The epoch in which one takes its last steps is long, for each evaluation may take a million of them.
    Behind that an item takes as long to its answers as before they came, and all answers are those of the law.
    """
    path, coming, warnings = tmp_path / "s", items(), list[str]()
    path.touch()
    rounds = mass.amount(60, budget=6)
    with Engine(spark, checkpoint=tmp_path / "state", trigger_ms=10, caps=CAPS, on_warning=warnings.append) as engine:

        def seconds() -> float:
            """From some items to their answers."""
            last, begun = engine.trunk.last, monotonic()
            with path.open("a") as file:
                file.write("".join(next(coming) for _ in range(4)))
            assert engine.trunk.beyond(last)
            return monotonic() - begun

        engine.stream("s", path, format="lines", root="r", time="t")
        others = [engine.subscribe(text, name) for name, text in USUAL.items()]
        engine.start()
        for _ in range(4):  # until workers have compiled what they need
            seconds()
        alone = [seconds() for _ in range(rounds)]
        costly = [engine.subscribe(text, name) for name, text in COSTLY.items()]
        beside = list[float]()
        while sum("has ended" in each for each in warnings) < len(costly):
            beside.append(seconds())
            assert len(beside) < 40, warnings
        seconds()
        after = [seconds() for _ in range(rounds)]
        with path.open("ab") as file:
            file.write(CLOSING[True])
        engine.trunk.catch_up()
        answers = {each.name: each.answer() for each in others}
    ends = [each for each in warnings if "has ended" in each]
    assert sorted(ends) == sorted(f"the subscription '{name}' has ended: {why}" for name, why in ENDS.items())
    source = Source("s", path, "lines", root="r", time=ItemPath(("t",)))
    for name, text in USUAL.items():
        query = parse(print_query(check(parse(text), text, inputs={"s": None}).query))
        assert answers[name] == law_of(query, [source], endless=True, name=name).text != ""
    figures = f"{median(alone):.3f} s alone, {max(beside):.3f} s at most beside them, {median(after):.3f} s after them"
    print(figures)
    assert median(after) < 2 * median(alone) + 0.2, figures
