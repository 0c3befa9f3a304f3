"""Networks, streams and queries for tests: photons from one or two telescopes, and those who ask for them."""

from __future__ import annotations

from functools import lru_cache
from random import Random

import papers
from anabranch.law import text_input
from anabranch.network.description import Strategy
from anabranch.network.estimates import Sample
from anabranch.network.needs import provides
from anabranch.network.planner import Planner
from anabranch.network.topology import Topology, built, hypercube
from anabranch.stream.path import Path
from anabranch.stream.photons import photons, photons_dtd
from anabranch.stream.schema import Schema

SCHEMA = Schema.from_dtd(photons_dtd())


@lru_cache
def document(seed: int, count: int) -> str:
    """So many photons."""
    return "".join(("<photons>", *photons(count, seed), "</photons>"))


@lru_cache
def sample(stream: str = "photons", seed: int = 1, count: int = 400) -> Sample:
    """A sample of photons."""
    items = [each.item for each in text_input(document(seed, count)).arrivals]
    return Sample(stream, items, Path.parse("det_time"))


def planner(
    topology: Topology, places: dict[str, str], strategy: Strategy = "widening", budget: float = 60.0, known: int = 400
) -> Planner:
    """A planner of photon streams, of which so many photons are known, that has time to look at everything."""
    samples = {name: sample(name, seed, known) for seed, name in enumerate(places, 1)}
    return Planner(topology, samples, places, dict.fromkeys(places, SCHEMA), strategy=strategy, budget=budget)


FIGURE_1 = (("q1", papers.Q1, "SP1"), ("q2", papers.Q2, "SP7"), ("q3", papers.Q3, "SP3"), ("q4", papers.Q4, "SP2"))
"""Where the queries of figure 1 are asked; the paper's text says of `photons` alone that it comes in at SP4."""


@lru_cache
def figure_1(strategy: Strategy) -> Planner:
    """The scenario of the paper's introduction; nobody changes it any more."""
    found = planner(hypercube(3), {"photons": "SP4"}, strategy)
    for name, text, at in FIGURE_1:
        found.register(name, text, at)
    return found


def some_topology(random: Random) -> Topology:
    """A network of a random shape, some with links that are soon short."""
    shape = random.choice(("hypercube", "grid", "line", "star", "random"))
    count = random.choice((4, 8)) if shape == "hypercube" else random.randrange(3, 9)
    return built(shape, count, random.randrange(99)).with_bandwidth(random.choice((None, None, 800.0)))


_BOX = "coord/cel/ra >= {} and coord/cel/ra <= 138.0 and coord/cel/dec >= -49.0 and coord/cel/dec <= -40.0"


def some_query(random: Random, streams: tuple[str, ...]) -> str:
    """A selection, a window query, a join, or one of `some_other_query`."""
    stream = random.choice(streams)
    match random.randrange(12):
        case 8 | 9 | 10 | 11:
            return some_other_query(random, streams)
        case 0 | 1 | 2:
            text = some_selection(random)
        case 3 | 4 | 5:
            size, step = random.choice(((20, 10), (60, 40), (10, 10), (30, 10), (40, 20)))
            function = random.choice(("avg", "sum", "count", "min", "max"))
            where = random.choice(("", f"where $a >= {random.choice(('0.9', '1.3'))}"))
            text = (
                f'<photons>{{ for $w in stream("photons")/photons/photon[{_BOX.format(random.choice((120, 125)))}]'
                f"|det_time diff {size} step {step}| let $a := {function}($w/en) {where} "
                f"return <v>{{ $a }}</v> }}</photons>"
            )
        case 6:
            text = random.choice((papers.Q3, papers.Q4, _COUNTED))
        case _ if len(streams) > 1:
            join = random.choice((papers.Q5, papers.Q6, papers.Q7, papers.Q8, papers.INTERVAL_JOIN, RARE, RARE))
            return join.replace("photon1", streams[0]).replace("photon2", streams[1])
        case _:
            text = papers.Q1
    return text.replace('stream("photons")', f'stream("{stream}")')


