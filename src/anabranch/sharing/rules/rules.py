"""The inference rules of the sharing paper, (1) to (10) for trees (3.2.4) and (11) to (20) for forests (appendix A).

One walk serves both: the rules for forests are those for trees with each path and each condition given to the input it
belongs to, and a condition that names several is the join annotation.

The rules walk through what a query returns and carry along the condition under which it is returned: conditions on the
way to one occurrence of a path are joined by *and*, occurrences by *or*.
(As printed, the rules unite both alike, and the branches of an `if` would contradict each other.)
Of a window query's `where`, conjuncts that name an aggregate belong to what is returned, the others to the window.
In a join the variables are items (LAWS 3.4), so all of its `where` belongs to what is returned.

What the subscriber looks at again when it runs the query over what it is sent is an output too, and here the rules need
care that the paper does not take:

* the printed plain form marks the path of a `for` whole, and with it all of each item; what it needs is the element
  itself, and only where its round gives something that does not come from that element, as `<hit/>` does;
* elements that a condition looks at may be missing where it does not hold, unless a `not` or an `else` would turn their
  absence into a yes (`tree.looked_at`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from anabranch.language import ast
from anabranch.language.signatures import AGGREGATES
from anabranch.predicate import EVERYTHING, Predicate, and_, simplify, terms
from anabranch.sharing.rules.clauses import aggregates_over, input_name, over_stream, reference_of, window_of
from anabranch.sharing.rules.comparing import Found
from anabranch.sharing.rules.conditions import Conditions, Located, Meaning, Names, Nodes, Something, locate
from anabranch.sharing.rules.touching import Touching
from anabranch.sharing.tree import (
    ITEM,
    AggregateAnnotation,
    Steps,
    WindowAnnotation,
    both,
    conjuncts,
    is_value,
    looked_at,
    positive_part,
)


class Rules(Touching):
    """One walk over a query. `windows` off means that windows and aggregates are constructs without a rule.

    `join` is the expression whose loops over streams are the inputs of a forest; any other with several has no rule.
    """

    def __init__(self, *, windows: bool, join: ast.Flwor | None = None) -> None:
        super().__init__()
        self.windows = windows
        self.join = join
        self.window: WindowAnnotation | None = None
        self.inputs: list[tuple[Steps, WindowAnnotation | None]] = []
        """What the loops of the join run over."""
        self.loops = 0
        self.rounds: list[Nodes] = []
        """What the loops around run over."""
        self.conditions = Conditions(self.aggregate)

    # --- what is returned ---------------------------------------------------------------------------------

    def result(self, expression: ast.Expression, names: Names, when: Predicate) -> None:
        """What is returned where `when` holds."""
        for each in self.counted(expression, names):
            self.add(each.path, when, whole=False, input=each.input)
        match expression:
            case ast.ElementConstructor(_, attributes, _, content):  # rules (1) and (2)
                for part in (*(each for attribute in attributes for each in attribute.value), *content):
                    if isinstance(part, ast.Enclosed):
                        self.result(part.value, names, when)
                    elif isinstance(part, ast.ElementConstructor):
                        self.result(part, names, when)
            case ast.Sequence(items):  # rule (10)
                for item in items:
                    self.result(item, names, when)
            case ast.If(condition, then, otherwise):  # rule (7)
                found = self.conditions.find(condition, names)
                self.result(then, names, self.under(found, names, when))
                if otherwise != ast.Sequence(()):
                    opposite = self.conditions.find(ast.Call("not", (condition,)), names)
                    self.result(otherwise, names, self.under(opposite, names, when))
            case ast.Flwor():  # rules (3) to (6)
                self.flwor(expression, names, when)
            case _ if aggregate := self.aggregate(expression, names):
                self.select(aggregate, when)
            case ast.Path() | ast.Variable() | ast.Filter() if at := locate(expression, names):  # rules (8) and (9)
                if not at.base.path:  # a loop over the stream that is not written out
                    self.loops += 1
                    self.fits = self.fits and self.window is None and not self.aggregates
                apart = not at.base.path and (self.rounds or len(at.path) < ITEM)  # of no item, or of another
                if at.complete and not apart:
                    self.add(at.path, self.through(at, names, when), input=at.base.input)
                else:
                    self.touch(expression, names, when)
            case _:
                self.touch(expression, names, when)

    def counted(self, expression: ast.Expression, names: Names) -> Iterator[Nodes]:
        """The elements whose rounds are seen in what an expression gives, whatever of them it looks at."""
        match expression:
            case ast.Sequence() | ast.If() | ast.Flwor():
                return  # their parts are asked apart
            case ast.Path() | ast.Filter() | ast.Variable() if found := locate(expression, names):
                for each in self.rounds:  # an element that is above what is given comes along with it
                    if each.input != found.base.input or found.path[: len(each.path)] != each.path:
                        yield each
            case ast.Source() if locate(expression, names):
                return
            case ast.Variable(name) if not isinstance(names.get(name), Something):
                return
            case _:
                yield from self.rounds

    def flwor(self, flwor: ast.Flwor, names: Names, when: Predicate) -> None:
        if flwor is not self.join and sum(over_stream(clause, names) for clause in flwor.clauses) > 1:
            self.touch(flwor, names, when)
            self.fits = False
            return
        bound: dict[str, Meaning] = dict(names)
        before = self.window
        loops: list[Nodes] = []
        for place, clause in enumerate(flwor.clauses):
            match clause:
                case ast.Let(variable, value):
                    bound[variable] = self.let(value, bound, when)
                case ast.For(variable):
                    rest = (flwor.clauses[place + 1 :], flwor.where, flwor.result, flwor.order)
                    bound[variable], when = self.loop(clause, rest, bound, when)
                    meaning = bound[variable]
                    loops += [meaning] if isinstance(meaning, Nodes) else []
        if flwor.where is not None:
            when = self.where(flwor.where, bound, when, of_window=self.window is not before)
        for key in flwor.order:
            self.touch(key.key, bound, when)
        self.rounds += loops
        self.result(flwor.result, bound, when)
        self.rounds = self.rounds[: len(self.rounds) - len(loops)]

    def let(self, value: ast.Expression, names: Names, when: Predicate) -> Meaning:
        """Rule (6), and names for paths, which say nothing by themselves."""
        if aggregate := self.aggregate(value, names):
            return aggregate
        found = locate(value, names)
        if found is not None and found.complete and found.base.path and not found.tails:
            return replace(found.base, path=found.path)
        self.touch(value, names, when)
        return Something()

    def loop(self, clause: ast.For, rest: Any, names: Names, when: Predicate) -> tuple[Meaning, Predicate]:
        """Rules (3) to (5): what the variable means, and under which condition a round is."""
        found = locate(clause.source, names)
        if found is None or not found.complete or (not found.base.path and len(found.path) < ITEM):
            self.touch(clause.source, names, when)  # with all that is below, a window's reference too
            return Something(), when
        if found.base.path and clause.window:
            self.touch(clause.source, names, when)
            return Something(), when
        if found.base.path:
            return replace(found.base, path=found.path, exact=False), self.through(found, names, when)
        if self.join is not None:
            return self.joined(clause, found, names, when)
        self.loops += 1
        per_item = clause.window is None and len(found.path) == ITEM and aggregates_over(clause.variable, rest)
        if clause.window is None and not (per_item and self.windows):
            when = self.through(found, names, when)
            self.fits = self.fits and self.window is None and not (self.aggregates and self.windows)
            return Nodes(found.path, len(found.path) == ITEM, input=found.base.input), when
        if self.windows and self.loops == 1 and not self.aggregates and when == EVERYTHING:
            window = self.as_window(clause, found, names)
            if window is not None:
                self.window = window
                return Nodes(found.path, window=True), when
        self.fits = self.fits and not self.windows
        when = self.through(found, names, when)
        self.add(found.path, when, whole=False, input=found.base.input)
        if isinstance(clause.window, ast.TimeWindow):
            reference = reference_of(clause.window.reference, found.path) or found.path
            self.add(reference, when, input=found.base.input)
        return Nodes(found.path, False, usable=False, input=found.base.input), when

    def joined(self, clause: ast.For, found: Located, names: Names, when: Predicate) -> tuple[Meaning, Predicate]:
        """A loop of the join: each has a tree of its own, also where two are over the same stream."""
        own = replace(found, base=replace(found.base, input=input_name(len(self.inputs))))
        pre = self.conditions.at_nodes(own, names)
        window = self.as_window(clause, own, names) if clause.window else None
        self.fits = self.fits and len(found.path) == ITEM and pre is not None and bool(window) == bool(clause.window)
        self.inputs.append((found.path, window))
        if pre is not None and window is None:  # asked of each item before it meets others, so not asked again
            when = both(when, and_(*(each for _, each in pre)))
        return Nodes(found.path, input=own.base.input), when

    def as_window(self, clause: ast.For, found: Located, names: Names) -> WindowAnnotation | None:
        """The window of a clause, where items are what it holds and its preselection is understood."""
        pre = self.conditions.at_nodes(found, names)
        if pre is None or len(found.path) != ITEM:
            return None
        return window_of(clause, found.path, and_(*(each for _, each in pre)))

    # --- conditions ---------------------------------------------------------------------------------------

    def where(self, condition: ast.Expression, names: Names, when: Predicate, *, of_window: bool) -> Predicate:
        """The condition of a round; in a window query what speaks of the window alone becomes its postselection."""
        found = self.conditions.find(condition, names)
        if self.window is None or not of_window:
            return self.under(found, names, when)
        about_values = [each for each in conjuncts(found.predicate) if any(map(is_value, terms(each)))]
        about_window = [each for each in conjuncts(found.predicate) if each not in about_values]
        post = and_(*about_window)
        self.window = replace(self.window, post=both(self.window.post, post))
        for term, _ in looked_at(post):
            self.add(term.path.steps, EVERYTHING)
        return self.under(Found(and_(*about_values), False, found.rest), names, when)

    def under(self, found: Found, names: Names, when: Predicate) -> Predicate:
        """The condition inside another; what both look at is needed by whoever evaluates them again."""
        inner = both(when, found.predicate)
        for term, needed in looked_at(inner):
            if is_value(term):
                self.select(next(each for each in self.aggregates.values() if each.term == term), needed)
            else:
                self.add(term.path.steps, needed, input=term.input)
        for each in found.rest:
            self.touch(each, names, positive_part(inner))
        return inner

    def through(self, found: Located, names: Names, when: Predicate) -> Predicate:
        """The condition behind the predicates of a path."""
        for inside, each in self.conditions.on_way(found, names):
            when = self.under(each, inside, when)
        return when

    # --- aggregates ---------------------------------------------------------------------------------------

    def aggregate(self, expression: ast.Expression, names: Names) -> AggregateAnnotation | None:
        """The aggregate that an expression is, of a window or of the whole stream; None for anything else."""
        match expression:
            case ast.Variable(name):
                meaning = names.get(name)
                return meaning if isinstance(meaning, AggregateAnnotation) else None
            case ast.Call(name, (argument,)) if self.windows:
                function = next((each for each in AGGREGATES if each == name.removeprefix("fn:")), None)
                found = locate(argument, names)
                if function is None or found is None or not found.complete:
                    return None
                of_stream = not found.base.path and len(found.path) >= ITEM
                if of_stream and (self.loops or self.outputs):
                    self.fits = False
                    return None
                if not of_stream and not (found.base.window and found.base.exact):
                    return None
                pre = self.conditions.at_nodes(found, {})
                if pre is None:
                    self.fits = self.fits and not of_stream
                    return None
                pre = tuple((depth, _in_one_form(each)) for depth, each in pre)
                aggregate = AggregateAnnotation(function, found.path, pre)
                return self.aggregates.setdefault((function, found.path, pre), aggregate)
            case _:
                return None


def _in_one_form(condition: Predicate) -> Predicate:
    """A condition as it is written whoever writes it, so that equal aggregates have equal names."""
    return and_(*sorted(conjuncts(simplify(condition)), key=repr))
