"""Bytes into raw items, piece by piece: one item per line, or the children of a document's root.

A splitter finds borders and leaves judging what lies between them to the parser; it speaks up only where there is no
item to parse: text between items, an item that never ends, one that is too long.
Broken markup costs the item it is in and no other.
The item ends at its own closing tag whatever is wrong inside; where that does not come, reading goes on at the first
start tag of the same name inside it (*strictly* then, as far as the bytes were read before: a further tag of that name
ends the item again), else at the first tag further on that looks like this item's start or end or the root's end.
Nothing is read more than twice, so the work is linear in bytes.

Guarantees: the cuts depend on the bytes alone, not on how they were fed; a splitter made from another's `carry` and fed
with the bytes from `carry.position` on continues as the other would have; no more than one item is held in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from anabranch.stream.limits import Limits
from anabranch.stream.markup import BOM, Token, Window, check_width, declared_encoding, start_tag_name

SHOWN = 8_192
"""How many bytes of a bad piece are kept for the dead letter."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A piece of a partition: an item's bytes, or something bad with the reason, of which only the front is kept.

    `start` and `end` are positions in the uncompressed partition; `root` is the start tag of the root around the item
    and `encoding` that of its document, because several documents may follow one another.
    """

    start: int
    end: int
    raw: bytes
    reason: str | None = None
    root: bytes | None = None
    encoding: str = "utf-8"


@dataclass(frozen=True, slots=True)
class Carry:
    """Where a splitter stands, and all that another needs to go on from there."""

    position: int = 0
    """The first byte that is still needed: where the last unfinished item starts."""
    skipping: str | None = None
    """The item whose end is looked for, because it is bad; empty for a line."""
    root: str | None = None
    """The start tag of the last root that was seen, a character per byte."""
    inside: bool = False
    """Whether that root is still open."""
    encoding: str = "utf-8"
    strict: int = 0
    """Items are read strictly before this position."""

    def to_json(self) -> dict[str, Any]:
        """A value that the json module can write."""
        return {name: getattr(self, name) for name in self.__slots__}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Carry:
        """The carry that `to_json` gave this value for."""
        return Carry(**value)


_START = Carry()
_SHORTEST_GLANCE = 256
_DECLARATIONS = (b"<?xml ", b"<?xml\t", b"<?xml\r", b"<?xml\n")
_OPENINGS = (
    (b"<!--", "a comment"),
    (b"<![CDATA[", "a CDATA section"),
    (b"<!DOCTYPE", "a DOCTYPE"),
    (b"<?", "a processing instruction"),
)


class LineSplitter:
    """One item per line; LF and CRLF end a line, a CR alone does not; blank lines are nothing."""

    root: bytes | None = None

    def __init__(self, limits: Limits, carry: Carry = _START) -> None:
        self._limits = limits
        self._window = Window(carry.position)
        self._at = carry.position
        self._skipping = carry.skipping is not None

    @property
    def carry(self) -> Carry:
        return Carry(self._at, "" if self._skipping else None)

    def feed(self, data: bytes) -> list[Cut]:
        """Take the next bytes; give the lines that end in them."""
        self._window.append(data)
        return self._advance(final=False)

    def finish(self) -> list[Cut]:
        """There are no more bytes: give the last line, if it has no line end."""
        return self._advance(final=True)

    def _advance(self, *, final: bool) -> list[Cut]:
        cuts: list[Cut] = []
        window = self._window
        if self._at == 0 and not _has_front(window, final=final):
            return cuts
        end = window.end
        while (newline := window.find(b"\n", self._at, end)) >= 0:
            self._line(newline, cuts)
            self._skipping = False
            self._at = newline + 1
        if final or self._skipping or end - self._at > self._limits.item_bytes:
            self._line(end, cuts)
            self._skipping = not final
            self._at = end
        window.drop(self._at)
        return cuts

    def _line(self, end: int, cuts: list[Cut]) -> None:
        if self._skipping:
            return
        start = self._at
        if start == 0 and self._window.read(0, 3) == BOM:
            start = 3
        if end - start > self._limits.item_bytes:
            shown = self._window.read(start, start + min(self._limits.item_bytes, SHOWN))
            cuts.append(Cut(start, start + self._limits.item_bytes, shown, _too_long(self._limits)))
            return
        line = self._window.read(start, end).removesuffix(b"\r")
        if line and not line.isspace():
            cuts.append(Cut(start, start + len(line), line))


def _has_front(window: Window, *, final: bool) -> bool:
    """Whether the first bytes of a partition are there and are no wide encoding."""
    head = window.read(0, min(4, window.end))
    check_width(head)
    return final or len(head) == 4


def _too_long(limits: Limits) -> str:
    return f"more than {limits.item_bytes:,} bytes"


@dataclass(slots=True)
class _Item:
    """The item that is being read: how far, which elements are open in it, and what was seen to be wrong."""

    start: int
    name: bytes
    position: int
    stack: list[bytes]
    broken: bool = False
    again: int | None = None
    """The first start tag inside that has the item's own name."""


