"""A site to be broken: two streams that grow, with bad items in them, and stateless subscriptions with sinks.

The bytes of the streams are settled beforehand and come in parts.
A part ends anywhere, within a line or a tag, so every part leaves something unfinished behind for the next one.
Laid out part by part or all at once, the same bytes lie there in the end, and so the same answers are due.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from pyarrow import parquet

from anabranch.running import committed
from anabranch.stream.photons import photons, photons_dtd
from papers import Q3, Q4

QUERIES = {
    "rxj": Q3,
    "vela": Q4,
    "soft": """<r>{ for $p in stream("photons")/photons/photon
        return if ($p/en < 0.5) then <soft n="{$p/phc}">{ $p/coord/cel }</soft> else () }</r>""",
    "sums": """<r>{ for $p in stream("photons")/photons/photon where $p/phc > 20 return <e>{ $p/en + 1 }</e> }</r>""",
    "hard": """<r>{ for $p in stream("survey")/photons/photon where $p/en >= 1.3 return $p }</r>""",
    "bare": """stream("survey")/photons/photon[phc < 40]/en""",
    "none": """<none>{ for $p in stream("survey")/photons/photon where $p/en > 1000 return $p }</none>""",
}
EPOCH_BYTES = 16_000
"""The most that an epoch reads in a run that is killed."""
_FIRST, _NEXT = 5, 3
"""Epochs that a part is good for; so a run always finds five of them, and can be told to die in any of three."""
_PARTS_PER_FILE = 3
_BROKEN = (
    "<photon><en>1.5</photon>",
    "<photon>&bomb;</photon>",
    "<photon><phc>30</phc><en>no number</en></photon>",
)


@dataclass(frozen=True, slots=True)
class Feed:
    """What comes into the streams' files, part by part: pairs of a file's name and the bytes it grows by."""

    parts: tuple[tuple[tuple[str, bytes], ...], ...]

    @staticmethod
    def of(parts: int, seed: int) -> Feed:
        """So many parts of lines in several files, one of them packed, and of a document that never closes."""
        *ends, size = ((_FIRST + _NEXT * part) * EPOCH_BYTES // 2 for part in range(parts))
        document = b"<?xml version='1.0'?>\n<photons>\n" + b"".join(_items(size, seed))
        lines = b"".join(_items(size, seed + 1))
        packed = gzip.compress(b"".join(_items(4_000, seed + 2)), mtime=0)
        # Another file begins behind a newline; otherwise a part ends wherever it ends.
        line_ends = (
            each if part % _PARTS_PER_FILE else lines.index(b"\n", each) + 1 for part, each in enumerate(ends, 1)
        )
        grown = [[("photons/000.gz", packed)], *([] for _ in ends)]
        for part, (start, end) in enumerate(pairwise([0, *ends, len(document)])):
            grown[part].append(("survey.xml", document[start:end]))
        for part, (start, end) in enumerate(pairwise([0, *line_ends, len(lines)])):
            grown[part].append((f"photons/{part // _PARTS_PER_FILE:03}.xml", lines[start:end]))
        return Feed(tuple(map(tuple, grown)))

    def lay(self, folder: Path, parts: Iterable[int]) -> None:
        """Let some parts come in."""
        for part in parts:
            for name, data in self.parts[part]:
                with (folder / "in" / name).open("ab") as file:
                    file.write(data)


def _items(size: int, seed: int) -> Iterator[bytes]:
    """Photons of so many bytes, each on a line of its own, and a broken one now and then."""
    for number, item in enumerate(photons(size, seed)):
        line = (_BROKEN[number // 97 % len(_BROKEN)] if number % 97 == 50 else item.strip()).encode() + b"\n"
        size -= len(line)
        yield line
        if size <= 0:
            return


@dataclass(frozen=True, slots=True)
class Site:
    """A folder with a SITE.toml and all that it names."""

    folder: Path

    @staticmethod
    def make(folder: Path) -> Site:
        """A new site, with streams that are still empty."""
        (folder / "in" / "photons").mkdir(parents=True)
        (folder / "in" / "survey.xml").touch()
        (folder / "photons.dtd").write_text(photons_dtd())
        for name, text in QUERIES.items():
            (folder / f"{name}.xq").write_text(text)
        site = Site(folder)
        site.set_epochs(EPOCH_BYTES)
        return site

    def set_epochs(self, size: int) -> None:
        """Let the next run have epochs of so many bytes."""
        tables = [
            f'[engine]\ncheckpoint = "state"\nepoch_bytes = {size}\n',
            '[streams.photons]\nsource = "files"\npath = "in/photons"\ndtd = "photons.dtd"\n',
            '[streams.survey]\nsource = "files"\npath = "in/survey.xml"\n',
            *(
                f'[subscriptions.{name}]\nquery = "{name}.xq"\nsink = "files"\npath = "out/{name}"\n'
                for name in QUERIES
            ),
            '[subscriptions.table]\nquery = "rxj.xq"\nsink = "parquet"\npath = "table"\n',
        ]
        self.file.write_text("\n".join(tables))

    @property
    def file(self) -> Path:
        return self.folder / "SITE.toml"

    @property
    def checkpoint(self) -> Path:
        return self.folder / "state"

    @property
    def dead_letters(self) -> Path:
        return self.folder / "dead"

    def epochs(self) -> list[int]:
        """The epochs that are committed."""
        return sorted(int(each.stem) for each in (self.checkpoint / "manifest").glob("[0-9]*.json"))

    def answers(self) -> dict[str, str]:
        """The committed answers of all subscriptions."""
        return {name: "".join(committed(self.file, name)) for name in QUERIES}

    def sinks(self) -> dict[str, bytes]:
        """What the sinks hold."""
        return {path.name: path.read_bytes() for path in (self.folder / "out").glob("*")}

    def table(self) -> list[dict[str, str]]:
        """The rows of the table, epoch by epoch."""
        files = sorted((self.folder / "table").iterdir())
        return [row for file in files for row in parquet.read_table(file).to_pylist()]

    def letters(self) -> list[str]:
        """The dead letters; those of two streams in one file have no order among them."""
        return sorted(self.dead_letters.read_text().splitlines())
