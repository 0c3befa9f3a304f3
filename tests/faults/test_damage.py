"""A damaged checkpoint is refused by name: no run silently begins afresh, and none goes on with a wrong answer.

Who notices it is the same code on every host, so most of this is tried without Spark; on it, one file of each that the
driver and a task read.
What is in the scratch folder is made anew by each run, whatever is there.
"""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from anabranch.branch import cache
from anabranch.branch.state import VERSION
from anabranch.errors import AnabranchError, StateError
from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.plan import files as plans
from anabranch.spark.state.files import Blob
from faults.small import Small

DAMAGE: Mapping[str, Callable[[bytes], bytes]] = {
    "emptied": lambda data: b"",
    "cut off": lambda data: data[: len(data) // 2],
    "changed": lambda data: data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :],
}
SEALED = (
    "format.json",
    "run.json",
    "order/*/*",
    "plans/*/*.plan",
    "manifest/*",
    "sinks/*",
    "segments/*/*",
    "state/*/*",
)
"""Files with a checksum, or whose parts have one."""
CASES = [(what, how) for what in SEALED for how in DAMAGE]
ON_SPARK = [("manifest/*", "changed"), ("plans/*/*.plan", "emptied"), ("state/*/*", "cut off")]


@dataclass(frozen=True, slots=True)
class Half:
    """A checkpoint with a few epochs, whose streams have grown since; `restore` undoes whatever was done to it."""

    small: Small
    spare: Path

    def restore(self) -> None:
        plans._load.cache_clear()  # another process would not have it
        plans._blocks.clear()
        cache.here = cache.ProcessCache()
        for name in ("state", "out"):
            shutil.rmtree(self.small.folder / name)
            shutil.copytree(self.spare / name, self.small.folder / name)


def _half(spark: SparkSession | None, folder: Path) -> Half:
    small = Small.make(spark, folder)
    small.run()
    small.grow(20, 30)
    for name in ("state", "out"):
        shutil.copytree(folder / name, folder / "spare" / name)
    return Half(small, folder / "spare")


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> Half:
    """One checkpoint for all kinds of damage."""
    return _half(None, tmp_path_factory.mktemp("half"))


