"""The lexical side of XML, on bytes: where markup starts and where it ends, and nothing about what it means.

A splitter has to find the borders of items in bytes that arrive in pieces and may be broken anywhere, so this is no
parser: it knows tags, comments, CDATA sections, instructions and the document type, in encodings that keep ASCII.
One fact of XML carries the recovery: a `<` never stands inside a tag, not even in quotes.
A tag that meets one is broken there, and a missing quote cannot swallow the rest of a stream.

Guarantees: asking again with more bytes does not read the old ones again (except for a document type, which is short),
so the work is linear in bytes however they arrive; `ByteWindow.scanned` counts it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from anabranch.errors import StreamError
from anabranch.stream.limits import LONGEST_NAME

# All repetitions are possessive (`*+`): what they took is never given back, so no input makes a pattern backtrack.
_NAME = rb"[A-Za-z_:\x80-\xff][A-Za-z0-9_:.\-\x80-\xff]{0,%d}+(?![A-Za-z0-9_:.\-\x80-\xff])" % (LONGEST_NAME - 1)
_TAG = re.compile(rb"""<(/?)(%s)(?:>|\s(?:[^<>"']++|"[^<"]*+"|'[^<']*+')*+>|/>)""" % _NAME)
_BROKEN_TAG = re.compile(rb"<(%s)" % _NAME)
_BARE_TAG = re.compile(rb"<(?:/(%s)\s{0,64}+>|(%s)[\s/>])" % (_NAME, _NAME))
_SPACE = re.compile(rb"[ \t\r\n]*+")
_OUTSIDE_QUOTES = re.compile(rb"[^<>\"']*+")
_INSIDE_QUOTES = {ord('"'): re.compile(rb'[^<"]*+'), ord("'"): re.compile(rb"[^<']*+")}

BOM = b"\xef\xbb\xbf"
_COMMENT = rb"<!--(?:[^-]++|-(?!-))*+-->"
_INSTRUCTION = rb"<\?(?:[^?]++|\?(?!>))*+\?>"
PROLOG = re.compile(rb"(?:%s)?+(?:\s++|%s|%s)*+" % (BOM, _COMMENT, _INSTRUCTION))
"""The part before a document type or a root element."""
DOCTYPE = re.compile(
    rb"""<!DOCTYPE(?:[^"'\[\]<>]++|"[^"]*+"|'[^']*+')*+"""
    rb"""(?:\[(?:[^"'\]<]++|"[^"]*+"|'[^']*+'|%s|%s|<(?!!--|\?))*+\]\s*+)?+>""" % (_COMMENT, _INSTRUCTION)
)
"""A complete document type, including the internal subset, so that it can be skipped."""
_LONGEST_DOCTYPE = 1 << 16
_BARE_TAG_SPAN = LONGEST_NAME + 70
_DECLARATION = re.compile(rb"(?:%s)?\s*<\?xml\s[^>]*?encoding\s*=\s*[\"']([^\"'>]*)[\"']" % BOM)
_ENCODINGS = {
    "utf-8": "utf-8",
    "utf8": "utf-8",
    "us-ascii": "ascii",
    "ascii": "ascii",
    "iso-8859-1": "iso-8859-1",
    "latin1": "iso-8859-1",
    "windows-1252": "windows-1252",
    "cp1252": "windows-1252",
}
_WIDE = (
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\xfe\xff", "UTF-16"),
    (b"\xff\xfe", "UTF-16"),
)

Delimited = Literal["comment", "cdata", "instruction"]
Kind = Literal["open", "empty", "close", "comment", "cdata", "instruction", "doctype", "broken"]
_DELIMITED: tuple[tuple[bytes, bytes, Delimited], ...] = (
    (b"<!--", b"-->", "comment"),
    (b"<![CDATA[", b"]]>", "cdata"),
    (b"<?", b"?>", "instruction"),
)
_OPENINGS = (b"<!--", b"<![CDATA[", b"<!DOCTYPE")


class Token(NamedTuple):
    """A piece of markup; `end` is one past it. A broken one usually ends behind its `<`, and may still have a name."""

    kind: Kind
    end: int
    name: bytes = b""


def check_width(head: bytes) -> None:
    """Refuse bytes that begin like UTF-16 or UTF-32; four bytes are enough."""
    for mark, encoding in _WIDE:
        if head.startswith(mark):
            raise _unsupported(encoding)
    if b"\x00" in head and head.strip(b"\x00")[:1] in (b"<", b"{"):
        raise _unsupported("UTF-32" if b"\x00\x00" in head else "UTF-16")


def declared_encoding(head: bytes) -> str:
    """Python's name of the encoding in an XML declaration at the front; UTF-8 without one."""
    declared = _DECLARATION.match(head)
    if not declared:
        return "utf-8"
    name = declared[1].decode("ascii", "replace")
    known = _ENCODINGS.get(name.lower())
    if known is None:
        raise _unsupported(name)
    return known


def _unsupported(encoding: str) -> StreamError:
    return StreamError(f"the encoding '{encoding[:40]}' is not supported", hint="convert the input to UTF-8")


def start_tag_name(tag: bytes) -> bytes:
    """The name in a complete start tag."""
    found = _BROKEN_TAG.match(tag)
    assert found
    return found[1]


class ByteWindow:
    """The bytes of a partition that are still needed, addressed by their position in it.

    The splitter that made it appends to it and drops from it; nobody else changes it.
    """

    def __init__(self, start: int) -> None:
        self.start = start
        self.scanned = 0
        self._data = bytearray()
        self._absent: dict[bytes, tuple[int, int]] = {}  # searches that failed between two positions
        self._tag = (-1, 0, 0)  # an unfinished tag: its start, how far it was read, the open quote

    @property
    def end(self) -> int:
        return self.start + len(self._data)

    def append(self, data: bytes) -> None:
        self._data += data

    def drop(self, until: int) -> None:
        """Forget all bytes before a position."""
        del self._data[: until - self.start]
        self.start = until

    def read(self, start: int, end: int) -> bytes:
        return bytes(self._data[start - self.start : end - self.start])

    def skip_space(self, at: int) -> int:
        """The first position from `at` on that holds no white space."""
        found = _SPACE.match(self._data, at - self.start)
        assert found
        return found.end() + self.start

    def find(self, what: bytes, at: int, end: int) -> int:
        """Where `what` first stands between two positions, or -1; failed searches are cached."""
        low, high = self._absent.get(what, (0, 0))
        begin = max(at, high) if low <= at else at
        found = self._data.find(what, begin - self.start, end - self.start)
        if found < 0:
            self.scanned += max(0, end - begin)
            self._absent[what] = (low if low <= at <= high else at, max(begin, end - len(what) + 1))
            return -1
        self.scanned += found + self.start - begin
        return found + self.start

    def token(self, at: int, end: int, *, prolog: bool = False) -> Token | None:
        """The markup that starts at `at`, where a `<` stands; None where `end` is too early to tell.

        Only in a prolog is a document type valid markup.
        """
        head = self.read(at, min(at + 9, end))
        if head.startswith((b"<!", b"<?")):
            return self._declaration(at, end, head, prolog)
        if self._tag[0] != at:
            self._tag = (at, at + 1, 0)
            if found := self._whole_tag(at, end):
                return found
        match self._read_tag(end):
            case None:
                return None
            case "ended" if found := self._whole_tag(at, end):
                return found
        return self.broken(at, end)

    def broken(self, at: int, end: int) -> Token:
        """The `<` at `at` as broken markup."""
        tag = _BROKEN_TAG.match(self._data, at - self.start, end - self.start)
        return Token("broken", at + 1, bytes(tag[1]) if tag else b"")

    def _whole_tag(self, at: int, end: int) -> Token | None:
        tag = _TAG.match(self._data, at - self.start, end - self.start)
        if not tag:
            return None
        self.scanned += tag.end() - tag.start()
        if tag[1]:
            return Token("close", tag.end() + self.start, bytes(tag[2]))
        kind: Kind = "empty" if self._data[tag.end() - 2] == ord("/") else "open"
        return Token(kind, tag.end() + self.start, bytes(tag[2]))

    def _read_tag(self, end: int) -> Literal["ended", "broken"] | None:
        """Continue reading the unfinished tag, to the `>` that ends it or the `<` that breaks it."""
        start, at, quote = self._tag
        while True:
            found = (_INSIDE_QUOTES[quote] if quote else _OUTSIDE_QUOTES).match(
                self._data, at - self.start, end - self.start
            )
            assert found
            self.scanned += found.end() - found.start()
            at = found.end() + self.start
            if at >= end:
                self._tag = (start, at, quote)
                return None
            byte = self._data[at - self.start]
            if byte in b"<>":
                self._tag = (start, at, quote)
                return "ended" if byte == ord(">") else "broken"
            quote = 0 if quote else byte
            at += 1

    def _declaration(self, at: int, end: int, head: bytes, prolog: bool) -> Token | None:
        for opening, closing, kind in _DELIMITED:
            if head.startswith(opening):
                found = self.find(closing, at + len(opening), end)
                return None if found < 0 else Token(kind, found + len(closing))
        if head == b"<!DOCTYPE" and prolog:
            whole = DOCTYPE.match(self._data, at - self.start, min(end, at + _LONGEST_DOCTYPE) - self.start)
            if whole:
                self.scanned += whole.end() - whole.start()
                return Token("doctype", whole.end() + self.start)
            # Not retried from its middle, which might contain another one, and another.
            return None if end < at + _LONGEST_DOCTYPE else Token("broken", at + _LONGEST_DOCTYPE)
        if len(head) < 9 and any(opening.startswith(head) for opening in _OPENINGS):
            return None
        return Token("broken", at + 1)

    def plain_end(self, at: int, end: int, name: bytes, root: bytes) -> int | None:
        """The end of the element that was opened just before `at`, if it can be found without reading its content.

        That is so where the first closing tag of its name must be the element's own: nothing before it could hide a tag
        (comments and the like), open another element of the name, or close the root.
        """
        data, low = self._data, at - self.start
        close = data.find(b"</" + name, low, end - self.start)
        self.scanned += (end if close < 0 else close + self.start) - at
        behind = close + 2 + len(name)
        if close < 0 or behind >= end - self.start or data[behind] != ord(">"):
            return None
        if any(data.find(what, low, close) >= 0 for what in (b"<" + name, b"</" + root, b"<!", b"<?")):
            return None
        return behind + 1 + self.start

    def bare_tags(self, at: int, end: int) -> Iterator[tuple[int, int, bytes, bytes]]:
        """Everything that looks like a tag: start, end, the name if it closes, the name if it opens."""
        for tag in _BARE_TAG.finditer(self._data, at - self.start, end - self.start):
            self.scanned += tag.end() + self.start - at
            at = tag.end() + self.start
            yield tag.start() + self.start, at, bytes(tag[1] or b""), bytes(tag[2] or b"")
        self.scanned += end - at

    def last_opening(self, at: int, end: int) -> int:
        """Where an incomplete tag for `bare_tags` may begin; `end` where there is none."""
        found = self._data.rfind(b"<", max(at, end - _BARE_TAG_SPAN) - self.start, end - self.start)
        return end if found < 0 else found + self.start
