"""What queries make of windows, in columns: all forms over XML and JSON, from several partitions, are the law's."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from random import Random

import pytest

from anabranch.branch.windows.columns import HeldWindowColumns
from anabranch.errors import QueryError
from anabranch.runtime.units import AnswerPiece, Units
from anabranch.values.sequences import Value
from branch.feeding import Question, Stream
from columnar.expression_cases import PLAIN, STYLES, ItemMaker, Oddity, QueryMaker, Style, is_attribute
from mass import Mass, enough, sized, some


def stream_of(random: Random, style: Style, oddity: Oddity, items: int, slack: int | None = None) -> Stream:
    """Random items dealt out to partitions."""
    partitions = random.choice((1, 2, 3))
    maker = ItemMaker(random, style, oddity)
    lines = "".join(f"{maker.line()}\n" for _ in range(items))
    dealt = [random.randrange(partitions) for _ in range(items)]
    time = "@id" if is_attribute(style, "id") else "id"
    late = Fraction(random.choice((50, 400)) if slack is None else slack)
    return Stream("s", lines, dealt, partitions, time, late, form="json" if style == "json" else "lines")


def question(random: Random, style: Style) -> Question:
    """A query over windows that passes the checks and that a branch answers."""
    given = stream_of(random, style, random.choice((PLAIN, PLAIN, Oddity(5, 2), Oddity(20, 8))), random.randrange(60))
    while True:
        try:
            found = Question(QueryMaker(random, style).window_query(random.choice((1, 2, 2, 3))), [given])
        except (QueryError, AssertionError):
            continue
        if found.standing.kind == "windows":
            return found


def check_case(number: int) -> int:
    """Answer, dead letters and late items are those of the law; how many pieces came of columns."""
    random = Random(f"window forms {number}")
    asked = question(random, random.choice(STYLES))
    law, taken = asked.law(), asked.run(Random(number), 1 + number % 3)
    label = f"{number}: {asked.text}"
    assert asked.answer(taken) == law.text, label
    letters = [sorted(each.to_json() for each in dead if each.subscription) for dead in (taken.dead, law.dead)]
    assert letters[0] == letters[1], label
    assert list(map(str, taken.places)) == list(map(str, law.late)), label
    return taken.at_once


def test_some_random_windows_are_answered_as_by_law() -> None:
    """The same cases each time; many of them in columns."""
    assert sum(check_case(number) > 0 for number in some(range(60))) > enough(15)


def test_random_windows_are_answered_as_by_law(mass: Mass) -> None:
    """Queries of all forms over items of all kinds."""
    for number in mass.cases(5_000):
        check_case(number)


_FORMS = (
    "<w>{{ $w/d }}</w>",
    "<w n='{{ count($w) }}'>{{ avg($w/d/{t}) }}</w>",
    "<w>{{ for $p in $w where $p/d/{t} > 20 return <x k='{{ $p/{name} }}'>{{ $p/line }}</x> }}</w>",
    "<w>{{ median($w/d/{t}) }}<x>{{ $w/line/w }}</x></w>",
    "if (max($w/d/{t}) > 20) then <w>{{ $w//g }}</w> else <few>{{ sum(for $p in $w return $p/d/{t} * 2) }}</few>",
)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("window", some(["{id} diff 90 step 30", "count 7 step 3"]))
def test_plain_forms_go_through_columns(window: str, style: Style, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where items are plain, the evaluator is hardly asked for a window, whatever the format and the partitions."""
    by_law = 0
    window_by_law = Units.window

    def counted(units: Units, nodes: Sequence[Value]) -> AnswerPiece:
        nonlocal by_law
        by_law += 1
        return window_by_law(units, nodes)

    monkeypatch.setattr(Units, "window", counted)
    names = {each: f"@{each}" if is_attribute(style, each) else each for each in ("t", "name", "id")}
    item = "item" if style == "json" else "p"
    given = stream_of(Random(7), style, PLAIN, sized(150, fast=80), slack=400)
    for form in _FORMS:
        query = f'for $w in stream("s")/r/{item}|{window}| return {form}'.format(**names)
        asked = Question(query, [given])
        by_law, taken = 0, asked.run(Random(3), epochs=2)
        assert asked.answer(taken) == asked.law().text, query
        assert taken.at_once > 10 * by_law, query


def test_columns_close_windows_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """One window over everything is closed by the end of the input, in columns too."""
    closed: list[bool] = []
    close = HeldWindowColumns.close

    def noted(*given: object) -> bool:
        closed.append(close(*given))  # type: ignore[arg-type]  # those of the method
        return closed[-1]

    monkeypatch.setattr(HeldWindowColumns, "close", noted)
    given = stream_of(Random(8), "elements", PLAIN, 100, slack=1_000)
    asked = Question('for $w in stream("s")/r/p|id diff 5000| return <w>{ sum($w/d/t) }{ $w/name }</w>', [given])
    assert asked.answer(asked.run(Random(1), epochs=3)) == asked.law().text
    assert closed == [True]
