"""What a thousand different historical queries cost over one stream of updates, against one that gives as much.

The queries differ in their constants, in how far back they look (`#1`, `#2`, `#3`, `?60`, `?300`), and in what they
return.
Each looks for quotes in a narrow band, and the bands of all of them together are about all quotes there are; so they
show together as many tickers as the one query that looks for any quote, and an update takes a ticker from one of them
to another.
The one query sorts its tickers, so there an update takes a ticker from one place to another: each side tells readers
that something is gone, and what has come, which is about as many characters.
Both are machines in this process, which take elements as branches do, and what they tell readers is written, too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random
from time import perf_counter

from anabranch.algebra.display.publishing import Published
from anabranch.bench.harness.timing import Figures, Rounds, Timings, compare
from anabranch.bench.parts.steady import replacement, ticker, ticker_element
from anabranch.branch.display.families.machine import AskedDisplay, DisplayFamily
from anabranch.branch.display.publishing import wire_time
from anabranch.branch.document.state import rare_gc
from anabranch.language import ast, check, parse
from anabranch.stream.elements import StreamElement
from anabranch.stream.reading.parse import implied_root

_PASTS = ("#1", "#2", "#3", "?60", "?300")
_RESULTS = ("$q/name, $q/quote", "$q/quote, $q/quote#1", "$q/name, $q/quote?60")
_LEAST, _MOST = 50, 200
_SECONDS = 60
"""The time from one round of updates to the next."""


def banded(count: int) -> Iterator[str]:
    """Different queries, whose bands together are all quotes."""
    width = Fraction(_MOST + 1 - _LEAST, count)
    for number in range(count):
        past, result = _PASTS[number % len(_PASTS)], _RESULTS[number % len(_RESULTS)]
        low, high = (float(_LEAST + width * each) for each in (number, number + 1))
        asked = f"$q/quote{past} >= {low:.4f} and $q/quote{past} < {high:.4f}"
        yield f'for $q in stream("tickers")/tickers/ticker where {asked} return <q>{{ {result} }}</q>'


ANY = (
    'for $q in stream("tickers")/tickers/ticker where $q/quote#1 >= 0 order by $q/quote#1 '
    "return <ticker>{ $q/name, $q/quote }</ticker>"
)
"""The one query that shows, and tells, as much."""


def _checked(text: str) -> ast.Query:
    return check(parse(text), text, inputs={"tickers": None}, functions=()).query


@dataclass(slots=True)
class AskedHistories:
    """Queries at work over `count` tickers, and what they have told."""

    family: DisplayFamily
    count: int
    random: Random = field(default_factory=lambda: Random(1))
    at: int = 0
    updates: int = 0
    told: int = 0
    """The characters told since the tickers came."""

    @staticmethod
    def of(count: int, texts: Iterator[str]) -> AskedHistories:
        asked = {str(number): AskedDisplay(_checked(text), Published, {}) for number, text in enumerate(texts)}
        print(f"history: {len(asked):,} queries over {count:,} tickers", file=sys.stderr)
        found = AskedHistories(DisplayFamily(asked, {"tickers": implied_root("tickers")}), count)
        found.take([ticker_element(ticker(each, found.quote()), each) for each in range(count)])
        found.told = 0
        return found

    def quote(self) -> int:
        return self.random.randint(_LEAST, _MOST)

    def take(self, elements: list[StreamElement]) -> float:
        """The seconds of some elements."""
        begin = perf_counter()
        with rare_gc():
            for each in elements:
                at = Fraction(self.at if each.at is None else each.at)
                for key, change in self.family.take("tickers", each, at):
                    display = self.family.queries[key].display
                    assert isinstance(display, Published)
                    self.told += sum(map(len, display.wire(wire_time(change.at))))
        return perf_counter() - begin

    def round(self, updates: int) -> float:
        """The seconds of this many updates of random tickers."""
        self.at += _SECONDS
        self.updates += updates
        some = [self.random.randrange(self.count) for _ in range(updates)]
        return self.take([ticker_element(replacement(each, self.quote(), self.at), each) for each in some])

    @property
    def told_per_update(self) -> float:
        return self.told / self.updates


@dataclass(frozen=True, slots=True)
class HistoriesRun:
    """The timings of one query and of many, and what each of the two has told."""

    timings: Timings
    updates: int
    one: float
    many: float

    def figures(self) -> Figures:
        told = {"characters_per_update_one": self.one, "characters_per_update_many": self.many}
        return {**self.timings.figures(self.updates), **told}


def histories(queries: int, tickers: int, updates: int, rounds: Rounds) -> HistoriesRun:
    """Compare many queries with one."""
    one, many = AskedHistories.of(tickers, iter((ANY,))), AskedHistories.of(tickers, banded(queries))
    found = compare(lambda: one.round(updates), lambda: many.round(updates), rounds, f"{queries:,} queries")
    return HistoriesRun(found, updates, one.told_per_update, many.told_per_update)
