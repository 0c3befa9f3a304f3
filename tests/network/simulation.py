"""A planned network at work, in plain Python: every flow is made of what reaches its peer, every answer of its flows.

Items and tuples are made by the reference, as the operators say (`network/operators.py`).
Windows travel as exact states, from which larger ones are put together, as an engine would do it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from anabranch.aggregates.exact import rounded
from anabranch.language import check, parse, print_query
from anabranch.law import evaluate, text_input
from anabranch.network.catalogue import Catalogue
from anabranch.network.estimates import Sample
from anabranch.network.operators import (
    Ask,
    HandOn,
    Operator,
    answering,
    arriving,
    operator,
)
from anabranch.predicate import And, Compare, Not, Or, Predicate, Term
from anabranch.sharing.remote import CombineWindows, MakeWindows, ReadWindows
from anabranch.sharing.render import generic_names
from anabranch.sharing.tree import AggregateAnnotation, PropertyTree
from anabranch.values.atomic import Untyped, finite_value, spell
from models.restructuring import restructure

TIME = "det_time"


@dataclass(frozen=True)
class State:
    """What is known of some values: enough for every aggregate of them together with others."""

    count: int
    sum: Fraction
    least: Fraction | None
    greatest: Fraction | None

    @staticmethod
    def of(texts: list[Untyped]) -> State:
        """The state of what stands in elements; where they are only counted, nothing need stand there."""
        values = [each for each in map(finite_value, texts) if each is not None]
        return State(len(texts), sum(values, Fraction(0)), min(values, default=None), max(values, default=None))

    def __add__(self, other: State) -> State:
        least = [each for each in (self.least, other.least) if each is not None]
        greatest = [each for each in (self.greatest, other.greatest) if each is not None]
        return State(
            self.count + other.count,
            self.sum + other.sum,
            min(least, default=None),
            max(greatest, default=None),
        )

    def value(self, function: str) -> Fraction | None:
        """The aggregate of all values."""
        match function:
            case "count":
                return Fraction(self.count)
            case "sum":
                return self.sum
            case "avg":
                return self.sum / self.count if self.count else None
            case "min":
                return self.least
            case _:
                return self.greatest


Windows = dict[int, dict[Term, State]]
Carried = str | Windows


def answers(catalogue: Catalogue, streams: Mapping[str, str], *, arrived: bool = False) -> dict[str, str]:
    """The answer of every subscription; streams are given as documents.

    With `arrived`, everything is made of what reaches a peer from elsewhere.
    """
    carried: dict[str, Carried] = {}
    for flow in catalogue.downwards():
        if flow.inputs:
            read = arriving(catalogue, flow) if arrived else flow.inputs
            carried[flow.name] = _made(operator(catalogue, flow, read), [carried[name] for name in read])
        else:
            carried[flow.name] = streams[flow.name]
    found: dict[str, str] = {}
    for name, each in catalogue.subscriptions.items():
        read = arriving(catalogue, each) if arrived else each.reads
        given = [carried[flow] for flow in read]
        match answering(catalogue, each, read):
            case Ask() as asked:
                found[name] = _asked(asked, given)
            case ReadWindows(windows, text):
                [made] = given
                rest = restructure(check(parse(text), text).query, windows.source.schema)
                document = _document(windows.tree, _put_together(windows, made))
                found[name] = alone(print_query(rest.query), {windows.tree.stream: document})
    return found


def alone(text: str, streams: Mapping[str, str]) -> str:
    """The answer of a query, as a single engine gives it."""
    query = check(parse(text), text).query
    found = evaluate(query, {name: text_input(each, name=name, time=TIME) for name, each in streams.items()})
    assert not found.dead
    return found.text


def _asked(asked: Ask, given: Sequence[Carried]) -> str:
    return alone(asked.text, {name: _text(each) for name, each in zip(asked.names, given, strict=True)})


def _made(made: Operator, given: Sequence[Carried]) -> Carried:
    """What a flow carries, made of what it reads."""
    match made:
        case HandOn():
            return given[0]
        case Ask():
            return _asked(made, given)
        case MakeWindows(tree):
            return _selected(_windows(tree, _text(given[0])), tree)
        case CombineWindows(tree, _):
            return _selected(_put_together(made, given[0]), tree)


def _text(carried: Carried) -> str:
    assert isinstance(carried, str)
    return carried


# --- windows ----------------------------------------------------------------------------------------------


def _put_together(made: CombineWindows, given: Carried) -> Windows:
    """Windows of smaller ones."""
    assert isinstance(given, dict)
    selection = made.selection
    if selection is None:
        return given
    found: Windows = {}
    for number in range(max(given, default=0) // selection.step + 1):
        first = number * selection.step
        places = range(first, first + selection.count * selection.every, selection.every)
        parts = [given[place] for place in places if place in given]
        if parts:
            found[number] = {term: _sum([part[term] for part in parts]) for term in parts[0]}
    return found


def _windows(form: PropertyTree, document: str) -> Windows:
    """The windows of a form with their states, of items."""
    window = form.window
    assert window is not None
    assert window.reference is not None
    items = [each.item for each in text_input(document).arrivals]
    sample = Sample(form.stream, items)
    assert len(items) == sample.count, "a sample keeps only so many"
    entering = sample.sent(window.pre)
    references = sample.texts(window.reference)
    held: dict[int, list[int]] = {}
    for place in range(len(items)):
        if entering[place]:
            value = finite_value(references[place][0])
            assert value is not None
            for number in window.extent.holding(value):
                held.setdefault(number, []).append(place)
    texts = {each.term: sample.texts(each.path) for each in form.aggregates}
    return {
        number: {term: State.of([each for place in places for each in texts[term][place]]) for term in texts}
        for number, places in held.items()
    }


def _sum(states: list[State]) -> State:
    total = states[0]
    for each in states[1:]:
        total += each
    return total


def _selected(windows: Windows, form: PropertyTree) -> Windows:
    """The windows of which anything is sent, and of those what is sent."""
    found: Windows = {}
    for number, states in windows.items():
        sent = {each.term for each in form.aggregates if _holds(each.selection, form.aggregates, states)}
        if sent:
            found[number] = {term: state for term, state in states.items() if term in sent}
    return found


def _document(form: PropertyTree, windows: Windows) -> str:
    """Windows as the rest of a query reads them."""
    assert form.window is not None
    root = form.window.path[0]
    return f"<{root}>{''.join(_window_text(form, windows[number]) for number in sorted(windows))}</{root}>"


def _window_text(form: PropertyTree, states: Mapping[Term, State]) -> str:
    """A window as figure 6 writes it."""
    assert form.window is not None
    content = ""
    for name, each in zip(generic_names(form.aggregates), form.aggregates, strict=True):
        if each.term in states and _holds(each.selection, form.aggregates, states):
            value = states[each.term].value(each.function)
            shown = "" if value is None else spell(int(value) if each.function == "count" else rounded(value))
            content += f"<{name}>{shown}</{name}>"
    item = form.window.path[-1]
    return f"<{item}>{content}</{item}>" if content else ""


def _holds(condition: Predicate, aggregates: tuple[AggregateAnnotation, ...], states: Mapping[Term, State]) -> bool:
    """Whether a condition on values holds; a value that was not sent fulfils nothing."""
    match condition:
        case And(parts):
            return all(_holds(each, aggregates, states) for each in parts)
        case Or(parts):
            return any(_holds(each, aggregates, states) for each in parts)
        case Not(part):
            return not _holds(part, aggregates, states)
        case Compare(term, op, constant):
            function = next(each.function for each in aggregates if each.term == term)
            value = states[term].value(function) if term in states else None
            if value is None:
                return False
            assert isinstance(constant, Fraction)
            double, other = float(rounded(value)), float(constant)
            return {
                "=": double == other,
                "!=": double != other,
                "<": double < other,
                "<=": double <= other,
                ">": double > other,
                ">=": double >= other,
            }[op]
        case _:
            raise AssertionError(condition)
