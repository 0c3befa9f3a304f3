"""Super-peers, the links between them, and routes.

A link has no direction and may have a bandwidth, which the streams of both directions share.
Routes have the fewest links; among several, the peers that come first in the network's order win, so that the same
network has the same routes wherever it is planned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from random import Random
from typing import TypeAlias
from urllib.parse import quote

from anabranch.errors import UsageError
from anabranch.stream.files import is_text

MOST_PEERS = 256
MOST_LETTERS = 200
"""The most characters of a super-peer's name, which is also a folder name."""

Link: TypeAlias = tuple[str, str]
"""Two super-peers, in the network's order."""


@dataclass(frozen=True)
class Topology:
    """Super-peers, and the links between them with their bandwidth in bytes per second; None is unlimited."""

    peers: tuple[str, ...]
    links: Mapping[Link, float | None]
    shape: str = field(default="", compare=False)
    """The shape it was built as, for drawing."""

    def __post_init__(self) -> None:
        reached, ahead = set(self.peers[:1]), list(self.peers[:1])
        while ahead:
            fresh = [each for each in self.neighbours[ahead.pop()] if each not in reached]
            reached.update(fresh)
            ahead += fresh
        apart = [each for each in self.peers if each not in reached]
        if apart:
            message = f"no link leads from '{self.peers[0]}' to '{apart[0]}'"
            raise UsageError(message, hint="a network must hang together")

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The position of each peer in the network's order."""
        return {peer: number for number, peer in enumerate(self.peers)}

    @cached_property
    def neighbours(self) -> Mapping[str, tuple[str, ...]]:
        """The neighbours of each peer, in the network's order."""
        found: dict[str, list[str]] = {peer: [] for peer in self.peers}
        for first, second in self.links:
            found[first].append(second)
            found[second].append(first)
        return {peer: tuple(sorted(each, key=self.places.__getitem__)) for peer, each in found.items()}

    def link(self, first: str, second: str) -> Link:
        """The link between two neighbours."""
        return (first, second) if self.places[first] < self.places[second] else (second, first)

    @cached_property
    def _ways(self) -> dict[tuple[str, frozenset[Link]], Mapping[str, str]]:
        return {}

    def route(self, start: str, end: str, without: frozenset[Link] = frozenset()) -> tuple[str, ...]:
        """The peers on the route, inclusive; over links in `without` only if there is no other route."""
        if (start, without) not in self._ways:
            self._ways[start, without] = self._way(start, without)
        before = self._ways[start, without]
        if without and end != start and end not in before:
            return self.route(start, end)
        found = [end]
        while found[-1] != start:
            found.append(before[found[-1]])
        return tuple(reversed(found))

    def _way(self, start: str, without: frozenset[Link]) -> Mapping[str, str]:
        """By peer: its predecessor on the route from the start."""
        before: dict[str, str] = {}
        level = [start]
        while level:  # peer by peer in order, so that the first of several shortest routes is found
            fresh: list[str] = []
            for peer in level:
                for each in self.neighbours[peer]:
                    if each != start and each not in before and self.link(peer, each) not in without:
                        before[each] = peer
                        fresh.append(each)
            level = fresh
        return before

    def distance(self, start: str, end: str) -> int:
        """The number of links between two peers."""
        return len(self.route(start, end)) - 1

    def with_bandwidth(self, bandwidth: float | None) -> Topology:
        """The same with one bandwidth for all links."""
        return replace(self, links=dict.fromkeys(self.links, bandwidth))


def topology(peers: Iterable[str], links: Mapping[Link, float | None] | Iterable[Link], shape: str = "") -> Topology:
    """A network of any shape; links may name their ends in any order."""
    names = tuple(peers)
    for each in names:
        if each in ("", ".", "..") or not is_text(each) or len(quote(each, safe="")) > MOST_LETTERS:
            raise UsageError(f"a super-peer cannot be called '{each}'", hint="its name becomes that of a folder")
    places = {peer: number for number, peer in enumerate(names)}
    given = dict(links) if isinstance(links, Mapping) else dict.fromkeys(links)
    for pair in given:
        if pair[0] == pair[1]:
            raise UsageError(f"a link leads from '{pair[0]}' to itself")
        for each in pair:
            if each not in places:
                raise UsageError(f"a link leads to '{each}', which is no super-peer")
    ordered = {(pair if places[pair[0]] < places[pair[1]] else (pair[1], pair[0])): at for pair, at in given.items()}
    return Topology(names, dict(sorted(ordered.items(), key=lambda each: [places[peer] for peer in each[0]])), shape)


# --- the shapes that are built in ---------------------------------------------------------------------------


def names(count: int) -> tuple[str, ...]:
    """`SP0`, `SP1` and so on."""
    return tuple(f"SP{number}" for number in range(count))


def hypercube(dimensions: int) -> Topology:
    """Joins peers whose numbers differ in one bit (sharing paper, section 6)."""
    peers = names(1 << dimensions)
    ends = ((number, number ^ (1 << bit)) for number in range(len(peers)) for bit in range(dimensions))
    return topology(peers, ((peers[one], peers[two]) for one, two in ends if one < two), "hypercube")


def grid(rows: int, columns: int) -> Topology:
    """Rows of peers, each joined to its neighbours beside, above and below."""
    peers = names(rows * columns)
    across = [(n, n + 1) for n in range(len(peers)) if (n + 1) % columns]
    down = [(n, n + columns) for n in range(len(peers) - columns)]
    return topology(peers, ((peers[one], peers[two]) for one, two in (*across, *down)), f"grid of {columns}")


def line(count: int) -> Topology:
    """A chain of peers."""
    peers = names(count)
    return topology(peers, pairwise(peers), "line")


def star(count: int) -> Topology:
    """All peers joined to the first."""
    peers = names(count)
    return topology(peers, ((peers[0], each) for each in peers[1:]), "star")


def random(count: int, seed: int) -> Topology:
    """A random tree, and half as many further links."""
    peers, chance = names(count), Random(seed)
    found = [(chance.randrange(number), number) for number in range(1, count)]
    for _ in range(count // 2):
        one, two = sorted(chance.sample(range(count), 2)) if count > 2 else (0, 1)
        if (one, two) not in found:
            found.append((one, two))
    return topology(peers, ((peers[one], peers[two]) for one, two in found), "random")


SHAPES = ("hypercube", "grid", "line", "star", "random")


def built(shape: str, count: int, seed: int = 0) -> Topology:
    """One of the shapes with so many super-peers; `UsageError` where it has none of that size."""
    if not 1 <= count <= MOST_PEERS:
        raise UsageError(f"a network has from 1 to {MOST_PEERS:,} super-peers, not {count:,}")
    match shape:
        case "hypercube" if count & (count - 1) == 0:
            return hypercube(count.bit_length() - 1)
        case "hypercube":
            raise UsageError(f"no hypercube has {count} peers", hint="use a power of two, as 8 or 16")
        case "grid":
            rows = next(each for each in range(int(count**0.5), 0, -1) if count % each == 0)
            return grid(rows, count // rows)
        case "line":
            return line(count)
        case "star":
            return star(count)
        case "random":
            return random(count, seed)
        case _:
            raise UsageError(f"the topology '{shape}' is unknown", hint=f"use {', '.join(SHAPES)}, or write links down")
