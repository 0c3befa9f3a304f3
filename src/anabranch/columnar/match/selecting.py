"""What one `for` over a stream takes of an item, for items of the usual look: whether, where it stands, and when.

Compiled are paths of plain child steps with conditions as in `columnar/items/query.py`, to one element in each item,
and a time window whose reference leads to one leaf from there.
"""

from __future__ import annotations

from dataclasses import dataclass

from anabranch.columnar.items.query import Other, Scope, Spot, source_spots
from anabranch.columnar.match.condition import ALWAYS, Condition, NumberTest, tests
from anabranch.columnar.scan.shred import Wanted
from anabranch.columnar.scan.template import Template
from anabranch.language import ast
from anabranch.stream.path import Path


@dataclass(frozen=True, slots=True)
class CompiledFor:
    """What a `for` takes, and the leaves that are read of its items."""

    is_reached: bool
    """Whether its path leads to anything in such items."""
    condition: Condition
    reference: int | None
    """The leaf of a time window's reference."""
    time: int | None
    """That of an item's time, where it has one."""
    wanted: Wanted


def compile_for(clause: ast.For, root: str, template: Template, time: Path | None) -> CompiledFor | None:
    """Compile a `for` of its own; None where it is not made for columns.

    `root` is the name of the stream's root, which stands in no namespace, nor may the query; `time` is the path to the
    times of items, where it is declared.
    """
    try:
        conditions, found = source_spots(clause.source, root, template)
        reference = None
        if found and isinstance(clause.window, ast.TimeWindow):
            reference = reference_leaf(clause.window, root, only(found))
        elif len(found) > 1:
            raise Other
        moment = time_leaf(time, template)
    except Other:
        return None
    condition = tuple(conditions) or ALWAYS
    tested = tests(condition)
    numbers = {each.leaf for each in tested if isinstance(each, NumberTest)}
    numbers |= {leaf for leaf in (reference, moment) if leaf is not None}
    wanted = wanted_leaves(template, numbers | {each.leaf for each in tested}, numbers)
    return CompiledFor(bool(found), condition, reference, moment, wanted)


def wanted_leaves(template: Template, leaves: set[int], numbers: set[int]) -> Wanted:
    """Some leaves of a template, and which of them are read as numbers."""
    ordered = tuple(sorted(leaves))
    return Wanted(template, ordered, tuple(leaf in numbers for leaf in ordered))


def time_leaf(path: Path | None, template: Template) -> int | None:
    """The leaf that has the time of each item; None if they have none."""
    if path is None:
        return None
    spots = [Spot(template, each) for each in template.children(-1)]
    for name in path.steps:
        if name.startswith("@"):
            raise Other
        spots = [each for spot in spots for each in spot.children(ast.Step("child", ast.NameTest(name)))]
    return only(spots).leaf if spots else None


def reference_leaf(window: ast.TimeWindow, root: str, spot: Spot) -> int:
    """The leaf at a window's reference; a path from the root begins with the steps that lead to the element."""
    path = window.reference
    if isinstance(path.start, ast.Root):
        names: list[str] = []
        number = spot.number
        while number >= 0:
            names.append(spot.template.parts[number].name)
            number = spot.template.parts[number].parent
        above = [ast.NameTest(name) for name in (root, *reversed(names))]
        if [step.test for step in path.steps[: len(above)]] != above:
            raise Other
        path = ast.Path(None, path.steps[len(above) :])
    return only(Scope({None: spot}).spots(path)).leaf


def only(spots: list[Spot]) -> Spot:
    """The only one of them; without it, or with others, this is not for columns."""
    if len(spots) != 1:
        raise Other
    return spots[0]
