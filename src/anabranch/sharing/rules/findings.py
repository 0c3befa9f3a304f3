"""The environment that the inference rules hand on, and the findings that they add to.

The judgment of a rule (sharing paper, 3.2.4) is read so: under an *environment*, an expression adds to the *findings*.
The environment is immutable, and each rule hands its own to the rules of the parts; the findings are one object per
walk, to which rules only add.

Constructs without a rule (`//`, `*`, attributes, functions, quantifiers, orders, positions) are *touched*: everything
that such an expression may look at is returned. Sharing may lose by it, answers may not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeGuard

from anabranch.aggregates import BY_PANES
from anabranch.aggregates.function import FunctionName
from anabranch.language import ast
from anabranch.language.rewrite import children
from anabranch.predicate import EVERYTHING, Predicate, and_, simplify
from anabranch.sharing.rules.conditions import (
    CONTEXT,
    LocatedPath,
    Meaning,
    Names,
    OpaqueValue,
    StreamNodes,
    Understood,
    conditions_at_nodes,
    conditions_on_way,
    locate,
    raises_first,
)
from anabranch.sharing.tree import (
    ITEM,
    AggregateAnnotation,
    OutputAnnotation,
    Steps,
    WindowAnnotation,
    both,
    conjuncts,
    is_value,
    looked_at,
    positive_part,
    union,
)


@dataclass(frozen=True, slots=True)
class Environment:
    """Where an expression stands in its query: the paper's Env, and the conditions and loops around the expression."""

    names: Names = field(default_factory=dict)
    """What the variables in scope mean."""
    when: Predicate = EVERYTHING
    """The condition under which the expression is evaluated: all conditions around it, joined by *and*."""
    loops: tuple[StreamNodes, ...] = ()
    """What the loops around the expression run over."""
    join: ast.Flwor | None = None
    """The expression whose loops over streams are the inputs of a forest; a tree has none."""
    apart: bool = False
    """Whether each loop over a stream is an input by itself, of which nothing is known how it meets others."""

    def bind(self, name: str, meaning: Meaning) -> Environment:
        """The environment with one more variable."""
        return replace(self, names={**self.names, name: meaning})

    def under(self, when: Predicate) -> Environment:
        """The environment with another condition."""
        return replace(self, when=when)


_Key: TypeAlias = tuple[FunctionName, Steps, tuple[tuple[int, Predicate], ...]]


@dataclass(slots=True)
class Findings:
    """What the rules have found so far in one walk over a query."""

    windows: bool = True
    """Whether windows and aggregates are looked for; if not, they are constructs without a rule."""
    letters: bool = False
    """Whether what fails has to be the same, too, where windows and tuples are made elsewhere."""
    outputs: defaultdict[str, list[OutputAnnotation]] = field(default_factory=lambda: defaultdict(list))
    """What is returned or looked at, by the input it belongs to; the only input of a tree has the name ''."""
    values: dict[_Key, AggregateAnnotation] = field(default_factory=dict)
    window: WindowAnnotation | None = None
    inputs: list[tuple[Steps, WindowAnnotation | None]] = field(default_factory=list)
    """What the loops of a join run over, in their order."""
    apart: dict[str, str] = field(default_factory=dict)
    """By input: the stream that a loop by itself runs over."""
    stream_loops: int = 0
    """The number of loops over the stream."""
    fits: bool = True
    """Whether all windows and aggregates found so far are parts of one tree."""

    @property
    def aggregates(self) -> tuple[AggregateAnnotation, ...]:
        """The aggregates, in the order of first mention."""
        return tuple(self.values.values())

    def output(self, path: Steps, when: Predicate, *, whole: bool = True, input: str = "") -> None:
        """Add an element that is needed under a condition."""
        self.outputs[input].append(OutputAnnotation(path, when, whole))

    def select(self, aggregate: AggregateAnnotation, when: Predicate) -> None:
        """Add a condition under which the value of an aggregate is needed; occurrences are joined by *or*."""
        key = (aggregate.function, aggregate.path, aggregate.pre)
        known = self.values[key]
        self.values[key] = replace(known, selection=union(known.selection, when))

    def unfit(self, unless: bool = False) -> None:
        """Note that the findings do not make up one tree, unless a condition holds."""
        self.fits = self.fits and unless

    def aggregate(self, expression: ast.Expression, names: Names) -> AggregateAnnotation | None:
        """The aggregate that an expression is, of a window or of the whole stream; None for anything else."""
        match expression:
            case ast.Variable(name):
                meaning = names.get(name)
                return meaning if isinstance(meaning, AggregateAnnotation) else None
            case ast.Call(name, (argument,)) if self.windows:
                function = name.removeprefix("fn:") if name.removeprefix("fn:") in BY_PANES else None
                found = locate(argument, names)
                if function is None or found is None or not found.complete:
                    return None
                of_stream = found.from_stream and len(found.path) >= ITEM
                if of_stream and (self.stream_loops or self.outputs):
                    self.unfit()
                    return None
                if not of_stream and not (found.base.window and found.base.exact):
                    return None
                pre = conditions_at_nodes(found, {}, self.aggregate)
                if pre is None or (self.letters and raises_first(found, {}, self.aggregate)):
                    self.unfit(unless=not of_stream)
                    return None
                # written in one form, so that equal aggregates have equal names
                pre = tuple((depth, and_(*sorted(conjuncts(simplify(each)), key=repr))) for depth, each in pre)
                return self.values.setdefault(
                    (function, found.path, pre), AggregateAnnotation(function, found.path, pre)
                )
            case _:
                return None


