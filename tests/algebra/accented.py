"""Accented streams in short: `t=68 s=1` is an item, and what comes out is shown the same way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anabranch.algebra.accents.boxes import within
from anabranch.algebra.accents.items import leaves, spelled, values
from anabranch.algebra.accents.sets import items_of
from anabranch.algebra.operators.operator import Operator
from anabranch.algebra.plans.interpret import Apply, Plan, StreamSource
from anabranch.algebra.reactions.readings import Spelling
from anabranch.algebra.reactions.signature import Policy
from anabranch.logic import EVERYTHING
from anabranch.predicate import Domain, Predicate, or_
from anabranch.stream.affine import parse as parse_map
from anabranch.stream.description import parse as parse_description
from anabranch.stream.elements import Accent, Add, Alter, Drop, Item, Place, Punctuation
from anabranch.stream.path import Path
from anabranch.stream.tree import Element as Tree
from anabranch.stream.tree import Name, Text
from anabranch.values.numbers import nearest_double, spell_double
from models.interpreter import Element, run
from models.items import overlap

HERE = Place("test", "0", 0)
CELSIUS = "(. - 32) * 5 div 9"


def path(text: str) -> Path:
    return Path.parse(text)


def item(text: str) -> Item:
    """`t=68 s=1` as an item with these two paths; `c/v=1 c/v=2` are two elements `c`, each with a `v`."""
    tree = Tree(Name("i"))
    for each in text.split():
        names, value = each.split("=")
        at = tree
        for name in names.split("/"):
            inner = Tree(Name(name))
            at.append(inner)
            at = inner
        at.append(Text(value))
    return Item(tree, HERE)


def alter(at: str, by: str, where: str = "") -> Accent:
    return Accent(parse_description(where), Alter(path(at), parse_map(by)), HERE)


def add(at: str, where: str = "") -> Accent:
    return Accent(parse_description(where), Add(path(at)), HERE)


def drop(at: str, where: str = "") -> Accent:
    return Accent(parse_description(where), Drop(path(at)), HERE)


def closed(where: str) -> Punctuation:
    return Punctuation(parse_description(where), HERE)


def show(element: Element) -> str:
    """An element in short."""
    match element:
        case Item(tree):
            return " ".join(f"{each}={value}" for each in leaves(tree) for value in values(tree, each))
        case Accent(where, evolution):
            match evolution:
                case Add(at):
                    text = f"add {at}"
                case Drop(at):
                    text = f"drop {at}"
                case Alter(at, by):
                    text = f"alter {at} by {by}"
            return text if where == EVERYTHING else f"{text} where {where}"
        case Punctuation(where):
            return f"closed {where}"


def answer(
    operator: Operator,
    *elements: Element | str | tuple[int, Element | str],
    policy: Policy = "accumulate",
    domains: Mapping[Path, Domain] | None = None,
    exact: bool = False,
) -> list[str]:
    """What one operator gives, in short; an element of a second input is given as `(1, element)`."""
    plan = Apply(operator, tuple(StreamSource(str(each)) for each in range(operator.arity)))
    fed = [each if isinstance(each, tuple) else (0, each) for each in elements]
    return shown(plan, [(str(input), each) for input, each in fed], policy, domains, exact)


def shown(
    plan: Plan,
    elements: Sequence[tuple[str, Element | str]],
    policy: Policy = "accumulate",
    domains: Mapping[Path, Domain] | None = None,
    exact: bool = False,
) -> list[str]:
    fed = [(source, item(each) if isinstance(each, str) else each) for source, each in elements]
    spelling: Spelling = spelled if exact else lambda value: spell_double(nearest_double(value))
    return [show(each) for each in run(plan, fed, policy=policy, domains=domains or {}, spelling=spelling)]


def together(found: Sequence[str], change: str) -> Predicate:
    """The items that accents with this change describe, none of them twice."""
    parts = [each.removeprefix(change).removeprefix(" where ") for each in found if each.startswith(change)]
    sets = [items_of(parse_description(part)) for part in parts]
    assert not any(overlap(one, other) for index, one in enumerate(sets) for other in sets[:index])
    return or_(*sets)


def same(items: Predicate, where: str) -> bool:
    """Whether a set is the one described."""
    wanted = items_of(parse_description(where))
    return within(items, wanted) and within(wanted, items)
