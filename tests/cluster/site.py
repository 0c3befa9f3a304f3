"""The site that is tried on a cluster: its streams in parts, its subscriptions, and the answers that are due.

The subscriptions are q1 to q8 of the sharing paper, two displays (one of groups that grow, one over a stream that is
edited), a function in Python that lies beside the site, and a thousand that differ in constants.
The reference evaluator says what is due of each, over whole streams, on the computer that the lab is on; of the
thousand, five lines of Python do, since the reference would take half an hour, and the reference of every hundredth.

Every stream ends with elements that close all windows, so a run that has read all has answered all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from anabranch.engine.finite import answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import prepare
from anabranch.runtime.registering import function_named, import_all
from anabranch.stream.photons import photons
from anabranch.stream.reading.source import Source
from anabranch.values.declared import declared_time
from papers import SHARING
from spark.law import CLOSING

PARTS = 4
MANY = 1_000
_STREAM = 'xmlns:s="urn:anabranch:stream"'
_BEAT = f'<s:punctuation {_STREAM} at="1000000"/>'
_ENERGY = re.compile(r"<en>([0-9.]+)</en>")
_STEP = 2
"""The width of the thousand ranges of energies, in eV."""

_DISPLAYS = {
    "best": """<best>{ (for $p in stream("photon1")/photons/photon group by $level := $p/phc
        let $n := count($p) order by $n descending, $level return <level of="{ $level }">{ $n }</level>
        )[position() <= 3] }</best>""",
    "risen": """<risen>{ for $q in stream("quotes")/root/q where $q/v > $q/v#1
        order by $q/v - $q/v#1 descending return <q>{ $q/n, $q/v }</q> }{ count(stream("quotes")//v) }</risen>""",
}
_FUNCTIONS = {
    "doubled": """<r>{ for $p in stream("photons")/photons/photon where $p/en > 1.9
        return <d>{ twice($p/phc) }</d> }</r>"""
}
FEW: Mapping[str, str] = {**SHARING, **_DISPLAYS, **_FUNCTIONS}
MODULES = {
    "doubling.py": "import helping\n\n\ndef twice(value):\n    return helping.times(value, 2)\n",
    "helping.py": "def times(value, factor):\n    return value * factor\n",
}


def _bounds(number: int) -> tuple[Decimal, Decimal]:
    low = Decimal(100 + _STEP * number) / 1000
    return low, low + Decimal(_STEP) / 1000


def _one_of_many(number: int) -> str:
    low, high = _bounds(number)
    return (
        f'<of n="{number}">{{ for $p in stream("photons")/photons/photon where $p/en >= {low} and $p/en < {high} '
        "return <hit>{ $p/en }</hit> }</of>"
    )


_SAMPLE = {f"many{number}": _one_of_many(number) for number in range(0, MANY, 100)}


def queries() -> dict[str, str]:
    """All subscriptions by name."""
    return {**FEW, **{f"many{number}": _one_of_many(number) for number in range(MANY)}}


def _quotes(count: int) -> Iterator[str]:
    """Five values that are replaced again and again, one of them deleted now and then."""
    for number in range(count):
        target, value, at = number % 5, number * number * 37 % 101, f'at="{number // 2}"'
        if number < 5:
            yield f'<q {_STREAM} s:{at}><n>{target}</n><s:mutable id="{target}"><v>{value}</v></s:mutable></q>'
        else:
            content = "" if number % 17 == 16 else f"<v>{value}</v>"
            yield f'<s:replace {_STREAM} target="{target}" {at}>{content}</s:replace>'


