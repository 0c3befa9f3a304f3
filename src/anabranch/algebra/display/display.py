"""The display: an answer as text that is edited in place, and the edits (history paper, section 9).

The answer is a tree: elements with tags, and *regions*, which have ids and whose content is replaced; its leaves are
pieces of text.
A change of a region edits the text, and the text always equals a fresh serialisation of the answer.
A position is the sum of the lengths before it (`ordered.py`), so an edit costs the logarithm of the display, and its
own text.

Adjacent computed values have a space between them (XQuery 3.1, section 3.9.1).
So a piece knows whether it begins and ends with a value; the space belongs to the second, is added when two become
adjacent, and removed when they no longer are.
An element without text in it is written `<a/>`.

A region has only its present version; past versions belong to the documents (`branch/document/`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

from anabranch.algebra.display.ordered import Ordered

Namespaces: TypeAlias = tuple[tuple[str, str], ...]

_BITS = 48
_LENGTH = (1 << _BITS) - 1
"""A measure is one integer: the length in its lower bits, and above them the number of pieces."""
_LONGEST = 4_000
"""The longest joined piece: writing a long text a little at a time must not cost its square."""


_NO_PARTS: Ordered[int, int] = Ordered(0)
"""The parts of a region that was removed for good."""


class Insert(NamedTuple):
    """Text is inserted at a position."""

    position: int
    text: str


class Remove(NamedTuple):
    """Text after a position is removed; the paper's `remove` takes an end position (LAWS 5.6)."""

    position: int
    length: int


Edit: TypeAlias = Insert | Remove
"""Edits apply in turn; each position is that at the time of its edit."""


class Piece(NamedTuple):
    """Text on display."""

    text: str
    begins: bool = False
    """Whether it begins with a computed value, not with a node."""
    ends: bool = False
    is_spaced: bool = False
    """Whether a space is written before it."""

    @property
    def measure(self) -> int:
        return (1 << _BITS) + len(self.text) + self.is_spaced


class SinglePart:
    """A piece that stands alone in a body: what `Ordered` says of one handle."""

    __slots__ = ("last", "total")

    def __init__(self, handle: int, measure: int) -> None:
        self.last = handle
        self.total = measure

    def __iter__(self) -> Iterator[int]:
        yield self.last

    def __getitem__(self, handle: int) -> int:
        return self.total

    def before(self, handle: int) -> int:
        return 0

    def reaching(self, bound: int) -> tuple[int, int] | None:
        return (self.last, 0) if self.total >= bound else None

    def set(self, handle: int, measure: int) -> None:
        self.total = measure

    def among_others(self) -> Ordered[int, int]:
        """The same, to which others can be added."""
        return Ordered(0, [(self.last, self.total)])


class Body:
    """Pieces, elements and regions in order, by their handles; the whole answer is one."""

    __slots__ = ("around", "handle", "parts")

    def __init__(self, around: Body | None, handle: int) -> None:
        self.around = around
        """The body around it; None for the whole answer."""
        self.handle = handle
        self.parts: Ordered[int, int] | SinglePart = Ordered(0)

    @property
    def several(self) -> Ordered[int, int]:
        """Its parts, to which others can be added."""
        if isinstance(self.parts, SinglePart):
            self.parts = self.parts.among_others()
        return self.parts

    @property
    def measure(self) -> int:
        """The length of its text, and the number of its pieces."""
        return self.parts.total

    @property
    def inset(self) -> int:
        """The measure before its parts."""
        return 0


class DisplayRegion(Body):
    """Content that can be replaced, under its ids."""

    __slots__ = ("ids",)

    def __init__(self, around: Body, handle: int) -> None:
        super().__init__(around, handle)
        self.ids: set[str] = set()


class DisplayElement(Body):
    """An element; `start` is its tag up to the `>`, and `namespaces` are those that the tag declares."""

    __slots__ = ("close", "id", "is_empty", "namespaces", "start")

    def __init__(self, around: Body, handle: int, id: str, start: str, close: str, namespaces: Namespaces) -> None:
        super().__init__(around, handle)
        self.id, self.start, self.close, self.namespaces = id, start, close, namespaces
        self.is_empty = True

    @property
    def measure(self) -> int:
        """A tag counts as two pieces, for its two ends: nothing inside is adjacent to anything outside."""
        tags = len(self.start) + (1 + len(self.close) if self.parts.total & _LENGTH else 2)
        return (2 << _BITS) + tags + self.parts.total

    @property
    def inset(self) -> int:
        return (1 << _BITS) + len(self.start) + 1


