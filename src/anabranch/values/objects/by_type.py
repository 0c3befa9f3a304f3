"""What lookups find in an item of JSON as paths of texts, so that comparisons of it are predicates (`predicate/`).

`$o.a.b` gives typed values, and comparing one with a constant of another type fails (LAWS 7.1).
Predicates know texts only: what is no number fails beside a number, and nothing fails beside a string.
So an item is looked at with three further children, which no item has of its own, as no key has their names:

    numbers/a/b     the numbers that `.a.b` finds, and for any other value a word, which is none
    strings/a/b     the strings
    others/a/b      a word for each value that is no string

`null` is nowhere, since no comparison with it holds or fails; the members of an array are each for themselves.
Then `$o.a.b > 5` is `numbers/a/b > 5`, and `$o.a.b = "x"` is `strings/a/b = "x" or others/a/b = 0`: each holds, fails
or does neither exactly where the lookup does, `no < error < yes`.

    >>> from anabranch.stream.limits import Limits
    >>> from anabranch.stream.reading.json_items import parse_records
    >>> [item] = parse_records(b'{"a": [1.50, "x", null, true]}', Limits(), "i")
    >>> [typed_texts(item, (kind, "a")) for kind in (NUMBERS, STRINGS, OTHERS)]
    [['1.50', 'word', 'word'], ['x'], ['word', 'word']]
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from anabranch.stream.reading.json_names import key_of_step
from anabranch.stream.tree import Element, Name, Text
from anabranch.values.atomic import NULL, JsonNumber, Measured
from anabranch.values.objects.lookups import looked_up
from anabranch.values.objects.maps import JsonArray
from anabranch.values.sequences import Value

NUMBERS, STRINGS, OTHERS = KINDS = ("_x005F_numbers", "_x005F_strings", "_x005F_others")
"""Names that no key has: an underscore is escaped only where it would begin an escape (`json_names.py`)."""
_WORD = "word"
_SHOWN = re.compile(rf"(?P<other>{OTHERS}/\S+ = 0)|(?:{NUMBERS}|{STRINGS})/")


def is_typed(path: Sequence[str]) -> bool:
    """Whether a path below an item is one of those that only predicates name."""
    return bool(path) and path[0] in KINDS


def member_path(path: tuple[str, ...]) -> tuple[str, ...]:
    """The path of the members that a path below an item tells of."""
    return path[1:] if is_typed(path) else path


def shown(text: str) -> str:
    """A condition for people: `a/b > 5`, and `a/b is no string`."""
    return _SHOWN.sub(lambda found: f"{found[0][len(OTHERS) + 1 : -4]} is no string" if found["other"] else "", text)


def typed_texts(item: Element, path: Sequence[str]) -> list[str]:
    """The texts at one of these paths."""
    return [each.value for each in _typed(item, path)]


def with_typed(item: Element, paths: Iterable[Sequence[str]]) -> Element:
    """An item that has some of these paths, too, for the evaluation of a condition."""
    found = Element(item.name, mark=item.mark)
    found.attributes, found.children = item.attributes, list(item.children)
    for path in paths:
        for text in _typed(item, path):
            at = found
            for step in path:
                inner = Element(Name(step))
                at.append(inner)
                at = inner
            at.append(text)
    return found


def _typed(item: Element, path: Sequence[str]) -> Iterator[Text]:
    kind, *steps = path
    values: Iterable[Value] = [item]
    for step in steps:
        key = key_of_step(step)
        values = () if key is None else looked_up(values, key)
    for value in _members(values):
        match value:
            case JsonNumber() | Measured() if kind == NUMBERS:
                yield Text(str(value), value.measure if isinstance(value, Measured) else None)
            case str() if type(value) is str:
                if kind != OTHERS:
                    yield Text(value if kind == STRINGS else _WORD)
            case _ if value is not NULL and kind != STRINGS:
                yield Text(_WORD)


def _members(values: Iterable[Value]) -> Iterator[Value]:
    """The values, arrays as their members."""
    for value in values:
        if isinstance(value, JsonArray):
            for member in value.members:
                yield from _members(member)
        else:
            yield value
