"""Every bullet of the accents paper's sections 4 and 6.1, or what LAWS 4.2 made of it; LAWS cases 17 to 25."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest

from algebra.accented import CELSIUS, HERE, add, alter, answer, closed, drop, item, path, same, shown, together
from anabranch.aggregates.function import FunctionName
from anabranch.algebra.operators.grouped import Aggregate
from anabranch.algebra.operators.intersect import Intersect
from anabranch.algebra.operators.join import Join
from anabranch.algebra.operators.project import Project
from anabranch.algebra.operators.select import Select
from anabranch.algebra.operators.union import Union
from anabranch.algebra.operators.windowed import Window
from anabranch.algebra.plans.interpret import Apply, StreamSource
from anabranch.algebra.window import Extent
from anabranch.errors import Aborted
from anabranch.predicate import Finite, Reals
from anabranch.stream.description import parse
from anabranch.stream.elements import Punctuation
from models.interpreter import Interpreter, run

TO_CELSIUS = "alter t by . * 5 div 9 - 160 div 9"
TENS = Window(path("t"), Extent(Fraction(10), Fraction(10)))


def select(condition: str) -> Select:
    return Select(parse(condition))


def project(*kept: str) -> Project:
    return Project(frozenset(map(path, kept)))


def join(mine: str, other: str) -> Join:
    return Join(((path(mine), path(other)),))


def aggregate(function: FunctionName, *by: str, exclude: str = "") -> Aggregate:
    return Aggregate(function, tuple(map(path, by)), frozenset(map(path, exclude.split())))


# --- Select ---------------------------------------------------------------------------------------------------


def test_select_passes_adds_and_drops_of_other_paths() -> None:
    """Section 4: `X != C` propagates; section 6.1: so does an add of a foundation path."""
    found = answer(select("c > 1"), add("x", "s = 1"), "c=2 x=3 s=1", drop("x"), add("c", "s = 2"), "c=1", "c=5")
    assert found == ["add x where s = 1", "c=2 x=3 s=1", "drop x", "add c where s = 2", "c=5"]


def test_select_aborts_when_its_path_is_dropped() -> None:
    """Section 4: regardless of the description; the message names operator, path and accent (LAWS 4.6)."""
    with pytest.raises(Aborted, match="Select cannot do without 'c': the accent on 'c' where s = 1 drops it"):
        answer(select("c > 1"), drop("c", "s = 1"))
    with pytest.raises(Aborted):
        answer(select("c/d > 1"), drop("c"))


def test_select_follows_an_alter_of_its_path() -> None:
    """Section 4: the constant is alpha(V) for the items described, V for the others, and the accent comes out."""
    found = answer(select("t > 68"), alter("t", CELSIUS, "s = 2"), "s=1 t=30", "s=2 t=30", "s=2 t=20", "s=1 t=69")
    assert found == [f"{TO_CELSIUS} where s = 2", "s=2 t=30", "s=1 t=69"]


def test_select_compares_exactly_across_a_unit_change() -> None:
    """LAWS case 18: 3.8 C is 38.84 F, to the last digit."""
    assert answer(select("t >= 38.84"), alter("t", CELSIUS), "t=3.8", "t=3.79") == [TO_CELSIUS, "t=3.8"]


def test_text_is_copied_where_the_unit_stays() -> None:
    """LAWS case 19: the accent, then `25.0` as it was written."""
    assert answer(project("t"), alter("t", CELSIUS), "t=25.0 s=1") == [TO_CELSIUS, "t=25.0"]


# --- Project --------------------------------------------------------------------------------------------------


def test_project_passes_what_it_keeps() -> None:
    """Section 4: accents on kept paths with descriptions over kept paths come out, others do not."""
    changes = (add("x", "s = 1"), alter("x", ". * 2", "s = 1"), drop("x", "s = 1"))
    assert answer(project("s", "x"), *changes) == [
        "add x where s = 1",
        "alter x by . * 2 where s = 1",
        "drop x where s = 1",
    ]
    assert answer(project("s"), *changes) == []


@pytest.mark.parametrize("change", [add("x", "t > 1"), drop("x", "t > 1"), alter("x", ". * 2", "t > 1")])
def test_project_aborts_by_policy_where_a_description_is_projected_out(change: object) -> None:
    """Section 4, the stateless definition: it is the policy `abort` (LAWS 4.7)."""
    with pytest.raises(Aborted, match="Project cannot pass on the accent on 'x' where t > 1: 't' is not in its output"):
        answer(project("x"), change, policy="abort")  # type: ignore[arg-type]


def test_project_anticipates_an_added_path() -> None:
    """Section 4: the list may name paths that do not exist yet."""
    assert answer(project("p"), "s=1", add("p"), "s=1 p=7") == ["", "add p", "p=7"]


def test_an_accumulated_alter_waits_for_all_hidden_values() -> None:
    """Section 6.1: `t < 5`, `t = 5` and `t > 5`, each with `s = 1`, become `s = 1`; meanwhile the old unit stays."""
    always = {path("t"): Reals()}
    parts = [alter("x", ". * 2", f"s = 1 and t {op} 5") for op in ("<", "=", ">")]
    found = answer(project("s", "x"), parts[0], "s=1 t=4 x=8", parts[1], parts[2], "s=1 t=4 x=8", domains=always)
    assert found == ["s=1 x=4", "alter x by . * 2 where s = 1", "s=1 x=8"]


def test_an_accumulated_alter_minds_items_without_the_hidden_path() -> None:
    """LAWS 4.4: without a promise that every item has `t`, three comparisons do not cover all."""
    parts = [alter("x", ". * 2", f"t {op} 5") for op in ("<", "=", ">")]
    assert answer(project("x"), *parts, "t=4 x=8") == ["x=4"]
    assert answer(project("x"), *parts, alter("x", ". * 2", "not(t < 5) and not(t = 5) and not(t > 5)"), "x=8") == [
        "alter x by . * 2",
        "x=8",
    ]


def test_an_accumulated_drop_waits_and_an_add_does_not() -> None:
    """Section 6.1: an add comes out with the first accent that may concern an item, a drop with the last."""
    sensors = {path("s"): Finite(frozenset({"1", "2"}))}
    found = answer(
        project("x"), add("x", "s = 1"), add("x", "s = 2"), drop("x", "s = 2"), drop("x", "s = 1"), domains=sensors
    )
    assert found == ["add x", "drop x"]


def test_absorb_keeps_the_units_of_query_start() -> None:
    """LAWS 4.7: no alters come out, and values are in the old unit; adds and drops come out as ever."""
    found = answer(select("true()"), add("x"), alter("x", ". * 2"), "x=6 t=1", drop("x"), policy="absorb")
    assert found == ["add x", "x=3 t=1", "drop x"]


# --- Union ----------------------------------------------------------------------------------------------------


def test_union_of_adds_gives_each_item_once() -> None:
    """The paper's example with FOO: the second accent comes out for what the first did not describe."""
    found = answer(Union(), (1, add("X", "a = 'FOO'")), (0, add("X", "b < 5")))
    assert found == ["add X where a = 'FOO'", "add X where b < 5 and not(a = 'FOO')"]
    assert answer(Union(), (1, add("X", "a = 'FOO'")), (0, add("X", "a = 'FOO'"))) == ["add X where a = 'FOO'"]


