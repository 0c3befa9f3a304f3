"""How much work one evaluation may be: steps, counted alike wherever a query is evaluated (LAWS 2.6).

Steps are counted where work can multiply: calls, rounds, predicates, pairs of values, values of sequences, nodes that
are copied, long texts.
A path without predicates, an arithmetic operation or an aggregate is part of the step that asks for it, so one step may
look at every node of an item once, and no more.

An allowance belongs to one unit (an item, a window, a pair), or to one part of a query that stands by itself.
What is evaluated apart has one of its own, so it makes no difference to the expression around it whether the value was
computed before, elsewhere or just now.
So the same steps are counted in the reference, in a branch that remembers, and with any sharing.
What is answered in columns is not counted at all: it is bounded when it is compiled (`columnar/items/query.py`), such
that the law would need far fewer steps than the least limit that can be set; of rows that are looked up in documents it
is their number that is bounded, for each item (`columnar/tables/joined_look.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.stream.limits import Limits
from anabranch.stream.tree import LETTERS, Document, descendants
from anabranch.values.sequences import Values

T = TypeVar("T")

_NODE = 10
"""Steps that each node of a document behind `doc()` adds to the allowance of an evaluation that reads it."""
_RESUMED = 8
"""How often an evaluation goes on behind an exhausted operand, where another operand of `and` or `or` may decide."""

_NOTHING: frozenset[int] = frozenset()
_limit = Limits().steps


def allow(steps: int) -> None:
    """Set the limit for this process, before anything is evaluated in it: a task sets that of its plan."""
    global _limit  # as with Spark, there is one engine to a process
    _limit = steps


class Exhausted(DynamicError):
    """An evaluation has taken all its steps."""

    def __init__(self) -> None:
        super().__init__(
            f"the evaluation takes more than {_limit:,} steps for each item in it; 'max_steps' allows more",
            code="XPDY0130",
        )


class Counting:
    """Counts the steps of the evaluation at work."""

    def __init__(self) -> None:
        self.left = _limit
        """The steps that are left of the allowance."""
        self._granted: frozenset[int] = _NOTHING
        """The documents and sources that have added to the allowance, by identity."""
        self._sizes: dict[int, int] = {}
        """The number of nodes of documents, by identity."""
        self._tests_apart = False
        """Whether each predicate is evaluated apart."""

    def begin(self, items: int = 1) -> None:
        """Begin an evaluation that stands by itself, in which `items` items take part."""
        self.left, self._granted = _limit * items, _NOTHING

    def apart(self, body: Callable[[], T], items: int = 1) -> T:
        """Evaluate something with an allowance of its own, inside of another evaluation."""
        before = self.left, self._granted, self._tests_apart
        self.left, self._granted, self._tests_apart = _limit * items, _NOTHING, False
        try:
            return body()
        finally:
            self.left, self._granted, self._tests_apart = before

    def chosen_apart(self, values: Sequence[T], test: Callable[[T], bool]) -> list[T]:
        """The values that pass a test, which is evaluated apart for each."""
        before = self.left, self._granted
        self._tests_apart = False
        chosen: list[T] = []
        try:
            for value in values:
                self.begin()
                if test(value):
                    chosen.append(value)
        finally:
            self.left, self._granted = before
            self._tests_apart = True
        return chosen

    def spend(self, steps: int) -> None:
        """Take some steps."""
        self.left -= steps
        if self.left < 0:
            raise Exhausted

    def resume(self, left: int) -> bool:
        """Go on behind a part that took too many steps, with those left before it; False where these are used up."""
        self.left = left - _limit // _RESUMED
        return self.left >= 0

    def grant_items(self, source: ast.Expression | ast.Qualifier, items: int) -> None:
        """Add the allowance of items that a part of the query reads; a second reading of them adds nothing."""
        if id(source) not in self._granted:
            self._granted |= {id(source)}
            self.left += items * _limit

    def grant_document(self, document: Document) -> None:
        """Add the allowance of a whole document that the query reads."""
        if id(document) not in self._granted:
            self._granted |= {id(document)}
            if id(document) not in self._sizes:
                self._sizes[id(document)] = sum(1 for _ in descendants(document))
            self.left += _NODE * self._sizes[id(document)]


def made_here(expression: ast.Expression) -> bool:
    """Whether all that an expression gives was made by constructors in it, which have counted its nodes."""
    match expression:
        case ast.ElementConstructor():
            return True
        case ast.Sequence(items):
            return all(map(made_here, items))
        case ast.Flwor(result=result):
            return made_here(result)
        case ast.If(_, then, otherwise):
            return made_here(then) and made_here(otherwise)
        case _:
            return False


def text_steps(arguments: list[Values], results: Values) -> int:
    """The steps of a function that looks at texts or makes one."""
    found = 0
    for values in (*arguments, results):
        if len(values) == 1 and isinstance(values[0], str):
            found += len(values[0]) >> LETTERS
    return found
