"""Spools: what was accepted is there, once and in order, whatever ends the writer."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from threading import Event

import pytest

from anabranch.errors import DiskFull, StateError, UsageError
from anabranch.spark.checkpoint import durable
from anabranch.spark.intake.order import OrderLog
from anabranch.spark.intake.sources.http import HttpConnector
from anabranch.spark.spool import files, keys
from anabranch.spark.spool import spool as spooling
from anabranch.spark.spool.files import PUSHED
from anabranch.spark.spool.spool import (
    Acceptance,
    KeyReused,
    PushedBody,
    Spool,
    SpoolClosed,
    TrunkBehind,
    WritingRun,
)
from anabranch.spark.spool.spools import Spools
from anabranch.storage import Location, disk
from anabranch.stream.reading.source import Source
from endpoint.client import folder_of, pushed
from faults.disk import Disk

DAY = 86_400 * 1_000_000


def body(text: str, digest: str | None = None) -> PushedBody:
    return PushedBody(text.encode(), "json", digest or text, 0, len(text))


def content(source: Source) -> str:
    """All that a spool holds, from its first file on."""
    folder = Location.of(source.path)
    end = listed(source)[PUSHED]
    return b"".join(files.bodies(folder / str(files.names(folder)[0]), end)).decode()


def listed(source: Source) -> dict[str, int]:
    """What the intake sees of a spool."""
    return HttpConnector(source, OrderLog(Location.of(source.path), ())).listing(patient=True)["orders/0"]


class Gate:
    """Holds writes of a spool back until it is opened."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._open, self.reached, self.writes = Event(), Event(), 0
        real = durable.publish

        def publish(path: Path, data: bytes) -> None:
            self.reached.set()
            assert self._open.wait(60)
            self.writes += 1
            real(path, data)

        patch.setattr(durable, "publish", publish)

    def open(self) -> None:
        self._open.set()


def test_bodies_lie_one_behind_the_other(tmp_path: Path) -> None:
    """Each acceptance says where its body is; without the bytes that were put in front of it."""
    source = pushed(tmp_path)
    spool = Spool(source, 0)
    assert spool.accept(body("one\n")).result(60) == Acceptance(0, 4)
    wrapped = PushedBody(b"<r>two</r>\n", "json", "d", 3, 3)
    assert spool.accept(wrapped).result(60) == Acceptance(7, 10)
    assert (spool.state.accepted, spool.state.read, spool.state.behind) == (15, 0, 15)
    spool.close()
    assert content(source) == "one\n<r>two</r>\n"
    assert listed(source) == {PUSHED: 15}
    with pytest.raises(SpoolClosed):
        spool.accept(body("three\n"))


def test_requests_that_wait_are_written_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one write is under way all others gather, and the next write takes them, in the order of acceptance."""
    gate, source = Gate(monkeypatch), pushed(tmp_path)
    spool = Spool(source, 0)
    first = spool.accept(body("0\n"))
    assert gate.reached.wait(60)
    others = [spool.accept(body(f"{number}\n")) for number in range(1, 9)]
    gate.open()
    assert first.result(60) == Acceptance(0, 2)
    assert [each.result(60) for each in others] == [Acceptance(2 * n, 2 * n + 2) for n in range(1, 9)]
    assert gate.writes == 2
    spool.close()


def test_a_key_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeated while it waits, while it is written, later, and after a restart; with another body it is refused."""
    gate, source = Gate(monkeypatch), pushed(tmp_path)
    spool = Spool(source, 0)
    first = spool.accept(body("a\n"), "k")
    assert gate.reached.wait(60)
    written, waiting = spool.accept(body("a\n"), "k"), spool.accept(body("b\n"), "l")
    waiting_too = spool.accept(body("b\n"), "l")
    with pytest.raises(KeyReused):
        spool.accept(body("c\n"), "k")
    with pytest.raises(KeyReused):
        spool.accept(body("c\n"), "l")
    gate.open()
    assert first.result(60) == Acceptance(0, 2)
    assert written.result(60) == Acceptance(0, 2, repeated=True)
    assert waiting.result(60) == Acceptance(2, 4)
    assert waiting_too.result(60) == Acceptance(2, 4, repeated=True)
    assert spool.accept(body("a\n"), "k").result(60) == Acceptance(0, 2, repeated=True)
    spool.close()
    spool = Spool(source, 0)
    assert spool.accept(body("b\n"), "l").result(60) == Acceptance(2, 4, repeated=True)
    with pytest.raises(KeyReused, match="the key 'l' belongs to a request with another body"):
        spool.accept(body("c\n"), "l")
    assert spool.accept(body("b\n")).result(60) == Acceptance(4, 6), "without a key it is another request"
    spool.close()