class Display:
    """A text in regions, and its edits."""

    def __init__(self) -> None:
        self.root = Body(None, -1)
        self.names: dict[str, DisplayRegion] = {}
        """The regions by id; an id names the region that took it last (LAWS 5.3)."""
        self._elements: dict[str, DisplayElement] = {}
        self._parts: dict[int, Piece | DisplayRegion | DisplayElement] = {}
        self._next = 0
        self._edits: list[Edit] = []
        self._has_values = False
        """Whether there ever was a value: without one, spaces are not considered."""

    @property
    def text(self) -> str:
        """The whole text on display."""
        return self._text(self.root)

    @property
    def length(self) -> int:
        return self.root.measure & _LENGTH

    @property
    def size(self) -> int:
        """The number of parts."""
        return len(self._parts)

    def edits(self) -> list[Edit]:
        """The edits since the last call."""
        found, self._edits = self._edits, []
        return found

    # --- regions by name ------------------------------------------------------------------------------------

    def element(self, id: str, start: str, close: str, inside: str | None = None, namespaces: Namespaces = ()) -> None:
        """Add an element that can contain regions, at the end of another or of all; `start` is its tag up to the `>`.

        `namespaces` are those that the tag declares.
        """
        self._elements[id] = self.add_element(self._inside(inside), id, start, close, namespaces)

    def write(self, pieces: Iterable[Piece], inside: str | None = None) -> None:
        """Append text that never changes to an element, a region, or the whole."""
        self._fill(self._inside(inside), pieces)

    def region(
        self,
        id: str,
        pieces: Iterable[Piece] = (),
        *,
        inside: str | None = None,
        before: str | None = None,
    ) -> None:
        """Add a region: directly before another one, or at the end of an element, a region, or the whole."""
        anchor = None if before is None else self.names[before]
        body = self._inside(inside) if anchor is None else anchor.around
        assert body is not None, "a region stands in something"
        rest = iter(pieces)
        region = self.add_region(body, anchor, piece=next(rest, None))
        self.name(id, region)
        self._fill(region, rest)

    def rewrite(self, id: str, pieces: Iterable[Piece]) -> None:
        """Replace the content of a region."""
        self.clear(self.names[id])
        self._fill(self.names[id], pieces)

    def delete(self, id: str) -> None:
        """Remove a region for good."""
        region, around = self.names[id], self.names[id].around
        assert around is not None, "a region stands in something"
        self.changed(around)
        total = region.parts.total
        start = self._start(around) + around.several.leave(region.handle)
        self._remove(start, total & _LENGTH)
        self._forget(region)
        region.parts = _NO_PARTS
        self._carry(around)
        del self._parts[region.handle]
        for each in region.ids:
            del self.names[each]
        if total:
            self._space(start >> _BITS)

    def name(self, id: str, region: DisplayRegion) -> None:
        """Let an id name this region from now on."""
        before = self.names.get(id)
        if before is not None:
            before.ids.discard(id)
        self.names[id] = region
        region.ids.add(id)

    def _inside(self, id: str | None) -> Body:
        if id is None:
            return self.root
        return self._elements[id] if id in self._elements else self.names[id]

    def _fill(self, body: Body, pieces: Iterable[Piece]) -> None:
        for piece in pieces:
            self.append(body, piece)

    # --- bodies ---------------------------------------------------------------------------------------------

    def append(self, body: Body, piece: Piece) -> None:
        """Append a piece to a body."""
        last = body.parts.last
        if last is not None and (joined := _joined(self._parts[last], piece)) is not None:
            offset = body.parts[last]
            self._parts[last] = joined
            body.parts.set(last, joined.measure)
            self._carry(body)
            self._entered(body, last, offset, piece)
            return
        handle = self._next
        self._place(body, piece, piece.measure)
        self._carry(body)
        self._entered(body, handle, 0, piece)

    def add_element(self, body: Body, id: str, start: str, close: str, namespaces: Namespaces) -> DisplayElement:
        """Append an empty element to a body."""
        element = DisplayElement(body, self._next, id, start, close, namespaces)
        self._place(body, element, element.measure)
        self._carry(body)
        self._entered(body, element.handle, 0, Piece(f"{start}/>"))
        return element

    def add_region(
        self,
        body: Body,
        before: DisplayRegion | None = None,
        after: DisplayRegion | None = None,
        *,
        piece: Piece | None = None,
    ) -> DisplayRegion:
        """Add a region, empty or with a piece: at the end of a body, or directly beside another region."""
        region = DisplayRegion(body, self._next)
        start = self._place(body, region, 0 if piece is None else piece.measure, before, after)
        if piece is None:
            self.changed(region)
            return region
        region.parts = SinglePart(self._next, piece.measure)
        self._parts[self._next] = piece
        self._next += 1
        self._carry(body)
        self._shown(region, self._start(body) + start, piece, piece.measure)
        return region

    def clear(self, region: DisplayRegion) -> None:
        """Remove the content of a region."""
        self.changed(region)
        start, total = self._start(region), region.parts.total
        self._remove(start, total & _LENGTH)
        self._forget(region)
        region.parts = Ordered(0)
        self._carry(region)
        if total:
            self._space(start >> _BITS)

    def changed(self, body: Body) -> None:
        """Note that the text in a body has changed."""

    def _place(
        self,
        body: Body,
        part: Piece | DisplayRegion | DisplayElement,
        measure: int,
        before: DisplayRegion | None = None,
        after: DisplayRegion | None = None,
    ) -> int:
        """Put a part into a body, under the next handle; gives its place there."""
        handle, parts = self._next, body.several
        self._next += 1
        self._parts[handle] = part
        if before is not None:
            return parts.enter_before(before.handle, handle, measure)
        if after is not None:
            parts.insert_after(after.handle, handle, measure)
            return parts.before(handle)
        parts.append(handle, measure)
        return parts.total - measure

    def _forget(self, body: Body) -> None:
        """Drop the content of a body."""
        pending = [body]
        while pending:
            for handle in pending.pop().parts:
                part = self._parts.pop(handle)
                if isinstance(part, Body):
                    pending.append(part)
                for id in part.ids if isinstance(part, DisplayRegion) else ():
                    del self.names[id]

    # --- text -----------------------------------------------------------------------------------------------

    def _text(self, body: Body) -> str:
        out: list[str] = []
        pending: list[str | Piece | DisplayRegion | DisplayElement] = [*self._reversed(body)]
        while pending:
            match pending.pop():
                case str(text):
                    out.append(text)
                case Piece(text, is_spaced=is_spaced):
                    out.append(f" {text}" if is_spaced else text)
                case DisplayElement(is_empty=True) as element:
                    out.append(f"{element.start}/>")
                case DisplayElement() as element:
                    out.append(f"{element.start}>")
                    pending += (element.close, *self._reversed(element))
                case DisplayRegion() as region:
                    pending += self._reversed(region)
        return "".join(out)

    def _reversed(self, body: Body) -> Iterator[Piece | DisplayRegion | DisplayElement]:
        return (self._parts[handle] for handle in reversed(list(body.parts)))

    def _start(self, body: Body) -> int:
        """The start position of a body's parts."""
        start = body.inset
        while (around := body.around) is not None:
            start += around.parts.before(body.handle) + around.inset
            body = around
        return start

    def _insert(self, position: int, text: str) -> None:
        if text:
            self._edits.append(Insert(position & _LENGTH, text))

    def _remove(self, position: int, length: int) -> None:
        if length:
            self._edits.append(Remove(position & _LENGTH, length))

    def _carry(self, body: Body) -> None:
        """Propagate a changed measure to all bodies around."""
        while (around := body.around) is not None:
            around.parts.set(body.handle, body.measure)
            if isinstance(body, DisplayElement) and body.is_empty is not (not body.parts.total & _LENGTH):
                body.is_empty = not body.is_empty
                start = self._start(body) - 1  # where the `>` is, or the `/>`
                long, short = f">{body.close}", "/>"
                gone, comes = (long, short) if body.is_empty else (short, long)
                self._remove(start, len(gone))
                self._insert(start, comes)
            body = around

    def _entered(self, body: Body, handle: int, offset: int, piece: Piece) -> None:
        """Note that a piece was added to a part, at its end; measures are up to date."""
        start = self._start(body) + body.parts.before(handle)
        self._shown(body, start, piece, body.parts[handle], offset)

    def _shown(self, body: Body, start: int, piece: Piece, measure: int, offset: int = 0) -> None:
        """Note that a piece was added at an offset of a part, which begins at `start` and has this measure now."""
        self.changed(body)
        self._has_values = self._has_values or piece.begins
        self._insert(start + offset, piece.text)
        self._space(start >> _BITS)
        self._space((start + measure) >> _BITS)

    # --- spaces between values ------------------------------------------------------------------------------

    def _space(self, number: int) -> None:
        """Set the space before a piece, by its number among all, exactly where two values are adjacent."""
        if not self._has_values:
            return
        found = self._piece(number)
        if found is None or not found[2].begins:
            return
        body, handle, piece = found
        left = self._piece(number - 1) if number else None
        is_spaced = left is not None and left[2].ends
        if piece.is_spaced is is_spaced:
            return
        self._parts[handle] = spaced = piece._replace(is_spaced=is_spaced)
        self.changed(body)
        if not is_spaced:
            self._remove(self._start(body) + body.parts.before(handle), 1)
        body.parts.set(handle, spaced.measure)
        self._carry(body)
        if is_spaced:
            self._insert(self._start(body) + body.parts.before(handle), " ")

    def _piece(self, number: int) -> tuple[Body, int, Piece] | None:
        """The piece of a number; None for an element's ends, and past the end."""
        body = self.root
        while (found := body.parts.reaching((number + 1) << _BITS)) is not None:
            handle, before = found
            number -= before >> _BITS
            match self._parts[handle]:
                case DisplayRegion() as region:
                    body = region
                case DisplayElement() as element:
                    if number == 0 or number > element.parts.total >> _BITS:
                        return None
                    body, number = element, number - 1
                case piece:
                    return body, handle, piece
        return None


def _joined(last: Piece | DisplayRegion | DisplayElement, piece: Piece) -> Piece | None:
    """Two adjacent pieces of nodes as one; None where they should stay separate."""
    if not isinstance(last, Piece) or len(last.text) >= _LONGEST:
        return None
    has_values = last.begins or last.ends or piece.begins or piece.ends
    return None if has_values else Piece(last.text + piece.text)
