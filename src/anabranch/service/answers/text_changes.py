"""What has changed in a text: the edits of a moment, brought into one order.

Edits come in the order in which a display has made them, each with its position at that time, and may touch the same
place again and again.
Here they become changes from left to right that do not overlap, at each place first what went and then what came.
So a change's position is that in the text as it is in the end, which is what one needs to mark it, and the changes
applied in turn lead there as well, since all in front of a change is then as it will be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from anabranch.algebra.display.display import Edit, Insert

_MOST_EDITS = 2_000
"""Of more, the changes are told as one: to bring them into order takes the square of their number."""


@dataclass(frozen=True, slots=True)
class TextChange:
    """Text that came or went at a position."""

    kind: Literal["insert", "remove"]
    position: int
    text: str


@dataclass(frozen=True, slots=True)
class _Kept:
    """A part of the text before."""

    start: int
    length: int


def applied(text: str, edits: Sequence[Edit]) -> str:
    """A text after some edits."""
    for each in edits:
        if isinstance(each, Insert):
            text = f"{text[: each.position]}{each.text}{text[each.position :]}"
        else:
            text = f"{text[: each.position]}{text[each.position + each.length :]}"
    return text


def changes_of(before: str, after: str, edits: Sequence[Edit]) -> list[TextChange]:
    """The changes from a text to the one after some edits."""
    if len(edits) > _MOST_EDITS:
        return _as_one(before, after)
    pieces: list[_Kept | str] = [_Kept(0, len(before))] if before else []
    for each in edits:
        place = _cut(pieces, each.position)
        if isinstance(each, Insert):
            pieces.insert(place, each.text)
        else:
            del pieces[place : _cut(pieces, each.position + each.length)]
    found: list[TextChange] = []
    old = new = 0
    come = ""
    for piece in (*pieces, _Kept(len(before), 0)):
        if isinstance(piece, str):
            come += piece
            continue
        gone = before[old : piece.start]
        if gone != come:
            found += [TextChange("remove", new, gone)] if gone else []
            found += [TextChange("insert", new, come)] if come else []
        new += len(come) + piece.length
        old = piece.start + piece.length
        come = ""
    return found


def _cut(pieces: list[_Kept | str], position: int) -> int:
    """Cut the pieces at a position; gives the place of the piece behind it."""
    passed = 0
    for place, piece in enumerate(pieces):
        length = len(piece) if isinstance(piece, str) else piece.length
        if passed == position:
            return place
        if passed + length > position:
            inside = position - passed
            pieces[place : place + 1] = (
                [piece[:inside], piece[inside:]]
                if isinstance(piece, str)
                else [_Kept(piece.start, inside), _Kept(piece.start + inside, piece.length - inside)]
            )
            return place + 1
        passed += length
    return len(pieces)


def _as_one(before: str, after: str) -> list[TextChange]:
    """One change: all between what two texts have in common at their ends."""
    most = min(len(before), len(after))
    front = next((at for at in range(most) if before[at] != after[at]), most)
    back = next((at for at in range(most - front) if before[-1 - at] != after[-1 - at]), most - front)
    gone, come = before[front : len(before) - back], after[front : len(after) - back]
    found = [TextChange("remove", front, gone)] if gone else []
    return [*found, TextChange("insert", front, come)] if come else found
