"""How epochs and ranges are cut; no Spark needed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from anabranch.spark.intake import storage
from anabranch.spark.intake.order import FileStretch, StretchEnd
from anabranch.spark.intake.ranges import (
    LARGEST_RANGE,
    MEBIBYTE,
    SMALLEST_RANGE,
    Move,
    Partition,
    Position,
    Range,
    Waiting,
    advance,
    cut_up,
    spans,
    tasks,
)

START = Position(0, 0)
MANY = 1 << 40


class EveryTen:
    """Files whose lines are ten bytes each."""

    def line_end(self, file: str, position: int, limit: int) -> int:
        return min(limit, -(-position // 10) * 10)

    def last_line_end(self, file: str, position: int, limit: int) -> int:
        return max(position, limit // 10 * 10)


class Files:
    """A partition in the making: what lies there, and the order log that grows with every epoch."""

    def __init__(self, *, document: bool = False, finite: bool = True, packed: Sequence[str] = ()) -> None:
        self.sizes: dict[str, int] = {}
        self.log: list[FileStretch] = []
        self.document, self.finite, self.packed = document, finite, packed
        self.at = START

    def partition(self) -> Partition:
        ends = {each.file: each.end for each in self.log}
        fresh = [Waiting(name, 0, size) for name, size in sorted(self.sizes.items()) if name not in ends]
        grown = [Waiting(name, end, self.sizes[name]) for name, end in ends.items() if end and end < self.sizes[name]]
        size = self.sizes[self.log[-1].file] if self.log else 0
        return Partition(self.log, size, [*grown, *fresh], self.document, self.finite, EveryTen())

    def begin(self, waiting: Waiting) -> FileStretch:
        return FileStretch("0", waiting.file, waiting.start, waiting.file in self.packed, "")

    def epoch(self, budget: int = MANY, files: int = MANY) -> list[tuple[str, int, int, bool]]:
        """Go on, as an intake does, and show what lies between."""
        before = self.at
        move = advance(self.partition(), before, budget, files, self.begin)
        self.take(move)
        found = spans(self.log, before, self.at, self.document)
        return [(each.stretch.file, each.start, each.end, each.last) for each in found]

    def take(self, move: Move) -> None:
        for record in move.records:
            if isinstance(record, StretchEnd):
                last = self.log[-1]
                self.log[-1] = FileStretch("0", last.file, last.start, last.packed, "", None, record.end)
            else:
                self.log.append(record)
        self.at = move.to


def test_a_budget_of_bytes_ends_after_a_line() -> None:
    """25 bytes of ten-byte lines are three lines; the next epoch goes on from there."""
    files = Files()
    files.sizes = {"a": 100}
    assert files.epoch(25) == [("a", 0, 30, False)]
    assert files.at == (0, 30)
    assert files.epoch(25) == [("a", 30, 60, False)]


def test_an_epoch_goes_on_into_the_next_files() -> None:
    """What a short file leaves of the budget is spent on the files behind it."""
    files = Files()
    files.sizes = {"a": 40, "b": 30, "c": 100}
    assert files.epoch(90) == [("a", 0, 40, True), ("b", 0, 30, True), ("c", 0, 20, False)]


def test_an_epoch_has_so_many_files_at_most() -> None:
    """With two files an epoch, five files are three epochs."""
    files = Files()
    files.sizes = dict.fromkeys("abcde", 10)
    assert [len(files.epoch(files=2)) for _ in range(4)] == [2, 2, 1, 0]


def test_a_packed_file_is_one_range_whatever_the_budget() -> None:
    """Gzip cannot be entered in the middle, so it is read whole."""
    files = Files(packed=["a.gz"])
    files.sizes = {"a.gz": 5 * MEBIBYTE, "b": 10}
    assert files.epoch(10) == [("a.gz", 0, 5 * MEBIBYTE, True)]
    assert files.epoch(10) == [("b", 0, 10, True)]


def test_a_document_is_cut_anywhere() -> None:
    """It goes on by its carry; its end is known when nothing more can come."""
    files = Files(document=True)
    files.sizes = {"a.xml": 64}
    assert files.epoch(33) == [("a.xml", 0, 33, False)]
    assert files.epoch() == [("a.xml", 33, 64, True)]


def test_the_last_line_waits_for_its_newline() -> None:
    """While a file may grow, only whole lines are read; when a later file is there, the rest counts."""
    files = Files(finite=False)
    files.sizes = {"a": 25}
    assert files.epoch() == [("a", 0, 20, False)]
    assert files.epoch() == []
    files.sizes = {"a": 31}
    assert files.epoch() == [("a", 20, 30, False)]
    files.sizes = {"a": 31, "b": 5}
    assert files.epoch() == [("a", 30, 31, True)]
    files.sizes = {"a": 31, "b": 10}
    assert files.epoch() == [("b", 0, 10, False)]


def test_a_document_that_was_read_to_its_end_is_ended_later() -> None:
    """When the next file shows that it has ended, an empty last span lets its unfinished item be set aside."""
    files = Files(document=True, finite=False)
    files.sizes = {"a": 25}
    assert files.epoch() == [("a", 0, 25, False)]
    files.sizes = {"a": 25, "b": 5}
    assert files.epoch() == [("a", 25, 25, True), ("b", 0, 5, False)]


def test_a_file_that_grows_after_its_end_has_another_stretch() -> None:
    """The new bytes come next, from where the file had ended."""
    files = Files(finite=False)
    files.sizes = {"a": 20, "b": 10}
    assert files.epoch() == [("a", 0, 20, True), ("b", 0, 10, False)]
    files.sizes = {"a": 40, "b": 10}
    assert files.epoch() == [("a", 20, 40, False)]
    assert files.at == (2, 40)


def test_the_end_is_where_nothing_moves() -> None:
    """Spark takes an offset that does not change as the end of the input."""
    files = Files()
    files.sizes = {"a": 40, "b": 30}
    files.epoch()
    end = files.at
    assert not files.partition().behind(end)
    assert files.epoch() == []
    assert files.at == end
    assert Files().epoch() == []


def test_a_large_file_of_lines_gives_every_core_a_range() -> None:
    """Four cores get four pieces of 4 MiB; a megabyte is not worth a second task, a document has one anyway."""
    files = Files()
    files.sizes = {"a": 4 * MEBIBYTE, "b": MEBIBYTE}
    move = advance(files.partition(), START, MANY, MANY, files.begin)
    files.take(move)
    large, small = spans(files.log, START, files.at, False)
    pieces = list(cut_up(large, False, 4, EveryTen()))
    assert len(pieces) == 4
    assert [last for _, _, last in pieces] == [False, False, False, True]
    assert len(list(cut_up(small, False, 4, EveryTen()))) == 1
    assert len(list(cut_up(large, True, 4, EveryTen()))) == 1


def test_ranges_keep_all_cores_busy_to_the_end() -> None:
    """A file that is too large for one range a core is read in rounds, and the last round is as long as the others."""
    files = Files()
    files.sizes = {"a": 3 * LARGEST_RANGE, "b": MEBIBYTE}
    files.take(advance(files.partition(), START, MANY, MANY, files.begin))
    large, _ = spans(files.log, START, files.at, False)
    sizes = [end - start for start, end, _ in cut_up(large, False, 2, EveryTen())]
    assert len(sizes) == 4
    assert max(sizes) - min(sizes) < 100


def test_small_neighbours_share_a_task() -> None:
    """A thousand ranges of a kilobyte are one task, in order; a large range has a task to itself."""
    sizes = [1000] * 1000 + [2 * MEBIBYTE]
    found = [Range("s", "0", n, "f", "/f", 0, size, True, False, n) for n, size in enumerate(sizes)]
    grouped = list(tasks(found))
    assert [each for task in grouped for each in task] == found
    assert [len(task) for task in grouped] == [1000, 1]
    assert all(len(task) == 1 or sum(each.end - each.start for each in task) <= SMALLEST_RANGE for task in grouped)


@given(
    sizes=st.lists(st.tuples(st.integers(1, 400), st.booleans()), max_size=6),
    document=st.booleans(),
    finite=st.booleans(),
    budgets=st.lists(st.tuples(st.integers(1, 300), st.integers(1, 3)), min_size=1, max_size=5),
)
def test_epochs_cover_every_byte_once_and_in_order(
    sizes: list[tuple[int, bool]], document: bool, finite: bool, budgets: list[tuple[int, int]]
) -> None:
    """Whatever the budgets, the spans of all epochs laid end to end are the files laid end to end."""
    files = Files(document=document, finite=finite, packed=[f"{n}" for n, (_, packed) in enumerate(sizes) if packed])
    files.sizes = {f"{n}": size for n, (size, _) in enumerate(sizes)}
    joined: dict[str, int] = {}
    turn = 0
    while (before := files.at) is not None:
        for file, start, end, _ in files.epoch(*budgets[turn % len(budgets)]):
            assert list(joined)[-1:] == [file] or file not in joined
            assert joined.get(file, 0) == start
            joined[file] = end
        turn += 1
        if files.at == before:
            break
    waits = not finite and not document and sizes and not sizes[-1][1]  # the last line of the last file
    expected = {name: size for name, size in files.sizes.items() if size}
    if waits:
        last = f"{len(sizes) - 1}"
        expected[last] = expected[last] // 10 * 10
    assert {name: end for name, end in joined.items() if end} == {n: end for n, end in expected.items() if end}


def test_line_ends_are_looked_up_in_the_file(tmp_path: Path) -> None:
    """A cut moves to the end of its line; at a line's start it stays; behind the last newline is the limit."""
    long = b"x" * 200_000
    path = tmp_path / "lines"
    path.write_bytes(b"one\ntwo\n" + long + b"\nrest")
    size = path.stat().st_size

    def line_end(position: int) -> int:
        return storage.line_end(str(path), position, size)

    assert line_end(1) == 4
    assert line_end(4) == 4
    assert line_end(5) == 8
    assert line_end(9) == 8 + len(long) + 1
    assert line_end(size - 1) == size
    assert storage.last_line_end(str(path), 0, size) == size - 4
    assert storage.last_line_end(str(path), 4, size - 10) == 8
    assert storage.last_line_end(str(path), 8, size - 10) == 8