@dataclass(frozen=True, slots=True)
class Streams:
    """The lines of each stream, by name."""

    lines: Mapping[str, Sequence[str]]

    @staticmethod
    def of(size: int) -> Streams:
        """So many photons to choose from, and fewer in the streams that are joined."""
        closing = CLOSING[True].decode().splitlines()
        joined = {name: [*photons(size // 7, seed), *closing] for name, seed in (("photon1", 2), ("photon2", 3))}
        return Streams({"photons": [*photons(size, 1), *closing], **joined, "quotes": [*_quotes(size // 20), _BEAT]})

    def part(self, name: str, part: int) -> list[str]:
        """The lines of a stream that come in one of its parts."""
        lines = self.lines[name]
        bounds = [len(lines) * each // PARTS for each in range(PARTS + 1)]
        return list(lines[bounds[part] : bounds[part + 1]])

    @property
    def count(self) -> int:
        """How many items there are in all."""
        return sum(len([line for line in lines if not line.startswith("<s:")]) for lines in self.lines.values())


def inputs_of(streams: Streams, folder: Path) -> Inputs:
    """The whole streams in an empty folder, and the function beside them."""
    sources = []
    for name, lines in streams.lines.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
        root, edited = ("root", True) if name == "quotes" else ("photons", False)
        time = None if edited else declared_time("det_time", None)
        sources.append(Source(name, folder / name, "lines", root=root, time=time, updates=edited))
    for name, text in MODULES.items():
        (folder / name).write_text(text)
    functions = {"twice": function_named("twice", "doubling:twice", folder)}
    import_all(functions)
    return Inputs(sources, functions=functions, finite=True)


def due(streams: Streams, inputs: Inputs) -> dict[str, str]:
    """The answers that are due, by subscription."""
    found = _many(streams)
    for name, text in {**FEW, **_SAMPLE}.items():
        with answering([prepare(name, text, inputs, "reference")], inputs) as run:
            answer = "".join(run.answers[name])
        assert found.setdefault(name, answer) == answer, f"the judges of '{name}' do not agree"
    return found


def warm(inputs: Inputs) -> None:
    """Answer the same without Spark, so that most loops are compiled and kept on this computer."""
    queries = [prepare(name, text, inputs, "local") for name, text in {**FEW, **_SAMPLE}.items()]
    with answering(queries, inputs) as run:
        for each in run.answers.values():
            "".join(each)


def _many(streams: Streams) -> dict[str, str]:
    """What is due of the thousand, by plain arithmetic."""
    hits: dict[int, list[str]] = {number: [] for number in range(MANY)}
    for line in streams.lines["photons"]:
        for energy in _ENERGY.findall(line):
            for number in range(MANY):
                low, high = _bounds(number)
                if low <= Decimal(energy) < high:
                    hits[number].append(f"<hit><en>{energy}</en></hit>")
    return {
        f"many{number}": f'<of n="{number}">{"".join(found)}</of>' if found else f'<of n="{number}"/>'
        for number, found in hits.items()
    }


@dataclass(frozen=True, slots=True)
class Places:
    """Where the streams and the state of a site are."""

    checkpoint: str
    files: Mapping[str, str]
    """By stream: a folder of files."""
    topics: Mapping[str, str]
    """By stream: a topic."""
    brokers: str
    sinks: Mapping[str, str]
    """By subscription: a topic for its results."""
    paths: Mapping[str, str]
    """By subscription: a file, or a folder of parts at S3, for its answer."""


def site_files(places: Places, *, epoch_bytes: int) -> dict[str, str]:
    """The files of a site, by name: site.toml, queries and modules."""
    text = f'[engine]\ncheckpoint = "{places.checkpoint}"\nepoch_bytes = {epoch_bytes}\nshards = 3\nlog = "log.jsonl"\n'
    text += 'dead_letters = "dead.jsonl"\n'
    for name in ("photons", "photon1", "photon2", "quotes"):
        text += f'[streams.{name}]\nformat = "lines"\n'
        text += 'root = "root"\nupdates = true\n' if name == "quotes" else 'root = "photons"\ntime = "det_time"\n'
        if name in places.files:
            text += f'path = "{places.files[name]}"\n'
        else:
            text += f'source = "kafka"\nbrokers = "{places.brokers}"\ntopic = "{places.topics[name]}"\n'
    found = dict(MODULES)
    for name, query in queries().items():
        found[f"queries/{name}.xq"] = query
        text += f'[subscriptions.{name}]\nquery = "queries/{name}.xq"\n'
        if name in places.sinks:
            text += f'sink = "kafka"\nbrokers = "{places.brokers}"\ntopic = "{places.sinks[name]}"\n'
        if name in places.paths:
            text += f'sink = "files"\npath = "{places.paths[name]}"\n'
    found["site.toml"] = f'{text}[functions]\ntwice = "doubling:twice"\n'
    return found
