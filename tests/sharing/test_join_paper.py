"""The sharing paper's examples and figures of section 5 and its appendices, rebuilt from the words around them."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import papers
from anabranch.algebra.window import Extent
from anabranch.predicate import and_, implies, terms
from anabranch.sharing.explain.trees import forest_lines, tree_lines
from anabranch.sharing.forest import PropertyForest
from anabranch.sharing.match import matches
from anabranch.sharing.match_joins import (
    FullResults,
    SelectedResults,
    SelectWindows,
    Separate,
    SharedWindows,
    input_differences,
    join_differences,
    join_matches,
    level,
    merge_all_joins,
    merge_inputs,
    merge_joins,
    same_join,
)
from anabranch.sharing.render import render_join
from anabranch.sharing.rules.derive import derive, derive_forest
from anabranch.sharing.settle import unjoined
from anabranch.sharing.tree import PropertyTree, conjuncts, joined_text
from anabranch.stream import photons
from anabranch.stream.schema import Schema
from reference.asking import ask
from sharing.making import checked

SCHEMA = Schema.read_dtd(Path(photons.__file__).with_name("photons.dtd"))
SCHEMAS = {"photon1": SCHEMA, "photon2": SCHEMA}
JOINS = ("q5", "q6", "q7", "q8")
BOWTIE, OMEGA = "\N{BOWTIE}", "\N{GREEK SMALL LETTER OMEGA}"


def forest(name: str) -> PropertyForest:
    text = papers.SHARING.get(name, name)
    return derive_forest(checked(text), SCHEMAS, text)


def tree(text: str) -> PropertyTree:
    return derive(checked(text), SCHEMA, text)


# --- trees, and back to queries -----------------------------------------------------------------------------

CONDITIONS = {
    "q5": "photon1/en >= photon2/en + 0.5",
    "q6": "photon1/en >= photon2/en",
    "q7": "photon1/en >= photon2/en",
    "q8": "photon1/phc >= photon2/phc",
}
SIZES = {
    "q5": ("10 step 5", "20 step 10"),
    "q6": ("10 step 5", "20 step 10"),
    "q7": ("30 step 5", "15 step 10"),
    "q8": ("15 step 10", "30 step 15"),
}
ELEMENTS = {
    "q5": ["phc •", "en •", "det_time"],
    "q6": ["en •", "det_time •"],
    "q7": ["en •", "det_time •"],
    "q8": ["phc •", "en •", "det_time •"],
}


def figure_12(name: str) -> list[str]:
    lines = []
    for stream, size in zip(("photon1", "photon2"), SIZES[name], strict=True):
        photon = f"    photon  {BOWTIE} {CONDITIONS[name]}, {OMEGA} |det_time diff {size}|"
        lines += [stream, "  photons", photon, *(f"      {each}" for each in ELEMENTS[name])]
    return lines


@pytest.mark.parametrize("name", JOINS)
def test_figure_12_and_example_5_1(name: str) -> None:
    """A tree for each input, and the join annotation at the returned elements of both; in plain form also at those
    that are only compared, as `phc` in q8."""
    assert forest_lines(forest(name)) == figure_12(name)


def test_example_a_1_the_join_annotation_of_q5() -> None:
    """It names both inputs, and is associated with en and phc of both; the windows are those of the trees."""
    found = forest("q5")
    inputs = {"$1": (("photons", "photon"), "x"), "$2": (("photons", "photon"), "y")}
    for each in found.trees:
        assert [output.path[-1] for output in each.outputs] == ["phc", "en"]
        for output in each.outputs:
            across = [each for each in conjuncts(output.condition) if len({term.input for term in terms(each)}) > 1]
            assert joined_text(and_(*across), inputs) == "x/en >= y/en + 0.5"
    assert found.streams == ("photon1", "photon2")
    assert found.sizes == (Fraction(10), Fraction(20))


def figure_16(name: str) -> str:
    condition = CONDITIONS[name].replace("photon1/", "$p1/").replace("photon2/", "$p2/")
    shown = [each.removesuffix(" •") for each in ELEMENTS[name] if each.endswith("•")]
    first, second = ("\n".join(f"          {{ $p{number}/{each} }}" for each in shown) for number in (1, 2))
    return f"""\
<photons_photons>
  {{ for $p1 in stream("photon1")/photons/photon
      |det_time diff {SIZES[name][0]}|
    for $p2 in stream("photon2")/photons/photon
      |det_time diff {SIZES[name][1]}|
    where {condition}
    return
      <photon_photon>
        <photon1>
{first}
        </photon1>
        <photon2>
{second}
        </photon2>
      </photon_photon> }}
