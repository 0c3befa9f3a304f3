"""Backups of a checkpoint, made while a run is at work: a site that goes on from one gives the same answers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

import pytest

from anabranch import Engine
from anabranch.cli import main
from anabranch.errors import StateError, UsageError
from anabranch.running import run
from anabranch.spark.checkpoint import backup as backups
from anabranch.spark.checkpoint.backup import Backup, back_up, restore
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifests
from anabranch.storage import Location
from faults.small import QUERIES, Small


def quiet(message: str) -> None:
    """Says nothing."""


def backed_up(small: Small, where: Path) -> Backup:
    return back_up(Checkpoint.open(small.checkpoint), Location.of(where), quiet)


def restored(small: Small, where: Path, folder: Path) -> Small:
    """A copy of the streams, and of sinks that had begun, in a folder of its own, that goes on from a backup."""
    begun = any((where / "checkpoint/sinks").glob("*"))
    shutil.copytree(
        small.folder, folder, ignore=shutil.ignore_patterns("state", "backup*", *([] if begun else ["out"]))
    )
    restore(Location.of(where), Checkpoint.at(folder / "state"), quiet)
    return Small(None, folder)


@pytest.mark.mass
def test_a_site_goes_on_from_a_backup(tmp_path: Path) -> None:
    """With what its branches had remembered; what its sinks have got since is replaced by the same."""
    (tmp_path / "site").mkdir()
    small = Small.make(None, tmp_path / "site")
    small.run()
    found = backed_up(small, tmp_path / "backup")
    assert found.epoch == Manifests(Checkpoint.open(small.checkpoint).manifests).epochs()[-1]
    small.grow(20, 30)
    answers = small.run()
    again = restored(small, tmp_path / "backup", tmp_path / "again")
    assert again.run() == answers == small.law()
    assert again.sinks() == small.sinks()


@pytest.mark.mass
def test_runs_behind_a_backup_have_larger_numbers(tmp_path: Path) -> None:
    """What they write can be told from what was there."""
    small = Small.make(None, tmp_path)
    for count in (20, 25):
        small.grow(count, count + 5)
        small.run()
    found = backed_up(small, tmp_path / "backup")
    again = restored(small, tmp_path / "backup", tmp_path / "again")
    again.grow(40, 41)
    again.run()
    newest = Manifests(Checkpoint.open(again.checkpoint).manifests).newest()
    assert newest is not None
    assert newest.run == found.run + 1 == 3


@pytest.mark.mass
def test_backups_while_a_run_is_at_work(tmp_path: Path) -> None:
    """Whenever it was made, a site goes on from it to the same answers."""
    (tmp_path / "site").mkdir()
    small = Small.make(None, tmp_path / "site")
    small.grow(20, 120)
    made: list[Backup] = []
    ended = Event()

    def make_backups() -> None:
        while not ended.is_set():
            if (small.checkpoint / "format.json").exists():
                made.append(backed_up(small, tmp_path / f"backup-{len(made)}"))

    thread = Thread(target=make_backups)
    thread.start()
    try:
        answers = small.run(epoch_bytes=60)
    finally:
        ended.set()
        thread.join()
    epochs = [each.epoch for each in made]
    assert len({*epochs}) > 2, "some of them were made at work"
    assert list(small.checkpoint.glob(".backup-*")) == []
    for number in (0, len(made) // 2, len(made) - 1):
        again = restored(small, tmp_path / f"backup-{number}", tmp_path / f"again-{number}")
        assert again.run() == answers, epochs[number]
        assert again.sinks() == small.sinks()


@pytest.mark.mass
@pytest.mark.parametrize("way", ["to a disk", "to objects", "from objects to a disk"])
def test_backups_of_objects(way: str, tmp_path: Path) -> None:
    """A checkpoint may be restored on another storage than it was on."""
    small = Small.make(None, tmp_path)
    disk, objects = tmp_path / "state", f"file+object://{tmp_path}/objects"
    first, second = (disk, objects) if way == "to objects" else (objects, disk)

    def answers(checkpoint: Path | str) -> dict[str, str]:
        with Engine(local=True, checkpoint=checkpoint, once=True, epoch_bytes=100) as engine:
            for name in ("lines", "document"):
                engine.stream(name, tmp_path / name)
            found = [engine.subscribe(text, name) for name, text in QUERIES.items()]
            engine.wait()
            return {each.name: each.answer() for each in found}

    answers(first)
    where = Location.of(tmp_path / "backup" if way != "to a disk" else f"file+object://{tmp_path}/backup")
    made = back_up(Checkpoint.open(first), where, quiet)
    small.grow(20, 30)
    restore(where, Checkpoint.at(second), quiet)
    assert answers(second) == answers(first) == small.law()
    newest = Manifests(Checkpoint.open(second).manifests).newest()
    assert newest is not None
    assert newest.run == made.run + 1


def test_what_comes_while_objects_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An epoch that is committed meanwhile, or an object that is gone, is noticed, and all is taken that is missing."""
    small = Small.make(None, tmp_path)
    small.run()
    listed = backups._names
    small.grow(20, 26)
    steps: list[Callable[[], object]] = [
        small.run,
        lambda: next((small.checkpoint / "sinks").iterdir()).unlink(),
    ]

    def names(checkpoint: Checkpoint) -> list[str]:
        found = list(listed(checkpoint))
        if steps:
            steps.pop(0)()
        return found

    monkeypatch.setattr(backups, "_names", names)
    found = backed_up(small, tmp_path / "backup")
    assert not steps
    assert found.epoch == Manifests(Checkpoint.open(small.checkpoint).manifests).epochs()[-1]
    assert set(found.objects) == set(listed(Checkpoint.open(small.checkpoint)))
    monkeypatch.setattr(backups, "_ATTEMPTS", 0)
    with pytest.raises(StateError, match="epochs were committed faster"):
        backed_up(small, tmp_path / "another")


