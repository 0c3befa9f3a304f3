"""Both ways round the square of LAWS 4.1, by those who know neither branches nor trunks.

`law` asks the reference for the answer over canonical items, which are found by walking (`models/canonical.py`);
`across` brings an answer, with the accents in it, into canonical form by the same walk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from algebra.accented import HERE
from algebra.evolving import faults
from anabranch.algebra.accents.evolution import Evolution
from anabranch.algebra.accents.items import number
from anabranch.law import Input, evaluate
from anabranch.law.inputs import stream_input
from anabranch.stream.elements import Accent, Item, StreamElement
from anabranch.stream.limits import Limits
from anabranch.stream.reading.json_items import parse_line
from anabranch.stream.reading.parse import parse_item, parse_root
from anabranch.stream.reading.wire import element_of
from anabranch.stream.serialize import serialize
from anabranch.stream.tree import Attribute, Element, Text, copy, descendants, renumber
from anabranch.values.atomic import spell
from anabranch.values.sequences import Value, atomize
from evolving.outlets import checked
from evolving.questions import TIME
from models.canonical import canonical


def law(
    query: str, inputs: Mapping[str, Sequence[Sequence[StreamElement]]], *, is_timed: bool, endless: bool
) -> list[str]:
    """What a query answers over the canonical items of streams, given by partition."""
    given = {name: canonical_input(parts, is_timed=is_timed, endless=endless) for name, parts in inputs.items()}
    return answered(query, given)


def canonical_input(partitions: Sequence[Sequence[StreamElement]], *, is_timed: bool, endless: bool) -> Input:
    """A stream as if it had been written in the units of its start."""
    elements = [[each for each in canonical(part) if not isinstance(each, Accent)] for part in partitions]
    for each in (each for part in elements for each in part if isinstance(each, Item)):
        renumber(each.tree)  # those that have walked are copies
    return stream_input(parse_root(b"<r>"), elements, time=TIME if is_timed else None, endless=endless)[0]


def answered(query: str, given: Mapping[str, Input]) -> list[str]:
    """An answer in the form in which answers are compared."""
    values = evaluate(checked(query), given).values
    others = atomize([each for each in values if not isinstance(each, Element)])
    return [*(plain(each) for each in values if isinstance(each, Element)), *_together(list(map(spell, others)))]


def across(answer: str, item: str = "") -> list[str]:
    """The canonical form of an answer, which is a valid stream; lines of JSON are read as items called `item`."""
    if item and answer.startswith("{"):
        records = [parse_line(line.encode(), HERE, Limits(), item) for line in answer.splitlines()]
        return [*_walked(records), *_together([])]
    elements: list[StreamElement] = []
    marks: list[str] = []
    for child in parse_item(f"<all>{answer}</all>".encode(), Limits()).children:
        if isinstance(child, Text):
            marks.append(child.value)
            continue
        tree = copy(child)
        assert isinstance(tree, Element)
        elements.append(element_of(tree, HERE))
    return _walked(elements) + _together(marks)


def _walked(elements: Sequence[StreamElement]) -> list[str]:
    """The items of an answer in canonical form."""
    assert faults(elements, Evolution()) == []
    return [plain(each.tree) for each in canonical(elements) if isinstance(each, Item)]


def plain(value: Value) -> str:
    """A value or an output item, with numbers written in one way; what a piece rounds is not held against it."""
    if not isinstance(value, Element | Text):
        return _number(str(value))
    fresh = copy(value)
    for each in (fresh, *(descendants(fresh) if isinstance(fresh, Element) else ())):
        for leaf in each.attributes if isinstance(each, Element) else (each,):
            if isinstance(leaf, Text | Attribute):
                leaf.value = _number(leaf.value)
    return serialize(fresh)


def _together(texts: Sequence[str]) -> list[str]:
    """Texts outside of elements; where one ends and the next begins cannot be seen."""
    return ["".join(texts).replace(" ", "")]


def _number(text: str) -> str:
    known = number(text)
    return text if known is None else f"{float(known):.9g}"
