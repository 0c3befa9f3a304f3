"""How epochs and ranges are cut; no Spark needed."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from anabranch.spark.ranges import MEBIBYTE, SMALLEST_RANGE, File, Offset, Partition, Range, ranges, reach, tasks
from anabranch.spark.storage import line_end


def every_ten(file: File, position: int) -> int:
    """A file whose lines are ten bytes each."""
    return min(file.size, -(-position // 10) * 10)


def lines(name: str, size: int) -> File:
    return File(name, f"/in/{name}", size, "after lines")


def document(name: str, size: int) -> File:
    return File(name, f"/in/{name}", size, "anywhere")


def packed(name: str, size: int) -> File:
    return File(name, f"/in/{name}", size, "nowhere")


def spans(found: list[Range]) -> list[tuple[str, int, int, bool]]:
    return [(each.file, each.start, each.end, each.last) for each in found]


def test_a_budget_of_bytes_ends_after_a_line() -> None:
    """25 bytes of ten-byte lines are three lines; the next epoch goes on from there."""
    partition = Partition("s", "in", (lines("a", 100),))
    first = reach([partition], {}, 25, every_ten)
    assert first == {"s/in": {"file": "a", "position": 30}}
    assert reach([partition], first, 25, every_ten) == {"s/in": {"file": "a", "position": 60}}


def test_an_epoch_goes_on_into_the_next_files() -> None:
    """What a short file leaves of the budget is spent on the files behind it."""
    partition = Partition("s", "in", (lines("a", 40), lines("b", 30), lines("c", 100)))
    end = reach([partition], {}, 90, every_ten)
    assert end == {"s/in": {"file": "c", "position": 20}}
    assert spans(ranges([partition], {}, end, 2, every_ten)) == [
        ("a", 0, 40, True),
        ("b", 0, 30, True),
        ("c", 0, 20, False),
    ]


def test_a_packed_file_is_one_range_whatever_the_budget() -> None:
    """Gzip cannot be entered in the middle, so it is read whole."""
    partition = Partition("s", "in", (packed("a.gz", 5 * MEBIBYTE), lines("b", 10)))
    end = reach([partition], {}, 10, every_ten)
    assert end == {"s/in": {"file": "a.gz", "position": 5 * MEBIBYTE}}
    assert spans(ranges([partition], {}, end, 4, every_ten)) == [("a.gz", 0, 5 * MEBIBYTE, True)]
    assert spans(ranges([partition], end, reach([partition], end, 10, every_ten), 4, every_ten)) == [("b", 0, 10, True)]


def test_a_document_is_cut_anywhere_but_into_one_range_an_epoch() -> None:
    """Its ranges follow one another by their carry, so an epoch has only one."""
    partition = Partition("s", "in", (document("a.xml", 64 * MEBIBYTE),))
    end = reach([partition], {}, 33 * MEBIBYTE + 1, every_ten)
    assert spans(ranges([partition], {}, end, 4, every_ten)) == [("a.xml", 0, 33 * MEBIBYTE + 1, False)]
    rest = reach([partition], end, None, every_ten)
    assert spans(ranges([partition], end, rest, 4, every_ten)) == [("a.xml", 33 * MEBIBYTE + 1, 64 * MEBIBYTE, True)]


def test_a_large_file_of_lines_gives_every_core_a_range() -> None:
    """Four cores get four pieces of 4 MiB; a megabyte is not worth a second task."""
    large = Partition("s", "in", (lines("a", 4 * MEBIBYTE),))
    found = ranges([large], {}, reach([large], {}, None, every_ten), 4, every_ten)
    assert len(found) == 4
    assert [each.sequence for each in found] == [0, 1, 2, 3]
    small = Partition("s", "in", (lines("a", MEBIBYTE),))
    assert len(ranges([small], {}, reach([small], {}, None, every_ten), 4, every_ten)) == 1


def test_streams_share_the_budget_and_one_that_is_done_stands_still() -> None:
    """Two streams get half the bytes each; when one has ended the other gets all."""
    one = Partition("one", "a", (lines("a", 20),))
    two = Partition("two", "b", (lines("b", 100),))
    first = reach([one, two], {}, 40, every_ten)
    assert first == {"one/a": {"file": "a", "position": 20}, "two/b": {"file": "b", "position": 20}}
    second = reach([one, two], first, 40, every_ten)
    assert second == {"one/a": {"file": "a", "position": 20}, "two/b": {"file": "b", "position": 60}}
    assert spans(ranges([one, two], first, second, 2, every_ten)) == [("b", 20, 60, False)]


def test_the_end_is_where_nothing_moves() -> None:
    """Spark takes an offset that does not change as the end of the input."""
    partition = Partition("s", "in", (lines("a", 40), lines("b", 30)))
    end = reach([partition], {}, None, every_ten)
    assert reach([partition], end, None, every_ten) == end
    assert ranges([partition], end, end, 2, every_ten) == []
    assert reach([Partition("s", "in", ())], {}, None, every_ten) == {}


def test_a_stream_that_turns_up_later_starts_at_its_beginning() -> None:
    """An offset without the stream's key means byte 0 of its first file."""
    old = Partition("old", "a", (lines("a", 20),))
    new = Partition("new", "b", (lines("b", 20),))
    before = reach([old], {}, None, every_ten)
    after = reach([old, new], before, None, every_ten)
    assert spans(ranges([old, new], before, after, 2, every_ten)) == [("b", 0, 20, True)]


