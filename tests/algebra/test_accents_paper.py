"""The accents paper read out loud: its figures, its examples, and the contracts of 6.1 as properties.

The bullets of sections 4 and 6.1 one by one are in `test_operators.py`, the rules of 5.1 and the cases of 5.2 in
`accents/test_canonical.py`, figure 3 in `test_square.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from algebra.accented import CELSIUS, add, alter, drop, item, path, same, show, together
from algebra.evolving import faults
from anabranch.algebra.accents.boxes import for_all, for_some, within
from anabranch.algebra.accents.items import spelled
from anabranch.algebra.accents.sets import below, items_of
from anabranch.algebra.plans.builder import DerivedStream, stream
from anabranch.algebra.plans.interpret import Apply
from anabranch.errors import Aborted
from anabranch.predicate import Domain, Finite, Predicate, and_, or_
from anabranch.stream.elements import Accent, Add, Alter, Drop, Item, Punctuation
from anabranch.stream.path import Path
from mass import examples
from models.canonical import canonical
from models.interpreter import Element, Interpreter, leaving, run

TO_CELSIUS = "alter t by . * 5 div 9 - 160 div 9"
SENSORS: dict[Path, Domain] = {path("s"): Finite(frozenset({"1", "2"}))}
PLACED = stream("sensors").join(stream("placement"), on="s").window("ts", size=5)
AVERAGE = PLACED.aggregate(by=["l", "wid"], all="avg", exclude=["ts", "s"])
"""The standing query of section 2, with the exclusion list of section 4."""


def steps(
    query: DerivedStream, *elements: tuple[str, Element | str], domains: dict[Path, Domain] | None = None
) -> list[str]:
    """What comes out at each element, and at the end; several in one step have `; ` between them."""
    work, found = Interpreter(query.plan, domains=domains or {}), []
    for source, each in elements:
        found.append(list(work.feed(source, item(each) if isinstance(each, str) else each)))
    found.append(list(work.end()))
    return ["; ".join(show(leaving(each, 0, spelled)) for each in step) for step in found]


# --- section 2 --------------------------------------------------------------------------------------------------

BEFORE: list[tuple[str, Element | str]] = [
    ("placement", "s=1 l=A"),
    ("placement", "s=2 l=A"),
    ("sensors", "ts=0 s=1 t=68"),
    ("sensors", "ts=0 s=2 t=77"),
    ("sensors", "ts=5 s=1 t=77"),
]
FIRMWARE: tuple[str, Element] = ("sensors", alter("t", CELSIUS, "s = 2"))
AFTER: list[tuple[str, Element | str]] = [("sensors", "ts=6 s=2 t=25")]


def test_figure_1_a() -> None:
    """Without the accent Fahrenheit and Celsius are averaged, and the result is wrong."""
    assert steps(AVERAGE, *BEFORE, *AFTER)[-1] == "l=A wid=0 t=72.5; l=A wid=1 t=51"


def test_figure_1_b() -> None:
    """With it, join and window pass it on at once, and the aggregate takes the value of sensor 2 back to Fahrenheit."""
    joined = steps(PLACED, *BEFORE, FIRMWARE, *AFTER)
    assert joined[len(BEFORE) :] == [f"{TO_CELSIUS} where s = 2", "ts=6 s=2 t=25 l=A wid=1", ""]
    averaged = steps(AVERAGE, *BEFORE, FIRMWARE, *AFTER, domains=SENSORS)
    assert averaged[len(BEFORE) :] == ["", "", "l=A wid=0 t=72.5; l=A wid=1 t=77"]


def test_example_1_all_sensors_in_the_end() -> None:
    """When sensor 1 follows, and the domain is known, the aggregate lets its own accent out and goes on in Celsius."""
    rest: list[tuple[str, Element | str]] = [("sensors", alter("t", CELSIUS, "s = 1")), ("sensors", "ts=11 s=1 t=30")]
    found = steps(AVERAGE, *BEFORE, FIRMWARE, *AFTER, *rest, domains=SENSORS)
    assert found[len(BEFORE) + 2 :] == [TO_CELSIUS, "", "l=A wid=0 t=22.5; l=A wid=1 t=25; l=A wid=2 t=30"]


def test_example_2_both_reactions() -> None:
    """Pressure is projected out, and the query is unaffected; or it is averaged, too, from its add on."""
    added: list[tuple[str, Element | str]] = [("sensors", add("p", "s = 2")), ("sensors", "ts=6 s=2 t=77 p=3")]
    unaffected = PLACED.project("l", "wid", "t").aggregate(by=["l", "wid"], all="avg")
    assert steps(unaffected, *BEFORE, *added)[-3:] == ["", "", "l=A wid=0 t=72.5; l=A wid=1 t=77"]
    assert steps(AVERAGE, *BEFORE, *added)[-3:] == ["add p", "", "l=A wid=0 t=72.5; l=A wid=1 t=77 p=3"]


def test_the_third_reaction() -> None:
    """Section 2: a query may be rendered unable to execute; it says by which accent, operator and path."""
    with pytest.raises(Aborted, match="Join cannot do without 's': the accent on 's' where ts > 5 drops it"):
        steps(AVERAGE, *BEFORE, ("sensors", drop("s", "ts > 5")))


# --- section 4, Union -------------------------------------------------------------------------------------------


def test_figure_2_step_by_step() -> None:
    """What the input brings that changed first is scaled back, until the other has changed for the items, too."""
    both = stream("S").union(stream("T"))
    fed: list[tuple[str, Element | str]] = [
        ("S", "s=1 t=68"),
        ("T", "s=1 t=77"),
        ("S", alter("t", CELSIUS, "s <= 2")),
        ("S", "s=1 t=20"),
        ("S", "s=3 t=59"),
        ("T", "s=1 t=59"),
        ("T", alter("t", CELSIUS, "s <= 1")),
        ("S", "s=1 t=20"),
        ("T", "s=1 t=25"),
        ("S", "s=2 t=20"),
        ("T", "s=2 t=59"),
        ("T", alter("t", CELSIUS, "s > 1 and s <= 2")),
        ("S", "s=2 t=20"),
        ("T", "s=2 t=15"),
    ]
    assert steps(both, *fed) == [
        "s=1 t=68",
        "s=1 t=77",
        "",  # kept in the state of S
        "s=1 t=68",  # so what S brings is altered back
        "s=3 t=59",  # unless it is not described
        "s=1 t=59",
        f"{TO_CELSIUS} where s <= 1",  # what both describe comes out, and the rest stays in the state of S
        "s=1 t=20",
        "s=1 t=25",
        "s=2 t=68",
        "s=2 t=59",
        f"{TO_CELSIUS} where s > 1 and s <= 2",
        "s=2 t=20",
        "s=2 t=15",
        "",
    ]


def test_the_example_with_foo() -> None:
    """Section 4: the second accent comes out for what the first has not described; an equal one not at all.

    The paper writes `a != 'FOO'`; an item without `a` is meant, too (LAWS 4.4).
    """
    first = ("T", add("X", "a = 'FOO'"))
    found = steps(stream("S").union(stream("T")), first, ("S", add("X", "b < 5")))
    assert found == ["add X where a = 'FOO'", "add X where b < 5 and not(a = 'FOO')", ""]
    assert steps(stream("S").union(stream("T")), first, ("S", add("X", "a = 'FOO'"))) == [
        "add X where a = 'FOO'",
        "",
        "",
    ]


def test_join_and_aggregate_leave_nothing_out() -> None:
    """Section 4: an add passes a join at once, from whichever side; what is excluded is not even dropped."""
    joined = stream("S").join(stream("T"), on="k")
    assert steps(joined, ("S", add("x", "k = 1")), ("T", add("y"))) == ["add x where k = 1", "add y", ""]
    excluded = stream("S").aggregate(by=["k"], all="avg", exclude=["x"])
    assert steps(excluded, ("S", add("x")), ("S", alter("x", ". * 2", "z = 1")), ("S", drop("x"))) == [""] * 4


# --- section 5 --------------------------------------------------------------------------------------------------


def test_select_on_canonical_input() -> None:
    """Section 5.3: P + select(T) + A + D, so on canonical input it does nothing but select."""
    accented: list[Element] = [
        item("s=2 t=77"),
        alter("t", CELSIUS, "s = 2"),
        add("x", "s = 1"),
        item("s=2 t=20"),
        item("s=2 t=25"),
        item("s=1 t=60 x=1"),
        item("s=1 t=70 x=2"),
        drop("y"),
    ]
    warm = stream("S").select("t > 68").plan
    canonically = in_canonical_form(accented)
    selected = [show(each) for each in canonically if show(each) not in ("s=2 t=68", "s=1 t=60 x=1")]
    assert len(selected) == len(canonically) - 2
    assert [show(each) for each in run(warm, [("S", each) for each in canonically])] == selected
    assert [show(each) for each in in_canonical_form(run(warm, [("S", each) for each in accented]))] == selected
    with pytest.raises(Aborted, match="Select cannot do without 't'"):
        run(warm, [("S", each) for each in in_canonical_form([*accented, drop("t", "s = 1")])])


def in_canonical_form(elements: list[Element]) -> list[Element]:
    return [each for each in canonical(elements) if isinstance(each, Item | Accent | Punctuation)]


# --- 6.2: signatures --------------------------------------------------------------------------------------------

S, T = stream("S"), stream("T")


@pytest.mark.parametrize(
    ("query", "foundation", "merge", "accumulator"),
    [
        pytest.param(S.select("c > 1"), "c", "", "", id="Select"),
        pytest.param(S.project("c"), "", "", "d e", id="Project"),
        pytest.param(S.union(T), "", "c d e", "", id="Union"),
        pytest.param(S.intersect(T), "", "c d e", "", id="Intersect"),
        pytest.param(S.join(T, on=[("c", "d")]), "c d", "c d", "", id="Join: merge pair by pair (LAWS 4.2 c)"),
        pytest.param(S.window("c", size=5), "c", "", "c", id="Window: an accumulator with a link (LAWS 4.2 e)"),
        pytest.param(S.aggregate(by=["c"], all="avg", exclude=["e"]), "c", "", "d e", id="Aggregate"),
        pytest.param(S.order("c"), "c", "", "", id="Order"),
        pytest.param(S.some("c", "d > 1"), "c/d", "", "", id="Quantify"),
        pytest.param(S.construct("o", {"c": "d"}), "", "", "c e", id="Construct"),
    ],
)
def test_signatures(query: DerivedStream, foundation: str, merge: str, accumulator: str) -> None:
    """The triples of section 6.2, over the paths c, d and e."""
    assert isinstance(query.plan, Apply)
    signature = query.plan.operator.signature
    paths = [path(each) for each in ("c", "c/d", "d", "e")]
    merged = [each for each in paths if any(len(signature.sources(input, each, 2)) > 1 for input in (0, 1))]
    needed = [path(each) for each in foundation.split()]
    assert [each for each in paths if signature.foundation.meets(each)] == [
        each for each in paths if any(below(each, other) or below(other, each) for other in needed)
    ]
    assert {str(each) for each in merged if each.steps[1:] == ()} == set(merge.split())
    hidden = [each for each in paths if each in signature.accumulator]
    assert {str(each) for each in hidden if each.steps[1:] == ()} == set(accumulator.split())


# --- 6.1: contracts ---------------------------------------------------------------------------------------------

NUMBERS = st.integers(1, 3)
VISIBLE = st.builds("s {} {}".format, st.sampled_from(("=", "<", ">=", "!=")), NUMBERS)
HIDDEN = st.builds("h {} {}".format, st.sampled_from(("=", "<", ">=")), NUMBERS)
SEEN = st.one_of(VISIBLE, st.builds("not({})".format, VISIBLE), st.just(""))
MIXED = st.one_of(HIDDEN, st.builds("{} and {}".format, VISIBLE, HIDDEN), st.builds("not({})".format, HIDDEN))
OFTEN = examples(40)


def valid(accents: Iterable[Accent]) -> list[Element]:
    """The accents of a list that may stand where they stand; `p` is the only path that is not there at the start."""
    kept: list[Element] = []
    for each in accents:
        kept += [each] if not faults([*kept, each]) else []
    return kept


def described(elements: Sequence[Element], kind: type[Add | Drop | Alter]) -> Predicate:
    """The items that accents of one kind describe in the canonical stream."""
    accents = [each for each in canonical(elements) if isinstance(each, Accent)]
    return or_(*(items_of(each.where) for each in accents if isinstance(each.evolution, kind)))


def equal(one: Predicate, other: Predicate) -> bool:
    return within(one, other) and within(other, one)


def union(one: list[Element], other: list[Element]) -> list[Element]:
    return run(stream("S").union(stream("T")).plan, [*(("S", each) for each in one), *(("T", each) for each in other)])


@OFTEN
@given(st.lists(SEEN, max_size=3), st.lists(SEEN, max_size=3))
def test_merge_contract_of_adds(one: list[str], other: list[str]) -> None:
    """What an input has added is added in the output, whose descriptions together may be less selective."""
    first, second = valid(add("p", each) for each in one), valid(add("p", each) for each in other)
    found = union(first, second)
    assert equal(described(found, Add), or_(described(first, Add), described(second, Add)))
    assert faults(found) == []


@OFTEN
@given(st.lists(SEEN, min_size=1, max_size=3))
def test_merge_contract_of_one_input_alone(one: list[str]) -> None:
    """Drops and alters that one input has and the other has not do not come out."""
    for first in (valid(drop("x", each) for each in one), valid(alter("x", ". * 2", each) for each in one)):
        assert union(first, []) == []
        assert union([], first) == []


@OFTEN
@given(st.lists(SEEN, min_size=1, max_size=3), st.lists(SEEN, min_size=1, max_size=3))
def test_merge_contract_of_drops(one: list[str], other: list[str]) -> None:
    """What both inputs have dropped is dropped in the output, and nothing else."""
    first, second = valid(drop("x", each) for each in one), valid(drop("x", each) for each in other)
    found = union(first, second)
    assert equal(described(found, Drop), and_(described(first, Drop), described(second, Drop)))


@OFTEN
@given(SEEN, SEEN)
def test_merge_contract_of_alters(one: str, other: str) -> None:
    """One unit change on both inputs comes out for the items that both describe, and once."""
    first: list[Element] = [alter("x", ". * 2", one)]
    second: list[Element] = [alter("x", ". * 2", other)]
    found = union(first, second)
    wanted = f"({one or 'true()'}) and ({other or 'true()'})"
    assert same(together([show(each) for each in found], "alter x by . * 2"), wanted)


def projected(accents: list[Element]) -> list[Element]:
    return run(stream("S").project("s", "x", "p").plan, [("S", each) for each in accents])


@OFTEN
@given(st.lists(st.one_of(SEEN, MIXED), min_size=1, max_size=3))
def test_accumulator_contract_of_adds(given_: list[str]) -> None:
    """An add comes out for some description without the hidden path that has all of it; in the best one, no more."""
    accents = valid(add("p", each) for each in given_)
    found = projected(accents)
    out = described(found, Add)
    assert all("h " not in show(each) for each in found)
    assert within(described(accents, Add), out)
    assert equal(out, for_some(described(accents, Add), [path("h")]))


@OFTEN
@given(st.lists(st.one_of(SEEN, MIXED), min_size=1, max_size=4))
def test_accumulator_contract_of_drops(given_: list[str]) -> None:
    """A drop comes out for the items that all descriptions together have whatever the hidden path, and no others."""
    accents = valid(drop("x", each) for each in given_)
    found = projected(accents)
    assert all("h " not in show(each) for each in found)
    assert equal(described(found, Drop), for_all(described(accents, Drop), [path("h")]))


@OFTEN
@given(SEEN, NUMBERS, st.permutations((0, 1, 2)))
def test_accumulator_contract_of_alters(visible: str, at: int, order: Sequence[int]) -> None:
    """`h < 2`, `h >= 2` and 'neither', with the same visible items: the last brings the alter, in whatever order."""
    front = f"{visible} and " if visible else ""
    parts = [f"{front}h < {at}", f"{front}h >= {at}", f"{front}not(h < {at}) and not(h >= {at})"]
    accents: list[Element] = [alter("x", ". * 2", parts[each]) for each in order]
    assert projected(accents[:2]) == []
    out = [show(each) for each in projected(accents)]
    assert same(together(out, "alter x by . * 2"), visible or "true()")
