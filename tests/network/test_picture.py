"""The map: everything is there, and nothing stands on anything else."""

from __future__ import annotations

from itertools import combinations
from random import Random
from xml.etree import ElementTree

import pytest

from anabranch.bench.workloads.paper import workload
from anabranch.network.explanation import planned
from anabranch.network.picture import draw, layout
from anabranch.network.planner import Planner
from anabranch.network.topology import built
from network.making import RARE, figure_1, planner


def crowded(shape: str, count: int) -> Planner:
    """A network in which much flows."""
    random = Random(7)
    found = planner(built(shape, count, 2), {"photons": "SP1"}, "sharing")
    for number, text in enumerate(workload(7, 10)):
        found.register(f"query number {number}", text, random.choice(found.topology.peers))
    return found


@pytest.mark.parametrize(
    ("shape", "count"),
    [("hypercube", 2), ("hypercube", 8), ("hypercube", 16), ("grid", 9), ("line", 3), ("star", 7), ("random", 9)],
)
def test_no_overlaps(shape: str, count: int) -> None:
    """Boxes and names keep apart, and all of it is inside the picture."""
    found = crowded(shape, count)
    where = layout(found, planned(found))
    boxes = list(where.boxes.values())
    labels = [each.label for each in where.arrows if each.label]
    assert labels
    for one, two in combinations([*boxes, *labels], 2):
        assert not one.overlaps(two)
    for box in boxes:
        assert box.x > 0
        assert box.y > 0
        assert box.x + box.across < where.size[0]
        assert box.y + box.down < where.size[1]
    assert len(where.arrows) == len(list(found.catalogue.hops))


def test_width_by_rate_colour_by_stream() -> None:
    """In figure 1 the stream that is handed on has one colour and width; q1's values have others, and are thinner."""
    arrows = {
        (each.flow.before, each.flow.at): each
        for each in layout(figure_1("widening"), planned(figure_1("widening"))).arrows
    }
    values = arrows.pop(("SP5", "SP1"))
    assert len({each.colour for each in arrows.values()}) == 1
    assert all(each.across > 1.5 * values.across and each.colour != values.colour for each in arrows.values())


def test_the_picture_is_a_document() -> None:
    """Every peer, every flow and every subscription is named in well-formed SVG, without scripts or references."""
    found = figure_1("widening")
    text = draw(found)
    root = ElementTree.fromstring(text)
    shown = " ".join(root.itertext())
    for name in (*found.topology.peers, *(each.name for each in found.catalogue.hops), "q1", "q2", "q3", "q4"):
        assert name in shown
    assert "<script" not in text
    assert "href" not in text


def test_names_are_text() -> None:
    """What a user calls a subscription cannot become markup."""
    found = planner(built("line", 2), {"photons": "SP0"})
    found.register("<b>&", workload(1, 1)[0], "SP1")
    assert "answers <b>&" in "".join(ElementTree.fromstring(draw(found)).itertext())


def test_where_a_join_is_made() -> None:
    """It is named at the peer that makes it, and the legend says what meets."""
    found = planner(built("line", 3), {"photon1": "SP0", "photon2": "SP1"})
    found.register("q", RARE, "SP2")
    where = layout(found, planned(found))
    assert any(" ".join(each).startswith("joins photon1+photon2.") for each in where.lines["SP1"])
    shown = "".join(ElementTree.fromstring(draw(found)).itertext())
    assert "tuples of photon1 (" in shown
