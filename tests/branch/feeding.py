"""What the tests of branches share: streams as text, cut into partitions, feeds and epochs at random, and the law."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path as FilePath
from random import Random

from anabranch.algebra.accents.events import judged
from anabranch.algebra.accents.evolution import Evolution
from anabranch.branch.family import operator_of
from anabranch.branch.intake.entries import FeedOrigin, pack
from anabranch.branch.members import BranchMember
from anabranch.branch.open import Branch, open_branch
from anabranch.branch.ports import InputStream
from anabranch.branch.state import BranchState
from anabranch.language import ast, check, parse
from anabranch.language.checks.paths import ItemNames
from anabranch.law import Answer, Input, evaluate
from anabranch.law.inputs import document_input, stream_input
from anabranch.runtime.standing import standing
from anabranch.stream.elements import DeadLetter, Place
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path
from anabranch.stream.reading.lines import Cut, LineSplitter
from anabranch.stream.reading.parse import parse_document, parse_root
from anabranch.stream.reading.reader import ElementReader, Format
from anabranch.stream.reading.source import Source
from anabranch.stream.reading.split import DocumentSplitter
from anabranch.stream.tree import Element

PUNCTUATION = '<s:punctuation xmlns:s="urn:anabranch:stream" {}/>'
TIMED = '<i xmlns:s="urn:anabranch:stream" s:at="{}" '


@dataclass
class Taken:
    """What a branch gave, and what it spilled."""

    pieces: list[str] = field(default_factory=list)
    dead: list[DeadLetter] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    at_once: int = 0
    """How many pieces came together with others."""
    spilled: dict[str, bytes] = field(default_factory=dict)
    states: list[BranchState] = field(default_factory=list)
    """Those that each epoch left."""
    marks: list[object] = field(default_factory=list)
    """What was given by the end of each epoch, for those who note it."""

    def piece(self, text: str) -> None:
        self.pieces.append(text)

    def extend(self, data: bytes, pieces: int, first: int) -> None:
        assert 0 < first <= len(data)
        self.pieces.append(data.decode())
        self.at_once += pieces

    def bury(self, letter: DeadLetter) -> None:
        self.dead.append(letter)

    def late(self, place: Place) -> None:
        self.places.append(place)

    def write(self, data: bytes) -> str:
        self.spilled[f"spill-{len(self.spilled)}"] = data
        return f"spill-{len(self.spilled) - 1}"

    def read(self, ref: str) -> bytes:
        return self.spilled[ref]


@dataclass
class Stream:
    """A stream given as a document, or as lines of JSON, its items dealt out to partitions."""

    name: str
    text: str = "<r></r>"
    dealt: Sequence[int] = ()
    """The partition of each item, as far as it is not the first."""
    partitions: int = 1
    time: str | None = None
    slack: Fraction = Fraction(0)
    origin: Fraction = Fraction(0)
    late: bool = False
    endless: bool = False
    limits: Limits = field(default_factory=Limits)
    form: Format = "document"
    retain: Fraction | None = None
    item: str = "item"
    """What records of JSON are called."""

    def __post_init__(self) -> None:
        splitter = DocumentSplitter(Limits()) if self.form == "document" else LineSplitter(Limits())
        found = (*splitter.feed(self.text.encode()), *splitter.finish())
        self.root_text = (splitter.root if isinstance(splitter, DocumentSplitter) else None) or b"<r>"
        self.cuts: list[list[Cut]] = [[] for _ in range(self.partitions)]
        for number, cut in enumerate(found):
            self.cuts[self.dealt[number] if number < len(self.dealt) else 0].append(cut)
        self.given = self.cuts
        """All that stands in the stream, and what a task hands on of it."""
        self.cuts = [good(self.reader(), cuts) for cuts in self.given]

    @property
    def path(self) -> Path | None:
        return None if self.time is None else Path.parse(self.time)

    def root(self) -> Element:
        return parse_root(self.root_text)

    def reader(self) -> ElementReader:
        return ElementReader(self.name, self.form, self.limits, self.root(), self.item)

    def for_branch(self) -> InputStream:
        paths = [FilePath(self.name, str(number)) for number in range(self.partitions)]
        given = self.path, self.slack, self.origin
        source = Source(
            self.name, paths[0], self.form, None, None, None, *given, more=tuple(paths[1:]), retain=self.retain
        )
        return InputStream(source, self.root(), self.reader, self.late, self.endless, is_json=self.form == "json")

    def for_law(self) -> Input:
        read = [self.reader().elements(cuts, f"file{number}") for number, cuts in enumerate(self.given)]
        return stream_input(
            self.root(),
            read,
            time=self.path,
            slack=self.slack,
            origin=self.origin,
            late=self.late,
            endless=self.endless,
            retain=self.retain,
        )[0]


class Question:
    """A query over some streams and documents, asked of a branch and of the law."""

    def __init__(self, query: str, streams: Sequence[Stream], documents: Mapping[str, str] | None = None) -> None:
        self.streams = streams
        self.documents = {
            name: document_input(parse_document(text.encode())) for name, text in (documents or {}).items()
        }
        known = {**{each.name: None for each in streams}, **dict.fromkeys(self.documents)}
        self.text = query
        json = {each.name: each.item for each in streams if each.form == "json"}
        names = {name: ItemNames("r", (item,), agreed=True) for name, item in json.items()}
        self.query: ast.Query = check(parse(query), query, inputs=known, names=names, json=json).query
        self.standing = standing(self.query, text=query)

    def law(self) -> Answer:
        """What the law answers."""
        given = {each.name: each.for_law() for each in self.streams}
        return evaluate(self.query, {**given, **self.documents}, name="q")

    @property
    def operator(self) -> str:
        """What the branch needs behind the merge."""
        times = {each.name: each.path for each in self.streams}
        return operator_of(self.standing, times, endless=all(each.endless for each in self.streams))

    def open(self, taken: Taken, state: BranchState | None) -> Branch:
        """The branch, where an earlier epoch has left it."""
        inputs = {each.name: each.for_branch() for each in self.streams}
        member = BranchMember("q", "q", self.standing, taken)
        return open_branch(self.operator, [member], inputs, state, {}, self.documents, taken)

    def run(self, random: Random, epochs: int) -> Taken:
        """What the branch answers, with the streams cut into random feeds over some epochs."""
        taken = Taken()
        state: BranchState | None = None
        feeds = [
            [pack(FeedOrigin(stream.name, number, f"file{number}"), part) for part in parts_of(random, cuts)]
            for stream in self.streams
            for number, cuts in enumerate(stream.cuts)
            if stream.name in self.standing.streams
        ]
        for epoch in range(epochs):
            branch = self.open(taken, state)
            for feed in some_of(random, feeds, everything=epoch == epochs - 1):
                branch.feed(feed)
            if epoch == epochs - 1:
                for stream in self.streams:
                    for number in range(stream.partitions):
                        if stream.name in self.standing.streams:
                            branch.end(stream.name, number)
            saved = branch.save()
            state = None if saved is None else BranchState.from_bytes(saved.to_bytes())
            taken.states += [state] if state else []
        return taken

    def answer(self, taken: Taken) -> str:
        """The answer that the pieces are parts of."""
        text = "".join(taken.pieces)
        return f"{self.standing.opening}{text}{self.standing.closing}" if text else self.standing.empty

    def check_by_law(self, random: Random, label: object) -> tuple[bool, bool]:
        """A branch with its state put away now and then gives the answer and the dead letters of the law.

        Gives whether there is an answer, and whether there are dead letters.
        """
        law, taken = self.law(), self.run(random, epochs=random.choice((1, 2, 4)))
        told = f"{label}: {self.text}"
        assert self.answer(taken) == law.text, told
        assert sorted(each.to_json() for each in taken.dead) == sorted(each.to_json() for each in law.dead), told
        return bool(law.text), bool(law.dead)


class Flow:
    """A branch fed step by step; an epoch more leaves nothing of it but its state."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.taken = Taken()
        self.branch = question.open(self.taken, None)
        self.size = 0
        """The bytes of the last state."""
        self._offsets: dict[tuple[str, int], int] = {}

    def bring(
        self,
        stream: str,
        *items: str,
        partition: int = 0,
        arrived: Fraction | None = None,
        reason: str | None = None,
    ) -> list[str]:
        """Feed some items; gives the pieces that they bring. With a `reason` they are bad."""
        found: list[Cut] = []
        for item in items:
            start = self._offsets.get((stream, partition), 3)
            raw = item.encode()
            self._offsets[stream, partition] = start + len(raw)
            found.append(Cut(start, start + len(raw), raw, reason, b"<r>"))
        before = len(self.taken.pieces)
        self.branch.feed(pack(FeedOrigin(stream, partition, f"file{partition}", arrived), found))
        return self.taken.pieces[before:]

    def end(self) -> list[str]:
        """End all inputs; gives the pieces that this brings."""
        before = len(self.taken.pieces)
        for stream in self.question.streams:
            for number in range(stream.partitions):
                self.branch.end(stream.name, number)
        return self.taken.pieces[before:]

    def epoch(self) -> None:
        """End the epoch, and go on from its state in the next."""
        saved = self.branch.save()
        assert saved is not None
        data = saved.to_bytes()
        self.size = len(data)
        self.branch = self.question.open(self.taken, BranchState.from_bytes(data))


