"""Single items answered by the law: those that columns leave open, for the queries that they leave open."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from anabranch.columnar.items.course import Course
from anabranch.columnar.items.delivery import Answers, Piece
from anabranch.columnar.items.programs import ItemQuery
from anabranch.errors import DynamicError
from anabranch.stream.elements import LONGEST_RAW, DeadLetter, Item
from anabranch.stream.serialize import serialize


class ByLaw:
    """Answers single items by the law, and holds the pieces."""

    def __init__(self, members: Sequence[ItemQuery], out: Answers, course: Course | None) -> None:
        self._members = members
        self._out = out
        self._course = course
        self._pieces: list[Piece] = []
        self.held = 0

    def answer(self, entry: int, item: Item, queries: Iterable[int]) -> None:
        """Show an item to the queries for which its entry is open."""
        for number in queries:
            member = self._members[number]
            try:
                follows = self._course.follows if self._course else None
                piece = follows.piece(number, item) if follows else member.slow(item.tree)
            except DynamicError as error:  # LAWS 2.4: it concerns this query and this item only
                raw = serialize(item.tree)[:LONGEST_RAW]
                for _, name in member.subscribers:
                    self._out.bury(DeadLetter(item.place, error.message, raw, error.code, name))
            else:
                self.add(number, entry, piece)

    def add(self, number: int, entry: int, text: str) -> None:
        """Hold what an entry gives to a query."""
        if text:
            self._pieces.append(Piece(number, entry, text.encode()))
            self.held += len(text)

    def take(self) -> list[Piece]:
        """What is held, which is then no longer held."""
        pieces, self._pieces, self.held = self._pieces, [], 0
        return pieces
