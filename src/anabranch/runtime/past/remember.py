"""Standing queries, answered item by item: those of one item at a time, and the shape of the history paper's query 3.

One `for` or path runs over a stream, without qualifier and window, and its rounds may ask for the past of paths over
streams.
Each item is answered once, when it arrives, and its results stand (LAWS 5.5): the answer only grows, and no more is
remembered than rounds to come can ask for (`recollection.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from anabranch.language import ast
from anabranch.law.arrivals.past import Past
from anabranch.law.calls import PythonFunction
from anabranch.law.inputs import Arrival, Evolved, Input, Signal
from anabranch.law.paths import base_of
from anabranch.law.slices import WholeNeeded
from anabranch.runtime.past.asked import Asked, asked_of
from anabranch.runtime.past.recollection import Recollection
from anabranch.runtime.standing import Standing, standing
from anabranch.runtime.units import NOTHING, Piece, joined, piece_of
from anabranch.stream.elements import DeadLetter


@dataclass(frozen=True, slots=True)
class Shape:
    """A query of this shape: what each round adds, and what is asked of the past."""

    standing: Standing
    asked: tuple[Asked, ...]

    def around(self, text: str) -> str:
        """The whole answer, where all pieces together are this text."""
        return f"{self.standing.opening}{text}{self.standing.closing}" if text else self.standing.empty


def shape_of(
    query: ast.Query, functions: Mapping[str, PythonFunction] | None = None, text: str | None = None
) -> Shape | None:
    """A query that can be answered item by item; None for one of another shape."""
    found = standing(query, functions, text, past=True)
    asked = asked_of(query) if found.kind == "items" else None
    return None if asked is None else Shape(found, asked)


class Remembering:
    """Answers one query whose results stand, element by element."""

    def __init__(
        self,
        shape: Shape,
        inputs: Mapping[str, Input],
        functions: Mapping[str, PythonFunction] | None = None,
        name: str | None = None,
    ) -> None:
        whole = shape.standing
        assert whole.hole is not None
        self._standing = whole
        self._hole = whole.hole
        self._recollection = Recollection(whole.query, shape.asked, inputs, functions, name, whole.text)
        source = base_of(whole.fors[0].source if isinstance(self._hole, ast.Flwor) else self._hole)
        assert isinstance(source, ast.Source)
        self._stream = source.name

    @property
    def held(self) -> int:
        """How many items it must remember."""
        return self._recollection.held

    @property
    def dead(self) -> list[DeadLetter]:
        """What was set aside, each thing once."""
        return self._recollection.dead

    def take(self, stream: str, element: Arrival | Signal | Evolved) -> Piece:
        """Take the next element; gives what it adds to the answer."""
        self._recollection.take(stream, element)
        if not isinstance(element, Arrival) or stream != self._stream:
            return NOTHING
        values = self._recollection.value(self._hole, self._standing.env, element)
        return piece_of(values, self._standing.scope)


def answer_by_item(
    query: ast.Query,
    inputs: Mapping[str, Input],
    *,
    functions: Mapping[str, PythonFunction] | None = None,
    name: str | None = None,
    text: str | None = None,
) -> tuple[str, list[DeadLetter]] | None:
    """The answer of a query over finite inputs, and what was set aside; None where it must be left to the law."""
    shape = shape_of(query, functions, text)
    if shape is None:
        return None
    remembering = Remembering(shape, inputs, functions, name)
    try:
        pieces = [remembering.take(each.stream, each.element) for each in Past(query, inputs).moments]
    except WholeNeeded:  # a path turns out to reach the root of a stream
        return None
    return shape.around("".join(joined(pieces))), remembering.dead