_COUNTING = frozenset(("count", "exists", "empty", "window-start", "window-end"))
"""Functions that look at nothing in the items that they are given."""


def is_item(at: LocatedPath | None) -> TypeGuard[LocatedPath]:
    """Whether a variable stands for items of a stream, and nothing in them."""
    return at is not None and at.complete and not at.tails and not at.from_stream and len(at.path) == ITEM


def touch(node: Any, env: Environment, found: Findings) -> None:
    """Add everything that an expression may look at, under the condition of its environment.

    Paths are taken as far as they lead by plain steps, those inside predicates too, and aggregates as such.

    for $p in stream("s")/r/i where contains($p/k, "u") and $p/b > 1 return $p/c/@id
    ->
    r
      i  σ b > 1
        b •
        c •
        k •
    """
    match node:
        case ast.Call() if value := found.aggregate(node, env.names):
            found.select(value, env.when)
        case ast.Call(name, (argument,)) if name.removeprefix("fn:") in _COUNTING and (
            is_item(at := locate(argument, env.names))
        ):
            found.output(at.path, env.when, whole=False, input=at.base.input)
        case ast.Path() | ast.Variable() | ast.Filter() | ast.ContextItem() | ast.Source():
            _touch_path(node, env, found)
        case ast.Flwor(clauses, condition, order, result):
            for each in clauses:
                touch(each.source if isinstance(each, ast.For) else each.value, env, found)
                env = env.bind(each.variable, OpaqueValue())
            touch((condition, order, result), env, found)
        case ast.Quantified(_, bindings, condition):
            for name, source in bindings:
                touch(source, env, found)
                env = env.bind(name, OpaqueValue())
            touch(condition, env, found)
        case _:
            for part in children(node):
                touch(part, env, found)


def _touch_path(expression: Any, env: Environment, found: Findings) -> None:
    at = locate(expression, env.names)
    if at is None:
        if isinstance(expression, ast.Path | ast.Filter):
            touch(children(expression), env.bind(CONTEXT, OpaqueValue()), found)
        elif isinstance(expression, ast.Variable) and (value := found.aggregate(expression, env.names)):
            found.select(value, env.when)
        return
    if at.from_stream:  # a look at the stream, whatever item or window it is taken for
        env = env.under(EVERYTHING)
        found.unfit()
    found.output(at.path, env.when, input=at.base.input)
    for depth, conditions in at.tails:
        here = StreamNodes(at.path[:depth], usable=False, input=at.base.input)
        touch(conditions, env.bind(CONTEXT, here), found)
    if not at.complete and isinstance(expression, ast.Path):
        touch(tuple(step.tail for step in expression.steps), env.bind(CONTEXT, OpaqueValue()), found)


# --- conditions and rounds ------------------------------------------------------------------------------------------


def under(known: Understood, env: Environment, found: Findings) -> Environment:
    """The environment inside a condition; elements that it looks at are needed: subscribers evaluate it again."""
    inner = both(env.when, known.predicate)
    for term, needed in looked_at(inner):
        if is_value(term):
            found.select(next(each for each in found.aggregates if each.term == term), needed)
        else:
            found.output(term.path.steps, needed, input=term.input)
    for each in known.rest:
        touch(each, env.under(positive_part(inner)), found)
    return env.under(inner)


def along(source: LocatedPath, env: Environment, found: Findings) -> Environment:
    """The environment behind the predicates of a path."""
    for inside, known in conditions_on_way(source, env.names, found.aggregate):
        env = env.under(under(known, replace(env, names=inside), found).when)
    return env


def rounds(expression: ast.Expression, env: Environment) -> Iterator[StreamNodes]:
    """The elements of loops that must be sent so that an expression is evaluated once for each of them."""
    match expression:
        case ast.Sequence() | ast.If() | ast.Flwor():
            return  # their parts are asked one by one
        case ast.Path() | ast.Filter() | ast.Variable() if at := locate(expression, env.names):
            for each in env.loops:  # an element that is above what is returned comes along with it
                if each.input != at.base.input or at.path[: len(each.path)] != each.path:
                    yield each
        case ast.Source() if locate(expression, env.names):
            return
        case ast.Variable(name) if not isinstance(env.names.get(name), OpaqueValue):
            return
        case _:
            yield from env.loops
