"""The checkpoint's folder: what is refused by name, what is durable; no Spark needed."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from anabranch.errors import StateError
from anabranch.spark.answers.segments import Segment, SegmentWriter, late_line, late_places, read_chunk, read_index
from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Carried, IntakeRecord, Manifest, Manifests, sweep
from anabranch.spark.checkpoint.parts import LogPart
from anabranch.spark.checkpoint.recovery import end_of, rebuild, write_end
from anabranch.spark.checkpoint.retention import Retention
from anabranch.spark.checkpoint.runs import RunLock
from anabranch.spark.intake.ranges import Offset
from anabranch.spark.plan import files as plan_files
from anabranch.spark.plan.epoch_plan import Plan, Registration
from anabranch.spark.plan.files import PlanFile, Plans, folder_of
from anabranch.spark.sinks.growing import move_aside
from anabranch.spark.state.files import SavedState
from anabranch.storage import Location
from anabranch.stream.elements import Place
from anabranch.stream.limits import Limits
from anabranch.stream.settings import Keep

SEGMENTS = (Segment("00000000/000000-a", 14, 2, 2, 0, 77),)


def manifest(epoch: int) -> Manifest:
    carries = {"s/0": Carried(1, "{}")}
    return Manifest(epoch, 1, "digest", {"s/0": {"file": 1, "position": 7}}, carries, SEGMENTS, 3, 70)


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
    Checkpoint.make(tmp_path / "state").identity.put(content)
    with pytest.raises(StateError, match=message):
        Checkpoint.make(tmp_path / "state")


def test_a_checkpoint_remembers_its_site(tmp_path: Path) -> None:
    """Another file's is refused by name; both may move together; one that was made without a site is anybody's."""
    state, site = tmp_path / "a/state", tmp_path / "a/site.toml"
    Checkpoint.make(state, site)
    assert Checkpoint.make(state, site) == Checkpoint.open(state, site) == Checkpoint.open(state)
    for other, message in (
        (tmp_path / "a/other.toml", "'state' belongs to the site 'site.toml', not to 'other.toml'"),
        (tmp_path / "b/site.toml", "'../a/state' belongs to the site '../a/site.toml', not to 'site.toml'"),
    ):
        for look in (Checkpoint.make, Checkpoint.open):
            with pytest.raises(StateError, match=f"the checkpoint {message}") as raised:
                look(state, other)
            assert 'add name = "' in (raised.value.hint or "")
    (tmp_path / "a").rename(tmp_path / "c")
    Checkpoint.open(tmp_path / "c/state", tmp_path / "c/site.toml")
    Checkpoint.make(tmp_path / "d")
    Checkpoint.make(tmp_path / "d", site)


def test_a_start_sweeps_what_was_begun(tmp_path: Path) -> None:
    """Files that a killed writer left half written are gone once the lock is held; all others stay."""
    checkpoint = Checkpoint.make(tmp_path / "state")
    begun = [checkpoint.folder / ".run.json.4711", checkpoint.manifests / ".00000007.json.4711"]
    others = [checkpoint.folder / ".nfs", checkpoint.manifests / "00000006.json", checkpoint.plans / "a.4711"]
    for path in (*begun, *others):
        path.put(b"")
    with RunLock(checkpoint, os.getpid()):
        assert not any(path.exists() for path in begun)
        assert all(path.exists() for path in others)


def test_a_flipped_bit_is_no_answer(tmp_path: Path) -> None:
    """Wherever a chunk's bytes have changed, reading it is an error that names the file; its neighbour is good."""
    with SegmentWriter(Location.of(tmp_path), 0, 0) as writer:
        writer.add(1, "<a>é</a>")
        writer.add(2, "<b/>")
    index = read_index(Location.of(tmp_path), writer.segments)
    (one,), (two,) = index.of(1), index.of(2)
    path = tmp_path / one.segment
    good = path.read_bytes()
    assert read_chunk(Location.of(tmp_path), one) + read_chunk(Location.of(tmp_path), two) == "<a>é</a><b/>"
    for at in range(one.length):
        path.write_bytes(good[:at] + bytes([good[at] ^ 4]) + good[at + 1 :])
        with pytest.raises(StateError, match=f"'{path}' is damaged: bytes 0 to {one.length} changed"):
            read_chunk(Location.of(tmp_path), one)
        assert read_chunk(Location.of(tmp_path), two) == "<b/>"


def test_a_late_item_counts_once(tmp_path: Path) -> None:
    """Noted by two branches it is one line, whatever its file is called."""
    with SegmentWriter(Location.of(tmp_path), 0, 0) as writer:
        for offset in (3, 7, 3):
            writer.note_late(late_line(Place("s", "a\u2028b", offset)))
    found = late_places(Location.of(tmp_path), writer.segments)
    assert [json.loads(line)["offset"] for line in found] == [3, 7]
    assert {json.loads(line)["partition"] for line in found} == {"a\u2028b"}


