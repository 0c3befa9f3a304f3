"""Readings of some device, small items of about 170 bytes, in the three ways in which streams are written.

The same reading as XML elements, as XML attributes and as JSON:

    <reading><id>7</id><name>old gold-421 lamp</name>...<d><t>87.4213</t><u>12.3456</u></d></reading>
    <reading id="7" name="old gold-421 lamp" ...><d t="87.4213" u="12.3456"/></reading>
    {"id": 7, "name": "old gold-421 lamp", ..., "d": {"t": 87.4213, "u": 12.3456}}

`t` and `u` are spread evenly from 0 to 100.
A fifth of the codes are `gold`, a fifth are `gold-` and three digits, the others three digits behind another metal.
Their kind decides what else they have.
*Repeated* readings have one to three `<r><n>1</n><v>12.3456</v></r>`; the first `v` is spread evenly from 0 to 100, the
others from 0 to 80.
*Timed* ones say when they were taken, evenly over a day: `ts` is a dateTime with milliseconds, `ms`, `us` and `ns`
count from 1970 and have 13, 16 and 19 digits, and `until`, a dateTime too, is before `ts` as often as behind it.
They have no name, and are half as long again.
*Plain* ones have a place and a time in seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Literal, TypeAlias

from anabranch.bench.workloads.photons import Rows
from anabranch.stream.reading.reader import Format
from anabranch.stream.reading.source import Source

METALS = ("gold", "iron", "zinc", "lead")
_LOOKS = ("old", "new", "small", "broad", "plain")
_THINGS = ("lamp", "gauge", "valve", "meter", "pump")
_BEGIN = 1_700_000_000
DAY = 1_772_323_200
"""The day of timed readings, 2026-03-01, in seconds since 1970."""
_DAY_MS = 86_400_000

ReadingKind: TypeAlias = Literal["plain", "repeated", "timed"]
_LEAVES = ("id", "name", "code", "ts", "until", "ms", "us", "ns")
"""The leaves directly below the item that forms look at."""

Leaves: TypeAlias = tuple[tuple[str, str | int | Decimal], ...]
"""Names and values."""


@dataclass(frozen=True, slots=True)
class DeviceReading:
    """One item: its leaves in their order, its measurement, and its repeated children."""

    leaves: Leaves
    measurement: tuple[tuple[str, Decimal], ...]
    repeated: tuple[Leaves, ...] = ()


def readings(count: int, kind: ReadingKind = "plain", *, seed: int = 1) -> Iterator[DeviceReading]:
    """`count` readings of a kind and a seed."""
    random = Random(seed)
    for number in range(count):
        metal = number % 5
        code = METALS[0] if metal == 0 else f"{METALS[metal - 1]}-{random.randrange(1_000):03}"
        name = f"{random.choice(_LOOKS)} {code} {random.choice(_THINGS)}"
        leaves: Leaves = ("id", 1_000_000 + number), ("name", name), ("code", code)
        measurement = ("t", _value(random, 100)), ("u", _value(random, 100))
        match kind:
            case "repeated":
                values = [_value(random, 80 if more else 100) for more in range(random.randint(1, 3))]
                children = tuple((("n", each), ("v", value)) for each, value in enumerate(values, 1))
                yield DeviceReading(leaves, measurement, children)
            case "timed":
                yield DeviceReading((leaves[0], leaves[2], *_times(random)), measurement)
            case "plain":
                place = f"hall {random.randrange(100)}, row {random.randrange(100)}"
                yield DeviceReading((*leaves, ("place", place), ("at", _BEGIN + number)), measurement)


def _times(random: Random) -> Leaves:
    taken = random.randrange(_DAY_MS)
    until = taken + random.choice((-1, 1)) * random.randrange(1, 600_000)
    us = (DAY * 1_000 + taken) * 1_000 + random.randrange(1_000)
    return (
        ("ts", date_time(taken)),
        ("until", date_time(until)),
        ("ms", us // 1_000),
        ("us", us),
        ("ns", us * 1_000 + random.randrange(1_000)),
    )


def date_time(ms: int) -> str:
    """The dateTime of this many milliseconds after the begin of the day."""
    moment = datetime.fromtimestamp(DAY, UTC) + timedelta(milliseconds=ms)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1_000:03}Z"


def _value(random: Random, below: int) -> Decimal:
    return Decimal(random.randrange(below * 10_000)).scaleb(-4)


@dataclass(frozen=True, slots=True)
class WireFormat:
    """A way to write readings, and how we and plain Spark read them."""

    name: str
    form: Format
    axis: str = ""
    """The prefix of a leaf's name in a path of ours."""
    prefix: str = ""
    """In front of a leaf's name in a column of Spark."""
    dots: bool = False
    """Whether we ask for leaves with dots, and give objects."""

    def write(self, reading: DeviceReading) -> str:
        """A reading as one line."""
        if self.form == "json":
            parts = [_keys(reading.leaves), f'"d": {{{_keys(reading.measurement)}}}']
            if reading.repeated:
                parts.append(f'"r": [{", ".join(f"{{{_keys(each)}}}" for each in reading.repeated)}]')
            return f"{{{', '.join(parts)}}}"
        if self.axis:
            parts = [f"<d{_attributes(reading.measurement)}/>"]
            parts += [f"<r{_attributes(each)}/>" for each in reading.repeated]
            return f"<reading{_attributes(reading.leaves)}>{''.join(parts)}</reading>"
        parts = [_elements(reading.leaves), f"<d>{_elements(reading.measurement)}</d>"]
        parts += [f"<r>{_elements(each)}</r>" for each in reading.repeated]
        return f"<reading>{''.join(parts)}</reading>"

    def paths(self) -> dict[str, str]:
        """Where the leaves of a reading `$p` and of its repeated child `$r` are."""
        if self.dots:
            found = {leaf: f"$p.{leaf}" for leaf in _LEAVES} | {"t": "$p.d.t", "u": "$p.d.u"}
            return found | {"v": "$r.v", "every_v": "$p.r[].v", "first_v": "$p.r[[1]].v"}
        found = {leaf: f"$p/{self.axis}{leaf}" for leaf in _LEAVES}
        found |= {leaf: f"$p/d/{self.axis}{leaf}" for leaf in ("t", "u")}
        found |= {"v": f"$r/{self.axis}v", "any_t": f"$p//{self.axis}t", "every_v": f"$p/r/{self.axis}v"}
        at = {"first_v": "1", "last_v": "last()", "leading_v": "position() <= 2"}
        return found | {name: f"$p/r[{position}]/{self.axis}v" for name, position in at.items()}

    def columns(self) -> dict[str, str]:
        """The columns of the same leaves for Spark; the repeated child is `r`."""
        structs = {**dict.fromkeys(_LEAVES, ""), "t": "d.", "u": "d.", "v": "r."}
        return {leaf: f"{struct}{self.prefix}{leaf}" for leaf, struct in structs.items()}

    def source(self, folder: Path) -> Source:
        """The stream of the files in a folder."""
        return Source("readings", folder, root="readings", item="reading", format=self.form)

    def read(self, lines: Rows, kind: ReadingKind) -> Rows:
        """Readings of a kind out of lines of text, by plain Spark, all their leaves declared."""
        function = "from_json" if self.form == "json" else "from_xml"
        return lines.selectExpr(f"{function}(value, '{self._schema(kind)}') as p").selectExpr("p.*")

    def _schema(self, kind: ReadingKind) -> str:
        leaf = self.prefix
        always = f"{leaf}id long, {leaf}code string, d struct<{leaf}t: double, {leaf}u: double>"
        match kind:
            case "repeated":
                return f"{always}, {leaf}name string, r array<struct<{leaf}n: int, {leaf}v: double>>"
            case "timed":
                return f"{always}, {leaf}ts string, {leaf}until string, {leaf}ms long, {leaf}us long, {leaf}ns long"
            case "plain":
                return f"{always}, {leaf}name string, {leaf}place string, {leaf}at long"


ELEMENTS = WireFormat("elements", "lines")
ATTRIBUTES = WireFormat("attributes", "lines", "@", "_")
JSON_LINES = WireFormat("json", "json")
FORMATS = (ELEMENTS, ATTRIBUTES, JSON_LINES)
JSON_DOTS = WireFormat("json_dots", "json", dots=True)
"""JSON, looked up with dots."""


def write_readings(file: Path, wire: WireFormat, count: int, kind: ReadingKind = "plain") -> None:
    """Write a file of `count` readings of a kind."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8") as opened:
        opened.writelines(f"{wire.write(each)}\n" for each in readings(count, kind))


def _elements(leaves: Leaves) -> str:
    return "".join(f"<{name}>{value}</{name}>" for name, value in leaves)


def _attributes(leaves: Leaves) -> str:
    return "".join(f' {name}="{value}"' for name, value in leaves)


def _keys(leaves: Leaves) -> str:
    """Leaves as keys and values of JSON; the texts need no escapes."""
    return ", ".join(
        f'"{name}": "{value}"' if isinstance(value, str) else f'"{name}": {value}' for name, value in leaves
    )