def some_other_query(random: Random, streams: tuple[str, ...]) -> str:
    """A keyed join, several paths as one, windows over the results of a loop, groups of windows, or sessions."""
    first, second = random.choice(streams), random.choice(streams)
    match random.randrange(6):
        case 0 | 1:
            body = some_keyed_join(random, first, second)
        case 2:
            body = _some_set(random, first, second)
        case 3:
            body = _some_chain(random, first, second)
        case 4:
            body = _some_groups(random, first)
        case _:
            gap = random.choice(("0.2", "0.5", "2"))
            by = random.choice(("", " by phc", " by coord/det/dx"))
            body = (
                f"for $w in {_photons(random, first)}|det_time gap {gap}{by}| "
                f"return <s>{{ {random.choice(('sum($w/en)', '$w/phc', 'count($w)', '$w[en >= 1]/coord/cel'))} }}</s>"
            )
    return f"<photons>{{ {body} }}</photons>" if random.random() < 0.7 else body


_PRESELECTIONS = ("", "", "", "[en >= 1.0]", "[phc >= 100]", "[coord/det/dx >= 200 and en >= 0.3]", "[en * 2 >= 1]")


def _photons(random: Random, stream: str) -> str:
    return f'stream("{stream}")/photons/photon{random.choice(_PRESELECTIONS)}'


def some_keyed_join(random: Random, first: str, second: str, result: str = "") -> str:
    """Photons that have the same value somewhere, in one or two streams."""
    key = random.choice(("$x/phc = $y/phc", "$x/phc = $y/phc", "$x/en = $y/en", "$x/coord/det/dx = $y/coord/det/dy"))
    conditions = random.sample(
        (
            "$x/en >= 0.5",
            "$y/coord/det/dx <= 300",
            "$x/en >= $y/en",
            "($x/en >= 1 or $y/phc >= 100)",
            "not($y/en < 0.2)",
        ),
        random.choice((0, 1, 1, 2)),
    )
    conditions.insert(random.randrange(len(conditions) + 1), key)
    result = result or random.choice(
        ("<p>{ $x/en }{ $y/en }</p>", "<p>{ $x/phc }{ $y/coord/cel }</p>", "<p>{ $x/det_time, count($y/phc) }</p>")
    )
    loops = f"for $x in {_photons(random, first)}, $y in {_photons(random, second)} "
    return f"{loops}where {' and '.join(conditions)} return {result}"


def _some_set(random: Random, first: str, second: str) -> str:
    """The photons of one path and another one, of both, or of one and not the other."""
    operator = random.choice(("union", "union", "intersect", "except"))
    paths = [_photons(random, each) for each in (first, random.choice((first, second)))]
    if random.random() < 0.3:
        paths = [f"({' union '.join(paths)})", _photons(random, second)]
    where = random.choice(("", "where $p/en >= 0.9 ", "where $p/phc >= 50 and $p/coord/det/dx <= 300 "))
    result = random.choice(("$p/en", "<p>{ $p/phc }{ $p/det_time }</p>", "<p>{ $p/coord/cel }</p>", "$p"))
    if random.random() < 0.2:
        return (
            f" {operator} ".join(f"{each}/en" for each in paths[:2]) if "(" not in paths[0] else " union ".join(paths)
        )
    return f"for $p in {f' {operator} '.join(paths)} {where}return {result}"


def _some_chain(random: Random, first: str, second: str) -> str:
    """Windows over what a loop gives: of items, a keyed join or an interval join."""
    made = "<m><at>{ $x/det_time/text() }</at>{ $x/en }{ $x/phc }</m>"
    match random.randrange(3):
        case 0:
            where = random.choice(("", "where $x/en >= 0.5 "))
            loop = f"for $x in {_photons(random, first)} {where}return {made}"
        case 1:
            loop = some_keyed_join(random, first, second, made)
        case _:
            loop = (
                f"for $x in {_photons(random, first)}, $y in {_photons(random, second)} where $x/det_time >= "
                f"$y/det_time - 1 and $x/det_time <= $y/det_time + 1 and $x/en >= $y/en return {made}"
            )
    window = random.choice(("|at diff 5|", "|at diff 10 step 5|", "|count 3|", "|count 4 step 2|"))
    result = random.choice(("avg($w/en)", "sum($w/en), count($w)", "$w/phc", "max($w/phc)"))
    return f"for $w in ({loop}){window} return <w>{{ {result} }}</w>"


