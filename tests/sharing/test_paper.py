"""The sharing paper's own examples of sections 3 and 4, rebuilt from the words around them.

The figures, and the examples of matching and merging, are text: `figures/`.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import papers
from anabranch.algebra.window import Extent
from anabranch.language import check, parse
from anabranch.predicate import EVERYTHING
from anabranch.sharing.match import merge_all, relax, same, tiles
from anabranch.sharing.rules.derive import derive
from anabranch.sharing.tree import PropertyTree, condition_text, joined_text
from anabranch.stream import photons
from anabranch.stream.schema import Schema

SCHEMA = Schema.read_dtd(Path(photons.__file__).with_name("photons.dtd"))
PHOTON = ("photons", "photon")
VELA = "coord/cel/ra >= 120 and coord/cel/ra <= 138 and coord/cel/dec >= -49 and coord/cel/dec <= -40"


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
    assert "dec <= -49" not in str(found.window.pre)
    assert found.window.post == EVERYTHING
    [aggregate] = found.aggregates
    assert (aggregate.function, aggregate.path) == ("avg", (*PHOTON, "en"))
    assert joined_text(aggregate.selection, {}, {aggregate.term.input: "avg(en)"}) == "avg(en) >= 1.3"


# --- section 4: matching and merging ------------------------------------------------------------------------


def test_4_narrowing() -> None:
    """When q4 ends, the stream of q3 and q4 is narrowed to what q3 needs."""
    assert same(merge_all([tree("q3"), tree("q4")]), tree("q4"))
    assert merge_all([tree("q3")]) == tree("q3")


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
