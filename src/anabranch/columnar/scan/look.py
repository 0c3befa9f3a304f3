"""The look of a stream's items: the elements and attributes that they are made of.

    order
      @id
      customer          one text
      line, repeated    @sku, qty
      note, optional

A *look* is learned from items and not from a schema, which may leave open what an item holds.
It is a tree of *parts*, without any order: an item is of this look if all its elements and attributes are parts,
whichever of them it has, however often and in whatever order.
So queries are compiled for a look, not for single items, and `*` and `//` lead to parts that are known.
An item with anything else in it is left to the law.

The tree is the same for XML and JSON, since a record of JSON is read as an element (`stream/reading/json_items.py`).

Of JSON it is also learned which type the values of a part mostly have, and what is often a member of an array is
repeated, however many there are.
A part has then a *typed part* inside of it, `#number`, `#string`, `#boolean` or `#object`: what the part holds where
that is of this type, nothing where it is `null`, and unclear where it is of another type, or in an array though it is
not repeated.
A repeated part has a typed part beside it as well, `[]name`: its array, nothing where there is `null`, and unclear
where there is anything else.
No step leads to typed parts, and only lookups ask for them (`expressions/objects/lookups.py`).
An array in an array has the parts that are in it, as an object has; it is unclear where its type is asked for.
Its parts are learned only if the part is an array in an array more often than a text, for a part with others inside of
it has no text.
Of those that are objects and arrays, `~p` is the place of the value in the record as it came, and not as it is
serialised.

Scanners compare names as they are written, prefix and all, and queries as they are expanded.
Both agree since declarations belong to the look: those of the root around items, and those of an item's own element.
An item that declares anything else, or leaves out what others declare, is of another look; so is one in which an
element further in declares a namespace.

A *column* is a value of each item, given as a number: `p` for the text of part p, and `~p` for the whole part as it is
serialised.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

from anabranch.columnar.scan.template import Declarations, Template, declarations
from anabranch.stream.tree import Element, Name, Text, is_array

MOST_PARTS = 1_000
"""With more parts there is no look: such items have keys or names that are values."""
_OFTEN = 4
"""A part is repeated where it stands several times, or in an array, in more than one of so many elements that have
it."""
PartColumn: TypeAlias = int
JsonType: TypeAlias = Literal["string", "number", "boolean", "object"]
JSON_TYPES: tuple[JsonType, ...] = ("string", "number", "boolean", "object")
NULL_ONLY: Literal["null"] = "null"
_TYPE, _ARRAY = "#", "[]"
"""What the names of typed parts begin with."""


@dataclass(frozen=True, slots=True)
class LookPart:
    """An element or an attribute that items have."""

    name: str
    """As it is written, with an `@` in front for an attribute."""
    parent: int
    """Its number among the parts; -1 for an item's own element."""
    has_text: bool
    """Whether it has a text and nothing else: an attribute, or an element in which no element was seen."""
    optional: bool = False
    """Whether it was missing somewhere."""
    repeated: bool = False
    """Whether it often stood more than once in one element; where it seldom does, such an item is left to the law."""
    uri: str = ""
    """The namespace of its name."""
    declared: Declarations = ()
    """What an item's own element declares."""
    json_type: JsonType | Literal["", "null"] = ""
    """The type that its values have in JSON, "null" where nothing else was seen; nothing where it is not known."""

    @property
    def is_typed(self) -> bool:
        """Whether no step leads to it."""
        return self.name.startswith((_TYPE, _ARRAY))

    @property
    def expanded(self) -> str:
        """Its name as queries compare it (`Name.expanded`), whether of an element or of an attribute."""
        name = self.name.removeprefix("@")
        return Name(name.rpartition(":")[2], self.uri).expanded if self.uri else name


