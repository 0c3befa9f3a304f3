"""The checkpoint's folder: what is refused by name, what is durable; no Spark needed."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import pytest

from anabranch.errors import StateError
from anabranch.spark import durable
from anabranch.spark.checkpoint import Checkpoint, RunLock
from anabranch.spark.manifest import Carried, Manifest, Manifests
from anabranch.spark.plan import Plan, Plans, Subscription
from anabranch.spark.recovery import check_spark
from anabranch.spark.retention import Keep
from anabranch.spark.segments import Chunk
from anabranch.stream.limits import Limits

CHUNKS = (Chunk(3, "00000000/000000-a", 0, 5, 1, 5), Chunk(-1, "00000000/000000-a", 5, 9, 2, 4))


def manifest(epoch: int) -> Manifest:
    carries = {"s/0": Carried(1, "{}")}
    return Manifest(epoch, 1, "digest", {"s/0": {"file": 1, "position": 7}}, carries, CHUNKS, 3, 70)


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    """Somebody else's folder is neither used nor changed."""
    (tmp_path / "letters.txt").touch()
    with pytest.raises(StateError, match="holds other files"):
        Checkpoint.make(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["letters.txt"]


def test_what_is_no_checkpoint_cannot_be_opened(tmp_path: Path) -> None:
    """Reading makes no checkpoint where there is none."""
    with pytest.raises(StateError, match="is not a checkpoint"):
        Checkpoint.open(tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"rubbish", "is damaged"),
        (durable.sealed({"kind": "anabranch checkpoint", "version": 99}), "has version 99"),
        (durable.sealed({"kind": "another"}), "is not a checkpoint of this engine"),
        (durable.sealed({"kind": "anabranch checkpoint", "version": 1})[:-9], "is damaged"),
    ],
)
def test_a_foreign_or_damaged_identity_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    """Another program's, another version's or a broken format.json: an error that says which."""
    Checkpoint.make(tmp_path / "state").identity.write_bytes(content)
    with pytest.raises(StateError, match=message):
        Checkpoint.make(tmp_path / "state")


def test_a_missing_folder_is_damage(tmp_path: Path) -> None:
    """A checkpoint without its manifests is not begun afresh."""
    checkpoint = Checkpoint.make(tmp_path / "state")
    checkpoint.manifests.rmdir()
    with pytest.raises(StateError, match="'manifest' is missing"):
        Checkpoint.make(tmp_path / "state")


def test_a_manifest_survives_its_file_and_is_published_once(tmp_path: Path) -> None:
    """What is read equals what was published; a second one for the same epoch is refused, a damaged one named."""
    manifests = Manifests(tmp_path)
    manifests.publish(manifest(0))
    assert manifests.load(0) == manifest(0)
    assert manifest(0).dead_letters == 2
    assert manifest(0).of(3) == [CHUNKS[0]]
    with pytest.raises(StateError, match="another run is at work"):
        manifests.publish(manifest(0))
    manifests.publish(manifest(1))
    path = tmp_path / "00000001.json"
    path.write_bytes(path.read_bytes().replace(b"70", b"71"))
    with pytest.raises(StateError, match="is damaged"):
        manifests.load(1)
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    ("offsets", "commits", "manifests", "good"),
    [
        ([], [], [], True),
        ([0], [], [], True),
        ([0, 1], [0], [0, 1], True),
        ([0, 1, 2], [0, 1], [0, 1], True),
        ([], [], [0, 1], False),
        ([0], [0], [0, 1], False),
        ([0, 1], [0, 1], [0], False),
        ([0, 1, 2, 3], [0], [0], False),
        ([0, 1, 2], [0, 1], [0, 2], False),
    ],
)
def test_spark_must_belong_to_the_manifests(
    tmp_path: Path, offsets: list[int], commits: list[int], manifests: list[int], good: bool
) -> None:
    """Spark's log is at the newest manifest or one epoch beyond; parts of two copies are refused."""
    checkpoint = Checkpoint.make(tmp_path / "state")
    for name, epochs in (("offsets", offsets), ("commits", commits)):
        (checkpoint.spark / name).mkdir(parents=True)
        for epoch in epochs:
            (checkpoint.spark / name / str(epoch)).touch()
    held = Manifests(checkpoint.manifests)
    for epoch in manifests:
        held.publish(manifest(epoch))
    if good:
        assert check_spark(checkpoint, held) == (manifest(manifests[-1]) if manifests else None)
    else:
        with pytest.raises(StateError, match="is damaged"):
            check_spark(checkpoint, held)


def test_a_second_run_is_refused_and_runs_are_numbered(tmp_path: Path) -> None:
    """The lock names the process that holds it; when it is free, the next run has the next number."""
    checkpoint = Checkpoint.make(tmp_path / "state")
    with RunLock(checkpoint, os.getpid()) as lock:
        assert lock.run == 1
        with pytest.raises(StateError, match=rf"another run is at work .* \(process {os.getpid()}\)"):
            RunLock(checkpoint, os.getpid()).__enter__()
    with RunLock(checkpoint, os.getpid()) as lock:
        assert lock.run == 2


def test_the_next_run_waits_for_the_jvm_of_the_one_before(tmp_path: Path) -> None:
    """A killed driver leaves its JVM behind; the lock is given when that has ended."""
    checkpoint = Checkpoint.make(tmp_path / "state")
    with subprocess.Popen(["sleep", "0.4"]) as jvm:
        with RunLock(checkpoint, jvm.pid):
            pass
        with RunLock(checkpoint, os.getpid()):
            assert jvm.wait(0) == 0


def test_a_full_disk_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old version stays, nothing half-written is left, and the error says what to do."""
    path = tmp_path / "record"
    durable.replace(path, b"old")

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for write in (durable.replace, durable.publish):
        with pytest.raises(StateError, match="the disk is full: cannot write") as raised:
            write(path, b"new")
        assert "make room" in (raised.value.hint or "")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("record", b"old")]


def test_plans_are_shared_and_dropped_with_their_epochs(tmp_path: Path) -> None:
    """Epochs with the same plan share its file, which goes with the last of them."""
    plans = Plans(tmp_path)
    one, two = (Plan((), (Subscription(n, "q", "text", n),), Limits(), n) for n in range(2))
    for epoch, plan in enumerate((one, one, two, two)):
        plans.begin(epoch, plan)
    assert len(list(tmp_path.glob("*.plan"))) == 2
    assert [file.load() for epoch in range(4) if (file := plans.of(epoch))] == [one, one, two, two]
    assert list(plans.newest_first(3)) == [two, one]
    assert list(plans.newest_first(1)) == [one]
    plans.drop(2)
    assert plans.epochs() == [2, 3]
    assert [path.stem for path in tmp_path.glob("*.plan")] == [file.digest[:32] for file in [plans.of(2)] if file]


def test_what_keep_means() -> None:
    """A number of epochs, or a size; everything else is refused."""
    assert Keep.parse(500) == Keep(epochs=500)
    assert Keep.parse("20 GB") == Keep(bytes=20 * 10**9)
    assert Keep.parse(None) == Keep()
    for wrong in (0, -1, True, "GB", "1 XB", 1.5):
        with pytest.raises(Exception, match="'keep' takes a number of epochs or a size"):
            Keep.parse(wrong)
