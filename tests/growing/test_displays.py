"""What is special about displays over streams that only grow: their state, accents, late subscriptions, warnings."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from pyarrow.parquet import read_table

from anabranch import Engine, Parquet
from anabranch.aggregates.folds import EntryShare, Fold
from anabranch.branch.display.folds import FOLDS, fold
from anabranch.branch.growing.arrivals import ARRIVALS
from anabranch.branch.growing.machine import GrowingDisplay
from anabranch.branch.growing.split import growth_of
from anabranch.branch.intake.entries import FeedOrigin, RawEntry
from anabranch.engine.finite import answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import prepare
from anabranch.errors import DynamicError
from anabranch.language import check, parse
from anabranch.law.functions import BUILTINS
from anabranch.stream.reading.source import Source
from anabranch.values.atomic import Untyped
from anabranch.values.sequences import Values
from branch.feeding import Stream
from history.test_folds import outcome
from mass import some
from spark.bare import BareTrunk

TEXTS = ("0", "-0", "1", "2.50", "-3", "1e3", "INF", "-INF", "NaN", "x", "y")
OTHERS: list[Values] = [[7], [True], ["b", "a"], [Untyped("4"), Untyped("z")]]
NUMBERS: list[Values] = [[Untyped(text)] for text in TEXTS]
VALUES: list[Values] = [*NUMBERS, *OTHERS]
SMALL = [name for name in FOLDS if fold(name, ARRIVALS).is_small]
ALTER = '<s:accent xmlns:s="urn:anabranch:stream"><s:alter path="v" by=". * 2"/></s:accent>'
DROP = '<s:accent xmlns:s="urn:anabranch:stream"><s:drop path="v"/></s:accent>'


def items(*values: object) -> str:
    """Items with these values, one to a line; what is no value stands there as it is."""
    lines = (each if str(each).startswith("<") else f"<i><v>{each}</v></i>" for each in values)
    return "".join(f"{each}\n" for each in lines)


def value_of(state: Fold, shares: list[EntryShare]) -> list[str]:
    """What an aggregate has for its value, or the message of its error."""
    for each in shares:
        state.put(*each)
    try:
        return [repr(each) for each in state.value()]
    except DynamicError as error:
        return [error.message, str(error.code)]


@pytest.mark.parametrize("function", sorted(SMALL))
def test_a_few_shares_stand_for_all(function: str) -> None:
    """Whatever came, in whatever order: the value of what is kept is that of all, and that is what the law gives."""
    random = Random(function)
    for _ in some(range(300)):
        shares: list[EntryShare] = []
        few: list[EntryShare] = []
        values: Values = []
        for entry in range(random.randint(1, 12)):
            found = random.choice(VALUES[: random.choice((6, 9, len(VALUES)))])
            values += found
            share = fold(function, ARRIVALS).share(found)
            shares.append((entry, share))
            few = list(fold(function, ARRIVALS).reduced([*few, (entry, json.loads(json.dumps(share)))]))
            assert len(few) <= 7
        kept = value_of(fold(function, ARRIVALS), few)
        assert kept == value_of(fold(function, ARRIVALS), shares), values
        if function in BUILTINS:
            assert (kept if len(kept) < 2 else ["error", kept[1]]) == outcome(function, values), values


def test_the_greatest_value_so_far(tmp_path: Path) -> None:
    """LAWS, case 55: 1, then 5, which stays."""
    (tmp_path / "s").write_text(items(1, 5, 3))
    trunk = BareTrunk(tmp_path / "state", [Source("s", tmp_path / "s", "lines", root="r")], Random(1), finite=False)
    trunk.run({"m": 'max(stream("s")/r/i/v)'}, [20], [1, 2])
    subscription = trunk.log.subscription("m")
    assert subscription is not None
    assert [each.text for each in trunk.log.answer(subscription).moments()] == ["1", "5"]


def test_a_value_that_comes_again_is_not_new(tmp_path: Path) -> None:
    """Of different values the last one is shown, and what came before it is known in later epochs, too."""
    (tmp_path / "s").write_text(items(1, 5, 1, 5, 1, 7, 5))
    trunk = BareTrunk(tmp_path / "state", [Source("s", tmp_path / "s", "lines", root="r")], Random(1), finite=False)
    trunk.run({"d": '(distinct-values(stream("s")/r/i/v))[last()]'}, [20], [1])
    subscription = trunk.log.subscription("d")
    assert subscription is not None
    assert [each.text for each in trunk.log.answer(subscription).moments()] == ["1", "5", "7"]


def test_what_is_kept() -> None:
    """Nothing of the items where aggregates do with little, a row of each that is sorted, and all where it must be."""
    stream = Stream("s").for_branch()
    for text, kept, grows in (
        ("<a m='{ max(stream('s')/r/i/v) }'>{ count(stream('s')/r/i), stddev(stream('s')/r/i/v) }</a>", 0, []),
        ("if (exists(stream('s')/r/i[v > 3])) then avg(stream('s')/r/i/v) else ()", 0, []),
        (
            "for $i in stream('s')/r/i where $i/v > 4 order by $i/v return $i",
            5,
            ["one row per item of 's' that adds to its answer"],
        ),
        ("median(stream('s')/r/i/v)", 10, ["all values that 'median()' is taken over"]),
        ("let $s := stream('s')/r/i return <a n='{ count($s) }'>{ $s[v > 3] }</a>", 10, ["every item of 's'"]),
    ):
        query = check(parse(text), text).query
        display = GrowingDisplay(query, {"s": stream})
        for number in range(10):
            (cut,) = Stream("s", f"<r><i><v>{number}</v></i></r>").cuts[0]
            entry = RawEntry(FeedOrigin("s", 0, "0"), cut)
            (item,) = stream.reader().elements([cut], "0")
            came = display.stream("s").came(entry, item, {}, Fraction(number), number)  # type: ignore[arg-type]
            display.moment(Fraction(number), item.place, ("s", came))
        assert (display.held, [each.what for each in growth_of(query, {})]) == (kept, grows), text
        fresh = GrowingDisplay(query, {"s": stream})
        fresh.decode(json.loads(json.dumps(display.encode())))
        assert fresh.text == display.text != "", text


@pytest.mark.parametrize(
    "query",
    [
        'sum(stream("s")/r/i/v)',
        'for $i in stream("s")/r/i order by $i/v return $i/v',
        '<a>{ for $w in stream("s")/r/i|count 2| return sum($w/v) }{ distinct-values(stream("s")/r/i/v) }</a>',
        'for $i in stream("s")/r/i group by $v := $i/v order by max($i/v) return <g>{ $v, $v + 1, sum($i/v) }</g>',
        'for $i in stream("s")/r/i group by $v := $i/v return <g>{ $i[1]/v, $i/v = 2, distinct-values($i/v) }</g>',
        '(for $i in stream("s")/r/i order by $i/v descending return <g>{ $i/v + 1 }</g>)[position() <= 2]',
        'let $r := for $w in stream("s")/r/i|count 2| return <w>{ $w/v }</w> return <a n="{ sum($r/v) }"/>',
    ],
)
def test_a_stream_that_evolves_is_read_in_the_units_of_the_start(tmp_path: Path, query: str) -> None:
    """A display behind accents shows what `anabranch query` answers at the end, in any epochs (LAWS 4.1)."""
    (tmp_path / "s").write_text(items(1, 5, ALTER, 4, 12, 3, 8))
    inputs = Inputs([Source("s", tmp_path / "s", "lines", root="r")])
    trunk = BareTrunk(tmp_path / "state", inputs.streams, Random(query), finite=False)
    trunk.run({"q": query}, [20, 60], [1, 2])
    with answering([prepare("q", query, inputs, "reference")], inputs) as law:
        assert trunk.answer("q") == "".join(law.answers["q"])


def test_an_accent_that_takes_what_is_sorted_by_ends_a_display(tmp_path: Path) -> None:
    """It is named; what was shown stays, and who does not need the path goes on (LAWS 4.6)."""
    (tmp_path / "s").write_text(items(2, 1, DROP, "<i/>"))
    trunk = BareTrunk(tmp_path / "state", [Source("s", tmp_path / "s", "lines", root="r")], Random(1), finite=False)
    trunk.run({"o": 'for $i in stream("s")/r/i order by $i/v return $i', "n": 'count(stream("s")/r/i)'}, [30], [2])
    assert [(number, "v" in reason) for number, reason in trunk.aborted.items()] == [(0, True)]
    assert trunk.answer("o") == "<i><v>1</v></i><i><v>2</v></i>"
    assert trunk.answer("n") == "3"


def test_who_comes_late_begins_with_the_first_element_it_sees(tmp_path: Path) -> None:
    """As if the stream began there (LAWS 3.6)."""
    source = Source("s", tmp_path / "s", "lines", root="r")
    query = '<a>{ count(stream("s")/r/i), for $i in stream("s")/r/i order by $i/v return $i/v }</a>'
    (tmp_path / "s").write_text(items(1, 9))
    trunk = BareTrunk(tmp_path / "state", [source], Random(1), finite=False)
    trunk.run({"early": query}, [20], [1])
    (tmp_path / "s").write_text(items(1, 9, 3, 2))
    trunk.run({"early": query, "late": query}, [20], [2])
    assert trunk.answer("early") == "<a>4<v>1</v><v>2</v><v>3</v><v>9</v></a>"
    assert trunk.answer("late") == "<a>2<v>2</v><v>3</v></a>"


def test_what_an_engine_tells_of_a_display(tmp_path: Path) -> None:
    """What grows is named when a query is registered and in what is explained; its answer makes a table of changes."""
    (tmp_path / "s").write_text(items(3, 1))
    with Engine(local=True, once=True) as engine:
        engine.stream("s", tmp_path / "s", format="lines", root="r")
        ordered = engine.subscribe('for $i in stream("s")/r/i\n  order by $i/v return $i', name="o")
        counted = engine.subscribe('count(stream("s")/r/i)', name="c")
        assert ordered.warnings == ("'o' keeps one row per item of 's' that adds to its answer, which grows (o:2:12)",)
        assert counted.warnings == ()
        engine.subscribe('count(stream("s")/r/i)', name="t", sink=Parquet(tmp_path / "out", "upserts"))
        engine.wait()
        (row,) = read_table(tmp_path / "out").to_pylist()
        assert (row["region"], row["content"]) == ("s0", "2")
        assert (ordered.answer(), counted.answer()) == ("<i><v>1</v></i><i><v>3</v></i>", "2")
        text = str(engine.explain())
        assert "on display; it keeps\n" in text
        assert "on display; it keeps nothing but its value" in text
