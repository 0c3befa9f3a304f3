"""What a branch gives: pieces of its answer in order, dead letters, and the places of what was late."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from anabranch.branch.held_items import Held, Kept
from anabranch.branch.ports import Output
from anabranch.errors import DynamicError
from anabranch.runtime.evolution.outlet import accent_text
from anabranch.runtime.units import NOTHING, Piece
from anabranch.stream.culprits import letter_for
from anabranch.stream.elements import LONGEST_RAW, Accent, Doubt, Place
from anabranch.stream.serialize import serialize


class Answers:
    """Writes the answers of one branch; between two values that meet there is a space, across epochs too."""

    def __init__(self, name: str, out: Output) -> None:
        self._name = name
        self._out = out
        self.over = False
        """Whether nothing comes any more, because the query could not survive an accent (LAWS 4.6)."""
        self._ended = False  # whether the last piece ended with a value
        self._noted: int | None = None  # the last item that was noted

    def give(self, named: Kept, held: Sequence[Held], *makes: Callable[[], Piece]) -> None:
        """The pieces of one item, window or tuple, all or none.

        Where one fails, the dead letter names those at fault of what is held, or else `named`.
        """
        if self.over:
            return
        try:
            pieces = [make() for make in makes]
        except DynamicError as error:
            self.bury(named, error, held)
            return
        for piece in pieces:
            self.write(piece)

    def write(self, piece: Piece) -> None:
        """The next piece of the answer."""
        if piece != NOTHING:
            text = f" {piece.text}" if self._ended and piece.begins else piece.text
            self._ended = piece.ends
            if text:
                self._out.piece(text)

    def announce(self, accents: Iterable[Accent | Doubt]) -> None:
        """Accents of the answer, in their place, and what is in doubt from there on."""
        for each in accents:
            self.write(Piece(accent_text(each), begins=False, ends=False))

    def extend(self, data: bytes, pieces: int, first: int) -> None:
        """The next pieces, one behind the other, none of which begins or ends with a value."""
        if self.over:
            return
        self._ended = False
        self._out.extend(data, pieces, first)

    def bury(self, kept: Kept, error: DynamicError, held: Sequence[Held] = ()) -> None:
        """Set an item, window or tuple aside (LAWS 2.4), under those at fault of what is held, or else an item."""
        if self.over:
            return
        nodes = ((each.kept, tree) for each in held for tree in each.kept.trees)
        self._out.bury(letter_for(error, nodes, _shown, self._name, kept))

    def late(self, kept: Kept) -> None:
        """Note an item that is late (LAWS 3.2), once however many windows it is late for."""
        if kept.number != self._noted:
            self._noted = kept.number
            self._out.late(kept.place)

    def save(self) -> dict[str, Any]:
        return {"ended": self._ended}

    def restore(self, meta: dict[str, Any]) -> None:
        """Take in what `save` gave."""
        self._ended = meta["ended"]


def _shown(kept: Kept) -> tuple[Place, str]:
    """An item as a dead letter shows it."""
    return kept.place, serialize(kept.written)[:LONGEST_RAW]
