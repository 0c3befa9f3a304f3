"""Streams that grow, as the intake sees them: what comes next, what waits, what is noted, what is an error.

Each test is a list of actions on a folder; no Spark needed.
"""

from __future__ import annotations

import gzip
from dataclasses import replace
from itertools import count
from pathlib import Path
from threading import Event, Thread

import pytest

from anabranch.errors import StreamError
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.intake import folders
from anabranch.spark.intake.order import OrderLog
from anabranch.spark.intake.range_reader import RangeReader
from anabranch.spark.intake.ranges import Offset
from anabranch.spark.intake.settings import IntakeSettings
from anabranch.spark.intake.survey import Survey
from anabranch.stream.elements import DeadLetter, Item
from anabranch.stream.limits import Limits
from anabranch.stream.reading.source import KnownStream, Source
from anabranch.stream.serialize import serialize


class River:
    """A stream in a folder, and a survey of it that can be lost and made again."""

    def __init__(self, top: Path, form: str = "auto") -> None:
        self.folder = top / "in"
        self.folder.mkdir()
        self.source = Source("s", self.folder, form)  # type: ignore[arg-type]  # a format
        self.checkpoint = Checkpoint.make(top / "state")
        self.at: Offset = {}
        self.carries: dict[str, tuple[int, str]] = {}
        self.resize(1 << 20)

    def resize(self, epoch_bytes: int, epoch_files: int | None = None) -> None:
        streams = (self.source,)
        IntakeSettings(streams, epoch_bytes, epoch_files, 2, finite=False).save(self.checkpoint)
        self.restart()

    def hold(self, number: int | None) -> None:
        held = {} if number is None else {"s": number}
        replace(IntakeSettings.load(self.checkpoint), held=held).save(self.checkpoint)

    def restart(self) -> None:
        self.survey = Survey(self.checkpoint)

    def write(self, name: str, text: str | bytes) -> None:
        (self.folder / name).write_bytes(text.encode() if isinstance(text, str) else text)

    def append(self, name: str, text: str) -> None:
        with (self.folder / name).open("a") as file:
            file.write(text)

    def epoch(self) -> list[str]:
        """Go on by one epoch; items as text, dead letters by their reasons in brackets."""
        end = self.survey.latest(self.at)
        if end == self.at:
            return []
        found: list[str] = []
        stream = KnownStream.of(self.source, self.log().form or pytest.fail("the form is known"))
        for each in self.survey.ranges(self.at, end):
            if each.mark:
                continue
            number, carry = self.carries.pop(each.key, (-1, None))
            carry = carry if number == each.number else None
            reader = RangeReader(stream, stream.root(), Limits(), each, carry)
            for element in reader:
                match element:
                    case Item(tree):
                        found.append(serialize(tree))
                    case DeadLetter(_, reason):
                        found.append(f"[{reason}]")
            if after := reader.carry():
                self.carries[each.key] = (each.number, after)
        self.at = end
        return found

    def log(self) -> OrderLog:
        log = OrderLog.of(self.checkpoint, "s")
        log.refresh()
        return log

    def notes(self) -> list[tuple[str, str | None]]:
        return [(each.file, each.note) for each in self.log().stretches("0")]


def test_lines_come_when_they_are_whole(tmp_path: Path) -> None:
    """A last line without a newline waits, across a restart too; a file behind it shows that it has ended."""
    river = River(tmp_path, "lines")
    assert river.epoch() == []
    river.write("a", "<p>1</p>\n<p>2</")
    assert river.epoch() == ["<p>1</p>"]
    assert river.epoch() == []
    river.restart()
    river.append("a", "p>\n<p>3</p>")
    assert river.epoch() == ["<p>2</p>"]
    river.write("b", "<p>4</p>\n")
    assert river.epoch() == ["<p>3</p>", "<p>4</p>"]


def test_a_document_that_never_closes_keeps_giving_items(tmp_path: Path) -> None:
    """Items come as soon as they are whole, from any cut, also when each epoch has another survey."""
    river = River(tmp_path)
    text = "<ps>\n" + "".join(f"<p>{n}</p>\n" for n in range(8))
    found: list[str] = []
    for start in range(0, len(text), 5):
        river.append("a", text[start : start + 5])
        river.restart()
        found += river.epoch()
    assert found == [f"<p>{n}</p>" for n in range(8)]


def test_an_unfinished_item_is_set_aside_when_the_next_document_begins(tmp_path: Path) -> None:
    """All bytes of the first document were read before; the item it never finished becomes a dead letter then."""
    river = River(tmp_path)
    river.write("a", "<ps>\n<p>1</p>\n<p>2")
    assert river.epoch() == ["<p>1</p>"]
    river.write("b", "<ps><p>3</p></ps>")
    assert river.epoch() == ["['p' is not closed]", "<p>3</p>"]