@dataclass(frozen=True)
class Look:
    """Parts, each behind the one that it is in; several may be an item's own, where a stream mixes kinds of items."""

    parts: tuple[LookPart, ...]

    template: Template | None = None
    """What most items look like byte by byte, where most look alike and have no repeated parts."""

    is_json: bool = False
    """Whether items are lines of JSON."""

    scope: Declarations = ()
    """The namespaces that the root around items declares."""

    @staticmethod
    def learn(
        items: Iterable[tuple[bytes, Element]],
        before: Look | None = None,
        *,
        is_json: bool = False,
        scope: Declarations = (),
    ) -> Look | None:
        """The look of some items, given as bytes and tree, and of the items behind the look `before`.

        All stand below roots that declare the same `scope`.
        None where they have no look.
        """
        reading = _LearnedParts()
        if before is not None:
            reading.begin(before)
        items = _declaring_alike(items, before)
        if not items:
            return before
        for _, item in items:
            reading.take_item(item)
        reading.take_nested()
        if sum(not each.is_typed for each in reading.parts) > MOST_PARTS:
            return None
        if is_json:
            reading.add_types()
        look = replace(reading.look(), is_json=is_json, scope=scope)
        if look.has_synonyms:
            return before
        return look.with_template(None if is_json else Template.learn(items))

    def with_template(self, template: Template | None) -> Look:
        """The look with a template, if nothing in the template is repeated."""
        if template is not None:
            frames = {self.path(number): frame for number, frame in enumerate(self.frames)}
            paths = template.paths  # what comes twice in it may come once in most items, and be no frame
            repeats = len(set(paths)) < len(paths) or any(frames[path] >= 0 for path in paths)
            template = None if repeats else template
        return replace(self, template=template)

    def keeps(self, before: Look) -> bool:
        """Whether the parts of an earlier look are unchanged; others may have been added."""
        parts = zip(before.parts, self.parts, strict=False)
        return all(
            (old.has_text, old.repeated, old.json_type) == (new.has_text, new.repeated, new.json_type)
            for old, new in parts
        )

    @property
    def of_items(self) -> Look:
        """The look of the items that a scanner reads, without rows of lookups (`tables/joined_look.py`)."""
        return self

    @property
    def sought(self) -> Sequence[Any]:
        """The expressions over items by which rows are looked up in tables."""
        return ()

    def want(self, columns: Iterable[PartColumn]) -> None:
        """Prepare columns that no scanner of items reads: those of tables."""
        assert not columns, "items are scanned for all that is wanted of them"

    def scope_at(self, part: int) -> Declarations:
        """The namespaces that the root around a part declares."""
        return self.scope

    @property
    def own(self) -> tuple[int, ...]:
        """The items' own elements."""
        return self.children(-1)

    @cached_property
    def _children(self) -> tuple[tuple[int, ...], ...]:
        found: list[list[int]] = [[] for _ in range(len(self.parts) + 1)]
        for number, part in enumerate(self.parts):
            if not part.is_typed:
                found[part.parent].append(number)  # -1 is the last
        return tuple(map(tuple, found))

    @cached_property
    def _typed_parts(self) -> dict[tuple[int, str], int]:
        return {(part.parent, part.name): number for number, part in enumerate(self.parts) if part.is_typed}

    def typed(self, part: int) -> int:
        """The typed part that has the values of a part as far as they are of its type; -1 for none."""
        return self._typed_parts.get((part, f"{_TYPE}{self.parts[part].json_type}"), -1)

    def array(self, part: int) -> int:
        """The typed part that has the arrays whose members a repeated part is; -1 for none."""
        return self._typed_parts.get((self.parts[part].parent, f"{_ARRAY}{self.parts[part].name}"), -1)

    def shown(self, part: int) -> int:
        """The part whose typed part a part is, or the part itself: what steps lead to."""
        found = self.parts[part]
        if found.name.startswith(_TYPE):
            return found.parent
        if not found.is_typed:
            return part
        name = found.name.removeprefix(_ARRAY)
        return next(each for each in self.children(found.parent) if self.parts[each].name == name)

    def children(self, part: int) -> tuple[int, ...]:
        """The parts directly inside another, attributes among them; the items' own elements for -1."""
        return self._children[part]

    def descendants(self, part: int) -> Iterator[int]:
        """The parts inside another, each behind the one that it is in."""
        for child in self.children(part):
            yield child
            yield from self.descendants(child)

    @cached_property
    def frames(self) -> tuple[int, ...]:
        """By part: the nearest part that is repeated, itself or around it; -1 where it stands in an item once."""
        found: list[int] = []
        for number, part in enumerate(self.parts):
            found.append(number if part.repeated else found[part.parent] if part.parent >= 0 else -1)
        return tuple(found)

    @property
    def has_synonyms(self) -> bool:
        """Whether attributes of one element differ in their prefixes only: an item with both of them is a bad one."""
        attributes = [(each.parent, each.expanded) for each in self.parts if each.name.startswith("@") and each.uri]
        return len(set(attributes)) < len(attributes)

    def presence(self, part: int) -> PartColumn:
        """A column that is there wherever an item has a part."""
        return part if self.parts[part].has_text else ~part

    def path(self, part: int) -> tuple[str, ...]:
        """The names that lead to a part as they are written, from the item's own on."""
        return tuple(each.name for each in self.parts_to(part))

    def expanded_path(self, part: int) -> tuple[str, ...]:
        """The names that lead to a part as queries compare them."""
        return tuple(each.expanded for each in self.parts_to(part))

    def parts_to(self, part: int) -> list[LookPart]:
        """A part and those around it, from the item's own on."""
        found: list[LookPart] = []
        while part >= 0:
            found.append(self.parts[part])
            part = self.parts[part].parent
        return found[::-1]