@pytest.fixture(scope="module")
def half_on_spark(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Half:
    """The same on Spark."""
    return _half(spark, tmp_path_factory.mktemp("half"))


def contents(folder: Path) -> dict[str, bytes]:
    """All that a checkpoint holds, except who was the last to look at it."""
    found = {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}
    return {name: data for name, data in found.items() if name not in ("lock", "run.json")}


def check_damage(half: Half, what: str, how: str) -> None:
    """The newest file of a kind is damaged: an error instead of answers."""
    half.restore()
    path = max(half.small.checkpoint.glob(what))
    path.write_bytes(DAMAGE[how](path.read_bytes()))
    with pytest.raises(AnabranchError, match=r"damaged|not a checkpoint|the trunk failed on Spark"):
        half.small.run()


@pytest.mark.parametrize(("what", "how"), CASES)
def test_damage_is_named(half: Half, what: str, how: str) -> None:
    """Whichever file with a checksum was emptied, cut off or changed by a bit."""
    check_damage(half, what, how)


@pytest.mark.parametrize(("what", "how"), ON_SPARK)
def test_damage_is_named_on_spark(half_on_spark: Half, what: str, how: str) -> None:
    """The same for one that the driver reads and two that tasks read."""
    check_damage(half_on_spark, what, how)


def check_loss(half: Half, folder: Path, what: str) -> None:
    """A part of a checkpoint that is gone is missed; put back, it is as if nothing had been."""
    half.restore()
    path = max(half.small.checkpoint.glob(what))
    shutil.move(path, folder)
    with pytest.raises(StateError, match=r"damaged|not a checkpoint|cannot read"):
        half.small.run()
    path.parent.mkdir(exist_ok=True)  # without files it was swept away
    shutil.move(folder / path.name, path)
    assert half.small.run() == half.small.law()


@pytest.mark.parametrize("what", ["format.json", "order/*/*", "plans/*/*.plan", "segments/*/*", "state/*/*"])
def test_a_loss_is_named(half: Half, tmp_path: Path, what: str) -> None:
    """Of whatever files an epoch goes on from."""
    check_loss(half, tmp_path, what)


@pytest.mark.parametrize("what", ["manifest/*", "state/*/*"])
def test_a_loss_is_named_on_spark(half_on_spark: Half, tmp_path: Path, what: str) -> None:
    """Of what the driver goes on from, and of what a task reads."""
    check_loss(half_on_spark, tmp_path, what)


def test_the_state_of_another_release_is_refused(half: Half) -> None:
    """The state of a branch says its version: another one is refused by name, and nothing is changed."""
    half.restore()
    file, manifest = (max(half.small.checkpoint.glob(what)) for what in ("state/*/*", "manifest/*"))
    data = file.read_bytes()
    fields = durable.unsealed(manifest)
    (kept,) = fields["states"].values()
    at = Blob.parse(kept["state"])
    state = data[at.offset : at.offset + at.length].replace(f'"version": {VERSION}'.encode(), b'"version": 9', 1)
    file.write_bytes(data[: at.offset] + state + data[at.offset + at.length :])
    kept["state"] = str(at._replace(check=zlib.crc32(state)))
    manifest.write_bytes(durable.sealed(fields))
    before = contents(half.small.checkpoint / "manifest")
    with pytest.raises(StateError, match=f"of version 9, and this release reads version {VERSION}"):
        half.small.run()
    assert contents(half.small.checkpoint / "manifest") == before


@pytest.mark.parametrize("how", ["lost", "changed"])
def test_a_sight_that_was_not_read_to_its_end_is_needed(tmp_path: Path, how: str) -> None:
    """Killed before all was read that it had seen at one moment, a run must know what that was, or says so."""
    small = Small.make(None, tmp_path)
    small.run_until("sinks-moved", 0)
    (sight,) = (small.checkpoint / "sight").iterdir()
    good = sight.read_bytes()
    if how == "lost":
        sight.unlink()
    else:
        sight.write_bytes(DAMAGE[how](good))
    with pytest.raises(StateError, match=r"sight.*'( is damaged|: No such file)"):
        small.run()
    sight.parent.mkdir(exist_ok=True)  # without files it was swept away
    sight.write_bytes(good)
    assert small.run() == small.law()


def test_a_refused_checkpoint_stays_as_it_is(half: Half) -> None:
    """The checkpoint of another version is not changed by a byte, and with its own version it goes on."""
    half.restore()
    identity = half.small.checkpoint / "format.json"
    good = identity.read_bytes()
    identity.write_bytes(b"another program's")
    before = contents(half.small.checkpoint)
    with pytest.raises(StateError, match=r"format.json' is damaged"):
        half.small.run()
    assert contents(half.small.checkpoint) == before
    identity.write_bytes(good)
    assert half.small.run() == half.small.law()


def test_leftovers_of_a_kill_do_no_harm(tmp_path: Path) -> None:
    """Killed while the checkpoint was made."""
    small = Small.make(None, tmp_path)
    small.checkpoint.mkdir()
    (small.checkpoint / ".format.json.1").touch()
    Checkpoint.make(small.checkpoint)
    assert small.run() == small.law()


@pytest.mark.parametrize("how", ["gone", "rubbish"])
def test_the_scratch_folder_is_made_anew(half: Half, how: str) -> None:
    """Whatever has become of what is local to a run, the next one goes on."""
    half.restore()
    scratch = half.small.checkpoint / "scratch"
    shutil.rmtree(scratch)
    if how == "rubbish":
        (scratch / "spark" / "offsets").mkdir(parents=True)
        for name in ("intake.json", "orders.json", "spark/offsets/7", "spark/metadata"):
            (scratch / name).write_text("rubbish")
    assert half.small.run() == half.small.law()