def good(reader: ElementReader, cuts: Sequence[Cut]) -> list[Cut]:
    """What a task hands on: all that may stand where it stands, and what is in doubt because of the rest (LAWS 4.5)."""
    evolution = Evolution()
    found: list[Cut] = []
    for cut in cuts:
        (element,) = reader.elements([cut], "file")
        match judged(element, evolution):
            case DeadLetter(doubts=doubts, reason=reason) if not isinstance(element, DeadLetter):
                found += [cut._replace(reason=reason)] if doubts else []
            case _:
                found.append(cut)
    return found


def parts_of(random: Random, cuts: Sequence[Cut]) -> list[Sequence[Cut]]:
    """Some cuts in pieces, in order."""
    borders = sorted(random.randint(0, len(cuts)) for _ in range(random.randint(0, 3)))
    return [cuts[a:b] for a, b in zip([0, *borders], [*borders, len(cuts)], strict=True)]


def some_of(random: Random, feeds: list[list[bytes]], *, everything: bool) -> list[bytes]:
    """The next feeds of some inputs, in a random order of the inputs."""
    found: list[bytes] = []
    while rest := [each for each in feeds if each]:
        if not everything and random.random() < 0.4:
            break
        found.append(random.choice(rest).pop(0))
    return found


def spiced(random: Random, text: str) -> str:
    """A stream with punctuations between its items, and times on some of them."""

    def before(item: re.Match[str]) -> str:
        value, chance = random.choice(("0", "1", "3", "5", "12.5", "20")), random.random()
        if chance < 0.15:
            rare = "true()" if random.random() < 0.1 else f"t &lt; {value} and a = 5"
            where = random.choice((f"t &lt; {value}", f"t &lt;= {value} or a = 5", rare))
            said = random.choice((f'at="{value}"', f'where="{where}"', f'where="{where}" at="{value}"'))
            return PUNCTUATION.format(said) + item[0]
        return TIMED.format(value) if chance < 0.25 else item[0]

    return re.sub("<i ", before, text) if random.random() < 0.5 else text
