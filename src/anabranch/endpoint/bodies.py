"""The bodies of requests: checked as a whole, and made into whole items of a stream's format.

A body in JSON is an object, or an array of them; one of XML is a document, or items without a root where the stream
declares the name of its root.
Both must be well-formed throughout, else nothing of them is taken.
In lines, of JSON or of XML, each line stands for itself: a bad one is set aside when it is read (LAWS 2.5), and only a
body is refused of which none of the first hundred lines is good.
What else may be wrong with an item is judged where all items are, when it is read.

Byte `i` of a body stays byte `i`: the brackets and commas of an array become blanks and line ends, and so do line ends
inside an object, so that the place of a bad item is one in the body as it was sent.
Nothing is expanded or fetched: a body that declares an entity is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import blake2b
from itertools import islice
from typing import TypeAlias
from xml.parsers import expat

import msgspec
import numpy as np

from anabranch.errors import AnabranchError, StreamError
from anabranch.spark.spool.spool import PushedBody
from anabranch.stream.reading.gzip import PACKED_CHUNK, Damage, gunzip
from anabranch.stream.reading.markup import BOM, ByteWindow, check_width, declared_encoding
from anabranch.stream.reading.parse import implied_root, parse_root
from anabranch.stream.reading.source import Source
from anabranch.stream.serialize import serialize

JSON, LINES_OF_JSON = "application/json", "application/x-ndjson"
XML = ("application/xml", "text/xml")

_BREAKS = bytes.maketrans(b"\r\n", b"  ")
_LINE = re.compile(rb"[^\s][^\n]*")
_BYTE = re.compile(r"(.*) \(byte ([0-9]+)\)\Z")
_TRAILING = "trailing characters"
_FRONT_BYTES = 1 << 16
_DIGEST_BYTES = 16
_AROUND = b"<r>"
_DECLARATION = b"<?xml"
_MOST_OPEN = 1_000
"""Elements that are open at a time; items of such a depth are bad anyway."""
_MOST_TRIED = 100
"""Lines that are looked at for a good one."""

_Fault: TypeAlias = tuple[str, int]
"""What is wrong, and the byte at which it is."""


class BadBody(AnabranchError):
    """A body that is not what its type says; nothing of it is taken."""

    def __init__(self, message: str, raw: bytes, byte: int | None = None, hint: str | None = None) -> None:
        """`byte` is where it is wrong."""
        super().__init__(message, hint=hint)
        self.byte = byte
        before = b"" if byte is None else raw[:byte]
        self.line = before.count(b"\n") + 1
        self.column = len(before) - (before.rfind(b"\n") + 1) + 1


class UnknownType(AnabranchError):
    """A type or an encoding of a body that the stream does not take."""


class TooLarge(AnabranchError):
    """A body that is larger than allowed."""


def check_type(source: Source, content_type: str, encoding: str) -> None:
    """Refuse a body by its headers if it cannot be one of the stream: `UnknownType`."""
    kind, *parameters = (each.strip().lower() for each in content_type.split(";"))
    taken = (JSON, LINES_OF_JSON) if source.format == "json" else XML
    if kind not in taken:
        raise UnknownType(
            f"the stream '{source.name}' is one of {'JSON' if source.format == 'json' else 'XML'}, "
            f"and the body is called '{kind}'",
            hint=f"send it as {' or '.join(taken)}",
        )
    charset = next((each[8:].strip('"') for each in parameters if each.startswith("charset=")), "utf-8")
    if charset not in ("utf-8", "utf8", "us-ascii"):
        raise UnknownType(f"the charset '{charset}' is not read", hint="send it in UTF-8")
    if encoding.strip().lower() not in ("", "identity", "gzip"):
        raise UnknownType(f"the content encoding '{encoding}' is not read", hint="use gzip, or none")


def unpacked(raw: bytes, most: int) -> bytes:
    """A body that was packed with gzip; `TooLarge` as soon as it has more than `most` bytes."""
    found = bytearray()
    for piece in gunzip(raw[at : at + PACKED_CHUNK] for at in range(0, len(raw), PACKED_CHUNK)):
        if isinstance(piece, Damage):
            raise BadBody(piece.reason, b"")
        found += piece
        if len(found) > most:
            raise TooLarge(f"the body has more than {most:,} bytes, unpacked", hint="send fewer items at once")
    return bytes(found)


def body_of(source: Source, content_type: str, raw: bytes) -> PushedBody:
    """The body of a request as it goes into a stream, which takes its type; `BadBody` if it is wrong."""
    assert source.format != "auto", "a pushed stream has a format"
    digest = blake2b(raw, digest_size=_DIGEST_BYTES).hexdigest()
    sent = b"   " + raw[len(BOM) :] if raw.startswith(BOM) else raw
    front = rear = b""
    match source.format:
        case "json" if content_type.split(";")[0].strip().lower() == JSON:
            data = _records(sent)
        case "json":
            data = _lines(sent, _json_fault)
        case "lines":
            data = _lines(sent, _markup_fault)
        case "document":
            data, bare = _document(source, sent)
            if bare:
                tag = serialize(implied_root(source.implied_root)).removesuffix("/>")
                front, rear = f"{tag}>".encode(), f"</{source.implied_root}>".encode()
    end = b"" if data.endswith(b"\n") and not rear else b"\n"
    return PushedBody(b"".join((front, data, rear, end)), source.format, digest, len(front), len(raw))


# --- JSON -------------------------------------------------------------------------------------------------


def _records(raw: bytes) -> bytes:
    """The objects of a body, one on each line."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadBody("the body is not UTF-8", raw, error.start) from None
    start = len(raw) - len(raw.lstrip())
    if raw[start : start + 1] not in (b"{", b"["):
        _check(raw, _json_fault(raw), "JSON")
        raise BadBody("the body is neither an object nor an array of objects", raw, start)
    if raw[start : start + 1] == b"{":
        _check(raw, _json_fault(raw), "JSON")
        return raw.translate(_BREAKS)
    _check(raw, _json_fault(raw), "JSON")
    return _separated(raw, start)