</photons_photons>"""


@pytest.mark.parametrize("name", JOINS)
def test_figures_15_and_16_and_example_b_1(name: str) -> None:
    """The abstractions of the queries, in the order of the DTD; their forests are those they were rendered from."""
    assert render_join(forest(name)) == figure_16(name)
    assert forest(render_join(forest(name))) == forest(name)


def test_figure_11_has_a_forest() -> None:
    """The interval join, with `and` for the paper's `or` (LAWS 3.5), is bounded by its annotation."""
    found = forest(papers.INTERVAL_JOIN)
    assert found.kind == "interval"
    assert forest_lines(found)[2] == (
        f"    photon  {BOWTIE} photon1/det_time >= photon2/det_time - 10 and photon1/det_time <= photon2/det_time + 10"
    )
    assert forest(render_join(found)) == found


# --- sharing (5.3.2) ----------------------------------------------------------------------------------------


def test_figure_13_a_full_join_result_sharing() -> None:
    """q5 and q6 share one join over the windows of both."""
    assert level(forest("q5"), forest("q6")) == FullResults()
    merged = merge_joins(forest("q5"), forest("q6"))
    assert isinstance(merged, PropertyForest)
    assert merged.sizes == forest("q5").sizes
    assert join_matches(merged, forest("q5"))
    assert join_matches(merged, forest("q6"))
    shown = [line.strip().partition(" ")[0] for line in forest_lines(merged)]
    assert shown == [
        each for stream in ("photon1", "photon2") for each in (stream, "photons", "photon", "phc", "en", "det_time")
    ]


def test_figure_13_a_conditions_are_united() -> None:
    """q5's condition does not imply q6's, as the paper says: sums are rounded to doubles, and several values on the
    right are an error; so the relaxed condition is the union, and not q6's alone."""
    first, second = (forest(name).guard for name in ("q5", "q6"))
    assert not implies(first, second)
    inputs = {
        name: f"<photons><photon><en>{en}</en><phc>1</phc><det_time>1</det_time></photon></photons>"
        for name, en in (("photon1", "100000000000000000"), ("photon2", "100000000000000001"))
    }
    assert "<result>" in ask(papers.Q5, inputs).text
    assert "<result>" not in ask(papers.Q6, inputs).text


def test_figure_13_b_q5_and_q7_do_not_qualify() -> None:
    """Their steps agree, but photon2's windows of 20 and 15 move by 10, so they never end together
    (`test_selecting.py` has what would be lost); they share windows instead."""
    found = level(forest("q5"), forest("q7"))
    assert found == SharedWindows(
        (Extent(Fraction(10), Fraction(5)), Extent(Fraction(5), Fraction(5))),
        (SelectWindows(1, 2, 1), SelectWindows(4, 1, 2)),
        (SelectWindows(3, 2, 1), SelectWindows(3, 1, 2)),
    )


def test_figure_13_b_with_windows_that_qualify() -> None:
    """With 30 for 15 at photon2, q5 and q7 share one join over the larger windows, SELECTJOINRESULT(10, 20) and
    SELECTJOINRESULT(30, 30); by the reference elements it is seen whose a tuple is, so they are sent."""
    other = forest(papers.Q7.replace("diff 15 step 10", "diff 30 step 10"))
    found = level(forest("q5"), other)
    extents = Extent(Fraction(30), Fraction(5)), Extent(Fraction(30), Fraction(10))
    assert found == SelectedResults(extents, (Fraction(10), Fraction(20)), (Fraction(30), Fraction(30)))
    assert [kind for kind, _ in join_differences(forest("q5"), other)][:3] == ["window", "window", "results"]
    merged = merge_joins(forest("q5"), other)
    assert isinstance(merged, PropertyForest)
    assert merged.sizes == (Fraction(30), Fraction(30))
    assert merged.smaller == ((Fraction(10), Fraction(20)),)
    assert all("det_time" in [each.path[-1] for each in tree.outputs] for tree in merged.trees)
    assert join_matches(merged, forest("q5"))
    assert join_matches(merged, other)


