"""Killed at any moment, a run goes on as if nothing had been: kill after kill, no answer differs by a byte."""

from __future__ import annotations

import faulthandler
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from anabranch.cli import main
from anabranch.engine.finite import answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import prepare
from anabranch.site import read_site
from faults.harness import LARGE, Expected, Machine, Tally, chain, schedule
from faults.site import BY_ARRIVAL, QUERIES, Feed, Site, StoredSite, twins_in_order
from mass import Mass
from s3 import BUCKET, S3Server

S3_KILLS = 25


@pytest.mark.kills
@pytest.mark.spark
def test_no_kill_shows_in_an_answer(mass: Mass, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Answers, sinks, tables and what was set aside are those of an undisturbed run, and these are the reference's.

    One chain of runs has its checkpoint and sinks on the disk; the other in an object store, where each run goes on
    from a copy, with nothing else that the one before has left.
    In the one, queries over updates are divided into strands; in the other, those that see the same entries share a
    history.
    Two at a time, for a start keeps hardly more than one core busy.
    """
    count = mass.amount(200, budget=2)  # one of each chain
    store = tmp_path / "store"
    stored = StoredSite.stored(tmp_path / "chain-1", store, f"file+object://{store}")
    check_kills(count, mass.seed, [Site.make(tmp_path / "chain-0"), stored], tmp_path, capsys)


@pytest.mark.s3
@pytest.mark.spark
def test_no_kill_shows_in_s3(
    s3_server: S3Server, seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same with a real server."""
    name = tmp_path.name
    store, address = s3_server.data / BUCKET / name, f"s3://{BUCKET}/{name}"
    sites = [
        StoredSite.stored(tmp_path / f"chain-{number}", store / str(number), f"{address}/{number}")
        for number in range(2)
    ]
    check_kills(S3_KILLS, seed, sites, tmp_path, capsys)


def check_kills(
    count: int, seed: int, sites: Sequence[Site], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Run sites through so many kills together."""
    faulthandler.cancel_dump_traceback_later()  # many processes, of which each has its own limit
    kills = schedule(count, seed)
    feed = Feed.of(-(-count // len(sites)) + 1, seed)
    machine = Machine(tmp_path / "classes.jsa")
    undisturbed = Site.make(tmp_path / "undisturbed")
    undisturbed.configure(LARGE, shards=2)
    empty = undisturbed.answers()
    feed.lay(undisturbed.folder, range(len(feed.parts)))
    machine.run_to_the_end(undisturbed)
    expected = Expected(undisturbed.answers(), undisturbed.sinks(), empty)
    check_by_reference(undisturbed)

    def run(number: int) -> tuple[Site, Tally]:
        return chain(machine, sites[number], feed, kills[number :: len(sites)], seed + number, expected)

    with ThreadPoolExecutor(len(sites)) as threads:
        ended = list(threads.map(run, range(len(sites))))

    tallies = [tally for _, tally in ended]
    for site, _ in ended:
        for name in QUERIES:
            capsys.readouterr()
            assert main(["answer", str(site.file), name]) == 0
            if name not in BY_ARRIVAL:
                assert capsys.readouterr().out == expected.answers[name] + "\n", f"{site.folder.name}, {name}"
        answers, sinks = site.answers(), site.sinks()
        assert twins_in_order(answers, whole=True)
        for name in BY_ARRIVAL:
            assert len(answers[name]) == len(expected.answers[name])
            assert sinks[name].decode() == answers[name].removesuffix("</r>")
        assert sinks == {**expected.sinks, **{name: sinks[name] for name in BY_ARRIVAL}}
        for name in ("table", "changes"):
            assert site.table(name) == undisturbed.table(name)
        assert site.letters() == undisturbed.letters()
        assert site.late() == undisturbed.late()
        assert site.epochs() == list(range(len(site.epochs())))
    with capsys.disabled():
        print(f"\n{report(tallies, expected)}")


def check_by_reference(site: Site) -> None:
    """A run to the end has answered what the reference engine answers over all that is there."""
    inputs = Inputs(tuple(read_site(site.file).streams.values()))
    with answering([prepare(name, text, inputs, "reference") for name, text in QUERIES.items()], inputs) as law:
        assert site.answers() == {name: "".join(pieces) for name, pieces in law.answers.items()}
        assert site.letters() == sorted(letter.to_json() for letter in law.dead)
        assert len(site.late()) == law.late > 0


def report(tallies: list[Tally], expected: Expected) -> str:
    """The counts, for whoever watches."""
    kills = sum((tally.kills for tally in tallies), Counter[str]())
    epochs, runs = sum(tally.epochs for tally in tallies), sum(tally.runs for tally in tallies)
    size = sum(map(len, expected.answers.values()))
    answers = len(tallies) * len(expected.answers)
    lines = [
        f"crash harness: {kills.total()} kills in {len(tallies)} chains of runs, {runs} runs, {epochs} epochs",
        f"  no difference in {answers} answers ({size:,} characters in each chain), sinks, dead letters and late items",
        *(f"  {count:3} {kind}" for kind, count in sorted(kills.items())),
    ]
    return "\n".join(lines)
