"""The session that docs/network.md shows is run: each command of its `console` blocks, with what it prints.

Its network is that of the page, and in the place of Spark, peers run in this process.
`ANABRANCH_REWRITE_DOCS=1 pytest tests/test_network_page.py` writes what came out into the page, and draws its map.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from random import Random
from shutil import copy

import pytest

from anabranch import network_run
from anabranch.cli import main
from anabranch.network.description import Network
from anabranch.peers.running import RunningNetwork
from anabranch.spark.plan.wanted import Epoch
from anabranch.stream.photons import photons_dtd
from peers.working import bare_network
from test_docs import REWRITE, TOP, blocks, show

PAGE = TOP / "docs/network.md"
MAP = TOP / "docs/images/figure-1.svg"


def bare(
    network: Network, folder: Path, on_epoch: Callable[[str, Epoch], None], spark: object = None
) -> RunningNetwork:
    """Peers that run in this process, without Spark."""
    return bare_network(network, folder, Random(1), (1 << 20,))


@pytest.mark.mass
def test_the_session_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The network is planned, runs, answers, and is drawn."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(network_run, "on_spark", bare)
    for folder in ("in", "other"):
        (tmp_path / folder).mkdir()
    (tmp_path / "photons.dtd").write_text(photons_dtd())
    for name in ("q1", "q2", "q3", "q4", "meeting"):
        copy(TOP / f"docs/queries/{name}.xq", tmp_path)
    page = list(blocks(PAGE))
    network, pairs = (each.text for each in page if not each.kind and "[network]" in each.text)
    (tmp_path / "NETWORK.toml").write_text(network)
    (tmp_path / "PAIRS.toml").write_text(pairs)
    for block in (each for each in page if each.kind == "console"):
        lines: list[str] = []
        for command in (line for line in block.text.splitlines() if line.startswith("$ ")):
            assert main(shlex.split(command)[2:]) == 0
            shown = capsys.readouterr()
            lines += [command, *(shown.out + shown.err).splitlines()]
        show(block, "\n".join(lines))
    if REWRITE:
        MAP.write_text((tmp_path / "map.svg").read_text())
    assert MAP.read_text() == (tmp_path / "map.svg").read_text(), "the map on the page is another one"