def _separated(raw: bytes, start: int) -> bytes:
    """An array, which is good JSON and begins at `start`, with its values on lines of their own."""
    plain = np.frombuffer(raw.replace(b"\\\\", b"  ").replace(b'\\"', b"  "), np.uint8)  # so a quote is a quote
    outside = np.bitwise_xor.accumulate(plain == ord('"')) == 0
    opens, closes = (plain == ord("[")) | (plain == ord("{")), (plain == ord("]")) | (plain == ord("}"))
    level = np.cumsum((opens & outside).astype(np.int8) - (closes & outside).astype(np.int8), dtype=np.int32)
    commas = np.flatnonzero((plain == ord(",")) & outside & (level == 1))
    end = int(np.flatnonzero(closes & outside)[-1])
    if not len(commas) and not raw[start + 1 : end].strip():
        raise BadBody("the body holds no item", raw, hint="send at least one")
    data = np.frombuffer(raw.translate(_BREAKS), np.uint8).copy()
    data[[start, end]] = ord(" ")
    data[commas] = ord("\n")
    return data.tobytes()


def _json_fault(raw: bytes) -> _Fault | None:
    """What is wrong with a JSON text, and where."""
    try:
        msgspec.json.decode(raw, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError) as error:
        return _json_told(raw, error)
    return None


def _json_told(raw: bytes, error: Exception) -> _Fault:
    if isinstance(error, RecursionError):
        return "nested too deep", 0
    told = _BYTE.match(str(error))
    message, byte = (told[1], int(told[2])) if told else ("it ends early", len(raw))
    message = message.removeprefix("JSON is malformed: ")
    return message, byte - (message == _TRAILING)  # of which msgspec names the second


# --- XML --------------------------------------------------------------------------------------------------


