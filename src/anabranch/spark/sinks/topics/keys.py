"""The key of a message: the value at a path in its result.

For elements a path is `@id`, `en` or `coord/cel/ra`, below the result; for JSON it is a lookup, `customer.name`.
`.` is the result itself.
The key is the text of the first node there, without markup, or the value as JSON spells it, a string without its
quotes; a result that has nothing there, or `null`, or an object, has no key.

Whether the results of a query can have it is decided when it is registered, as far as the query tells: constructors
name the attributes and children of results, unless they take in whatever an item has.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Set
from typing import Any
from xml.parsers import expat

from anabranch.errors import StreamError, UsageError, did_you_mean
from anabranch.language import ast
from anabranch.language.json_results import JSON_RESULTS
from anabranch.language.objects import OBJECT
from anabranch.spark.sinks import Kafka
from anabranch.spark.sinks.tables import names_in_results
from anabranch.stream.path import Path

ITSELF = "."


class MessageKey:
    """A path in results, as elements have it and as JSON has it."""

    def __init__(self, text: str) -> None:
        self._names = () if text == ITSELF else tuple(text.split("."))
        self._steps = () if text == ITSELF else tuple(text.split("/"))

    def of_element(self, result: str) -> bytes | None:
        """The key of a result in XML; text by itself has one at `.` only."""
        if not result.startswith("<"):
            return None if self._steps else result.encode()
        reading = _KeyReading(self._steps)
        reading.parser.Parse(result.encode(), True)
        return reading.value

    def of_json(self, line: str) -> bytes | None:
        """The key of a line of JSON."""
        value: Any = json.loads(line, parse_int=str, parse_float=str)
        for name in self._names:
            value = value.get(name) if isinstance(value, dict) else None
        match value:
            case bool():
                return b"true" if value else b"false"
            case str():
                return value.encode()
            case _:
                return None


class _KeyReading:
    """Finds the first node at some steps below the element that is parsed; only the parser calls."""

    def __init__(self, steps: tuple[str, ...]) -> None:
        self._attribute = steps[-1][1:] if steps and steps[-1].startswith("@") else None
        self._steps = list(steps[:-1] if self._attribute is not None else steps)
        self._open: list[str] = []
        self._text: list[str] | None = None
        self.value: bytes | None = None
        self.parser = parser = expat.ParserCreate()
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._open.append(name)
        if self.value is not None or self._text is not None or self._open[1:] != self._steps:
            return
        if self._attribute is None:
            self._text = []
        elif self._attribute in attributes:
            self.value = attributes[self._attribute].encode()

    def _end(self, _: str) -> None:
        if self._text is not None and self._open[1:] == self._steps:
            self.value, self._text = "".join(self._text).encode(), None
        self._open.pop()

    def _characters(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)


def check_topic(name: str, sink: Kafka, query: ast.Query | None, *, shows: bool, json: bool) -> None:
    """Refuse a topic that the answer of a subscription does not fit: that of a query, or None for a plan of operators.

    `shows` says that it is a display, `json` that it is JSON.
    """
    if sink.changes is not None and not shows:
        raise UsageError(
            f"the answer of '{name}' only grows, so it has no 'changes'", hint="each of its results is a message"
        )
    if shows and sink.changes != "upserts" and sink.key is not None:
        raise UsageError(
            f"'{name}' is a display that is told in updates, whose order must be kept, so they have no 'key'",
            hint="use changes = 'upserts', a message for each key",
        )
    if sink.key is not None:
        _check_key(name, sink.key, query, json=json)


def _check_key(name: str, key: str, query: ast.Query | None, *, json: bool) -> None:
    """Refuse a key that no result has."""
    if key == ITSELF:
        return
    if json:
        first, known = key.split(".")[0], _keys_in_results(query) if query else None
        if not all(key.split(".")):
            raise UsageError(f"the 'key' of '{name}' is no lookup: '{key}'", hint="as in customer.name")
    else:
        try:
            first, known = Path.parse(key).steps[0], names_in_results(query) if query else None
        except StreamError as error:
            raise UsageError(f"the 'key' of '{name}' is no path: '{key}'", hint=error.hint) from None
    if known is not None and first not in known:
        others = f"there is {', '.join(sorted(known))}" if known else f"'{ITSELF}' is the result itself"
        raise UsageError(f"no result of '{name}' has a '{first}' for a key", hint=did_you_mean(first, known, others))


def _keys_in_results(query: ast.Query) -> Set[str] | None:
    """The keys of the objects that a query gives; None where data may bring others."""
    found: set[str] = set()
    for each in _results(query.body):
        match each:
            case ast.Call(name, arguments) if name == OBJECT:
                keys = arguments[::2]
                if not all(isinstance(key, ast.String) for key in keys):
                    return None
                found.update(key.value for key in keys if isinstance(key, ast.String))
            case _:
                return None
    return found


def _results(expression: ast.Expression) -> Iterator[ast.Expression]:
    match expression:
        case ast.Flwor(result=result) | ast.Pipeline(result=result):
            yield from _results(result)
        case ast.If(_, then, otherwise):
            yield from _results(then)
            yield from _results(otherwise)
        case ast.Sequence(items):
            for each in items:
                yield from _results(each)
        case ast.Filter(base):
            yield from _results(base)
        case ast.Call(name, (first, *_)) if name == JSON_RESULTS:
            yield from _results(first)
        case _:
            yield expression