def test_union_divides_what_is_no_conjunction() -> None:
    """LAWS case 20: disjoint accents that cover both, also for an item without `a`."""
    found = answer(Union(), (1, add("X", "a = 'FOO' and c < 3")), (0, add("X", "b < 5")))
    assert found[0] == "add X where a = 'FOO' and c < 3"
    assert same(together(found, "add X"), "a = 'FOO' and c < 3 or b < 5")


def test_union_drops_when_all_inputs_have() -> None:
    """Section 4: what both describe comes out, the rest waits."""
    found = answer(Union(), (0, drop("x", "s < 5")), (1, drop("x", "s < 3")), (1, drop("x", "s < 9")))
    assert found == ["drop x where s < 3", "drop x where s < 5 and not(s < 3)"]


def test_union_keeps_a_path_that_one_input_still_has() -> None:
    """LAWS 4.2 d: where the paper's lists would let a second add out, the set of carriers has not grown."""
    found = answer(Union(), (0, add("x")), (1, add("x")), (0, drop("x")), (0, add("x")), (0, drop("x")), (1, drop("x")))
    assert found == ["add x", "drop x"]


def test_union_coordinates_alters() -> None:
    """Figure 2: values stay in the old unit until all inputs have changed, for the items that both describe."""
    found = answer(
        Union(),
        "s=1 t=68",
        alter("t", CELSIUS, "s < 3"),
        "s=1 t=20",
        (1, "s=1 t=68"),
        (1, alter("t", CELSIUS, "s < 2")),
        "s=1 t=20",
        (1, "s=1 t=20"),
        "s=2 t=20",
        (1, "s=2 t=68"),
    )
    here = f"{TO_CELSIUS} where s < 2"
    assert found == ["s=1 t=68", "s=1 t=68", "s=1 t=68", here, "s=1 t=20", "s=1 t=20", "s=2 t=68", "s=2 t=68"]


