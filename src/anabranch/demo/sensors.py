"""The second act: sensors change their unit one by one, then measure pressure as well, and no query is restarted.

It is the example of the accents paper, figure 1: the same readings come twice, once with accents and once without, and
the same query averages both; so the table shows what a query makes of them that is not told.
Each file is ten seconds of readings; accents are published between files, while the queries run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from queue import Empty, SimpleQueue
from random import Random
from tempfile import TemporaryDirectory
from typing import TypeAlias

from rich.console import Console, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table

from anabranch.demo.stage import appear, example
from anabranch.engine.handles import LiveSubscription, Stream
from anabranch.engine.live import Engine
from anabranch.engine.publishing import publish
from anabranch.engine.reports.evolution import StreamCourse
from anabranch.spark.epoch.metrics import Metrics

SENSORS = (1, 2, 3, 4)
SECONDS, EVERY = 10, 2
"""How long a file and a window are, and how often a sensor reports."""
CELSIUS = "(. - 32) * 5 div 9"
_PATIENCE = 60
"""Seconds for an epoch that takes less than one."""


@dataclass(frozen=True, slots=True)
class SensorChange:
    """What happens before a file of readings: accents, and from then on which sensors do what."""

    told: str
    accents: tuple[str, ...]
    celsius: frozenset[int] = frozenset()
    pressure: bool = False


def _course() -> Iterator[SensorChange]:
    """The whole evening, file by file."""
    yield SensorChange("all sensors measure in °F", ())
    yield SensorChange("", ())
    for number in range(1, len(SENSORS) + 1):
        switched = frozenset(SENSORS[-number:])
        accent = f'<s:accent where="s = {min(switched)}"><s:alter path="t" by="{CELSIUS}"/></s:accent>'
        yield SensorChange(f"sensor {min(switched)} measures in °C", (accent,), switched)
    yield SensorChange("", (), frozenset(SENSORS))
    added = '<s:accent><s:add path="p" type="decimal"/></s:accent>'
    yield SensorChange("all sensors measure pressure, too", (added,), frozenset(SENSORS), pressure=True)
    yield SensorChange("", (), frozenset(SENSORS), pressure=True)
    yield SensorChange("", (), frozenset(SENSORS), pressure=True)


def show(console: Console) -> None:
    """Let the sensors evolve, and show what the queries answer meanwhile."""
    console.print("[bold]Sensors that evolve[/]: accents are published while the queries run")
    with TemporaryDirectory(prefix="anabranch-demo-") as folder:
        _show(Path(folder), console)
    if not console.is_terminal:
        console.line()
    console.print("done: no query was changed or restarted, and every average is in the unit that its answer says")


def _show(folder: Path, console: Console) -> None:
    epochs: SimpleQueue[Metrics] = SimpleQueue()
    with Live(console=console, refresh_per_second=8) as live, Engine(shards=1, on_epoch=epochs.put) as engine:
        told, untold = (_stream(engine, name, folder / name) for name in ("sensors", "untold"))
        asked = (
            engine.subscribe(example("sensors")),
            engine.subscribe(example("sensors").replace('stream("sensors")', 'stream("untold")')),
            engine.subscribe(example("pressure")),
        )
        engine.start()
        random = Random(7)
        written = read = 0
        happened: list[str] = []
        for number, act in enumerate(_course()):
            for accent in act.accents:
                publish(StreamCourse(told.source, told.checkpoint), accent, 0)
            file = list(readings(number * SECONDS, act, random))
            for name in (untold.name, told.name):
                appear(folder / name / f"{number:04}", file)
            written += 2 * len(file)
            happened.append(act.told)
            while read < written:
                read += _next(epochs, engine)
            live.update(_view(asked, happened))


def _stream(engine: Engine, name: str, folder: Path) -> Stream:
    folder.mkdir()
    return engine.stream(name, folder, format="lines", root="sensors", time="ts", domains={"s": SENSORS})


def _next(epochs: SimpleQueue[Metrics], engine: Engine) -> int:
    """How many items the next epoch has read."""
    try:
        return epochs.get(timeout=_PATIENCE).items
    except Empty:
        engine.wait()  # it has failed, and says why
        raise


def readings(start: int, act: SensorChange, random: Random) -> Iterator[str]:
    """The readings of one file, which begins at this second."""
    for second in range(start, start + SECONDS, EVERY):
        for sensor in SENSORS:
            fahrenheit = 68 + 2 * sensor + random.randrange(-9, 10) / 10
            value = (fahrenheit - 32) * 5 / 9 if sensor in act.celsius else fahrenheit
            pressure = f"<p>{1013 + random.randrange(-20, 21) / 10}</p>" if act.pressure else ""
            yield f"<reading><ts>{second}</ts><s>{sensor}</s><t>{value:.2f}</t>{pressure}</reading>"


# --- what is shown ------------------------------------------------------------------------------------------

_Averages: TypeAlias = Mapping[int, tuple[float, bool]]
"""By the begin of a window: the average, and whether an accent has come out before it."""
_RESULT = re.compile(r"<s:alter|<from>([^<]*)</from><[tp]>([^<]*)</")


def _averages(subscription: LiveSubscription) -> _Averages:
    found: dict[int, tuple[float, bool]] = {}
    altered = False
    for each in _RESULT.finditer(subscription.answer()):
        if each[1] is None:
            altered = True
        else:
            found[int(each[1])] = float(each[2]), altered
    return found


def _view(asked: Sequence[LiveSubscription], happened: Sequence[str]) -> RenderableType:
    """What the average that is told of accents answers, the one that is not, and the pressure."""
    told, untold, pressure = map(_averages, asked)
    table = Table("seconds", "what happens", expand=True)
    for column in ("average without accents", "average", "pressure"):
        table.add_column(column, justify="right")
    for start, what in zip(count(0, SECONDS), happened, strict=False):
        cells = (
            _cell(untold.get(start), lambda value, _: f"[red]{value:.1f} ?[/]" if value < 68 else f"{value:.1f}"),
            _cell(told.get(start), lambda value, altered: f"[green]{value:.1f} {'°C' if altered else '°F'}[/]"),
            _cell(pressure.get(start), lambda value, _: f"{value:.1f}"),
        )
        table.add_row(f"{start} to {start + SECONDS}", what, *cells)
    return Panel(table, title="anabranch", border_style="cyan")


def _cell(found: tuple[float, bool] | None, text: Callable[[float, bool], str]) -> str:
    return "" if found is None else text(*found)
