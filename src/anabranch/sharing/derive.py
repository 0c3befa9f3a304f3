"""From a query to its property tree: the inference rules (1) to (10) of the sharing paper, 3.2.4, in plain form.

The rules walk through what a query returns and carry along the condition under which it is returned: conditions on the
way to one occurrence of a path are joined by *and*, occurrences by *or*.
(As printed, the rules unite both alike, and the branches of an `if` would contradict each other.)
Of a window query's `where`, conjuncts that name an aggregate belong to what is returned, the others to the window.

What the subscriber looks at again when it runs the query over what it is sent is an output too, and here the rules need
care that the paper does not take:

* the printed plain form marks the path of a `for` whole, and with it all of each item; what it needs is the element
  itself, and only where its round gives something by itself, as `<hit/>` does;
* elements that a condition looks at may be missing where it does not hold, unless a `not` or an `else` would turn their
  absence into a yes (`tree.looked_at`).

A construct without a rule (`//`, `*`, attributes, quantifiers, functions, ordering, positions in the past) adds all it
may touch as outputs and no condition: sharing may lose by it, answers may not.
So does a window or an aggregate that does not fit into one tree, a second one say.
A query of several inputs has a forest instead (sharing paper, 5.2), and none yet.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from anabranch.algebra.window import Extent
from anabranch.errors import Unsupported
from anabranch.language import ast, print_query
from anabranch.language.rewrite import parts
from anabranch.language.signatures import AGGREGATES
from anabranch.predicate import EVERYTHING, NOTHING, Predicate, and_, simplify, terms
from anabranch.sharing.conditions import CONTEXT, Conditions, Found, Located, Meaning, Names, Nodes, Something, locate
from anabranch.sharing.settle import tree_of
from anabranch.sharing.touching import Touching
from anabranch.sharing.tree import (
    ITEM,
    Aggregate,
    Output,
    PropertyTree,
    Steps,
    Window,
    both,
    conjuncts,
    looked_at,
    positive_part,
)
from anabranch.stream.schema import Schema


def derive(query: ast.Query, schema: Schema | None = None, text: str | None = None) -> PropertyTree:
    """The property tree of a checked query; `Unsupported` where it reads several inputs, or none."""
    sources = {(part.kind, part.name): part for part in parts(query) if isinstance(part, ast.Source)}
    match list(sources):
        case [("stream", name)]:
            pass
        case _:
            joins = "several inputs has a property forest, and forests are not derived yet"
            what = joins if len(sources) > 1 else "no stream has no property tree"
            raise _no_tree(f"a query that reads {what}", query, query.body, text)
    if _looks_out(query):
        return tree_of(name, (Output(()),), None, (), schema)
    for windows in (True, False):
        rules = _Rules(query, windows=windows, text=text)
        rules.result(query.body, {}, EVERYTHING)
        if rules.fits and (rules.window or not rules.aggregates or not rules.outputs):
            break
    # a value that is only named is computed all the same, and may fail
    values = [replace(each, selection=EVERYTHING) if each.selection == NOTHING else each for each in rules.found]
    return tree_of(name, rules.outputs, rules.window, values, schema)


def _no_tree(message: str, query: ast.Query, place: Any, text: str | None) -> Unsupported:
    return Unsupported(
        message,
        text=text if text is not None else print_query(query),
        span=place.span if text is not None else ast.NOWHERE,
        hint="selections, windows and aggregates over one stream have trees",
    )


class _Rules(Touching):
    """One walk over a query. `windows` off means that windows and aggregates are constructs without a rule."""

    def __init__(self, query: ast.Query, *, windows: bool, text: str | None) -> None:
        super().__init__()
        self.query = query
        self.text = text
        self.windows = windows
        self.window: Window | None = None
        self.loops = 0
        self.rounds: list[Steps] = []
        """What the loops around run over."""
        self.conditions = Conditions(self.aggregate)

    # --- what is returned ---------------------------------------------------------------------------------

    def result(self, expression: ast.Expression, names: Names, when: Predicate) -> None:
        """What is returned where `when` holds."""
        if _gives_itself(expression, names):
            for path in self.rounds:
                self.add(path, when, whole=False)
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
                    self.add(at.path, self.through(at, names, when))
                else:
                    self.touch(expression, names, when)
            case _:
                self.touch(expression, names, when)

    def flwor(self, flwor: ast.Flwor, names: Names, when: Predicate) -> None:
        bound: dict[str, Meaning] = dict(names)
        before = self.window
        loops: list[Steps] = []
        for place, clause in enumerate(flwor.clauses):
            match clause:
                case ast.Let(variable, value):
                    bound[variable] = self.let(value, bound, when)
                case ast.For(variable):
                    rest = (flwor.clauses[place + 1 :], flwor.where, flwor.result, flwor.order)
                    bound[variable], when = self.loop(clause, rest, bound, when)
                    meaning = bound[variable]
                    loops += [meaning.path] if isinstance(meaning, Nodes) else []
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
            return Nodes(found.path, False, found.base.usable, found.base.window), self.through(found, names, when)
        if any(isinstance(each, Nodes) for each in names.values()):
            raise _no_tree(
                "a self-join has a property forest, and forests are not derived yet", self.query, clause, self.text
            )
        self.loops += 1
        per_item = clause.window is None and len(found.path) == ITEM and _aggregates_over(clause.variable, rest)
        if clause.window is None and not (per_item and self.windows):
            when = self.through(found, names, when)
            self.fits = self.fits and self.window is None and not (self.aggregates and self.windows)
            return Nodes(found.path, len(found.path) == ITEM), when
        if self.windows and self.loops == 1 and not self.aggregates and when == EVERYTHING:
            window = self.as_window(clause, found, names)
            if window is not None:
                self.window = window
                return Nodes(found.path, window=True), when
        self.fits = self.fits and not self.windows
        when = self.through(found, names, when)
        self.add(found.path, when, whole=False)
        if isinstance(clause.window, ast.TimeWindow):
            self.touch_reference(clause.window.reference, found.path, when)
        return Nodes(found.path, False, usable=False), when

    def as_window(self, clause: ast.For, found: Located, names: Names) -> Window | None:
        """The window of a clause, where items are what it holds and its preselection is understood."""
        pre = self.conditions.at_nodes(found, names)
        if pre is None or len(found.path) != ITEM:
            return None
        inside = and_(*(each for _, each in pre))
        match clause.window:
            case None:
                return Window(found.path, Extent(Fraction(1), Fraction(1)), None, inside)
            case ast.CountWindow(size, step):
                return Window(found.path, _extent(size, step), None, inside)
            case ast.TimeWindow(reference, size, step):
                path = self.reference(reference, found.path)
                return None if path is None else Window(found.path, _extent(size, step), path, inside)

    def reference(self, reference: ast.Path, item: Steps) -> Steps | None:
        """The absolute path of a window's reference element."""
        absolute = isinstance(reference.start, ast.Root)
        start = ast.Source("stream", "") if absolute else None
        found = locate(replace(reference, start=start), {CONTEXT: Nodes(item)})
        plain = found is not None and found.complete and not found.tails and found.path[: len(item)] == item
        return found.path if found is not None and plain else None

    def touch_reference(self, reference: ast.Path, item: Steps, when: Predicate) -> None:
        self.add(self.reference(reference, item) or item, when)

    # --- conditions ---------------------------------------------------------------------------------------

    def where(self, condition: ast.Expression, names: Names, when: Predicate, *, of_window: bool) -> Predicate:
        """The condition of a round; in a window query what speaks of the window alone becomes its postselection."""
        found = self.conditions.find(condition, names)
        if self.window is None or not of_window:
            return self.under(found, names, when)
        about_values = [each for each in conjuncts(found.predicate) if any(term.input for term in terms(each))]
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
            if term.input:
                self.select(next(each for each in self.aggregates.values() if each.term == term), needed)
            else:
                self.add(term.path.steps, needed)
        for each in found.rest:
            self.touch(each, names, positive_part(inner))
        return inner

    def through(self, found: Located, names: Names, when: Predicate) -> Predicate:
        """The condition behind the predicates of a path."""
        for inside, each in self.conditions.on_way(found, names):
            when = self.under(each, inside, when)
        return when

    # --- aggregates ---------------------------------------------------------------------------------------

    def aggregate(self, expression: ast.Expression, names: Names) -> Aggregate | None:
        """The aggregate that an expression is, of a window or of the whole stream; None for anything else."""
        match expression:
            case ast.Variable(name):
                meaning = names.get(name)
                return meaning if isinstance(meaning, Aggregate) else None
            case ast.Call(name, (argument,)) if self.windows:
                function = next((each for each in AGGREGATES if each == name.removeprefix("fn:")), None)
                found = locate(argument, names)
                if function is None or found is None or not found.complete:
                    return None
                over_stream = not found.base.path and len(found.path) >= ITEM
                if over_stream and (self.loops or self.outputs):
                    self.fits = False
                    return None
                if not over_stream and not (found.base.window and found.base.exact):
                    return None
                pre = self.conditions.at_nodes(found, {})
                if pre is None:
                    self.fits = self.fits and not over_stream
                    return None
                pre = tuple((depth, _in_one_form(each)) for depth, each in pre)
                aggregate = Aggregate(function, found.path, pre)
                return self.aggregates.setdefault((function, found.path, pre), aggregate)
            case _:
                return None