def _document(source: Source, raw: bytes) -> tuple[bytes, bool]:
    """A body of XML, and whether it is items without a root."""
    first = _first_element(raw)
    if first is None:
        raise _wrong(raw, _markup_fault(raw, around=b"") or ("there is no element", 0), "XML")
    start, end, name = first
    declared = source.root or (source.schema.root if source.schema else None)
    bare = declared is not None and name.rpartition(":")[2] != declared
    try:
        check_width(raw[:4])
        encoding = _encoding(raw[:start])
        if not bare:
            parse_root(raw[start:end], encoding)
    except StreamError as error:
        raise BadBody(error.message, raw, start, error.hint) from None
    if bare and encoding != "utf-8":
        raise BadBody(f"items without a root are in UTF-8, not in {encoding}", raw, 0, hint="send a whole document")
    if bare and raw.lstrip().startswith(_DECLARATION):  # which cannot stand inside of a root
        raw = b" " * (raw.find(b"?>") + 2) + raw[raw.find(b"?>") + 2 :]
    _check(raw, _markup_fault(raw, around=_AROUND if bare else b""), "XML")
    if not raw.lstrip().startswith(b"<"):
        raise BadBody("text stands before the first item", raw, 0)
    return raw, bare


def _encoding(prolog: bytes) -> str:
    """The encoding that a document declares."""
    text = prolog.lstrip()
    return declared_encoding(text[: text.find(b"?>") + 2]) if text.startswith(_DECLARATION) else "utf-8"


def _first_element(raw: bytes) -> tuple[int, int, str] | None:
    """The first start tag of a body: where it begins and ends, and its name."""
    window = ByteWindow(0)
    window.append(raw[:_FRONT_BYTES])
    at = 0
    while (at := window.find(b"<", at, window.end)) >= 0:
        token = window.token(at, window.end, prolog=True)
        if token is None:
            return None
        if token.kind in ("open", "empty"):
            return at, token.end, token.name.decode("utf-8", "replace")
        at = token.end
    return None


class _EntityDeclared(Exception):
    """A document declares an entity."""


def _refuse_entity(*_: object) -> None:
    raise _EntityDeclared


class _TooDeep(Exception):
    """An element is nested too deep."""


class _Depth:
    """Counts the elements that are open: an endless chain of them would fill the memory."""

    def __init__(self, parser: expat.XMLParserType) -> None:
        self._open = 0
        parser.StartElementHandler, parser.EndElementHandler = self._enter, self._leave

    def _enter(self, *_: object) -> None:
        self._open += 1
        if self._open > _MOST_OPEN:
            raise _TooDeep

    def _leave(self, _: object) -> None:
        self._open -= 1


def _markup_fault(raw: bytes, around: bytes = _AROUND) -> _Fault | None:
    """What is wrong with a text of XML, with a tag around it, and where."""
    parser = expat.ParserCreate()
    parser.EntityDeclHandler = _refuse_entity
    parser.ordered_attributes = True
    _Depth(parser)
    try:
        parser.Parse(around, False)
        parser.Parse(raw, not around)
        if around:
            parser.Parse(around.replace(b"<", b"</"), True)
    except expat.ExpatError as error:
        byte = min(max(0, parser.ErrorByteIndex - len(around)), len(raw))
        return expat.ErrorString(error.code), byte
    except _TooDeep:
        return "nested too deep", max(0, parser.CurrentByteIndex - len(around))
    except _EntityDeclared:
        return "entities are not read", max(0, raw.find(b"<!ENTITY"))
    except (ValueError, LookupError) as error:  # an encoding that Python does not know
        return f"{error}", 0
    return None


# --- lines ------------------------------------------------------------------------------------------------


def _lines(raw: bytes, fault_of: Callable[[bytes], _Fault | None]) -> bytes:
    """Lines of which at least one is good; the others are set aside when they are read."""
    first: tuple[int, _Fault] | None = None
    for line in islice(_LINE.finditer(raw), _MOST_TRIED):
        fault = fault_of(line[0])
        if fault is None:
            return raw
        first = first or (line.start(), fault)
    if first is None:
        raise BadBody("the body holds no item", raw, hint="send at least one")
    start, (message, byte) = first
    raise BadBody(f"no line can be read: {message}", raw, start + byte)


def _check(raw: bytes, fault: _Fault | None, what: str) -> None:
    if fault is not None:
        raise _wrong(raw, fault, what)


def _wrong(raw: bytes, fault: _Fault, what: str) -> BadBody:
    message, byte = fault
    return BadBody(f"the body is not {what}: {message}", raw, byte)
