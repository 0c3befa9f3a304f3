"""Worlds: random accented streams on disk with random queries over them, and what each answer has to be.

A *world* is a pair of streams, `a` and `b`, of one to four partitions each, and some queries; many of them are served
by one trunk, under names that tell them apart.
A case is one query of a world, judged twice:

* The answer is the reference's (`engine/evolved.py`) to the byte, and ends where that ends.
* The square of LAWS 4.1: in canonical form it is the answer over the canonical streams (`judging.py`), wherever that is
  claimed; a drop purges what queries remember (LAWS 4.2 c, g).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from random import Random

from algebra.evolving import stream
from anabranch.engine.evolved import Fed, answer_evolving, fed, text_of
from anabranch.engine.reading import read_stream
from anabranch.law import Input
from anabranch.runtime.chains import chained_query
from anabranch.runtime.standing import standing
from anabranch.stream.elements import Accent, DeadLetter, Drop, StreamElement
from anabranch.stream.limits import Limits
from anabranch.stream.reading.json_items import to_json
from anabranch.stream.reading.reader import Format
from anabranch.stream.reading.source import Source
from anabranch.stream.reading.wire import write
from evolving.judging import across, answered, canonical_input
from evolving.outlets import checked
from evolving.questions import TIME, Kind, question, timed

KINDS: dict[Kind, int] = {"items": 10, "windows": 6, "groups": 2, "joins": 2, "interval": 1, "sets": 3, "whole": 1}
"""How often a query is of which kind; those that remember single items cost most."""
AS_THEY_COME: dict[Kind, int] = {"keyed": 6, "sets": 4, "chained": 3, "items": 1, "interval": 1}
"""The same for trunks that do not wait for the end of their streams."""
ITEM = "i"
"""What items are called."""
FORMS: tuple[Format, ...] = ("lines", "lines", "lines", "json", "document")


@dataclass(frozen=True, slots=True)
class Given:
    """What a trunk has given to its subscriptions, by their names."""

    answers: Mapping[str, str]
    aborted: Mapping[str, str]
    """Why some have ended."""
    dead: Mapping[str, Sequence[DeadLetter]]

    @staticmethod
    def of(answers: Mapping[str, str], aborted: Mapping[str, str], letters: Iterable[DeadLetter]) -> Given:
        dead: dict[str, list[DeadLetter]] = {}
        for letter in letters:
            assert letter.subscription is not None, f"a bad element: {letter}"
            dead.setdefault(letter.subscription, []).append(_elsewhere(letter))
        return Given(answers, aborted, dead)


@dataclass(frozen=True)
class World:
    """Two streams, by partition, and queries over them."""

    name: str
    streams: Mapping[str, Sequence[Sequence[StreamElement]]]
    queries: Mapping[str, str]
    """By a name of their own; streams are called `a` and `b` in them."""
    form: Format
    is_timed: bool
    sources: Mapping[str, Source]
    endless: bool = False
    """Whether a trunk answers as elements come; its streams end all the same, so nothing is left to wait for."""

    @staticmethod
    def lay(
        folder: Path, name: str, random: Random, queries: int, gap: int = 0, kinds: Mapping[Kind, int] = KINDS
    ) -> World:
        """A random world on disk; with a gap an empty line of up to so many bytes stands behind each element."""
        endless = kinds is AS_THEY_COME
        form = "lines" if gap else random.choice(FORMS)
        goes, is_timed = random.random() < 0.3, endless or random.random() < 0.8
        streams = {
            each: [
                timed(random, stream(random, ["s", "t", "x"], random.randint(3, 6), comes=True, goes=goes))
                for _ in range(random.choice((1, 1, 1, 2, 2, 3, 4)))
            ]
            for each in ("a", "b")
        }
        chosen = random.choices(list(kinds), list(kinds.values()), k=queries)
        asked = {f"q{name}-{number}": question(random, kind) for number, kind in enumerate(chosen)}
        sources: dict[str, Source] = {}
        for each, partitions in streams.items():
            paths = [folder / f"{each}{name}-{number}" for number in range(len(partitions))]
            for path, part in zip(paths, partitions, strict=True):
                _lay(path, part, form, random, gap)
            time = TIME if is_timed else None
            more = tuple(paths[1:])
            known = Source(f"{each}{name}", paths[0], form, root="r", item=ITEM, time=time, more=more, ended=endless)
            sources[each] = known
        return World(name, streams, asked, form, is_timed, sources, endless)

    @property
    def texts(self) -> dict[str, str]:
        """The queries as a trunk is asked, which knows the streams of other worlds, too."""
        return {name: _renamed(text, self.name) for name, text in self.queries.items()}

    # --- what is expected ---------------------------------------------------------------------------------

    def check(self, given: Given) -> int:
        """Judge what came of all queries; gives how often the square was compared."""
        squares = 0
        for name, text in self.queries.items():
            if chained_query(checked(text), {}) is not None:
                squares += self._check_chain(text, given.answers[name], ended=name in given.aborted)
                continue
            query = standing(checked(text))
            law = answer_evolving(query, name, self._fed, {}, {}, "accumulate")
            label = f"{name}: {text}"
            assert given.answers[name] == text_of(query, law), label
            assert given.aborted.get(name) == law.aborted, label
            assert Counter(given.dead.get(name, ())) == Counter(map(_elsewhere, law.dead)), label
            if law.aborted is None and (query.kind == "items" or not self._goes):
                found = across(given.answers[name], ITEM if self.form == "json" else "")
                assert sorted(found) == sorted(answered(text, self._canonical)), label
                squares += 1
        return squares

    def _check_chain(self, text: str, answer: str, *, ended: bool) -> bool:
        """Judge windows over a loop by the square; the reference, which answers at the end, lets no accents out."""
        if ended or self._goes:
            return False
        found = across(answer, ITEM if self.form == "json" else "")
        assert sorted(found) == sorted(answered(text, self._canonical)), text
        return True

    @cached_property
    def _goes(self) -> bool:
        """Whether something is dropped."""
        elements = (each for partitions in self.streams.values() for part in partitions for each in part)
        return any(isinstance(each, Accent) and isinstance(each.evolution, Drop) for each in elements)

    @cached_property
    def _fed(self) -> dict[str, Fed]:
        """The streams as the reference is given them, which reads them from disk like the trunk."""
        found = {name: fed(read_stream(replace(each, name=name), Limits())) for name, each in self.sources.items()}
        return {name: replace(each, stream=replace(each.stream, endless=self.endless)) for name, each in found.items()}

    @cached_property
    def _canonical(self) -> dict[str, Input]:
        return {
            name: canonical_input(partitions, is_timed=self.is_timed, endless=self.endless)
            for name, partitions in self.streams.items()
        }


def _elsewhere(letter: DeadLetter) -> DeadLetter:
    """A dead letter of a stream that may have another name."""
    return replace(letter, place=replace(letter.place, stream=""))


def _renamed(text: str, name: str) -> str:
    for each in ("a", "b"):
        text = text.replace(f'stream("{each}")', f'stream("{each}{name}")')
    return text


def _lay(folder: Path, elements: Sequence[StreamElement], form: Format, random: Random, gap: int) -> None:
    """Write a partition, in one file or several."""
    folder.mkdir(parents=True)
    said = [to_json(each) if form == "json" else write(each) for each in elements]
    cut = random.randrange(len(said) + 1) if form != "document" and random.random() < 0.5 else len(said)
    for number, part in enumerate((said[:cut], said[cut:])):
        lines = "".join(f"{line}\n{' ' * random.randint(1, gap)}\n" if gap else f"{line}\n" for line in part)
        if part:
            (folder / str(number)).write_text(f"<r>{lines}</r>" if form == "document" else lines)
