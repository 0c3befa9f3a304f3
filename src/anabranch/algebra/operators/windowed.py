"""Window: items with the numbers of the windows that hold them.

Law (LAWS 3.1): an item comes out once for each window `W_k` that holds the canonical value of its reference path, with
`k` at the path `wid`; an item whose value is no number is in no window.

Signature (accents 6.2): the reference path is foundation, and descriptions that name it are translated to `wid`. That
is the accumulator's law with more known: the reference path is hidden, and its value lies in the window (LAWS 4.2 e).
So with windows of 10 a drop or alter where `t > 10` comes out where `wid >= 2`, one where `t >= 10` where `wid >= 1`,
an add where `t > 10` already where `wid >= 1`; values of items between the two are written in the old unit.
Items: numbered. Accents: pass, also those on the reference path (LAWS 4.2 b). Punctuations: close windows, as `wid`.
What the signature does not cover: the link between the path and `wid`, below.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from anabranch.algebra.accents.sets import term
from anabranch.algebra.operators.operator import Passing, Work
from anabranch.algebra.reactions.readings import Reading
from anabranch.algebra.reactions.signature import AccentSignature, Paths
from anabranch.algebra.window import Extent
from anabranch.logic import OPPOSITE
from anabranch.predicate import Compare, Integers, Not, Operator, Predicate, and_, compare, or_
from anabranch.predicate.texts import ValueRange, span
from anabranch.predicate.writing import number_text
from anabranch.stream.path import Path
from anabranch.stream.tree import Element, Name, Text, copy

WID = Path(("wid",))
_NUMBERED = {WID: Integers(Fraction(0))}


@dataclass(frozen=True, slots=True)
class Window:
    """The items by the windows over the values at `path`."""

    path: Path
    extent: Extent
    arity: int = 1
    origin: Fraction = Fraction(0)
    """The start of window 0, declared by the stream, alike for all queries (LAWS 3.1)."""

    @property
    def signature(self) -> AccentSignature:
        paths = Paths.of((self.path,))
        return AccentSignature(foundation=paths, accumulator=paths, link=self._windows, made=_NUMBERED)

    def __str__(self) -> str:
        size, step = map(number_text, (self.extent.size, self.extent.step))
        return f"window of {size} every {step} over {self.path}"

    def start(self) -> Work:
        return Numbering(self)

    def _windows(self, literals: Sequence[Predicate]) -> Predicate:
        """The windows that hold a value for which all these comparisons hold.

        A comparison with text is ignored: then these are more windows than necessary, which is safe.
        """
        ranges: list[ValueRange[Fraction]] = [ValueRange()]
        for each in literals:
            match each:
                case Compare(_, op, Fraction() as bound):
                    pass
                case Not(Compare(_, opposite, Fraction() as bound)):
                    op = OPPOSITE[opposite]
                case _:
                    continue
            sides: tuple[Operator, ...] = ("<", ">") if op == "!=" else (op,)
            ranges = [part.meet(span(side, bound)) for part in ranges for side in sides]
        return or_(*(self._over(each) for each in ranges if not each.empty))

    def _over(self, values: ValueRange[Fraction]) -> Predicate:
        wid, (size, step) = term(WID, _NUMBERED), (self.extent.size, self.extent.step)
        bounds = []
        if values.low is not None:
            bounds.append(compare(wid, ">=", max(0, math.floor((values.low - self.origin - size) / step) + 1)))
        if values.high is not None:
            last = (values.high - self.origin) / step
            bounds.append(compare(wid, "<=", math.ceil(last) - 1 if values.high_open else math.floor(last)))
        return and_(*bounds)


class Numbering(Passing):
    """Numbers items by their windows, from a first one on: a late subscription leaves out earlier windows."""

    def __init__(self, operator: Window) -> None:
        super().__init__(self._numbered)
        self.first = 0
        self._operator = operator

    def _numbered(self, reading: Reading) -> Iterator[Reading]:
        operator = self._operator
        values = [each for each in reading.numbers(operator.path) if isinstance(each, Fraction)]
        held = (k for value in values for k in operator.extent.holding(value - operator.origin))
        for k in dict.fromkeys(held):
            if k >= self.first:
                yield replace(reading, tree=_with_window(reading.tree, k))


def _with_window(tree: Element, k: int) -> Element:
    fresh = copy(tree)
    number = Element(Name(WID.steps[0]))
    number.append(Text(str(k)))
    fresh.append(number)
    return fresh
