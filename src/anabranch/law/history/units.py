"""The values of an edited stream in the units of a query's start, each as it comes (LAWS 4.9).

An accent acts on the values behind it: those of items, and those that updates bring into items that came before.
The unit of a value is that of the place where it came; it keeps it in every version in which it can be asked for.
So an element is brought into the units of the start once, before it is applied, as an item is
(`law/evolution/canonical.py`), and the document holds measured values beside others.

A *value* is the text that stands alone in an element, an attribute, or the text that stands alone in a region inside an
element, and the path is that of the element.
Text beside a region or an element is no value.
A value comes in one piece: where a path has another unit, its text is bad in a token of its own, beside which more may
come (LAWS 5.11).

An item that is written whole is described by its own values, its regions open.
What an update brings into an item is described by what the item held at the paths of declared domains when it came
(`InsideItem`); a description that names another path cannot be decided then, and such an update is bad.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from anabranch.algebra.accents.evolution import Evolution
from anabranch.algebra.accents.items import values
from anabranch.errors import BadItem
from anabranch.law.evolution.canonical import measured
from anabranch.law.history.chains import Chain, Content, InsideItem, Lived
from anabranch.law.history.tokens import is_open_end
from anabranch.stream.affine import IDENTITY, Affine
from anabranch.stream.path import Path
from anabranch.stream.tree import STREAM_NAMESPACE, Attribute, Child, Element, Measure, Name, Text, copy, descendants


class Targeting(Protocol):
    """What a region or an update acts on."""

    @property
    def chain(self) -> Chain: ...


def plain(item: Element) -> Element:
    """An item as it first shows: regions open, and updates, which act elsewhere, gone."""
    fresh = Element(item.name)
    fresh.attributes = item.attributes
    fresh.children = [each for child in item.children for each in opened(child)]
    return fresh


def opened(node: Child) -> list[Child]:
    """What shows in the place of a node: the content of a region, and nothing of an update."""
    if not isinstance(node, Element):
        return [node]
    if node.name.uri != STREAM_NAMESPACE:
        return [plain(node)]
    return [each for child in node.children for each in opened(child)] if node.name.local == "mutable" else []


def inside_item(
    written: Element, top: Element, acts: Mapping[Element, Targeting], evolution: Evolution | None
) -> InsideItem | None:
    """Where a region that is written in an element with this top will stand; None between items.

    `acts` has the regions and updates around it.
    """
    names: list[str] = []
    node, item = written, None
    while node is not top:
        parent = node.parent
        assert isinstance(parent, Element)
        node = parent
        if node in acts:
            around = acts[node].chain.inside
            if around is not None:
                return InsideItem.of((*around.steps, *reversed(names)), around.facts)
            break
        item = node
        names.append(str(node.name))
    if item is None:
        return None
    declared = () if evolution is None else evolution.domains
    shown = plain(item) if declared else item
    facts = tuple((path, text) for path in declared for text in values(shown, path))
    return InsideItem.of(tuple(reversed(names[:-1])), facts)


@dataclass(frozen=True, slots=True)
class _ItemAround:
    """An item around a value: what describes it, and the way from it."""

    described: Element
    is_whole: bool
    """Whether all of the item is known, and not only its facts."""
    steps: tuple[str, ...] = ()


def canonised(
    tree: Element, acts: Mapping[Element, Targeting], evolution: Evolution
) -> tuple[Element, dict[Element, Element]]:
    """An element in the units of the start, and by element of the given tree that of the result.

    BadItem where it brings a value at a path that was dropped, or whose unit cannot be known.
    """
    maps: dict[Element | Attribute, Affine] = {}
    for node, path, around in _values(tree, acts, None):
        by = _map(path, around, evolution, written=_text(node))
        if by is not None and by != IDENTITY:
            if _is_piece(node):
                raise BadItem(f"it brings a part of '{path}', which has another unit: send its element whole")
            maps[node] = by
    if not maps:
        return tree, {}
    fresh = copy(tree)
    twins: dict[Element, Element] = {}
    for old, new in zip((tree, *descendants(tree)), (fresh, *descendants(fresh)), strict=True):
        if isinstance(old, Element) and isinstance(new, Element):
            twins[old] = new
    for node, by in maps.items():
        if isinstance(node, Attribute):
            assert isinstance(node.parent, Element)
            twin = twins[node.parent].attributes[node.parent.attributes.index(node)]
            twin.value, twin.measure = measured(node.value, node.measure, by)
        else:
            _measure(twins[node], by)
    return fresh, twins


def _is_piece(node: Element | Attribute) -> bool:
    """Whether a value is text of a token, beside which more may come."""
    if isinstance(node, Attribute) or not _text(node).strip():
        return False
    is_append = node.name.uri == STREAM_NAMESPACE and node.name.local == "append"
    return is_append or any(map(is_open_end, node.children))


def _map(path: Path, around: _ItemAround, evolution: Evolution, written: str) -> Affine | None:
    """The map from a value that is written at a path to that in the unit of the start; None where it is unknown."""
    if not around.is_whole:
        unknown = [each for each in evolution.named_for(path) if each not in evolution.domains]
        if unknown:
            raise BadItem(
                f"it brings '{path}' into an item, which an accent describes by '{unknown[0]}': "
                f"the stream declares no domain for that path"
            )
    if written and evolution.is_dropped(path, around.described):
        raise BadItem(f"it carries '{path}', which was dropped")
    unit = evolution.state(path, around.described).unit
    return None if unit is None else unit.inverse()


def _values(
    node: Element, acts: Mapping[Element, Targeting], around: _ItemAround | None
) -> Iterator[tuple[Element | Attribute, Path, _ItemAround]]:
    """The values in an element, each with its path and what is around it; an element stands for its own text."""
    if node.name.uri == STREAM_NAMESPACE:
        if node not in acts:
            return  # it deletes what is not there
        if node.name.local != "mutable":
            around = _around(acts[node].chain)
    else:
        around = _ItemAround(plain(node), True) if around is None else _below(around, str(node.name))
        for attribute in node.attributes:
            yield attribute, Path((*around.steps, f"@{attribute.name}")), around
    children = [child for child in node.children if not _acts_elsewhere(child) and not is_open_end(child)]
    if around is not None and not any(isinstance(child, Element) for child in children):
        yield node, Path(around.steps), around
    for child in node.children:
        if isinstance(child, Element):
            yield from _values(child, acts, around)


def _around(chain: Chain) -> _ItemAround | None:
    """What is around the content of a region."""
    if chain.between:
        return None
    if chain.inside is None:
        raise BadItem("its region came before its stream could evolve, and where it stands was not kept")
    described = Element(Name("item"))
    for path, text in chain.inside.facts:
        _put(described, path, text)
    return _ItemAround(described, False, chain.inside.steps)


def _below(around: _ItemAround, name: str) -> _ItemAround:
    return replace(around, steps=(*around.steps, name))


def _put(item: Element, path: Path, text: str) -> None:
    """Put a value into an item, at a path."""
    for step in path.steps:
        if step.startswith("@"):
            item.set(_name(step[1:]), text)
            return
        child = Element(_name(step))
        item.append(child)
        item = child
    item.append(Text(text))


def _name(step: str) -> Name:
    prefix, _, local = step.rpartition(":")
    return Name(local, "", prefix)


def _acts_elsewhere(child: Child) -> bool:
    return isinstance(child, Element) and child.name.uri == STREAM_NAMESPACE and child.name.local != "mutable"


def _text(node: Element | Attribute) -> str:
    if isinstance(node, Attribute):
        return node.value
    return "".join(child.value for child in node.children if isinstance(child, Text))


def _measure(holder: Element, by: Affine) -> None:
    """Bring the text that stands alone in an element or a region into another unit."""
    found = [child for child in holder.children if isinstance(child, Text)]
    if not found:
        return
    text, measure = brought(found, by)
    if measure is not None:
        found[0].value, found[0].measure = text, measure
        holder.children = [child for child in holder.children if child not in found[1:]]


def brought(texts: Sequence[Text], by: Affine) -> tuple[str, Measure | None]:
    """The value of texts that stand alone somewhere, in another unit; comments may stand between them."""
    if len(texts) == 1:
        return measured(texts[0].value, texts[0].measure, by)
    return measured("".join(each.value for each in texts), None, by)


def bring(entries: Iterable[Content], units: Mapping[Path, Affine]) -> None:
    """Bring all values of a document into other units, path by path."""
    for content, steps in _holders(entries, None, units) if units else ():
        found = [each.node for each in content if isinstance(each, Lived) and isinstance(each.node, Text)]
        is_value = not any(
            not each.is_open_end if isinstance(each, Chain) else isinstance(each.node, Element) for each in content
        )
        if found and is_value and (by := units.get(Path(steps))) is not None:
            text, measure = brought(found, by)
            if measure is not None or found[0].measure is not None:
                found[0].value, found[0].measure = text, measure
                found[0].kind = found[0].kind and (found[0].kind if len(found) == 1 else "string")
                content[:] = [each for each in content if isinstance(each, Chain) or each.node not in found[1:]]


def _holders(
    content: Iterable[Content], steps: tuple[str, ...] | None, units: Mapping[Path, Affine]
) -> Iterator[tuple[list[Content], tuple[str, ...]]]:
    """The contents of elements and versions, each with the path of the element around; attributes are brought."""
    for each in content:
        match each:
            case Chain(versions=versions):
                for version in versions:
                    if steps is not None:
                        yield version.content, steps
                    yield from _holders(version.content, steps, units)
            case Lived(node=Element() as element):
                below = () if steps is None else (*steps, str(element.name))
                for attribute in element.attributes:
                    by = units.get(Path((*below, f"@{attribute.name}")), IDENTITY)
                    attribute.value, attribute.measure = measured(attribute.value, attribute.measure, by)
                yield each.content, below
                yield from _holders(each.content, below, units)
            case _:
                pass
