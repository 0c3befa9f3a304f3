"""The sharing paper's own examples and figures of sections 3 and 4, rebuilt from the words around them."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import papers
from anabranch.algebra.window import Extent
from anabranch.language import check, parse
from anabranch.predicate import EVERYTHING, to_text
from anabranch.sharing.explain.trees import tree_lines
from anabranch.sharing.match import differences, matches, merge, merge_all, same, tiles
from anabranch.sharing.relax import relax
from anabranch.sharing.render import render
from anabranch.sharing.rules.derive import derive
from anabranch.sharing.settle import unwindowed
from anabranch.sharing.tree import PropertyTree, condition_text
from anabranch.stream import photons
from anabranch.stream.schema import Schema

SCHEMA = Schema.read_dtd(Path(photons.__file__).with_name("photons.dtd"))
SIGMA, GAMMA = "\N{GREEK SMALL LETTER SIGMA}", "\N{GREEK SMALL LETTER GAMMA}"
PHOTON = ("photons", "photon")
VELA = "coord/cel/ra >= 120 and coord/cel/ra <= 138 and coord/cel/dec >= -49 and coord/cel/dec <= -40"
RXJ = "coord/cel/ra >= 130.5 and coord/cel/ra <= 135.5 and coord/cel/dec >= -48 and coord/cel/dec <= -45"


def tree(name: str) -> PropertyTree:
    text = papers.SHARING.get(name, name)
    return derive(check(parse(text), text).query, SCHEMA, text)


def paths(found: PropertyTree) -> list[str]:
    return ["/".join(path) for path in found.paths]


def outputs(found: PropertyTree) -> list[str]:
    return [each.path[-1] for each in found.outputs]


# --- section 3: trees -------------------------------------------------------------------------------------


def test_example_3_1_the_path_tree_of_q1() -> None:
    """Absolute and relative paths are merged into one tree, in the order of the DTD."""
    assert paths(tree("q1")) == [
        "photons",
        "photons/photon",
        "photons/photon/coord",
        "photons/photon/coord/cel",
        "photons/photon/coord/cel/ra",
        "photons/photon/coord/cel/dec",
        "photons/photon/en",
        "photons/photon/det_time",
    ]


FIGURE_4 = {
    "q1": f"""\
photons
  photon  ω |det_time diff 60 step 40|, pre-{SIGMA} {VELA}
    coord
      cel
        ra
        dec
    en  {GAMMA} avg(en) •, {SIGMA} avg(en) >= 1.3
    det_time""",
    "q2": f"""\
photons
  photon  ω |det_time diff 20 step 10|, pre-{SIGMA} {VELA}
    coord
      cel
        ra
        dec
    en  {GAMMA} avg(en) •
    det_time""",
    "q3": f"""\
photons
  photon  {SIGMA} en >= 1.3 and {RXJ}
    coord
      cel
        ra •
        dec •
    en •
    det_time •""",
    "q4": f"""\
photons
  photon  {SIGMA} {VELA}
    coord
      cel
        ra •
        dec •
    phc •
    en •
    det_time •""",
}


@pytest.mark.parametrize("name", FIGURE_4)
def test_figure_4_and_example_3_2(name: str) -> None:
    """The trees of q1 to q4, with the selections of q3 and q4 pulled up to the photon."""
    assert "\n".join(tree_lines(tree(name))) == FIGURE_4[name]


def test_example_3_3_outputs() -> None:
    """q1 and q2 return a value and no element; what q3 and q4 only compare would be an output too."""
    assert outputs(tree("q1")) == outputs(tree("q2")) == []
    assert outputs(tree("q3")) == ["ra", "dec", "en", "det_time"]
    assert outputs(tree("q4")) == ["ra", "dec", "phc", "en", "det_time"]
    without = papers.Q3.replace("{ $p/coord/cel/ra }", "").replace("{ $p/coord/cel/dec }", "").replace("{ $p/en }", "")
    assert same(tree(without), tree("q3"))


def test_example_3_4_the_annotations_of_q1() -> None:
    """Window, preselection, aggregate and selection; the paper prints `dec <= -49.0` for the query's -40.0, a slip."""
    found = tree("q1")
    assert found.stream == "photons"
    assert found.window is not None
    assert found.window.path == PHOTON
    assert found.window.extent == Extent(Fraction(60), Fraction(40))
    assert found.window.reference == (*PHOTON, "det_time")
    assert condition_text(found.window.pre, PHOTON) == VELA
    assert "dec <= -49" not in to_text(found.window.pre)
    assert found.window.post == EVERYTHING
    [aggregate] = found.aggregates
    assert (aggregate.function, aggregate.path) == ("avg", (*PHOTON, "en"))
    assert condition_text(aggregate.selection, (), names={aggregate.term.input: "avg(en)"}) == "avg(en) >= 1.3"


# --- section 3: back to queries -----------------------------------------------------------------------------