def test_many_threads(tmp_path: Path) -> None:
    """Whatever comes at once is there once, where it was said to be, and each sender's in its order."""
    source = pushed(tmp_path, backlog=1 << 30)
    spool = Spool(source, 0)

    def send(sender: int) -> list[tuple[str, Acceptance]]:
        texts = [f"{sender}.{number}{'x' * Random(number).randrange(50)}\n" for number in range(50)]
        return [(text, spool.accept(body(text)).result(60)) for text in texts]

    with ThreadPoolExecutor(8) as threads:
        found = [each for sent in threads.map(send, range(8)) for each in sent]
    spool.close()
    text = content(source)
    assert sum(len(sent) for sent, _ in found) == len(text)
    assert all(text[place.start : place.end] == sent for sent, place in found)
    for sender in range(8):
        starts = [place.start for sent, place in found if sent.startswith(f"{sender}.")]
        assert starts == sorted(starts)


def test_what_was_read_is_removed(tmp_path: Path) -> None:
    """File by file as epochs are committed, but for the newest, which says where the stream ends."""
    source = pushed(tmp_path)
    spool = Spool(source, 0)
    for number in range(5):
        spool.accept(body(f"{number}\n")).result(60)
    spool.forget(5)
    assert files.starts(Location.of(source.path)) == [4, 6, 8], "half of the third file is unread"
    assert spool.state.behind == 5
    spool.forget(10)
    assert files.starts(Location.of(source.path)) == [8]
    spool.close()
    spool = Spool(source, 10)
    assert spool.accept(body("5\n")).result(60) == Acceptance(10, 12)
    spool.close()


def test_keys_outlive_their_bytes(tmp_path: Path) -> None:
    """A snapshot has the keys of files that were removed; it is written before they are."""
    source = pushed(tmp_path)
    spool = Spool(source, 0)
    for number in range(4):
        spool.accept(body(f"{number}\n"), f"k{number}").result(60)
    spool.forget(8)
    assert len(files.starts(Location.of(source.path))) == 4, "with keys files are removed in rounds"
    spool.close()
    assert files.starts(Location.of(source.path)) == [6]
    for read in (8, 10):
        spool = Spool(source, read)
        for number in range(4):
            assert spool.accept(body(f"{number}\n"), f"k{number}").result(60).repeated
        spool.accept(body("z\n"), f"z{read}").result(60)
        spool.close()
    assert [each.name for each in folder_of(source).glob("keys-*")] == ["keys-000000000000000010"], "the newest alone"


