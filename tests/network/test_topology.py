from __future__ import annotations

from itertools import pairwise

import pytest

from anabranch.errors import UsageError
from anabranch.network.topology import SHAPES, Topology, built, grid, hypercube, line, star, topology


def test_the_hypercube_of_figure_1() -> None:
    """Eight peers, twelve links, each peer with three neighbours; the far corner is three links away."""
    cube = hypercube(3)
    assert (len(cube.peers), len(cube.links)) == (8, 12)
    assert cube.neighbours["SP4"] == ("SP0", "SP5", "SP6")
    assert cube.route("SP4", "SP3") == ("SP4", "SP0", "SP1", "SP3")
    assert cube.route("SP4", "SP4") == ("SP4",)


def test_other_shapes() -> None:
    """A grid has neighbours beside and below, a line two ends, a star one middle."""
    assert grid(2, 3).neighbours["SP4"] == ("SP1", "SP3", "SP5")
    assert line(3).links == {("SP0", "SP1"): None, ("SP1", "SP2"): None}
    assert star(4).neighbours["SP0"] == ("SP1", "SP2", "SP3")
    assert star(4).distance("SP1", "SP3") == 2


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", [1, 2, 8])
def test_every_shape_hangs_together(shape: str, count: int) -> None:
    """All peers are there, and each is reached from each over links that exist, by as few as the way back has."""
    found = built(shape, count, seed=3)
    assert len(found.peers) == count
    for one in found.peers:
        for two in found.peers:
            route = found.route(one, two)
            assert all(found.link(*pair) in found.links for pair in pairwise(route))
            assert len(route) == len(found.route(two, one))


def test_random_networks_are_the_same_for_everybody() -> None:
    """A seed says it all."""
    assert built("random", 12, 5) == built("random", 12, 5) != built("random", 12, 6)


def test_routes_follow_the_order_of_the_peers() -> None:
    """Of two ways of the same length the one over the peer that was named first is taken."""
    links = (("d", "c"), ("d", "b"), ("a", "c"), ("b", "a"))
    assert topology("abcd", links).route("a", "d") == ("a", "b", "d")
    assert topology("acbd", links).route("a", "d") == ("a", "c", "d")


@pytest.mark.parametrize(
    ("peers", "links", "message"),
    [
        ("abc", [("a", "b")], "no link leads from 'a' to 'c'"),
        ("ab", [("a", "x")], "a link leads to 'x', which is no super-peer"),
        ("ab", [("a", "a")], "a link leads from 'a' to itself"),
    ],
)
def test_what_is_no_network(peers: str, links: list[tuple[str, str]], message: str) -> None:
    """Peers apart, unknown ends and loops are refused by name."""
    with pytest.raises(UsageError) as caught:
        topology(peers, links)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("shape", "count", "message"),
    [
        ("hypercube", 6, "no hypercube has 6 peers"),
        ("torus", 4, "the topology 'torus' is unknown"),
        ("line", 0, "a network has from 1 to 256 super-peers, not 0"),
    ],
)
def test_shapes_that_are_not_built(shape: str, count: int, message: str) -> None:
    """Sizes that a shape does not have, and shapes that nobody knows."""
    with pytest.raises(UsageError) as caught:
        built(shape, count)
    assert caught.value.message == message


def test_bandwidth() -> None:
    """All links take the same, or each its own; either end may be named first."""
    found: Topology = line(3).with_bandwidth(500.0)
    assert found.links[found.link("SP1", "SP0")] == 500.0
    assert topology("ab", {("b", "a"): 7.0}).links["a", "b"] == 7.0
