"""The streams of the soak, as they come: good items, late ones, bad ones, accents and updates, all of them by number.

What stands on a line follows from its number alone, so a stream that has grown for hours is the same each time.
Each stream is a folder; its newest file grows until the next one is begun, so files are read in the order of their
numbers, and a place in one of them is a place in the whole stream.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from spark.law import CLOSING

RATES = {"pings": 1, "photons": 4, "flashes": 1, "sensors": 2, "orders": 2, "tickers": 1}
"""Lines a second of each stream."""
SPACE = 'xmlns:s="urn:anabranch:stream"'
SLACK = 2
"""Seconds that a photon may come behind its time."""
LEVELS, SYMBOLS, TICKERS = 10, 20, 40
FILE_LINES = 2_000
"""The lines of a file, behind which the next one is begun."""
_EVERY_LATE, _EVERY_BROKEN, _EVERY_ORDER, _EVERY_UPDATE, _EVERY_FAINT = 97, 101, 103, 53, 401
"""Of so many elements one is late, broken, unreadable, an update of what is not there, a value that is no number."""
_ACCENTS = 100
"""The readings between two accents."""
CELSIUS = f'<s:accent {SPACE} where="s = 2"><s:alter path="t" by="(. - 32) * 5 div 9"/></s:accent>\n'
FAHRENHEIT = f'<s:accent {SPACE} where="s = 2"><s:alter path="t" by=". * 9 div 5 + 32"/></s:accent>\n'


def photon(number: int) -> str:
    """The photons of a second are not in order."""
    rate = RATES["photons"]
    time = number // rate + number * 7 % rate / rate
    if number % _EVERY_LATE == _EVERY_LATE - 1:
        time = max(0, time - 30)
    ra, dec = 100 + number * 37 % 400 / 10, -50 + number * 53 % 200 / 10
    text = (
        f"<photon><n>{number}</n><phc>{number * number % LEVELS}</phc><coord><cel><ra>{ra}</ra><dec>{dec}</dec></cel>"
        f"</coord><en>{energy(number) / 1000}</en><det_time>{time:.2f}</det_time></photon>\n"
    )
    return text.replace("</phc>", "</phd>") if number % _EVERY_BROKEN == _EVERY_BROKEN - 1 else text


def energy(number: int) -> int:
    """The energy of a photon in eV."""
    return 100 + number * 7919 % 2000


def flash(number: int) -> str:
    """A flash, of the same clock as photons."""
    return f"<flash><n>{number}</n><level>{number % LEVELS}</level><at>{number / RATES['flashes']}</at></flash>\n"


def reading(number: int) -> str:
    """Two sensors in turns; the second one changes its unit to and fro."""
    if number % _ACCENTS == _ACCENTS - 1:
        return CELSIUS if number // _ACCENTS % 2 == 0 else FAHRENHEIT
    sensor, degrees = number % 2 + 1, 10 + number // 2 * 11 % 30
    in_celsius = sensor == 2 and (number // _ACCENTS) % 2 == 1
    value = "n/a" if number % _EVERY_FAINT == 7 else f"{degrees if in_celsius else degrees * 9 / 5 + 32:.1f}"
    return f"<reading><ts>{number / RATES['sensors']}</ts><s>{sensor}</s><t>{value}</t></reading>\n"


def order(number: int) -> str:
    """An order as a line of JSON."""
    text = json.dumps({"id": number, "symbol": f"S{number * 7 % SYMBOLS}", "price": price(number)})
    return text[:-2] + "\n" if number % _EVERY_ORDER == _EVERY_ORDER - 1 else text + "\n"


def price(number: int) -> int:
    """The price of an order."""
    return number * 3571 % 1000


def quote(number: int) -> str:
    """Tickers, whose quotes are replaced again and again."""
    at = f'at="{number // 2}"'
    if number < TICKERS:
        region = f'<s:mutable id="q{number}"><quote>{100 + number}</quote></s:mutable>'
        return f"<ticker {SPACE} s:{at}><name>T{number}</name>{region}</ticker>\n"
    target = "unknown" if number % _EVERY_UPDATE == _EVERY_UPDATE - 1 else f"q{number * 7 % TICKERS}"
    return f'<s:replace {SPACE} target="{target}" {at}><quote>{number * number * 31 % 211 + 1}</quote></s:replace>\n'


def ping(number: int) -> str:
    """What is asked for as it is: its answer tells how long a run takes."""
    return f"<ping><n>{number}</n></ping>\n"


_LINES = {"pings": ping, "photons": photon, "flashes": flash, "sensors": reading, "orders": order, "tickers": quote}
_TIMED = ("photons", "flashes", "sensors")
STREAMS_TOML = f"""
[streams.pings]
path = "in/pings"
format = "lines"
root = "pings"

[streams.photons]
path = "in/photons"
format = "lines"
root = "photons"
time = "det_time"
slack = {SLACK}

[streams.flashes]
path = "in/flashes"
format = "lines"
root = "flashes"
time = "at"

[streams.sensors]
path = "in/sensors"
format = "lines"
root = "sensors"
time = "ts"
domains = {{ s = [1, 2] }}

[streams.orders]
path = "in/orders"
format = "json"

[streams.tickers]
path = "in/tickers"
format = "lines"
root = "tickers"
updates = true
"""


@dataclass
class GrowingStream:
    """One stream, and where its lines and files begin; only `grow` changes it."""

    name: str
    folder: Path
    lines: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0])
    """The byte at which each line begins, and the end of the newest."""
    files: list[int] = field(default_factory=list)
    """The byte at which each file begins."""
    numbers: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)

    def grow(self, amount: int) -> None:
        """So many more lines come, which are in the file when this returns."""
        self.write([_LINES[self.name](next(self.numbers)) for _ in range(amount)])

    def close(self) -> None:
        """Punctuations come that close all windows, where the stream has windows."""
        if self.name in _TIMED:
            self.write([line + "\n" for line in CLOSING[True].decode().splitlines()])

    def write(self, lines: list[str]) -> None:
        """These lines come."""
        if not self.files or len(self.lines) >= len(self.files) * FILE_LINES:
            self.files.append(self.starts[-1])
        with (self.folder / f"{len(self.files) - 1:06}").open("a") as file:
            file.write("".join(lines))
        for line in lines:
            self.lines.append(line)
            self.starts.append(self.starts[-1] + len(line.encode()))

    @property
    def size(self) -> int:
        """The bytes that have come so far."""
        return self.starts[-1]

    def byte_at(self, file: int, position: int) -> int:
        """The byte of the stream that stands at a position of a file, by the file's number."""
        return self.files[file] + position if self.files else 0

    def line_at(self, file: int, position: int) -> int:
        """The number of the line that begins there."""
        byte = self.byte_at(file, position)
        found = bisect_left(self.starts, byte)
        assert self.starts[found] == byte, f"an epoch of '{self.name}' has ended within a line, at byte {byte}"
        return found


def broken_lines(stream: str, lines: int) -> int:
    """How many of the first lines of a stream no stream takes."""
    every = {"photons": _EVERY_BROKEN, "orders": _EVERY_ORDER, "tickers": _EVERY_UPDATE}.get(stream)
    first = TICKERS if stream == "tickers" else 0
    return 0 if every is None else sum(number % every == every - 1 for number in range(first, lines))
