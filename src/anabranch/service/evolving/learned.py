"""The paths that the newest items of a stream have, each with a few values: what an editor completes, and shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from anabranch.engine.reports.evolution import StreamCourse
from anabranch.engine.reports.sampling import form_of, newest_parts
from anabranch.errors import AnabranchError
from anabranch.stream.elements import Item
from anabranch.stream.tree import STREAM_NAMESPACE, Element, Text

_ITEMS = 200
_PARTITIONS = 4
_PATHS = 1_000
_VALUES = 4
_LONGEST_VALUE = 60


@dataclass(frozen=True, slots=True)
class LearnedPath:
    """A path of items, as a query writes it behind an item, and some of its values."""

    path: str
    values: tuple[str, ...]


def learned_paths(course: StreamCourse) -> tuple[LearnedPath, ...]:
    """The paths of some of the newest items; none where nothing can be read now."""
    found: dict[str, dict[str, None]] = {}
    source = course.source
    try:
        form = form_of(course)
        for partition in range(min(len(source.partitions), _PARTITIONS) if form else 0):
            assert form is not None
            for part in newest_parts(source, partition, form, _ITEMS):
                for element in part.elements(source, form):
                    if isinstance(element, Item):
                        _learn(element.tree, found)
    except (AnabranchError, OSError):
        pass  # what cannot be read is told where it is read
    return tuple(LearnedPath(path, tuple(values)) for path, values in found.items())


def _learn(item: Element, found: dict[str, dict[str, None]]) -> None:
    for path, value in _values(item, ""):
        if path not in found and len(found) >= _PATHS:
            continue
        values = found.setdefault(path, {})
        if value and len(values) < _VALUES:
            values.setdefault(value[:_LONGEST_VALUE])


def _values(element: Element, above: str) -> Iterator[tuple[str, str]]:
    """The paths below an element, in the order of the document, and their texts; an element with others in it has none.

    Items are at most a hundred deep (`stream/limits.py`).
    """
    for each in element.attributes:
        yield f"{above}@{each.name}", each.value
    for child in element.children:
        if isinstance(child, Element):
            path = f"{above}{child.name}"
            inner = any(isinstance(each, Element) for each in child.children)
            text = "" if inner else "".join(each.value for each in child.children if isinstance(each, Text))
            if child.name.uri == STREAM_NAMESPACE:  # a part that may be edited stands for its content
                yield from _values(child, above)
                continue
            yield path, text.strip()
            yield from _values(child, f"{path}/")
