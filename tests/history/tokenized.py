"""Events as the history paper writes them, random update streams, and updates applied naively, for comparison."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal

from anabranch.stream.tree import Name
from models.pipeline.events import (
    Characters,
    Content,
    EndElement,
    EndRegion,
    EndStream,
    Event,
    Id,
    Kind,
    Now,
    Other,
    StartElement,
    StartRegion,
    StartStream,
)
from models.pipeline.qualifier import Qualifier

KINDS: dict[str, Kind] = {"M": "mutable", "R": "replace", "B": "before", "A": "after"}


def events(text: str, stream: int = 0) -> list[Event]:
    """Read `sM(0,1), cD(1,x), eM(0,1)`; a qualifier may follow as a third argument, `now(2)` moves time."""
    found: list[Event] = []
    for token, arguments in re.findall(r"(\w+)\(([^)]*)\)", text):
        first, *rest = [each.strip().strip('"') for each in arguments.split(",")]
        id = Id(stream, first)
        match token:
            case "sS":
                found.append(StartStream(Id(stream, rest[0])))
            case "eS":
                found.append(EndStream(Id(stream, rest[0])))
            case "sE":
                found.append(StartElement(id, Name(rest[0])))
            case "eE":
                found.append(EndElement(id, Name(rest[0])))
            case "cD":
                found.append(Characters(id, rest[0]))
            case "now":
                found.append(Now(Decimal(first)))
            case _ if token[0] == "s":
                asked = Qualifier.parse(rest[1]) if len(rest) > 1 else None
                found.append(StartRegion(KINDS[token[1]], id, Id(stream, rest[0]), asked))
            case _:
                found.append(EndRegion(KINDS[token[1]], id, Id(stream, rest[0])))
    return found


def written(content: Iterable[Content]) -> str:
    """Content as XML; elements that are open are closed, empty ones written short, values spaced."""
    out: list[str] = []
    names: list[str] = []
    is_fresh = is_value = False
    for event in (*(each for each in content if each != Characters(each.id, "")), None):
        if is_fresh and (not isinstance(event, EndElement) or not names) and event is not None:
            out.append(">")
        match event:
            case StartElement(_, name, attributes):
                out.append(f"<{name}" + "".join(f' {each}="{value}"' for each, value in attributes))
                names.append(str(name))
            case EndElement():
                out.append("/>" if is_fresh else f"</{names[-1]}>")
                names.pop()
            case Characters(_, text, computed):
                out.append(" " + text if computed and is_value else text)
            case _:
                pass
        is_value = isinstance(event, Characters) and event.is_value
        is_fresh = isinstance(event, StartElement)
    return "".join(out)


# --- updates applied naively --------------------------------------------------------------------------------


@dataclass(eq=False)
class _Version:
    start: Decimal
    around: _Version | None
    parts: list[Content | _Chain] = field(default_factory=list)
    end: Decimal | None = None

    @property
    def ended(self) -> Decimal | None:
        above = self.around.ended if self.around else None
        ends = [each for each in (self.end, above) if each is not None]
        return min(ends) if ends else None


@dataclass(eq=False)
class _Chain:
    around: _Version
    qualifier: Qualifier | None
    versions: list[_Version]


class Applied:
    """A stream that keeps everything, and shows what its qualifiers ask for by looking at all of it."""

    def __init__(self) -> None:
        self.now = Decimal(0)
        self.root = _Version(self.now, None)
        self.chains: dict[Id, _Chain] = {}
        self.open: dict[Id, _Version | None] = {}

    def take(self, event: Event) -> None:
        match event:
            case Now(at):
                self.now = at
            case StartStream(id):
                self.open[id] = self.root
            case EndStream(id) | EndRegion(_, _, id):
                self.open.pop(id)
            case StartRegion(kind, of, id, qualifier):
                chain = self._region(kind, of, qualifier)
                self.open[id] = None
                self.chains.pop(id, None)
                if chain is not None:
                    self.chains[id] = chain
                    self.open[id] = chain.versions[-1]
            case _:
                version = self.open[event.id]
                if version is not None:
                    version.parts.append(event)

    def _region(self, kind: Kind, of: Id, qualifier: Qualifier | None) -> _Chain | None:
        if kind == "mutable":
            around = self.open[of]
            if around is None or around.ended is not None:
                return None
            chain = _Chain(around, qualifier, [_Version(self.now, around)])
            around.parts.append(chain)
            return chain
        anchor = self.chains.get(of)
        if anchor is None or anchor.around.ended is not None:
            return None
        if kind == "replace":
            anchor.versions[-1].end = self.now
            anchor.versions.append(_Version(self.now, anchor.around))
            anchor.qualifier = qualifier or anchor.qualifier
            return anchor
        chain = _Chain(anchor.around, qualifier, [_Version(self.now, anchor.around)])
        parts = anchor.around.parts
        parts.insert(parts.index(anchor) + (kind == "after"), chain)
        return chain

    def content(self, of: _Version | None = None) -> list[Content]:
        """What shows now, without regions; what is open is closed."""
        found: list[Content] = []
        opened: list[StartElement] = []
        for part in (of or self.root).parts:
            match part:
                case _Chain():
                    for version in self._shown(part):
                        found += self.content(version)
                case StartElement():
                    opened.append(part)
                    found.append(part)
                case EndElement():
                    opened.pop()
                    found.append(part)
                case _:
                    found.append(part)
        return found + [EndElement(each.id, each.name) for each in reversed(opened)]

    def _shown(self, chain: _Chain) -> list[_Version]:
        newest_first = chain.versions[::-1]
        asked = chain.qualifier
        if asked is None:
            return newest_first[:1]
        most = asked.amount
        if asked.kind == "version":
            return newest_first[: int(most) + 1] if asked.is_window else newest_first[int(most) : int(most) + 1]
        lives = [(each.start, each.ended, each) for each in newest_first]
        late = [(start, each) for start, end, each in lives if end is None or end > self.now - most]
        return [each for start, each in late if asked.is_window or start <= self.now - most]


# --- random streams -----------------------------------------------------------------------------------------

TEXTS = ("1", "2", "-3", "4.5", "10", "")
NAMES = ("a", "b", "c")
QUALIFIERS = tuple(map(Qualifier.parse, ("#0", "#1", "#2", "#[1]", "#[3]", "?0", "?1", "?2.5", "?[1]", "?[3]")))


def random_stream(seed: int, length: int = 40, qualified: bool = False, interleaved: bool = True) -> list[Event]:
    """A well-formed update stream: nested regions, updates of updates, deletions, regions that overlap in time."""
    chance = random.Random(seed)
    root = Id(0, "0")
    found: list[Event] = [StartStream(root)]
    open: dict[Id, tuple[StartRegion | None, list[Name]]] = {root: (None, [])}
    closed: list[Id] = []
    now = Decimal(0)

    def begin(kind: Kind, of: Id, id: Id) -> None:
        may_ask = qualified and kind != "replace"  # all versions of a region have one qualifier
        asked = chance.choice(QUALIFIERS) if may_ask and chance.random() < 0.5 else None
        found.append(StartRegion(kind, of, id, asked))
        open[id] = (found[-1], [])  # type: ignore[assignment]

    def end(id: Id) -> None:
        start, names = open.pop(id)
        found.extend(EndElement(id, each) for each in reversed(names))
        if start is not None:
            found.append(EndRegion(start.kind, start.of, id))
            closed.append(id)

    for number in range(length):
        id = list(open)[-1] if not interleaved else chance.choice(list(open))
        names = open[id][1]
        fresh = Id(0, str(number + 1))
        match chance.randrange(10):
            case 0 | 1:
                names.append(Name(chance.choice(NAMES)))
                found.append(StartElement(id, names[-1]))
            case 2 if names:
                found.append(EndElement(id, names.pop()))
            case 3 | 4:
                found.append(Characters(id, chance.choice(TEXTS)))
            case 5 | 6:
                begin("mutable", id, fresh)
            case 7 | 8 if closed:
                kinds: tuple[Kind, ...] = ("replace", "replace", "before", "after")
                begin(chance.choice(kinds), chance.choice(closed), fresh)
            case 9 if chance.random() < 0.5:
                now += chance.choice((Decimal(0), Decimal("0.5"), Decimal(1)))
                found.append(Now(now))
            case _ if id != root:
                end(id)
    for id in reversed(list(open)):
        end(id)
    return [*found, EndStream(root)]


def moments(given: Iterable[Event], take: Callable[[Event], object]) -> Iterable[tuple[Event, list[Content]]]:
    """Feed a stream to `take`, and give after every event what applying the updates naively shows."""
    naive = Applied()
    for event in given:
        take(event)
        naive.take(event)
        yield event, naive.content()


def texts(content: Iterable[Content]) -> list[str]:
    """The values of the results in content: elements, and texts between them."""
    found: list[str] = []
    depth = 0
    for event in content:
        match event:
            case StartElement():
                if depth == 0:
                    found.append("")
                depth += 1
            case EndElement():
                depth -= 1
            case Characters(_, text):
                if depth == 0:
                    found.append(text)
                else:
                    found[-1] += text
            case Other():
                pass
    return found
