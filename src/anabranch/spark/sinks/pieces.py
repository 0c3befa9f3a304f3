"""An answer split into its pieces: results side by side, as text and as rows of a table.

The answer log holds the answers of an epoch concatenated, as delivered; readers that show or store single results split
them here.
Names stay as written, prefix and all: the declarations they need may stand in the frame around them.
A row is an element whose children are leaves; its attributes and children are its values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from xml.parsers import expat

_ROOT = "answer"
"""The element put around a text before it is parsed, since a document has one element only."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """An element by its values: attributes as `@name`, children by name."""

    name: str
    values: Mapping[str, str]
    text: str | None
    """Its own text, where it has no children."""


@dataclass(frozen=True, slots=True)
class ResultPiece:
    """An element, or the text between two; and its row, or the reason why it is none."""

    text: str
    row: TableRow | str


def take_apart(text: str) -> list[ResultPiece]:
    """The pieces of an answer, or of a part of it; white space between elements is no piece."""
    data = f"<{_ROOT}>{text}</{_ROOT}>".encode()
    reading = _RowReading()
    parser = reading.parser
    parser.StartElementHandler = reading.start
    parser.EndElementHandler = reading.end
    parser.CharacterDataHandler = reading.characters
    parser.CommentHandler = parser.ProcessingInstructionHandler = reading.other
    parser.Parse(data, True)
    bounds = pairwise([*(start for start, _ in reading.found), len(data) - len(f"</{_ROOT}>")])
    rows = (row for _, row in reading.found)
    found = (ResultPiece(data[start:end].decode(), row) for (start, end), row in zip(bounds, rows, strict=True))
    return [piece for piece in found if piece.text.strip()]


def lines_in(text: str) -> list[str]:
    """The lines of JSON in a part of an answer, each with its end."""
    return [f"{line}\n" for line in text.split("\n")[:-1]]


_WORDS = re.compile(r"\s*\S[^ ]*(?:\s+\Z)?")


def results_in(text: str, *, values: bool = False) -> list[str]:
    """The results in a part of an answer, none of them empty; concatenated they give the text.

    Elements, comments and instructions are results, and so is the text between two of them.
    White space alone belongs to the result after it, at the end to the one before.
    With `values`, text is a list of values separated by blanks, and each is a result.
    """
    data = f"<{_ROOT}>{text}</{_ROOT}>".encode()
    starts = _Starts()
    starts.parser.Parse(data, True)
    found: list[str] = []
    blank = ""
    for start, end in pairwise([*starts.found, len(data) - len(f"</{_ROOT}>")]):
        piece = blank + data[start:end].decode()
        if not piece.strip():
            blank = piece
            continue
        found += _WORDS.findall(piece) if values and not piece.lstrip().startswith("<") else [piece]
        blank = ""
    if blank:
        found = [*found[:-1], found[-1] + blank] if found else [blank]
    return found


class _Starts:
    """Where the results of an answer start; only the parser calls."""

    def __init__(self) -> None:
        self.found: list[int] = []
        self._depth = 0
        self._in_text = False
        self.parser = parser = expat.ParserCreate()
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.CommentHandler = parser.ProcessingInstructionHandler = self._other

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if self._depth == 1:
            self._note(text=False)
        self._depth += 1

    def _end(self, name: str) -> None:
        self._depth -= 1

    def _characters(self, data: str) -> None:
        if self._depth == 1 and not self._in_text:
            self._note(text=True)

    def _other(self, *_: str) -> None:
        if self._depth == 1:
            self._note(text=False)

    def _note(self, *, text: bool) -> None:
        self.found.append(self.parser.CurrentByteIndex)
        self._in_text = text


@dataclass(slots=True)
class _RowReading:
    """Handlers of the parser that build rows."""

    parser: expat.XMLParserType = field(default_factory=expat.ParserCreate)
    found: list[tuple[int, TableRow | str]] = field(default_factory=list)
    """The start of each piece, and its row or reason."""
    _depth: int = 0
    _start: int = 0
    _name: str = ""
    _values: dict[str, str] = field(default_factory=dict)
    _leaf: str = ""
    _leaves: int = 0
    _text: list[str] = field(default_factory=list)
    """The text of the leaf, or of the row outside its leaves."""
    _own: list[str] = field(default_factory=list)
    _fault: str | None = None

    def start(self, name: str, attributes: dict[str, str]) -> None:
        given = {f"@{key}": value for key, value in attributes.items() if key.split(":")[0] != "xmlns"}
        match self._depth:
            case 1:
                self._start = self.parser.CurrentByteIndex
                self._name, self._values, self._leaves, self._fault = name, given, 0, None
                self._own = self._text = []
            case 2:
                if name in self._values:
                    self._fault = f"'{name}' is there more than once"
                elif given:
                    self._fault = f"'{name}' has attributes"
                self._leaf, self._text = name, []
                self._leaves += 1
            case 3:
                self._fault = f"'{self._leaf}' has elements of its own"
        self._depth += 1

    def end(self, name: str) -> None:
        self._depth -= 1
        match self._depth:
            case 2:
                self._values[name] = "".join(self._text)
                self._text = self._own
            case 1:
                text = "".join(self._own)
                if self._leaves and text.strip():
                    self._fault = "it has text beside its elements"
                row = TableRow(self._name, self._values, None if self._leaves else text)
                self.found.append((self._start, self._fault or row))

    def characters(self, data: str) -> None:
        if self._depth > 1:
            self._text.append(data)
        else:
            self.other(data)

    def other(self, *_: str) -> None:
        """Text, a comment or an instruction: a piece by itself where it stands between elements."""
        beside = "it is no element"
        if self._depth == 1 and (not self.found or self.found[-1][1] != beside):
            self.found.append((self.parser.CurrentByteIndex, beside))


# --- rows of one form, read all at once -------------------------------------------------------------------------------

_NAME = r'[^\s<>/="]+'
_VALUE = r'[^"<&\t\n\r]'
_TEXT = r"[^<&\r]"
"""Characters that stand for themselves, in attributes and in text."""
_ROW = re.compile(rf'<({_NAME})((?: {_NAME}="{_VALUE}*")*)>((?:<({_NAME})>{_TEXT}*</\4>)+|{_TEXT}+)</\1>')
_ATTRIBUTE = re.compile(rf' ({_NAME})="[^"]*"')
_LEAF = re.compile(rf"<({_NAME})>[^<]*</\1>")


def rows_alike(text: str) -> Mapping[str, Sequence[str]] | None:
    """The columns of an answer whose rows all have the form of the first; None if some do not."""
    first = _ROW.match(text)
    if first is None:
        return None
    attributes, leaves = _ATTRIBUTE.findall(first[2]), _LEAF.findall(first[3])
    names = [*(f"@{name}" for name in attributes), *(leaves or [first[1]])]
    if len(set(names)) < len(names) or any(name.split(":")[0] == "xmlns" for name in attributes):
        return None
    given = "".join(f' {re.escape(name)}="({_VALUE}*)"' for name in attributes)
    inner = "".join(f"<{re.escape(leaf)}>({_TEXT}*)</{re.escape(leaf)}>" for leaf in leaves) or f"({_TEXT}+)"
    row = re.escape(first[1])
    found = re.findall(f"<{row}{given}>{inner}</{row}>", text)
    rows = [(each,) for each in found] if len(names) == 1 else found  # findall gives a single group without a tuple
    columns: list[Sequence[str]] = list(zip(*rows, strict=True))
    fixed = len(first[0]) - sum(len(column[0]) for column in columns)
    if len(rows) * fixed + sum(sum(map(len, column)) for column in columns) < len(text):
        return None  # something stands between the rows
    return dict(zip(names, columns, strict=True))
