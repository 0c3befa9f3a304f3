"""A display of one stream, shown item after item without a trunk."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from anabranch.branch.growing.machine import GrowingDisplay
from anabranch.branch.intake.entries import FeedOrigin, RawEntry
from anabranch.language import ast, check, parse
from anabranch.stream.elements import Item
from branch.feeding import Stream


def query_of(text: str) -> ast.Query:
    """A checked query over the stream 's'."""
    return check(parse(text), text).query


class Shown:
    """A query over the items of 's', whose root is 'r'."""

    def __init__(self, text: str) -> None:
        self._stream = Stream("s").for_branch()
        self.query = query_of(text)
        self.display = self.fresh()
        self._count = 0

    def fresh(self) -> GrowingDisplay:
        """The same query at its beginning."""
        return GrowingDisplay(self.query, {"s": self._stream})

    def show(self, items: Iterable[str]) -> None:
        """Show some items, one after the other."""
        for each in items:
            (cut,) = Stream("s", f"<r>{each}</r>").cuts[0]
            (item,) = self._stream.reader().elements([cut], "0")
            assert isinstance(item, Item)
            came = self.display.stream("s").came(
                RawEntry(FeedOrigin("s", 0, "0"), cut), item, {}, Fraction(self._count), self._count
            )
            self.display.moment(Fraction(self._count), item.place, ("s", came))
            self._count += 1
