"""How a query over update streams splits by entries: what each entry gives by itself, and what is computed from that.

An *entry* is a child of a stream's root.
A part of a query *distributes* over the entries of a stream when its value is that for each entry alone, one after
another; then an update costs the evaluation of one entry, whatever their number.

`parts.py` has the parts.

A part that distributes over one stream may read others too (`beside`), say in a join: then an entry of the one is
evaluated against the others whole, and a change of the others concerns all entries; with an equality between the two
both are narrowed down to entries with a key in common (`joins/keys.py`), and with `<` and its kin to those with numbers
in a range (`joins/ranges.py`).

Whether a query looks at more than its entries is read off the tree of its needs (`beyond_entries`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from anabranch.branch.display.folds import FOLDS
from anabranch.branch.display.groups.grouping import group_part
from anabranch.branch.display.groups.places import sliced
from anabranch.branch.display.joins.keys import JoinKey, key_between
from anabranch.branch.display.joins.ranges import JoinRange, range_between
from anabranch.branch.display.parts import (
    ComputedPart,
    DistinctPart,
    EachPart,
    EditedWindowPart,
    ElementPart,
    EntriesPart,
    FixedPart,
    Folded,
    GroupPart,
    Part,
    SequencePart,
    SlicePart,
    WholePart,
    WindowPart,
    order_of,
    splits,
)
from anabranch.branch.display.window_split import edited_windows
from anabranch.language import ast
from anabranch.language.checks.unbounded import flows, readers, readings
from anabranch.language.objects import JSON
from anabranch.language.rewrite import bindings_in, parts, rebuild
from anabranch.language.versions import ValuePast, is_closed, remembered_in, uses_variables, value_past
from anabranch.law.paths import base_of
from anabranch.runtime.standing import results_of
from anabranch.sharing.needs import needs_of
from anabranch.sharing.retention import beyond_entries

_PLACED = frozenset(("head", "tail", "subsequence", "position", "last"))
"""Functions that ask for places."""


class Splitter:
    """Splits the expressions of one checked query.

    `roots` are the local names of the root elements of its streams, and `functions` those that the user registered.
    Without `by_groups`, groups, different values and places are evaluated anew as a whole.
    """

    def __init__(
        self, query: ast.Query, roots: Mapping[str, str], functions: Collection[str] = (), *, by_groups: bool = True
    ) -> None:
        self._query = query
        self._by_groups = by_groups
        self._roots = roots
        self._user_functions = functions
        self._functions = {each.name: each for each in query.functions}
        self._readers = readers(self._functions)
        self._consulting = frozenset(self._functions) if _reads_document(query.functions) else frozenset()
        """The functions that may read a document."""
        self._names = {part.name for part in parts(query) if isinstance(part, ast.Variable)}
        self._makes_functions = any(isinstance(part, ast.InlineFunction) for part in parts(query))
        """Whether values may be functions, which no state can hold."""
        self._makes_objects = _makes_objects(query)
        """Whether they may be objects or arrays, of which a state can hold the text only."""

    def part(self, expression: ast.Expression) -> Part:
        """Split an expression that stands at the top of the query, or in constructors and sequences there."""
        if not self._reads(expression):
            is_fixed = not self._consults(expression) and not remembers(expression)
            return FixedPart(expression) if is_fixed else ComputedPart(expression, ())
        if self._makes_functions:
            return WholePart(expression, self._streams(expression))
        if (found := self._entries(expression)) is not None and (not self._makes_objects or _keeps_text(found)):
            return found
        if isinstance(expression, ast.Flwor) and (windows := self._edited_windows(expression)) is not None:
            return windows
        match expression:
            case ast.Sequence(items):
                return SequencePart(tuple(self.part(each) for each in items))
            case ast.ElementConstructor(_, attributes, _, content) if not self._varies(attributes):
                if not any(self._gives_attributes(each) for each in content):
                    return ElementPart(expression, tuple(self._content(each) for each in content))
            case ast.Flwor((ast.Let(), *_)) if (inner := self._inlined(expression)) is not None:
                if splits(found_inside := self.part(inner)):
                    return found_inside
        computed = self._computed(expression)
        if computed is not None and not any(_folds_objects(folded) for _, folded in computed.names):
            return computed
        return WholePart(expression, self._streams(expression))

    def _inlined(self, flwor: ast.Flwor) -> ast.Expression | None:
        """`let $a := stream("s")//i return (count($a), avg($a/v))` with the path in the place of `$a`.

        None where that could change what an error concerns (LAWS 2.4): behind predicates and qualifiers of `$a`'s own.
        """
        first, *rest = flwor.clauses
        assert isinstance(first, ast.Let)
        if not self._is_inlined(first.value):
            return None
        is_path = isinstance(first.value, ast.Path | ast.Filter)
        behind = (tuple(rest), flwor.where, flwor.order, flwor.result)
        if first.variable in bindings_in(behind) or (not rest and (flwor.where is not None or flwor.order)):
            return None

        def visit(node: Any) -> Any:
            match node:
                case ast.Filter(ast.Variable(first.variable)) if is_path:
                    raise _Stays
                case ast.Filter() if value_past(node) is not None and _names(node, first.variable):
                    raise _Stays  # its past is that of the nodes that are there now
                case ast.Path(ast.Variable(first.variable), steps):
                    if is_path and any(step.tail for step in steps):
                        raise _Stays
                    return replace(node, start=first.value)
                case ast.Variable(first.variable):
                    return first.value
                case _:
                    return rebuild(node, visit)

        try:
            clauses, where, order, result = visit(behind)
        except _Stays:
            return None
        inner: ast.Expression = result
        return replace(flwor, clauses=clauses, where=where, order=order, result=result) if clauses else inner

    def _is_inlined(self, value: ast.Expression) -> bool:
        """Whether what a `let` names may stand in the place of the name."""
        return isinstance(value, ast.Path | ast.Filter) and flows(value) and not uses_variables(value)

    def _content(self, content: ast.Content) -> ast.Characters | ast.CommentConstructor | Part:
        match content:
            case ast.Enclosed(value):
                return self.part(value)
            case ast.ElementConstructor():
                return self.part(content)
            case _:
                return content

    def _entries(self, expression: ast.Expression, is_shown: bool = True) -> EntriesPart | None:
        """The expression as what gives results entry by entry; None where it does not."""
        if (each := self._each(expression, is_shown)) is not None:
            return each
        if remembers(expression) or not self._by_groups:
            return None
        match expression:
            case ast.Pipeline():
                return self._grouped(expression, is_shown)
            case ast.Call(name, (over,)) if self._is_built_in(name, "distinct-values"):
                return self._distinct(over)
            case ast.Filter() | ast.Call():
                return self._sliced(expression, is_shown)
            case _:
                return None

    def _each(self, expression: ast.Expression, is_shown: bool = True) -> EachPart | None:
        """The expression as what distributes over one stream's entries; None where it does not."""
        source = self._first(expression)
        if source is None or self._readings(expression, source.name) != 1 or remembers(expression):
            return None
        stream = source.name
        if not self._distributes(expression, stream) or (is_shown and self._gives_attributes(expression)):
            return None
        if self._looks_beyond(expression, stream):
            return None
        beside = self._beside(expression, stream)
        found = EachPart(stream, expression, beside, tuple(self._keys(expression, stream, beside)))
        return None if self._consults(found.first) else found  # a document may make it fail, or not, without any entry

    def _grouped(self, pipeline: ast.Pipeline, is_shown: bool) -> GroupPart | None:
        """Groups of the items or entries of a stream, into which each is put by itself."""
        at = next((place for place, each in enumerate(pipeline.clauses) if not isinstance(each, ast.Let)), 0)
        lets, loop, rest = pipeline.clauses[:at], pipeline.clauses[at], pipeline.clauses[at + 1 :]
        if not isinstance(loop, ast.For) or loop.window is not None or self._varies(lets) or self._reads(rest):
            return None
        source = self._first(loop.source)
        if source is None or not self._inside(loop.source, source.name) or self._reads(pipeline.result):
            return None
        stream = source.name
        if self._readings(pipeline, stream) != 1 or self._beside(pipeline, stream):
            return None
        if self._looks_beyond(pipeline, stream) or (is_shown and self._gives_attributes(pipeline)):
            return None
        found = group_part(stream, pipeline, self._user_functions)
        if found is None or self._consults(found.ahead) or self._consults(found.keys):
            return None
        return found if self._keeps_up(found) else None

    def _keeps_up(self, groups: GroupPart) -> bool:
        """Whether groups can be kept up to date: of entries that change, where only aggregates are seen of them."""
        looks_back = any(isinstance(each, ast.Qualifier) for each in parts((groups.behind, groups.result)))
        return not groups.held and groups.count is None and not looks_back

    def _distinct(self, over: ast.Expression) -> DistinctPart | None:
        """The different values of a part, in the order of the first entries that have them."""
        found = self._entries(over, is_shown=False)
        if not isinstance(found, EachPart | WindowPart) or order_of(found) or self._consults(over):
            return None
        return DistinctPart(found)

    def _sliced(self, expression: ast.Expression, is_shown: bool) -> SlicePart | None:
        """Some results by their places."""
        found = sliced(expression)
        if found is None or not _PLACED.isdisjoint(self._user_functions):
            return None
        below, interval = found
        if isinstance(expression, ast.Call) and not self._is_built_in(expression.name, *_PLACED):
            return None
        match self._entries(below, is_shown):
            case None:
                return None
            case SlicePart(over, other):
                inner = interval.within(other)
                return None if inner is None else SlicePart(over, inner)
            case EachPart() if self._consults(below):
                return None  # its results change with a document
            case over:
                return SlicePart(over, interval)

    def _is_built_in(self, name: str, *names: str) -> bool:
        """Whether a function is one of some built-in ones, and not replaced by the user."""
        own = name in self._functions or name in self._user_functions
        return not own and name.removeprefix("fn:") in names

    def _edited_windows(self, flwor: ast.Flwor) -> EditedWindowPart | None:
        """A loop over windows of one stream of updates, whose entries tell which nodes are in windows."""
        source = self._first(flwor)
        if source is None or self._readings(flwor, source.name) != 1 or self._beside(flwor, source.name):
            return None
        at = next(place for place, each in enumerate(flwor.clauses) if isinstance(each, ast.For))
        loop = flwor.clauses[at]
        assert isinstance(loop, ast.For)
        if loop.window is None or not self._inside(loop.source, source.name) or not is_closed(flwor):
            return None
        if self._reads(flwor.clauses[:at]) or self._consults(flwor) or self._gives_attributes(flwor):
            return None
        if self._looks_beyond(flwor, source.name) or any(isinstance(each, ast.Qualifier) for each in parts(flwor)):
            return None
        return edited_windows(source.name, flwor, at, self._user_functions)

    def _keys(
        self, expression: ast.Expression, stream: str, beside: tuple[str, ...]
    ) -> Iterator[tuple[str, JoinKey | JoinRange]]:
        for other in beside:
            if isinstance(expression, ast.Flwor) and self._readings(expression, other) == 1:
                given = expression, stream, other
                key = key_between(*given) or range_between(*given, self._functions, self._user_functions)
                read = () if key is None else (key.other, *(key.other_beside if isinstance(key, JoinRange) else ()))
                if key is not None and not any(self._looks_beyond(each, other) for each in read):
                    yield other, key

    def _looks_beyond(self, expression: ast.Expression, stream: str) -> bool:
        tree = needs_of(replace(self._query, body=expression)).streams[stream]
        return beyond_entries(tree, self._roots[stream])

    def _gives_attributes(self, content: ast.Expression | ast.Content) -> bool:
        match content:
            case ast.Characters() | ast.CommentConstructor():
                return False
            case ast.Enclosed(value):
                return self._gives_attributes(value)
            case _:
                return "attribute" in results_of(content, self._functions)

    def _first(self, expression: ast.Expression) -> ast.Source | None:
        """The stream whose entries an expression runs over, outermost."""
        match expression:
            case ast.Flwor(clauses):
                for clause in clauses:
                    if isinstance(clause, ast.For):
                        return self._first(clause.source)
                return None
            case ast.Path() | ast.Filter():
                base = base_of(expression)
                return None if base is None else self._first(base) if base is not expression else None
            case ast.Source("stream"):
                return expression
            case _:
                return None

    def _distributes(self, expression: ast.Expression, stream: str) -> bool:
        """Whether what an expression gives for all entries is what it gives for each, in their order.

        The stream is read once in it, and nothing above its entries is looked at.
        """
        match expression:
            case ast.Filter(_, tail) if any(isinstance(each, ast.Positional) for each in tail):
                return False  # positions are those among all entries
            case ast.Path() | ast.Filter():
                return isinstance(base_of(expression), ast.Source) or (
                    isinstance(expression, ast.Filter) and self._inside(expression.base, stream)
                )
            case ast.Flwor(clauses):
                for clause in clauses:
                    if isinstance(clause, ast.For):
                        return clause.window is None and self._inside(clause.source, stream)
                    if self._reads(clause):  # it is evaluated, and may fail, even without any entry
                        return False
                return False
            case _:
                return False

    def _inside(self, expression: ast.Expression, stream: str) -> bool:
        """Whether an expression distributes inside another one, where an order would be one of all entries."""
        if isinstance(expression, ast.Flwor) and (expression.order or isinstance(expression.clauses[0], ast.Let)):
            return False
        return self._distributes(expression, stream)

    def _computed(self, expression: ast.Expression) -> ComputedPart | None:
        """The expression with its aggregates taken out, where nothing else in it reads a stream."""
        names: dict[str, Folded] = {}

        def visit(node: Any) -> Any:
            if isinstance(node, ast.Filter) and any(isinstance(each, ast.Qualifier) for each in node.tail):
                return node  # it is remembered, or evaluated over an earlier state of the document
            folded = self._folded(node) if isinstance(node, ast.Call | ast.Quantified) else None
            if folded := folded or self._all(node):
                name = f"fold{len(names)}"
                while name in self._names:
                    name += "_"
                names[name] = folded
                return ast.Variable(name, span=node.span)
            return rebuild(node, visit)

        bare = visit(expression)
        return None if self._reads(_without_remembered(bare)) else ComputedPart(bare, tuple(names.items()))

    def value_part(self, expression: ast.Expression) -> ComputedPart | WholePart:
        """A closed expression whose values are remembered, as what computes them."""
        if not self._reads(expression):
            return ComputedPart(expression, ())
        computed = None if self._makes_functions else self._computed(expression)
        if computed is not None and not any(_folds_objects(folded) for _, folded in computed.names):
            return computed
        return WholePart(expression, self._streams(expression))

    def _all(self, node: Any) -> Folded | None:
        """All results of a part, as an aggregate of their own; None for streams of updates."""
        return None

    def _folded(self, node: ast.Call | ast.Quantified) -> Folded | None:
        """An aggregate, or a quantifier, over a part that distributes."""
        if not self._reads(node) or not is_closed(node):
            return None  # it may have another value in each round of a loop around it
        if isinstance(node, ast.Quantified):
            (_, source), *_ = node.bindings
            stream = self._first(source)
            if stream is None or not self._inside(source, stream.name) or self._readings(node, stream.name) != 1:
                return None
            if remembers(node):
                return None
            if self._looks_beyond(node, stream.name):
                return None
            return Folded(node.kind, EachPart(stream.name, node, self._beside(node, stream.name)))
        name = node.name.removeprefix("fn:")
        if name not in FOLDS or name in self._functions:
            return None
        each = self._entries(node.arguments[0], is_shown=False)
        return None if each is None else Folded(name, each)

    def _beside(self, expression: ast.Expression, stream: str) -> tuple[str, ...]:
        return tuple(name for name in self._streams(expression) if name != stream)

    # --- what is read -------------------------------------------------------------------------------------

    def _reads(self, node: Any) -> bool:
        return bool(readings(node, self._readers))

    def _consults(self, node: Any) -> bool:
        """Whether a part of the query reads a document."""
        return _reads_document(node) or any(
            isinstance(each, ast.Call) and each.name in self._consulting for each in parts(node)
        )

    def _varies(self, node: Any) -> bool:
        """Whether a part of the query has a value that may change."""
        return self._reads(node) or self._consults(node) or remembers(node)

    def _streams(self, node: Any) -> tuple[str, ...]:
        """The streams that a part of the query reads, by itself or through functions."""
        return tuple(needs_of(replace(self._query, body=node)).streams)

    def _readings(self, node: Any, stream: str) -> int:
        """In how many places a stream is read; a function that reads anything counts as two."""
        found = readings(node, self._readers)
        return sum(2 if isinstance(each, ast.Call) else each.name == stream for each in found)


