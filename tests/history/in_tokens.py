"""Streams of tokens (LAWS 5.11): the events of the paper in our words, elements taken apart, and random ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from random import Random

from anabranch.stream.limits import Limits
from anabranch.stream.reading.parse import parse_item
from anabranch.stream.serialize import serialize
from anabranch.stream.tree import STREAM_NAMESPACE, Element, Text
from history.writing import Writer
from models.pipeline.events import (
    Characters,
    EndElement,
    EndRegion,
    EndStream,
    Event,
    Now,
    StartElement,
    StartRegion,
    StartStream,
)


def tokens(given: Iterable[Event], base: str = "0") -> Iterator[str]:
    """The paper's events as this project writes them; `base` is the id of the stream itself."""

    def into(id: str) -> str:
        return "" if id == base else f' in="{id}"'

    for event in given:
        match event:
            case StartElement(id, name):
                yield f"<s:open{into(id.name)}><{name}/></s:open>"
            case EndElement(id, name):
                yield f'<s:close{into(id.name)} name="{name}"/>'
            case Characters(id, text):
                yield f"<s:append{into(id.name)}>{text}</s:append>"
            case StartRegion("mutable", of, id):
                yield f'<s:start kind="mutable"{into(of.name)} id="{id.name}"/>'
            case StartRegion(kind, of, id):
                yield f'<s:start kind="{kind}" target="{of.name}" id="{id.name}"/>'
            case EndRegion(_, _, id):
                yield f'<s:end id="{id.name}"/>'
            case Now(at):
                yield f'<s:punctuation at="{at}"/>'
            case StartStream() | EndStream():
                yield ""


def taken_apart(text: str) -> Iterator[list[str]]:
    """The elements in the content of a root, each as its tokens; an update without an id gets one that is not used."""
    root = parse_item(f"<root xmlns:s='{STREAM_NAMESPACE}'>{text}</root>".encode(), Limits())
    fresh = (f"t{number}" for number in count())
    for each in root.children:
        assert isinstance(each, Element)
        is_heartbeat = each.name.uri == STREAM_NAMESPACE and each.name.local == "punctuation"
        yield [serialize(each)] if is_heartbeat else list(_apart(each, "", fresh))


def _apart(node: Element, region: str, fresh: Iterator[str]) -> Iterator[str]:
    into = f' in="{region}"' if region else ""
    at = node.get("at", STREAM_NAMESPACE) or (node.get("at") if node.name.uri == STREAM_NAMESPACE else None)
    when = "" if at is None else f' at="{at}"'
    if node.name.uri != STREAM_NAMESPACE:
        kept = "".join(f' {each.name}="{each.value}"' for each in node.attributes if not each.name.uri)
        yield f"<s:open{into}{when}><{node.name}{kept}/></s:open>"
        inner, end = region, f"<s:close{into}/>"
    else:
        kind, inner = node.name.local, node.get("id") or next(fresh)
        where = into if kind == "mutable" else f' target="{node.get("target")}"'
        yield f'<s:start kind="{kind}"{where} id="{inner}"{when}/>'
        end = f'<s:end id="{inner}"/>'
    within = f' in="{inner}"' if inner else ""
    for child in node.children:
        if isinstance(child, Element):
            yield from _apart(child, inner, fresh)
        elif isinstance(child, Text):
            yield f"<s:append{within}>{child.value}</s:append>"
    yield end


class TokenWriter(Writer):
    """Writes streams in which several elements and regions are open at a time, beside whole items and updates.

    A few tokens are bad: they name what is not open, or end what still has an open element.
    """

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.open: dict[str, list[str]] = {"": []}
        """By region the elements that are open in it; the stream itself has no name."""
        self.complete: list[str] = []
        self.updates: set[str] = set()
        """The ids that updates have taken, and may take again."""

    def stream(self, length: int) -> str:
        return "".join(self.token() for _ in range(length))

    def update(self, depth: int) -> str:
        """What a token holds has no updates in it."""
        return ""

    def token(self) -> str:
        region = self.one(*self.open)
        into, names = (f' in="{region}"' if region else ""), self.open[region]
        kind = self.one(
            *("open",) * 4, *("append",) * 5, *("close",) * 3, *("start",) * 5, *("end",) * 3, "whole", "bad"
        )
        match kind:
            case "open":
                names.append(self.one("a", "a", "b"))
                key = f' k="{self.number()}"' if self.likely(0.4) else ""
                return f"<s:open{into}{self.at('at')}><{names[-1]}{key}/></s:open>"
            case "append" if region or names:
                content = self.one(self.number(), self.element(1), self.content(1))
                return f"<s:append{into}{self.at('at')}>{content}</s:append>"
            case "close" if names:
                return f'<s:close{into} name="{names.pop()}"{self.at("at")}/>'
            case "start":
                return self.start(into)
            case "end" if region and not names:
                del self.open[region]
                self.complete.append(region)
                return f'<s:end id="{region}"{self.at("at")}/>'
            case "whole" if self.complete and self.likely(0.7):
                target = self.one(*self.complete[-6:])
                return f'<s:replace target="{target}"{self.at("at")}>{self.content(1)}</s:replace>'
            case "whole":
                return self.element(2, self.at("s:at"))
            case "bad":
                unknown = ('<s:end id="none"/>', '<s:append in="none">1</s:append>', '<s:close name="none"/>')
                return self.one(*unknown, *([f'<s:end id="{region}"/>'] if region and names else []))
        return f"<s:punctuation{self.at('at', 1)}/>"

    def start(self, into: str) -> str:
        """A region starts; an update may take the id of an earlier one."""
        self.ids += 1
        own, when = f"r{self.ids}", self.at("at")
        kind = self.one("mutable", "mutable", "replace", "replace", "before", "after")
        known = [*self.complete, *self.chains, *(filter(None, self.open) if kind == "before" else ())]
        if kind == "mutable" or not known:
            self.open[own] = []
            return f'<s:start kind="mutable"{into} id="{own}"{when}/>'
        target = self.one(*known[-6:])
        again = [each for each in self.complete if each in self.updates]
        own = self.one(*again) if again and self.likely(0.2) else own
        self.complete = [each for each in self.complete if each != own]
        self.updates.add(own)
        self.open[own] = []
        return f'<s:start kind="{kind}" target="{target}" id="{own}"{when}/>'