def _declaring_alike(items: Iterable[tuple[bytes, Element]], before: Look | None) -> list[tuple[bytes, Element]]:
    """The items that declare the same namespaces as earlier items of their name, or else as most of the sample."""
    found = [(each, declared) for each in items if (declared := declarations(each[1])) is not None]
    times = Counter((str(item.name), declared) for (_, item), declared in found)
    usual: dict[str, Declarations] = {}
    for (name, declared), _ in times.most_common():
        usual.setdefault(name, declared)
    if before is not None:
        usual |= {before.parts[own].name: before.parts[own].declared for own in before.own}
    return [each for each, declared in found if usual[str(each[1].name)] == declared]


@dataclass(slots=True)
class _LearnedParts:
    """The parts of the items so far."""

    parts: list[LookPart] = field(default_factory=list)
    known: int = 0
    """The number of parts that were known before."""
    numbers: dict[tuple[int, str], int] = field(default_factory=dict)
    seen: list[int] = field(default_factory=list)
    """By part: the number of parent elements that had it."""
    several: list[int] = field(default_factory=list)
    """By part: the number of parent elements that had it several times."""
    instances: list[int] = field(default_factory=list)
    """By part: how many of it there were."""
    types: defaultdict[int, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """By part: how often its values were of which type of JSON."""
    arrays: Counter[int] = field(default_factory=Counter)
    """By part: how often it was an array, or its members were; empty ones are among them."""
    empty: Counter[int] = field(default_factory=Counter)
    """By part: how often it was an empty array, and so nothing of it is in the tree."""
    nested: dict[int, list[Element]] = field(default_factory=dict)
    """By part: the arrays in arrays that it was, whose members are not taken yet."""
    holding: Counter[int] = field(default_factory=Counter)
    """By part: how many parent elements had arrays in arrays in its place, less those that had texts there."""

    def begin(self, look: Look) -> None:
        """Start from the parts of a known look."""
        for number, part in enumerate(look.parts):
            self.numbers[part.parent, part.name] = number
        self.parts = list(look.parts)
        self.known = len(self.parts)
        self.seen = [0] * len(self.parts)
        self.several = [0] * len(self.parts)
        self.instances = [0] * len(self.parts)

    def take_item(self, item: Element) -> None:
        """Add the parts of an item."""
        number = self._part(item.name, -1)
        if number >= self.known:
            self.parts[number] = replace(self.parts[number], declared=tuple(sorted(item.namespaces.items())))
        self.seen[number] += 1
        self._take(item, number)

    def _part(self, name: Name, parent: int, mark: str = "") -> int:
        key = parent, f"{mark}{name}"
        if key not in self.numbers:
            self.numbers[key] = len(self.parts)
            optional = parent >= 0 and (parent < self.known or self.instances[parent] > 1)  # one was without it
            self.parts.append(LookPart(key[1], parent, has_text=True, optional=optional, uri=name.uri))
            self.seen.append(0)
            self.several.append(0)
            self.instances.append(0)
        return self.numbers[key]

    def _take(self, element: Element, number: int) -> None:
        self.instances[number] += 1
        mark = element.mark
        types = {} if mark is None else dict(mark.types)
        for attribute in element.attributes:
            part = self._part(attribute.name, number, "@")
            self.seen[part] += 1
            self.instances[part] += 1
            if mark is not None:
                self.types[part][types.get(f"@{attribute.name}", "string")] += 1
        for _, key in () if mark is None else mark.empty:
            part = self._part(Name(key), number)
            self.arrays[part] += 1
            self.empty[part] += 1
        children = [each for each in element.children if isinstance(each, Element)]
        if children:
            self.parts[number] = replace(self.parts[number], has_text=False)
        names = {str(each.name): each.name for each in children}
        for written, times in Counter(str(each.name) for each in children).items():
            part = self._part(names[written], number)
            self.seen[part] += 1
            self.several[part] += times > 1
        listed: set[int] = set()
        nested: set[int] = set()
        texts: set[int] = set()
        for each in children:
            part = self.numbers[number, str(each.name)]
            if each.mark is not None:
                self.types[part][each.mark.kind] += 1
                if each.mark.listed:
                    listed.add(part)
            if is_array(each):
                nested.add(part)
                self.nested.setdefault(part, []).append(each)
            else:
                texts.update([part] if any(isinstance(inner, Text) for inner in each.children) else ())
                self._take(each, part)
        self.arrays.update(listed)
        self.holding.update(nested - texts)
        self.holding.subtract(texts - nested)

    def take_nested(self) -> None:
        """Add the parts of arrays in arrays, where these are more usual than texts in their place."""
        while self.nested:
            part, arrays = self.nested.popitem()
            if self.holding[part] > 0 or not self.parts[part].has_text:
                for each in arrays:
                    self._take(each, part)

    def add_types(self) -> None:
        """Set the types of what was seen, and add the typed parts of parts that have none yet."""
        for number, part in enumerate(self.parts.copy()):
            if part.is_typed or part.parent < 0:
                continue
            counts = self.types[number]
            found = part.json_type
            if not part.has_text:
                found = "object"
            elif found in ("", NULL_ONLY):
                found = max(JSON_TYPES, key=counts.__getitem__)
                if not counts[found]:
                    found = NULL_ONLY if counts or number in self.empty or part.json_type else ""
            self.parts[number] = replace(part, json_type=found)
            if found in JSON_TYPES:
                self._add_typed(f"{_TYPE}{found}", number, has_text=found != "object")
            if _OFTEN * self.arrays[number] > self.seen[number] + self.empty[number]:
                self.parts[number] = replace(self.parts[number], repeated=True)
            if self.parts[number].repeated or _OFTEN * self.several[number] > self.seen[number]:
                self._add_typed(f"{_ARRAY}{part.name}", part.parent, has_text=False)

    def _add_typed(self, name: str, parent: int, *, has_text: bool) -> None:
        if (parent, name) not in self.numbers:
            number = self._part(Name(name), parent)
            self.parts[number] = replace(self.parts[number], has_text=has_text, optional=True)

    def look(self) -> Look:
        for number, part in enumerate(self.parts):
            around = self.instances[part.parent] if part.parent >= 0 else self.seen[number]
            optional = part.optional or self.seen[number] < around
            repeated = part.repeated or _OFTEN * self.several[number] > self.seen[number]
            self.parts[number] = replace(part, optional=optional, repeated=repeated)
        return Look(tuple(self.parts))
