"""Readings of some device, small items of about 170 bytes, in the three ways in which streams are written.

The same reading as XML elements, as XML attributes and as JSON:

    <reading><id>7</id><name>old gold-421 lamp</name>...<d><t>87.4213</t><u>12.3456</u></d></reading>
    <reading id="7" name="old gold-421 lamp" ...><d t="87.4213" u="12.3456"/></reading>
    {"id": 7, "name": "old gold-421 lamp", ..., "d": {"t": 87.4213, "u": 12.3456}}

`t` and `u` are spread evenly from 0 to 100.
A fifth of the codes are `gold`, a fifth are `gold-` and three digits, the others three digits behind another metal.
Readings with repeated children have one to three `<r><n>1</n><v>12.3456</v></r>` and neither place nor time; the first
`v` is spread evenly from 0 to 100, the others from 0 to 80.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import TypeAlias

from anabranch.bench.workloads.photons import Rows
from anabranch.stream.reading.reader import Format
from anabranch.stream.reading.source import Source

METALS = ("gold", "iron", "zinc", "lead")
_LOOKS = ("old", "new", "small", "broad", "plain")
_THINGS = ("lamp", "gauge", "valve", "meter", "pump")
_BEGIN = 1_700_000_000

Leaves: TypeAlias = tuple[tuple[str, str | int | Decimal], ...]
"""Names and values."""


@dataclass(frozen=True, slots=True)
class DeviceReading:
    """One item: its leaves in their order, its measurement, and its repeated children."""

    leaves: Leaves
    measurement: tuple[tuple[str, Decimal], ...]
    repeated: tuple[Leaves, ...] = ()


def readings(count: int, *, repeated: bool = False, seed: int = 1) -> Iterator[DeviceReading]:
    """So many readings of a seed, with repeated children or without."""
    random = Random(seed)
    for number in range(count):
        kind = number % 5
        code = METALS[0] if kind == 0 else f"{METALS[kind - 1]}-{random.randrange(1_000):03}"
        name = f"{random.choice(_LOOKS)} {code} {random.choice(_THINGS)}"
        leaves: Leaves = ("id", 1_000_000 + number), ("name", name), ("code", code)
        measurement = ("t", _value(random, 100)), ("u", _value(random, 100))
        if repeated:
            values = [_value(random, 80 if more else 100) for more in range(random.randint(1, 3))]
            children = tuple((("n", each), ("v", value)) for each, value in enumerate(values, 1))
            yield DeviceReading(leaves, measurement, children)
        else:
            place = f"hall {random.randrange(100)}, row {random.randrange(100)}"
            yield DeviceReading((*leaves, ("place", place), ("at", _BEGIN + number)), measurement)


def _value(random: Random, below: int) -> Decimal:
    return Decimal(random.randrange(below * 10_000)).scaleb(-4)


@dataclass(frozen=True, slots=True)
class WireFormat:
    """A way to write readings, and how we and plain Spark read them."""

    name: str
    form: Format
    axis: str = ""
    """In front of a leaf's name in a path of ours."""
    prefix: str = ""
    """In front of a leaf's name in a column of Spark."""

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
        steps = {"id": "$p/", "name": "$p/", "code": "$p/", "t": "$p/d/", "u": "$p/d/", "v": "$r/"}
        found = {leaf: f"{step}{self.axis}{leaf}" for leaf, step in steps.items()}
        return {**found, "any_t": f"$p//{self.axis}t", "every_v": f"$p/r/{self.axis}v"}

    def columns(self) -> dict[str, str]:
        """The same for Spark; of a repeated child `r`."""
        structs = {"id": "", "name": "", "code": "", "t": "d.", "u": "d.", "v": "r."}
        return {leaf: f"{struct}{self.prefix}{leaf}" for leaf, struct in structs.items()}

    def source(self, folder: Path) -> Source:
        """The stream that files in a folder are."""
        return Source("readings", folder, root="readings", item="reading", format=self.form)

    def read(self, lines: Rows, *, repeated: bool) -> Rows:
        """Readings out of lines of text, by plain Spark, all their leaves declared."""
        function = "from_json" if self.form == "json" else "from_xml"
        return lines.selectExpr(f"{function}(value, '{self._schema(repeated)}') as p").selectExpr("p.*")

    def _schema(self, repeated: bool) -> str:
        leaf = self.prefix
        measurement = f"d struct<{leaf}t: double, {leaf}u: double>"
        always = f"{leaf}id long, {leaf}name string, {leaf}code string, {measurement}"
        if repeated:
            return f"{always}, r array<struct<{leaf}n: int, {leaf}v: double>>"
        return f"{always}, {leaf}place string, {leaf}at long"


ELEMENTS = WireFormat("elements", "lines")
ATTRIBUTES = WireFormat("attributes", "lines", "@", "_")
JSON_LINES = WireFormat("json", "json")
FORMATS = (ELEMENTS, ATTRIBUTES, JSON_LINES)


def write_readings(file: Path, wire: WireFormat, count: int, *, repeated: bool = False) -> None:
    """Write a file of so many readings."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8") as opened:
        opened.writelines(f"{wire.write(each)}\n" for each in readings(count, repeated=repeated))


def _elements(leaves: Leaves) -> str:
    return "".join(f"<{name}>{value}</{name}>" for name, value in leaves)


def _attributes(leaves: Leaves) -> str:
    return "".join(f' {name}="{value}"' for name, value in leaves)


def _keys(leaves: Leaves) -> str:
    """As JSON; the texts need no escapes."""
    return ", ".join(
        f'"{name}": "{value}"' if isinstance(value, str) else f'"{name}": {value}' for name, value in leaves
    )