def test_figure_13_c_selective_window_sharing() -> None:
    """q5 and q8 share windows of 5 every 5 and of 10 every 5; the join annotation goes, and the operators have the
    parameters that the paper gives them."""
    found = level(forest("q5"), forest("q8"))
    assert found == SharedWindows(
        (Extent(Fraction(5), Fraction(5)), Extent(Fraction(10), Fraction(5))),
        (SelectWindows(2, 1, 1), SelectWindows(2, 2, 2)),
        (SelectWindows(3, 1, 2), SelectWindows(3, 2, 3)),
    )
    merged = merge_joins(forest("q5"), forest("q8"))
    assert isinstance(merged, tuple)
    assert [tree_lines(each)[1] for each in merged] == [
        f"  photon  {OMEGA} |det_time diff 5 step 5|",
        f"  photon  {OMEGA} |det_time diff 10 step 5|",
    ]
    assert all([output.path[-1] for output in each.outputs] == ["phc", "en", "det_time"] for each in merged)


def test_windows_that_would_move_too_often_are_not_shared() -> None:
    """Windows of 7 and of 5 would share those of 1, which move seven and five times as often as either."""
    odd = forest(papers.Q5.replace("diff 10 step 5", "diff 7 step 7"))
    assert level(forest("q5"), odd) == Separate("windows that serve both would move too often")
    merged = merge_joins(forest("q5"), odd)
    assert isinstance(merged, tuple)
    assert [each.window for each in merged] == [None, None]
    assert all(matches(each, needed) for each, needed in zip(merged, unjoined(odd), strict=True))


def test_other_preselections_are_other_windows() -> None:
    """Which items enter a window decides when it closes at the end of input, so it must be the same for both."""
    other = forest(papers.Q5.replace("photon\n    |det_time diff 10", "photon[phc > 3]\n    |det_time diff 10"))
    assert isinstance(level(forest("q5"), other), Separate)


def test_interval_joins_share_the_largest() -> None:
    """The wider interval has all pairs of the narrower; two that overlap are one together."""
    narrow, wide = forest(papers.INTERVAL_JOIN), forest(papers.INTERVAL_JOIN.replace("10", "20"))
    assert level(narrow, wide) == FullResults()
    assert join_matches(wide, narrow)
    assert not join_matches(narrow, wide)
    merged = merge_joins(narrow, wide)
    assert isinstance(merged, PropertyForest)
    assert same_join(merged, wide)
    low, high = (forest(papers.INTERVAL_JOIN.replace(f"{sign} 10", f"{sign} 20")) for sign in "-+")
    both = merge_joins(low, high)
    assert isinstance(both, PropertyForest)
    assert same_join(both, wide)


def test_interval_joins_with_a_gap_between() -> None:
    """A disjunction bounds nothing by itself, so the interval around both is asked for, too."""
    before, after = (
        forest(papers.INTERVAL_JOIN.replace("- 10", f"{low}").replace("+ 10", f"{high}"))
        for low, high in (("- 30", "- 20"), ("+ 20", "+ 30"))
    )
    merged = merge_joins(before, after)
    assert isinstance(merged, PropertyForest)
    text = render_join(merged)
    assert "where $p1/det_time >= $p2/det_time - 30 and $p1/det_time <= $p2/det_time + 30 and (" in text
    assert same_join(forest(text), merged)


def test_joins_are_widened_and_narrowed() -> None:
    """Of q5 to q8 the first two share a join, the others have one each; when q6 ends, its join is q5's again."""
    names = list(JOINS)
    groups = merge_all_joins([forest(name) for name in names])
    assert [[names[each] for each in served] for served, _ in groups] == [["q5", "q6"], ["q7"], ["q8"]]
    names.remove("q6")
    assert merge_all_joins([forest(name) for name in names])[0] == ((0,), forest("q5"))


# --- a join and a query of one stream (5.3.1) ---------------------------------------------------------------

ONE = """\
<photons>{ for $p in stream("photon1")/photons/photon
           where $p/en > 1 return <p>{ $p/en }{ $p/coord }</p> }</photons>"""


def test_a_single_input_query_removes_the_join() -> None:
    """What is left of q5 is a set of trees; one of them is widened for the new query, and q5 still has its inputs."""
    merged = merge_inputs((*unjoined(forest("q5")), tree(ONE)))
    assert [each.stream for each in merged] == ["photon1", "photon2"]
    assert matches(merged[0], tree(ONE))
    assert all(matches(each, needed) for each, needed in zip(merged, unjoined(forest("q5")), strict=True))


def test_a_join_may_use_the_stream_of_a_single_input_query() -> None:
    """q6 finds in a stream of all photons what it needs as its first input, and in another what is missing."""
    everything = tree('<all>{ for $p in stream("photon1")/photons/photon return $p }</all>')
    assert list(input_differences(everything, forest("q6"))) == [("$1", [])]
    assert list(input_differences(tree(ONE), forest("q6"))) == [
        ("$1", [("selection", "photons/photon/en"), ("path", "photons/photon/det_time")])
    ]
