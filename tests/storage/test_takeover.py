"""Two runs on one checkpoint in an object store: one wins, the other is told, and no answer shows it.

Nobody sleeps here: where two runs meet, the second is run to a chosen point from within the first.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from anabranch import Engine
from anabranch.errors import StateError
from anabranch.spark.checkpoint import durable, runs
from anabranch.spark.checkpoint.crash import POINTS
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifest, Manifests
from anabranch.spark.checkpoint.runs import TakenRun, take_over
from anabranch.spark.epoch import trunk as epochs
from anabranch.storage import Location
from s3 import S3Server

PLAN = "000001/none"


@pytest.fixture(params=["objects on a disk", pytest.param("s3", marks=pytest.mark.s3)])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    """A folder for a checkpoint."""
    if request.param == "s3":
        server: S3Server = request.getfixturevalue("s3_server")
        return server.folder(tmp_path.name) / "state"
    return Location.of(f"file+object://{tmp_path}/state")


@pytest.fixture
def checkpoint(folder: Location) -> Checkpoint:
    """An empty one."""
    return Checkpoint.make(folder)


def published(checkpoint: Checkpoint) -> list[tuple[int, int]]:
    """The epochs, each with the run that published it."""
    return [(each.epoch, each.run) for each in Manifests(checkpoint.manifests).since(0)]


# --- the protocol -------------------------------------------------------------------------------------------


def test_runs_that_start_together_have_different_numbers(checkpoint: Checkpoint) -> None:
    """Both have seen the same runs before them; the second to create its record takes the next number."""
    listed: list[int] = []
    names = durable.names

    def together(where: Location, **more: object) -> object:
        found = names(where)
        if where.name == "runs" and len(listed) < 2:
            listed.append(len(found))
            if len(listed) == 1:  # another run lists and takes before we do
                assert TakenRun.take(checkpoint, os.getpid()).run == 1
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(durable, "names", together)
        assert TakenRun.take(checkpoint, os.getpid()).run == 2
    assert listed == [0, 0]
    assert TakenRun.take(checkpoint, os.getpid()).run == 3


def test_a_new_run_publishes_an_epoch_that_has_read_nothing(checkpoint: Checkpoint) -> None:
    """It goes on from what the last one has published, and the last one can publish no more."""
    first = take_over(checkpoint, 1, PLAN)
    manifests = Manifests(checkpoint.manifests)
    mine = Manifest(1, 1, "000001/p", {"s/0": {"file": 0, "position": 5}}, {}, (), 7, 5, ("s",))
    assert manifests.publish(mine)
    second = take_over(checkpoint, 2, "000002/none")
    assert (first.epoch, second.epoch, second.run) == (0, 2, 2)
    assert (second.plan, second.offsets, second.begun) == (mine.plan, mine.offsets, mine.begun)
    assert (second.items, second.bytes_read, second.segments) == (0, 0, ())
    assert not manifests.publish(Manifest(2, 1, "000001/p", {}, {}, (), 9, 9))
    assert manifests.load(2) == second


def test_a_stale_run_publishes_first(checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its epoch counts: the new run goes on behind it."""
    take_over(checkpoint, 1, PLAN)
    stale = Manifest(1, 1, "000001/p", {}, {}, (), 3, 3)
    _before_the_next(monkeypatch, lambda: Manifests(checkpoint.manifests).publish(stale))
    assert take_over(checkpoint, 2, PLAN).epoch == 2
    assert published(checkpoint) == [(0, 1), (1, 1), (2, 2)]
    assert Manifests(checkpoint.manifests).load(2).plan == stale.plan