def test_keys_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a day, and when there are more than are remembered: the oldest first, also across a restart."""
    now, source = [10 * DAY], pushed(tmp_path)
    monkeypatch.setattr(spooling, "time_ns", lambda: now[0] * 1_000)

    def repeated(spool: Spool, *names: str) -> list[bool]:
        return [spool.accept(body(f"{name}\n"), name).result(60).repeated for name in names]

    spool = Spool(source, 0, most_keys=3)
    assert repeated(spool, "a", "b", "c", "a") == [False, False, False, True]
    assert repeated(spool, "d", "b", "a") == [False, True, False]
    spool.close()
    spool = Spool(source, 0, most_keys=3)
    assert repeated(spool, "c", "d", "a") == [True, True, True]
    now[0] += DAY - 1
    assert repeated(spool, "a", "e") == [True, False]
    now[0] += 1
    assert repeated(spool, "e", "a") == [True, False]
    spool.close()


def test_backlog(tmp_path: Path) -> None:
    """More than the backlog is refused until epochs have read; a repeated key is answered all the same."""
    source = pushed(tmp_path, backlog=100_000)
    spool = Spool(source, 0)
    large = body("x" * 80_000 + "\n")
    spool.accept(large, "k").result(60)
    with pytest.raises(TrunkBehind, match="'orders' is behind: 80,001 bytes wait to be read"):
        spool.accept(large)
    assert spool.accept(large, "k").result(60).repeated
    spool.check_room()
    spool.forget(80_001)
    spool.accept(large).result(60)
    spool.close()


def test_many_small_files_are_a_backlog_too(tmp_path: Path) -> None:
    """A file counts as 16 KiB at least: a million small ones would be slow to read."""
    source = pushed(tmp_path, backlog=100_000)
    spool = Spool(source, 0)
    for _ in range(6):
        spool.accept(body("x\n")).result(60)
    spool.accept(body("x\n")).result(60)
    with pytest.raises(TrunkBehind):
        spool.check_room()
    spool.forget(2)
    spool.check_room()
    spool.close()


def test_a_full_disk_refuses_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever write fails, the sender is told, a warning says so once, and a repeated key counts once."""
    source, warnings = pushed(tmp_path), list[str]()
    spool = Spool(source, 0, warnings.append)
    spool.accept(body("a\n"), "a").result(60)
    with monkeypatch.context() as patch:
        disk = Disk(tmp_path, patch, 0)
        for _ in range(2):
            with pytest.raises(DiskFull, match="the disk is full: cannot write"):
                spool.accept(body("b\n"), "b").result(60)
        assert disk.refused
    with monkeypatch.context() as patch:
        Disk(tmp_path, patch, 1)  # the bytes are written, and then the name is not
        with pytest.raises(DiskFull):
            spool.accept(body("b\n"), "b").result(60)
    assert len(warnings) == 1
    assert warnings[0].startswith("requests to 'orders' are refused: the disk is full")
    assert spool.accept(body("b\n"), "b").result(60) == Acceptance(2, 4)
    assert spool.accept(body("a\n"), "a").result(60).repeated
    spool.close()
    assert content(source) == "a\nb\n"


