"""The session that docs/evolution.md shows is run: each command of its `console` blocks, with what it prints.

Its site and its queries are those of the page; in the place of Spark, a bare trunk does what `anabranch run` would.
`ANABRANCH_REWRITE_DOCS=1 pytest tests/test_tutorial.py` writes what came out into the page.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from anabranch.cli import main
from anabranch.site import read_site
from spark.bare import BareTrunk
from test_docs import TOP, blocks, show

PAGE = TOP / "docs/evolution.md"
QUERIES = {"average": "avg($w/t)", "warm": "<warm>"}
"""By name what the first query on the page holds that is called so."""


class Session:
    """A shell that knows what the page needs, in a folder of its own."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._capsys = capsys
        self._trunk: BareTrunk | None = None

    def lines(self, command: str) -> list[str]:
        """What a command prints."""
        self._run(shlex.split(command))
        shown = self._capsys.readouterr()
        return (shown.out + shown.err).splitlines()

    def _run(self, words: Sequence[str]) -> None:
        match words:
            case ["echo", text, ">>", file]:
                with (self._folder / file).open("a") as opened:
                    opened.write(f"{text}\n")
            case ["anabranch", "run", "SITE.toml", "--once"]:
                site = read_site(Path("SITE.toml"))
                if self._trunk is None:
                    sources = list(site.streams.values())
                    self._trunk = BareTrunk(site.checkpoint, sources, Random(1), finite=False)
                    self._trunk.documents = site.documents
                texts = {name: each.text for name, each in site.subscriptions.items()}
                self._trunk.run(texts, (1 << 20,), (1,))
            case ["anabranch", *arguments]:
                main(arguments)
            case _:
                raise AssertionError(f"no command: {words}")


def test_the_session_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Readings come, accents are published, the average goes on in the other unit, and the history tells of it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    page = list(blocks(PAGE))
    (site,) = (each for each in page if not each.kind and each.text.startswith("[engine]"))
    (tmp_path / "SITE.toml").write_text(site.text)
    for name, part in QUERIES.items():
        text = next(each.text for each in page if each.kind == "xquery" and part in each.text)
        (tmp_path / f"{name}.xq").write_text(text)
    session = Session(tmp_path, capsys)
    shown = [each for each in page if each.kind == "console"]
    assert shown
    for block in shown:
        commands = [line for line in block.text.splitlines() if line.startswith("$ ")]
        show(block, "\n".join(line for each in commands for line in (each, *session.lines(each[2:]))))
