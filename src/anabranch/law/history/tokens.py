"""What comes piece by piece: the elements and regions of a partition that are open (LAWS 5.11; history paper, 2).

Each region is a sequence of tokens of its own, whose elements nest; tokens of several regions may stand in any order
among each other.
The stream itself is such a sequence, too, below its root.

Whatever is open has an *open end*: an empty region that stands last in it, under an id that no stream can write.
What the next token brings is put before the innermost open end of its region, and an open end is forgotten when its
element or region is complete.
So a token is written as a small tree of regions, and everything behind admission, in the reference and in production,
knows nothing of tokens but that something can be put before an open end (`Act` in `register.py`).

The rules are the paper's: elements nest within their region, a region ends when its elements have, and what is unknown
or not open is bad.
A region in a version that was replaced can be filled and ended, but never seen; when its open end is forgotten, as ids
are (LAWS 5.8), it is no longer open.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, field

from anabranch.errors import BadItem
from anabranch.stream.elements import StreamToken
from anabranch.stream.tree import STREAM_NAMESPACE, Child, Element, Name, copy

MOST_OPEN = 1_000
"""How many regions of a partition may be open at a time."""
_MARK = "\x01"
"""Begins the id of an open end; XML does not have it, and JSON is not read with it."""
_STREAM = ""
"""Stands for the stream itself among the regions; no region has an empty id."""


def is_open_end(node: Child) -> bool:
    """Whether a node is the open end of what it stands in."""
    return isinstance(node, Element) and node.name.uri == STREAM_NAMESPACE and names_open_end(node.get("id"))


def names_open_end(id: str | None) -> bool:
    """Whether an id is that of an open end."""
    return id is not None and id.startswith(_MARK)


@dataclass(frozen=True, slots=True)
class OpenPart:
    """An open region, or an element that is open in one."""

    end: str
    """The id of its open end."""
    name: str | None = None
    """The name of an element."""


@dataclass(slots=True)
class OpenParts:
    """What is open in one partition; `take` changes it."""

    regions: dict[str, list[OpenPart]] = field(default_factory=dict)
    """By region, the region itself and the elements that are open in it, innermost last; of the stream the elements."""
    next_end: int = 0

    @property
    def ids(self) -> Iterable[str]:
        """The regions that are open."""
        return (region for region in self.regions if region != _STREAM)

    def tree(self, token: StreamToken) -> Element:
        """A token as regions, or as an item that has just begun; BadItem where nothing is open that it belongs to."""
        match token.kind:
            case "open":
                (written,) = token.content
                assert isinstance(written, Element)
                return self._placed(token.region, _filled(copy(written), self._end()))
            case "append":
                if not (parts := self._parts(token.region)):
                    raise BadItem("no element is open in the stream: what is whole is an item")
                return _filled(_control("append", target=parts[-1].end), *map(copy, token.content))
            case "close":
                parts = self._parts(token.region)
                if not parts or parts[-1].name is None:
                    raise BadItem(f"no element is open in {_shown(token.region)}")
                if token.name is not None and token.name != parts[-1].name:
                    raise BadItem(f"the element that is open is '{parts[-1].name}', not '{_short(token.name)}'")
                return _control("close", target=parts[-1].end)
            case "start":
                assert token.starts is not None
                assert token.region is not None
                if len(self.regions) - (_STREAM in self.regions) >= MOST_OPEN:
                    raise BadItem(f"{MOST_OPEN:,} regions are open, and there may be no more")
                if token.starts == "mutable":
                    return self._placed(token.target, _filled(_control("mutable", id=token.region), self._end()))
                assert token.target is not None
                return _filled(_control(token.starts, target=token.target, id=token.region), self._end())
            case "end":
                parts = self._parts(token.region)
                if len(parts) > 1:
                    raise BadItem(f"the element '{parts[-1].name}' is still open in {_shown(token.region)}")
                return _control("close", target=parts[-1].end)

    def take(self, token: StreamToken) -> None:
        """Take a token that was good."""
        region = token.region or _STREAM
        match token.kind:
            case "open":
                (written,) = token.content
                assert isinstance(written, Element)
                self.regions.setdefault(region, []).append(OpenPart(self._taken_end(), str(written.name)))
            case "start":
                self.regions[region] = [OpenPart(self._taken_end())]
            case "close" | "end":
                self.regions[region].pop()
                if not self.regions[region]:
                    del self.regions[region]
            case "append":
                pass

    def forget(self, known: Container[str]) -> None:
        """Drop the regions whose open ends are forgotten; `known` are the ids that are known."""
        for region, parts in [*self.regions.items()]:
            if not all(part.end in known for part in parts):
                del self.regions[region]

    def _parts(self, region: str | None) -> list[OpenPart]:
        if region is not None and region not in self.regions:
            raise BadItem(f"no region called '{_short(region)}' is open")
        return self.regions.get(region or _STREAM, [])

    def _placed(self, region: str | None, content: Element) -> Element:
        """An element or a region that comes next in another region, or in the stream."""
        parts = self._parts(region)
        return _filled(_control("append", target=parts[-1].end), content) if parts else content

    def _end(self) -> Element:
        return _control("mutable", id=f"{_MARK}{self.next_end}")

    def _taken_end(self) -> str:
        self.next_end += 1
        return f"{_MARK}{self.next_end - 1}"


def _control(local: str, **attributes: str) -> Element:
    element = Element(Name(local, STREAM_NAMESPACE, "s"))
    for name, value in attributes.items():
        element.set(Name(name), value)
    return element


def _filled(element: Element, *content: Child) -> Element:
    for each in content:
        element.append(each)
    return element


def _shown(region: str | None) -> str:
    return "the stream" if region is None else f"the region '{_short(region)}'"


def _short(text: str) -> str:
    return text if len(text) <= 200 else text[:197] + "..."
