"""The order of partitions without a time: what was seen at one moment comes first, one partition after the other."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path

import pytest

from anabranch.errors import StateError
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.intake.ranges import Offset, Range
from anabranch.spark.intake.settings import IntakeSettings
from anabranch.spark.intake.survey import Survey
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source


class Delta:
    """A stream of two partitions, both directories of lines; each epoch may have another survey."""

    def __init__(self, top: Path, *, timed: bool = False, finite: bool = False) -> None:
        self.folders = [top / "left", top / "right"]
        for folder in self.folders:
            folder.mkdir()
        time = ItemPath.parse("t") if timed else None
        self.source = Source("s", self.folders[0], "lines", more=(self.folders[1],), time=time)
        self.checkpoint = Checkpoint.make(top / "state")
        self.finite = finite
        self.at: Offset = {}
        self.last: list[Range] = []
        self.resize(1 << 20)

    def resize(self, epoch_bytes: int) -> None:
        settings = IntakeSettings((self.source,), epoch_bytes, None, 2, finite=self.finite)
        settings.save(self.checkpoint)
        self.survey = Survey(self.checkpoint)

    def write(self, side: int, name: str, items: str) -> None:
        (self.folders[side] / name).write_text("".join(f"<{each}/>\n" for each in items))

    def epoch(self) -> str:
        """What the next epoch reads, a letter for each item."""
        end = self.survey.latest(self.at)
        if end == self.at:
            return ""
        self.last = self.survey.ranges(self.at, end)
        assert self.last == Survey(self.checkpoint).ranges(self.at, end)  # as after a kill
        self.at = end
        read = (Path(each.path).read_bytes()[each.start : each.end] for each in self.last if not each.mark)
        return b"".join(read).decode().translate(str.maketrans("", "", "</>\n"))

    def rest(self) -> str:
        """What all epochs read that follow."""
        return "".join(takewhile(bool, iter(self.epoch, None)))


@pytest.mark.parametrize("epoch_bytes", [1, 9, 12, 1_000])
def test_the_size_of_epochs_does_not_show(tmp_path: Path, epoch_bytes: int) -> None:
    """What is there is read partition by partition, and what comes meanwhile after it, with every survey a new one."""
    delta = Delta(tmp_path)
    delta.write(0, "1", "abc")
    delta.write(1, "1", "xyz")
    delta.resize(epoch_bytes)
    found = delta.epoch()
    delta.write(0, "2", "de")
    delta.write(1, "2", "v")
    while not found.endswith("v"):
        delta.resize(epoch_bytes)
        found += delta.epoch()
    assert found == "abcxyzdev"
    assert delta.epoch() == ""


def test_a_moment_has_passed_when_all_of_it_is_read(tmp_path: Path) -> None:
    """All ranges of a sight have its moment; the mark that it has passed comes with the last, and moments rise."""
    delta = Delta(tmp_path)
    delta.write(0, "1", "abc")
    delta.write(1, "1", "xyz")
    delta.resize(12)
    marks, moments = [], []
    for _ in range(3):
        if not delta.epoch():
            break
        marks.append([each.mark for each in delta.last if each.mark])
        moments += [each.arrived for each in delta.last]
    assert marks == [[], ["passed"]]
    assert len(set(moments)) == 1
    delta.write(0, "2", "d")
    assert delta.epoch() == "d"
    (now,) = {each.arrived for each in delta.last}
    assert now is not None
    assert moments[0] is not None
    assert now > moments[0]


def test_partitions_with_a_time_are_read_side_by_side(tmp_path: Path) -> None:
    """Their items are merged later on, so none may fall behind because of the others."""
    delta = Delta(tmp_path, timed=True)
    delta.write(0, "1", "abc")
    delta.write(1, "1", "xyz")
    delta.resize(10)
    assert [delta.epoch() for _ in range(4)] == ["ax", "by", "cz", ""]


def test_finite_partitions_say_when_they_end(tmp_path: Path) -> None:
    """Each end is told once, with the last of its bytes; a partition without a byte ends at once."""
    delta = Delta(tmp_path, finite=True)
    delta.write(0, "1", "abc")
    delta.resize(5)
    ends = []
    while delta.epoch():
        ends.append([each.partition for each in delta.last if each.mark == "ended"])
    assert ends == [["1"], [], ["0"]]


def test_a_sight_of_another_moment_is_refused(tmp_path: Path) -> None:
    """What waits is on disk; without it, or with another, nobody could know the order."""
    delta = Delta(tmp_path)
    delta.write(0, "1", "abc")
    delta.resize(1)
    assert delta.epoch() == "a"
    (tmp_path / "state" / "scratch" / "sight.json").unlink()
    delta.resize(1)
    with pytest.raises(StateError, match=r"cannot read '.*sight.json'"):
        delta.epoch()
