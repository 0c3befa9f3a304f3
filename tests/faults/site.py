"""A site to be broken: streams that grow, with bad and late items in them, and subscriptions with sinks.

Some subscriptions take items one by one; the others remember: windows of both kinds, with panes and without, groups of
windows, sessions by key, a step join, an interval join, a merge of partitions, and the levels that are seen most.
One stream evolves: units change there, for all items and for some, in nearly every epoch.
Two are edited: what is on display there is corrected all the time, and told by its sink as an update stream, and in one
of them units change as well.
Queries there look at single entries, at windows, also joined ones, at pairs of entries that are near to each other, and
at values of the past.
Those that see the same entries are divided into strands in one site, and share a history in another.
Windows close all the time by the items that come, and the last part brings punctuations that close the rest, so a run
to the end answers what the reference answers to inputs that have an end.

The bytes of the streams are settled beforehand and come in parts.
A part ends anywhere, within a line or a tag, so every part leaves something unfinished behind for the next one.
Laid out part by part or all at once, the same bytes lie there in the end, and so the same answers are due.
The one exception are the subscriptions `BY_ARRIVAL`: the items of their stream have no time but the moment at which a
run first saw them, and so the order of its partitions shows when parts came.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from shutil import copytree

from pyarrow import parquet

from anabranch.running import committed
from anabranch.storage import Location, resolved
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
    "means": """<r>{ for $w in stream("photons")/photons/photon[coord/cel/ra >= 100] |det_time diff 4 step 2|
        let $a := avg($w/en) return <avg_en n="{ count($w) }">{ $a }</avg_en> }</r>""",
    "spans": """<r>{ for $w in stream("photons")/photons/photon[phc > 10] |det_time diff 3|
        return <span>{ $w[en > 1]/det_time }</span> }</r>""",
    "counts": """<r>{ for $w in stream("survey")/photons/photon[phc > 5] |count 3 step 2|
        return <three>{ sum($w/phc), $w/det_time }</three> }</r>""",
    "levels": """<r>{ for $w in stream("photons")/photons/photon |det_time diff 4 step 2|
        for $p in $w group by $level := $p/phc
        return <level of="{ $level }" from="{ window-start($w) }">{ count($p), max($p/en) }</level> }</r>""",
    "bursts": """<r>{ for $w in stream("photons")/photons/photon |det_time gap 0.5 by phc|
        return <burst of="{ $w[1]/phc }" until="{ window-end($w) }">{ sum($w/en) }</burst> }</r>""",
    "best": """<best>{ (for $p in stream("west")/photons/photon group by $level := $p/phc
        let $n := count($p) order by $n descending, $level return <level of="{ $level }">{ $n }</level>
        )[position() <= 3] }</best>""",
    "steps": """<r>{ for $x in stream("east")/photons/photon |det_time diff 2 step 1|
        for $y in stream("west")/photons/photon |det_time diff 3|
        where $x/en >= $y/en + 0.2 return <pair>{ $x/det_time, $y/det_time }</pair> }</r>""",
    "near": """<r>{ for $x in stream("east")/photons/photon for $y in stream("west")/photons/photon
        where $x/det_time >= $y/det_time - 0.5 and $x/det_time <= $y/det_time + 0.5
        return <near>{ $x/det_time, $y/det_time }</near> }</r>""",
    "merged": """<r>{ for $p in stream("east")/photons/photon where $p/phc > 3 return $p/det_time }</r>""",
    "warm": """<r>{ for $p in stream("sensors")/root/i where $p/t > 20 return <o>{ $p/n, $p/s, $p/t }</o> }</r>""",
    "heat": """<r>{ for $w in stream("sensors")/root/i |n diff 4 step 2|
        return <w>{ avg($w/t), $w[s = 2]/t }</w> }</r>""",
    "lately": """<r>{ for $p in stream("west")/photons/photon
        return <n>{ count(stream("west")/photons/photon?[0.5]) }</n> }</r>""",
    "risen": """<risen>{ for $q in stream("quotes")/root/q where $q/v > $q/v#1
        order by $q/v - $q/v#1 descending return <q>{ $q/n, $q/v }</q> }{ count(stream("quotes")//v) }</risen>""",
    "lasts": """for $q in stream("quotes")/root/q return <last>{ $q/n, $q/v#[2], count($q/v?[4]) }</last>""",
    "high": """for $q in stream("quotes")/root/q where $q/v#1 > 40 return <high>{ $q/n, $q/v#1, $q/v?2 }</high>""",
    "due": """<due>{ for $q in stream("quotes")/root/q, $l in stream("limits")/root/l where $l/n = $q/n and $q/v > $l/v
        order by $l/v return <q>{ $q/n, $q/v, $l/v#[1] }</q> }</due>""",
    "nearby": """<nearby>{ for $q in stream("quotes")/root/q, $l in stream("limits")/root/l
        where abs($q/v - $l/v) <= 12 return <two>{ $q/n, $l/n, $l/v }</two> }</nearby>""",
    "met": """<met>{ for $q in stream("quotes")/root/q[v] |v diff 40 step 20|,
        $l in stream("limits")/root/l[v] |v diff 30| where $q/n = $l/n
        return <two>{ $q/n, $q/v, $l/v }</two> }</met>""",
    "bands": """<bands>{ for $w in stream("quotes")/root/q[v] |v diff 40 step 20|
        return <band from="{ window-start($w) }">{ count($w), sum($w/v), max($w/n) }</band> }</bands>""",
    "close": """<close>{ for $w in stream("quotes")/root/q[v] |v gap 15| return <near>{ $w/n }</near> }</close>""",
    "was": """<was>{ (sum(stream("quotes")//v))#[2], (max(stream("quotes")//v))?[4] }{
        for $q in stream("quotes")/root/q return <v>{ ($q/v * 2)#1 }</v> }</was>""",
    "totals": """<totals>{ (sum(stream("west")/photons/photon/phc))#[2] }</totals>""",
    "above": """<r>{ for $p in stream("west")/photons/photon
        where $p/en > (avg(stream("west")/photons/photon/en))#1 return $p/en }</r>""",
    "seen": """<r>{ for $p in stream("west")/photons/photon
        return <seen>{ $p/det_time, stream("quotes")/root/q[n = 1]/v }</seen> }</r>""",
    "twins": """<r>{ for $p in stream("twins")/root/i return $p/n }</r>""",
    "couples": """<r>{ for $w in stream("twins")/root/i |count 2| return <two>{ $w/n }</two> }</r>""",
}
BY_ARRIVAL = ("twins", "couples")
DISPLAYS = ("risen", "lasts", "high", "due", "nearby", "met", "best", "bands", "close", "was", "totals")
_SHARE = 2_700
"""What an epoch reads of each stream at most, in a run that is killed: a dozen photons, or three that are filled up."""
EPOCH_BYTES = 9 * _SHARE
"""What an epoch reads then: of photons, survey, west, sensors, quotes, limits, twins and two partitions of east."""
_FIRST, _NEXT = 5, 3
"""Epochs that a part is good for; so a run always finds five of them, and can be told to die in any of three."""
_PARTS_PER_FILE = 3
_BROKEN = (
    "<photon><en>1.5</photon>",
    "<photon>&bomb;</photon>",
    "<photon><phc>30</phc><en>no number</en></photon>",
)
_FILLED = 900
"""The bytes of an item that is filled up: few of them fill an epoch, so that joins have few pairs."""
_CHANGES = {5: ("", (". * 2 + 30", "(. - 30) div 2")), 3: (' where="s = 2"', (". * 10", ". div 10"))}
_EDITED_CHANGES = {6: ("", (". * 2 + 30", "(. - 30) div 2")), 13: (' where="n = 2"', (". * 4", ". div 4"))}
"""Every so many elements the unit changes, to and fro, of all items or of some."""
_FACTORS = {"q": 37, "l": 53}
"""What makes the values of quotes and of limits differ."""
_STREAM = 'xmlns:s="urn:anabranch:stream"'
_ALTER = '<s:accent xmlns:s="urn:anabranch:stream"{}><s:alter path="{}" by="{}"/></s:accent>\n'
_LAST = '<s:punctuation xmlns:s="urn:anabranch:stream" where="true()"{}/>\n'
_BEAT = '<s:punctuation xmlns:s="urn:anabranch:stream" at="1000000"/>\n'