def test_union_takes_the_common_prefix() -> None:
    """LAWS case 21: the same alters in another order are another unit; what is common at the front comes out."""
    here = (alter("v", ". * 2"), alter("v", ". + 10"), "v=20")
    there = ((1, alter("v", ". + 10")), (1, alter("v", ". * 2")), (1, "v=30"))
    assert answer(Union(), *here, *there) == ["v=5", "v=5"]
    assert answer(Union(), *here, (1, alter("v", ". * 2")), (1, "v=10")) == ["v=5", "alter v by . * 2", "v=10"]


def test_union_compares_descriptions_in_the_units_of_their_place() -> None:
    """What 6.1 leaves open: `t > 86` before the change to Celsius is `t > 30` behind it."""
    found = answer(Union(), alter("t", CELSIUS), drop("x", "t > 30"), (1, drop("x", "t > 86")))
    assert found == ["drop x where t > 86"]


def test_a_description_is_told_in_the_unit_of_each_item() -> None:
    """LAWS case 24: t is in Celsius for s = 2 only, so `t > 30` means 86 F there; out of a Union all is Fahrenheit."""
    found = answer(
        Union(), alter("t", CELSIUS, "s = 2"), add("p", "t > 30"), "s=1 t=31 p=7", "s=2 t=29", "s=2 t=31 p=8"
    )
    assert found[-3:] == ["s=1 t=31 p=7", "s=2 t=84.2", "s=2 t=87.8 p=8"]
    assert same(together(found[:-3], "add p"), "not(s = 2) and t > 30 or s = 2 and t > 86")


def test_union_lets_punctuations_out_when_all_have_given_them() -> None:
    """LAWS 4.8: and a closed input need not agree any more."""
    part = alter("t", ". * 2", "ts <= 5 and ts > 3")
    found = answer(Union(), closed("ts <= 5"), (1, closed("ts <= 3")), (1, part), (1, "ts=4 t=8"))
    assert found == ["closed ts <= 3", "alter t by . * 2 where ts <= 5 and ts > 3", "ts=4 t=8"]


# --- Intersect ------------------------------------------------------------------------------------------------


def test_intersect_compares_canonical_values() -> None:
    """Signature as Union's; items meet across units, each once."""
    found = answer(Intersect(), "t=68", alter("t", CELSIUS), "t=25", (1, "t=77"), (1, "t=68"), (1, "t=68"))
    assert found == ["t=77", "t=68"]


def test_intersect_forgets_what_can_meet_nothing() -> None:
    """LAWS 4.8: what waits for a closed item goes."""
    assert answer(Intersect(), "t=1", (1, closed("t < 5")), "t=2", "t=7", (1, "t=7")) == ["t=7"]


# --- Join -----------------------------------------------------------------------------------------------------


def test_join_meets_across_units() -> None:
    """LAWS case 23: keys are compared in canonical values; the alter waits for the other side."""
    found = answer(join("k", "j"), "k=50 x=1", alter("k", ". * 2"), "k=100 x=2", (1, "j=50 y=3"))
    assert found == ["k=50 x=1 j=50 y=3", "k=50 x=2 j=50 y=3"]


def test_join_coordinates_its_keys_pair_by_pair() -> None:
    """LAWS 4.2 c: when both keys have changed the accents come out, and waiting items leave in the new unit."""
    found = answer(join("k", "j"), "k=50 x=1", alter("k", ". * 2"), (1, alter("j", ". * 2")), (1, "j=100 y=3"))
    assert found == ["alter k by . * 2", "alter j by . * 2", "k=100 x=1 j=100 y=3"]


