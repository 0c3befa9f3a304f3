"""Whole documents into raw items: the children of the root, also of a root that is never closed.

Broken markup costs the item it is in and no other.
The item ends at its own closing tag whatever is wrong inside, and the parser reports the error.
Where that tag is missing, reading goes on at the first start tag of the same name inside the item: *strictly* then, up
to the bytes read before, which means that a further tag of that name ends the item again.
Where there is none either, reading goes on at the next thing that looks like the start or the end of such an item, or
like the end of the root; comments are not respected then, since an unclosed one may be the cause.

A document in an unsupported encoding is set aside, and with it the rest of its file.

So nothing is read more than twice, and the work is linear in bytes; the guarantees of `lines.py` hold here too.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from anabranch.errors import StreamError
from anabranch.stream.limits import Limits
from anabranch.stream.reading.lines import SHOWN_BYTES, START, Carry, Cut, LineSplitter, too_long
from anabranch.stream.reading.markup import BOM, ByteWindow, Token, check_width, declared_encoding, start_tag_name
from anabranch.stream.reading.parse import parse_root

__all__ = ["Carry", "Cut", "DocumentSplitter", "LineSplitter"]

_FRONT = 4
"""The number of bytes that show a wide encoding."""
_LOST = b"\x00"
"""The name of what is skipped where items cannot be told apart."""
_DECLARATIONS = (b"<?xml ", b"<?xml\t", b"<?xml\r", b"<?xml\n")
_OPENINGS = (
    (b"<!--", "a comment"),
    (b"<![CDATA[", "a CDATA section"),
    (b"<!DOCTYPE", "a DOCTYPE"),
    (b"<?", "a processing instruction"),
)


@dataclass(slots=True)
class _Item:
    """The item being read: the position, the open elements, and whether it is broken."""

    start: int
    name: bytes
    position: int
    stack: list[bytes]
    broken: bool = False
    again: int | None = None
    """The first start tag inside that has the item's own name."""