def test_of_two_new_runs_the_one_with_the_higher_number_wins(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever publishes first: the other one gives up at once, or with its first epoch."""
    take_over(checkpoint, 1, PLAN)
    _before_the_next(monkeypatch, lambda: take_over(checkpoint, 3, PLAN))  # the later one is quicker
    with pytest.raises(StateError, match="another run \\(number 3"):
        take_over(checkpoint, 2, PLAN)
    assert published(checkpoint) == [(0, 1), (1, 3)]
    _before_the_next(monkeypatch, lambda: take_over(checkpoint, 4, PLAN))  # the earlier one is quicker
    assert take_over(checkpoint, 5, PLAN).epoch == 3
    assert published(checkpoint) == [(0, 1), (1, 3), (2, 4), (3, 5)]
    assert not Manifests(checkpoint.manifests).publish(Manifest(3, 4, PLAN, {}, {}, (), 0, 0))


def test_a_number_that_was_taken_and_not_used_does_no_harm(checkpoint: Checkpoint) -> None:
    """Killed between the two steps, a run has changed nothing; the next has the next number."""
    take_over(checkpoint, TakenRun.take(checkpoint, os.getpid()).run, PLAN)
    assert TakenRun.take(checkpoint, os.getpid()).run == 2
    assert published(checkpoint) == [(0, 1)]
    assert take_over(checkpoint, TakenRun.take(checkpoint, os.getpid()).run, PLAN).run == 3


def test_an_answer_that_was_lost_is_no_other_run(checkpoint: Checkpoint) -> None:
    """A put that came through although its answer did not is tried again by the client, and finds its own bytes."""
    manifest = Manifest(0, 1, PLAN, {}, {}, (), 0, 0)
    assert Manifests(checkpoint.manifests).publish(manifest)
    assert Manifests(checkpoint.manifests).publish(manifest)
    assert not Manifests(checkpoint.manifests).publish(Manifest(0, 2, PLAN, {}, {}, (), 0, 0))


def _before_the_next(patch: pytest.MonkeyPatch, meanwhile: Callable[[], object]) -> None:
    """Let something happen between the look for the newest manifest and the next attempt to publish one."""
    publish = Manifests.publish

    def later(self: Manifests, manifest: Manifest) -> bool:
        patch.setattr(Manifests, "publish", publish)
        meanwhile()
        return publish(self, manifest)

    patch.setattr(Manifests, "publish", later)


# --- whole runs ---------------------------------------------------------------------------------------------

QUERIES = {
    "all": '<all>{ stream("s")/root/p }</all>',
    "threes": '<r>{ for $w in stream("s")/root/p |count 3 step 2| return <w>{ $w }</w> }</r>',
}
"""One that remembers nothing, and one that does."""


@dataclass(frozen=True, slots=True)
class Place:
    """A stream on the disk, a checkpoint and sinks in an object store; each `run` is an engine of its own."""

    top: Path
    checkpoint: Location

    def grow(self, start: int, end: int) -> None:
        (self.top / "in").mkdir(exist_ok=True)
        (self.top / "in" / f"{start:03}").write_text("".join(f"<p>{number}</p>\n" for number in range(start, end)))

    def run(self, epoch_bytes: int = 50) -> dict[str, str]:
        with Engine(local=True, checkpoint=self.checkpoint, once=True, epoch_bytes=epoch_bytes) as engine:
            engine.stream("s", self.top / "in", format="lines", root="root")
            found = [engine.subscribe(text, name, sink=self.sink(name)) for name, text in QUERIES.items()]
            engine.wait()
            return {each.name: each.answer() for each in found}

    def sink(self, name: str) -> Location:
        return self.checkpoint.parent / "out" / f"{name}.xml"

    def delivered(self, name: str) -> str:
        """What a sink holds: its parts, one after the other."""
        folder = self.sink(name)
        return "".join((folder / each).read().decode() for each in folder.names(below=True))


def due(end: int) -> dict[str, str]:
    """The answers over the numbers up to `end`, by hand."""
    items = [f"<p>{number}</p>" for number in range(end)]
    windows = ["".join(items[at : at + 3]) for at in range(0, end - 2, 2)]
    return {
        "all": f"<all>{''.join(items)}</all>",
        "threes": f"<r>{''.join(f'<w>{each}</w>' for each in windows)}</r>",
    }


def check(place: Place, answers: dict[str, str], end: int) -> None:
    """Answers and sinks are what an undisturbed run gives."""
    assert answers == due(end)
    for name, text in due(end).items():
        assert place.delivered(name) == text.rpartition("<")[0]


@pytest.mark.parametrize("name", POINTS)
def test_a_run_that_wakes_up_late_is_told(
    tmp_path: Path, folder: Location, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """It pauses at a point of an epoch; meanwhile another run takes over and reads all, and a third goes on later."""
    place = Place(tmp_path, folder)
    place.grow(0, 30)
    met: list[dict[str, str]] = []

    def pause(found: str, epoch: int) -> None:
        if (found, epoch) == (name, 2) and not met:
            met.append({})  # points of the other run are passed
            met.append(place.run())

    monkeypatch.setattr(epochs, "point", pause)
    here = f"number 2 on {socket.gethostname()}, process {os.getpid()}"
    with pytest.raises(StateError, match=re.escape(f"another run ({here}) has taken over the checkpoint '{folder}'")):
        place.run()
    check(place, met[1], 30)
    place.grow(30, 40)
    check(place, place.run(200), 40)
    check(place, place.run(), 40)
    assert [run for _, run in published(Checkpoint.open(folder))] == sorted(
        run for _, run in published(Checkpoint.open(folder))
    )


def test_a_run_goes_on_with_nothing_but_the_checkpoint(tmp_path: Path, folder: Location) -> None:
    """Each run has a scratch folder of its own, which is gone with it, and begins where the last one was."""
    place = Place(tmp_path, folder)
    for end in (10, 20, 30):
        place.grow(end - 10, end)
        check(place, place.run(), end)
    about = durable.unsealed(runs.record(Checkpoint.open(folder), 3))
    assert (about["host"], about["pid"]) == (socket.gethostname(), os.getpid())


def test_a_checkpoint_without_its_manifests_is_damaged(tmp_path: Path, folder: Location) -> None:
    """Nothing is begun afresh where segments show that there were epochs."""
    place = Place(tmp_path, folder)
    place.grow(0, 10)
    place.run()
    manifests = folder / "manifest"
    manifests.delete_all(manifests.names())
    with pytest.raises(StateError, match="'manifest' is missing"):
        place.run()


def test_a_folder_of_others_is_refused(folder: Location) -> None:
    """A checkpoint is not begun beside other objects."""
    (folder / "a" / "b").put(b"x")
    with pytest.raises(StateError, match="holds other files and is not a checkpoint"):
        Checkpoint.make(folder)
