"""How much of the past of its streams a query can ever need: what must be retained, and what may be forgotten.

For each stream there is a tree of the paths that the query may take (`PathNeed`), and for each path how far back it
looks (`Lookback`): at the versions that lived in the last so many seconds, and at so many versions before these.
The current version is always within reach, so a query without qualifiers looks back no seconds and no versions; `#1`
and `#[1]` look one version further back, `?60` and `?[60]` sixty seconds.
`(e#1)?60` needs both at once: the version that was the last but one a minute ago.

The tree is sound: no answer, now or later, can depend on what it does not reach (LAWS 5.2, 5.4).
It goes by local names, whatever their namespace, and does not look at what conditions say, so it may retain too much.
This is what the history paper calls short history lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Literal, TypeAlias

from anabranch.language import ast
from anabranch.stream.path import Path
from anabranch.stream.tree import Child, Element, Text


@dataclass(frozen=True, slots=True, order=True)
class Lookback:
    """How far back a chain of versions is looked at: what lived in the last `seconds`, and `versions` before that."""

    versions: int = 0
    seconds: Fraction = Fraction(0)

    def covers(self, other: Lookback) -> bool:
        """Whether nothing within reach of the other is out of reach of this one."""
        return self.versions >= other.versions and self.seconds >= other.seconds

    def kept(self, ends: Sequence[Fraction | None], now: Fraction) -> int:
        """How many versions of a chain are within reach, counted from the newest; `ends` are theirs, newest first.

        The newest version always is, even where the life of everything around it has ended: an old version of its
        surroundings shows it.
        """
        if not self.seconds:  # nothing ends later than now
            return 1 + self.versions
        since = now - self.seconds
        alive = sum(1 for end in ends if end is None or end > since)
        return max(alive, 1) + self.versions

    @property
    def words(self) -> str:
        if not self.seconds:
            return f"{self.versions + 1} versions" if self.versions else "current"
        lived = f"what lived in the last {Decimal(self.seconds.numerator) / self.seconds.denominator:f} s"
        return f"{lived} and {self.versions} before" if self.versions else lived


Lookbacks: TypeAlias = frozenset[Lookback]
"""Several of them, none covered by another; without any, nothing is needed."""
CURRENT = Lookback()


def needed(lookbacks: Iterable[Lookback]) -> Lookbacks:
    """Those that no other one covers."""
    found: list[Lookback] = []
    for each in sorted(set(lookbacks), reverse=True):
        if not any(other.covers(each) for other in found):
            found.append(each)
    return frozenset(found)


def kept(lookbacks: Lookbacks, ends: Sequence[Fraction | None], now: Fraction) -> int:
    """How many versions of a chain to retain, counted from the newest."""
    return max(each.kept(ends, now) for each in lookbacks)


def says(lookbacks: Lookbacks) -> str:
    """The same in words."""
    return "; ".join(each.words for each in sorted(lookbacks))


StepAxis: TypeAlias = Literal["child", "descendant", "attribute"]


@dataclass(eq=False, slots=True)
class PathNeed:
    """A step of a query's paths: how far back the chains that it finds are looked at, and the steps that follow it.

    The tree's root is the document of a stream.
    A tree is filled while it is derived (`needs_of`), and does not change afterwards.
    """

    label: str = ""
    """The local name of an element or attribute, `*`, `text()` or `node()`."""
    axis: StepAxis = "child"
    parent: PathNeed | None = None
    reaches: set[Lookback] = field(default_factory=set)
    """Lookbacks at the chains that this step passes through."""
    below: set[Lookback] = field(default_factory=set)
    """Lookbacks at chains anywhere below, where all content of what the step finds is copied, or taken as text."""
    steps: dict[tuple[StepAxis, str], PathNeed] = field(default_factory=dict)
    touched: bool = False
    """Whether an answer depends on the nodes found here, and not only on nodes below them: see `beyond_entries`."""

    def step(self, axis: StepAxis, label: str) -> PathNeed:
        """The step of this kind that follows; a new one where there was none."""
        if (axis, label) not in self.steps:
            self.steps[axis, label] = PathNeed(label, axis, self)
        return self.steps[axis, label]

    def tree(self) -> Iterator[tuple[int, PathNeed]]:
        """This and all steps that follow, each with its depth; iterative, because a path may have any length."""
        pending = [(0, self)]
        while pending:
            depth, each = pending.pop()
            yield depth, each
            pending += [(depth + 1, step) for step in reversed(each.steps.values())]

    @property
    def words(self) -> str:
        """What is retained here, in words."""
        if self.axis == "attribute":
            return ""
        deep = needed(self.below)
        whole = "whole" if deep == {CURRENT} else f"whole: {says(deep)}" if deep else ""
        return ", ".join(filter(None, (says(needed(self.reaches)), whole)))

    @property
    def top(self) -> PathNeed:
        """The document."""
        place = self
        while place.parent is not None:
            place = place.parent
        return place

    @property
    def path(self) -> str:
        """The path from the document to here."""
        steps: list[str] = []
        place = self
        while place.parent is not None:
            name = f"@{place.label}" if place.axis == "attribute" else place.label
            steps.append(f"{'//' if place.axis == 'descendant' else '/'}{name}")
            place = place.parent
        return "".join((place.label, *reversed(steps)))


@dataclass(frozen=True, slots=True)
class Needs:
    """What a query needs of its streams."""

    streams: Mapping[str, PathNeed]

    def seconds(self, stream: str) -> tuple[Fraction, ...]:
        """After how many seconds a change of the stream may change an answer once more, by time alone; ascending."""
        found = {reach.seconds for _, each in self.streams[stream].tree() for reach in (*each.reaches, *each.below)}
        return tuple(sorted(found - {Fraction(0)}))

    def lines(self) -> Iterator[tuple[str, str]]:
        """Each stream with a line in words for each path that is looked at: `stream("s")//a/b: 2 versions`."""
        for stream, tree in self.streams.items():
            for _, each in tree.tree():
                if each.words:
                    yield stream, f"{each.path}: {each.words}"


def beyond_entries(tree: PathNeed, root: str) -> bool:
    """Whether an answer depends on nodes above the stream's entries: its root element, named `root`, or its document.

    If not, the answer for all entries together is the sequence of the answers for each entry.
    """
    pending: list[tuple[PathNeed, frozenset[int]]] = [(tree, frozenset((_DOCUMENT,)))]
    while pending:
        place, levels = pending.pop()
        if place.touched and not levels.isdisjoint((_DOCUMENT, _ROOT)):
            return True
        pending += [(each, _levels(each, levels, root)) for each in place.steps.values()]
    return False


_DOCUMENT, _ROOT, _BELOW = range(3)


def _levels(step: PathNeed, start: frozenset[int], root: str) -> frozenset[int]:
    """The levels at which the nodes of a step may stand."""
    is_root = step.label in (root, "*", "node()")
    found: set[int] = set()
    for level in start:
        if level == _DOCUMENT and is_root:
            found.add(_ROOT)
        if level > _DOCUMENT or step.axis == "descendant":
            found.add(_BELOW)
    return frozenset(found)


# --- following a document down the tree -----------------------------------------------------------------------


class Visibility:
    """What a query can see of an element and of its content; `of` gives the visibility of a stream's document.

    It is a state of the automaton whose letters are local names; states are made when first asked for, and cached.
    They follow from the query and the names from the root down, so no checkpoint needs to hold them.
    """

    __slots__ = ("_children", "_nodes", "_passing", "_table", "chains", "seen", "whole")

    def __init__(
        self, nodes: frozenset[PathNeed], passing: frozenset[PathNeed], around: Lookbacks, table: _Table
    ) -> None:
        self._nodes, self._passing, self._table = nodes, passing, table
        self._children: dict[str, Visibility] = {}
        self.whole: Lookbacks = needed((*around, *(each for node in nodes for each in node.below)))
        """How far back everything below the element is looked at; nothing where only parts of it are."""
        self.chains: Lookbacks = needed((*self.whole, *(each for step in self._steps() for each in step.reaches)))
        """How far back a chain that stands in the element is looked at; nothing where the query cannot see it."""
        self.seen: bool = bool(nodes or around)
        """Whether the query can find the element itself, and not only what is below it."""

    @staticmethod
    def of(tree: PathNeed) -> Visibility:
        """The visibility of the document of a stream, of which a query needs this much."""
        return Visibility(frozenset((tree,)), frozenset(), frozenset(), {})

    @property
    def blind(self) -> bool:
        """Whether the query can find nothing in the element, now or later."""
        return not self.chains

    def into(self, name: str) -> Visibility:
        """The visibility of a child element with this local name."""
        if name not in self._children:
            found = frozenset(step for step in self._steps() if step.label in (name, "*", "node()"))
            passing = self._passing | {
                step for node in self._nodes for step in node.steps.values() if step.axis == "descendant"
            }
            key = found, passing, self.whole
            if key not in self._table:
                self._table[key] = Visibility(*key, self._table)
            self._children[name] = self._table[key]
        return self._children[name]

    def finds(self, child: Child) -> bool:
        """Whether the query can find a child that is no element."""
        assert not isinstance(child, Element)
        labels = ("text()", "node()") if isinstance(child, Text) else ("node()",)
        return bool(self.whole) or any(step.label in labels for step in self._steps())

    def _steps(self) -> Iterable[PathNeed]:
        for node in self._nodes:
            yield from (each for each in node.steps.values() if each.axis != "attribute")
        yield from self._passing


_Table = dict[tuple[frozenset[PathNeed], frozenset[PathNeed], Lookbacks], Visibility]


# --- deriving the tree from a query ----------------------------------------------------------------------------

_Origin: TypeAlias = tuple[PathNeed, Fraction]
"""The step that a node was found by, and how many seconds ago the document was as it was looked at."""
_Places: TypeAlias = tuple[_Origin, ...]
"""Where the nodes of an expression may come from: without duplicates, in the order found."""

_COUNTING = frozenset({"count", "exists", "empty", "not", "boolean", "name", "local-name"})
"""Functions that look at nothing below the nodes they are given."""


def needs_of(query: ast.Query) -> Needs:
    """What a checked query can ever need of its streams."""
    walk = _Walk({each.name: each for each in query.functions})
    walk.look((query.body,), _LookScope())
    return Needs(walk.streams)


@dataclass(frozen=True, slots=True)
class _LookScope:
    variables: Mapping[str, _Places] = field(default_factory=dict)
    context: _Places = ()
    ago: Fraction = Fraction(0)
    """How many seconds ago the document was as it is looked at."""

    def bind(self, name: str, places: _Places) -> _LookScope:
        return replace(self, variables={**self.variables, name: places})


class _Walk:
    """The walk over a query that finds out where it may look.

    The nodes of an expression are followed as the steps they may come from.
    Where they are copied, compared or computed with, everything below them is looked at; where only their number or
    existence matters, they alone are.
    Under `(e)?t`, which evaluates over the document of `t` seconds ago, everything looks so much further back.
    A function is read once for the origins of its arguments, so functions that call others twice cost no more.
    """

    def __init__(self, functions: Mapping[str, ast.Function]) -> None:
        self.streams: dict[str, PathNeed] = {}
        self._functions = functions
        self._calls: dict[tuple[str, tuple[_Places, ...], Fraction], _Places] = {}

    def look(self, expressions: Iterable[ast.Expression], scope: _LookScope) -> _Places:
        """Visit expressions of which everything below their nodes is looked at, and nothing else is done with them."""
        for each in expressions:
            _look_below(self.visit(each, scope), scope)
        return ()

    def visit(self, expression: ast.Expression, scope: _LookScope) -> _Places:
        """Where the nodes of an expression may come from; whatever is looked at on the way is added to the tree."""
        match expression:
            case ast.String() | ast.Number():
                return ()
            case ast.Variable(name):
                return scope.variables[name]
            case ast.ContextItem():
                return scope.context
            case ast.Root():
                return _united(((each.top, ago),) for each, ago in scope.context)
            case ast.Source(kind, name):
                return _touched(self._document(name, scope)) if kind == "stream" else ()
            case ast.Sequence(items):
                return _united(self.visit(each, scope) for each in items)
            case ast.Call(name, arguments):
                return self._call(name.removeprefix("fn:"), arguments, scope)
            case ast.Filter(base, tail):
                return self._filter(base, tail, scope)
            case ast.Path(start, steps):
                places = self._start(start, scope)
                for step in steps:
                    places = self._tail(self._step(places, step, scope), step.tail, scope)
                return _touched(places)
            case ast.Arithmetic(first, rest):
                return self.look((first, *(operand for _, operand in rest)), scope)
            case ast.Negation(operand):
                return self.look((operand,), scope)
            case ast.Comparison(_, left, right):
                return self.look((left, right), scope)
            case ast.And(operands) | ast.Or(operands):
                for each in operands:
                    self.visit(each, scope)
                return ()
            case ast.If(condition, then, otherwise):
                self.visit(condition, scope)
                return _united((self.visit(then, scope), self.visit(otherwise, scope)))
            case ast.Quantified(_, bindings, condition):
                for name, source in bindings:
                    scope = scope.bind(name, self.visit(source, scope))
                self.visit(condition, scope)
                return ()
            case ast.Flwor():
                return self._flwor(expression, scope)
            case ast.ElementConstructor():
                self._constructor(expression, scope)
                return ()

    def _flwor(self, flwor: ast.Flwor, scope: _LookScope) -> _Places:
        for clause in flwor.clauses:
            source = clause.source if isinstance(clause, ast.For) else clause.value
            scope = scope.bind(clause.variable, self.visit(source, scope))
        if flwor.where is not None:
            self.visit(flwor.where, scope)
        self.look((key.key for key in flwor.order), scope)
        return self.visit(flwor.result, scope)

    def _constructor(self, element: ast.ElementConstructor, scope: _LookScope) -> None:
        values = [each for attribute in element.attributes for each in attribute.value]
        for part in (*values, *element.content):
            match part:
                case ast.Enclosed(value):
                    self.look((value,), scope)
                case ast.ElementConstructor():
                    self._constructor(part, scope)

    def _call(self, name: str, arguments: Sequence[ast.Expression], scope: _LookScope) -> _Places:
        given = tuple(self.visit(each, scope) for each in arguments)
        if name in self._functions:
            key = name, given, scope.ago
            if key not in self._calls:
                function = self._functions[name]
                bound = dict(zip(function.parameters, given, strict=True))
                self._calls[key] = self.visit(function.body, _LookScope(bound, ago=scope.ago))
            return self._calls[key]
        if name not in _COUNTING:
            _look_below(_united(given or (scope.context,)), scope)
        return ()

    # --- paths --------------------------------------------------------------------------------------------

    def _start(self, start: ast.Expression | None, scope: _LookScope) -> _Places:
        if start is None:
            return scope.context
        if isinstance(start, ast.Source) and start.kind == "stream":
            return self._document(start.name, scope)
        return self.visit(start, scope)

    def _document(self, stream: str, scope: _LookScope) -> _Places:
        document = self.streams.setdefault(stream, PathNeed(f'stream("{stream}")'))
        return ((document, scope.ago),)

    def _filter(
        self, base: ast.Expression, tail: Sequence[ast.Predicate | ast.Qualifier], scope: _LookScope
    ) -> _Places:
        if isinstance(base, ast.Path | ast.Filter | ast.Variable | ast.Source | ast.ContextItem | ast.Root):
            return self._tail(self.visit(base, scope), tail, scope)
        then = scope  # such a base is evaluated over the document of that time
        for each in tail:
            if isinstance(each, ast.Qualifier):
                then = replace(then, ago=then.ago + each.amount.exact)
        found = tuple((place, max(ago, then.ago)) for place, ago in self.visit(base, then))
        _reach(found)
        return self._tail(found, [each for each in tail if isinstance(each, ast.Predicate)], scope)

    def _tail(self, places: _Places, tail: Sequence[ast.Predicate | ast.Qualifier], scope: _LookScope) -> _Places:
        if tail:
            _touched(places)
        for each in tail:
            match each:
                case ast.Predicate(condition):
                    self.visit(condition, replace(scope, context=places))
                case ast.Qualifier("version", _, amount):
                    _reach(places, versions=int(amount.text))
                case ast.Qualifier(_, _, amount):
                    _reach(places, seconds=amount.exact)
        return places

    def _step(self, places: _Places, step: ast.Step, scope: _LookScope) -> _Places:
        label = step.test.local if isinstance(step.test, ast.NameTest) else f"{step.test.kind}()"
        places = tuple((each, max(ago, scope.ago)) for each, ago in places)
        match step.axis:
            case "child":
                return _found(places, "descendant" if step.deep else "child", label)
            case "descendant":
                return _found(places, "descendant", label)
            case "self" if not step.deep:
                return places
            case "self" | "descendant-or-self":
                return _united((places, _found(places, "descendant", label)))
            case "attribute" | "parent":
                starts = _united((places, _found(places, "descendant", "node()"))) if step.deep else places
                if step.axis == "attribute":
                    return tuple((each.step("attribute", label), ago) for each, ago in _touched(starts))
                return _touched(_united(_parents(each) for each in starts))


def _found(places: _Places, axis: StepAxis, label: str) -> _Places:
    found = tuple((each.step(axis, label), ago) for each, ago in places if each.axis != "attribute")
    _reach(found)
    return found


def _parents(place: _Origin) -> _Places:
    """Where the parents of nodes may stand: of what is anywhere below a step, at that step or anywhere below it."""
    node, ago = place
    if node.parent is None:
        return ()
    above = ((node.parent, ago),)
    return above if node.axis != "descendant" else (*above, *_found(above, "descendant", "node()"))


def _touched(places: _Places) -> _Places:
    for each, _ in places:
        each.touched = True
    return places


def _reach(places: _Places, versions: int = 0, seconds: Fraction = Fraction(0)) -> None:
    for each, ago in places:
        each.reaches.add(Lookback(versions, ago + seconds))


def _look_below(places: _Places, scope: _LookScope) -> None:
    for each, ago in places:
        each.below.add(Lookback(0, max(ago, scope.ago)))


def _united(groups: Iterable[_Places]) -> _Places:
    return tuple(dict.fromkeys(each for group in groups for each in group))


def looks_at(tree: PathNeed, path: Path) -> bool:
    """Whether a path of an entry, or something above or below it, may be looked at; entries stand below the root.

    As in a query's lineage, a step to any depth counts where it may lead to the path itself.
    """
    found, deep = [tree], list[PathNeed]()  # what leads to the node so far, and what may lead to any node below it
    for name in (None, None, *path.steps):
        if any(each.below for each in found):
            return True
        steps = [step for each in found for step in each.steps.values()]
        deep += [step for step in steps if step.axis == "descendant"]
        found = [step for step in (*deep, *(each for each in steps if each.axis != "descendant")) if _leads(step, name)]
    return bool(found)


def _leads(step: PathNeed, name: str | None) -> bool:
    """Whether a step leads to an element or attribute of this name; None is an element of any name."""
    if name is None:
        return step.axis != "attribute" and step.label != "text()"
    local = name.rpartition(":")[2].removeprefix("@")
    return (step.axis == "attribute") == name.startswith("@") and step.label in (local, "*", "node()")
