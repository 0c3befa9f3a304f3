"""A real site with a real service, for the tests that look at the page: `anabranch serve` as a process, on Spark.

Its streams have what the views show:

* `photons`: XML with a time, read by item queries and windows; with an energy that is no number now and then, which
  makes dead letters.
* `sensors`: XML, of two sensors that change their unit by accents.
* `tickers`: edited (`updates = true`), so that a query over it is a display with a past.
* `orders`: JSON; some of it is hostile.

Whoever wants something to happen appends to a stream, and waits for a condition.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

SCRIPTS = Path(__file__).parents[2] / "scripts"
STARTING = 180.0
PATIENCE = 60.0
BETWEEN = 0.05
"""Seconds between two questions whether something holds: a client may ask so many times a second."""
HOSTILE = '<img src=x onerror="alert(1)"> \u202eback\u0085'
"""A note of an order: markup, an override of the direction of text, and a control character."""
REFUSED = "\x1b[31mred"
"""A note that no stream takes: it has a character that XML does not know, and becomes a dead letter."""

SITE = """
[engine]
checkpoint = "state"
trigger_ms = 100
shards = 2

[streams.photons]
source = "files"
path = "photons"
format = "document"
root = "photons"
item = "photon"
time = "det_time"

[streams.sensors]
source = "files"
path = "sensors"
format = "document"
root = "sensors"
item = "reading"
time = "ts"
domains = { s = [1, 2] }

[streams.tickers]
source = "files"
path = "tickers"
format = "lines"
root = "tickers"
item = "ticker"
updates = true

[streams.orders]
source = "files"
path = "orders"
format = "json"

[subscriptions.vela]
query = "vela.xq"
sink = "files"
path = "out/vela.xml"

[subscriptions.energies]
query = "energies.xq"

[subscriptions.doubled]
query = "doubled.xq"

[subscriptions.average]
query = "average.xq"

[subscriptions.warm]
query = "warm.xq"

[subscriptions.movers]
query = "movers.xq"

[subscriptions.notes]
query = "notes.xq"
"""
QUERIES = {
    "vela": """for $p in stream("photons")/photons/photon
where $p/coord/cel/ra >= 120 and $p/coord/cel/ra <= 138
return <vela>{ $p/coord/cel/ra, $p/en }</vela>
""",
    "energies": """for $w in stream("photons")/photons/photon|det_time diff 60|
return <mean>{ count($w), avg($w/phc) }</mean>
""",
    "doubled": """for $p in stream("photons")/photons/photon return <twice>{ $p/en * 2 }</twice>""",
    "average": """for $w in stream("sensors")/sensors/reading|ts diff 10|
let $a := avg($w/t)
return <window><t>{ $a }</t></window>
""",
    "warm": """for $r in stream("sensors")/sensors/reading where $r/t >= 70 return <warm>{ $r/s, $r/t }</warm>""",
    "movers": """for $q in stream("tickers")//ticker
