"""`analyze-string()`: a text taken apart into what matches a pattern, with its groups, and what does not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from anabranch.law.library.arguments import text_of
from anabranch.law.library.regular import Regular, Span
from anabranch.law.library.texts import splitting_pattern
from anabranch.law.steps import text_steps
from anabranch.stream.tree import Element, Name, Text
from anabranch.values.sequences import Values

FUNCTIONS_NAMESPACE = "http://www.w3.org/2005/xpath-functions"


def analyzed(arguments: Sequence[Values], count: Callable[[int], None]) -> Element:
    """The result of `analyze-string()`; `count` receives its steps before its nodes are made."""
    values, pattern, *flags = arguments
    text = text_of(values, "analyze-string()") or ""
    found = splitting_pattern(pattern, flags[0] if flags else None, "analyze-string()")
    count(text_steps([*arguments], []))
    parts = found.parts(text)
    count(len(parts) * (2 + 2 * found.groups))
    ends = list(accumulate(map(len, parts)))
    matches = [
        (text[end - len(part) - 1 : end - len(part)] if end > len(part) else "", part, text[end : end + 1])
        for part, end in zip(parts[1::2], ends[1::2], strict=True)
    ]
    groups = iter(found.groups_of(matches) if found.groups else [[] for _ in matches])
    result = Element(Name("analyze-string-result", FUNCTIONS_NAMESPACE), {"": FUNCTIONS_NAMESPACE})
    for place, part in enumerate(parts):
        if place % 2:
            _fill(_added(result, "match"), part, _MatchGroups(found, next(groups)), 0, (0, len(part)))
        elif part:
            _added(result, "non-match").append(Text(part))
    return result


@dataclass(frozen=True, slots=True)
class _MatchGroups:
    """The groups of one match."""

    pattern: Regular
    spans: Sequence[Span | None]

    def inside(self, number: int) -> list[int]:
        """The groups directly in a group, or in the match for 0, in their order.

        A group is in the one that it is written in, or in one around it, where that has gone on to something else.
        """
        return sorted(
            (each for each, span in enumerate(self.spans, 1) if span and self._around(each, span) == number),
            key=lambda each: (self.spans[each - 1], each),
        )

    def _around(self, number: int, span: Span) -> int:
        parent = self.pattern.parents[number - 1]
        while parent:
            outer = self.spans[parent - 1]
            if outer is not None and outer[0] <= span[0] and span[1] <= outer[1]:
                break
            parent = self.pattern.parents[parent - 1]
        return parent


def _added(element: Element, name: str) -> Element:
    fresh = Element(Name(name, FUNCTIONS_NAMESPACE))
    element.append(fresh)
    return fresh


def _fill(element: Element, match: str, groups: _MatchGroups, number: int, span: Span) -> None:
    """Add the text of a match or group, with the groups in it as elements."""
    at, end = span
    for each in groups.inside(number):
        inner = groups.spans[each - 1]
        assert inner is not None, "it took part"
        _add_text(element, match[at : inner[0]])
        fresh = _added(element, "group")
        fresh.set(Name("nr"), str(each))
        _fill(fresh, match, groups, each, inner)
        at = inner[1]
    _add_text(element, match[at:end])


def _add_text(element: Element, text: str) -> None:
    if text:
        element.append(Text(text))
