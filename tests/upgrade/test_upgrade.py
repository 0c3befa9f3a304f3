"""Checkpoints of earlier releases: this one goes on from them to the same answers, or refuses them by name."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from anabranch.errors import StateError
from anabranch.running import run as run_site
from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifests
from upgrade.site import HERE, QUERIES, UNREAD, declare, grow, run, shown

READ = ("5",)
"""The versions of checkpoints that this release reads; others are refused."""


def unpacked(version: str, folder: Path) -> Path:
    with tarfile.open(HERE / f"{version}.tar.gz") as tar:
        tar.extractall(folder, filter="data")
    return folder


def contents(folder: Path) -> dict[Path, bytes]:
    """All files of a folder."""
    return {each: each.read_bytes() for each in folder.rglob("*") if each.is_file()}


@pytest.mark.parametrize(
    "version",
    [
        pytest.param(version, marks=[pytest.mark.mass] if version in READ else [])
        for version in sorted(each.name.partition(".")[0] for each in HERE.glob("*.tar.gz"))
    ],
)
def test_a_checkpoint_of_an_earlier_release(version: str, tmp_path: Path) -> None:
    """It is read, with all that its branches remember; or refused by its version, and not touched."""
    old, new = unpacked(version, tmp_path / "old"), tmp_path / "new"
    if version not in READ:
        files = contents(old)
        with pytest.raises(StateError, match=f"has version {version}"):
            run(old)
        assert contents(old) == files
        return
    before = Checkpoint.open(old / "state")
    grow(old, 30, 60)
    found = run(old)
    new.mkdir()
    grow(new, 0, 60)
    assert found == run(new)
    assert all(found[name] for name in QUERIES)
    states = durable.names(before.states, below=True)
    assert states, "there is a state of each branch"


@pytest.mark.mass
@pytest.mark.parametrize("version", sorted(each.name.partition(".")[0] for each in (HERE / "running").glob("*")))
def test_a_running_site_goes_on_with_this_release(version: str, tmp_path: Path) -> None:
    """A site that was stopped between two epochs, with more to read, has the answers of one that was never stopped.

    That is so for the answer log and for the files of its sinks, to the byte, and nothing is answered again.
    """
    old, new = tmp_path / "old", tmp_path / "new"
    with tarfile.open(HERE / "running" / f"{version}.tar.gz") as tar:
        tar.extractall(old, filter="data")
    new.mkdir()
    if version not in READ:
        with pytest.raises(StateError, match=f"has version {version}"):
            run_site(old / "SITE.toml", once=True, local=True)
        return
    before = shown(old)
    run_site(old / "SITE.toml", once=True, local=True)
    grow(old, 30 + UNREAD, 60)
    run_site(old / "SITE.toml", once=True, local=True)
    grow(new, 0, 60)
    run_site(declare(new), once=True, local=True)
    assert shown(old) == shown(new)
    for name, text in shown(old).items():
        assert text.startswith(before[name].removesuffix("</show>").removesuffix("</was>").removesuffix("</all>"))
        answers = [AnswerLog(Checkpoint.open(each / "state")) for each in (old, new)]
        found = [log.answer(registered).text() for log in answers if (registered := log.subscription(name))]
        assert len(found) == 2
        assert found[0] == found[1] != ""


@pytest.mark.mass
@pytest.mark.parametrize("version", READ)
def test_a_running_site_goes_on_with_this_release_on_spark(version: str, spark: SparkSession, tmp_path: Path) -> None:
    """The release before is stopped with more to read; this one goes on, is stopped in its turn, and goes on again.

    Sinks are those of a site that one release has read in one run without Spark; no epoch of the old one is run again.
    """
    old, new = tmp_path / "old", tmp_path / "new"
    with tarfile.open(HERE / "running" / f"{version}.tar.gz") as tar:
        tar.extractall(old, filter="data")
    manifests = Manifests(Checkpoint.open(old / "state").manifests)
    before, files = manifests.newest(), contents(old / "state" / "manifest")
    assert before is not None
    run_site(old / "SITE.toml", once=True)
    following = manifests.newest()
    assert following is not None
    assert following.epoch > before.epoch
    assert following.run > before.run
    assert files.items() <= contents(old / "state" / "manifest").items()
    grow(old, 30 + UNREAD, 60)
    run_site(old / "SITE.toml", once=True)
    new.mkdir()
    grow(new, 0, 60)
    run_site(declare(new), once=True, local=True)
    assert shown(old) == shown(new)
    assert all(shown(new).values())


def test_a_checkpoint_of_a_later_release(tmp_path: Path) -> None:
    """It is refused by its version, and not touched."""
    folder = unpacked(READ[-1], tmp_path)
    identity = folder / "state/format.json"
    fields = json.loads(identity.read_text().splitlines()[0]) | {"version": 99}
    durable.replace(identity, durable.sealed(fields))
    files = contents(folder)
    with pytest.raises(StateError, match="has version 99") as caught:
        run(folder)
    assert caught.value.hint == f"this one reads version {READ[-1]}"
    assert contents(folder) == files


def test_the_version_of_today_is_kept() -> None:
    """Who changes the format of checkpoints adds an archive, as the first lines of `site.py` say."""
    newest = max(HERE.glob("*.tar.gz"), key=lambda each: int(each.name.partition(".")[0]))
    assert newest.name == f"{_version()}.tar.gz"
    assert READ[-1] == _version()


def _version() -> str:
    from anabranch.spark.checkpoint import folder

    return str(folder._VERSION)
