"""What a strand tells of a moment to the one who puts strands together, as plain data that can be sent."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from anabranch.errors import DynamicError
from anabranch.stream.elements import DeadLetter, Place
from anabranch.values.numbers import read_fraction, write_fraction

_MOST = 1_000


class Entered(NamedTuple):
    """A new entry: before or after another one, or at the end."""

    number: int
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class Found:
    """What an entry gives to a part of the query now, or why it fails, and what was set aside on the way."""

    part: str
    entry: int
    data: Any
    error: DynamicError | None = None
    dead: tuple[DeadLetter, ...] = ()


@dataclass(frozen=True, slots=True)
class Told:
    """What a moment, the how manieth of all, has changed for one strand."""

    moment: int
    at: Fraction
    place: Place
    entered: tuple[Entered, ...] = ()
    left: tuple[int, ...] = ()
    found: tuple[Found, ...] = ()

    def to_json(self) -> str:
        found = [
            [
                each.part,
                each.entry,
                each.data,
                None if each.error is None else [each.error.message, each.error.code],
                [_letter(letter) for letter in each.dead],
            ]
            for each in self.found
        ]
        return json.dumps([self.moment, write_fraction(self.at), _place(self.place), self.entered, self.left, found])

    @staticmethod
    def from_json(text: str) -> Told:
        moment, at, place, entered, left, found = json.loads(text)
        return Told(
            moment,
            read_fraction(at),
            Place(*place),
            tuple(Entered(*each) for each in entered),
            tuple(left),
            tuple(
                Found(part, entry, data, _error(error), tuple(map(_read_letter, dead)))
                for part, entry, data, error, dead in found
            ),
        )


def _place(place: Place) -> list[Any]:
    return [place.stream, place.partition, place.offset]


def _letter(letter: DeadLetter) -> list[Any]:
    return [_place(letter.place), letter.reason, letter.raw, letter.code, letter.subscription]


def _read_letter(data: list[Any]) -> DeadLetter:
    place, *rest = data
    return DeadLetter(Place(*place), *rest)


def _error(data: Any) -> DynamicError | None:
    return None if data is None else DynamicError(data[0], code=data[1])


def packed(told: Sequence[Told]) -> Iterator[bytes]:
    """Some moments to be sent, a thousand at a time."""
    for start in range(0, len(told), _MOST):
        yield "\n".join(each.to_json() for each in told[start : start + _MOST]).encode()


def unpacked(data: bytes) -> Iterator[Told]:
    """What was sent at a time."""
    return (Told.from_json(line) for line in data.decode().split("\n"))
