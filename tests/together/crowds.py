"""Crowds: many queries over two streams, each with its time; and what a trunk gives to those that it serves together.

A crowd is a function of its number.
Its queries come in any order and before any phase of the streams, some leave on the way, and some of those come back or
give their name to another query.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import prepare, refuse_endless
from anabranch.errors import AnabranchError
from anabranch.language import ast, print_query
from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.answers.segments import late_places
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifests
from anabranch.spark.plan.files import Plans
from anabranch.stream.elements import DeadLetter
from anabranch.stream.reading.source import Source
from spark.bare import BareTrunk
from together.queries import crowd_of_queries
from together.streams import Laid, Look, lay, look_of

SHARDS = (1, 2, 7)


@dataclass(frozen=True, slots=True)
class Life:
    """A query and when it is wanted: from before one phase until behind another."""

    name: str
    text: str
    query: ast.Query = field(compare=False, repr=False)
    """The same, checked."""
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Given:
    """What a query was given: its answer, None if it never ran, and its dead letters."""

    answer: str | None
    dead: Counter[DeadLetter]


@dataclass(frozen=True, slots=True)
class Run:
    """What a trunk gave to all."""

    given: Mapping[Life, Given]
    bad: Counter[DeadLetter]
    """The dead letters that concern nobody in particular."""
    late: set[str]
    """The places that were noted as late."""


@dataclass(frozen=True, slots=True)
class Crowd:
    look: Look
    streams: tuple[Laid, ...]
    lives: tuple[Life, ...]

    @staticmethod
    def of(number: int, *, finite: bool, size: int) -> Crowd:
        """A crowd of up to so many queries."""
        random = Random(f"crowd {number} {finite}")
        look = look_of(random, finite=finite)
        streams = tuple(lay(name, look, random) for name in "su")
        inputs = Inputs([each.source(Path()) for each in streams])
        texts = crowd_of_queries(random, random.randint(2, size), finite=finite)
        queries = [(text, query) for text in texts if (query := _checked(text, inputs, finite=finite))]
        return Crowd(look, streams, tuple(_lives(random, queries, look.phases)))

    def run(self, folder: Path, lives: Collection[Life], random: Random | None = None, *, sharing: bool = True) -> Run:
        """What a trunk without Spark gives, with epochs and shards as chance has it, or one to a phase."""
        sources, state = self.sources(folder), folder / "state"
        trunk = BareTrunk(state, sources, random or Random(0), finite=self.look.finite, sharing=sharing)

        def serve(wanted: Mapping[str, str]) -> None:
            size = sum(source.size for source in sources)
            if random:
                trunk.run(wanted, (size // 9 + 1, size // 3 + 1, size + 1), SHARDS)
            else:
                trunk.run(wanted, [1 << 20], [1])

        return self.run_on(serve, folder, lives)

    def run_on(self, serve: Callable[[Mapping[str, str]], None], folder: Path, lives: Collection[Life]) -> Run:
        """What a trunk gives that serves these; it is called for each phase, and has its checkpoint in `folder`."""
        folder.mkdir(parents=True, exist_ok=True)
        log = Log(Checkpoint.at(folder / "state"))
        spans: dict[Life, range] = {}
        for phase in range(max(life.last for life in lives) + 1):
            for stream in self.streams:
                stream.write(folder, phase)
            wanted = [life for life in lives if life.first <= phase <= life.last]
            begun = log.epochs
            serve({life.name: life.text for life in wanted})
            for life in wanted:
                spans[life] = range(spans[life].start if life in spans else begun, log.epochs)
        given = {life: Given(log.answer(life.name, span), log.letters(life.name, span)) for life, span in spans.items()}
        return Run(given, log.letters(None, range(log.epochs)), log.late())

    def sources(self, folder: Path) -> list[Source]:
        return [each.source(folder) for each in self.streams]


@dataclass(frozen=True, slots=True)
class Log:
    """What a trunk has written down."""

    checkpoint: Checkpoint

    @property
    def epochs(self) -> int:
        return len(Manifests(self.checkpoint.manifests).epochs())

    def answer(self, name: str, epochs: range) -> str | None:
        """The answer to the subscription of that name that began within some epochs, None if there is none."""
        for epoch in epochs:
            file = Plans(self.checkpoint).of(epoch)
            assert file is not None
            for each in file.load().subscriptions:
                if each.name == name and each.first in epochs:
                    return AnswerLog(self.checkpoint).answer(each).text()
        return None

    def letters(self, name: str | None, epochs: range) -> Counter[DeadLetter]:
        """What a subscription has set aside in some epochs, whatever its name; None for the streams themselves."""
        log = AnswerLog(self.checkpoint)
        found = (each for epoch in epochs for each in log.buried(log.manifests.load(epoch)))
        return Counter(replace(each, subscription=None) for each in found if each.subscription == name)

    def late(self) -> set[str]:
        """All places that were noted as late."""
        manifests = Manifests(self.checkpoint.manifests).since(0)
        return {line for each in manifests for line in late_places(self.checkpoint.segments, each.segments)}


def _checked(text: str, inputs: Inputs, *, finite: bool) -> ast.Query | None:
    """The query if it can be answered: not if it reads a document, or waits for an end that never comes."""
    try:
        prepared = prepare("q", text, inputs, "spark")
        if not finite:
            refuse_endless(prepared, inputs)
    except AnabranchError:
        return None
    return prepared.checked.query


def _lives(random: Random, queries: Sequence[tuple[str, ast.Query]], phases: int) -> list[Life]:
    """Half of them are there from the beginning to the end."""
    found: list[Life] = []
    for number, (text, query) in enumerate(queries):
        first, last = sorted((random.randrange(phases), random.randrange(phases)))
        if random.random() < 0.5:
            first, last = 0, phases - 1
        elif random.random() < 0.5:
            last = phases - 1
        found.append(Life(f"q{number}", text, query, first, last))
        if last < phases - 1 and random.random() < 0.5:
            # after it, the same query or another comes under its name
            again = random.randint(last + 1, phases - 1)
            fresh = random.choice(((text, query), *queries))
            if again > last + 1 or print_query(fresh[1]) != print_query(query):
                found.append(Life(f"q{number}", *fresh, again, phases - 1))
    random.shuffle(found)
    return found
