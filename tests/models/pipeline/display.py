"""The display: an answer as text that is edited in place, and the edits (history paper, section 9).

It shows what is in its regions, as serialising the answer anew would write it; every change of a region changes the
text by edits.
A position is the sum of the lengths before it, so an edit costs the logarithm of what is on display, and its own text.

A piece is text that stands for some results.
Two computed values that stand side by side want a space between them, wherever they come from (XQuery 3.1, section
3.9.1), so a piece says whether it begins and ends with one; the space belongs to the second, comes when two meet and
goes when they part.
An element is a frame around its content, and is written `<a/>` as long as that is empty.

For whoever has whole contents there are `region`, `rewrite` and `delete`; events come through the universal wrapper
(`showing.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from anabranch.algebra.display.display import Edit, Insert, Remove
from models.pipeline.bodies import Body, Chain, Frame, Version
from models.pipeline.events import Namespaces
from models.pipeline.keeping import decode, encode
from models.pipeline.qualifier import Qualifier
from models.pipeline.regions import Regions

_BITS = 48
_LENGTH = (1 << _BITS) - 1
"""A measure is one whole number: the length in its lower bits, and above them how many pieces there are."""
_LONGEST = 4_000
"""Pieces are not joined beyond this: to write a long text a little at a time must not cost its square."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Text on display; of an element the start tag without its end, and with its end tag in `close`."""

    text: str
    begins: bool = False
    """Whether it begins with a computed value, not with a node."""
    ends: bool = False
    is_spaced: bool = False
    """Whether a space is written before it."""
    close: str = ""
    namespaces: Namespaces = ()
    """Those that the start tag declares."""


class _Texts:
    """What texts come to: lengths, and the number of pieces. A frame counts as two, for its two edges."""

    zero = 0

    def measure(self, piece: Piece) -> int:
        return (1 << _BITS) + len(piece.text) + piece.is_spaced

    def around(self, piece: Piece, inside: int) -> int:
        tags = len(piece.text) + (2 if self.is_empty(inside) else 1 + len(piece.close))
        return (2 << _BITS) + tags + inside

    def inset(self, piece: Piece) -> int:
        return (1 << _BITS) + len(piece.text) + 1

    def is_empty(self, inside: int) -> bool:
        return not inside & _LENGTH

    def join(self, one: Piece, other: Piece) -> Piece | None:
        are_nodes = not (one.begins or one.ends or other.begins or other.ends)
        return Piece(one.text + other.text) if are_nodes and len(one.text) < _LONGEST else None

    def encode(self, piece: Piece) -> Any:
        return [piece.text, piece.begins, piece.ends, piece.is_spaced, piece.close, piece.namespaces]

    def decode(self, data: Any) -> Piece:
        text, begins, ends, is_spaced, close, namespaces = data
        return Piece(text, begins, ends, is_spaced, close, tuple((prefix, uri) for prefix, uri in namespaces))


_Body: TypeAlias = Body[Piece, int]
_Version: TypeAlias = Version[Piece, int]


