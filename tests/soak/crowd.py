"""The subscriptions of the soak: of each kind how many, and their texts, drawn from a seed.

Most differ in constants only, as those of many users of one site do; constants of kinds that remember are drawn from
few values, so that some of them have twins, and share a branch where they begin together.
A kind also says how its answer is judged (`judging.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from soak.streams import LEVELS, SYMBOLS

Judge = Literal["arithmetic", "law", "evolving", "display", "document"]
"""Plain arithmetic over all of its items, beside which the law judges some; the law over what was seen; the reference
for streams that evolve; what a display over items shows; what a display over a document shows, whenever it began."""

BANDS, STEP = 200, 10
"""Ranges of energies, and their width in eV."""
PRICES = (500, 600, 700, 800, 900)


@dataclass(frozen=True, slots=True)
class Kind:
    """What some of the subscriptions ask for."""

    name: str
    weight: int
    """How many of a thousand are of this kind."""
    streams: tuple[str, ...]
    judge: Judge
    text: Callable[[Random], str]
    at_start: str = ""
    """The text of one that is there before anything else, where its answer would depend on when it began."""


def _band(random: Random) -> str:
    low = 100 + STEP * random.randrange(BANDS)
    return f'for $p in stream("photons")/photons/photon where $p/en >= {low / 1000} and $p/en < {(low + STEP) / 1000} '


def _range(random: Random) -> str:
    return _band(random) + "return <hit>{ $p/n, $p/en }</hit>"


def _framed(random: Random) -> str:
    return f"<band>{{ {_band(random)}return <hit>{{ $p/n, $p/en }}</hit> }}</band>"


def _cone(random: Random) -> str:
    ra, dec = random.randrange(100, 138), random.randrange(-50, -32)
    return (
        f'for $p in stream("photons")/photons/photon where $p/coord/cel/ra >= {ra} and $p/coord/cel/ra <= {ra + 2} '
        f"and $p/coord/cel/dec >= {dec} and $p/coord/cel/dec <= {dec + 2} return $p"
    )


def _order(random: Random) -> str:
    return (
        f'for $o in stream("orders") where $o.symbol = "S{random.randrange(SYMBOLS)}" '
        f'and $o.price > {random.choice(PRICES)} return {{ "id": $o.id, "price": $o.price }}'
    )


def _sql(random: Random) -> str:
    symbol, price = random.randrange(SYMBOLS), random.choice(PRICES)
    return f"SELECT id, price FROM orders WHERE symbol = 'S{symbol}' AND price > {price}"


def _warm(random: Random) -> str:
    least = random.choice((60, 65, 70, 75, 80, 85))
    return (
        f'for $r in stream("sensors")/sensors/reading where $r/t >= {least} return <warm>{{ $r/ts, $r/s, $r/t }}</warm>'
    )


def _mean(random: Random) -> str:
    size, least = random.choice(((20, 10), (30, 30), (60, 20))), random.choice((0.1, 0.5, 1))
    return (
        f'for $w in stream("photons")/photons/photon[en >= {least}]|det_time diff {size[0]} step {size[1]}| '
        "return <mean>{ count($w), avg($w/en) }</mean>"
    )


def _counted(random: Random) -> str:
    size = random.choice((20, 50))
    return (
        f'for $w in stream("photons")/photons/photon[phc = {random.randrange(LEVELS)}]|count {size} step {size // 2}| '
        "return <held>{ median($w/en) }{ $w/n }</held>"
    )


def _grouped(random: Random) -> str:
    return (
        f'for $w in stream("photons")/photons/photon|det_time diff {random.choice((20, 30, 40))}| '
        'for $p in $w group by $k := $p/phc return <group of="{ $k }">{ count($p), sum($p/en) }</group>'
    )


def _session(random: Random) -> str:
    return (
        f'for $w in stream("flashes")/flashes/flash[level < {random.choice((4, 6, 8))}]|at gap 2| '
        "return <session>{ count($w), min($w/n), max($w/n) }</session>"
    )


def _cooled(random: Random) -> str:
    return (
        f'for $w in stream("sensors")/sensors/reading[s = {random.choice((1, 2))}]|ts diff {random.choice((10, 20))}| '
        "return <window>{ count($w), max($w/ts) }</window>"
    )


def _pair(random: Random) -> str:
    return (
        f'for $p in stream("photons")/photons/photon[en >= {random.choice((1.9, 2))}]|det_time diff 4 step 2|, '
        '$f in stream("flashes")/flashes/flash|at diff 4 step 2| where $p/phc = $f/level '
        "return <pair>{ $p/n, $f/n }</pair>"
    )


def _best(random: Random) -> str:
    return (
        f'<best>{{ (for $p in stream("photons")/photons/photon where $p/en > {random.choice((0.5, 1, 1.5))} '
        "group by $level := $p/phc let $n := count($p) order by $n descending, $level "
        'return <level of="{ $level }">{ $n }</level>)[position() <= 3] }</best>'
    )


def _board(random: Random) -> str:
    return (
        f'<board>{{ for $q in stream("tickers")//ticker where $q/quote >= {random.choice((50, 100, 150))} '
        "order by $q/quote descending return <q>{ $q/name, $q/quote }</q> }</board>"
    )


MOVERS = (
    '<movers>{ for $q in stream("tickers")//ticker where $q/quote >= $q/quote#1 * 1.1 '
    "order by $q/quote - $q/quote#1 return <mover>{ $q/name, $q/quote }</mover> }</movers>"
)
KINDS: Sequence[Kind] = (
    Kind("range", 500, ("photons",), "arithmetic", _range),
    Kind("framed", 100, ("photons",), "arithmetic", _framed),
    Kind("cone", 150, ("photons",), "arithmetic", _cone),
    Kind("order", 70, ("orders",), "arithmetic", _order),
    Kind("sql", 50, ("orders",), "arithmetic", _sql),
    Kind("warm", 60, ("sensors",), "evolving", _warm),
    Kind("mean", 20, ("photons",), "law", _mean),
    Kind("counted", 12, ("photons",), "law", _counted),
    Kind("grouped", 10, ("photons",), "law", _grouped),
    Kind("session", 10, ("flashes",), "law", _session),
    Kind("cooled", 8, ("sensors",), "evolving", _cooled),
    Kind("pair", 4, ("photons", "flashes"), "law", _pair),
    Kind("best", 3, ("photons",), "display", _best),
    Kind("board", 3, ("tickers",), "document", _board),
)
"""All kinds, those of which there are most first."""
ALWAYS = {"movers": MOVERS}
"""Subscriptions of SITE.toml, which are there from the first element: what these answer depends on all that was."""


class Crowd:
    """Who comes and who goes, by a seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(f"crowd {seed}")
        self._number = 0
        self.there: dict[str, Kind] = {}
        """The kinds of those that are registered, by name."""
        self.kinds: dict[str, Kind] = {}
        """The kinds of all that ever were."""
        self.sinks: set[str] = set()
        """Those whose answer goes to a file, too."""

    def come(self, amount: int, *, each_kind: bool = False) -> list[dict[str, object]]:
        """So many more, as the service registers them; with `each_kind` at least two of each kind."""
        drawn = self._random.choices(KINDS, [each.weight for each in KINDS], k=amount)
        if each_kind:
            drawn[: 2 * len(KINDS)] = [*KINDS, *KINDS][:amount]
        found: list[dict[str, object]] = []
        for number, kind in enumerate(drawn):
            name = f"{kind.name}-{self._number:06}"
            self._number += 1
            self.there[name] = self.kinds[name] = kind
            body: dict[str, object] = {"name": name, "query": kind.text(self._random)}
            if (each_kind and number < len(KINDS)) or self._random.random() < _WITH_SINK:
                body["sink"] = {"sink": "files", "path": f"out/{name}"}
                self.sinks.add(name)
            found.append(body)
        return found

    def go(self, amount: int) -> list[str]:
        """So many that leave."""
        names = self._random.sample(sorted(self.there), min(amount, len(self.there)))
        for name in names:
            del self.there[name]
        return names


_WITH_SINK = 0.04
