"""State transformers: the steps of section 6, `adjust` and its properties, and the stages that are unblocked."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.aggregates import AGGREGATES
from anabranch.aggregates.function import FunctionName
from anabranch.aggregates.partial import Partial, merged
from anabranch.errors import DynamicError
from anabranch.stream.tree import Name
from anabranch.values.atomic import spell
from anabranch.values.sequences import atomize
from history.tokenized import Applied, events, random_stream, texts, written
from mass import some
from models.pipeline.combining import Clone, Concatenate, Construct, Pipeline
from models.pipeline.events import (
    Characters,
    Content,
    EndElement,
    EndRegion,
    EndStream,
    Event,
    Id,
    Now,
    StartElement,
    is_well_formed,
)
from models.pipeline.qualifier import Qualifier
from models.pipeline.showing import Shown
from models.pipeline.sorting import Sorted, child_text, rank
from models.pipeline.steps import Child, Descendant, Texts, Values
from models.pipeline.temporal import Qualified
from models.pipeline.totals import Fold, Total
from models.pipeline.transformer import Inert, Mapped, Transformer, adjust, run

ID = Id(0, "1")
A, B = Name("a"), Name("b")


def content(xml: str) -> list[Content]:
    """The events of some content: `<a>1<b/></a>`."""
    found: list[Content] = []
    for part in xml.replace("<", "\0<").replace(">", ">\0").split("\0"):
        match part:
            case "":
                pass
            case _ if part.startswith("</"):
                found.append(EndElement(ID, Name(part[2:-1])))
            case _ if part.startswith("<"):
                name = Name(part.strip("</>"))
                found.append(StartElement(ID, name))
                if part.endswith("/>"):
                    found.append(EndElement(ID, name))
            case _:
                found.append(Characters(ID, part))
    return found


PARTS = [
    content(each) for each in ("1", "2.5", "-3", "x", "<a/>", "<b>4</b>", "<a>1<b>2<a/></b></a>", "<c><a><b/>7</a></c>")
]
SEVERAL = st.lists(st.sampled_from(PARTS), max_size=4).map(lambda some: [event for one in some for event in one])
STEPS: list[Inert] = [Child(A), Child(), Descendant(B), Descendant(), Texts(), Values(A)]
FUNCTIONS: list[FunctionName] = ["count", "sum", "avg", "min", "max"]
FOLDS = [Fold(function) for function in FUNCTIONS]


# --- steps --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "answer"),
    [
        (Child(A), "<a>1<b>2</b></a><a/>"),
        (Child(B), "<b>3<b>4</b></b>"),
        (Child(), "<a>1<b>2</b></a><b>3<b>4</b></b><a/>"),
        (Descendant(B), "<b>2</b><b>3<b>4</b></b>"),
        (Texts(), "05"),
    ],
)
def test_steps(step: Inert, answer: str) -> None:
    """What each step gives of `r`, its context."""
    given = content("<r>0<a>1<b>2</b></a><b>3<b>4</b></b><a/>5</r>")
    assert written(run(step, given, step.initial)[0]) == answer


def test_attributes() -> None:
    """`/@a` gives values, of the context elements only."""
    start = StartElement(ID, B, ((A, "1"), (B, "2")))
    end = EndElement(ID, B)
    given: list[Content] = [start, start, end, end, start, end]
    step = Values(A)
    assert written(run(step, given, step.initial)[0]) == "1 1"


@given(given=SEVERAL, before=SEVERAL)
def test_steps_are_inert(given: list[Content], before: list[Content]) -> None:
    """Well-formed content leaves the state as it was, wherever it comes, and what comes of it is well-formed."""
    for step in STEPS:
        state = step.initial
        for event in before:
            found, after = run(step, given, state)
            assert after == state
            assert is_well_formed(found, ID)
            assert not (step.is_blind(state.mode) and found)
            _, state = step.step(event, state)


# --- adjust -------------------------------------------------------------------------------------------------


@given(SEVERAL, SEVERAL, SEVERAL, SEVERAL)
def test_the_properties_of_adjust(a: list[Content], b: list[Content], c: list[Content], more: list[Content]) -> None:
    """Section 6: nothing changed changes nothing; what was changed becomes that; and content adds what it adds."""
    transformers: list[Transformer] = [*FOLDS, *STEPS]
    for each in transformers:
        one, two, three = (run(each, given, each.initial)[1] for given in (a, b, c))
        assert adjust(one, two, two) == one
        assert adjust(one, one, two) == two
        assert adjust(run(each, more, one)[1], two, three) == run(each, more, adjust(one, two, three))[1]
        assert adjust(run(each, more, one)[1], one, two) == run(each, more, two)[1]


@given(before=SEVERAL, old=SEVERAL, new=SEVERAL, behind=SEVERAL)
def test_adjusting_is_running_anew(
    before: list[Content], old: list[Content], new: list[Content], behind: list[Content]
) -> None:
    """Content replaced in the middle: the state at the end, adjusted, is that of the stream as it is now."""
    for fold in FOLDS:
        _, start = run(fold, before, fold.initial)
        _, was = run(fold, old, start)
        _, becomes = run(fold, new, start)
        _, end = run(fold, behind, was)
        assert adjust(end, was, becomes) == run(fold, [*before, *new, *behind], fold.initial)[1]


# --- aggregates ---------------------------------------------------------------------------------------------


def answers(stage: Total | Sorted, stream: str) -> list[str]:
    """What is on display, whenever it changes."""
    display = Shown()
    pipeline = Pipeline(stage, display)
    found: list[str] = []
    for event in events(stream):
        pipeline.take(event)
        if not found or display.text != found[-1]:
            found.append(display.text)
    return found


PRICES = """
sS(0,0) sM(0,1) sE(1,p) cD(1,9) eE(1,p) eM(0,1) sE(0,p) sM(0,2) cD(2,5) eM(0,2) eE(0,p) sM(0,3) sE(3,p) cD(3,7) eE(3,p)
eM(0,3) sR(1,4) sE(4,p) cD(4,1) eE(4,p) eR(1,4) sR(2,5) cD(5,1) cD(5,2) eR(2,5) sR(3,6) eR(3,6)
"""


@pytest.mark.parametrize(
    ("function", "found"),
    [
        ("count", ["0", "1", "2", "3", "2"]),
        ("sum", ["0", "9", "14", "21", "13", "20", "13"]),
        ("avg", ["9", "7", "4.333333333333333", "6.666666666666667", "6.5"]),
        ("min", ["9", "5", "1"]),
        ("max", ["9", "7", "12"]),
    ],
)
def test_aggregates_are_unblocked(function: FunctionName, found: list[str]) -> None:
    """The answer is there at once, and replaced as values come, change and go: 9, 5, 7; 9 to 1; 5 to 12; 7 deleted.

    For `max` case 30 of LAWS 6: 9, then 7.
    """
    assert [each for each in answers(Total(function), PRICES) if each] == found


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("seed", some(range(12)))
def test_aggregates_of_random_streams(seed: int, function: FunctionName) -> None:
    """After every update the aggregate is that of all values that show; the state is read back every few events."""
    stage, display, naive = Total(function), Shown(), Applied()
    for number, event in enumerate(random_stream(seed, length=60, qualified=seed % 2 == 0)):
        naive.take(event)
        display.run(stage.take(event))
        if isinstance(event, EndRegion | EndStream | Now):
            assert display.text == _aggregate(function, texts(naive.content())), str(event)
            kept = json.loads(json.dumps(stage.encode()))
            if number % 5 == 0:
                stage = Total(function)
                stage.decode(kept)


@pytest.mark.parametrize("seed", some(range(12)))
def test_an_aggregate_behind_a_step(seed: int) -> None:
    """What a step does not see is a moment all the same: `count(b)` is right whenever some region ends."""
    step, stage, display, naive = Mapped(Child(B)), Total("count"), Shown(), Applied()
    for event in random_stream(seed, length=60, qualified=seed % 2 == 0):
        naive.take(event)
        display.run(stage.run(step.take(event)))
        if isinstance(event, EndRegion | EndStream | Now):
            child = Child(B)
            assert display.text == str(len(texts(run(child, naive.content(), child.initial)[0]))), str(event)


def _aggregate(function: FunctionName, values: list[str]) -> str:
    partial = merged(Partial.of(each, number) for number, each in enumerate(values))
    try:
        return " ".join(map(spell, atomize(AGGREGATES[function].value(partial))))
    except DynamicError:
        return ""


@pytest.mark.parametrize(
    ("values", "function", "answer"),
    [
        (["0.1", "0.2"], "sum", "0.3"),
        (["1", "INF"], "avg", "INF"),
        (["INF", "-INF"], "sum", "NaN"),
        (["NaN", "1"], "min", "NaN"),
        (["0", "-0"], "max", "0"),
        (["-0", "0"], "max", "-0"),
        (["-0", "0"], "min", "-0"),
        (["1e6", "2"], "max", "1.0E6"),
        (["1", "word"], "sum", ""),
        (["1", "word"], "count", "2"),
        ([], "sum", "0"),
        ([], "avg", ""),
    ],
)
def test_values_of_aggregates(values: list[str], function: FunctionName, answer: str) -> None:
    """Exact sums, XQuery's spelling, the first of two zeros, and nothing where a text is no number (LAWS 2)."""
    stage, display = Total(function), Shown()
    display.run(
        stage.run(events("sS(0,0)" + "".join(f" sE(0,p) cD(0,{each}) eE(0,p)" for each in values) + " eS(0,0)"))
    )
    assert display.text == answer
    assert (stage.failure is None) == ("word" not in values or function == "count")