@pytest.mark.mass
@pytest.mark.parametrize("part", ["manifest", "state", "segments", "plans", "order"])
def test_a_damaged_backup(part: str, tmp_path: Path) -> None:
    """It is named, and nothing is left where it was to be restored."""
    small = Small.make(None, tmp_path)
    small.run()
    backed_up(small, tmp_path / "backup")
    damaged = max(each for each in (tmp_path / "backup/checkpoint" / part).rglob("*") if each.is_file())
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    with pytest.raises(StateError, match=r"in the backup .* is damaged") as caught:
        restored(small, tmp_path / "backup", tmp_path / "again")
    assert damaged.name in caught.value.message
    assert not any(each.is_file() for each in (tmp_path / "again/state").rglob("*"))


def test_what_is_no_backup_or_no_place_for_one(tmp_path: Path) -> None:
    """Nothing is ever written over."""
    small = Small.make(None, tmp_path)
    small.run()
    with pytest.raises(UsageError, match="is not empty"):
        backed_up(small, tmp_path)
    with pytest.raises(StateError, match="is no backup"):
        restore(Location.of(tmp_path / "nowhere"), Checkpoint.at(tmp_path / "again"), quiet)
    backed_up(small, tmp_path / "backup")
    with pytest.raises(UsageError, match="is not empty"):
        restore(Location.of(tmp_path / "backup"), Checkpoint.at(small.checkpoint), quiet)


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A site by its file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "all.xq").write_text(QUERIES["all"])
    (tmp_path / "lines").write_text("<p>1</p>\n<p>2</p>\n")
    (tmp_path / "SITE.toml").write_text(
        '[engine]\ncheckpoint = "state"\n[streams.lines]\npath = "lines"\n[subscriptions.all]\nquery = "all.xq"\n'
    )
    run(tmp_path / "SITE.toml", once=True, local=True)
    assert main(["backup", "SITE.toml", "kept"]) == 0
    told = capsys.readouterr().err
    assert "all up to epoch 0" in told
    shutil.rmtree(tmp_path / "state")
    assert main(["restore", "SITE.toml", "kept"]) == 0
    assert main(["answer", "SITE.toml", "all"]) == 0
    assert capsys.readouterr().out == "<all><p>1</p><p>2</p></all>\n"
    fields = json.loads((tmp_path / "kept/backup.json").read_text().splitlines()[0])
    assert fields["kind"] == "anabranch backup"