def test_join_passes_other_accents_at_once() -> None:
    """LAWS 4.2 c: waiting items are altered and stripped with them."""
    key = join("s", "s")
    assert answer(key, "s=1 t=68", alter("t", CELSIUS), (1, "s=1 l=A")) == [TO_CELSIUS, "s=1 t=20 l=A"]
    assert answer(key, "s=1 t=68 x=1", drop("t", "s = 1"), (1, "s=1 l=A")) == ["drop t where s = 1", "s=1 x=1 l=A"]


def test_join_aborts_without_its_key_or_with_a_path_twice() -> None:
    """Section 4: dropping a key fails, and so does an add of a path that the other input has added."""
    with pytest.raises(Aborted, match="Join cannot do without 'j'"):
        answer(join("k", "j"), (1, drop("j")))
    with pytest.raises(Aborted, match="Join has 'x' from two inputs"):
        answer(join("k", "j"), add("x"), (1, add("x", "y = 1")))


def test_join_forgets_what_can_meet_nothing() -> None:
    """LAWS 4.8: an item whose key is closed on the other input is purged, so a bad late one meets nothing."""
    found = answer(join("k", "j"), "k=1 x=1", "k=9 x=2", (1, closed("j < 5")), (1, "j=1 y=3"), (1, "j=9 y=3"))
    assert found == ["k=9 x=2 j=9 y=3"]


# --- Window ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("where", "all_of"), [("t > 10", "wid >= 2"), ("t >= 10", "wid >= 1"), ("t < 30", "wid <= 2")])
def test_window_tells_descriptions_by_window(where: str, all_of: str) -> None:
    """LAWS 4.2 e, where the paper's `wid > w(10) + 1` is one too far."""
    assert answer(TENS, drop("x", where)) == [f"drop x where {all_of}"]


def test_window_alters_on_its_boundaries() -> None:
    """Section 4: what lies between the accent and the next boundary is written in the old unit."""
    found = answer(TENS, alter("x", ". * 2", "t > 12 and r = 'A'"), "t=15 r=A x=8", "t=25 r=A x=8", "t=25 r=B x=8")
    assert found == [
        "alter x by . * 2 where r = 'A' and wid >= 2",
        "t=15 r=A x=4 wid=1",
        "t=25 r=A x=8 wid=2",
        "t=25 r=B x=8 wid=2",
    ]


def test_window_on_an_altered_path() -> None:
    """LAWS 4.2 b: windows go by the canonical value, and the accent comes out, too."""
    assert answer(TENS, alter("t", CELSIUS), "t=20") == [TO_CELSIUS, "t=20 wid=6"]


def test_window_passes_adds_and_aborts_without_its_path() -> None:
    """Section 4; an add comes out for every window that may hold an item described."""
    assert answer(TENS, add("x", "t > 10"), add("y", "s = 1")) == ["add x where wid >= 1", "add y where s = 1"]
    with pytest.raises(Aborted, match="Window cannot do without 't'"):
        answer(TENS, drop("t", "s = 1"))


def test_window_closes_windows() -> None:
    """LAWS 4.8: a punctuation on the reference path closes the windows that lie before it."""
    assert answer(TENS, closed("t <= 25")) == ["closed wid <= 1"]


# --- Aggregate ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("sum", ["w=0 t=231"]),
        ("count", ["w=0 t=3"]),
        ("avg", [TO_CELSIUS, "w=0 t=25"]),
        ("min", [TO_CELSIUS, "w=0 t=20"]),
        ("max", [TO_CELSIUS, "w=0 t=30"]),
        ("median", [TO_CELSIUS, "w=0 t=25"]),
        ("stddev", ["alter t by . * 5 div 9", "w=0 t=5"]),
    ],
)
def test_aggregates_follow_what_they_can(function: FunctionName, expected: list[str]) -> None:
    """LAWS case 17 and 4.2 a: sum lets an alter out only where b = 0, count never, avg, min and max always;
    stddev lets out how an alter scales."""
    assert answer(aggregate(function, "w"), "w=0 t=68", "w=0 t=77", alter("t", CELSIUS), "w=0 t=30") == expected


