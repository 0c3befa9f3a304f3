"""Looks learned from single items."""

from __future__ import annotations

from anabranch.columnar.scan.look import Look
from anabranch.columnar.scan.wanted import WantedColumns
from anabranch.stream.limits import Limits
from anabranch.stream.reading.parse import parse_item


def look_of(*items: bytes) -> Look:
    """The look of some items."""
    look = Look.learn((raw, parse_item(raw, Limits())) for raw in items)
    assert look is not None, "items have a look"
    return look


def wanted_of(item: bytes, *paths: str) -> WantedColumns:
    """The numbers at some paths of items like one, given by names behind the item's own."""
    look = look_of(item)
    columns = [next(part for part in range(len(look.parts)) if "/".join(look.path(part)[1:]) == path) for path in paths]
    return WantedColumns.of(look, columns, columns)
