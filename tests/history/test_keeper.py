"""The keeper of a stream applies only the newest replacement of a region, with the same document as if it had all."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from anabranch.branch import InputStream
from anabranch.branch.document.keeper import Keeper
from anabranch.branch.document.layers import read_layers
from anabranch.branch.intake.entries import FeedOrigin, pack
from anabranch.stream.elements import DeadLetter, Place
from anabranch.stream.limits import Limits
from anabranch.stream.reading.lines import Cut
from anabranch.stream.reading.parse import implied_root
from anabranch.stream.reading.reader import ElementReader
from anabranch.stream.reading.source import Source
from anabranch.stream.tree import STREAM_NAMESPACE
from mass import enough, some


class Ends:
    """Where a keeper writes: its layers, and what it has buried."""

    def __init__(self) -> None:
        self.blobs: list[bytes] = []
        self.dead: list[DeadLetter] = []

    def write(self, data: bytes) -> str:
        self.blobs.append(data)
        return str(len(self.blobs) - 1)

    def read(self, ref: str) -> bytes:
        return self.blobs[int(ref)]

    def bury(self, letter: DeadLetter) -> None:
        self.dead.append(letter)

    def piece(self, text: str) -> None:
        raise AssertionError("a keeper has no answer")

    def extend(self, data: bytes, pieces: int, first: int) -> None:
        raise AssertionError("a keeper has no answer")

    def late(self, place: Place) -> None:
        raise AssertionError("nothing is late")


def lines(random: Random) -> list[str]:
    """Entries with regions, some of them nested, and updates, most of which replace regions again and again."""
    found, names, time = list[str](), list[str](), 0

    def region(content: str) -> str:
        names.append(str(len(names)))
        return f'<s:mutable id="{names[-1]}">{content}</s:mutable>'

    def part() -> str:
        return random.choice(("<b>1</b>", "<b>2</b><c/>", "", "text", '<b k="3"/>'))

    for _ in range(random.randint(2, 5)):
        inner = region(f"<d>{region(part())}</d>") if random.random() < 0.3 else region(part())
        found.append(f'<a xmlns:s="{STREAM_NAMESPACE}">{inner}{region(part())}</a>')
    for _ in range(random.randint(10, 40)):
        time += random.choice((0, 0, 1, 7))
        kind = random.choice(("replace",) * 12 + ("before", "after"))
        content = region(part()) if random.random() < 0.1 else part()
        own = f' id="{len(names)}"' if kind != "replace" else ""
        if own:
            names.append(str(len(names)))
        target = random.choice((*names, "nobody")) if random.random() < 0.1 else random.choice(names)
        head = f's:{kind} xmlns:s="{STREAM_NAMESPACE}" target="{target}"{own} at="{time}"'
        found.append(f"<{head}>{content}</s:{kind}>")
    return found


def kept(feeds: list[list[str]], retain: Fraction | None) -> tuple[Any, list[DeadLetter]]:
    """The document that a keeper has saved after some feeds, and what it has set aside."""
    ends, root = Ends(), implied_root("root")
    source = Source("s", Path("s"), updates=True, retain=retain)
    stream = InputStream(source, root, partial(ElementReader, "s", "lines", Limits(), root), endless=True)
    keeper, at = Keeper(stream, None, Limits(), ends, ends), 0
    for feed in feeds:
        cuts: list[Cut] = []
        for line in feed:
            raw = line.encode()
            cuts.append(Cut(at, at + len(raw), raw))
            at += len(raw) + 1
        keeper.feed(pack(FeedOrigin("s", 0, "file"), cuts))
    state = keeper.save()
    assert state is not None
    return [each.data() for each in read_layers(state.meta["layers"], ends.read)], ends.dead


@pytest.mark.parametrize("retain", [None, Fraction(10)])
def test_all_at_once_or_one_by_one(retain: Fraction | None) -> None:
    """A keeper that is fed element by element applies each of them, and has the same document and dead letters."""
    replaced = 0
    for number in some(range(60)):
        written = lines(Random(f"kept {number}"))
        one_by_one = kept([[each] for each in written], retain)
        assert kept([written], retain) == one_by_one, number
        replaced += len(written)
    assert replaced > enough(1_000)