# --- order by -----------------------------------------------------------------------------------------------


def book(id: str, title: str, price: str) -> str:
    return f"sE({id},book) cD({id},{title}) sE({id},price) cD({id},{price}) eE({id},price) eE({id},book)"


def titles(text: str) -> str:
    return " ".join(each.partition("<price>")[0] for each in text.replace("</book>", "").split("<book>")[1:])


def test_books_move_appear_and_vanish() -> None:
    """Query 1 of section 4: a book stands where its price puts it, from the moment it comes (LAWS 2.3: 9 before 10)."""
    stream = f"""
    sS(0,0) sM(0,1) {book("1", "A", "10")} eM(0,1) sM(0,2) {book("2", "B", "9")} eM(0,2)
    sE(0,book) cD(0,C) sE(0,price) sM(0,3) cD(3,9.5) eM(0,3) eE(0,price) eE(0,book)
    sR(3,4) cD(4,x) eR(3,4) sR(2,5) {book("5", "D", "10")} eR(2,5) sR(1,6) eR(1,6) sR(4,7) cD(7,1) eR(4,7)
    """
    stage, display = Sorted(child_text(Name("price"))), Shown()
    found: list[str] = []
    for event in events(stream):
        display.run(stage.take(event))
        found.append(titles(display.text))
    moves = list(dict.fromkeys(found))
    assert [each for each in moves if each in ("A", "B A", "B C A", "B A C", "A D C", "D C", "C D")] == [
        "A",
        "B A",
        "B C A",
        "B A C",
        "A D C",
        "D C",
        "C D",
    ]
    assert found[-1] == "C D"


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("seed", some(range(12)))
def test_order_of_random_streams(seed: int, descending: bool) -> None:
    """After every update the results stand as sorting anew would put them, equal ones in the order of the stream."""

    def key(given: Sequence[Content]) -> str | None:
        return "".join(each.text for each in given if isinstance(each, Characters)) or None

    stage, display, naive = Sorted(key, descending=descending), Shown(), Applied()
    for number, event in enumerate(random_stream(seed, length=60, qualified=seed % 2 == 0)):
        naive.take(event)
        display.run(stage.take(event))
        if isinstance(event, EndRegion | EndStream | Now):
            results = _results(naive.content())
            results.sort(key=lambda result: rank(key(result)), reverse=descending)
            assert display.text == written([each for result in results for each in result]), str(event)
            kept = json.loads(json.dumps(stage.encode()))
            if number % 5 == 0:
                stage = Sorted(key, descending=descending)
                stage.decode(kept)


