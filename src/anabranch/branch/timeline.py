"""Timelines: an answer that only grows, with the moment of each piece.

They are only for users who ask for them; an answer itself has no times.
A moment is behind each element, in the order of LAWS 1.2, and where documents are edited also behind parts of one.
A record is a line of JSON, `[3, "25/2", "<a/>"]`: the number of the moment, its time, and a piece of the answer.
The first moment has a record without a piece: from then on the answer has its frame.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from operator import itemgetter
from typing import Any

from anabranch.branch.ports import Output
from anabranch.stream.elements import DeadLetter, Place


@dataclass(frozen=True, slots=True)
class AnswerMoment:
    """A point of the merged streams: its number, and the latest time so far."""

    number: int = 0
    now: Fraction = Fraction(0)

    def behind(self, time: Fraction) -> AnswerMoment:
        """The moment after this one; time does not run back (LAWS 1.3)."""
        return AnswerMoment(self.number + 1, max(self.now, time))

    def save(self) -> list[Any]:
        return [self.number, str(self.now)]

    @staticmethod
    def of(saved: list[Any]) -> AnswerMoment:
        """The moment from `save`."""
        number, now = saved
        return AnswerMoment(number, Fraction(now))


class Timed:
    """An output whose pieces become records."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self.moment = AnswerMoment()

    def move(self, moment: AnswerMoment) -> None:
        """Begin a moment."""
        begins = self.moment.number == 0
        self.moment = moment
        if begins:
            self.piece("")

    def piece(self, text: str) -> None:
        self._out.piece(f"{json.dumps([*self.moment.save(), text])}\n")

    def extend(self, data: bytes, pieces: int, first: int) -> None:
        raise AssertionError("what is answered in columns has no moments")

    def bury(self, letter: DeadLetter) -> None:
        self._out.bury(letter)

    def late(self, place: Place) -> None:
        self._out.late(place)


def moments(texts: Iterable[str]) -> Iterator[tuple[Fraction, str]]:
    """The growth of an answer, moment by moment, from texts of complete records."""
    records = (json.loads(line) for text in texts for line in text.splitlines())
    for (_, now), several in groupby(records, key=itemgetter(0, 1)):
        yield Fraction(now), "".join(text for _, _, text in several)