def test_a_missing_folder_is_damage(tmp_path: Path) -> None:
    """A checkpoint without its manifests is not begun afresh."""
    Checkpoint.make(tmp_path / "state")
    (tmp_path / "state" / "manifest").rmdir()
    with pytest.raises(StateError, match="'manifest' is missing"):
        Checkpoint.make(tmp_path / "state")


def test_a_manifest_survives_its_file_and_is_published_once(tmp_path: Path) -> None:
    """What is read equals what was published; a second one for the same epoch is refused, a damaged one named."""
    manifests = Manifests(Location.of(tmp_path))
    assert manifests.publish(manifest(0))
    assert manifests.load(0) == manifest(0)
    assert manifest(0).dead_letters == 2
    assert not manifests.publish(manifest(0))
    assert manifests.publish(manifest(1))
    path = tmp_path / "00000001.json"
    path.write_bytes(path.read_bytes().replace(b"70", b"71"))
    with pytest.raises(StateError, match="is damaged"):
        manifests.load(1)
    assert len(list(tmp_path.iterdir())) == 2


def test_spark_goes_on_from_the_newest_manifest(tmp_path: Path) -> None:
    """Whatever lies in the scratch folder, a run makes it anew: the newest epoch is Spark's last, and nothing else."""
    checkpoint = Checkpoint.make(tmp_path / "state")
    end: Offset = {"s/0": {"file": 1, "position": 9}}
    for epoch in (7, 8, 9):
        write_end(checkpoint, epoch, {})
    (checkpoint.scratch / "spark" / "offsets" / ".9.crc").touch()
    rebuild(checkpoint, replace(manifest(5), intake=IntakeRecord(end, reached={"s": 3.5})))
    found = {str(each.relative_to(checkpoint.spark)) for each in checkpoint.spark.rglob("*") if each.is_file()}
    assert found == {"metadata", "offsets/4", "offsets/5", "commits/5"}
    assert end_of(checkpoint, 5) == end
    assert durable.unsealed(checkpoint.reached) == {"s": 3.5}
    rebuild(checkpoint, None)
    assert [each.name for each in checkpoint.spark.rglob("*")] == ["metadata"]


def test_only_what_no_manifest_names_is_swept(tmp_path: Path) -> None:
    """A run removes what earlier ones left behind their last manifest, and nothing of its own or of a later one."""
    checkpoint = Checkpoint.make(tmp_path / "state")
    named = SavedState(0, "00000003/000001-0000-a:0:1:0", (), 1, {})
    order = (LogPart("000002-b", 1),)
    newest = replace(manifest(3), states={0: named}, intake=IntakeRecord(orders={"s": order}))
    folder = checkpoint.order("s").name
    kept = [
        "state/00000003/000001-0000-a",
        f"order/{folder}/000002-b",
        "state/00000003/000003-0000-mine",
        f"order/{folder}/000004-later",
        "segments/00000003/000001-000000-named",
        "segments/00000004/000003-000000-mine",
    ]
    left = [
        "state/00000003/000002-0000-c",
        "state/00000004/000002-0000-d",
        f"order/{folder}/000001-e",
        "evolution/000002-f",
        "sight/000001-g",
        "segments/00000004/000002-000000-h",
    ]
    for name in (*kept, *left):
        (checkpoint.folder / name).put(b"x")
    sweep(checkpoint, newest, run=3)
    found = [name for name in checkpoint.folder.names(below=True) if name != "format.json"]
    assert sorted(found) == sorted(kept)


def test_what_lost_attempts_have_left_is_removed(tmp_path: Path) -> None:
    """When the next epoch is committed, or by the next run: files of an epoch that its manifest does not name."""
    checkpoint = Checkpoint.make(tmp_path / "state")
    manifests = Manifests(checkpoint.manifests)

    def commit(epoch: int) -> Manifest:
        name = f"{epoch:08}/000001-000000-heard"
        for each in (f"segments/{name}", f"segments/{name[:-5]}lost", f"state/{epoch:08}/000001-0000-lost"):
            (checkpoint.folder / each).put(b"x")
        found = replace(manifest(epoch), segments=(Segment(name, 1, 1, 0, 0, 0),))
        assert manifests.publish(found)
        return found

    def lost() -> list[str]:
        return sorted(name for name in checkpoint.folder.names(below=True) if name.endswith("lost"))

    retention = Retention(checkpoint, Keep())
    for epoch in range(3):
        retention.add(commit(epoch), sys.maxsize)
        assert lost() == [f"segments/{epoch:08}/000001-000000-lost", f"state/{epoch:08}/000001-0000-lost"]
    sweep(checkpoint, manifests.newest(), run=2)
    assert lost() == []
    assert len(checkpoint.segments.names(below=True)) == 3


