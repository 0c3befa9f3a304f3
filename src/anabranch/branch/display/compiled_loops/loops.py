"""Loops over entries, compiled: the usual queries answered from what is kept of an entry, without a view of it.

The law's evaluator builds trees of an entry, and walks the query for each of its rounds.
Most queries over streams of updates are of few forms: paths of names, versions by number, comparisons, arithmetic,
a few functions, and a constructor.
`compiled` makes closures of such a loop; they read the kept nodes themselves, compute with the same functions on values
as the law, and write the text of a result at once.

They answer in good cases only.
Whatever is unusual, be it a name in a namespace, a value from JSON or in another unit, a version whose content has
regions, an error or very much work, raises `Unusual`, and the law's evaluator is asked instead.
So there is no second semantics of errors, of dead letters or of limits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import NamedTuple

from anabranch.algebra.display.display import Piece
from anabranch.branch.display.compiled_loops.kept_nodes import (
    MOST_WORK,
    Closure,
    KeptValues,
    Markup,
    Names,
    Unusual,
    all_of,
    any_of,
    arithmetic,
    atoms,
    collect,
    collect_deep,
    collect_lived,
    comparison,
    constant,
    constant_text,
    holds,
    is_true,
    no_nulls,
    piece_of,
    single,
    spelled,
    write,
)
from anabranch.branch.display.compiled_loops.plain_texts import PLAIN_WORK, PlainRound, plain_round
from anabranch.branch.display.compiled_loops.steps import PathStep, collector, name_of, separates
from anabranch.language import ast
from anabranch.law.functions import BUILTINS
from anabranch.law.history.chains import Content, Lived
from anabranch.law.paths import base_of
from anabranch.stream.serialize import escape_attribute, escape_text
from anabranch.stream.tree import LETTERS, STREAM_NAMESPACE, Element
from anabranch.values.arithmetic import negate
from anabranch.values.atomic import OrderRank, literal, order_rank

_CONTEXT = ""
_FUNCTIONS = frozenset(("count", "exists", "empty", "not", "sum", "avg", "min", "max", "contains", "starts-with"))
"""Functions that look at the values of nodes only, or at none of them."""


class ShownRow(NamedTuple):
    """A result with its ranks, as it is shown."""

    ranks: tuple[OrderRank, ...]
    piece: Piece | None


class CompiledLoop:
    """A loop over the nodes of an entry; `work` counts what its evaluations have done since it was reset."""

    def __init__(
        self,
        steps: Sequence[PathStep],
        rounds: Callable[[Lived], list[tuple[tuple[OrderRank, ...], KeptValues]]],
        is_ordered: bool,
        calls: frozenset[str],
        work: list[int],
        is_separable: bool,
        plain: PlainRound | None = None,
    ) -> None:
        """`plain` is the round of a node of the usual look, where the loop has one."""
        self.steps = steps
        self._plain = plain
        self.is_separable = is_separable
        """Whether an entry may have many nodes, with one result each, that are found without looking into them."""
        self.deep_name = next((each.name for each in steps if each.deep), None)
        self._rounds = rounds
        self.is_ordered = is_ordered
        self.calls = calls
        """The functions that it takes for those of the language."""
        self._work = work

    def rows(self, entry: Content) -> list[ShownRow]:
        """The results of an entry, each as a row where they are ordered, and else all in one."""
        self._work[0] = 0
        nodes = self.nodes((entry,), self.steps)
        if self.is_ordered or (self._plain is not None and len(nodes) == 1):
            return [row for node in nodes for row in self.round(node)]
        values = [value for node in nodes for _, found in self._rounds(node) for value in found]
        return [ShownRow((), piece_of(values))]

    @property
    def work(self) -> int:
        """What was done since the last entry, or the last single round, was begun, or since `begin`."""
        return self._work[0]

    def begin(self) -> None:
        """Count the work of what is asked next from nothing on."""
        self._work[0] = 0

    def hosts(self, entry: Content) -> list[Sequence[Content]]:
        """The contents in which the last step finds the nodes of an entry."""
        self._work[0] = 0
        *before, _ = self.steps
        return [each.content for each in self.nodes((entry,), before)] if before else [(entry,)]

    def single_round(self, node: Lived) -> ShownRow | None:
        """The one result of a node that the last step finds, if the conditions of the step hold and it has one."""
        self._work[0] = 0
        for condition in self.steps[-1].conditions:
            self._spend(1)
            if not is_true(condition({_CONTEXT: [node]})):
                return None
        rows = self.round(node)
        return rows[0] if rows else None

    def values(self, node: Lived) -> KeptValues:
        """The values of one node of the loop."""
        return [value for _, found in self._rounds(node) for value in found]

    def round(self, node: Lived) -> list[ShownRow]:
        """The results of one node of the loop."""
        if self._plain is not None:
            self._work[0] += PLAIN_WORK
            try:
                found = self._plain(node)
            except Unusual:
                pass
            else:
                return [] if found is None else [ShownRow(found[0], Piece(found[1]))]
        if self.is_ordered:
            return [ShownRow(ranks, piece_of(values)) for ranks, values in self._rounds(node)]
        piece = piece_of([value for _, found in self._rounds(node) for value in found])
        return [] if piece is None else [ShownRow((), piece)]

    def nodes(self, content: Sequence[Content], steps: Sequence[PathStep]) -> list[Lived]:
        """The nodes that some steps reach from the content of an element."""
        found: list[Lived] = []
        contents: list[Sequence[Content]] = [content]
        for number, step in enumerate(steps):
            found = []
            for each in contents:
                if step.deep:
                    collect_deep(each, step.name, found, is_last=number == len(steps) - 1)
                else:
                    collect(each, step.name, found)
            for condition in step.conditions:
                self._spend(len(found))
                found = [each for each in found if is_true(condition({_CONTEXT: [each]}))]
            contents = [each.content for each in found]
        return found

    def _spend(self, work: int) -> None:
        self._work[0] += work
        if self._work[0] > MOST_WORK:
            raise Unusual


def compiled(
    expression: ast.Expression, query: ast.Query, root: Element, now: list[Fraction] | None = None
) -> CompiledLoop | None:
    """A loop over the entries of a stream as closures; None where only the law can answer it.

    Its results stand in XML where no namespaces are declared; `?t` is compiled only with `now`, the present time.
    """
    if root.name.uri or root.mark is not None or any(uri != STREAM_NAMESPACE for uri in root.namespaces.values()):
        return None
    try:
        return _Compiler(query, root.name.local, now).loop(expression)
    except Unusual:
        return None


# --- closures -----------------------------------------------------------------------------------------------------


class _Compiler:
    """Compiles the expressions of one query; what it does not know is `Unusual`."""

    def __init__(self, query: ast.Query, root: str, now: list[Fraction] | None) -> None:
        self._now = now
        self._declared = {each.name for each in query.functions}
        self._root = root
        self._bound: set[str] = set()
        self._paths: dict[ast.Path, str] = {}
        """The paths from variables, each with the name under which a round remembers what it finds."""
        self._rebinds = False
        """Whether two variables have one name, so that what a path finds depends on where it stands."""
        self._calls: set[str] = set()
        self._work = [0]

    def loop(self, expression: ast.Expression) -> CompiledLoop:
        match expression:
            case ast.Flwor((ast.For(name, source, None), *clauses), where, order, result):
                pass
            case ast.Path():
                name, source, clauses, where, order, result = "*", expression, [], None, (), ast.Variable("*")
            case _:
                raise Unusual
        steps = self._source(source)
        self._bound.add(name)
        inner = [self._clause(each) for each in clauses]
        condition = None if where is None else self.closure(where)
        keys = [self._atomic(each.key) for each in order]
        value = self.closure(result)
        work = self._work

        def rounds(node: Lived) -> list[tuple[tuple[OrderRank, ...], KeptValues]]:
            tuples: list[Names] = [{name: [node]}]
            for variable, is_loop, source in inner:
                if is_loop:
                    tuples = [{**names, variable: [each]} for names in tuples for each in source(names)]
                else:
                    tuples = [{**names, variable: source(names)} for names in tuples]
            work[0] += 1 + len(tuples)
            if work[0] > MOST_WORK:
                raise Unusual
            found: list[tuple[tuple[OrderRank, ...], KeptValues]] = []
            for names in tuples:
                if condition is None or holds(condition(names)):
                    ranks = tuple([order_rank(single(key(names))) for key in keys])
                    found.append((ranks, value(names)))
            return found

        is_single = not order or not any(is_loop for _, is_loop, _ in inner)
        assert isinstance(source, ast.Path), "its steps were compiled"
        is_separable = is_single and (len(steps) > 1 or steps[0].deep) and separates(source.steps)
        plain: PlainRound | None = None
        if not inner:
            with suppress(Unusual):
                plain = plain_round(name, where, order, result)
        return CompiledLoop(steps, rounds, bool(order), frozenset(self._calls), work, is_separable, plain)

    def _clause(self, clause: ast.For | ast.Let) -> tuple[str, bool, Closure]:
        match clause:
            case ast.For(name, source, None):
                found = self.closure(source)
            case ast.Let(name, value):
                found = self.closure(value)
            case _:
                raise Unusual
        self._rebinds |= name in self._bound
        self._bound.add(name)
        return name, isinstance(clause, ast.For), found

    def _source(self, source: ast.Expression) -> tuple[PathStep, ...]:
        """The steps of a path over a stream, from the content of its root on."""
        if not isinstance(source, ast.Path) or not isinstance(source.start, ast.Source):
            raise Unusual
        first, *rest = source.steps
        if not first.deep:
            if name_of(first) != self._root or first.tail or not rest:
                raise Unusual
            steps = rest
        elif name_of(first) == self._root:
            raise Unusual
        else:
            steps = [first, *rest]
        if sum(each.deep for each in steps) > 1:
            raise Unusual
        return tuple(PathStep(name_of(each), each.deep, self._conditions(each.tail)) for each in steps)

    def _conditions(self, tail: Iterable[ast.Tail]) -> tuple[Closure, ...]:
        found: list[Closure] = []
        for each in tail:
            if not isinstance(each, ast.Predicate):
                raise Unusual
            before, self._bound = self._bound, {_CONTEXT}
            found.append(self.closure(each.condition))
            self._bound = before
        return tuple(found)

    def closure(self, expression: ast.Expression) -> Closure:
        match expression:
            case ast.String(text):
                return constant(text)
            case ast.Number(text):
                return constant(literal(text))
            case ast.Variable(name) if name in self._bound:
                return lambda names: names[name]
            case ast.ContextItem() if _CONTEXT in self._bound:
                return lambda names: names[_CONTEXT]
            case ast.Path():
                return self._path(expression)
            case ast.Sequence(items):
                return self._sequence([self.closure(each) for each in items])
            case ast.Comparison(operator, left, right):
                return comparison(operator, self._atomic(left), self._atomic(right))
            case ast.Arithmetic(first, rest):
                return arithmetic(self._atomic(first), [(each, self._atomic(operand)) for each, operand in rest])
            case ast.Negation(operand):
                inner = self._atomic(operand)

                def negated(names: Names) -> KeptValues:
                    value = single(inner(names))
                    return [] if value is None else [negate(value)]

                return negated
            case ast.And(operands):
                return all_of([self.closure(each) for each in operands])
            case ast.Or(operands):
                return any_of([self.closure(each) for each in operands])
            case ast.If(condition, then, otherwise):
                asked, yes, no = map(self.closure, (condition, then, otherwise))
                return lambda names: (yes if holds(asked(names)) else no)(names)
            case ast.Call(name, arguments):
                return self._call(name.removeprefix("fn:"), arguments)
            case ast.ElementConstructor():
                return self._element(expression)
            case _:
                raise Unusual

    def _atomic(self, expression: ast.Expression) -> Closure:
        """The values of an expression as operators compute with them; a round reads those of a path once."""
        values = self.closure(expression)
        match expression:
            case ast.String() | ast.Number() | ast.Arithmetic() | ast.Negation():
                return values
            case ast.Path() if expression in self._paths and not self._rebinds:
                slot = f"{self._paths[expression]} atoms"
            case _:
                return lambda names: atoms(values(names))

        def remembered(names: Names) -> KeptValues:
            found = names.get(slot)
            if found is None:
                found = names[slot] = atoms(values(names))
            return found

        return remembered

    def _call(self, name: str, given: Sequence[ast.Expression]) -> Closure:
        if name not in _FUNCTIONS or name in self._declared or not given:
            raise Unusual
        self._calls.add(name)
        work = self._work
        if name in ("count", "exists", "empty", "not"):
            (argument,) = map(self.closure, given)
            if name == "count":
                return lambda names: [len(no_nulls(argument(names)))]
            if name == "not":
                return lambda names: [not holds(argument(names))]
            return lambda names: [bool(argument(names)) is (name == "exists")]
        function, arguments = BUILTINS[name], [self._atomic(each) for each in given]

        def called(names: Names) -> KeptValues:
            values = [each(names) for each in arguments]
            work[0] += 1 + sum(map(len, values))
            return list(function(*values))

        return called

    def _sequence(self, items: list[Closure]) -> Closure:
        work = self._work

        def sequence(names: Names) -> KeptValues:
            values = [each for item in items for each in item(names)]
            work[0] += len(values)
            return values

        return sequence

    # --- paths ----------------------------------------------------------------------------------------------

    def _path(self, path: ast.Path) -> Closure:
        base = base_of(path)
        start = _CONTEXT if base is None else base.name if isinstance(base, ast.Variable) else None
        if start not in self._bound or not isinstance(path.start, ast.Variable | None):
            raise Unusual
        steps = [self._step(each, is_last=each is path.steps[-1]) for each in path.steps]
        if sum(each.deep for each in path.steps) > 1:
            raise Unusual
        only = steps[0] if len(steps) == 1 else None

        def walk(names: Names) -> KeptValues:
            values = names[start]
            if len(values) > 1:
                raise Unusual  # they may be nested in one another
            if only is not None:
                return only(values)
            for step in steps:
                values = step(values)
            return values

        if start == _CONTEXT:
            return walk
        slot = self._paths.setdefault(path, f"/{len(self._paths)}")

        def remembered(names: Names) -> KeptValues:
            found = names.get(slot)
            if found is None:
                found = names[slot] = walk(names)
            return found

        return walk if self._rebinds else remembered

    def _step(self, step: ast.Step, is_last: bool) -> Callable[[KeptValues], KeptValues]:
        conditions: list[Closure] = []
        match step.tail:
            case (ast.Qualifier("version", window, ast.Number(text)),) if is_last and step.axis == "child":
                collect = collector(step, (int(text), window), is_last)
            case (ast.Qualifier("time", window, ast.Number() as ago),) if is_last and step.axis == "child":
                collect = self._lived(step, ago.exact, window)
            case tail:
                conditions, collect = list(self._conditions(tail)), collector(step, None, is_last)
        work = self._work

        def plainly(values: KeptValues) -> KeptValues:
            found: KeptValues = []
            for each in values:
                if type(each) is not Lived:
                    raise Unusual
                collect(each, found)
            return found

        if not conditions:
            return plainly

        def reached(values: KeptValues) -> KeptValues:
            found = plainly(values)
            for condition in conditions:
                work[0] += len(found)
                found = [each for each in found if is_true(condition({_CONTEXT: [each]}))]
            return found

        return reached

    def _lived(self, step: ast.Step, ago: Fraction, window: bool) -> Callable[[Lived, KeptValues], None]:
        """The function that adds what lived some time ago, or since then."""
        name, now = name_of(step), self._now
        if now is None or step.deep:
            raise Unusual
        return lambda lived, found: collect_lived(lived.content, name, now[0] - ago, window, found)

    # --- constructors ---------------------------------------------------------------------------------------

    def _element(self, constructor: ast.ElementConstructor) -> Closure:
        names = [constructor.name, *(each.name for each in constructor.attributes)]
        if constructor.namespaces or any(":" in each for each in names) or len(set(names[1:])) < len(names) - 1:
            raise Unusual
        attributes = [(each.name, self._attribute(each)) for each in constructor.attributes]
        content = [self._content(each) for each in constructor.content]
        local, work = constructor.name, self._work

        def element(names: Names) -> KeptValues:
            start = local
            for name, value in attributes:
                start += f' {name}="{escape_attribute(value(names))}"'
            inside = "".join([each(names) for each in content])
            work[0] += 1 + (len(inside) >> LETTERS)
            return [Markup(f"<{start}>{inside}</{local}>" if inside else f"<{start}/>")]

        return element

    def _attribute(self, attribute: ast.AttributeConstructor) -> Callable[[Names], str]:
        parts: list[Callable[[Names], str]] = []
        for each in attribute.value:
            if isinstance(each, ast.Characters):
                parts.append(constant_text(each.value))
            else:
                parts.append(spelled(self._atomic(each.value)))
        return lambda names: "".join([each(names) for each in parts])

    def _content(self, content: ast.Content) -> Callable[[Names], str]:
        work = self._work
        match content:
            case ast.Characters(value):
                return constant_text(escape_text(value))
            case ast.CommentConstructor(value):
                return constant_text(f"<!--{value}-->")
            case ast.ElementConstructor():
                inner = self._element(content)
                return lambda names: str(inner(names)[0])
            case ast.Enclosed(expression):
                values = self.closure(expression)

        def enclosed(names: Names) -> str:
            found = values(names)
            if len(found) == 1 and isinstance(found[0], Lived):
                out: list[str] = []
                write(found[0], out, work)
                return "".join(out)
            piece = piece_of(found)
            work[0] += len(found)
            return "" if piece is None else piece.text

        return enclosed