@dataclass(frozen=True, slots=True)
class Feed:
    """What comes into the streams' files, part by part: pairs of a file's name and the bytes it grows by."""

    parts: tuple[tuple[tuple[str, bytes], ...], ...]

    @staticmethod
    def of(parts: int, seed: int) -> Feed:
        """So many parts of lines in several files, one of them packed, of a document that never closes, and of lines
        in files that belong together.
        """
        *ends, size = ((_FIRST + _NEXT * part) * _SHARE for part in range(parts))
        closing = _LAST.format("").encode()
        document = b"<?xml version='1.0'?>\n<photons>\n" + b"".join(_items(size, seed)) + closing
        lines = b"".join(_items(size, seed + 1)) + closing
        packed = gzip.compress(b"".join(_items(4_000, seed + 2)), mtime=0)
        # Another file begins behind a newline; otherwise a part ends wherever it ends.
        line_ends = [
            each if part % _PARTS_PER_FILE else lines.index(b"\n", each) + 1 for part, each in enumerate(ends, 1)
        ]
        grown: list[list[tuple[str, bytes]]] = [[("photons/000.gz", packed)], *([] for _ in ends)]
        for part, data in enumerate(_cut(lines, line_ends)):
            grown[part].append((f"photons/{part // _PARTS_PER_FILE:03}.xml", data))
        whole = {"survey.xml": document, "sensors": _sensors(size)}
        whole |= {"quotes": _quotes(size, "q"), "limits": _quotes(size, "l")}
        whole |= {name: _filled(size, seed + 3 + number) for number, name in enumerate(("east-0", "east-1", "west"))}
        for name, data in whole.items():
            for part, piece in enumerate(_cut(data, ends)):
                grown[part].append((name, piece))
        for number in range(2):
            for part, piece in enumerate(_cut(_numbered(number, size // 2), [end // 2 for end in ends])):
                grown[part].append((f"twin-{number}", piece))
        return Feed(tuple(map(tuple, grown)))

    def lay(self, folder: Path, parts: Iterable[int]) -> None:
        """Let some parts come in."""
        for part in parts:
            for name, data in self.parts[part]:
                with (folder / "in" / name).open("ab") as file:
                    file.write(data)


def _cut(data: bytes, ends: Sequence[int]) -> list[bytes]:
    return [data[start:end] for start, end in pairwise([0, *ends, len(data)])]


def _items(size: int, seed: int) -> Iterator[bytes]:
    """Photons of so many bytes, each on a line of its own, and a broken one now and then."""
    for number, item in enumerate(photons(size, seed)):
        line = (_BROKEN[number // 97 % len(_BROKEN)] if number % 97 == 50 else item.strip()).encode() + b"\n"
        size -= len(line)
        yield line
        if size <= 0:
            return


def _filled(size: int, seed: int) -> bytes:
    """Photons of so many bytes, filled up, one of them broken, and two punctuations behind them.

    The first says that nothing follows; the second lets the merge take the first of the other inputs (LAWS 1.2).
    """
    lines = [_fill(item, "photon") for item in photons(size // _FILLED + 1, seed)]
    lines[7:7] = [_BROKEN[0] + "\n"]
    return "".join((*lines, _LAST.format(' at="1000000"'), _LAST.format(' at="1000001"'))).encode()


def _numbered(partition: int, size: int) -> bytes:
    """Items of so many bytes that say where they come from, and have no time."""
    return "".join(_fill(f"<i><n>{partition}.{number}</n></i>", "i") for number in range(size // _FILLED + 1)).encode()


def _sensors(size: int) -> bytes:
    """Measurements of so many bytes, whose unit changes to and fro: every fifth time for all, every third for some."""
    lines: list[str] = []
    for number in range(size // _FILLED + 1):
        lines += _accents(number, "t", _CHANGES)
        lines.append(_fill(f"<i><n>{number}</n><s>{number % 3}</s><t>{number * 7 % 50}.0</t></i>", "i"))
    return "".join((*lines, _LAST.format(""))).encode()


def _accents(number: int, path: str, changes: Mapping[int, tuple[str, tuple[str, str]]]) -> Iterator[str]:
    """The unit changes in front of an element."""
    for every, (where, maps) in changes.items():
        if number % every == every - 1:
            yield _ALTER.format(where, path, maps[number // every % 2])


def _quotes(size: int, item: str) -> bytes:
    """Values that are replaced again and again, one of them deleted now and then, and updates of what is not there.

    The heartbeat behind them lets the merge with other streams take them all (LAWS 1.2).
    """
    lines: list[str] = []
    for number in range(size // _FILLED + 1):
        lines += _accents(number, "v", _EDITED_CHANGES) if item == "q" else ()
        target, value, at = number % 5, number * number * _FACTORS[item] % 101, f'at="{number // 2}"'
        if number < 5:
            region = f'<s:mutable id="{target}"><v>{value}</v></s:mutable>'
            lines.append(_fill(f"<{item} {_STREAM} s:{at}><n>{target}</n>{region}</{item}>", item))
        else:
            name = "unknown" if number % 23 == 22 else str(target)
            content = "" if number % 17 == 16 else f"<v>{value}</v>"
            lines.append(_fill(f'<s:replace {_STREAM} target="{name}" {at}>{content}</s:replace>', "s:replace"))
    return "".join((*lines, _BEAT)).encode()


def _fill(item: str, name: str) -> str:
    end = f"</{name}>"
    return f"{item.removesuffix(end)}<filling>{'-' * (_FILLED - len(item))}</filling>{end}\n"


@dataclass(frozen=True, slots=True)
class Site:
    """A folder with a SITE.toml and all that it names."""

    folder: Path
    strands: int = field(default=2, kw_only=True)
    """Into how many parts queries over updates are divided; those in one part share their histories."""

    @staticmethod
    def make(folder: Path, strands: int = 2) -> Site:
        """A new site, with streams that are still empty."""
        (folder / "in" / "photons").mkdir(parents=True)
        lines = ("east-0", "east-1", "west", "sensors", "quotes", "limits", "twin-0", "twin-1")
        for name in ("survey.xml", *lines):
            (folder / "in" / name).touch()
        (folder / "photons.dtd").write_text(photons_dtd())
        for name, text in QUERIES.items():
            (folder / f"{name}.xq").write_text(text)
        site = Site(folder, strands=strands)
        site.configure(EPOCH_BYTES, shards=2)
        return site

    def configure(self, epoch_bytes: int, shards: int) -> None:
        """Let the next run have epochs of so many bytes, and so many shards."""
        timed = 'source = "files"\nformat = "lines"\nroot = "photons"\ntime = "det_time"\n'
        # The elements say when they come; a stream that has a time is waited for by the others (LAWS 1.2).
        edited = 'source = "files"\nformat = "lines"\ntime = "when"\nupdates = true\n'
        tables = [
            f'[engine]\ncheckpoint = "{self.place("state")}"\nlate = "{self.place("late")}"',
            f"epoch_bytes = {epoch_bytes}\nshards = {shards}",
            f"strands = {self.strands}\n",
            '[streams.photons]\nsource = "files"\npath = "in/photons"\ndtd = "photons.dtd"\n',
            '[streams.survey]\nsource = "files"\npath = "in/survey.xml"\n',
            f'[streams.east]\npath = ["in/east-0", "in/east-1"]\n{timed}',
            f'[streams.west]\npath = "in/west"\n{timed}',
            '[streams.sensors]\nsource = "files"\nformat = "lines"\npath = "in/sensors"\n',
            f'[streams.quotes]\npath = "in/quotes"\n{edited}domains = {{ n = [0, 1, 2, 3, 4] }}\n',
            f'[streams.limits]\npath = "in/limits"\n{edited}',
            '[streams.twins]\nsource = "files"\nformat = "lines"\npath = ["in/twin-0", "in/twin-1"]\n',
            *(
                f'[subscriptions.{name}]\nquery = "{name}.xq"\nsink = "files"\npath = "{self.place(f"out/{name}")}"\n'
                for name in QUERIES
            ),
            f'[subscriptions.table]\nquery = "rxj.xq"\nsink = "parquet"\npath = "{self.place("table")}"\n',
            f'[subscriptions.changes]\nquery = "bands.xq"\nsink = "parquet"\npath = "{self.place("changes")}"\n',
        ]
        self.file.write_text("\n".join(tables))

    def place(self, name: str) -> str:
        """Where the site has something that a run writes, as SITE.toml says it."""
        return name

    def at(self, name: str) -> Location:
        """The same as a location."""
        return resolved(self.folder, self.place(name))

    def moved(self) -> Site:
        """The site as the next run finds it: after a kill it may have moved."""
        return self

    @property
    def file(self) -> Path:
        return self.folder / "SITE.toml"

    @property
    def checkpoint(self) -> Location:
        return self.at("state")

    @property
    def dead_letters(self) -> Location:
        return self.at("dead")

    def epochs(self) -> list[int]:
        """The epochs that are committed."""
        return [int(name.removesuffix(".json")) for name in (self.checkpoint / "manifest").names() if name[0] != "."]

    def answers(self) -> dict[str, str]:
        """The committed answers of all subscriptions."""
        return {name: "".join(committed(self.file, name)) for name in QUERIES}

    def sinks(self) -> dict[str, bytes]:
        """What the sinks hold."""
        return {name: data for name in QUERIES if (data := grown(self.at(f"out/{name}"))) is not None}

    def table(self, name: str = "table") -> list[dict[str, str]]:
        """The rows of a table, epoch by epoch."""
        folder = self.at(name)
        files = [folder / name for name in folder.names(below=True)]
        return [row for file in files for row in parquet.read_table(BytesIO(file.read())).to_pylist()]

    def letters(self) -> list[str]:
        """The dead letters; those of two streams in one file have no order among them."""
        return sorted((grown(self.dead_letters) or b"").decode().splitlines())

    def late(self) -> list[str]:
        """The items that came too late for time windows."""
        return sorted((grown(self.at("late")) or b"").decode().splitlines())


def grown(at: Location) -> bytes | None:
    """What a sink holds: a file, or parts in an object store, one after the other; None where there is nothing."""
    if at.path is not None:
        return at.read() if at.exists() else None
    parts = [(at / name).read() for name in at.names(below=True)]
    return b"".join(parts) if parts else None


@dataclass(frozen=True, slots=True)
class StoredSite(Site):
    """A site whose checkpoint and sinks are in an object store, and which is elsewhere for each run."""

    store: Path
    """The folder of the store on this disk, in which the site has one for each place it was at."""
    address: str
    """The same as an address."""
    number: int = 0

    @staticmethod
    def stored(folder: Path, store: Path, address: str) -> StoredSite:
        """A new site, with streams that are still empty."""
        strands = Site.make(folder, strands=1).strands
        return StoredSite(folder, store, address, strands=strands)

    def place(self, name: str) -> str:
        return f"{self.address}/{self.number}/{name}"

    def moved(self) -> StoredSite:
        """A copy of all that is stored, at another place."""
        following = replace(self, number=self.number + 1)
        copytree(self.store / str(self.number), self.store / str(following.number))
        return following


def twins_in_order(answers: Mapping[str, str], *, whole: bool) -> bool:
    """Whether the subscriptions by arrival have what the law lets them have: some merge of the two partitions.

    Each partition is there from its first item on and keeps its order, and both subscriptions see the same merge; the
    one that remembers may be behind until all that came at one moment is read.
    """
    found = re.findall(r"<n>([^<]*)</n>", answers["twins"])
    for number in range(2):
        own = [each for each in found if each.startswith(f"{number}.")]
        if own != [f"{number}.{each}" for each in range(len(own))]:
            return False
    pairs = zip(found[::2], found[1::2], strict=False)
    due = "".join(f"<two><n>{first}</n><n>{second}</n></two>" for first, second in pairs)
    couples = "" if answers["couples"] == "<r/>" else answers["couples"].removeprefix("<r>").removesuffix("</r>")
    return couples == due if whole else due.startswith(couples)
