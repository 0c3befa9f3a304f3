"""The third act: a ticker whose quotes are replaced all the time, and two answers that are corrected in place.

One is query 2 of the history paper, the stocks that have just risen; the other shows all of them with their past, which
is what the curves are drawn from.
Each file is a few seconds of the exchange; the next one comes when the last quote of it is on display.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import monotonic, sleep

from rich.console import Console, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from anabranch.demo.stage import appear, example
from anabranch.engine.live import Engine

STOCKS = ("ACME", "Globex", "Hooli", "Initech", "Soylent", "Umbrella")
FILES, UNSEEN = 24, 8
"""How many files of quotes there are, and how many where only the last display is printed."""
_PAUSE, _LONGEST = 0.35, 15.0
"""Seconds that whoever looks on gets for each of them, and how many all of it may take on a slow machine."""
_STREAM = 'xmlns:s="urn:anabranch:stream"'
_BARS = "▁▂▃▄▅▆▇█"


@dataclass(slots=True)
class Exchange:
    """Makes quotes: most change a little, some jump."""

    random: Random
    quotes: dict[str, float]
    now: int = 0

    def opening(self) -> list[str]:
        """All stocks, each with a region for its quote, in the first second."""
        self.now += 1
        return [
            f'<ticker {_STREAM} s:at="{self.now}"><name>{name}</name>'
            f'<s:mutable id="{name}"><quote>{quote:.2f}</quote></s:mutable></ticker>'
            for name, quote in self.quotes.items()
        ]

    def quoted(self) -> list[str]:
        """What is replaced in some seconds; no two quotes have the same time."""
        changed = [name for name in self.quotes if self.random.random() < 0.7] or [STOCKS[0]]
        return [self._replaced(name) for name in changed]

    def _replaced(self, name: str) -> str:
        self.now += 1
        jumps = self.random.random() < 0.25
        factor = self.random.choice((0.86, 1.12, 1.18)) if jumps else 1 + self.random.uniform(-0.04, 0.04)
        quote = self.quotes[name] = round(self.quotes[name] * factor + 0.01, 2)
        return f'<s:replace {_STREAM} target="{name}" at="{self.now}"><quote>{quote:.2f}</quote></s:replace>'


def show(console: Console) -> None:
    """Let quotes change, and show what the queries make of them."""
    console.print("[bold]A ticker[/]: quotes are replaced, and the answers are corrected in place")
    with TemporaryDirectory(prefix="anabranch-demo-") as folder:
        updates = _show(Path(folder), console)
    if not console.is_terminal:
        console.line()
    console.print(f"done: {updates} quotes were replaced; of each, 'movers' has kept two, and 'board' twenty-four")


def _show(folder: Path, console: Console) -> int:
    exchange = Exchange(Random(11), {name: 40.0 + 17 * number for number, name in enumerate(STOCKS)})
    coming = _files(exchange, FILES if console.is_terminal else UNSEEN)
    updates, begin = 0, monotonic()
    with Live(console=console, auto_refresh=False) as live, Engine(shards=1, trigger_ms=50) as engine:
        engine.stream("tickers", folder, format="lines", root="tickers", updates=True)
        movers = engine.subscribe(example("movers"), name="movers")
        board = engine.subscribe(example("board"), name="board").display()
        appear(folder / "0000", next(coming))
        for moment in board:
            if moment.at < exchange.now:
                continue  # more of the file is to come
            live.update(_view(board.text, movers.answer(), exchange.now), refresh=True)
            lines = next(coming, None)
            if lines is None or (console.is_terminal and monotonic() - begin > _LONGEST):
                break
            if console.is_terminal:
                sleep(_PAUSE)
            updates += len(lines)
            appear(folder / f"{exchange.now:04}", lines)
    return updates


def _files(exchange: Exchange, count: int) -> Iterator[list[str]]:
    """The stocks, and then so many files of quotes, each made when it is asked for."""
    yield exchange.opening()
    for _ in range(count):
        yield exchange.quoted()


# --- what is shown ------------------------------------------------------------------------------------------

_STOCK = re.compile(r"<stock><name>([^<]*)</name>(.*?)</stock>")
_NAME = re.compile(r"<name>([^<]*)</name>")
_QUOTE = re.compile(r"<quote>([^<]*)</quote>")


def _view(board: str, movers: str, now: int) -> RenderableType:
    """A row for each stock, those that have just risen marked in the order of their rise."""
    risen = _NAME.findall(movers)
    table = Table("stock", expand=True)
    for column in ("quote", "since last time", "risen by a tenth"):
        table.add_column(column, justify="right")
    table.add_column("its past")
    for name, versions in _STOCK.findall(board):
        quotes = [float(each) for each in _QUOTE.findall(versions)]
        rank = f"[bold green]{risen.index(name) + 1}.[/]" if name in risen else ""
        table.add_row(name, f"{quotes[0]:.2f}", _change(quotes), rank, _curve(quotes))
    return Panel(table, title="anabranch", subtitle=f"{now} s", border_style="cyan")


def _change(quotes: Sequence[float]) -> Text:
    if len(quotes) < 2:
        return Text("")
    percent = 100 * (quotes[0] - quotes[1]) / quotes[1]
    sign, style = ("▲", "green") if percent >= 0 else ("▼", "red")
    return Text(f"{sign} {abs(percent):.1f} %", style)


def _curve(quotes: Sequence[float]) -> Text:
    """The versions of a quote, the oldest first."""
    least, most = min(quotes), max(quotes)
    span = (most - least) or 1.0
    bars = (_BARS[round((len(_BARS) - 1) * (each - least) / span)] for each in reversed(quotes))
    return Text("".join(bars), "cyan", no_wrap=True)
