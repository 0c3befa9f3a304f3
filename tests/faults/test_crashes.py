"""Killed at any moment, a run goes on as if nothing had been: kill after kill, no answer differs by a byte."""

from __future__ import annotations

import faulthandler
import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from anabranch.cli import main
from faults.harness import LARGE, Expected, Machine, Tally, chain, schedule
from faults.site import QUERIES, Feed, Site

KILLS = int(os.environ.get("ANABRANCH_KILLS", "25"))
SEED = int(os.environ.get("ANABRANCH_SEED", "1"))
CHAINS = 2
"""At a time, on checkpoints of their own: a start keeps hardly more than one core busy."""


@pytest.mark.spark
def test_no_kill_shows_in_an_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Answers, sinks, tables and dead letters are those of an undisturbed run, and these are the reference's."""
    faulthandler.cancel_dump_traceback_later()  # many processes, of which each has its own limit
    kills = schedule(KILLS, SEED)
    feed = Feed.of(-(-KILLS // CHAINS) + 1, SEED)
    machine = Machine(tmp_path / "classes.jsa")
    undisturbed = Site.make(tmp_path / "undisturbed")
    undisturbed.set_epochs(LARGE)
    empty = undisturbed.answers()
    feed.lay(undisturbed.folder, range(len(feed.parts)))
    machine.run_to_the_end(undisturbed)
    expected = Expected(undisturbed.answers(), undisturbed.sinks(), empty)
    assert expected.answers == reference(undisturbed, tmp_path / "reference")
    assert undisturbed.letters() == sorted((tmp_path / "reference" / "dead").read_text().splitlines())

    sites = [Site.make(tmp_path / f"chain-{number}") for number in range(CHAINS)]

    def run(number: int) -> Tally:
        return chain(machine, sites[number], feed, kills[number::CHAINS], SEED + number, expected)

    with ThreadPoolExecutor(CHAINS) as threads:
        tallies = list(threads.map(run, range(CHAINS)))

    for site in sites:
        for name in QUERIES:
            capsys.readouterr()
            assert main(["answer", str(site.file), name]) == 0
            assert capsys.readouterr().out == expected.answers[name] + "\n", f"{site.folder.name}, {name}"
        assert site.sinks() == expected.sinks
        assert site.table() == undisturbed.table()
        assert site.letters() == undisturbed.letters()
        assert site.epochs() == list(range(len(site.epochs())))
    with capsys.disabled():
        print(f"\n{report(tallies, expected)}")


def reference(site: Site, out: Path) -> dict[str, str]:
    """The answers of the reference engine, without the newline behind them; the dead letters are beside them."""
    queries = [str(site.folder / f"{name}.xq") for name in QUERIES]
    streams = [f"photons={site.folder / 'in' / 'photons'}", f"survey={site.folder / 'in' / 'survey.xml'}"]
    options = [option for stream in streams for option in ("--stream", stream)]
    options += ["--dtd", f"photons={site.folder / 'photons.dtd'}", "--dead-letter", str(out / "dead")]
    out.mkdir()
    assert main(["query", *queries, *options, "--engine", "reference", "--out", str(out)]) == 0
    return {name: (out / f"{name}.xml").read_text(encoding="utf-8").removesuffix("\n") for name in QUERIES}


def report(tallies: list[Tally], expected: Expected) -> str:
    """The counts, for whoever watches."""
    kills = sum((tally.kills for tally in tallies), Counter[str]())
    epochs, runs = sum(tally.epochs for tally in tallies), sum(tally.runs for tally in tallies)
    size = sum(map(len, expected.answers.values()))
    answers = len(tallies) * len(expected.answers)
    lines = [
        f"crash harness: {kills.total()} kills in {len(tallies)} chains of runs, {runs} runs, {epochs} epochs",
        f"  no difference in {answers} answers ({size:,} characters in each chain), sinks and dead letters",
        *(f"  {count:3} {kind}" for kind, count in sorted(kills.items())),
    ]
    return "\n".join(lines)