def test_files_come_in_order_of_name_and_late_ones_next(tmp_path: Path) -> None:
    """A smaller name that turns up later is read next, before larger ones that wait, and noted (LAWS 1.1)."""
    river = River(tmp_path, "lines")
    river.resize(1, 1)
    for name in "bdf":
        river.write(name, f"<{name}/>\n")
    assert river.epoch() == ["<b/>"]
    river.write("a", "<a/>\n")
    river.write("c", "<c/>\n")
    assert [river.epoch() for _ in range(5)] == [["<a/>"], ["<c/>"], ["<d/>"], ["<f/>"], []]
    assert river.notes() == [("b", None), ("a", "late"), ("c", None), ("d", None), ("f", None)]


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_that_grows_after_its_end_goes_on(tmp_path: Path, packed: bool) -> None:
    """The new part comes next, noted; a document finds its root again, and the item that was cut is whole then."""
    river = River(tmp_path)
    pack = gzip.compress if packed else bytes
    front, rest = pack(b"<ps>\n<p>1</p><p>2"), pack(b"</p><p>3</p>")
    river.write("a", front)
    river.write("b", "<ps><p>4</p></ps>")
    assert river.epoch() == ["<p>1</p>", "['p' is not closed]", "<p>4</p>"]
    river.write("a", front + rest)
    assert river.epoch() == ["<p>2</p>", "<p>3</p>"]
    assert river.notes() == [("a", None), ("b", None), ("a", "grown")]


@pytest.mark.mass
def test_a_gzip_file_may_be_read_while_it_is_written(tmp_path: Path) -> None:
    """What can be unpacked comes at once, the rest later; the cut is no damage while the file may grow."""
    data = gzip.compress("".join(f"<p>{n}</p>\n" for n in range(30_000)).encode())
    river = River(tmp_path, "lines")
    river.write("a.gz", data[: len(data) // 2])
    first = river.epoch()
    assert 0 < len(first) < 30_000
    river.write("a.gz", data)
    assert first + river.epoch() == [f"<p>{n}</p>" for n in range(30_000)]


def test_a_file_taken_away_after_it_was_read_is_no_loss(tmp_path: Path) -> None:
    """Whoever cleans up behind us does no harm."""
    river = River(tmp_path, "lines")
    river.write("a", "<p>1</p>\n")
    assert river.epoch() == ["<p>1</p>"]
    (river.folder / "a").unlink()
    assert river.epoch() == []
    river.write("b", "<p>2</p>\n")
    assert river.epoch() == ["<p>2</p>"]


@pytest.mark.parametrize(("later", "text"), [(False, "<q/>\n"), (False, ""), (True, "<q/>\n")])
def test_a_file_that_shrinks_is_an_error(tmp_path: Path, later: bool, text: str) -> None:
    """Whether it is the file being read or an earlier one, what was read is no longer there: say so."""
    river = River(tmp_path, "lines")
    river.write("a", "<p>1</p>\n")
    river.epoch()
    if later:
        river.write("b", "<p>2</p>\n")
        river.epoch()
    river.write("a", text)
    with pytest.raises(StreamError, match="has become shorter"):
        river.epoch()


def test_a_file_that_was_overwritten_is_an_error(tmp_path: Path) -> None:
    """Longer than before but with another front: not a file that has grown."""
    river = River(tmp_path, "lines")
    river.write("a", "<p>1</p>\n")
    river.epoch()
    river.write("a", "<q>1</q>\n<q>2</q>\n")
    with pytest.raises(StreamError, match="was overwritten"):
        river.epoch()


def test_a_single_line_decides_nothing(tmp_path: Path) -> None:
    """It could be a short document or the first of many lines; the next line or file tells."""
    river = River(tmp_path)
    river.write("a", "<p><n>1</n></p>\n")
    assert river.epoch() == []
    river.append("a", "<p><n>2</n></p>\n")
    assert river.epoch() == ["<p><n>1</n></p>", "<p><n>2</n></p>"]


def test_a_torn_line_of_the_order_log_does_not_count(tmp_path: Path) -> None:
    """What a crash left of a line is written over by the next one."""
    river = River(tmp_path, "lines")
    river.write("a", "<p>1</p>\n")
    river.epoch()
    with river.checkpoint.gained("s").open("a") as file:
        file.write('{"partition": "0", "fi')
    river.restart()
    river.write("b", "<p>2</p>\n")
    assert river.epoch() == ["<p>2</p>"]
    assert river.notes() == [("a", None), ("b", None)]


def test_a_stream_that_is_held(tmp_path: Path) -> None:
    """It is read as far as it reached when the hold was met, in epochs of any size, and goes on with the next hold."""
    river = River(tmp_path, "lines")
    river.resize(9)
    river.write("a", "<p>1</p>\n<p>2</p>\n")
    river.hold(1)
    assert river.epoch() == ["<p>1</p>"]
    river.append("a", "<p>3</p>\n")
    river.write("b", "<p>4</p>\n")
    assert [river.epoch(), river.epoch()] == [["<p>2</p>"], []]
    river.hold(0)
    assert river.epoch() == []
    river.hold(2)
    river.append("b", "<p>5</p>\n")
    assert [river.epoch() for _ in range(4)] == [["<p>3</p>"], ["<p>4</p>"], ["<p>5</p>"], []]
    river.append("b", "<p>6</p>\n")
    assert river.epoch() == []
    river.hold(None)
    assert river.epoch() == ["<p>6</p>"]


def test_a_folder_into_which_files_are_moved_is_listed(tmp_path: Path) -> None:
    """A name that is gone when it is looked at, as that under which a file was written, takes no other with it."""
    (tmp_path / "a").write_text("<p/>")
    stop = Event()

    def move() -> None:
        for number in count():
            if stop.is_set():
                return
            hidden, seen = tmp_path / f".{number}", tmp_path / f"b{number % 10}"
            hidden.write_text("<q/>")
            hidden.rename(seen)
            seen.rename(tmp_path / f"c{number % 10}")  # whoever tidies up

    mover = Thread(target=move)
    mover.start()
    try:
        assert all(folders.listing(str(tmp_path)).get("a") == 4 for _ in range(3_000))
    finally:
        stop.set()
        mover.join()