def _some_groups(random: Random, stream: str) -> str:
    """Windows whose photons are grouped by a value."""
    window = random.choice(("|det_time diff 10|", "|det_time diff 20 step 10|", "|count 6|"))
    key = random.choice(("$p/phc", "floor($p/en)", "$p/coord/det/dx"))
    result = random.choice(('<g k="{ $k }">{ sum($p/en) }</g>', '<g k="{ $k }">{ $p/phc, count($p) }</g>'))
    where = random.choice(("", "where $p/phc >= 15 "))
    inside = f"for $p in $w {where}group by $k := {key} return {result}"
    head = f"for $w in {_photons(random, stream)}{window}"
    return random.choice((f"{head} {inside}", f"{head} return <w>{{ {inside} }}</w>"))


_PIXEL = ("coord/det/dx", "coord/det/dy")
_ELEMENTS = ("coord", "coord/cel", "coord/cel/ra", "coord/cel/dec", "coord/det", *_PIXEL, "phc", "en", "det_time")

_ENERGIES, _PIXELS = ("0.4", "1.0", "1.3"), ("128", "256", "384")


def some_selection(random: Random) -> str:
    """Some elements, within each other or not, of photons on one side or the other of a few constants."""
    returned = [path for path in _ELEMENTS if random.random() < 0.5] or ["en"]
    atoms = [
        f"$p/{path} {random.choice(('>=', '<='))} {random.choice(_ENERGIES if path == 'en' else _PIXELS)}"
        for path in random.choice((_PIXEL, ("en",), (*_PIXEL, "en")))
    ]
    condition = random.choice((" and ", " or ")).join(atoms)
    content = "".join(f"{{ $p/{path} }}" for path in returned)
    head = f'for $p in stream("photons")/photons/photon where {condition}'
    return f"<photons>{{ {head} return <photon>{content}</photon> }}</photons>"


_COUNTED = (
    '<photons>{ for $w in stream("photons")/photons/photon[en >= 1.3]|count 5 step 2| '
    "return <n>{ count($w) }{ $w/phc }</n> }</photons>"
)
STATISTICS = (
    '<photons>{ for $w in stream("photons")/photons/photon[coord/det/dx <= 256]|det_time diff 20 step 10| '
    'let $m := median($w/en) where $m >= 0.5 return <m n="{ count($w) }">{ $m }<s>{ stddev($w/en) }</s></m> }</photons>'
)
"""Windows that are not put together from parts."""
RARE = papers.Q6.replace("$x/en >= $y/en", "$x/coord/det/dx = $y/coord/det/dx")
"""A join by the detector's columns: few photons meet."""


def check_plan(found: Planner) -> None:
    """Every flow can be made where it is made, of what is there; and so can every answer."""
    catalogue, topology = found.catalogue, found.topology
    for flow in catalogue.flows.values():
        assert flow.before is None or flow.at in topology.neighbours[flow.before]
        for source in (catalogue.flows[name] for name in flow.inputs):
            assert flow.made_at in source.places
        if len(flow.inputs) == 1 and type(catalogue.flows[flow.inputs[0]].form) is type(flow.form):
            assert provides(catalogue.flows[flow.inputs[0]].form, flow.form)
        assert not flow.inputs or catalogue.is_read(flow.name), "nobody reads it"
    for each in catalogue.subscriptions.values():
        for source in (catalogue.flows[name] for name in each.reads):
            assert each.at in source.places
            assert provides(source.form, each.need.of(source.form))
    assert len(catalogue.downwards()) == len(catalogue.flows), "flows are made of each other in a circle"
