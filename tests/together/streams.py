"""Streams for crowds of queries: items of one look and awkward ones among them, which come in phases.

A partition is a file that grows from phase to phase, lines or a document that is only closed in the last.
Awkward are items with missing, repeated and oddly spelled values, late ones, broken ones, and words on the time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from random import Random

from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.reader import Format
from anabranch.stream.reading.source import Source
from anabranch.stream.schema import Schema
from branch.feeding import spiced
from oracle.generate import NUMBERS, Writer
from spark.law import CLOSING, elements_of, known_times

USUAL = '<i id="{id}"><a>{a}</a><n>{n}</n><t>{t}</t><s>{s}</s><c k="{k}"><a>{ca}</a><n>{cn}</n></c></i>'
SHAPES = (
    '<i id="{id}"><a>{a}</a><n>{n}</n><n>{cn}</n><t>{t}</t><s>{s}</s><c k="{k}"><a>{ca}</a><n>{cn}</n></c></i>',
    '<i id="{id}"><a>{a}</a><n>{n}</n><t>{t}</t><s>{s}</s><c><a>1</a><n>9</n></c><c><a>9</a><n>1</n></c></i>',
    '<i id="{id}"><a>{a}</a><t>{t}</t><s>{s}</s><c k="{k}"><a>{ca}</a><n>{cn}</n></c></i>',
    '<i id="{id}"><n>{n}</n><t>{t}</t></i>',
    '<i id="{id}"><a>{a}</a><n>{n}</n><t>{t}</t><!-- c --><s>{s}</s><c k="{k}"><a>{ca}</a><n>{cn}</n></c></i>',
    '<i id="{id}"><t>{t}</t><s>{s}</s><n>{n}</n><a>{a}</a><c k="{k}"><n>{cn}</n><a>{ca}</a></c></i>',
    '<i id="{id}"><a>{a}</a><n>NaN</n><t>{t}</t><s>{s}</s><c k="{k}"><a>{ca}</a><n>{cn}</n></c></i>',
    '<i id="{id}"><a>{a}</a><n>{n}0000000000000000001</n><t>{t}</t><s/><c k="{k}"><a>x</a><n>{cn}</n></c></i>',
    '<i id="{id}"><a>{a}</a><n>{n}</n><s>{s}</s><c k="{k}"><a>{ca}</a><n>{cn}</n></c></i>',
)
OTHER = '<j id="{id}"><n>{n}</n><t>{t}</t></j>'
"""An item of another name, of which Saxon's laws and the reference do not agree whether it moves the time."""
DTD = """<!ELEMENT r (i*)> <!ELEMENT i (a, n, t, s, c)> <!ATTLIST i id CDATA #REQUIRED>
    <!ELEMENT a (#PCDATA)> <!ELEMENT n (#PCDATA)> <!ELEMENT t (#PCDATA)> <!ELEMENT s (#PCDATA)>
    <!ELEMENT c (a, n)> <!ATTLIST c k CDATA #REQUIRED>"""
"""True of the usual items only: a schema says what paths there are, not that an item keeps to it."""
_SAYS_TIME = re.compile(rb"^<[^>]*[ :]at=")
BROKEN = ("<i><a>1</b></i>", "<i><n>5</n><t>3</t><a>&nope;</a></i>")


@dataclass(frozen=True, slots=True)
class Look:
    """What the streams of a crowd are like."""

    timed: bool
    plain: bool
    """No words on the time, neither slack nor origin, all items as good as others: what Saxon can judge too."""
    partitions: int
    """As many as a stream has, where it can have several."""
    phases: int
    finite: bool
    form: Format
    schema: bool
    strict: bool


