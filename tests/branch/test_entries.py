"""Entries and states: what is packed comes back, and what is not ours is refused by name."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from anabranch.aggregates.partial import Failure
from anabranch.branch.intake.backlog import Backlog, backlog_table, restore_backlogs
from anabranch.branch.intake.entries import FeedOrigin, cuts, divided, pack, unpack, without
from anabranch.branch.state import BranchState, reach, written
from anabranch.errors import StateError
from anabranch.stream.reading.lines import Cut
from branch.feeding import Taken

ORIGIN = FeedOrigin("s", 2, "file.xml", Fraction(7, 3))
CUTS = [
    Cut(3, 9, b"<i/>\xff", None, b"<r a='1'>", "latin-1"),
    Cut(9, 12, b"bad", "text between items"),
    *(Cut(20 + n, 21 + n, b"<i>" + b"x" * n + b"</i>", None, b"<r>") for n in range(50)),
]


def test_pack_and_unpack() -> None:
    """A feed gives back its origin and its cuts, all of them or from a number on."""
    origin, table = unpack(pack(ORIGIN, CUTS))
    assert origin == ORIGIN
    assert list(cuts(table)) == CUTS
    assert list(cuts(table, 51)) == CUTS[51:]
    assert list(cuts(unpack(without(pack(ORIGIN, CUTS), 2))[1])) == CUTS[2:]
    assert unpack(pack(ORIGIN, []))[1].num_rows == 0


def test_divided() -> None:
    """A long feed comes in parts of bounded size, unless one entry is longer, and none is lost."""
    long = [*CUTS, Cut(100, 101, b"y" * 9_000), *CUTS]
    parts = list(divided(pack(ORIGIN, long), 5_000))
    assert [cut for part in parts for cut in cuts(unpack(part)[1])] == long
    assert all(unpack(part)[0] == ORIGIN for part in parts)
    assert sum(len(part) > 5_000 for part in parts) == 1
    assert len(parts) > 2


def test_state_round_trip() -> None:
    """A state comes back from its blob, huge numbers and empty tables too."""
    state = BranchState(
        {"operator": "x", "next": 10**50}, {"a": pa.table({"n": [1, 2]}), "b": pa.table({"t": ["é"]}).slice(1)}
    )
    back = BranchState.from_bytes(state.to_bytes())
    assert back.meta == state.meta
    assert back.tables == state.tables
    for value in (None, Fraction(-7, 3), Fraction(10) ** 60, float("inf")):
        assert reach(written(value)) == value


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((b'"version": 7', b'"version": 6'), "the state of a branch is of version 6, and this release reads version 7"),
        ((b"anabranch branch", b"anabranch twig"), "this is 'anabranch twig', not the state of a branch"),
        ((b'{"kind"', b"kind"), "the state of a branch is damaged"),
        ((b'["a", ', b'["a", 9'), "the state of a branch is damaged"),
    ],
)
def test_foreign_state(change: tuple[bytes, bytes], message: str) -> None:
    """Another version, another kind and damage are refused, each with its reason."""
    data = BranchState({}, {"a": pa.table({"n": [1, 2]})}).to_bytes()
    assert change[0] in data
    with pytest.raises(StateError) as caught:
        BranchState.from_bytes(data.replace(*change))
    assert caught.value.message == message


def test_backlog_keeps_little_in_memory() -> None:
    """What waits beyond a small rest is written out in chunks, which come back one by one, also in a later epoch."""
    spill = Taken()
    backlog = Backlog(spill, small=4_000, chunk=8_000)
    backlog.append(pack(ORIGIN, CUTS[:2]))
    backlog.settle()
    assert (backlog.spilled, len(backlog)) == ((), 2)
    assert [backlog.take().cut for _ in range(2)] == CUTS[:2]
    for _ in range(5):
        backlog.append(pack(ORIGIN, CUTS))
    backlog.take()
    backlog.settle()
    assert len(backlog.spilled) == 5
    assert all(len(data) < 10_000 for data in spill.spilled.values())

    taken = [backlog.take().cut for _ in range(60)]
    backlog.settle()
    later = Backlog(spill, small=4_000, chunk=8_000)
    restore_backlogs({("s", 2): later}, backlog_table({("s", 2): backlog}))
    assert sum(table.num_rows for _, table in later.ahead(1 << 30)) == len(later)
    assert [cut for _, table in later.ahead(1) for cut in cuts(table)][:3] == (CUTS * 5)[61:64]
    assert len(later) == len(backlog) == 5 * 52 - 61
    assert later.spilled == backlog.spilled == tuple(f"spill-{n}" for n in range(1, 5))
    later.skip(100)
    while later.head is not None:
        taken.append(later.take().cut)
    assert taken == (CUTS * 5)[1:61] + (CUTS * 5)[161:]
    assert not later.spilled


def test_the_version_before_is_read() -> None:
    """A checkpoint goes on under this release that the one before has written; failures in it name no items."""
    data = BranchState({"n": 1}, {}).to_bytes().replace(b'"version": 6', b'"version": 5')
    assert BranchState.from_bytes(data).meta == {"n": 1}
    assert Failure.read([1, 9, "no", "X"]) == Failure(1, 9, "no", "X", (), 1)


def test_texts_that_end_before_they_begin_are_damage() -> None:
    """Arrow reads such a table, and whoever looked at its texts would read bytes of others."""
    offsets = np.array([0, 4, 2, 5], np.int32)
    texts = pa.Array.from_buffers(pa.string(), 3, [None, pa.py_buffer(offsets), pa.py_buffer(b"hello")])
    with pytest.raises(StateError):
        BranchState.from_bytes(BranchState({}, {"a": pa.table({"t": texts})}).to_bytes())
