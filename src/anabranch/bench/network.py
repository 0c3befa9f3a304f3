"""The sharing paper's experiment (section 6), executed: peers in a hypercube, one stream of photons, random queries.

The same queries (`bench/workloads/paper.py`) are asked at the same peers under three strategies, each in a network of
its own (`bench/parts/photon_networks.py`): `shipping`, `sharing` and `widening`.
All answers are compared.

Part `seeds` is the paper's Table 1, of ten seeds for each of three spreads of the queries' constants, with 8 peers and
32 queries; a seed is that of the queries, of their peers and of the photons.
Each figure has its mean, least and most:

`seeds.spread_N.traffic_percent`: bytes over all links, with shipping as 100.
`seeds.spread_N.cpu_percent`: CPU seconds of all peers, with shipping as 100.
`seeds.spread_N.shared_queries`: how many are answered out of streams that are there for others.
`figure_14.links` and `figure_14.peers` are bytes by link and CPU seconds by peer, of the first seed.

Part `queries` has the same of 4 to 100 queries at 8 peers, of three seeds each: `queries.n4` and so on.
Both run the peers in this process, without Spark, whose epochs and links are the same.

Part `planning`: `planning.n4` and so on have the CPU seconds to plan one query, without and with widening: their mean,
and the most with widening; `ratio` is that of the means, the paper's "up to double".

Part `spark` runs one seed on Spark, and the same in this process, to the same bytes over each link.
`spark.floor_s` are the seconds of as many epochs that hold the planner's sample and nothing else: the fixed cost of
epochs, which is a part of all sides.
`large` has the same for 16 peers and 100 queries.

Part `accents`, in this process, of queries for items, for values of windows, and for photons that meet (`joins`):
`ratios.items.accents_possible`: traffic with widening if the stream may have accents and none comes, to that of a
stream that was declared to have none.
`ratios.items.behind_an_accent`: the same of the photons behind an accent on the energy, once it is followed; most
queries select by it, and its values are in the new unit, so the same photons are selected.
All are of fewer photons than the others, since behind an accent they are evaluated one by one.

`paper` has the paper's own figures.
The picture shows what has been measured of Table 1, figure 14 and the numbers of queries.

`--only` takes parts: seeds, queries, planning, spark, accents.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from anabranch.bench.harness.epochs import workshop
from anabranch.bench.harness.parts import chosen_parts
from anabranch.bench.harness.timing import Figures
from anabranch.bench.parts.network_picture import picture
from anabranch.bench.parts.photon_networks import (
    NetworkScale,
    PhotonNetwork,
    StrategyCosts,
    by_place,
    compared,
    spread_of,
)
from anabranch.bench.workloads.paper import SPREADS
from anabranch.bench.workloads.photons import Spark
from anabranch.network.description import STRATEGIES, Strategy
from anabranch.network.estimates import MOST_ITEMS

PAPER: Figures = {
    "traffic_percent": {"sharing": 12.2, "widening": 6.4},
    "cpu_percent": {"sharing": 70.6, "widening": 53.5},
    "shared_queries": {"sharing": 14, "widening": 31},
    "planning_s": {"max": 45},
}
_SEEDS, _QUICK_SEEDS = range(1, 11), range(1, 3)
_CURVE_SEEDS, _QUICK_CURVE_SEEDS = range(1, 4), range(1, 2)
_COUNTS, _QUICK_COUNTS = (4, 8, 16, 32, 64, 100), (4, 8)
_ITEMS, _QUICK_ITEMS = 40_000, 2_000
"""Photons of a network in this process; all of them are one epoch."""
_ON_SPARK = (NetworkScale(3, 32, 2, 100_000), NetworkScale(4, 100, 1, 50_000))
_QUICK_ON_SPARK = (NetworkScale(2, 6, 1, 2_000), NetworkScale(3, 8, 1, 2_000))
_EVOLVING = (
    NetworkScale(3, 32, 2, 4_000),
    NetworkScale(3, 16, 2, 4_000, asked="windows"),
    NetworkScale(3, 8, 2, 4_000, asked="joins"),
)
_QUICK_EVOLVING = tuple(NetworkScale(2, 4, 2, 600, asked=each) for each in ("items", "windows", "joins"))


def measure(quick: bool, only: Sequence[str] = ()) -> Figures:
    """Run the bench, or some parts of it."""
    found: dict[str, Figures] = {"paper": PAPER}
    with TemporaryDirectory(prefix="anabranch-bench-") as folder:
        for part in chosen_parts(_PARTS, only):
            found |= _PARTS[part](Path(folder) / part, quick)
    return found


def _table(folder: Path, quick: bool) -> dict[str, Figures]:
    """The paper's Table 1, of several seeds, for each spread of the constants."""
    seeds, items = (_QUICK_SEEDS, _QUICK_ITEMS) if quick else (_SEEDS, _ITEMS)
    PhotonNetwork(None, folder, NetworkScale(3, 8, 1, items)).run_all()  # for the code to be compiled
    found = {
        spread: _of_seeds(folder, [NetworkScale(3, 32, 1, items, seed, spread) for seed in seeds]) for spread in SPREADS
    }
    first, _ = found[SPREADS[0]]
    tables: Figures = {f"spread_{spread}": table for spread, (_, table) in found.items()}
    return {"seeds": tables, "figure_14": by_place(first)}