def test_all_names_on_the_way_to_what_is_new_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a checkpoint and of a file that a sink has not grown yet; whoever made the folders may have been killed."""
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.readlink(f"/proc/self/fd/{handle}")))
    made, out = tmp_path / "made" / "by", tmp_path / "out"
    made.mkdir(parents=True)
    Checkpoint.make(made / "state")
    assert {str(made / "state"), str(made), str(made.parent), str(tmp_path)} <= {*synced}
    synced.clear()
    out.mkdir()
    (out / "a.xml").touch()
    durable.append(out / "a.xml", [b"x"], 0)
    assert {str(out / "a.xml"), str(out), str(tmp_path)} <= {*synced}
    synced.clear()
    durable.append(out / "a.xml", [b"y"], 1)
    assert synced == [str(out / "a.xml")]


def test_a_run_goes_on_from_names_that_are_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run before may have been killed between the link of its last manifest and the sync of the folder."""
    checkpoint = Checkpoint.make(tmp_path / "state")
    assert Manifests(checkpoint.manifests).publish(manifest(0))
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.readlink(f"/proc/self/fd/{handle}")))
    with RunLock(checkpoint, os.getpid()):
        assert str(checkpoint.manifests) in synced


def test_a_file_moved_aside_is_moved_for_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that was killed between the rename and the sync of the folder leaves the sync to the next."""
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.readlink(f"/proc/self/fd/{handle}")))
    (tmp_path / "a.xml.3").touch()
    assert move_aside(tmp_path / "a.xml", 3) == tmp_path / "a.xml.3"
    assert synced == [str(tmp_path)]


def test_a_scratch_folder_that_cannot_be_emptied_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an earlier run had begun there would be taken for what this one has begun."""
    checkpoint = Checkpoint.make(tmp_path / "state")
    rebuild(checkpoint, None)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "unlink", refuse)
    with pytest.raises(StateError, match=r"cannot write '.*scratch': Input/output error"):
        rebuild(checkpoint, None)


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
    for write in (durable.replace, durable.create):
        with pytest.raises(StateError, match="the disk is full: cannot write") as raised:
            write(path, b"new")
        assert "make room" in (raised.value.hint or "")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("record", b"old")]


def test_plans_are_shared_and_dropped_with_their_epochs(tmp_path: Path) -> None:
    """Epochs with the same plan share its file, which goes with the last of them."""
    checkpoint = Checkpoint.make(tmp_path / "state")
    plans, manifests = Plans(checkpoint), Manifests(checkpoint.manifests)
    one, two = (Plan((), (Registration(n, "q", "text", n),), Limits(), n) for n in range(2))
    files = [PlanFile.save(plan, folder_of(checkpoint, 1)) for plan in (one, one, two, two)]
    for epoch, file in enumerate(files):
        assert manifests.publish(replace(manifest(epoch), plan=file.name))
    assert len(list((tmp_path / "state" / "plans").rglob("*.plan"))) == 2
    assert [plans.ran(epoch) for epoch in range(4)] == [one, one, two, two]
    assert list(plans.newest_first()) == [two, one]
    assert plans.newest() == two
    plans.drop([files[0].name, files[2].name], [files[3].name])
    (left,) = (tmp_path / "state" / "plans").rglob("*.plan")
    assert left.stem == files[3].digest[:32]
    assert plans.ran(3) == two


def test_the_blocks_of_former_plans_are_forgotten(tmp_path: Path) -> None:
    """One of a thousand subscriptions changes with each plan: a worker keeps what few plans have, and reads all right.

    So does who wrote them.
    """
    checkpoint = Checkpoint.make(tmp_path / "state")
    asked = [Registration(number, f"q{number}", "text", 0) for number in range(1_000)]
    saved: list[tuple[Plan, PlanFile]] = []
    for change in range(100):
        asked[change * 7] = replace(asked[change * 7], text=f"changed {change}")
        plan = Plan((), tuple(asked), Limits(), 1)
        saved.append((plan, PlanFile.save(plan, folder_of(checkpoint, 1))))
    plan_files._blocks.clear()  # as in another process
    for plan, file in saved:
        assert file.load() == plan
    assert len(plan_files._blocks) < 40


def test_a_plan_of_another_version_is_refused(tmp_path: Path) -> None:
    """One that does not say which kinds of queries it has is refused by name."""
    data = json.dumps({"streams": [], "subscriptions": [], "next_id": 0}).encode()
    digest = durable.digest(data)
    (tmp_path / "000001").mkdir()
    (tmp_path / "000001" / f"{digest[:32]}.plan").write_bytes(data)
    with pytest.raises(StateError, match="is of version 1, and this release reads versions 3 to 4"):
        PlanFile.named(Location.of(tmp_path), f"000001/{digest}").load()


def test_what_keep_means() -> None:
    """A number of epochs, or a size; everything else is refused."""
    assert Keep.parse(500) == Keep(epochs=500)
    assert Keep.parse("20 GB") == Keep(bytes=20 * 10**9)
    assert Keep.parse(None) == Keep()
    for wrong in (0, -1, True, "GB", "1 XB", 1.5):
        with pytest.raises(Exception, match="'keep' takes a number of epochs or a size"):
            Keep.parse(wrong)