def test_stddev_follows_no_shift() -> None:
    """LAWS 4.2 a: what is added to all values does not spread them; and one value has no spread (2.1)."""
    elements = "w=0 t=3", "w=1 t=1", alter("t", ". + 2"), "w=0 t=8", alter("t", ". * 2"), "w=0 t=16"
    expected = ["alter t by . * 2", "w=0 t=3.4641016151377544", "w=1"]
    assert answer(aggregate("stddev", "w"), *elements) == expected


def test_sum_follows_a_scale() -> None:
    """LAWS 4.2 a."""
    assert answer(aggregate("sum", "w"), "w=0 t=3", alter("t", ". * 2"), "w=0 t=8") == ["alter t by . * 2", "w=0 t=14"]


def test_aggregate_takes_up_added_paths_unless_excluded() -> None:
    """Example 2: pressure is averaged from its add on; the exclusion list is ignored altogether."""
    elements = ("w=0 s=1 t=68", add("p", "s = 1"), "w=0 s=1 t=70 p=5", "w=0 s=1 t=72 p=7")
    assert answer(aggregate("avg", "w", exclude="s"), *elements) == ["add p", "w=0 t=70 p=6"]
    assert answer(aggregate("avg", "w", exclude="s p"), *elements) == ["w=0 t=70"]


def test_aggregate_accumulates_over_a_declared_domain() -> None:
    """Example 1: when all sensors have changed, the average does; before, it is in Fahrenheit."""
    sensors = {path("s"): Finite(frozenset({"1", "2"}))}
    first, second = alter("t", CELSIUS, "s = 2"), alter("t", CELSIUS, "s = 1")
    average = aggregate("avg", "w", exclude="s")
    half = ("w=0 s=1 t=68", first, "w=0 s=2 t=25")
    assert answer(average, *half, domains=sensors) == ["w=0 t=72.5"]
    assert answer(average, *half, second, "w=1 s=1 t=30", domains=sensors) == [TO_CELSIUS, "w=0 t=22.5", "w=1 t=30"]


def test_aggregate_aborts_as_the_paper_says() -> None:
    """Section 4: without a grouping path always; with a description that is not over them by policy."""
    with pytest.raises(Aborted, match="Aggregate cannot do without 'w'"):
        answer(aggregate("avg", "w"), drop("w"))
    with pytest.raises(Aborted, match="'s' is not in its output"):
        answer(aggregate("avg", "w"), alter("t", CELSIUS, "s = 2"), policy="abort")
    assert answer(aggregate("avg", "w", exclude="t"), alter("t", CELSIUS, "s = 2"), policy="abort") == []


def test_a_drop_purges_open_groups() -> None:
    """LAWS case 25 and 4.2 g: what an open window knew of t is gone, also where the drop describes some groups."""
    average = aggregate("avg", "wid", exclude="ts")
    assert answer(average, "wid=0 ts=1 t=70", drop("t"), "wid=0 ts=7", "wid=1 ts=12") == ["drop t", "wid=0", "wid=1"]
    found = answer(average, "wid=0 t=70", "wid=1 t=71", drop("t", "wid = 0"))
    assert found == ["drop t where wid = 0", "wid=0", "wid=1 t=71"]


def test_a_punctuation_closes_groups() -> None:
    """LAWS 4.8: results come before the punctuation, in the unit of the output."""
    found = answer(aggregate("avg", "w"), "w=0 t=68", alter("t", CELSIUS), closed("w < 1"), "w=1 t=5")
    assert found == [TO_CELSIUS, "w=0 t=20", "closed w < 1", "w=1 t=5"]


def test_a_punctuation_invents_no_drop() -> None:
    """LAWS 4.8: who is closed need not agree on a drop, but there has to be one."""
    average = aggregate("avg", "w", exclude="s")
    assert answer(average, add("p", "s = 1"), "w=0 s=1 p=7", closed("s = 1"), "w=0 s=2") == ["add p", "w=0 p=7"]
    found = answer(average, "w=0 s=1 p=7", drop("p", "not(s = 1)"), closed("s = 1"), "w=0 s=2")
    assert found == ["drop p", "w=0"]