def test_a_write_that_fails_at_its_very_end_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is there, though its writer was told otherwise: who repeats the request under its key counts once."""
    source = pushed(tmp_path)
    spool = Spool(source, 0)
    spool.accept(body("0\n")).result(60)
    with monkeypatch.context() as patch:
        patch.setattr(disk, "sync", _broken)
        with pytest.raises(StateError, match="cannot write"):
            spool.accept(body("a\n"), "a").result(60)
    assert spool.accept(body("a\n"), "a").result(60) == Acceptance(2, 4, repeated=True)
    assert spool.accept(body("b\n")).result(60) == Acceptance(4, 6)
    spool.close()
    assert content(source) == "0\na\nb\n"


def _broken(path: Path) -> None:
    raise OSError(5, "Input/output error")


def test_a_place_that_is_taken_is_not_written_over(tmp_path: Path) -> None:
    """Another run that has the checkpoint by mistake cannot put its bytes in the place of ours."""
    source = pushed(tmp_path)
    one, other = Spool(source, 0), Spool(source, 0)
    one.accept(body("a\n")).result(60)
    with pytest.raises(StateError, match="another run is at work on this checkpoint"):
        other.accept(body("b\n")).result(60)
    one.close()
    other.close()
    assert content(source) == "a\n"


def _cut_short(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-3])


def _changed(file: Path) -> None:
    file.write_bytes(file.read_bytes().replace(b'"moment"', b'"MOMENT"'))


def _longer(file: Path) -> None:
    file.write_bytes(b"x" + file.read_bytes())


def _renamed(file: Path) -> None:
    os.rename(file, file.with_name("000000000000000003"))


@pytest.mark.parametrize("damage", [Path.unlink, _cut_short, _changed, _longer, _renamed])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_damage_is_named(tmp_path: Path, damage: Callable[[Path], None], which: int) -> None:
    """A file that is missing, cut short or changed is an error, for the next run and for who reads it."""
    source = pushed(tmp_path)
    spool = Spool(source, 0)
    for number in range(3):
        spool.accept(body(f"{number}\n")).result(60)
    spool.close()
    damage(folder_of(source) / str(files.FileName(2 * which)))
    lost = which == 2 and damage is Path.unlink
    with pytest.raises(StateError, match="is damaged"):
        Spool(source, 6 if lost else 0)
    if not lost:
        with pytest.raises(StateError, match="is damaged"):
            list(files.bodies(Location.of(folder_of(source) / str(files.FileName(0))), 6))
        with pytest.raises(StateError, match="is damaged"):
            files.footers(Location.of(source.path), 0, 6)


def test_any_part_can_be_read(tmp_path: Path) -> None:
    """To its readers a spool is one file, whatever its bytes lie in."""
    source = pushed(tmp_path)
    spool = Spool(source, 0)
    random = Random(3)
    text, ends = "", []
    for _ in range(20):
        lines = "".join("x" * random.randrange(9) + "\n" for _ in range(1, random.randrange(2, 5)))
        spool.accept(body(lines)).result(60)
        text += lines
        ends.append(len(text))
    spool.close()
    folder = Location.of(source.path)
    for _ in range(200):
        start = random.randrange(len(text))
        end = random.randrange(start, len(text) + 1)
        first, last = sorted(random.choices([0, *ends], k=2))
        assert b"".join(files.bodies(folder / str(files.FileName(first)), last)).decode() == text[first:last]
        assert files.borders(folder, start, end) == [*(each for each in ends if start < each < end), end]
        found = files.footers(folder, start, end)
        holding = [
            (first, last) for first, last in pairwise([0, *ends]) if first < end and start < last and start < end
        ]
        assert [(each.start, each.end) for each in found] == holding


def test_moments_do_not_run_backwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that is set back shows in no stream, also across a restart; what came within a tick has one moment."""
    now, source = [1_000_000], pushed(tmp_path)
    monkeypatch.setattr(spooling, "time_ns", lambda: now[0] * 1_000)
    spool = Spool(source, 0)
    for moment in (1_000_000, 1_020_000, 1_049_999, 1_050_000, 400_000):
        now[0] = moment
        spool.accept(body("x\n")).result(60)
    spool.close()
    spool = Spool(source, 0)
    spool.accept(body("x\n")).result(60)
    now[0] = 2_000_000
    spool.accept(body("x\n")).result(60)
    spool.close()
    moments = [each.moment for each in files.footers(Location.of(source.path), 0, 14)]
    assert moments == [1_000_000, 1_000_000, 1_000_000, 1_050_000, 1_050_000, 1_050_000, 2_000_000]


def test_spools_follow_the_streams(tmp_path: Path) -> None:
    """Streams come, go and change; one that cannot be opened leaves all others as they were."""
    found = Spools(lambda message: None)
    orders, sales = pushed(tmp_path), pushed(tmp_path, "sales")
    with found.changed([orders], lambda name: 0):
        pass
    spool = found.get("orders")
    assert spool is not None
    spool.accept(body("a\n")).result(60)
    with found.changed([orders, sales], lambda name: 0):
        pass
    assert found.names == ["orders", "sales"]
    assert found.get("orders") is spool
    with (
        pytest.raises(UsageError, match="holds requests that nobody has read, as 'json', not as 'lines'"),
        found.changed([pushed(tmp_path, format="lines")], lambda name: 0),
    ):
        pass
    with pytest.raises(KeyError), found.changed([pushed(tmp_path, "more")], lambda name: 0):
        raise KeyError  # whatever else cannot be changed
    assert found.names == ["orders", "sales"]
    spool.accept(body("b\n")).result(60)
    with found.changed([pushed(tmp_path, backlog=1)], lambda name: 0):
        pass
    with pytest.raises(TrunkBehind):
        spool.check_room()
    found.forget(lambda name: 4)
    with found.changed([pushed(tmp_path, format="lines")], lambda name: 0):
        pass
    with pytest.raises(SpoolClosed, match="was just declared anew"):
        spool.accept(body("c\n"))
    with found.changed([], lambda name: 0):
        pass
    assert found.get("orders") is None
    with pytest.raises(SpoolClosed):
        spool.check_room()
    found.close()


