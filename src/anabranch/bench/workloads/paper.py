"""The sharing paper's own workload (section 6): how many of 32 random queries can share a stream.

Queries return some of a photon's values and select a part of the detector (dx, dy), hard photons (en), or both, joined
by *and* or by *or*; the constants are normally distributed over a set of reasonable ones.
They are registered one after another at one place.
Without widening a query shares if it matches the stream of one before it, else it gets a stream of its own.
With widening it shares also where a stream can be widened for it and still costs less than two streams would, in bytes
over a sample of photons; the one that gains most is widened.

The paper prints 14 of 32 without and 31 with widening, and for all of its network 12.2 and 6.4 per cent of the traffic
of data shipping, where each query has the whole stream for itself.
It does not print its constants; these are such that without widening as many queries share as there, and a stream is
about as small.
Their spread is a choice of ours, and widening gains less the wider it is (docs/design/2026-11-15-network.md).
Seeds differ, so figures for several say more than one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from random import Random

from anabranch.language import check, parse
from anabranch.law import evaluate, text_input
from anabranch.sharing.match import matches, merge
from anabranch.sharing.render import render
from anabranch.sharing.rules.derive import derive
from anabranch.sharing.tree import PropertyTree
from anabranch.stream.photons import photons, photons_dtd
from anabranch.stream.schema import Schema

QUERIES = 32
PAPER_WITHOUT, PAPER_WITH = 14, 31
_VALUES = ("coord/cel/ra", "coord/cel/dec", "coord/det/dx", "coord/det/dy", "phc", "en", "det_time")
SPREADS = ("1", "1.5", "2")
"""How far constants lie apart, in the workloads that a bench compares: 1 is that of this module's figures."""


@dataclass(frozen=True, slots=True)
class _Constants:
    """Five constants around a middle one."""

    middle: Decimal
    step: Decimal

    def text(self, number: int, spread: Decimal) -> str:
        """The constant of a number from -2 to 2."""
        return f"{(self.middle + number * self.step * spread).normalize():f}"


_FROM, _TO = _Constants(Decimal(192), Decimal(16)), _Constants(Decimal(320), Decimal(16))
"""Where a part of the detector begins and ends, across and down: around its middle, as telescopes are pointed."""
_ENERGIES = _Constants(Decimal("1.3"), Decimal("0.1"))


@dataclass(frozen=True, slots=True)
class Shared:
    """How many queries of a workload share a stream."""

    queries: int
    without_widening: int
    """How many queries share the stream of one before them as it is."""
    with_widening: int
    """How many share one if it may be widened."""


def share(seed: int, queries: int = QUERIES, sample: int = 50) -> Shared:
    """Register the random queries of a seed; bytes are those of a sample of `sample` photons."""
    schema = Schema.from_dtd(photons_dtd())
    trees = [derive(check(parse(text), text).query, schema) for text in workload(seed, queries)]
    size = _Sizes("".join(("<photons>", *photons(sample, seed), "</photons>")))
    return Shared(queries, queries - len(_without(trees)), queries - len(_with(trees, size)))


def workload(seed: int, count: int = QUERIES, spread: str = "1") -> list[str]:
    """`count` random queries, whose constants lie this many times as far apart as usual."""
    random = Random(seed)
    return [_query(random, Decimal(spread)) for _ in range(count)]


def window_workload(seed: int, count: int) -> list[str]:
    """`count` random queries for values of windows of hard photons."""
    random = Random(seed)
    found: list[str] = []
    for _ in range(count):
        size, step = random.choice(((20, 10), (20, 20), (40, 20), (60, 20)))
        path = f"photons/photon[en >= {_constant(random, _ENERGIES, Decimal(1))}]|det_time diff {size} step {step}|"
        value = f"{random.choice(('avg', 'sum', 'min', 'max'))}($w/en)"
        found.append(f'<photons>{{ for $w in stream("photons")/{path} return <v>{{ {value} }}</v> }}</photons>')
    return found


