"""Queries that answer item by item, for engines that know no others yet; see `standing.py` for all kinds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from anabranch.errors import Unsupported
from anabranch.language import ast
from anabranch.reference.calls import PythonFunction
from anabranch.reference.standing import WAITS, Standing, standing
from anabranch.reference.units import Units
from anabranch.stream.tree import Element

_OTHERS = {
    "windows": "a window",
    "step join": "a join of several streams",
    "interval join": "a join of several streams",
}


def per_item(
    query: ast.Query, functions: Mapping[str, PythonFunction] | None = None, text: str | None = None
) -> ItemQuery:
    """Take a checked query apart; raises `Unsupported` where it does not answer item by item."""
    found = standing(query, functions, text)
    construct = "doc()" if found.documents else _OTHERS.get(found.kind)
    if found.reason is not None:
        construct = construct or found.reason.message.removesuffix(WAITS)
    if not found.separate:
        construct = construct or "a result that is no element"
    if construct is None:
        return ItemQuery(found, Units(found, functions))
    raise Unsupported(
        f"{construct} cannot run on Spark yet",
        text=found.text,
        span=found.reason.span if found.reason else query.body.span,
        hint="use --engine reference for finite inputs",
    )


@dataclass(frozen=True, slots=True)
class ItemQuery:
    """A query ready to answer one item at a time."""

    standing: Standing
    units: Units

    @property
    def stream(self) -> str:
        return self.standing.streams[0]

    @property
    def opening(self) -> str:
        return self.standing.opening

    @property
    def closing(self) -> str:
        return self.standing.closing

    @property
    def empty(self) -> str:
        return self.standing.empty

    @property
    def plain_hole(self) -> ast.Expression | None:
        return self.standing.plain_hole

    def answer(self, root: Element, item: Element) -> str:
        """The piece that one item adds."""
        return self.units.item(root, item).text
