"""Equality in a join: which entries of another stream an entry can be joined with.

Where `$x/a = $y/b` is one of the conditions that must all hold, an entry of `$x` need only be compared with those
entries of `$y` that have a key in common with it: for the others the condition is false, whatever the rest of it says
or raises (LAWS 2.4).
That is so for a `for` over the other stream, with the condition in `where`, and for `some ... satisfies`, wherever it
stands; and what is evaluated between the two, for each entry that is bound, must not fail: that would be missed for the
entries that are left out.
So more streams may be joined, each with the first one.
Texts are compared as they are written (LAWS 2.3), and the values of paths are untyped text.

`key_between` finds the key in a query, and `Meeting` is an index of the keys of two streams' entries.
An entry whose keys cannot be found, because their evaluation fails, meets all others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from anabranch.language import ast
from anabranch.language.equalities import is_path_from, number_of_variables
from anabranch.language.rewrite import bindings_in, conjuncts, parts
from anabranch.law.paths import base_of
from anabranch.values.atomic import Atomic, Measured


@dataclass(frozen=True, slots=True)
class JoinKey:
    """The expressions that give the keys of an entry, and of an entry of the other stream."""

    own: ast.Expression
    other: ast.Expression

    def written(self, values: Iterable[Atomic]) -> tuple[str, ...] | None:
        """The keys that values are; None where a change of unit has made a number, which meets other texts."""
        found = tuple(values)
        return None if any(isinstance(each, Measured) for each in found) else tuple(map(str, found))


def key_between(flwor: ast.Flwor, stream: str, other: str) -> JoinKey | None:
    """The key by which entries of a stream meet those of another, each read once."""
    for pair in pairs_between(flwor, stream, other):
        for condition in pair.conditions:
            if not isinstance(condition, ast.Comparison) or condition.operator != "=":
                continue
            for one, two in ((condition.left, condition.right), (condition.right, condition.left)):
                if is_path_from(one, pair.variable) and is_path_from(two, pair.other_variable):
                    return JoinKey(pair.own(one), pair.other(two))
    return None


@dataclass(frozen=True, slots=True)
class JoinPair:
    """The variables of a query that hold entries of two streams, and the conditions that must all hold of them."""

    clauses: tuple[ast.For | ast.Let, ...]
    """The clauses up to the `for` over the first stream."""
    variable: str
    other_variable: str
    other_source: ast.Expression
    conditions: tuple[ast.Expression, ...]

    def own(self, path: ast.Expression) -> ast.Expression:
        """What a path gives for an entry of the first stream."""
        return ast.Flwor(self.clauses, None, (), path)

    def other(self, path: ast.Expression) -> ast.Expression:
        """What a path gives for an entry of the other stream."""
        return ast.Flwor((ast.For(self.other_variable, self.other_source),), None, (), path)


def pairs_between(flwor: ast.Flwor, stream: str, other: str) -> Iterator[JoinPair]:
    """The pairs of a stream's variable, which the first `for` binds, and one of another stream, each bound once."""
    bindings = bindings_in(flwor)
    place = next(place for place, clause in enumerate(flwor.clauses) if isinstance(clause, ast.For))
    first = flwor.clauses[place]
    if bindings[first.variable] != 1 or not _reads(first, stream):
        return
    for name, source, conditions in _met(flwor, place):
        if bindings[name] == 1 and base_of(source) == ast.Source("stream", other) and not number_of_variables(source):
            yield JoinPair(flwor.clauses[: place + 1], first.variable, name, source, conditions)


def _met(flwor: ast.Flwor, place: int) -> Iterator[tuple[str, ast.Expression, tuple[ast.Expression, ...]]]:
    """The variables that are bound behind the first `for` such that nothing fails behind them before the conditions.

    Each comes with its source, and with the conditions.
    """
    first = flwor.clauses[place]
    assert isinstance(first, ast.For)
    nodes = (first.variable,) if isinstance(base_of(first.source), ast.Source) else ()
    for at, clause in enumerate(flwor.clauses):
        behind = flwor.clauses[at + 1 :]
        if at > place and isinstance(clause, ast.For) and binds_nodes((*nodes, clause.variable), behind):
            yield clause.variable, clause.source, tuple(conjuncts(flwor.where))
    for part in parts(flwor):
        if isinstance(part, ast.Quantified) and part.kind == "some":
            for at, (name, source) in enumerate(part.bindings):
                if binds_nodes((*nodes, name), tuple(ast.For(*each) for each in part.bindings[at + 1 :])):
                    yield name, source, tuple(conjuncts(part.condition))


def binds_nodes(known: Iterable[str], clauses: Iterable[ast.For | ast.Let]) -> bool:
    """Whether clauses bind what plain paths find, from streams and from variables that hold nodes; those never fail."""
    nodes = set(known)
    for clause in clauses:
        if isinstance(clause, ast.For) and clause.window is not None:
            return False
        for part in parts(clause.source if isinstance(clause, ast.For) else clause.value):
            match part:
                case ast.Variable(name) if name in nodes:
                    pass
                case ast.Source("stream") | ast.Path() | ast.Step() | ast.NameTest() | ast.KindTest():
                    pass
                case ast.Filter() | ast.Qualifier() | ast.Number() | ast.Duration():
                    pass
                case _:
                    return False
        nodes.add(clause.variable)
    return True


def _reads(node: ast.For | ast.Let, stream: str) -> bool:
    """Whether a clause reads a stream."""
    return any(part == ast.Source("stream", stream) for part in parts(node))


ANY = None
"""The key of an entry that may meet any other."""


class Meeting:
    """The keys of the entries of one stream (`own`) and of another; the evaluator adds them by `put`."""

    def __init__(self) -> None:
        self.own = Keyed()
        self.other = Keyed()

    def met_by_other(self, entry: int) -> set[int]:
        """The own entries that an entry of the other stream meets."""
        return self.own.with_any(self.other.keys.get(entry, ()))

    def met_by_own(self, entry: int) -> set[int]:
        """The entries of the other stream that an own entry meets."""
        return self.other.with_any(self.own.keys.get(entry, ()))


class Keyed:
    """The keys of some entries, and the entries of each key."""

    def __init__(self) -> None:
        self.keys: dict[int, tuple[str | None, ...]] = {}
        self._entries: defaultdict[str | None, set[int]] = defaultdict(set)

    def put(self, entry: int, keys: Iterable[str | None]) -> None:
        """Set the keys of an entry; none for one that is gone."""
        for key in self.keys.pop(entry, ()):
            self._entries[key].discard(entry)
            if not self._entries[key]:
                del self._entries[key]
        found = tuple(dict.fromkeys(keys))
        if found:
            self.keys[entry] = found
        for key in found:
            self._entries[key].add(entry)

    def with_any(self, keys: Iterable[str | None]) -> set[int]:
        """The entries with one of these keys, or with any."""
        if ANY in keys:
            return set(self.keys)
        found: set[int] = set()
        for key in (*keys, ANY) if keys else ():
            found |= self._entries.get(key, set())
        return found