def test_what_a_killed_writer_has_left_is_removed(tmp_path: Path) -> None:
    """A file without its name was never accepted."""
    source = pushed(tmp_path)
    folder_of(source).mkdir()
    (folder_of(source) / ".000000000000000000.4711").write_bytes(b"half")
    spool = Spool(source, 0)
    assert spool.state.accepted == 0
    assert not list(folder_of(source).iterdir())
    spool.close()


def test_old_snapshots_do_not_hide_newer_keys(tmp_path: Path) -> None:
    """A key that is used again after it was forgotten belongs to its latest request."""
    held = keys.RememberedKeys(2)
    requests = [files.KeyedRequest(key, "d", n, n + 1, DAY) for n, key in enumerate("abca")]
    held.add(requests, DAY)
    assert [(each.key, each.start) for each in held.all()] == [("c", 2), ("a", 3)]


# --- in an object store -----------------------------------------------------------------------------------------


class Store:
    """A spool in an object store, which several runs open."""

    def __init__(self, folder: Path) -> None:
        self.folder = Location.of(f"file+object://{folder}/objects")
        self.source = replace(pushed(folder), path=self.folder)
        self.failures: list[str] = []
        """Of the runs that were told to end."""

    def open(self, run: int, read: int = 0) -> Spool:
        """The spool in a run of a number."""

        def fail(error: Exception) -> None:
            self.failures.append(f"{run}: {error}")

        return Spool(self.source, read, run=WritingRun(run, lambda by: StateError(f"run {by} has taken over"), fail))

    def text(self, start: int = 0) -> str:
        """All that is there from the start of a file on, as tasks read it."""
        end = listed(self.source)[PUSHED]
        (found,) = HttpConnector(self.source, OrderLog(self.folder, ())).ranges(
            "orders/0", {"orders/0": {"file": 0, "position": start}}, {"orders/0": {"file": 0, "position": end}}, None
        )
        return b"".join(files.bodies(Location.of(found.path), found.end)).decode()


def test_a_spool_moves(tmp_path: Path) -> None:
    """A run with nothing but the store goes on behind the last byte, and knows the keys of bytes that are gone."""
    store = Store(tmp_path)
    for run in range(1, 5):
        spool = store.open(run, (run - 1) * 4)
        for number in range(1, 2 * run - 1):
            place = Acceptance(2 * number - 2, 2 * number, repeated=True)
            assert spool.accept(body(f"{number}\n"), f"k{number}").result(60) == place
        for number in (2 * run - 1, 2 * run):
            place = Acceptance(2 * number - 2, 2 * number)
            assert spool.accept(body(f"{number}\n"), f"k{number}").result(60) == place
        with pytest.raises(KeyReused):
            spool.accept(body("x\n"), "k1")
        assert listed(store.source) == {PUSHED: run * 4}
        if run % 2:
            spool.forget(run * 4)
            spool.close()  # or else it was killed
    spool = store.open(5, 12)
    assert store.text(12) == "7\n8\n"
    spool.forget(16)
    spool.close()
    assert [str(each) for each in files.names(store.folder) if each.start == 14] == ["000000000000000014-00000004"]
    assert listed(store.source) == {PUSHED: 16}


def test_a_run_that_was_overtaken_accepts_nothing(tmp_path: Path) -> None:
    """However far the next run has read and removed files: nothing that the first one takes is lost or comes twice."""
    store = Store(tmp_path)
    first = store.open(1)
    first.accept(body("1\n"), "a").result(60)
    second = store.open(2)
    assert second.accept(body("1\n"), "a").result(60).repeated
    for each in "234":
        second.accept(body(f"{each}\n")).result(60)
    text = store.text()
    second.forget(8, at_once=True)
    assert files.starts(store.folder) == [0, 2, 6], "two claims and the newest file"
    for key in ("b", "c", None):
        with pytest.raises(StateError, match="run 2 has taken over"):
            first.accept(body("5\n"), key).result(60)
    with pytest.raises(StateError, match="run 2 has taken over"):
        first.check_room()
    assert set(store.failures) == {"1: run 2 has taken over"}
    assert second.accept(body("5\n"), "b").result(60) == Acceptance(8, 10)
    first.close()
    second.close()
    assert text == "1\n2\n3\n4\n"
    assert store.text(8) == "5\n"