@dataclass(frozen=True, slots=True)
class Laid:
    """A stream: the elements of each partition, phase by phase."""

    name: str
    look: Look
    slack: Fraction
    origin: Fraction
    dealt: tuple[tuple[tuple[bytes, ...], ...], ...]

    def write(self, folder: Path, phase: int) -> None:
        """Let its files grow by a phase."""
        for number, path in enumerate(self._paths(folder)):
            with path.open("ab") as file:
                file.write(self._bytes(number, phase))

    def source(self, folder: Path) -> Source:
        first, *more = self._paths(folder)
        time = ItemPath.parse("t") if self.look.timed else None
        return Source(
            self.name,
            first,
            self.look.form,
            schema=Schema.from_dtd(DTD) if self.look.schema else None,
            strict=self.look.strict,
            root="r",
            time=time,
            slack=self.slack,
            origin=self.origin,
            more=tuple(more),
        )

    def seen(self, folder: Path, first: int) -> Source:
        """The stream as if it began with a phase, all that comes then in its place."""
        for number, path in enumerate(self._paths(folder)):
            before = b"".join(self._bytes(number, phase) for phase in range(first))
            rest = b"".join(self._bytes(number, phase) for phase in range(first, self.look.phases))
            if before and self.look.form == "document":
                path.write_bytes(b"<r>" + b"\n" * (len(before) - 3) + rest)
            else:
                path.write_bytes(b"\n" * len(before) + rest)
        return self.source(folder)

    def begun(self, phase: int) -> bool:
        """Whether something of it comes before a phase."""
        return any(part for partition in self.dealt for part in partition[:phase])

    def documents(self, first: int, last: int) -> dict[str, str]:
        """What it brings from one phase to another, as documents for Saxon by name."""
        found: dict[str, str] = {}
        for number, partition in enumerate(self.dealt):
            items = (item.decode() for part in partition[first : last + 1] for item in part)
            good = "".join(item for item in items if item not in BROKEN)
            found[f"{self.name}.{number}" if number else self.name] = f"<r>{good}</r>"
        return found

    def _paths(self, folder: Path) -> list[Path]:
        return [folder / f"{self.name}-{number}" for number in range(len(self.dealt))]

    def _bytes(self, partition: int, phase: int) -> bytes:
        look = self.look
        text = b"".join(element + b"\n" for element in self.dealt[partition][phase])
        ends = phase == look.phases - 1
        closing = CLOSING[look.timed] if ends and not look.finite else b""
        if look.form == "lines":
            return text + closing
        return (b"" if phase else b"<r>") + text + closing + (b"</r>" if ends else b"")


def look_of(random: Random, *, finite: bool) -> Look:
    """Of streams that have an end and come at once, or that go on for some phases."""
    timed, plain = random.random() < 0.6, random.random() < 0.6
    partitions, phases = random.choice((1, 1, 1, 2)), 1 if finite else random.randint(2, 4)
    form: Format = random.choice(("lines", "lines", "document"))
    schema = random.random() < 0.4
    strict = schema and not plain and random.random() < 0.4
    return Look(timed, plain, partitions, phases, finite, form, schema, strict)


def lay(name: str, look: Look, random: Random) -> Laid:
    """A stream of some forty elements."""
    text = f"<r>{''.join(_items(random, SHAPES if look.plain else (*SHAPES, OTHER)))}</r>"
    elements = elements_of(text if look.plain else spiced(random, text))
    if not look.finite:
        # what has no time of its own has that of its arrival here, which the reference knows nothing of
        elements = known_times(elements, timed=look.timed)
    elements = _with_broken(random, elements)
    # the partitions of a stream without a time have elements without a time
    single = not look.timed and any(_SAYS_TIME.search(each) for each in elements)
    partitions = 1 if single else look.partitions
    borders = random.sample(range(1, len(elements)), look.phases - 1)  # each phase brings something
    dealt: list[list[list[bytes]]] = [[[] for _ in range(look.phases)] for _ in range(partitions)]
    for number, element in enumerate(elements):
        phase = sum(border <= number for border in borders)
        dealt[random.randrange(partitions)][phase].append(element)
    return Laid(
        name,
        look,
        Fraction(0 if look.plain else random.choice((0, 0, 3))),
        Fraction(0 if look.plain else random.choice((0, 0, 2))),
        tuple(tuple(map(tuple, partition)) for partition in dealt),
    )


def _items(random: Random, shapes: Sequence[str]) -> list[str]:
    """Items in about the order of their values; how awkward, is for the stream to say."""
    odd, back = random.choice((0, 0.05, 0.3)), random.choice((0, 0, 3))
    writer = Writer(random)
    time, found = float(random.randrange(6)), []
    for _ in range(random.randint(20, 40)):
        time += random.choice((0, 0.5, 0.5, 1, 2.5, 7))
        at = f"{time - back * (random.random() < 0.1):g}"
        if random.random() < odd / 2:
            found.append(writer.item(at))
            continue
        shape = random.choice(shapes) if random.random() < odd else USUAL
        found.append(
            shape.format(
                id=random.choice(("1", "x", "5")),
                a=random.choice(("1", "5", "1.3", "abc", "7.5")) if odd else random.choice(("1", "5", "1.3")),
                n=random.choice(NUMBERS) if random.random() < odd else f"{random.randrange(100) / 10:g}",
                t=at,
                s=random.choice(("abc", "b", "x", "5")),
                k=random.choice(("x", "5")),
                ca=random.randrange(10),
                cn=f"{random.randrange(40) / 4:g}",
            )
        )
    return found


def _with_broken(random: Random, elements: Sequence[bytes]) -> list[bytes]:
    found = list(elements)
    for broken in BROKEN:
        if random.random() < 0.3:
            found.insert(random.randint(min(1, len(found)), len(found)), broken.encode())
    return found
