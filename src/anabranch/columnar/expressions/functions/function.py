"""What a function over columns is: the type of its value for some arguments, and the values of many rows at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from anabranch.columnar.expressions.texts import TextColumn
from anabranch.columnar.expressions.tree import INSTANTS, Expression, Kind
from anabranch.columnar.expressions.values import UNCLEAR, ColumnValue, States, spelled, state_of

KindOf: TypeAlias = Callable[[Sequence[Expression]], Kind | None]
Body: TypeAlias = Callable[[Kind, Sequence[ColumnValue], int], ColumnValue]

TEXTUAL = (Kind.UNTYPED, Kind.STRING)
NUMERIC = (Kind.UNTYPED, Kind.DOUBLE, Kind.INTEGER, Kind.DECIMAL)
SPELLED = (*TEXTUAL, Kind.DOUBLE, Kind.INTEGER, Kind.DECIMAL, Kind.BOOLEAN, *INSTANTS)


@dataclass(frozen=True, slots=True)
class ColumnFunction:
    """A function over columns."""

    kind_of: KindOf
    """The type of its value for some arguments; None where it does not compile to columns."""
    evaluate: Body
    context: bool = False
    """Whether the context item stands for an argument that is left out."""
    typed: bool = False
    """Whether numbers and truth values of JSON are arguments as such, and not as text without a type."""


def taking(kinds: Sequence[Kind], counts: Sequence[int], result: Kind) -> KindOf:
    """Arguments that are all of some kinds."""

    def kind_of(values: Sequence[Expression]) -> Kind | None:
        return result if len(values) in counts and all(each.kind in kinds for each in values) else None

    return kind_of


def text_of(value: ColumnValue, count: int) -> tuple[TextColumn, States | None]:
    """The text of each row, empty where there is none, and the state that marks unclear rows."""
    found = spelled(value, count)
    assert found.texts is not None
    unclear = None if found.state is None else state_of(found.state == UNCLEAR, UNCLEAR)
    return found.texts, unclear


def doubtful(verdicts: np.ndarray[tuple[int], np.dtype[np.uint8]], state: States | None) -> States:
    """Outcomes that are unclear where a state is."""
    if state is not None:
        verdicts[state == UNCLEAR] = 1
    return verdicts
