"""What a query about the past of items answers: pieces that stand, or a display that is corrected."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any, Protocol

from anabranch.algebra.history.display import Piece as Shown
from anabranch.algebra.history.publishing import Published, Told, heartbeat
from anabranch.branch.display.publishing import wire_time
from anabranch.branch.past.queries import RecalledMember
from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.law.construct import content_text
from anabranch.law.env import Env
from anabranch.law.inputs import Arrival
from anabranch.law.paths import base_of
from anabranch.runtime.units import NOTHING, joined, piece_of
from anabranch.stream.elements import DeadLetter, Place
from anabranch.values.sequences import Values

_REGION = "all"


class Memory(Protocol):
    """What is remembered of streams, and a way to evaluate over it."""

    @property
    def now(self) -> Fraction: ...

    def value(self, expression: ast.Expression, env: Env, item: Arrival | None = None) -> Values: ...

    def drained(self) -> list[DeadLetter]: ...


class StandingAnswer:
    """Results that stand: each item adds a piece."""

    def __init__(self, member: RecalledMember) -> None:
        standing = member.query.standing
        assert standing is not None
        assert standing.hole is not None
        self._standing, self._hole, self._out = standing, standing.hole, member.out
        source = base_of(standing.fors[0].source if isinstance(self._hole, ast.Flwor) else self._hole)
        assert isinstance(source, ast.Source)
        self._stream = source.name
        self._after_value = False

    def take(self, memory: Memory, place: Place, item: Arrival | None) -> None:
        """Something has come, from a place: an item, or what only moves time or edits a document."""
        if item is None or item.place.stream != self._stream:
            return
        piece = piece_of(memory.value(self._hole, self._standing.env, item), self._standing.scope)
        text = "".join(joined((piece,), self._after_value))
        if piece != NOTHING:
            self._after_value = piece.ends
        if text:
            self._out.piece(text)
        for letter in memory.drained():
            self._out.bury(letter)

    def save(self) -> tuple[Any, list[str]]:
        return self._after_value, []

    def restore(self, data: Any, shown: list[str]) -> None:
        self._after_value = data


class DisplayAnswer:
    """An answer that is corrected with every element: one region, which is replaced."""

    def __init__(self, member: RecalledMember) -> None:
        self._query, self._name, self._out = member.query.query, member.name, member.out
        self._display = Published()
        self._display.region(_REGION)
        self._text: str | None = None
        self._failing: dict[DeadLetter, None] = {}
        """What was set aside at the latest moment; it is told once, and again when it has been away."""

    def take(self, memory: Memory, place: Place, item: Arrival | None) -> None:
        """Something has come, from a place."""
        letters: list[DeadLetter] = []
        text = ""
        try:
            text = content_text(memory.value(self._query.body, Env.of(self._query)))
        except DynamicError as error:
            known = next((each for each in self._failing if not each.raw and each.reason == error.message), None)
            letters = [known or DeadLetter(place, error.message, "", error.code, self._name)]
        letters += memory.drained()
        for letter in letters:
            if letter not in self._failing:
                self._out.bury(letter)
        self._failing = dict.fromkeys(letters)
        if text != self._text:
            self._text = text
            self._display.rewrite(_REGION, [Shown(text)] if text else [])
            at = wire_time(memory.now)
            self._out.piece("".join((*self._display.wire(at), heartbeat(at), "\n")))

    def save(self) -> tuple[Any, list[str]]:
        letters = [
            [each.place.stream, each.place.partition, each.place.offset, each.reason, each.raw, each.code]
            for each in self._failing
        ]
        told = [self._display.told.times, self._display.told.known]
        return [told, json.dumps(letters)], [] if self._text is None else [self._text]

    def restore(self, data: Any, shown: list[str]) -> None:
        told, letters = data
        for stream, partition, offset, *rest in json.loads(letters):
            reason, raw, code = rest
            self._failing[DeadLetter(Place(stream, partition, offset), reason, raw, code, self._name)] = None
        if shown:
            (self._text,) = shown
            self._display.rewrite(_REGION, [Shown(self._text)] if self._text else [])
        self._display.resume(Told(*told))
