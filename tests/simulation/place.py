"""The simulated site: where it is, what it has answered, and what an undisturbed run of it answers.

The undisturbed run is judged by the law, and judges all others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from anabranch.engine.finite import answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import prepare
from anabranch.language import parse
from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.answers.segments import late_places
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.epoch.drivers import EpochSteps
from anabranch.spark.epoch.trunk import Trunk
from anabranch.spark.hosts.local_host import LocalHost
from anabranch.spark.plan.wanted import Workload
from anabranch.spark.sinks import Files, Sink
from anabranch.storage import Location
from anabranch.stream.reading.source import Source
from anabranch.stream.settings import Settings
from simulation.broker import Sent
from simulation.clients import Wire
from simulation.streams import Phase, Piece, Script, outlet, printed, sources
from spark.law import law_of


class Broken(AssertionError):
    """A promise was broken."""


@dataclass(frozen=True)
class Place:
    """Where a site is: its inputs, its checkpoint, its sinks and its broker."""

    inputs: Path
    top: Location
    wire: Wire
    """The way to the broker with its topics."""
    objects: Location | None = None
    """The folder of the inputs that are objects."""

    @staticmethod
    def at(inputs: Path, top: Location, wire: Wire, objects: Location | None = None) -> Place:
        """A new place, without anything in it."""
        (inputs / "s").mkdir(parents=True)
        return Place(inputs, top, wire, objects)

    @property
    def checkpoint(self) -> Location:
        return self.top / "state"

    def streams(self, phase: Phase, *, for_law: bool = False) -> dict[str, Source]:
        """The streams of a phase; for the law, what topics have is in files."""
        answers = Checkpoint.at(self.checkpoint).answer_stream("x")
        return sources(phase.streams, self.inputs, self.objects, answers, in_files=for_law)

    def workload(self, script: Script, phase: Phase, epoch_bytes: int) -> Workload:
        """What a run is asked for in a phase."""
        streams = self.streams(phase)
        texts = {name: printed(text, streams) for name, text in phase.subscriptions.items()}
        out = self.top / "out"
        sinks: dict[str, Sink] = {}
        for name in sorted(script.delivered & texts.keys()):
            topic = script.topics.get(name)
            sinks[name] = Files(out / f"{name}.xml") if topic is None else outlet(name, topic)
        return Workload(streams, texts, sinks, out / "dead.jsonl", out / "late.jsonl", epoch_bytes)

    def sinks(self) -> dict[str, bytes]:
        """What lies in the folder of the sinks: files, or the parts of each."""
        out = self.top / "out"
        names = [name for name in out.names(below=True) if not name.rpartition("/")[2].startswith(".")]
        return {name: (out / name).read() for name in names}


@dataclass(frozen=True, slots=True)
class Findings:
    """What a site has answered."""

    answers: Mapping[str, str]
    delivered: Mapping[str, bytes]
    dead: Counter[Any]
    late: Counter[str]
    topics: Mapping[Any, Sequence[tuple[bytes | None, bytes | None]]]
    """By topic, partition and subscription: the keys and values of the messages."""

    @staticmethod
    def of(place: Place, script: Script) -> Findings:
        """What the site at a place has answered so far."""
        checkpoint = Checkpoint.open(place.checkpoint)
        log = AnswerLog(checkpoint)
        names = sorted({name for phase in script.phases for name in phase.subscriptions})
        found = {name: asked for name in names if (asked := log.subscription(name)) is not None}
        manifests = list(log.manifests.since(0))
        late = Counter(line for each in manifests for line in late_places(checkpoint.segments, each.segments))
        delivered = place.sinks()
        return Findings(
            {name: log.answer(asked).text() for name, asked in found.items()},
            delivered,
            Counter(log.dead_letters()),
            late,
            place.wire.broker.written(),
        )


def delivered_whole(parts: Mapping[str, bytes]) -> dict[str, bytes]:
    """What sinks hold, one subscription's after the other, whether in files or in parts by epoch."""
    found: dict[str, bytes] = {}
    for name in sorted(parts, key=_by_owner):
        sink = name.partition("/")[0].rstrip("0123456789").rstrip(".")
        found[sink] = found.get(sink, b"") + parts[name]
    return found


def _by_owner(name: str) -> tuple[float, str]:
    """Sorts files that were moved aside, `a.xml.3`, and parts, `a.xml/3/12.xml`, by the number of the subscription."""
    number = name.split("/")[1] if name.count("/") == 2 else name.rpartition(".")[2]
    return (int(number) if number.isdecimal() else inf), name


# --- the undisturbed run ----------------------------------------------------------------------------------------------


def undisturbed(place: Place, script: Script) -> Findings:
    """What a run answers with which nothing ever interferes."""
    for phase in script.phases:
        for piece in phase.pieces:
            lay(place, piece)
        with Trunk(LocalHost(), place.checkpoint, Settings(shards=1)) as trunk:
            trunk.want(place.workload(script, phase, 1 << 20))
            read_all(trunk)
    return Findings.of(place, script)


def read_all(trunk: Trunk, most: int = 1 << 60) -> None:
    """Read what there is, also what the trunk itself adds to streams that are answers; or run so many epochs."""
    steps = EpochSteps(trunk.checkpoint, trunk.epoch)
    for _ in range(most):
        if steps.step():
            continue
        trunk.finish()
        trunk.raise_failure()
        if not steps.step():
            break


def lay(place: Place, piece: Piece) -> None:
    """Let a piece come, as somebody else writes it."""
    if piece.topic is not None:
        messages = [Sent(each) for each in piece.data.splitlines()]
        partition = int(piece.file.rpartition("-")[2])
        place.wire.broker.lay(piece.topic, partition, messages, committed=piece.is_kept)
        if not piece.is_kept:
            return  # the file, by which the law judges, has what was committed
    if place.objects is not None and piece.file.startswith("s/"):
        (place.objects / piece.file).put(piece.data)
        return
    with (place.inputs / piece.file).open("ab") as file:
        file.write(piece.data)


def lawful(place: Place, script: Script, findings: Findings) -> None:
    """Check answers against the law, for subscriptions that were there all the time and whose input lies in files."""
    streams = place.streams(script.phases[-1], for_law=True)
    for name, text in script.always.items():
        reads = [each for each in streams.values() if f'stream("{each.name}")' in text]
        if any(each.answer for each in reads) or name not in findings.answers:
            continue
        if any(each.name in "eu" for each in reads):
            inputs = Inputs(reads)
            with answering([prepare(name, text, inputs, "reference")], inputs) as run:
                due = "".join(run.answers[name])
        else:
            due = law_of(parse(printed(text, streams)), reads, endless=True, name=name).text
        if findings.answers[name] != due:
            raise Broken(f"the answer of '{name}' is not lawful:\n{findings.answers[name]}\ninstead of\n{due}")
