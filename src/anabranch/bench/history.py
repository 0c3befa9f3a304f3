"""What the past costs: the ticker of the history paper, whose quotes are replaced again and again (its query 2).

`per_update_100k_vs_1k`: the seconds of an update where there are 100,000 tickers, against those where there are 1,000.

`vs_reevaluation`: the seconds that Saxon takes to evaluate the same query over a document of 10,000 tickers, which it
must read anew after each update, against those of an update here; `saxon_ms` and `saxon_reading_ms` are its parts.

`spark_updates_per_second`: the same query on a trunk over 10,000 tickers, as many updates to an epoch; the epoch's
state is read and written, and what changes on display is committed.

`query1_10000_vs_10_books`: the seconds of an update of a book's price where 10,000 books are in one entry, against
those where there are 10 (query 1); at most 3 is the goal.

`many_regions` (`--only million`): with a million regions the bytes of memory and of state for each, and the processor
time to load one and of an update (`large_entries.py`).

`query4_many_vs_few` and `query5_many_vs_few`: the processor time of an event in these queries with 10,000 remembered
events of each stream, against that with 100 (`past_joins.py`); `query4_anew_vs_changed` and `query5_anew_vs_changed`:
with 20 of them, that of evaluating the whole query anew, against that of evaluating what changes.

`state_bytes_per_region`: the state of a quote that was replaced twenty times, ten seconds apart, by qualifier.

`thousand_vs_one`: the seconds of an update with a thousand different historical queries, against those with one that
shows as much (`histories.py`).

`steady`: a million updates to 1,000 tickers, with the size of state and memory on the way (`steady.py`);
`ratios.steady_state` and `ratios.steady_memory` are the maximum of the last half over the maximum from the second tenth
to the half.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random
from statistics import mean, median
from time import perf_counter

from anabranch.bench.harness.epochs import of_trunk, workshop
from anabranch.bench.harness.parts import chosen_parts
from anabranch.bench.harness.timing import Figures, Rounds, compare
from anabranch.bench.parts.histories import histories
from anabranch.bench.parts.large_entries import Books, many_regions
from anabranch.bench.parts.past_joins import past_joins
from anabranch.bench.parts.steady import RISEN, replacement, steady, ticker, ticker_element
from anabranch.branch.display.continuous import ContinuousQuery
from anabranch.errors import UsageError
from anabranch.language import check, parse
from anabranch.stream.elements import StreamElement
from anabranch.stream.reading.parse import implied_root
from anabranch.stream.reading.source import Source

_SAXON = """
    for $q in tickers/ticker
    where number($q/quote) >= number($q/before) * 1.1
    order by (number($q/quote) - number($q/before)) div number($q/quote)
    return <quote>{ $q/name, $q/quote }</quote>"""
_QUALIFIERS = {"snapshot": "", "#1": "#1", "#[9]": "#[9]", "?[60]": "?[60]"}
_SECONDS, _TIMES = 10, 20


@dataclass(frozen=True, slots=True)
class HistoryScale:
    """Numbers of tickers, and of updates in a round."""

    few: int
    many: int
    judged: int
    """Tickers of the comparison with Saxon, and of the run on a trunk."""
    kept: int
    updates: int
    steady: int
    """Updates of the long run, which is over the `few` tickers."""
    queries: int
    """Historical queries that share one history of the `few` tickers."""
    books: int
    """Books in one entry, against ten."""
    regions: int
    remembered: int
    """Events of each stream that queries 4 and 5 remember, against a hundredth of them."""


_FULL = HistoryScale(1_000, 100_000, 10_000, 1_000, 2_000, 1_000_000, 1_000, 10_000, 1_000_000, 10_000)
_QUICK = HistoryScale(200, 2_000, 500, 100, 200, 10_000, 50, 500, 2_000, 1_000)
_FILES = 4


def measure(quick: bool, only: Sequence[str] = ()) -> Figures:
    """Run the bench, or some of its parts."""
    bench = HistoryBench(_QUICK if quick else _FULL, Rounds.of(quick))
    for part in chosen_parts(_PARTS, only):
        _PARTS[part](bench)
    return {"ratios": bench.ratios, **bench.found}


@dataclass(slots=True)
class HistoryBench:
    """The figures of the parts that were measured; each of these adds to them."""

    scale: HistoryScale
    rounds: Rounds
    ratios: dict[str, float] = field(default_factory=dict)
    found: dict[str, float | Figures] = field(default_factory=dict)

    def growth(self) -> None:
        """An update among many tickers against one among few."""
        few, many = Tickers.of(self.scale.few, RISEN), Tickers.of(self.scale.many, RISEN)
        updates = self.scale.updates
        grown = compare(lambda: few.round(updates), lambda: many.round(updates), self.rounds, "an update")
        self.ratios["per_update_100k_vs_1k"] = grown.ratio
        self.found["per_update_100k_vs_1k"] = grown.figures(updates)

    def saxon(self) -> None:
        """An update against the evaluation of all tickers anew."""
        rounds, updates = range(self.rounds.warm_up + self.rounds.pairs), self.scale.updates
        some, again = Tickers.of(self.scale.judged, RISEN), Reevaluation.of(self.scale.judged)
        ours = [some.round(updates) / updates for _ in rounds][self.rounds.warm_up :]
        theirs = [again.round() for _ in rounds][self.rounds.warm_up :]
        update, (reading, evaluating) = median(ours), (median(each) for each in zip(*theirs, strict=True))
        self.ratios["vs_reevaluation"] = (reading + evaluating) / update
        self.ratios["vs_evaluation_alone"] = evaluating / update
        self.found["update_us"] = 1e6 * update
        self.found["saxon_ms"] = 1e3 * evaluating
        self.found["saxon_reading_ms"] = 1e3 * reading

    def together(self) -> None:
        """Many historical queries against one."""
        found = histories(self.scale.queries, self.scale.few, self.scale.few, self.rounds)
        self.ratios["thousand_vs_one"] = found.timings.ratio
        self.found["thousand_vs_one"] = found.figures()

    def steady(self) -> None:
        """Very many updates, one after the other."""
        found = steady(self.scale.few, self.scale.steady)
        self.ratios["steady_state"] = found.growth("state_kb")
        self.ratios["steady_memory"] = found.growth("process_mb")
        self.found["steady"] = found.figures()

    def books(self) -> None:
        """An update inside a large entry against one inside a small one."""
        short, large, updates = Books.of(10), Books.of(self.scale.books), self.scale.updates
        found = compare(lambda: short.round(updates), lambda: large.round(updates), self.rounds, "inside an entry")
        self.ratios["query1_10000_vs_10_books"] = found.ratio
        self.found["query1_10000_vs_10_books"] = found.figures(updates)

    def past(self) -> None:
        """An event of queries 4 and 5 among many that are remembered against one among few."""
        few, events = self.scale.remembered // 100, self.scale.updates // 10
        ratios, self.found["past_joins"] = past_joins(few, self.scale.remembered, events, self.rounds)
        self.ratios |= ratios

    def spark(self) -> None:
        """Updates on a trunk."""
        self.found["spark_updates_per_second"] = on_spark(self.scale.judged)

    def state(self) -> None:
        """The state of a region, by qualifier."""
        found = {name: kept_bytes(each, self.scale.kept) for name, each in _QUALIFIERS.items()}
        self.found["state_bytes_per_region"] = found

    def million(self) -> None:
        """Very many regions."""
        self.found["many_regions"] = many_regions(self.scale.regions, self.scale.updates)


_PARTS: Mapping[str, Callable[[HistoryBench], None]] = {
    "growth": HistoryBench.growth,
    "saxon": HistoryBench.saxon,
    "together": HistoryBench.together,
    "steady": HistoryBench.steady,
    "books": HistoryBench.books,
    "past": HistoryBench.past,
    "spark": HistoryBench.spark,
    "state": HistoryBench.state,
    "million": HistoryBench.million,
}


# --- the stream ---------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Tickers:
    """A query at work over `count` tickers."""

    query: ContinuousQuery
    count: int
    random: Random = field(default_factory=lambda: Random(1))
    at: int = 0

    @staticmethod
    def of(count: int, text: str) -> Tickers:
        if count:
            print(f"history: {count:,} tickers", file=sys.stderr)
        checked = check(parse(text), text, inputs={"tickers": None}, functions=()).query
        found = Tickers(ContinuousQuery(checked, {"tickers": implied_root("tickers")}), count)
        found.take([ticker_element(ticker(each, found.quote()), each) for each in range(count)])
        return found

    def quote(self) -> int:
        return self.random.randint(50, 200)

    def take(self, elements: Sequence[StreamElement]) -> float:
        """The seconds of some elements."""
        begin = perf_counter()
        for each in elements:
            for _ in self.query.take("tickers", each, Fraction(self.at if each.at is None else each.at)):
                pass
        return perf_counter() - begin

    def updates(self, numbers: Sequence[int]) -> list[StreamElement]:
        """A new quote for each of some tickers, at one time."""
        return [ticker_element(replacement(each, self.quote(), self.at), each) for each in numbers]

    def round(self, updates: int) -> float:
        """The seconds of this many updates of random tickers."""
        self.at += 1
        return self.take(self.updates([self.random.randrange(self.count) for _ in range(updates)]))


def kept_bytes(qualifier: str, regions: int) -> float:
    """The bytes of state per region, above those of the same tickers without a mutable part."""

    def size(mutable: bool) -> int:
        text = f'for $q in stream("tickers")/tickers/ticker return <q>{{ $q/quote{qualifier} }}</q>'
        found = Tickers.of(0, text)
        texts = (ticker(each, 100) for each in range(regions))
        if not mutable:
            texts = (each.replace("<s:mutable", "<m").replace("</s:mutable", "</m") for each in texts)
        found.take([ticker_element(each, number) for number, each in enumerate(texts)])
        for _ in range(_TIMES if mutable else 0):
            found.at += _SECONDS
            found.take(found.updates(range(regions)))
        return len(json.dumps(found.query.encode()))

    return (size(mutable=True) - size(mutable=False)) / regions


def on_spark(regions: int) -> float:
    """How many updates a second a trunk takes."""
    print(f"history: {regions:,} tickers on Spark", file=sys.stderr)
    random = Random(1)
    with workshop() as (spark, folder):
        stream = folder / "in"
        stream.mkdir()
        for number in range(_FILES):
            lines = (
                replacement(random.randrange(regions), random.randint(50, 200), number) if number else ticker(each, 100)
                for each in range(regions)
            )
            (stream / str(number)).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        source = Source("tickers", stream, "lines", root="tickers", updates=True)
        seconds, outcome = of_trunk(spark, [source], {"risen": RISEN}, folder / "state")
        assert "<quote>" in "".join(outcome.answers["risen"])
    return regions / mean(seconds)


# --- the judge ----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Reevaluation:
    """Saxon over the same tickers, which it reads anew after each update."""

    read: Callable[[str], object]
    evaluate: Callable[[object], str]
    quotes: list[tuple[int, int]]
    """By ticker, the current quote and the one before."""
    random: Random = field(default_factory=lambda: Random(1))

    @staticmethod
    def of(count: int) -> Reevaluation:
        try:
            from saxonche import PySaxonProcessor
        except ImportError:
            raise UsageError("this bench needs Saxon", hint="install it with 'pip install saxonche'") from None
        processor = PySaxonProcessor(license=False)
        query = processor.new_xquery_processor()
        query.set_query_content(_SAXON)

        def evaluate(document: object) -> str:
            query.set_context(xdm_item=document)
            return str(query.run_query_to_string())

        random = Random(2)
        quotes = [(random.randint(50, 200), random.randint(50, 200)) for _ in range(count)]
        return Reevaluation(lambda text: processor.parse_xml(xml_text=text), evaluate, quotes)

    def round(self) -> tuple[float, float]:
        """The seconds of reading and of evaluating after an update."""
        number = self.random.randrange(len(self.quotes))
        self.quotes[number] = self.random.randint(50, 200), self.quotes[number][0]
        tickers = (
            f"<ticker><name>T{each}</name><quote>{now}</quote><before>{before}</before></ticker>"
            for each, (now, before) in enumerate(self.quotes)
        )
        text = f"<tickers>{''.join(tickers)}</tickers>"
        begin = perf_counter()
        document = self.read(text)
        read = perf_counter()
        assert "<quote>" in self.evaluate(document)
        return read - begin, perf_counter() - read
