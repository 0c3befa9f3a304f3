"""The sharing paper's examples of section 5 and its appendices, rebuilt from the words around them.

The figures are text: `figures/`.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import papers
from anabranch.predicate import and_, implies, terms
from anabranch.sharing.forest import PropertyForest
from anabranch.sharing.match import matches
from anabranch.sharing.match_joins import (
    FullResults,
    SelectWindows,
    Separate,
    SharedWindows,
    input_differences,
    join_matches,
    level,
    merge_all_joins,
    merge_inputs,
    merge_joins,
    same_join,
)
from anabranch.sharing.normalize import unjoined
from anabranch.sharing.render import render_join
from anabranch.sharing.rules.derive import derive, derive_forest
from anabranch.sharing.tree import PropertyTree, conjuncts, joined_text
from anabranch.stream import photons
from anabranch.stream.schema import Schema
from reference.asking import ask
from sharing.making import checked

SCHEMA = Schema.read_dtd(Path(photons.__file__).with_name("photons.dtd"))
SCHEMAS = {"photon1": SCHEMA, "photon2": SCHEMA}
JOINS = ("q5", "q6", "q7", "q8")


def forest(name: str) -> PropertyForest:
    text = papers.SHARING.get(name, name)
    return derive_forest(checked(text), SCHEMAS, text)


def tree(text: str) -> PropertyTree:
    return derive(checked(text), SCHEMA, text)


# --- trees, and back to queries -----------------------------------------------------------------------------


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


# --- sharing (5.3.2) ----------------------------------------------------------------------------------------


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


def test_figure_13_b_and_c_the_operators_of_both() -> None:
    """Where windows are shared, q5 has its own by the parameters of SELECTWINDOWS that the paper gives."""
    with_q7, with_q8 = (level(forest("q5"), forest(each)) for each in ("q7", "q8"))
    assert isinstance(with_q7, SharedWindows)
    assert with_q7.stream == (SelectWindows(1, 2, 1), SelectWindows(4, 1, 2))
    assert isinstance(with_q8, SharedWindows)
    assert with_q8.stream == (SelectWindows(2, 1, 1), SelectWindows(2, 2, 2))


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
