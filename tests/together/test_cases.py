"""The cases of LAWS 6 that speak of sharing, or that sharing could get wrong: worked out by hand, on one trunk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from anabranch.stream.reading.source import Source
from spark.bare import BareTrunk

EVERYTHING = 1 << 20


@dataclass(frozen=True, slots=True)
class Asked:
    """A query, the phase of the stream that it begins with, and what it is due."""

    query: str
    answer: str
    first: int = 0


@dataclass(frozen=True, slots=True)
class Case:
    """What is asked of a stream of `p` together; one that comes in several phases has no end."""

    name: str
    phases: tuple[tuple[str, ...], ...]
    asked: tuple[Asked, ...]

    def __str__(self) -> str:
        return self.name


def select(condition: str, result: str = "<hit/>") -> str:
    return f'for $p in stream("s")/r/p where {condition} return {result}'


def window(size: str, rest: str) -> str:
    return f'for $w in stream("s")/r/p|{size}| {rest}'


def leaves(name: str, *values: object) -> tuple[str, ...]:
    return tuple(f"<{name}>{value}</{name}>" for value in values)


def timed(*values: tuple[float, float]) -> tuple[str, ...]:
    return tuple(f"<t>{t}</t><en>{en}</en>" for t, en in values)


TIMES = "return <w>{ for $p in $w return string($p/t) }</w>"
TWICE = "<c><ra>1</ra><dec>9</dec></c><c><ra>9</ra><dec>1</dec></c>"
AVERAGE = "let $a := avg($w/en) where $a >= 2 return <a>{ $a }</a>"

CASES = (
    Case(
        "1: existential, so intervals do not contradict",
        (("<en>1</en><en>5</en>",),),
        (
            Asked(select("$p/en >= 4 and $p/en <= 2"), "<hit/>"),
            Asked(select("$p/en >= 4"), "<hit/>"),
            Asked(select("$p/en > 2 and $p/en < 4"), "<hit/>"),
            Asked(select("$p/en > 5"), ""),
        ),
    ),
    Case(
        "2: else is not()",
        (("<phc>7</phc>",),),
        (
            Asked('for $p in stream("s")/r/p return if ($p/en > 1.3) then <hi/> else $p/phc', "<phc>7</phc>"),
            Asked(select("$p/en > 1.3"), ""),
            Asked(select("not($p/en > 1.3)"), "<hit/>"),
            Asked(select("$p/en <= 1.3"), ""),
        ),
    ),
    Case(
        "3: NaN is on no side",
        (leaves("en", "NaN"),),
        (
            Asked(select("not($p/en < 5)"), "<hit/>"),
            Asked(select("$p/en >= 5"), ""),
            Asked(select("$p/en < 5"), ""),
            Asked(select("$p/en < 5 or $p/en >= 5"), ""),
        ),
    ),
    Case(
        "4: a condition on one of several, shared with a query on a part of it",
        ((TWICE,),),
        (
            Asked(select("some $c in $p/c satisfies $c/ra > 5 and $c/dec > 5"), ""),
            Asked(select("$p/c/ra > 5"), "<hit/>"),
            Asked(select("$p/c/ra > 5 and $p/c/dec > 5"), "<hit/>"),
            Asked(select("$p/c/ra > 5", "$p/c/ra"), "<ra>1</ra><ra>9</ra>"),
        ),
    ),
    Case(
        "5: count windows begin with their subscription",
        (leaves("n", 1), leaves("n", 2, 3, 4, 5)),
        (
            Asked(window("count 2", "return <w>{ $w/n/text() }</w>"), "<w>12</w><w>34</w>"),
            Asked(window("count 2", "return <w>{ $w/n/text() }</w>"), "<w>23</w><w>45</w>", first=1),
            Asked(window("count 2 step 1", "return <w>{ sum($w/n) }</w>"), "<w>5</w><w>7</w><w>9</w>", first=1),
        ),
    ),
    Case(
        "6: time windows that reach back before their subscription are left out",
        (leaves("t", 5, 12), leaves("t", 18, 25, 45)),
        (
            Asked(window("t diff 20 step 10", TIMES), "<w>5 12 18</w><w>12 18 25</w><w>25</w>"),
            Asked(window("t diff 20 step 10", TIMES), "<w>25</w>", first=1),
            Asked(window("t diff 20 step 10", "return <n>{ count($w) }</n>"), "<n>3</n><n>3</n><n>1</n>"),
            Asked(window("t diff 20 step 10", "return <n>{ count($w) }</n>"), "<n>1</n>", first=1),
            Asked(window("t diff 10", "return <n>{ count($w) }</n>"), "<n>1</n>", first=1),
        ),
    ),
    Case(
        "7: a postselection is not the other window's",
        (timed((1, 1), (11, 5)),),
        (
            Asked(window("t diff 10", AVERAGE), "<a>5</a>"),
            Asked(window("t diff 20", AVERAGE), "<a>3</a>"),
            Asked(window("t diff 20", AVERAGE.replace(">= 2", ">= 4")), ""),
        ),
    ),
    Case(
        "8: an average of averages is none",
        (timed((1, 1), (2, 1), (31, 4)),),
        (
            Asked(window("t diff 10", "return <a>{ avg($w/en) }</a>"), "<a>1</a><a>4</a>"),
            Asked(window("t diff 40", "return <a>{ avg($w/en) }</a>"), "<a>2</a>"),
            Asked(window("t diff 40 step 20", "return <a>{ avg($w/en) }</a>"), "<a>2</a><a>4</a>"),
        ),
    ),
    Case(
        "9: windows of 0.3 every 0.1 and of 0.2",
        (timed((0.05, 1), (0.15, 2), (0.25, 4), (0.3, 8)),),
        (
            Asked(
                window("t diff 0.3 step 0.1", "return <s>{ sum($w/en) }</s>"),
                "<s>7</s><s>14</s><s>12</s><s>8</s>",
            ),
            Asked(window("t diff 0.2", "return <s>{ sum($w/en) }</s>"), "<s>3</s><s>12</s>"),
            Asked(window("t diff 0.2 step 0.2", "return <s>{ count($w) }</s>"), "<s>2</s><s>2</s>"),
        ),
    ),
    Case(
        "10: an aggregate with a condition is another aggregate",
        (timed((1, 1), (2, 3)),),
        (
            Asked(window("t diff 10", "return <a>{ avg($w/en) }</a>"), "<a>2</a>"),
            Asked(window("t diff 10", "return <a>{ avg($w/en[. > 1]) }</a>"), "<a>3</a>"),
            Asked(window("t diff 10", "return <a>{ avg($w/en), avg($w/en[. > 1]) }</a>"), "<a>2 3</a>"),
        ),
    ),
    Case(
        "11: a query that returns no path",
        (leaves("en", 1, 2, 3),),
        (
            Asked(select("$p/en >= 2"), "<hit/><hit/>"),
            Asked(select("$p/en >= 2"), "<hit/><hit/>"),
            Asked(select("$p/en >= 3"), "<hit/>"),
            Asked(select("$p/en >= 2", "$p/en"), "<en>2</en><en>3</en>"),
            Asked('for $p in stream("s")/r/p return <hit/>', "<hit/><hit/><hit/>"),
        ),
    ),
    Case(
        "12: a window whose only item has nothing to count",
        (("<t>3</t>",),),
        (
            Asked(window("t diff 10", "return <a>{ avg($w/en) }</a>"), "<a/>"),
            Asked(window("t diff 10", "return <a>{ sum($w/en) }</a>"), "<a>0</a>"),
            Asked(window("t diff 5", "return <a>{ count($w/en) }</a>"), "<a>0</a>"),
        ),
    ),
    Case(
        "13: what is not selected closes windows too",
        (timed((1, 5)), timed((100, 1))),
        (
            Asked('for $w in stream("s")/r/p[en > 2]|t diff 10| return <n>{ count($w) }</n>', "<n>1</n>"),
            Asked('for $w in stream("s")/r/p[en > 4]|t diff 20| return <n>{ count($w) }</n>', "<n>1</n>"),
            Asked('for $w in stream("s")/r/p[en > 6]|t diff 10| return <n>{ count($w) }</n>', ""),
        ),
    ),
    Case(
        "42: texts that are times, least and greatest from panes, compared and ordered, beside numbers",
        (
            (
                "<t>1</t><ts>2026-01-01T00:00:00Z</ts>",
                "<t>12</t><ts>2026-01-01T00:00:00.5Z</ts>",
                "<t>14</t><ts>2026-01-01T01:00:00+01:00</ts>",
                "<t>22</t><ts>7</ts>",
                "<t>35</t><ts>7</ts>",
            ),
        ),
        (
            Asked(
                window("t diff 20 step 10", "return <w>{ count($w), min($w/ts), max($w/ts) }</w>"),
                "<w>3 2026-01-01T00:00:00Z 2026-01-01T00:00:00.5Z</w><w>2 7 7</w><w>1 7 7</w>",
            ),
            Asked(
                window(
                    "t diff 20", 'where max($w/ts) > xs:dateTime("2026-01-01T00:00:00Z") return <w>{ count($w) }</w>'
                ),
                "<w>3</w>",
            ),
            Asked(
                window("t diff 20", "return <w>{ for $p in $w order by $p/ts descending return string($p/t) }</w>"),
                "<w>12 1 14</w><w>22 35</w>",
            ),
            Asked(select('$p/ts > xs:dateTime("2026-01-01T00:00:00Z")', "$p/t"), "<t>12</t>"),
            Asked(select("$p/ts castable as xs:dateTime", "$p/t"), "<t>1</t><t>12</t><t>14</t>"),
        ),
    ),
)


@pytest.mark.parametrize("sharing", [True, False], ids=["shared", "apart"])
@pytest.mark.parametrize("epoch_bytes", [EVERYTHING, 40], ids=["at once", "in epochs"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_case_of_the_laws(tmp_path: Path, case: Case, epoch_bytes: int, sharing: bool) -> None:
    """Each query is given what it is due, whoever is there with it, also if epochs are cut between items."""
    path = tmp_path / "s"
    source = Source("s", path, "lines", root="r")
    finite = len(case.phases) == 1
    trunk = BareTrunk(tmp_path / "state", [source], Random(1), finite=finite, sharing=sharing)
    for phase, items in enumerate(case.phases):
        with path.open("a") as file:
            file.writelines(f"<p>{item}</p>\n" for item in items)
        wanted = {f"q{number}": each.query for number, each in enumerate(case.asked) if each.first <= phase}
        trunk.run(wanted, [epoch_bytes], [1, 2])
    given = [trunk.answer(f"q{number}") for number in range(len(case.asked))]
    assert given == [each.answer for each in case.asked]
