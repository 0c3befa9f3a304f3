"""The corrections of a display as rows of tables.

A display is told as an update stream (`algebra/display/publishing.py`); the regions that hold its results are known by
their ids.
Two tables come of that, with the columns that `CHANGE_COLUMNS` names:

* `updates`, the changelog: a row for each correction, in their order, with the time of its moment.
  `operation` is `insert`, with the region that the new one stands `before`, or `replace`, or `delete`; who applies the
  rows one after another has what the display shows.
* `upserts`, the compacted table: of each epoch one row for a region that has changed, with what it shows at the end of
  the epoch; null where it is gone.
  The newest row of each region is what the display shows.

What stands around results, such as an element that the query makes once, is in no row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, TypeAlias

from anabranch.algebra.display.publishing import is_result
from anabranch.algebra.display.replay import DisplayReader
from anabranch.spark.sinks.tables import ColumnType
from anabranch.stream.elements import Punctuation, StreamElement, Update
from anabranch.stream.serialize import serialize
from anabranch.stream.tree import Text

ChangesForm: TypeAlias = Literal["updates", "upserts"]

CHANGE_COLUMNS: Mapping[ChangesForm, Mapping[str, ColumnType]] = {
    "updates": {"at": "number", "operation": "text", "region": "text", "before": "text", "content": "text"},
    "upserts": {"at": "number", "region": "text", "content": "text"},
}
"""The columns of the two tables."""


@dataclass(frozen=True, slots=True)
class RegionChange:
    """A correction of one region of a display."""

    operation: Literal["insert", "replace", "delete"]
    region: str
    before: str | None
    content: str | None
    """None where the region is gone."""


def region_change(element: StreamElement, *, json: bool) -> RegionChange | None:
    """The correction that an element of the update stream of a display tells; None for what is no result."""
    if not isinstance(element, Update):
        return None
    id = element.target if element.kind == "replace" else element.id or ""
    if not is_result(id):
        return None
    content = "".join(
        each.value if isinstance(each, Text) and json else serialize(each) for each in element.content
    ).strip()
    if element.kind != "replace":
        return RegionChange("insert", id, element.target, content)
    if not element.content and element.id is None:
        return RegionChange("delete", id, None, None)
    return RegionChange("replace", id, None, content)


def change_rows(form: ChangesForm, texts: Iterable[str]) -> list[dict[str, Any]]:
    """The rows of an epoch, from the update stream of the display in it."""
    moments = _moments(texts)
    if form == "updates":
        return [
            {
                "at": float(at),
                "operation": each.operation,
                "region": each.region,
                "before": each.before,
                "content": each.content,
            }
            for at, changes in moments
            for each in changes
        ]
    newest: dict[str, dict[str, Any]] = {}
    for at, changes in moments:
        for each in changes:
            is_known = newest.pop(each.region, None) is not None
            if each.operation == "insert" and not each.content and not is_known:
                continue  # a place where results may stand later
            newest[each.region] = {"at": float(at), "region": each.region, "content": each.content or None}
    return list(newest.values())


def _moments(texts: Iterable[str]) -> Iterator[tuple[Decimal, list[RegionChange]]]:
    """The corrections of each moment, with its time; an epoch ends behind the heartbeat of a moment."""
    reader = DisplayReader()
    changes: list[RegionChange] = []
    for text in texts:
        for element in reader.elements(text):
            match element:
                case Punctuation(at=Decimal() as at):
                    yield at, changes
                    changes = []
                case _:
                    if (found := region_change(element, json=bool(reader.is_json))) is not None:
                        changes.append(found)
    assert not changes, "each moment ends with a heartbeat"