class DocumentSplitter:
    """The children of the root of a document, or of several consecutive documents."""

    def __init__(self, limits: Limits, carry: Carry = START) -> None:
        self._limits = limits
        self._window = ByteWindow(carry.position)
        self._at = carry.position
        self._skipping = None if carry.skipping is None else carry.skipping.encode("latin-1")
        self._inside = carry.inside
        self._encoding = carry.encoding
        self._strict = carry.strict
        self._item: _Item | None = None
        self._final = False
        self._glance = 0
        self._cuts: list[Cut] = []
        self.root: bytes | None = None if carry.root is None else carry.root.encode("latin-1")
        """The start tag of the root, once it was read."""
        self._root_name = b"" if self.root is None else start_tag_name(self.root)
        self.first: tuple[bytes, str] | None = None
        """The first readable root that was opened, with its encoding; `root` is the last of all."""

    @property
    def carry(self) -> Carry:
        """The state without the item being read, which the next splitter reads from its start."""
        return Carry(
            self._at,
            None if self._skipping is None else self._skipping.decode("latin-1"),
            None if self.root is None else self.root.decode("latin-1"),
            self._inside,
            self._encoding,
            self._strict,
        )

    @property
    def scanned(self) -> int:
        """The number of bytes scanned; those read twice count twice."""
        return self._window.scanned

    def feed(self, data: bytes) -> list[Cut]:
        """Add bytes; gives the items that end in them."""
        self._window.append(data)
        return self._advance()

    def finish(self) -> list[Cut]:
        """End of the bytes; an item that is still open is bad, a root that is still open is not."""
        self._final = True
        return self._advance()

    def _advance(self) -> list[Cut]:
        self._cuts = []
        if self._at > 0 or self._has_front():
            while self._step():
                pass
            self._window.drop(self._at)
        return self._cuts

    def _has_front(self) -> bool:
        """Whether the first bytes of the file are there; in a wide encoding the whole file is lost."""
        if self._window.end < _FRONT and not self._final:
            return False
        front = self._window.read(0, min(_FRONT, self._window.end))
        try:
            check_width(front)
        except StreamError as error:
            self._lose(0, len(front), error.message)
        return True

    def _lose(self, start: int, end: int, reason: str) -> None:
        """Set an unreadable document aside, and the rest of its file, since its end cannot be found."""
        self._cut(start, end, reason)
        self._skipping = _LOST

    def _step(self) -> bool:
        """One step from `_at` on; False if more bytes are needed."""
        if self._skipping is not None:
            return self._skip(self._skipping)
        return self._read_between() if self._item is None else self._read_item(self._item)

    # --- between items ------------------------------------------------------------------------------------

    def _read_between(self) -> bool:
        window = self._window
        at = self._at = window.skip_space(self._at)
        if at == window.end:
            return False
        end = min(window.end, at + self._limits.item_bytes)
        starved = self._final or end == at + self._limits.item_bytes
        if window.read(at, at + 1) != b"<":
            return self._read_text(at, end, starved)
        token = window.token(at, end, prolog=not self._inside)
        if token is None:
            if not starved:
                return False
            token = window.broken(at, end)
        match token.kind:
            case "open" | "empty" if not self._inside:
                self._open_root(at, token)
            case "open":
                self._open_item(at, token, end)
            case "empty":
                self._cut(at, token.end)
            case "close" if self._inside and token.name == self._root_name:
                self._close_root(token.end)
            case "close":
                self._cut(at, token.end, f"a closing tag '{_shown(token.name)}' without its element")
            case "comment" | "doctype":
                self._at = token.end
            case "instruction":
                self._at = token.end
                if not self._inside and window.read(at, at + 6) in _DECLARATIONS:
                    self._declare(at, token.end)
            case "cdata":
                self._cut(at, token.end, self._stray_text())
            case "broken" if token.name and self._inside:
                self._item = _Item(at, token.name, token.end, [token.name], broken=True)
            case "broken":
                return self._set_aside(at, token, end, starved)
        return True

    def _declare(self, at: int, end: int) -> None:
        """Apply an XML declaration: the encoding of what follows."""
        try:
            self._encoding = declared_encoding(self._window.read(at, end))
        except StreamError as error:
            self._lose(at, end, error.message)

    def _open_root(self, at: int, token: Token) -> None:
        self.root = self._window.read(at, token.end)
        self._root_name = token.name
        if self.first is None:
            with suppress(StreamError):
                parse_root(self.root, self._encoding)
                self.first = self.root, self._encoding
        self._inside = True
        self._at = token.end
        if token.kind == "empty":
            self._close_root(token.end)

    def _close_root(self, end: int) -> None:
        self._inside = False
        self._encoding = "utf-8"  # until the next document says otherwise
        self._at = end

    def _read_text(self, at: int, end: int, starved: bool) -> bool:
        if not self._inside and self._window.read(at, at + 3) == BOM:
            self._at = at + 3
            return True
        found = self._window.find(b"<", at, end)
        if found < 0 and not starved:
            return False
        self._cut(at, end if found < 0 else found, self._stray_text())
        return True

    def _stray_text(self) -> str:
        return "text between items" if self._inside else "text outside the root element"

    def _set_aside(self, at: int, token: Token, end: int, starved: bool) -> bool:
        """Set broken markup aside, and the text behind it."""
        found = self._window.find(b"<", token.end, end)
        if found < 0 and not starved:
            return False
        self._cut(at, end if found < 0 else found, self._complaint(self._window.read(at, at + 9)))
        return True

    def _complaint(self, head: bytes) -> str:
        if head == b"<!DOCTYPE" and self._inside:
            return "a DOCTYPE is not allowed here"
        what = next((what for opening, what in _OPENINGS if head.startswith(opening)), None)
        return f"{what} is not closed" if what else "broken markup"

    def _cut(self, start: int, end: int, reason: str | None = None) -> None:
        raw = self._window.read(start, end if reason is None else min(end, start + SHOWN_BYTES))
        self._cuts.append(Cut(start, end, raw, reason, self.root, self._encoding))
        self._at = end

    # --- inside an item -----------------------------------------------------------------------------------

    def _open_item(self, at: int, token: Token, end: int) -> None:
        """Start an item, or finish it at once by a quick search for its end, which finds the same end or none."""
        reach = min(end, token.end + self._glance)
        if plain := self._window.plain_end(token.end, reach, token.name, self._root_name):
            self._cut(at, plain)
        else:
            self._item = _Item(at, token.name, token.end, [token.name])
            self._glance = 0

    def _read_item(self, item: _Item) -> bool:
        window = self._window
        limit = item.start + self._limits.item_bytes
        end = min(window.end, limit)
        while (at := window.find(b"<", item.position, end)) >= 0:
            token = window.token(at, end)
            if token is None:
                break
            item.position = token.end
            match token.kind:
                case "close":
                    done = self._read_close(item, at, token)
                case "open" | "empty" | "broken":
                    done = self._read_start(item, at, token)
                case _:
                    continue
            if done:
                return True
        if at < 0:
            at = item.position = end
        if end == limit:
            return self._give_up(item, too_long(self._limits), at, end)
        if self._final:
            return self._give_up(item, _unclosed(item), at, end)
        return False

    def _read_start(self, item: _Item, at: int, token: Token) -> bool:
        """Process a start tag, or something like one; True if the item ends with it."""
        if token.name == item.name:
            if at < self._strict:
                self._item = None
                self._cut(item.start, at, f"{_unclosed(item)} before the next one starts")
                return True
            if item.again is None:
                item.again = at
        if token.kind == "broken":
            item.broken = True
        if token.kind != "empty" and token.name:
            if len(item.stack) < self._limits.depth:
                item.stack.append(token.name)
            else:
                item.broken = True  # the parser will report its depth; memory must not grow with it
        return False

    def _read_close(self, item: _Item, at: int, token: Token) -> bool:
        """Process a closing tag, which should be that of the innermost element; True if the item ends with it."""
        stack = item.stack
        if token.name == stack[-1]:
            stack.pop()
            return not stack and self._end_item(item, at, token.end)
        if token.name == self._root_name and token.name not in stack:
            return self._give_up(item, _unclosed(item), at, token.end)
        item.broken = True
        if token.name == item.name:
            return self._end_item(item, at, token.end)
        if token.name in stack:
            while stack.pop() != token.name:
                pass
        return False

    def _end_item(self, item: _Item, at: int, end: int) -> bool:
        """End the item at its closing tag at `at`; the parser reports errors inside."""
        self._item = None
        if item.broken and item.again is not None:
            self._read_again(item, at)
        else:
            self._cut(item.start, end)
            # Items resemble one another; a failed quick search costs at most twice this item, and is not repeated at
            # once.
            self._glance = 2 * (end - item.start)
        return True

    def _give_up(self, item: _Item, reason: str, at: int, end: int) -> bool:
        """The item has no proper end; `at` is the first markup that was not read, or is too much."""
        self._item = None
        if item.again is not None:
            self._read_again(item, at)
            return True
        resume = self._resync(item.name, at, end)
        if resume is None:
            self._skipping = item.name
            resume = end if self._final else self._window.last_opening(at, end)
        self._cut(item.start, resume, reason)
        return True

    def _read_again(self, item: _Item, until: int) -> None:
        assert item.again is not None
        self._strict = max(self._strict, until)
        self._cut(item.start, item.again, f"{_unclosed(item)} before the next one starts")

    def _skip(self, name: bytes) -> bool:
        if name == _LOST:
            self._at = self._window.end
            return False
        resume = self._resync(name, self._at, self._window.end)
        if resume is not None or self._final:
            self._skipping = None
            self._at = self._window.end if resume is None else resume
            return True
        self._at = self._window.last_opening(self._at, self._window.end)
        return False

    def _resync(self, name: bytes, at: int, end: int) -> int | None:
        """Where reading goes on after a bad item: before a similar one, before the root's end, behind its own end."""
        for start, after, closes, opens in self._window.bare_tags(at, end):
            if opens == name or closes == self._root_name:
                return start
            if closes == name:
                return after
        return None


def _unclosed(item: _Item) -> str:
    return f"'{_shown(item.name)}' is not closed"


def _shown(name: bytes) -> str:
    text = name.decode("utf-8", "replace")
    return text if len(text) <= 80 else text[:77] + "..."
