"""What an update costs inside a large entry, and among very many regions.

Query 1 of the history paper over one `biblio` with all its books in it, whose prices are replaced: an update concerns
one book, however many stand beside it.
And the ticker of `steady.py` with very many regions: the memory and the state of each, and the cost of an update.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random
from time import perf_counter, process_time

from anabranch.bench.harness.timing import Figures
from anabranch.bench.memory import resident
from anabranch.bench.parts.steady import RISEN, replacement, ticker
from anabranch.branch.display.continuous import ContinuousQuery
from anabranch.branch.document.state import rare_gc
from anabranch.language import check, parse
from anabranch.stream.elements import Place, StreamElement
from anabranch.stream.limits import MEBIBYTE, Limits
from anabranch.stream.reading.parse import implied_root, parse_item
from anabranch.stream.reading.wire import element_of
from anabranch.stream.tree import STREAM_NAMESPACE

_LIMITS = Limits(item_bytes=60 * MEBIBYTE, nodes=5_000_000)
BOOKS = """
    <books>{
      for $b in stream("books")//biblio[publisher = "Wiley"]/books
      where $b/author/lastname = "Smith"
      order by $b/price
      return <book>{ $b/title, $b/price }</book>
    }</books>"""
"""Query 1 of the history paper."""


def element(text: str, stream: str, offset: int) -> StreamElement:
    """An element of a stream from its text."""
    return element_of(parse_item(text.encode(), _LIMITS), Place(stream, "bench", offset))


def _query(text: str, stream: str) -> ContinuousQuery:
    checked = check(parse(text), text, inputs={stream: None}, functions=()).query
    return ContinuousQuery(checked, {stream: implied_root(stream)}, limits=_LIMITS)


@dataclass(slots=True)
class Books:
    """Query 1 at work over one `biblio` with so many books; every second book is by Smith."""

    query: ContinuousQuery
    count: int
    random: Random = field(default_factory=lambda: Random(1))
    at: int = 0

    @staticmethod
    def of(count: int) -> Books:
        print(f"history: a biblio with {count:,} books", file=sys.stderr)
        found = Books(_query(BOOKS, "books"), count)
        books = "".join(
            f"<books><title>T{each}</title><author><lastname>{('Smith', 'Jones')[each % 2]}</lastname></author>"
            f'<s:mutable id="{each}"><price>{found.price()}</price></s:mutable></books>'
            for each in range(count)
        )
        text = f'<biblio xmlns:s="{STREAM_NAMESPACE}"><publisher>Wiley</publisher>{books}</biblio>'
        _take(found.query, "books", [element(text, "books", 0)], 0)
        return found

    def price(self) -> int:
        return self.random.randint(10, 99_999)

    def round(self, updates: int) -> float:
        """The seconds of new prices for this many random books."""
        self.at += 1
        start = f'<s:replace xmlns:s="{STREAM_NAMESPACE}" at="{self.at}"'
        texts = [
            f'{start} target="{self.random.randrange(self.count)}"><price>{self.price()}</price></s:replace>'
            for _ in range(updates)
        ]
        return _take(self.query, "books", [element(each, "books", 1) for each in texts], self.at)


def _take(query: ContinuousQuery, stream: str, elements: Sequence[StreamElement], at: int) -> float:
    begin = perf_counter()
    with rare_gc():
        for each in elements:
            for _ in query.take(stream, each, Fraction(at)):
                pass
    return perf_counter() - begin


def many_regions(regions: int, updates: int) -> Figures:
    """The bytes of memory and of written state for each of very many regions, and the processor time of an update."""
    print(f"history: {regions:,} regions", file=sys.stderr)
    random = Random(1)
    before, begin = resident(os.getpid())[0], process_time()
    query = _query(RISEN, "tickers")
    for first in range(0, regions, 10_000):
        numbers = range(first, min(regions, first + 10_000))
        _take(query, "tickers", [element(ticker(each, 100), "tickers", each) for each in numbers], 0)
    query.settled()
    loaded = process_time() - begin
    chosen = random.sample(range(regions), min(updates, regions))
    texts = [replacement(each, random.randint(50, 200), 1) for each in chosen]
    elements = [element(each, "tickers", 1) for each in texts]
    begin = process_time()
    _take(query, "tickers", elements, 1)
    seconds = process_time() - begin
    layer = len(json.dumps(query.encode(whole=False)))
    return {
        "regions": regions,
        "memory_bytes_per_region": 1e6 * (resident(os.getpid())[0] - before) / regions,
        "state_bytes_per_region": layer / len(chosen),
        "load_us": 1e6 * loaded / regions,
        "update_us": 1e6 * seconds / len(chosen),
    }