def _gives_itself(expression: ast.Expression, names: Names) -> bool:
    """Whether an expression may give something although nothing of the stream is there; its parts are asked apart."""
    match expression:
        case ast.Variable(name):
            return isinstance(names.get(name), Something)
        case ast.Path() | ast.Filter() | ast.Source():
            return locate(expression, names) is None
        case ast.Sequence() | ast.If() | ast.Flwor():
            return False
        case _:
            return True


def _aggregates_over(variable: str, rest: Any) -> bool:
    """Whether an aggregate is taken over the item of each round."""
    for part in parts(rest):
        match part:
            case ast.Call(name, (ast.Variable(start) | ast.Path(ast.Variable(start)),)):
                if start == variable and name.removeprefix("fn:") in AGGREGATES:
                    return True
    return False


def _looks_out(query: ast.Query) -> bool:
    """Whether what a path finds is not to be seen from it: above the item, in the past, in another namespace."""
    everything = list(parts(query))
    absolute = sum(isinstance(p, ast.TimeWindow) and isinstance(p.reference.start, ast.Root) for p in everything)
    if sum(isinstance(part, ast.Root) for part in everything) > absolute:
        return True
    if any(isinstance(part, ast.Source) for part in parts(query.functions)):
        return True
    return any(map(_leads_out, everything))


def _leads_out(part: Any) -> bool:
    match part:
        case ast.Step("parent") | ast.Qualifier():
            return True
        case ast.ElementConstructor(namespaces=namespaces) | ast.Query(namespaces=namespaces):
            return "" in dict(namespaces)
        case _:
            return False


def _in_one_form(condition: Predicate) -> Predicate:
    """A condition as it is written whoever writes it, so that equal aggregates have equal names."""
    return and_(*sorted(conjuncts(simplify(condition)), key=repr))


def _extent(size: ast.Number, step: ast.Number | None) -> Extent:
    return Extent(Fraction(Decimal(size.text)), Fraction(Decimal((step or size).text)))
