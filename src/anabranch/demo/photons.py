"""The first act: photons are made, two subscriptions share one pass over them on Spark, and it is shown live."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from anabranch.demo.stage import example
from anabranch.engine.finite import answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import prepare
from anabranch.spark.epoch.finite import RunProgress
from anabranch.stream.photons import photons, photons_dtd
from anabranch.stream.reading.source import Source
from anabranch.stream.schema import Schema
from anabranch.stream.settings import Settings

QUERIES = ("vela", "rxj")
EPOCH_BYTES = 2 << 20


def show(count: int, console: Console) -> None:
    """Make `count` photons, answer the queries over them, and show how it goes."""
    texts = {name: example(name) for name in QUERIES}
    with TemporaryDirectory(prefix="anabranch-demo-") as folder:
        path = Path(folder) / "photons.lines"
        with console.status(f"making {count:,} photons"):
            path.write_text("".join(f"{item}\n" for item in photons(count, seed=7)), encoding="utf-8")
        inputs = Inputs([Source("photons", path, schema=Schema.from_dtd(photons_dtd()))])
        prepared = [prepare(name, text, inputs, "spark") for name, text in texts.items()]
        size = path.stat().st_size
        console.print(f"[bold]{count:,} photons[/] ({size / 1e6:.1f} MB) and {len(texts)} subscriptions on one trunk")
        begin = monotonic()
        with (
            Live(
                Text("Spark is starting ...", style="dim"), console=console, refresh_per_second=8, transient=False
            ) as live,
            answering(
                prepared,
                inputs,
                Settings(epoch_bytes=EPOCH_BYTES),
                on_progress=lambda now: live.update(_view(now, texts)),
            ) as run,
        ):
            seconds = monotonic() - begin
            sizes = {name: sum(map(len, answer)) for name, answer in run.answers.items()}
    if not console.is_terminal:
        console.line()  # the display ends its last line on a terminal only
    for name, length in sizes.items():
        console.print(f"  [green]{name}[/]: an answer of {length:,} characters")
    console.print(
        f"done: {run.items:,} items in {seconds:.1f} s, Spark's start included, {len(list(run.dead))} set aside"
    )


def _view(now: RunProgress, texts: Mapping[str, str]) -> RenderableType:
    bar = ProgressBar(total=max(now.bytes_total, 1), completed=now.bytes_read, width=50)
    head = Table.grid(padding=(0, 2))
    head.add_row(bar, f"{now.items:,} items", f"epoch {now.epochs}", f"{now.dead_letters} set aside")
    table = Table("subscription", "answers", "the latest", expand=True)
    for name in texts:
        sample = now.samples.get(name, "")
        table.add_row(name, f"{now.answers[name]:,}", Text(sample, overflow="ellipsis", no_wrap=True))
    return Panel(Group(head, table), title="anabranch", border_style="cyan")