@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        ("max", "3 INF 5", "INF"),
        ("min", "3 INF 5", "3"),
        ("avg", "3 -INF", "-INF"),
        ("sum", "INF -INF", "NaN"),
        ("min", "3 NaN", "NaN"),
        ("avg", "0.1 0.2", "0.15"),
        ("sum", "1e308 1e308 -1e308", "1.0E308"),
        ("count", "a b", "2"),
        ("median", "3 1 2.5 10", "2.75"),
        ("median", "INF -INF", "NaN"),
        ("stddev", "1 2 3 4", "1.2909944487358056"),
        ("stddev", "1 INF", "NaN"),
    ],
)
def test_aggregates_are_exact(function: FunctionName, values: str, expected: str) -> None:
    """LAWS 2.1, 2.2: the double nearest to the true value; INF and NaN as XQuery has them."""
    assert answer(aggregate(function), *(f"t={each}" for each in values.split())) == [f"t={expected}"]


def test_a_word_fails_its_group_alone() -> None:
    """LAWS 2.4: nothing comes out there, and the query goes on."""
    query = Interpreter(Apply(aggregate("avg", "w"), (StreamSource("0"),)))
    for each in ("w=0 t=hot", "w=1 t=5"):
        assert not list(query.feed("0", item(each)))
    assert len(list(query.end())) == 1
    assert [each.code for each in query.failures] == ["FORG0001"]


# --- pipelines ------------------------------------------------------------------------------------------------


def test_a_path_dropped_and_added_again_is_new() -> None:
    """LAWS case 22 and 4.2 f: raw values with the accents between them."""
    found = answer(project("p"), add("p"), "p=10", alter("p", ". * 2"), "p=20", drop("p"), add("p"), "p=7")
    assert found == ["add p", "p=10", "alter p by . * 2", "p=20", "drop p", "add p", "p=7"]
    absorbed = answer(project("p"), add("p"), alter("p", ". * 2"), "p=20", drop("p"), add("p"), "p=7", policy="absorb")
    assert absorbed == ["add p", "p=10", "drop p", "add p", "p=7"]


def test_the_query_of_figure_1() -> None:
    """The average per place and window is right with the accent, and wrong without it."""
    joined = Apply(join("s", "s"), (StreamSource("sensors"), StreamSource("placement")))
    windowed = Apply(Window(path("ts"), Extent(Fraction(5), Fraction(5))), (joined,))
    plan = Apply(aggregate("avg", "l", "wid", exclude="ts s"), (windowed,))
    before = [("placement", "s=1 l=A"), ("placement", "s=2 l=A"), ("sensors", "ts=5 s=1 t=77")]
    after = [("sensors", "ts=6 s=2 t=25")]
    accent = ("sensors", alter("t", CELSIUS, "s = 2"))
    assert shown(plan, [*before, *after]) == ["l=A wid=1 t=51"]
    assert shown(plan, [*before, accent, *after]) == ["l=A wid=1 t=77"]


def test_what_an_operator_makes_is_known_above_it() -> None:
    """Every item has a window, so two accents can cover all of them when a projection hides it."""
    plan = Apply(project("x"), (Apply(TENS, (StreamSource("0"),)),))
    one, other = alter("x", ". * 2", "t < 20"), alter("x", ". * 2", "not(t < 20)")
    assert shown(plan, [("0", one), ("0", "t=1 x=8")]) == ["x=4"]
    assert shown(plan, [("0", one), ("0", other), ("0", "t=1 x=8")]) == ["alter x by . * 2", "x=8"]


def test_a_promise_ends_when_its_path_evolves() -> None:
    """A domain is declared of the values at the start; sets that were told by it are told anew."""
    sensors = {path("s"): Finite(frozenset({"1", "2"}))}
    first, second = add("x", "s = 1"), add("x", "s = 4")
    assert answer(Union(), first, alter("s", ". * 2"), (1, alter("s", ". * 2")), second, domains=sensors) == [
        "add x where s = 1",
        "alter s by . * 2",
        "add x where s = 4",
    ]


def test_heartbeats_leave_when_all_inputs_have_passed_them() -> None:
    """LAWS 1.3: nothing earlier follows, on any input."""
    beats = [(0, 3), (1, 2), (0, 9), (1, 5)]
    plan = Apply(Union(), (StreamSource("0"), StreamSource("1")))
    elements = [(str(input), Punctuation(None, HERE, Decimal(at))) for input, at in beats]
    assert [each.at for each in run(plan, elements)] == [2, 5]
