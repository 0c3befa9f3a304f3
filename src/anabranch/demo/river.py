"""The fourth act: gauges of two makers in a network, units that change, readings that are corrected, and an alert.

It is the story of docs/story.md, with the same files (`examples/river/`).
Each step brings some elements to the streams, and the network of three peers runs until they are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import as_file, files
from pathlib import Path
from shutil import copy
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from anabranch.network_run import committed, run

MAKERS = ("aqua", "brook")
STEPS = (
    "two makers, all gauges in cm",
    "gauge 3 measures in m, readings are corrected",
    "gauge 4 measures in m, too",
)
QUERIES = {"highest": "gauge", "hours": "hour", "alert": "alert"}
"""The subscriptions, and what their results are called."""


def show(console: Console) -> None:
    """Let the river run step by step, and show what is answered behind each of them."""
    console.print("[bold]A river[/]: a network of gauges, whose units change and whose readings are corrected")
    with TemporaryDirectory(prefix="anabranch-demo-") as folder:
        for told, answers in _answered(Path(folder)):
            table = Table("", "answer", title=told, title_justify="left", show_header=False, expand=True)
            for name, result in QUERIES.items():
                table.add_row(name, answers[name].replace(f"</{result}>", f"</{result}>\n").rstrip())
            console.print(table)
    console.print("done: no query was changed, and docs/story.md tells all of it")


def _answered(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """What happens in each step, and the answers behind it."""
    lay(folder)
    for number, told in enumerate(STEPS, 1):
        bring(folder, number)
        network = folder / "NETWORK.toml"
        run(network, once=True)
        yield told, {name: "".join(committed(network, name)) for name in QUERIES}


def lay(folder: Path) -> None:
    """Write the network and its queries into a folder; nothing of the streams is there yet."""
    for name in ("NETWORK.toml", *(f"{each}.xq" for each in QUERIES)):
        _copy(name, folder / name)
    for maker in MAKERS:
        (folder / maker).mkdir()


def bring(folder: Path, step: int) -> None:
    """Bring what the streams have in a step, from 1 on."""
    for maker in MAKERS:
        _copy(f"{maker}-{step}.xml", folder / maker / f"{step}.xml")


def _copy(name: str, to: Path) -> None:
    with as_file(files("anabranch").joinpath(f"examples/river/{name}")) as shipped:
        copy(shipped, to)
