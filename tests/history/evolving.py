"""Random edited streams that evolve, each written twice: with accents, and as it would be without them (LAWS 4.1, 5).

A world knows what it writes: the number that a value means, the sensor of the item that it goes into, and the unit that
this sensor has at the path by then.
The accented stream gets the number in that unit, the canonical one the number itself; where the one has an accent, the
other has a heartbeat.
All numbers are short binary fractions, so both ways lead to the same text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from random import Random

from anabranch.predicate.writing import number_text
from anabranch.stream.affine import IDENTITY, Affine, parse
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source, domains_of
from anabranch.stream.tree import STREAM_NAMESPACE

S = f'xmlns:s="{STREAM_NAMESPACE}"'
SENSORS = ("1", "2", "3")
ALTERS = (". * 2", ". div 2", ". + 3", ". - 4", ". * 4 + 1", ". div 4 - 1")
PATHS = ("t", "p/q", "@v", "x")
"""Paths whose units change; no condition reads `x`."""
COMING = ("x", "x", "x", "x", "x", "t", "p/q", "p", "@v")
"""Paths that are dropped and added, each so often: where a condition reads one, its drop ends the query."""


@dataclass(slots=True)
class _Region:
    """An open place in the document: where it stands, and whose item it is in."""

    kind: str
    """`between` items, among the elements of an item (`inside`), or a path, whose text it holds."""
    sensor: str | None = None


@dataclass(slots=True)
class World:
    """One partition, written element by element."""

    random: Random
    prefix: str = ""
    drops: bool = False
    """Whether paths are dropped and added, too."""
    accented: list[str] = field(default_factory=list)
    canonical: list[str] = field(default_factory=list)
    now: int = 1
    ids: int = 0
    regions: dict[str, _Region] = field(default_factory=dict)
    units: dict[tuple[str, str], Affine] = field(default_factory=dict)
    alters: dict[tuple[str, str], list[Affine]] = field(default_factory=dict)
    """By sensor and path: all unit changes that were announced."""
    carried: dict[tuple[str, str], bool] = field(default_factory=dict)
    """By sensor and path: whether the path was added last, or dropped."""
    changes: int = 0
    only_all: bool = False
    """Whether accents are about all items."""
    quiet: bool = False
    """Whether there are none for now."""

    def write(self, length: int) -> None:
        """Write so many elements."""
        for number in range(length):
            chance = self.random.random()
            if chance < 0.25 and number > 1 and not self.quiet:
                self._accent()
            elif chance < 0.75 and self.regions:
                self._put(*self._update())
            else:
                self._put(*(self._item(None) if chance < 0.9 else self._region("between", None)))

    def items(self, length: int) -> None:
        """Write so many elements of a stream of items."""
        for number in range(length):
            if self.random.random() < 0.25 and number > 1:
                self._accent()
            else:
                self.now += self.random.choice((0, 1, 1))
                sensor = self.random.choice(SENSORS)
                found = [self.value(path, sensor) for path in ("@v", "t", "p/q")]
                form = f'<e v="{{}}"><w>{self.now}</w><s>{sensor}</s><t>{{}}</t><p><q>{{}}</q></p></e>'
                self._put(form.format(*(each for each, _ in found)), form.format(*(each for _, each in found)))

    def _put(self, accented: str, canonical: str) -> None:
        self.accented.append(accented)
        self.canonical.append(canonical)

    def _accent(self) -> None:
        self.now += self.random.choice((0, 0, 1))
        where = None if self.only_all else self.random.choice((None, None, *SENSORS))
        concerned = SENSORS if where is None else (where,)
        comes = self.drops and self.random.random() < 0.4
        change = self._coming(concerned) if comes else self._alter(concerned)
        if change is None:
            return  # it would not be valid
        told = "" if where is None else f' where="s = {where}"'
        self.changes += 1
        self._put(f'<s:accent {S}{told} at="{self.now}">{change}</s:accent>', f'<s:punctuation {S} at="{self.now}"/>')

    def _alter(self, concerned: tuple[str, ...]) -> str | None:
        path, by = self.random.choice(PATHS), self.random.choice(ALTERS)
        if any(self.lacks(path, each) for each in concerned):
            return None
        for each in concerned:
            self.units[each, path] = self.unit(each, path).then(parse(by))
            self.alters.setdefault((each, path), []).append(parse(by))
        return f'<s:alter path="{path}" by="{by}"/>'

    def _coming(self, concerned: tuple[str, ...]) -> str | None:
        """A path that goes, or comes: what is added has a unit of its own, and so have the paths below it."""
        gone = [path for path in sorted(set(COMING)) if all(self.lacks(path, each) for each in concerned)]
        path = self.random.choice(gone if gone and self.random.random() < 0.7 else COMING)
        above = path.partition("/")[0]
        if above != path and any(self.lacks(above, each) for each in concerned):
            return None
        is_add = all(self.lacks(path, each) for each in concerned)
        for each in concerned:
            for below in (*PATHS, "p"):
                if below == path or below.startswith(f"{path}/"):
                    self.carried.pop((each, below), None)
                    self.units.pop((each, below), None)
            self.carried[each, path] = is_add
        return f'<s:add path="{path}" type="decimal"/>' if is_add else f'<s:drop path="{path}"/>'

    def lacks(self, path: str, sensor: str) -> bool:
        """Whether a path, or the one above it, was dropped for a sensor."""
        return not all(self.carried.get((sensor, each), True) for each in {path, path.partition("/")[0]})

    def unit(self, sensor: str, path: str) -> Affine:
        return self.units.get((sensor, path), IDENTITY)

    # --- values -------------------------------------------------------------------------------------------

    def value(self, path: str, sensor: str) -> tuple[str, str]:
        """A number as it is written, and what it means."""
        if path == "x" and self.random.random() < 0.2:
            return "warm", "warm"  # words have no units
        raw = Fraction(self.random.randrange(0, 40), self.random.choice((1, 1, 2)))
        return number_text(raw), f"[{path} {self.unit(sensor, path).inverse()(raw)}]"

    def _leaf(self, path: str, sensor: str) -> tuple[str, str]:
        """The content of an element at a path: a number, perhaps in a region."""
        if self.random.random() < 0.5:
            return self.value(path, sensor)
        return self._region(path, sensor)

    def _element(self, sensor: str) -> tuple[str, str]:
        """One of the elements of an item."""
        kind = self.random.choice(("t", "t", "t", "p", "x"))
        if self.lacks("p/q" if kind == "p" else kind, sensor):
            return "<y>1</y>", "<y>1</y>"
        if kind == "p":
            return _around("<p><q>", self._leaf("p/q", sensor), "</q></p>")
        return _around(f"<{kind}>", self._leaf(kind, sensor), f"</{kind}>")

    def _elements(self, sensor: str, most: int = 2) -> tuple[str, str]:
        found = [
            self._region("inside", sensor) if self.random.random() < 0.4 else self._element(sensor)
            for _ in range(self.random.randint(0, most))
        ]
        return "".join(each for each, _ in found), "".join(each for _, each in found)

    def _item(self, stamp: str | None) -> tuple[str, str]:
        sensor = self.random.choice(SENSORS)
        self.now += self.random.choice((0, 1, 1))
        raw, meant = ("", "") if self.lacks("@v", sensor) else self.value("@v", sensor)
        inside = self._elements(sensor, 3)
        time = f"<w>{self.now}</w>" if stamp is None else ""
        shown = f"<s>{sensor}</s>"
        if self.random.random() < 0.2:  # what an item is described by is what it was when it came
            self.ids += 1
            shown = f'<s:mutable {S} id="{self.prefix}f{self.ids}">{shown}</s:mutable>'
            self.regions[f"{self.prefix}f{self.ids}"] = _Region("fact", sensor)
        starts = [f'<e v="{each}">' if each else "<e>" for each in (raw, meant)]
        return f"{starts[0]}{time}{shown}{inside[0]}</e>", f"{starts[1]}{time}{shown}{inside[1]}</e>"

    # --- regions and updates ------------------------------------------------------------------------------

    def _content(self, region: _Region) -> tuple[str, str]:
        match region:
            case _Region("between"):
                found = [self._item("") for _ in range(self.random.choice((0, 1, 1, 2)))]
                return "".join(each for each, _ in found), "".join(each for _, each in found)
            case _Region("fact"):
                other = f"<s>{self.random.choice(SENSORS)}</s>"
                return other, other
            case _Region("inside", str(sensor)):
                return self._elements(sensor)
            case _Region(path, str(sensor)):
                return ("", "") if path == "x" and self.random.random() < 0.2 else self._text(path, sensor)
            case _:
                raise AssertionError(region)

    def _text(self, path: str, sensor: str) -> tuple[str, str]:
        if self.lacks(path, sensor):
            return "", ""
        return self.value(path, sensor) if self.random.random() < 0.8 else self._region(path, sensor)

    def _region(self, kind: str, sensor: str | None) -> tuple[str, str]:
        self.ids += 1
        id, region = f"{self.prefix}{self.ids}", _Region(kind, sensor)
        time = f' at="{self.now}"' if kind == "between" else ""
        content = self._content(region)
        self.regions[id] = region
        return _around(f'<s:mutable {S} id="{id}"{time}>', content, "</s:mutable>")

    def _update(self) -> tuple[str, str]:
        target = self.random.choice(list(self.regions)[-8:])
        region = self.regions[target]
        self.now += self.random.choice((0, 1, 1, 2))
        kind = self.random.choice(("replace", "replace", "replace", "after", "before"))
        if region.kind not in ("between", "inside"):
            kind = "replace"  # a value is in one place
        tag, own = f's:{kind} {S} target="{target}" at="{self.now}"', ""
        if kind != "replace":
            self.ids += 1
            own = f"{self.prefix}{self.ids}"
            tag += f' id="{own}"'
        content = self._content(region)
        if own:
            self.regions[own] = _Region(region.kind, region.sensor)
        return _around(f"<{tag}>", content, f"</s:{kind}>")


def _around(start: str, inside: tuple[str, str], end: str) -> tuple[str, str]:
    return f"{start}{inside[0]}{end}", f"{start}{inside[1]}{end}"


_VALUE = re.compile(r"\[(\S+) (\S+)\]")


def rendered(line: str, units: Mapping[str, Affine] | None = None) -> str:
    """A line of a canonical stream, in the units of the beginning or in others, given by path."""

    def spelled(found: re.Match[str]) -> str:
        return number_text((units or {}).get(found[1], IDENTITY)(Fraction(found[2])))

    return _VALUE.sub(spelled, line)


@dataclass(frozen=True, slots=True)
class Pair:
    """A stream on disk, twice."""

    accented: Source
    canonical: Source

    @staticmethod
    def of(folder: Path, name: str, worlds: list[World], *, updates: bool = True) -> Pair:
        """A stream with a partition for each world."""
        canonical = [[rendered(line) for line in each.canonical] for each in worlds]
        return Pair(
            _source(folder / f"{name}-accented", name, [each.accented for each in worlds], updates),
            _source(folder / f"{name}-canonical", name, canonical, updates),
        )


def _source(folder: Path, name: str, partitions: list[list[str]], updates: bool) -> Source:
    files = [folder / f"{number}" for number in range(len(partitions))]
    folder.mkdir()
    for file, lines in zip(files, partitions, strict=True):
        file.write_text("".join(f"{each}\n" for each in lines))
    return stream(name, files, updates=updates)


def stream(name: str, partitions: list[Path], *, updates: bool = True) -> Source:
    """A stream whose items have their sensors at `s` and their times at `w`."""
    domains, time = domains_of({"s": SENSORS}), ItemPath.parse("w")
    more = tuple(partitions[1:])
    return Source(name, partitions[0], "lines", root="r", time=time, updates=updates, domains=domains, more=more)


QUERIES = (
    '<o>{ for $e in stream("u")/r/e where $e/t > 10 return <x>{ $e/s, $e/t, $e/t#1 }</x> }</o>',
    '<o>{ stream("u")/r/e }</o>',
    '<o>{ stream("u")//t#[2] }</o>',
    '<o>{ sum(stream("u")/r/e/t[. < 100]), count(stream("u")/r/e[p/q > 5]), max(stream("u")/r/e/@v[. < 90]) }</o>',
    '<o>{ for $e in stream("u")/r/e order by $e/t[1] return <x v="{ $e/@v }">{ $e/p/q }</x> }</o>',
    '<o>{ for $e in stream("u")/r/e where $e/t?2 > $e/t return <up>{ $e/s, $e/t, $e/t?2 }</up> }</o>',
    '<o>{ for $e in stream("u")/r/e?[3] return <x>{ $e/@v, $e/x }</x> }</o>',
    '<o>{ stream("u")/r/e/x, stream("u")/r/e#1/x }</o>',
    '<o>{ for $e in stream("u")/r/e, $f in stream("u")/r/e where $e/t = $f/p/q return <b>{ $e/s, $e/t }</b> }</o>',
    '<o>{ for $w in stream("u")/r/e|t diff 10| return <w>{ count($w), max($w/p/q) }</w> }</o>',
    '<o>{ for $e in stream("u")/r/e return <x>{ if ($e/t > $e/p/q) then "over" else string($e/t[1]) }</x> }</o>',
    'for $e in stream("u")/r/e[t] return <x>{ $e/t[1]/text() }{ for $q in $e/p/q#[2] return <q>{ $q * 2 }</q> }</x>',
    '<o>{ distinct-values(stream("u")/r/e/t) }</o>',
    '<o>{ avg(stream("u")/r/e/t/text()[. < 50]), min(stream("u")/r/e/p/q[. > 1]) }</o>',
    '<o>{ for $e in stream("u")/r/e group by $s := $e/s return <x>{ <t>{ max($e/t[. < 9]) }</t>, count($e) }</x> }</o>',
    '<o>{ for $e in stream("u")/r/e group by $q := $e/p/q return <x q="{ $q }">{ sum($e/@v[. < 90]) }</x> }</o>',
    '(for $e in stream("u")/r/e order by $e/@v descending return <x v="{ $e/@v }">{ $e/t }</x>)[position() <= 2]',
)
"""Queries about the stream `u`."""
