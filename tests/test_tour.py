"""What docs/tutorial.md and the how-to of alerts show is run, and so is the notebook docs/tour.ipynb.

`ANABRANCH_REWRITE_DOCS=1 pytest tests/test_tour.py` writes what came out into the pages.
"""

from __future__ import annotations

import ast
import runpy
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.request import urlopen

import nbformat
import pytest
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient

from anabranch.cli import main
from anabranch.client import connect
from anabranch.running import run
from anabranch.service.settings import ServiceSettings
from anabranch.site import read_site
from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint
from test_docs import TOP, blocks, show
from test_tutorial import Session

PAGES = {"docs/tutorial.md": 9, "docs/howto/alerting.md": 1}
"""How many sessions of a shell each page has."""


class WiderSession(Session):
    """A shell that also runs scripts in Python, and asks a service, all of them in this process.

    The service is started when it is first asked; its run is one without Spark.
    """

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], held: ExitStack) -> None:
        super().__init__(folder, capsys)
        self._held = held
        self._url = ""

    def _run(self, words: Sequence[str]) -> None:
        match words:
            case ["python", script]:
                runpy.run_path(script, run_name="__main__")
            case ["anabranch", "--url", "http://127.0.0.1:8080", *more]:
                if not self._url:
                    self._url = self._held.enter_context(serving(self._folder / "SITE.toml"))
                    self._capsys.readouterr()  # where it listens
                if more[0] == "answer":
                    self._wait_for(more[1])
                main(["--url", self._url, *more])
            case _:
                super()._run(words)

    def _wait_for(self, name: str) -> None:
        """Wait for the first answer of a subscription."""
        next(iter(connect(self._url).subscription(name).answers(follow=True)))


def is_ready(url: str) -> bool:
    """Whether the run behind a service is at work."""
    with suppress(OSError), urlopen(f"{url}/readyz", timeout=10) as answer:
        return bool(answer.status == 200)
    return False


@contextmanager
def serving(file: Path) -> Iterator[str]:
    """Serve a site at any port; gives its address."""
    stop, record = Event(), Checkpoint.at(read_site(file).checkpoint).service
    thread = Thread(target=lambda: run(file, stop=stop, serve=ServiceSettings(port=0), local=True))
    thread.start()
    try:
        while not (durable.exists(record) and is_ready(durable.unsealed(record)["address"])):
            assert thread.is_alive(), "the service has ended"
            stop.wait(0.02)
        yield durable.unsealed(record)["address"]
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("name", PAGES)
def test_sessions_of_a_page(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each command prints what the page shows."""
    monkeypatch.chdir(tmp_path)
    page = list(blocks(TOP / name))
    for block in page:
        if "file" in block.options:
            file = tmp_path / block.options["file"]
            file.parent.mkdir(exist_ok=True)
            file.write_text(f"{block.text}\n")
    shown = [each for each in page if each.kind == "console"]
    assert len(shown) == PAGES[name]
    with ExitStack() as held:
        session = WiderSession(tmp_path, capsys, held)
        for block in shown:
            commands = [line for line in block.text.splitlines() if line.startswith("$ ")]
            show(block, "\n".join(line for each in commands for line in (each, *session.lines(each[2:]))))


# --- the notebook -----------------------------------------------------------------------------------------

NOTEBOOK = TOP / "docs/tour.ipynb"


def read_notebook() -> Any:
    """The notebook as it is kept."""
    return nbformat.reads(NOTEBOOK.read_text(encoding="utf-8"), as_version=4)  # type: ignore[no-untyped-call]


def shown_as(notebook: Any, kind: str) -> list[str]:
    """What the cells of a notebook that was executed show, of one kind."""
    outputs = [each for cell in notebook.cells if cell.cell_type == "code" for each in cell.outputs]
    return [each["data"][kind] for each in outputs if kind in each.get("data", ())]


@pytest.mark.mass
def test_the_tour(tmp_path: Path) -> None:
    """The notebook runs as it is in a kernel of its own: a subscription, a display, an accent, and what is shared."""
    notebook = read_notebook()
    kernel = KernelManager(transport="ipc", kernel_name="python3", connection_file=str(tmp_path / "kernel.json"))
    client = NotebookClient(notebook, km=kernel, timeout=120, resources={"metadata": {"path": str(tmp_path)}})
    try:
        client.execute()
    finally:  # a kernel that was handed to a client is its owner's to end
        kernel.shutdown_kernel(now=True)
        kernel.context.destroy()
    shown = shown_as(notebook, "text/plain")
    lists = [ast.literal_eval(each) for each in shown if each.startswith("[")]
    accent = '<s:accent xmlns:s="urn:anabranch:stream" where="sensor = 2">'
    assert lists == [
        [f"<warm><sensor>{sensor}</sensor><t>{t}</t></warm>" for sensor, t in ((2, 71), (1, 70), (2, 73))],
        ["<mean>66</mean>", "<mean>67</mean>"],
        [
            f'{accent}<s:alter path="t" by=". * 5 div 9 - 160 div 9"/></s:accent>',
            "<warm><sensor>2</sensor><t>25</t></warm>",
        ],
    ]
    assert "'<mean>65.25</mean>'" in shown  # (66 + 68 + 77 + 50) / 4
    rich = shown_as(notebook, "text/html")
    assert any("passes it on" in each and "reckons with it" in each for each in rich)
    (picture,) = [each for each in rich if "<svg" in each]
    assert all(name in picture for name in ("warm", "hot", "sensors"))


def test_the_tour_is_kept_without_outputs() -> None:
    """What stands in the repository has no outputs and no counts, so a difference of it is one of the tour."""
    cells = [each for each in read_notebook().cells if each.cell_type == "code"]
    assert len(cells) > 8
    assert [each.source for each in cells if each.outputs or each.execution_count is not None] == []
