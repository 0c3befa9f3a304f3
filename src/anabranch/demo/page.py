"""The last act: the page, with the three papers' stories in it, alive.

A site of its own reads photons, sensors and a ticker, which go on while somebody looks: photons for a thousand
subscriptions that share one pass, sensors that change their units, quotes that are replaced.
On a terminal it goes on until Ctrl-C, elsewhere for a minute; nothing is written any more after half an hour.
"""

from __future__ import annotations

import socket
import webbrowser
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from threading import Event, Thread
from time import monotonic
from typing import Any

from rich.console import Console

from anabranch.client import RemoteSite, connect
from anabranch.demo.sensors import CELSIUS, SENSORS, SensorChange, readings
from anabranch.demo.stage import appear, example
from anabranch.demo.ticker import STOCKS, Exchange
from anabranch.errors import AnabranchError, StateError
from anabranch.running import run
from anabranch.service.settings import DEFAULT_PORT, ServiceSettings
from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.stream.photons import photons, photons_dtd

SECONDS_UNSEEN = 60
"""How long the page is there where nobody is at a terminal."""
_LONGEST = 1800
"""Seconds after which the streams are silent."""
_PHOTONS, _SUBSCRIPTIONS = 500, 1_000
"""Photons a second, and subscriptions to them."""
_PATIENCE = 120
_SITE = """\
[engine]
checkpoint = "state"
log = "log.jsonl"
shards = 2

[streams.photons]
source = "files"
path = "photons"
format = "lines"
dtd = "photons.dtd"
time = "det_time"

[streams.sensors]
source = "files"
path = "sensors"
format = "lines"
root = "sensors"
time = "ts"
domains = { s = [1, 2, 3, 4] }

[streams.tickers]
source = "files"
path = "tickers"
format = "lines"
root = "tickers"
updates = true
"""
_QUERIES = ("vela", "vela_energy", "rxj", "sensors", "pressure", "movers", "board")
_ENERGY = (
    'for $p in stream("photons")/photons/photon where $p/en >= {low} and $p/en < {high} return <hit>{{ $p/en }}</hit>'
)


def show(console: Console, port: int = DEFAULT_PORT, seconds: float | None = None) -> None:
    """Show the page, for so many seconds; by default for as long as somebody is at the terminal."""
    if seconds is None and not console.is_terminal:
        seconds = SECONDS_UNSEEN
    stop = Event()
    with TemporaryDirectory(prefix="anabranch-demo-") as folder:
        site = _site(Path(folder))
        failures: list[AnabranchError] = []
        running = Thread(target=partial(_run, site, _free(port), stop, failures), name="demo")
        running.start()
        try:
            with console.status("the page is getting ready"):
                address = _address(site, running)
                _register(connect(address))
            console.print(f"[bold]The page[/]: open {address} and see the three stories go on")
            if console.is_terminal:
                console.print("Ctrl-C ends it")
                with suppress(webbrowser.Error):
                    webbrowser.open(address)
            else:
                console.print(f"it stays for {seconds:g} seconds")
            _go_on(site.parent, connect(address), running, seconds)
        except KeyboardInterrupt:
            pass
        finally:
            stop.set()
            running.join()
        if failures:
            raise failures[0]


def _site(folder: Path) -> Path:
    """A site with the three streams, and the queries of the demo."""
    for name in ("photons", "sensors", "tickers"):
        (folder / name).mkdir()
    (folder / "photons.dtd").write_text(photons_dtd(), encoding="utf-8")
    tables = [_SITE]
    for name in _QUERIES:
        (folder / f"{name}.xq").write_text(example(name), encoding="utf-8")
        tables.append(f'[subscriptions.{name}]\nquery = "{name}.xq"\n')
    site = folder / "SITE.toml"
    site.write_text("\n".join(tables), encoding="utf-8")
    return site


def _free(port: int) -> int:
    """This port, or any that is free where it is taken."""
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return 0
    return port


def _run(site: Path, port: int, stop: Event, failures: list[AnabranchError]) -> None:
    try:
        run(site, stop=stop, serve=ServiceSettings(port=port))
    except AnabranchError as error:
        failures.append(error)


def _address(site: Path, running: Thread) -> str:
    """Where the page is, once the run is ready."""
    record, waited, until = Checkpoint.at(site.parent / "state").service, Event(), monotonic() + _PATIENCE
    while running.is_alive() and monotonic() < until:
        with suppress(AnabranchError):
            address: str = durable.unsealed(record)["address"]
            if connect(address).about()["state"] == "ready":
                return address
        waited.wait(0.2)
    raise StateError("the page of the demo did not get ready", hint="try another port: anabranch demo --port 0")


def _register(site: RemoteSite) -> None:
    """Register very many subscriptions: one for each small range of energies."""
    width = 2.4 / _SUBSCRIPTIONS
    ranges = ((0.1 + number * width, 0.1 + (number + 1) * width) for number in range(_SUBSCRIPTIONS))
    site.register_all(
        [
            {"name": f"energy-{number:04}", "query": _ENERGY.format(low=f"{low:.4f}", high=f"{high:.4f}")}
            for number, (low, high) in enumerate(ranges)
        ]
    )


def _go_on(folder: Path, site: RemoteSite, running: Thread, seconds: float | None) -> None:
    """Let the streams go on, a file a second each, until the time is over or the run has ended."""
    begin, pause = monotonic(), Event()
    sky, room, exchange = _sky(), _room(site), _exchange()
    for number in count():
        now = monotonic() - begin
        if not running.is_alive() or (seconds is not None and now > seconds):
            return
        if now < _LONGEST:
            appear(folder / "photons" / f"{number:06}", next(sky))
            appear(folder / "sensors" / f"{number:06}", next(room))
            appear(folder / "tickers" / f"{number:06}", next(exchange))
        pause.wait(1.0)


def _sky() -> Iterator[list[str]]:
    """Photons without end."""
    coming: Any = photons(1 << 40, seed=7)
    while True:
        yield [next(coming) for _ in range(_PHOTONS)]


def _room(site: RemoteSite) -> Iterator[list[str]]:
    """Readings of sensors, of which one more measures in degrees Celsius every ten files, and in the end pressure."""
    random, celsius, pressure = Random(7), frozenset[int](), False
    for number in count():
        if number and number % 10 == 0 and len(celsius) < len(SENSORS):
            sensor = SENSORS[-1 - len(celsius)]
            celsius |= {sensor}
            site.accent("sensors", f'<s:accent where="s = {sensor}"><s:alter path="t" by="{CELSIUS}"/></s:accent>')
        elif number == 10 * (len(SENSORS) + 1):
            pressure = True
            site.accent("sensors", '<s:accent><s:add path="p" type="decimal"/></s:accent>')
        yield list(readings(number * 10, SensorChange("", (), celsius, pressure), random))


def _exchange() -> Iterator[list[str]]:
    """Quotes that are replaced."""
    exchange = Exchange(Random(11), {name: 40.0 + 17 * number for number, name in enumerate(STOCKS)})
    yield exchange.opening()
    while True:
        yield exchange.quoted()