def join_workload(seed: int, count: int) -> list[str]:
    """`count` random queries for pairs of photons, hard ones and any, that hit the same column of the detector."""
    random = Random(seed)
    found: list[str] = []
    for _ in range(count):
        least, photon = _constant(random, _ENERGIES, Decimal(1)), 'stream("photons")/photons/photon'
        loops = f"for $x in {photon}[en >= {least}]|det_time diff 10|, $y in {photon}|det_time diff 10|"
        near = "$x/coord/det/dx = $y/coord/det/dx and $x/coord/det/dy < $y/coord/det/dy"
        shown = "".join(f"{{ {each} }}" for each in random.sample(("$x/en", "$y/en", "$x/phc", "$y/det_time"), 3))
        found.append(f"<photons>{{ {loops} where {near} return <p>{shown}</p> }}</photons>")
    return found


def placed(seed: int, count: int, peers: Sequence[str]) -> list[str]:
    """The peers at which `count` queries are asked: as many at each, as far as possible, in a random order."""
    random = Random(seed)
    found: list[str] = []
    while len(found) < count:
        found += random.sample(peers, len(peers))
    return found[:count]


def _query(random: Random, spread: Decimal) -> str:
    returned = random.sample(_VALUES, random.randint(1, len(_VALUES)))
    pixels = " and ".join(
        f"$p/coord/det/{axis} >= {_constant(random, _FROM, spread)} and "
        f"$p/coord/det/{axis} <= {_constant(random, _TO, spread)}"
        for axis in ("dx", "dy")
    )
    energy = f"$p/en >= {_constant(random, _ENERGIES, spread)}"
    condition = random.choice((pixels, energy, random.choice((" and ", " or ")).join((pixels, energy))))
    content = "".join(f"{{ $p/{path} }}" for path in returned)
    head = f'for $p in stream("photons")/photons/photon where {condition}'
    return f"<photons>{{ {head} return <photon>{content}</photon> }}</photons>"


def _constant(random: Random, known: _Constants, spread: Decimal) -> str:
    """One of five constants, those in the middle most often."""
    return known.text(min(max(round(random.gauss(2, 1)), 0), 4) - 2, spread)


def _without(trees: Iterable[PropertyTree]) -> list[PropertyTree]:
    """The streams that have to be made where none is widened."""
    streams: list[PropertyTree] = []
    for tree in trees:
        if not any(matches(stream, tree) for stream in streams):
            streams.append(tree)
    return streams


def _with(trees: Iterable[PropertyTree], size: _Sizes) -> list[PropertyTree]:
    """The streams where each query widens the one by which it gains most, if any."""
    streams: list[PropertyTree] = []
    for tree in trees:
        if any(matches(stream, tree) for stream in streams):
            continue
        wider = [merge(stream, tree) for stream in streams]
        gains = [size.of(old) + size.of(tree) - size.of(new) for old, new in zip(streams, wider, strict=True)]
        best = max(range(len(streams)), key=gains.__getitem__, default=None)
        if best is not None and gains[best] > 0:
            streams[best] = wider[best]
        else:
            streams.append(tree)
    return streams


class _Sizes:
    """How many bytes streams have over a document of photons."""

    def __init__(self, document: str) -> None:
        self.document = document
        self._known: dict[PropertyTree, int] = {}

    def of(self, tree: PropertyTree) -> int:
        if tree not in self._known:
            text = render(tree)
            given = {tree.stream: text_input(self.document, name=tree.stream)}
            self._known[tree] = len(evaluate(check(parse(text), text).query, given, name="sizes").text)
        return self._known[tree]


def figures(seeds: Sequence[int]) -> dict[str, float]:
    """The figures of several seeds, each as their mean, beside the paper's."""
    found = [share(seed) for seed in seeds]
    return {
        "without_widening": sum(each.without_widening for each in found) / len(found),
        "paper_without_widening": PAPER_WITHOUT,
        "with_widening": sum(each.with_widening for each in found) / len(found),
        "paper_with_widening": PAPER_WITH,
    }
