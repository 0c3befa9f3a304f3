"""What a walk over a query gathers for its tree, and the way of all constructs that have no rule.

`touch` asks for everything that an expression may look at, without looking into it for conditions: paths whole, as far
as they lead by plain steps, those inside predicates too, and aggregates of the window as such.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from dataclasses import replace
from typing import Any

from anabranch.language import ast
from anabranch.language.rewrite import rebuild
from anabranch.predicate import EVERYTHING, Predicate
from anabranch.sharing.rules.conditions import CONTEXT, Names, Nodes, Something, locate
from anabranch.sharing.tree import AggregateAnnotation, OutputAnnotation, Steps, union


class Touching(ABC):
    """Gathers outputs and aggregates; whoever knows the rules says what an aggregate is."""

    def __init__(self) -> None:
        self.outputs: defaultdict[str, list[OutputAnnotation]] = defaultdict(list)
        """What was found so far, by the input it belongs to."""
        self.aggregates: dict[tuple[Any, ...], AggregateAnnotation] = {}
        self.fits = True
        """Whether all windows and aggregates found so far are parts of one tree."""

    @abstractmethod
    def aggregate(self, expression: ast.Expression, names: Names) -> AggregateAnnotation | None:
        """The aggregate that an expression is, if any."""

    @property
    def found(self) -> tuple[AggregateAnnotation, ...]:
        """The aggregates, in the order of first mention."""
        return tuple(self.aggregates.values())

    def add(self, path: Steps, condition: Predicate, *, whole: bool = True, input: str = "") -> None:
        self.outputs[input].append(OutputAnnotation(path, condition, whole))

    def select(self, aggregate: AggregateAnnotation, when: Predicate) -> None:
        """An aggregate is returned under a condition."""
        key = (aggregate.function, aggregate.path, aggregate.pre)
        known = self.aggregates[key]
        self.aggregates[key] = replace(known, selection=union(known.selection, when))

    def touch(self, node: Any, names: Names, when: Predicate) -> None:
        """Ask for everything that an expression may look at."""
        match node:
            case ast.Call() if aggregate := self.aggregate(node, names):
                self.select(aggregate, when)
            case ast.Path() | ast.Variable() | ast.Filter() | ast.ContextItem() | ast.Source():
                self.touch_path(node, names, when)
            case ast.Flwor(clauses, where, order, result):
                for clause in clauses:
                    names = self.touch_clause(clause, names, when)
                self.touch((where, order, result), names, when)
            case ast.Quantified(_, bindings, condition):
                for name, source in bindings:
                    names = self.touch_clause(ast.For(name, source), names, when)
                self.touch(condition, names, when)
            case _:
                self.touch_parts(node, names, when)

    def touch_parts(self, node: Any, names: Names, when: Predicate) -> None:
        def visit(part: Any) -> Any:
            self.touch(part, names, when)
            return part

        rebuild(node, visit)

    def touch_clause(self, clause: ast.For | ast.Let, names: Names, when: Predicate) -> Names:
        source = clause.source if isinstance(clause, ast.For) else clause.value
        self.touch(source, names, when)
        return {**names, clause.variable: Something()}

    def touch_path(self, path: Any, names: Names, when: Predicate) -> None:
        found = locate(path, names)
        if found is None:
            if isinstance(path, ast.Path | ast.Filter):
                self.touch_parts(path, {**names, CONTEXT: Something()}, when)
            elif isinstance(path, ast.Variable) and isinstance(meaning := names.get(path.name), AggregateAnnotation):
                self.select(meaning, when)
            return
        if not found.base.path:
            when = EVERYTHING  # a look at the stream, whatever item or window it is taken for
            self.fits = False
        self.add(found.path, when, input=found.base.input)
        for depth, conditions in found.tails:
            here = Nodes(found.path[:depth], usable=False, input=found.base.input)
            self.touch(conditions, {**names, CONTEXT: here}, when)
        if not found.complete and isinstance(path, ast.Path):
            self.touch(tuple(step.tail for step in path.steps), {**names, CONTEXT: Something()}, when)