def _by_queries(folder: Path, quick: bool) -> dict[str, Figures]:
    """What the strategies cost for few queries, and for many."""
    seeds, items, counts = (
        (_QUICK_CURVE_SEEDS, _QUICK_ITEMS, _QUICK_COUNTS) if quick else (_CURVE_SEEDS, _ITEMS, _COUNTS)
    )
    scales = {count: [NetworkScale(3, count, 1, items, seed) for seed in seeds] for count in counts}
    return {"queries": {f"n{count}": _of_seeds(folder, each)[1] for count, each in scales.items()}}


def _of_seeds(folder: Path, scales: Sequence[NetworkScale]) -> tuple[StrategyCosts, Figures]:
    """What the first seed has cost, and the comparison of all."""
    ran = [PhotonNetwork(None, folder, each).run_all() for each in scales]
    return ran[0], spread_of(list(map(compared, ran)))


def _planning(folder: Path, quick: bool) -> dict[str, Figures]:
    """The processor time to plan a query, without widening and with it."""
    found: dict[str, Figures] = {}
    for count in _QUICK_COUNTS if quick else _COUNTS:
        network = PhotonNetwork(None, folder, NetworkScale(3, count, 1, MOST_ITEMS))
        sharing, widening = (network.plan(strategy) for strategy in STRATEGIES[1:])
        found[f"n{count}"] = {
            "sharing_mean_s": sum(sharing) / count,
            "widening_mean_s": sum(widening) / count,
            "widening_most_s": max(widening),
            "ratio": sum(widening) / sum(sharing),
        }
    return {"planning": found}


def _on_spark(_: Path, quick: bool) -> dict[str, Figures]:
    """One seed on Spark, in a small network and in a large one."""
    small, large = _QUICK_ON_SPARK if quick else _ON_SPARK
    with workshop() as (spark, folder):
        return {
            "spark": measure_on_spark(spark, folder / "small", small),
            "large": measure_on_spark(spark, folder / "large", large),
        }


def measure_on_spark(spark: Spark, folder: Path, scale: NetworkScale) -> Figures:
    """One network on Spark, with all strategies, and in this process, to the same bytes over each link."""
    network, here = PhotonNetwork(spark, folder, scale), PhotonNetwork(None, folder, scale)
    network.run("shipping", MOST_ITEMS)  # for processes to be there, and their code to be compiled
    floors = {strategy: network.run(strategy, MOST_ITEMS).cpu for strategy in STRATEGIES}
    ran = network.run_all()
    for strategy, each in here.run_all().items():
        assert each.links == ran[strategy].links, f"{strategy} sends otherwise without Spark"
        assert each.answers == ran[strategy].answers, f"{strategy} answers otherwise without Spark"
    return {
        "queries": scale.queries,
        "items": len(network.lines),
        **compared(ran),
        "traffic_bytes": _by_strategy(lambda strategy: ran[strategy].traffic),
        "cpu_s": _by_strategy(lambda strategy: ran[strategy].cpu),
        "floor_s": _by_strategy(floors.__getitem__),
        **by_place(ran),
    }


def _by_strategy(figure: Callable[[Strategy], float]) -> Mapping[str, float]:
    return {each: figure(each) for each in STRATEGIES}


def _evolving(folder: Path, quick: bool) -> dict[str, Figures]:
    """The traffic of a stream that may evolve, and behind an accent, as parts of that of one that does not."""
    scales = _QUICK_EVOLVING if quick else _EVOLVING
    return {"ratios": {scale.asked: evolving(folder / scale.asked, scale) for scale in scales}}


def evolving(folder: Path, scale: NetworkScale) -> Figures:
    """The ratios of one network, whose photons come in two epochs, once with an accent in an epoch between them."""
    network = PhotonNetwork(None, folder, scale)
    first, second = network.lines[: scale.items], network.lines[scale.items :]
    plain = network.traffic([first, second], accents=False)
    possible = network.traffic([first, second], accents=True)
    told = network.traffic([first, [_WARMER], list(map(_in_new_unit, second))], accents=True)
    return {"accents_possible": sum(possible) / sum(plain), "behind_an_accent": told[-1] / plain[-1]}


_WARMER = '<s:accent xmlns:s="urn:anabranch:stream"><s:alter path="en" by=". + 1"/></s:accent>\n'


def _in_new_unit(line: str) -> str:
    """A photon behind the accent."""
    return re.sub("(?<=<en>)[^<]*", lambda found: str(Decimal(found[0]) + 1), line)


_PARTS: Mapping[str, Callable[[Path, bool], dict[str, Figures]]] = {
    "seeds": _table,
    "queries": _by_queries,
    "planning": _planning,
    "spark": _on_spark,
    "accents": _evolving,
}


def draw(figures: Any) -> str:
    """The picture of the figures, as far as they were measured."""
    return picture(figures)