where $q/quote >= $q/quote#1 * 1.1
order by ($q/quote - $q/quote#1) div $q/quote
return <mover>{ $q/name, $q/quote }</mover>
""",
    "notes": """for $o in stream("orders") return { "id": $o.id, "note": $o.note }""",
}
SPACE = 'xmlns:s="urn:anabranch:stream"'
CELSIUS = f'<s:accent {SPACE} where="s = 2"><s:alter path="t" by="(. - 32) * 5 div 9"/></s:accent>'
"""Sensor 2 measures in Celsius from here on."""


class NoBrowser(Exception):
    """There is no chromium on this machine."""


def chromium() -> str:
    """The path of chromium; where it is missing and cannot be installed, an error that says how to."""
    found = subprocess.run([SCRIPTS / "chromium.sh"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if found.returncode != 0:
        raise NoBrowser(found.stderr)
    return found.stdout.strip()


def photon(number: int) -> str:
    """One photon: every fifth is of the region of Vela, every 97th has an energy that is no number."""
    ra = 130 + number % 7 if number % 5 == 0 else 10 + number % 90
    energy = "faint" if number % 97 == 96 else f"{1 + number % 20 / 10:.1f}"
    return (
        f"<photon><phc>{number % 256}</phc><coord><cel><ra>{ra}</ra><dec>{-45 + number % 9}</dec></cel></coord>"
        f"<en>{energy}</en><det_time>{number * 0.5:.1f}</det_time></photon>"
    )


def reading(number: int) -> str:
    """One reading of one of two sensors."""
    return f"<reading><ts>{number}</ts><s>{number % 2 + 1}</s><t>{66 + number % 12}</t></reading>"


@dataclass
class PageSite:
    """A site that is served; tests append to its streams and ask it, the page aside."""

    folder: Path
    address: str = ""
    _numbers: dict[str, Iterator[int]] = field(default_factory=dict)
    _amounts: Counter[str] = field(default_factory=Counter)
    _files: Iterator[int] = field(default_factory=count)
    _lock: Lock = field(default_factory=Lock)

    def write(self) -> None:
        """Write SITE.toml, its queries, and the first elements of each stream."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "SITE.toml").write_text(SITE)
        for name, query in QUERIES.items():
            (self.folder / f"{name}.xq").write_text(query)
        self.photons(400)
        self.readings(40)
        self.append("sensors", f"<sensors>{CELSIUS}</sensors>")
        self.readings(40)
        self.quotes()
        self.orders([{"id": 1, "note": "plain"}, {"id": 2, "note": HOSTILE}, {"id": 3, "note": REFUSED}])

    def append(self, stream: str, text: str) -> None:
        """Append a file to a stream, whole, behind all others."""
        with self._lock:
            where = self.folder / stream
            where.mkdir(exist_ok=True)
            name = f"{next(self._files):08d}"
            hidden = where / f".{name}"
            hidden.write_text(text)
            hidden.rename(where / name)

    def next(self, stream: str, amount: int) -> Iterable[int]:
        """The next numbers of a stream."""
        numbers = self._numbers.setdefault(stream, count())
        self._amounts[stream] += amount
        return [next(numbers) for _ in range(amount)]

    def catch_up(self, stream: str) -> None:
        """Wait until all items of a stream that were written are read."""
        asked = f"/streams/{stream}"
        self.until(lambda: self.ask("GET", asked)["items"] >= self._amounts[stream], f"all of '{stream}' is read")

    def photons(self, amount: int) -> None:
        """So many more photons."""
        self.append("photons", f"<photons>{''.join(map(photon, self.next('photons', amount)))}</photons>")

    def readings(self, amount: int) -> None:
        """So many more readings."""
        self.append("sensors", f"<sensors>{''.join(map(reading, self.next('sensors', amount)))}</sensors>")

    def quotes(self) -> None:
        """Two stocks, and what their quotes become."""
        lines = [
            f'<ticker {SPACE} s:at="1"><name>ACME</name><s:mutable id="a"><quote>100</quote></s:mutable></ticker>',
            f'<ticker {SPACE} s:at="2"><name>Initech</name><s:mutable id="i"><quote>50</quote></s:mutable></ticker>',
            f'<s:replace {SPACE} target="a" at="10"><quote>112</quote></s:replace>',
            f'<s:replace {SPACE} target="i" at="20"><quote>80</quote></s:replace>',
            f'<s:replace {SPACE} target="a" at="50"><quote>113</quote></s:replace>',
        ]
        self.append("tickers", "".join(f"{line}\n" for line in lines))

    def orders(self, orders: Iterable[dict[str, Any]]) -> None:
        """More orders."""
        self.append("orders", "".join(f"{json.dumps(order)}\n" for order in orders))

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """What the service answers below /api; a refusal is an error."""
        headers = {} if body is None else {"Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"{self.address}/api{path}", data, headers, method=method)
        try:
            with urlopen(request, timeout=PATIENCE) as answer:
                text = answer.read()
        except HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read().decode()}") from None
        return json.loads(text) if text else None

    def subscribe(self, name: str, query: str) -> None:
        """Register a subscription, and wait until it runs."""
        self.ask("POST", "/subscriptions", {"name": name, "query": query})
        self.photons(1)  # an epoch, with which it begins
        self.until(lambda: self.subscription(name)["state"] == "running", f"'{name}' runs")

    def subscribe_many(self, prefix: str, amount: int, *, at_once: int = 5000) -> None:
        """Register very many, by arrays; they differ in a constant, and answer to few photons."""
        for first in range(0, amount, at_once):
            self.ask(
                "POST",
                "/subscriptions",
                [
                    {
                        "name": f"{prefix}-{number:06d}",
                        "query": f'for $p in stream("photons")/photons/photon where $p/phc > {1000 + number} '
                        "return <found>{ $p/en }</found>",
                    }
                    for number in range(first, min(first + at_once, amount))
                ],
            )

    def subscription(self, name: str) -> Any:
        """A subscription, as the service tells it."""
        return self.ask("GET", f"/subscriptions/{quote(name, safe='')}")

    def answers(self, name: str) -> list[tuple[str, str]]:
        """All that a subscription has answered so far: positions and texts."""
        found: list[tuple[str, str]] = []
        after = ""
        while True:
            page = self.ask("GET", f"/subscriptions/{quote(name, safe='')}/answers?limit=1000{after}")
            found += [(one["position"], one["text"]) for one in page["answers"]]
            if not page["more"]:
                return found
            after = f"&after={page['next']}"

    def until(self, holds: Callable[[], bool], what: str, patience: float = PATIENCE) -> None:
        """Wait until something holds of the service."""
        end = monotonic() + patience
        while not holds():
            assert monotonic() < end, f"not within {patience:.0f} seconds: {what}"
            Event().wait(BETWEEN)


@contextmanager
def served(folder: Path) -> Iterator[PageSite]:
    """A site in a folder, written and served until the end."""
    site = PageSite(folder)
    site.write()
    with serving(folder, "serve", "SITE.toml") as site.address:
        yield site


@contextmanager
def serving(folder: Path, *command: str) -> Iterator[str]:
    """A command of anabranch that serves a file of a folder, as a process until the end; gives its address."""
    *words, file = command
    command = (str(Path(sys.executable).parent / "anabranch"), *words, str(folder / file), "--port", "0")
    log = (folder / "serve.log").open("w")
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.PIPE, text=True, env={**os.environ}
    )
    assert process.stderr is not None
    told = Event()
    address = ""

    def listen(lines: Iterable[str]) -> None:
        """Keep what it says, so that the pipe never fills, and find where it serves."""
        nonlocal address
        for line in lines:
            log.write(line)
            log.flush()
            found = re.search(r"http://127\.0\.0\.1:\d+", line)
            if found and not told.is_set():
                address = found[0]
                told.set()
        told.set()  # it has ended

    listener = Thread(target=listen, args=(process.stderr,), daemon=True)
    listener.start()
    try:
        told.wait(STARTING)
        assert address, f"the service has not started:\n{(folder / 'serve.log').read_text()}"
        end = monotonic() + STARTING
        while not _ready(address):
            assert process.poll() is None, f"the service has ended:\n{(folder / 'serve.log').read_text()}"
            assert monotonic() < end, f"the service is not ready:\n{(folder / 'serve.log').read_text()}"
            Event().wait(BETWEEN)
        yield address
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        listener.join(5)
        process.stderr.close()
        log.close()


def _ready(address: str) -> bool:
    """Whether the run is at work."""
    try:
        with urlopen(f"{address}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