def test_small_neighbours_share_a_task() -> None:
    """A thousand files of a kilobyte are one task, in order; a large range has a task to itself."""
    partition = Partition("s", "in", (*(lines(f"{n:04}", 1000) for n in range(1000)), lines("z", 2 * MEBIBYTE)))
    found = ranges([partition], {}, reach([partition], {}, None, every_ten), 1, every_ten)
    grouped = list(tasks(found))
    assert [each for task in grouped for each in task] == found
    assert [len(task) for task in grouped] == [1000, 1]
    assert all(len(task) == 1 or sum(each.end - each.start for each in task) <= SMALLEST_RANGE for task in grouped)


@given(
    sizes=st.lists(st.tuples(st.integers(1, 400), st.sampled_from(["after lines", "anywhere", "nowhere"])), max_size=6),
    budgets=st.lists(st.integers(1, 300), min_size=1, max_size=5),
)
def test_epochs_cover_every_byte_once_and_in_order(sizes: list[tuple[int, str]], budgets: list[int]) -> None:
    """Whatever the budgets, the ranges of all epochs laid end to end are the files laid end to end."""
    files = tuple(File(f"{n}", f"/in/{n}", size, cuts) for n, (size, cuts) in enumerate(sizes))  # type: ignore[arg-type]
    partition = Partition("s", "in", files)
    seen: list[tuple[str, int, int]] = []
    at: Offset = {}
    for turn in range(10_000):
        end = reach([partition], at, budgets[turn % len(budgets)], every_ten)
        if end == at:
            break
        seen += [(each.file, each.start, each.end) for each in ranges([partition], at, end, 2, every_ten)]
        at = end
    joined: list[tuple[str, int, int]] = []
    for file, start, end_position in seen:
        if joined and joined[-1][0] == file:
            assert joined[-1][2] == start
            joined[-1] = (file, joined[-1][1], end_position)
        else:
            joined.append((file, start, end_position))
    assert joined == [(file.name, 0, file.size) for file in files]


def test_line_ends_are_looked_up_in_the_file(tmp_path: Path) -> None:
    """A cut moves to the end of its line; at a line's start it stays; behind the last newline is the file's end."""
    long = b"x" * 200_000
    path = tmp_path / "lines"
    path.write_bytes(b"one\ntwo\n" + long + b"\nrest")
    file = File("lines", str(path), path.stat().st_size, "after lines")
    assert line_end(file, 1) == 4
    assert line_end(file, 4) == 4
    assert line_end(file, 5) == 8
    assert line_end(file, 9) == 8 + len(long) + 1
    assert line_end(file, file.size - 1) == file.size