FIGURE_7 = {
    "q1": f"""\
<photons>
  {{ for $w in stream("photons")/photons/photon[{VELA}]
      |det_time diff 60 step 40|
    let $a1 := avg($w/en)
    return
      if ($a1 >= 1.3) then
        <photon>
          <avg_en>{{ $a1 }}</avg_en>
        </photon>
      else () }}
</photons>""",
    "q2": f"""\
<photons>
  {{ for $w in stream("photons")/photons/photon[{VELA}]
      |det_time diff 20 step 10|
    let $a1 := avg($w/en)
    return
      <photon>
        <avg_en>{{ $a1 }}</avg_en>
      </photon> }}
</photons>""",
    "q3": f"""\
<photons>
  {{ for $p in stream("photons")/photons/photon
    return
      if ($p/en >= 1.3 and {RXJ.replace("coord", "$p/coord")}) then
        <photon>
          {{ for $e3 in $p/coord return
            <coord>
              {{ for $e4 in $e3/cel return
                <cel>
                  {{ $e4/ra }}
                  {{ $e4/dec }}
                </cel> }}
            </coord> }}
          {{ $p/en }}
          {{ $p/det_time }}
        </photon>
      else () }}
</photons>""",
}


@pytest.mark.parametrize("name", FIGURE_7)
def test_figure_7_and_examples_3_5_and_3_6(name: str) -> None:
    """The abstractions of the queries, but for the loops that keep two `cel` of a photon apart."""
    assert render(tree(name)) == FIGURE_7[name]


@pytest.mark.parametrize("name", ["q1", "q2", "q3", "q4"])
def test_an_abstraction_is_its_own(name: str) -> None:
    """The tree of the abstract query is the tree it was rendered from."""
    assert tree(render(tree(name))) == tree(name)


# --- section 4: matching and merging ------------------------------------------------------------------------


def test_4_4_q1_uses_the_stream_of_q2() -> None:
    """Windows of 20 every 10 make up windows of 60 every 40, and q2 keeps every value."""
    assert matches(tree("q2"), tree("q1"))


def test_4_4_q2_widens_the_stream_of_q1_to_its_own() -> None:
    """The other way round the windows are relaxed and the selection goes: the tree of q2."""
    assert list(differences(tree("q1"), tree("q2"))) == [("window", "photons/photon"), ("selection", "avg(en)")]
    assert merge(tree("q1"), tree("q2")) == tree("q2")


def test_4_4_q3_uses_the_stream_of_q4() -> None:
    """It is q4's path tree that contains q3's, and q3's predicate that implies q4's; the paper's words say the first
    the other way round, a slip."""
    assert matches(tree("q4"), tree("q3"))
    assert set(paths(tree("q3"))) < set(paths(tree("q4")))


def test_4_4_q4_widens_the_stream_of_q3() -> None:
    """`phc` is added and the selection relaxed; what comes out stands for the same stream as q4's tree."""
    found = list(differences(tree("q3"), tree("q4")))
    assert ("path", "photons/photon/phc") in found
    assert ("selection", "photons/photon/en") in found
    assert same(merge(tree("q3"), tree("q4")), tree("q4"))


@pytest.mark.parametrize(("stream", "query"), [("q1", "q3"), ("q3", "q1")])
def test_4_4_q1_and_q3_share_items(stream: str, query: str) -> None:
    """Window and aggregate go, the preselection becomes the photon's selection, and all leaves are outputs."""
    assert not matches(tree(stream), tree(query))
    merged = merge(tree(stream), tree(query))
    assert merged.window is None
    assert not merged.aggregates
    assert "\n".join(tree_lines(merged)) == FIGURE_4["q3"].replace(f"en >= 1.3 and {RXJ}", VELA)
    assert matches(merged, tree(stream))
    assert matches(merged, tree(query))
    assert same(merged, unwindowed(tree("q1")))


def test_4_narrowing() -> None:
    """When q4 ends, the stream of q3 and q4 is narrowed to what q3 needs."""
    assert same(merge_all([tree("q3"), tree("q4")]), tree("q4"))
    assert merge_all([tree("q3")]) == tree("q3")


def test_4_1_special_case() -> None:
    """An element inside one that is sent whole is not added."""
    whole = tree("for $p in stream('photons')/photons/photon where $p/en > 1 return $p/coord")
    inside = tree("for $p in stream('photons')/photons/photon where $p/en > 2 return $p/coord/cel/ra")
    assert matches(whole, inside)
    assert merge(inside, whole) == whole


def test_4_3_example_4_1_and_figure_8() -> None:
    """45 every 30 and 30 every 20 share 15 every 5, which tiles both, while neither tiles the other."""
    stream, query = Extent(Fraction(45), Fraction(30)), Extent(Fraction(30), Fraction(20))
    assert not tiles(stream, query)
    assert not tiles(query, stream)
    relaxed = relax(stream, query)
    assert relaxed == Extent(Fraction(15), Fraction(5))
    assert tiles(relaxed, stream)
    assert tiles(relaxed, query)


@pytest.mark.parametrize("size", range(2, 13))
def test_what_tiles_can_be_put_together(size: int) -> None:
    """Each window is the disjoint union of windows of one that tiles it."""
    for step in range(1, 13):
        whole, part = Extent(Fraction(12), Fraction(step)), Extent(Fraction(size), Fraction(min(step, size)))
        if part == whole or not tiles(part, whole):
            continue
        starts = {part.start(k) for k in range(200)}
        for k in range(5):
            pieces = [whole.start(k) + n * part.size for n in range(int(whole.size / part.size))]
            assert set(pieces) <= starts
            assert pieces[-1] + part.size == whole.end(k)