def test_what_a_run_takes_while_it_is_overtaken_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file comes before the claim: it is a part of the stream, and the next run knows its keys."""
    store = Store(tmp_path)
    first = store.open(1)
    first.accept(body("1\n"), "a").result(60)
    create = durable.create

    def meanwhile(where: Location, data: bytes) -> bool:
        monkeypatch.setattr(durable, "create", create)
        first.accept(body("2\n"), "b").result(60)
        return create(where, data)

    monkeypatch.setattr(durable, "create", meanwhile)
    second = store.open(2)
    assert second.accept(body("2\n"), "b").result(60) == Acceptance(2, 4, repeated=True)
    assert second.accept(body("3\n")).result(60) == Acceptance(4, 6)
    assert store.text() == "1\n2\n3\n"
    first.close()
    second.close()


def test_the_later_of_two_runs_has_the_spool(tmp_path: Path) -> None:
    """Whichever comes first: numbers never decrease."""
    store = Store(tmp_path)
    third = store.open(3)
    with pytest.raises(StateError, match="run 3 has taken over"):
        store.open(2)
    assert third.accept(body("1\n")).result(60) == Acceptance(0, 2)
    third.close()
    assert store.failures == []


def test_files_are_removed_while_a_run_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run before still removes what was read when the next one has listed it: no key is forgotten."""
    store = Store(tmp_path)
    first = store.open(1)
    for number in range(4):
        first.accept(body(f"{number}\n"), f"k{number}").result(60)
    load = keys.load

    def meanwhile(folder: Location) -> list[files.KeyedRequest]:
        monkeypatch.setattr(keys, "load", load)
        found = load(folder)
        first.forget(6, at_once=True)
        return found

    monkeypatch.setattr(keys, "load", meanwhile)
    second = store.open(2, 6)
    for number in range(4):
        assert second.accept(body(f"{number}\n"), f"k{number}").result(60).repeated
    assert second.state.behind == 2
    first.close()
    second.close()


@pytest.mark.parametrize("left", [(0,), (2,), (4,), (0, 4), (2, 4)])
def test_files_that_were_about_to_be_removed(tmp_path: Path, left: tuple[int, ...]) -> None:
    """Killed meanwhile, a run has removed some of them, in any order; the next removes the others."""
    store = Store(tmp_path)
    first = store.open(1)
    for number in range(4):
        first.accept(body(f"{number}\n"), f"k{number}").result(60)
    keys.save(store.folder, 6, [files.KeyedRequest(f"k{n}", "d", 2 * n, 2 * n + 2, DAY) for n in range(4)])
    store.folder.delete_all([str(files.FileName(start, 1)) for start in (0, 2, 4) if start not in left])
    second = store.open(2, 6)
    assert (second.state.accepted, second.state.behind) == (8, 2)
    second.forget(8, at_once=True)
    second.close()
    first.close()
    assert [each for each in files.names(store.folder) if each.start in (2, 4)] == []
    with pytest.raises(StateError, match="is damaged: a part of what was accepted is missing"):
        store.open(3, 4)


def test_a_listing_that_is_no_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that writes all the time while its folder is listed: a name may be missed, and a later one found."""
    store = Store(tmp_path)
    first = store.open(1)
    first.accept(body("1\n")).result(60)

    def torn(folder: Location) -> list[files.FileName]:
        monkeypatch.setattr(spooling, "names", files.names)
        for each in "234":
            first.accept(body(f"{each}\n"), each).result(60)
        return [each for each in files.names(folder) if each.start != 4]

    monkeypatch.setattr(spooling, "names", torn)
    second = store.open(2)
    assert second.state.accepted == 8
    assert second.accept(body("3\n"), "3").result(60) == Acceptance(4, 6, repeated=True)
    assert store.text() == "1\n2\n3\n4\n"
    first.close()
    second.close()


@pytest.mark.mass
def test_old_claims_are_removed(tmp_path: Path) -> None:
    """Those of the latest hundred runs stay."""
    store = Store(tmp_path)
    for run in range(1, 111):
        spool = store.open(run, 2 * max(0, run - 2))
        spool.accept(body("1\n")).result(60)
        spool.close()
    assert sum(files.read_footer(store.folder / str(each)).claimed > 0 for each in files.names(store.folder)) <= 101
