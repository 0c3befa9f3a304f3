"""What is told of a window that is sent, and which windows are sent.

A *layout* says which paths are aggregated, in one order for all who have the same tree, and for each of them as much as
somebody asks for: how many values there are (`c`), their sum (`s`), the least and the greatest of them (`l`, `g`).
A window is sent whole or not at all.

What a tree selects is asked of the values as the evaluator would give them, as far as it is plain to see; where it is
not, or where a value has failed, the window is sent: whoever reads it asks again, and a window too many changes
nothing, where one that is missing would.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from anabranch.aggregates import AGGREGATES
from anabranch.aggregates.partial import COLUMNS, Partial
from anabranch.branch.panes.results import AggregateComparison, AggregateValue, AllOf, AnyOf, NumberLiteral, Test, holds
from anabranch.language.aggregates import AggregateCall
from anabranch.predicate import And, Compare, Operator, Or, Predicate, Term
from anabranch.predicate.writing import number_text
from anabranch.sharing.tree import AggregateAnnotation, PropertyTree
from anabranch.values.sequences import Values

ANYTHING = AllOf(())


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths of which windows tell, with the conditions on them, and what of each."""

    places: tuple[str, ...]
    fields: tuple[str, ...]

    @staticmethod
    def of(tree: PropertyTree) -> Layout:
        found: dict[str, str] = {}
        for each in sorted(tree.aggregates, key=_place):
            known = found.get(_place(each), "") + AGGREGATES[each.function].needs
            found[_place(each)] = "".join(field for field in COLUMNS if field in known)
        return Layout(tuple(found), tuple(found.values()))

    def at(self, aggregate: AggregateAnnotation) -> int | None:
        """Which of the paths is that of an aggregate; None where not enough of it is told."""
        place = _place(aggregate)
        if place not in self.places:
            return None
        number = self.places.index(place)
        return number if set(AGGREGATES[aggregate.function].needs) <= set(self.fields[number]) else None


def _place(aggregate: AggregateAnnotation) -> str:
    """What tells the values of an aggregate from those of others, whatever is asked of them."""
    return replace(aggregate, function="count").term.input


@dataclass(frozen=True, slots=True)
class Sending:
    """What is sent of the windows of a query that is counted."""

    layout: Layout
    paths: tuple[int, ...]
    """By place in the layout, the number of the aggregated path."""
    test: Test
    """Which windows are sent."""

    @staticmethod
    def of(tree: PropertyTree, calls: Sequence[AggregateCall], named: Mapping[str, AggregateAnnotation]) -> Sending:
        """`named` are the tree's aggregates by the variables of the calls."""
        layout = Layout.of(tree)
        paths = {layout.at(named[each.variable]): each.path for each in calls}
        names = {each.term: variable for variable, each in named.items()}
        test = AnyOf(tuple(_test(each.selection, names) for each in tree.aggregates))
        return Sending(layout, tuple(paths[each] for each in range(len(layout.places))), test)

    def sends(self, partials: Sequence[Partial], calls: Mapping[str, AggregateCall]) -> bool:
        """Whether a window is sent of which all is known, by aggregated path."""

        def known(named: AggregateValue) -> Values:
            call = calls[named.variable]
            return AGGREGATES[call.function].value(partials[call.path])

        return any(each.failure for each in partials) or holds(self.test, known)


def _test(condition: Predicate, names: Mapping[Term, str]) -> Test:
    """What holds wherever a condition on values does; more where that is not plain to see."""
    match condition:
        case And(parts):
            return AllOf(tuple(_test(each, names) for each in parts))
        case Or(parts):
            return AnyOf(tuple(_test(each, names) for each in parts))
        case Compare(term, operator, Fraction() as constant) if term in names:
            return _compared(AggregateValue(names[term]), operator, constant)
        case _:
            return ANYTHING


def _compared(named: AggregateValue, operator: Operator, constant: Fraction) -> Test:
    """The comparison of a value, exactly and as one of doubles: which of them the query means is not known any more."""
    text = number_text(constant)
    if not text.removeprefix("-").replace(".", "").isdigit():
        return ANYTHING  # no query writes it as a number
    exact = AggregateComparison(operator, named, NumberLiteral([Decimal(text)]))
    double = float(Decimal(text))
    return (
        exact
        if Fraction(double) == constant
        else AnyOf((exact, AggregateComparison(operator, named, NumberLiteral([double]))))
    )