class DocumentSplitter:
    """The children of the root of a document, or of several documents one behind the other."""

    def __init__(self, limits: Limits, carry: Carry = _START) -> None:
        self._limits = limits
        self._window = Window(carry.position)
        self._at = carry.position
        self._skipping = None if carry.skipping is None else carry.skipping.encode("latin-1")
        self._inside = carry.inside
        self._encoding = carry.encoding
        self._strict = carry.strict
        self._item: _Item | None = None
        self._final = False
        self._glance = _SHORTEST_GLANCE
        self._cuts: list[Cut] = []
        self.root: bytes | None = None if carry.root is None else carry.root.encode("latin-1")
        """The start tag of the root, once it is seen."""
        self._root_name = b"" if self.root is None else start_tag_name(self.root)

    @property
    def carry(self) -> Carry:
        """All but the item that is being read: the next splitter reads that from its start."""
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
        """How many bytes were looked at, those counted twice that were read twice."""
        return self._window.scanned

    def feed(self, data: bytes) -> list[Cut]:
        """Take the next bytes; give the items that end in them."""
        self._window.append(data)
        return self._advance()

    def finish(self) -> list[Cut]:
        """There are no more bytes; an item that is still open is bad, a root that is still open is not."""
        self._final = True
        return self._advance()

    def _advance(self) -> list[Cut]:
        self._cuts = []
        if self._at > 0 or _has_front(self._window, final=self._final):
            while self._step():
                pass
            self._window.drop(self._at)
        return self._cuts

    def _step(self) -> bool:
        """One step from `_at` on; False if the bytes do not suffice for it."""
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
                if not self._inside and window.read(at, at + 6) in _DECLARATIONS:
                    self._encoding = declared_encoding(window.read(at, token.end))
                self._at = token.end
            case "cdata":
                self._cut(at, token.end, self._stray_text())
            case "broken" if token.name and self._inside:
                self._item = _Item(at, token.name, token.end, [token.name], broken=True)
            case "broken":
                return self._set_aside(at, token, end, starved)
        return True

    def _open_root(self, at: int, token: Token) -> None:
        self.root = self._window.read(at, token.end)
        self._root_name = token.name
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
        """Markup that is none, and the text behind it."""
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
        raw = self._window.read(start, end if reason is None else min(end, start + SHOWN))
        self._cuts.append(Cut(start, end, raw, reason, self.root, self._encoding))
        self._at = end

    # --- inside an item -----------------------------------------------------------------------------------

    def _open_item(self, at: int, token: Token, end: int) -> None:
        """Begin to read an item, or be done with it at a glance, which finds the same end sooner or finds none."""
        reach = min(end, token.end + self._glance)
        if plain := self._window.plain_end(token.end, reach, token.name, self._root_name):
            self._cut(at, plain)
        else:
            self._item = _Item(at, token.name, token.end, [token.name])
            self._glance = _SHORTEST_GLANCE

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
            return self._give_up(item, _too_long(self._limits), at, end)
        if self._final:
            return self._give_up(item, _unclosed(item), at, end)
        return False

    def _read_start(self, item: _Item, at: int, token: Token) -> bool:
        """Take in a start tag, or something like one; True if the item ends with it."""
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
                item.broken = True  # the parser will say that it is too deep; memory must not grow with it
        return False

    def _read_close(self, item: _Item, at: int, token: Token) -> bool:
        """Take in a closing tag, which should be that of the innermost element; True if the item ends with it."""
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
        """The closing tag of the item stands at `at`; what is broken inside, the parser will say."""
        self._item = None
        if item.broken and item.again is not None:
            self._read_again(item, at)
        else:
            self._cut(item.start, end)
            # Items resemble one another. What a glance in vain costs is paid for by the length of the item before.
            self._glance = _SHORTEST_GLANCE + 2 * (end - item.start)
        return True

    def _give_up(self, item: _Item, reason: str, at: int, end: int) -> bool:
        """The item has no end that makes sense; `at` is the first markup that was not read, or is too much."""
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
        resume = self._resync(name, self._at, self._window.end)
        if resume is not None or self._final:
            self._skipping = None
            self._at = self._window.end if resume is None else resume
            return True
        self._at = self._window.last_opening(self._at, self._window.end)
        return False

    def _resync(self, name: bytes, at: int, end: int) -> int | None:
        """Where reading may go on after a bad item: before its like, before the root's end, behind its own end."""
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