def _reads_document(node: Any) -> bool:
    """Whether `doc()` stands in a part of a query."""
    return any(isinstance(each, ast.Source) and each.kind == "doc" for each in parts(node))


def remembers(node: Any) -> bool:
    """Whether a part of a query asks for values that are remembered."""
    return any(True for _ in remembered_in(node))


def _is_remembered(past: ValuePast | None) -> bool:
    return past is not None and past.has_versions and is_closed(past.expression)


def _without_remembered(node: Any) -> Any:
    """A part of a query without what is looked up among remembered values."""
    if isinstance(node, ast.Filter) and _is_remembered(past := value_past(node)):
        assert past is not None
        return _without_remembered(ast.Filter(ast.Sequence(()), past.behind)) if past.behind else ast.Sequence(())
    return rebuild(node, _without_remembered)


def _names(node: Any, variable: str) -> bool:
    return any(isinstance(part, ast.Variable) and part.name == variable for part in parts(node))


class _Stays(Exception):  # a signal between two functions, not an error
    """A variable cannot be replaced by what it stands for."""


def _makes_objects(node: Any) -> bool:
    """Whether a part of a query looks into JSON, or makes it."""
    return any(isinstance(part, ast.Call) and part.name in JSON for part in parts(node))


def _keeps_text(part: EntriesPart) -> bool:
    """Whether all that is kept of results is their text and their places in an order."""
    match part:
        case EachPart(beside=beside):
            return not beside
        case WindowPart():
            return True
        case SlicePart(over):
            return _keeps_text(over)
        case _:
            return False


def _folds_objects(folded: Folded) -> bool:
    """Whether objects may be among the values that an aggregate keeps, or the keys of its groups."""
    return not (folded.function in _COUNTING and _keeps_text(folded.over)) and _looks_at_objects(folded.over)


def _looks_at_objects(part: EntriesPart) -> bool:
    match part:
        case EachPart(expression=expression):
            return _makes_objects(expression)
        case WindowPart(flwor):
            return _makes_objects(flwor)
        case GroupPart(pipeline=pipeline):
            return _makes_objects(pipeline)
        case SlicePart(over) | DistinctPart(over):
            return _looks_at_objects(over)


_COUNTING = ("count", "exists", "empty")
"""Aggregates that keep numbers, whatever they count."""