class Display(Regions[Piece, int]):
    """A text in regions, and what has changed in it."""

    def __init__(self) -> None:
        super().__init__(_Texts())
        self._edits: list[Edit] = []
        self._has_values = False
        """Whether there ever was a value: without one nobody has to look for spaces."""
        self._elements: dict[str, Frame[Piece, int]] = {}

    @property
    def text(self) -> str:
        """All that is on display."""
        return self._text(self.root)

    @property
    def length(self) -> int:
        return self.total & _LENGTH

    def encode(self) -> Any:
        """All that is on display, and what may come to be, as data that JSON can hold; ask for the edits first."""
        data, numbers = encode(self)
        kept = {id: numbers[each.inside] for id, each in self._elements.items() if each.inside in numbers}
        return [data, kept]

    @staticmethod
    def decode(data: Any) -> Display:
        """A display that goes on from there."""
        regions, elements = data
        display = Display()
        bodies = decode(display, regions)
        display._has_values = any(isinstance(each, Piece) and each.begins for each in display._parts.values())
        for id, number in elements.items():
            frame = bodies[number].owner
            assert isinstance(frame, Frame), "an element has a frame"
            display._elements[id] = frame
        return display

    def edits(self) -> list[Edit]:
        """What was edited since this was last asked."""
        found, self._edits = self._edits, []
        return found

    def span(self, id: str) -> tuple[int, int]:
        """Where a region stands that shows: its position, and the length of what shows of it."""
        chain = self.names[id]
        return self.start(chain.body, chain.handle) & _LENGTH, chain.body.parts[chain.handle] & _LENGTH

    # --- regions by name ------------------------------------------------------------------------------------

    def element(self, id: str, start: str, close: str, inside: str | None = None, namespaces: Namespaces = ()) -> None:
        """An element that regions can stand in, at the end of another or of all; `start` is its tag up to the `>`.

        `namespaces` are those that the tag declares.
        """
        self._elements[id] = self.frame(self._inside(inside), Piece(start, close=close, namespaces=namespaces))

    def write(self, pieces: Iterable[Piece], inside: str | None = None) -> None:
        """Text that nobody will change, at the end of an element, of a region's newest version, or of all."""
        self._fill(self._inside(inside), pieces)

    def region(
        self,
        id: str,
        pieces: Iterable[Piece] = (),
        *,
        inside: str | None = None,
        before: str | None = None,
        after: str | None = None,
        qualifier: Qualifier | None = None,
    ) -> None:
        """A new region: directly before or after another one, or at the end of an element, a region, or of all."""
        anchor = before if after is None else after
        body = self._inside(inside) if anchor is None else self.names[anchor].body
        chain = self.chain(
            body,
            qualifier,
            before=None if before is None else self.names[before],
            after=None if after is None else self.names[after],
        )
        self.name(id, chain)
        self._fill(chain.versions[0].body, pieces)

    def rewrite(self, id: str, pieces: Iterable[Piece]) -> None:
        """A new version of a region."""
        body = self.replace(self.names[id])
        if body is not None:
            self._fill(body, pieces)

    def delete(self, id: str) -> None:
        """Take a region out, with its past: nobody will name it again."""
        self.remove(self.names[id])

    def _inside(self, id: str | None) -> _Body:
        if id is None:
            return self.root
        frame = self._elements.get(id)
        return self.names[id].versions[0].body if frame is None else frame.inside

    def _fill(self, body: _Body, pieces: Iterable[Piece]) -> None:
        for piece in pieces:
            self.append(body, piece)

    # --- text -----------------------------------------------------------------------------------------------

    def _text(self, body: _Body) -> str:
        parts: list[str] = []
        for piece, frame, is_end in self.walk(body):
            if frame is None:
                parts.append(f" {piece.text}" if piece.is_spaced else piece.text)
            elif not is_end:
                parts.append(piece.text + ("/>" if frame.is_empty else ">"))
            elif not frame.is_empty:
                parts.append(piece.close)
        return "".join(parts)

    def _insert(self, position: int, text: str) -> None:
        if text:
            self._edits.append(Insert(position & _LENGTH, text))

    def _remove(self, position: int, length: int) -> None:
        if length:
            self._edits.append(Remove(position & _LENGTH, length))

    # --- what has changed -----------------------------------------------------------------------------------

    def entered(self, body: _Body, handle: int, offset: int, piece: Piece) -> None:
        self.changed(body)
        self._has_values = self._has_values or piece.begins
        scope, start = self.scope(body)
        start += body.parts.before(handle)
        if scope is self.root:
            self._insert(start + offset, f"{piece.text}/>" if piece.close else piece.text)
        self._space(scope, start >> _BITS)
        self._space(scope, (start + body.parts[handle]) >> _BITS)

    def shown(self, version: _Version) -> None:
        self.changed(version.body)
        scope, start = self.scope(version.body)
        if scope is self.root:
            self._insert(start, self._text(version.body))
        if total := version.body.parts.total:
            self._space(scope, start >> _BITS)
            self._space(scope, (start + total) >> _BITS)

    def leaving(self, version: _Version) -> None:
        self.changed(version.body)
        scope, start = self.scope(version.body)
        if scope is self.root:
            self._remove(start, version.body.parts.total & _LENGTH)

    def left(self, version: _Version, at: int) -> None:
        if version.body.parts.total:
            self._space(version.body, 0)  # what it begins with has no neighbour any more
            self._space(self.scope(version.chain.body)[0], at >> _BITS)

    def flipped(self, frame: Frame[Piece, int]) -> None:
        scope, start = self.scope(frame.body)
        if scope is self.root:
            start += frame.body.parts.before(frame.handle) + len(frame.piece.text)
            around = ">" + frame.piece.close
            gone, comes = (len(around), "/>") if frame.is_empty else (len("/>"), around)
            self._remove(start, gone)
            self._insert(start, comes)

    def changed(self, body: _Body) -> None:
        """The text in a body has changed."""

    # --- spaces between values ------------------------------------------------------------------------------

    def _space(self, scope: _Body, number: int) -> None:
        """See to it that a space stands before a piece of a scope exactly if two values meet there."""
        if not self._has_values:
            return
        found = self._piece(scope, number)
        if found is None or not found[2].begins:
            return
        body, handle, piece = found
        left = self._piece(scope, number - 1) if number else None
        is_spaced = left is not None and left[2].ends
        if piece.is_spaced is is_spaced:
            return
        self._parts[handle] = replace(piece, is_spaced=is_spaced)
        self.changed(body)
        is_shown = scope is self.root
        if is_shown and not is_spaced:
            self._remove(self.start(body, handle), 1)
        difference = 1 if is_spaced else -1
        body.parts.set(handle, body.parts[handle] + difference)
        self._carry(body, difference)
        if is_shown and is_spaced:
            self._insert(self.start(body, handle), " ")

    def _piece(self, body: _Body, number: int) -> tuple[_Body, int, Piece] | None:
        """The piece of that number among those that show of a body; None for an element's edges, and past the end."""
        while (found := body.parts.reaching((number + 1) << _BITS)) is not None:
            handle, before = found
            number -= before >> _BITS
            match self._parts[handle]:
                case Chain() as chain:
                    for version in chain.versions:
                        if version.shows:
                            body, count = version.body, version.body.parts.total >> _BITS
                            if number < count:
                                break
                            number -= count
                case Frame() as frame:
                    if number == 0 or number > frame.inside.parts.total >> _BITS:
                        return None
                    body, number = frame.inside, number - 1
                case piece:
                    return body, handle, piece
        return None
