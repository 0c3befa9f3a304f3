"""Sets of paths over streams: item by item, in the order of LAWS 1.2, by the law and by branches."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

from branch.feeding import Flow, Question, Stream, spiced
from mass import some

A, B = 'stream("a")/r/i', 'stream("b")/r/i'
SETS = (
    f"{A} union {B}",
    f"{A}[v > 1] union {A}[10 div v > 2] union {B}",
    f"{A}/v union {B}/t",
    f"{A} except {A}[v = 5]",
    f"({A} union {B}) intersect ({A}[t > 3] union {B}[v > 2])",
    f"{A} intersect {B}",
)
RESULTS = ("return $x", "where $x/v > 1 return <o>{ 10 div $x/v }</o>", "return $x/t/text()", "return ($x/v, 1)")


def stream(random: Random, name: str) -> Stream:
    time, items = 0, []
    for _ in range(random.randint(2, 9)):
        time += random.choice((0, 1, 2))
        items.append(f'<i n="1"><t>{time}</t><v>{random.choice((0, 1, 3, 5, "x"))}</v></i>')
    partitions = random.choice((1, 1, 2))
    dealt = [random.randrange(partitions) for _ in range(40)]
    return Stream(name, spiced(random, f"<r>{''.join(items)}</r>"), dealt, partitions, time="t")


@pytest.mark.mass
def test_any_cut_gives_the_answer_of_the_law() -> None:
    """Answers and dead letters are those of the reference, with a state written and read between epochs."""
    answered = failed = 0
    for number in some(range(40)):
        random = Random(f"sets {number}")
        chosen = random.choice(SETS)
        query = chosen if random.random() < 0.3 else f"for $x in {chosen} {random.choice(RESULTS)}"
        asked = Question(query, [stream(random, name) for name in "ab"])
        assert (asked.standing.kind, asked.operator) == ("items", "items")
        has_answer, has_dead = asked.check_by_law(random, number)
        answered += has_answer
        failed += has_dead
    assert answered > 3
    assert failed


def asked(query: str, *texts: str) -> tuple[str, int]:
    """What a query answers over the streams `a` and `b`, and how many dead letters there are; the branch agrees."""
    streams = [
        Stream(name, f"<r>{text}</r>", time="t")
        for name, text in zip("ab", texts, strict=False)
        if f'"{name}"' in query
    ]
    question = Question(query, streams)
    law, taken = question.law(), question.run(Random(1), epochs=2)
    assert question.answer(taken) == law.text
    assert len(taken.dead) == len(law.dead)
    return law.text, len(law.dead)


def items(*values: tuple[int, object]) -> str:
    return "".join(f"<i><t>{time}</t><v>{value}</v></i>" for time, value in values)


def test_a_union_is_merged_by_time() -> None:
    """LAWS case 155: a tie goes to the stream that is named first."""
    given = items((1, "p"), (4, "q"), (6, "r")), items((2, "s"), (4, "u"))
    assert asked(f"for $x in {A} union {B} return <o>{{ $x/t/text(), $x/v/text() }}</o>", *given) == (
        "<o>1p</o><o>2s</o><o>4q</o><o>4u</o><o>6r</o>",
        0,
    )
    assert asked(f"{A}/v | {B}/t", *given)[0] == "<v>p</v><t>2</t><v>q</v><t>4</t><v>r</v>"
    assert asked(f"for $x in {B} union {A} return $x/v/text()", *given)[0] == "psuqr"


def test_what_fails_sets_its_item_aside() -> None:
    """LAWS case 156: whichever of the paths it fails in."""
    given = items((1, 1), (4, "x"), (6, 5))
    assert asked(f"{A}[v + 1 > 2]/v union {A}[v = '5']/v", given) == (
        "<v>5</v>",
        1,
    )
    assert asked(f"for $x in {A} except {A}[v = '5'] return $x/v", given) == ("<v>1</v><v>x</v>", 0)
    assert asked(f"for $x in {A}[t > 3] intersect {A}[v = '5'] return $x/v", given) == ("<v>5</v>", 0)


def test_a_union_evolves_when_all_its_streams_have() -> None:
    """LAWS case 157: an alter comes out when it is next for all inputs (LAWS 4.2 d)."""
    query = f"for $x in {A} union {B} return <o>{{ $x/v }}</o>"
    flow = Flow(Question(query, [Stream(name, time="t") for name in "ab"]))
    accent = '<s:accent xmlns:s="urn:anabranch:stream"><s:alter path="v" by="(. - 32) * 5 div 9"/></s:accent>'
    flow.bring("a", items((1, 68)), accent, items((2, "25.0")))
    flow.bring("b", items((3, 50)))
    flow.epoch()
    flow.bring("b", accent)
    flow.bring("a", items((5, 30)))
    flow.bring("b", items((6, 10)))
    flow.end()
    told = '<s:accent xmlns:s="urn:anabranch:stream"><s:alter path="v" by=". * 5 div 9 - 160 div 9"/></s:accent>'
    expected = [
        "<o><v>68</v></o>",
        "<o><v>77</v></o>",
        "<o><v>50</v></o>",
        told,
        "<o><v>30</v></o>",
        "<o><v>10</v></o>",
    ]
    assert flow.taken.pieces == expected
    assert flow.branch.held == 0


def test_slack_has_no_part_in_it() -> None:
    """An item is never late for a set, however old it is."""
    flow = Flow(
        Question(f"for $x in {A} union {B} return $x/t", [Stream(n, time="t", slack=Fraction(0)) for n in "ab"])
    )
    flow.bring("a", items((5, 1)), items((1, 1)))
    flow.bring("b", items((2, 1)), items((9, 1)))
    flow.end()
    assert "".join(flow.taken.pieces) == "<t>2</t><t>5</t><t>1</t><t>9</t>"