@pytest.mark.parametrize("seed", some(range(12)))
def test_conditions_on_random_streams(seed: int) -> None:
    """After every update those results stand, in the order of the stream, whose text has no minus in it."""

    def holds(given: Sequence[Content]) -> bool:
        return not any("-" in each.text for each in given if isinstance(each, Characters))

    stage, display, naive = Sorted(where=holds), Shown(), Applied()
    for event in random_stream(seed, length=60, qualified=seed % 2 == 0):
        naive.take(event)
        display.run(stage.take(event))
        if isinstance(event, EndRegion | EndStream | Now):
            results = [each for each in _results(naive.content()) if holds(each)]
            assert display.text == written([each for result in results for each in result]), str(event)


def test_a_result_vanishes_and_comes_back() -> None:
    """Query 1 of section 4: when the author changes the book is erased, and when he is Smith again it is there."""
    author = child_text(Name("author"))
    stage, display = Sorted(where=lambda given: author(given) == "Smith"), Shown()
    book = "sE(0,book) cD(0,{0}) sE(0,author) sM(0,{0}) cD({0},{1}) eM(0,{0}) eE(0,author) eE(0,book)"
    found: list[str] = []
    for part in (
        f"sS(0,0) {book.format('A', 'Smith')} {book.format('B', 'Jones')} {book.format('C', 'Smith')}",
        "sR(A,x) cD(x,Lee) eR(A,x)",
        "sR(B,y) cD(y,Smith) eR(B,y)",
        "sR(A,z) cD(z,Smith) eR(A,z)",
    ):
        display.run(stage.run(events(part)))
        found.append("".join(each for each in display.text if each in "ABC"))
    assert found == ["AC", "C", "BC", "ABC"]


def _results(given: list[Content]) -> list[list[Content]]:
    found: list[list[Content]] = []
    depth = 0
    for event in given:
        if depth == 0:
            found.append([])
        found[-1].append(event)
        depth += isinstance(event, StartElement) - isinstance(event, EndElement)
    return found


# --- virtual streams ----------------------------------------------------------------------------------------


def test_a_clone_can_be_qualified_differently() -> None:
    """`$q/quote` beside `$q/quote#1` (section 7): one stream, twice, each with its own versions."""
    display = Shown(stream=2)
    pipeline = Pipeline(
        Clone(0, 1),
        Mapped(Child(Name("quote"))),
        Mapped(Child(Name("quote")), stream=1),
        Qualified(Qualifier.parse("#1"), stream=1),
        Concatenate(0, 1, 2),
        display,
    )
    pipeline.run(
        events("""
        sS(0,0) sE(0,ticker) sM(0,1) sE(1,quote) cD(1,10) eE(1,quote) eM(0,1) eE(0,ticker)
        sR(1,2) sE(2,quote) cD(2,12) eE(2,quote) eR(1,2)
        """)
    )
    assert display.text == "<quote>12</quote><quote>10</quote>"


def test_concatenation_does_not_wait() -> None:
    """What comes first is shown at once, in its place, whichever side it is of."""
    display = Shown(stream=2)
    pipeline = Pipeline(Concatenate(0, 1, 2), Construct(Name("both"), ((A, "1"),), stream=2), display)
    found: list[str] = []
    first, second = events("sS(0,0) cD(0,x) sM(0,1) cD(0,y) eM(0,1) eS(0,0)"), events("sS(0,0) cD(0,z) eS(0,0)", 1)
    for event in [first[0], *second, *first[1:]]:
        pipeline.take(event)
        found.append(display.text)
    assert list(dict.fromkeys(found)) == [
        '<both a="1"/>',
        '<both a="1">z</both>',
        '<both a="1">xz</both>',
        '<both a="1">xyz</both>',
    ]


@pytest.mark.parametrize("seed", some(range(10)))
def test_two_random_streams_in_an_element(seed: int) -> None:
    """Interleaved at random, both sides come to what they are alone, one behind the other; each time read back."""
    sides = [random_stream(seed), [_moved(each) for each in random_stream(seed + 100)]]
    alone = [Applied(), Applied()]
    display = Shown(stream=2)
    pipeline = Pipeline(Concatenate(0, 1, 2), Construct(Name("r"), stream=2), display)
    for pair in zip(*sides, strict=False):
        for event, naive in zip(pair, alone, strict=True):
            if not isinstance(event, Now):
                pipeline.take(event)
                naive.take(event)
        inner = written([*alone[0].content(), *alone[1].content()])
        assert display.text == (f"<r>{inner}</r>" if inner else "<r/>")
        kept = json.loads(json.dumps(pipeline.encode()))
        display = Shown(stream=2)
        pipeline = Pipeline(Concatenate(0, 1, 2), Construct(Name("r"), stream=2), display)
        pipeline.decode(kept)


def _moved(event: Event) -> Event:
    return Clone(0, 1).take(event)[-1]


def test_events_of_other_streams_pass() -> None:
    """A stage touches the events of its own stream alone."""
    given = events("sS(0,0) sE(0,a) cD(0,1) eE(0,a) eS(0,0)", stream=7)
    stages: list[Callable[[Event], list[Event]]] = [
        Mapped(Child(A)).take,
        Total("count").take,
        Qualified().take,
        Sorted(child_text(A)).take,
        Clone(0, 1).take,
        Concatenate(0, 1, 2).take,
        Construct(A).take,
    ]
    for take in stages:
        assert [each for event in given for each in take(event)] == given
