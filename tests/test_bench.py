"""The benches measure what they say they do."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest

from anabranch.bench import ingest
from anabranch.bench.timing import compare
from anabranch.columnar.shred import Wanted
from anabranch.stream.photons import photons


def test_two_things_are_timed_in_turns() -> None:
    """After the warm-up come pairs of turns ABBA; the figure is the median of the pairs' ratios."""
    turns: list[str] = []

    def clock(name: str, seconds: Callable[[int], float]) -> Callable[[], float]:
        numbers = count()

        def turn() -> float:
            turns.append(name)
            return seconds(next(numbers))

        return turn

    found = compare(clock("a", lambda _: 1.0), clock("b", lambda number: 2.0 + number), warm_up=2, pairs=3)
    assert "".join(turns) == "abab" + 3 * "abba"
    assert list(found.second) == [4, 5, 6, 7, 8, 9]
    assert list(found.ratios) == [4.5, 6.5, 8.5]
    assert found.ratio == 6.5


@pytest.mark.parametrize("start_tag", ["<photon>", "<photon><!-- seen -->"])
def test_seven_leaves_of_each_photon_come_in(tmp_path: Path, start_tag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task gives seven numbers for each photon in its ranges, wherever the file is cut, with and without comments."""
    monkeypatch.setattr(ingest, "_RANGE", 1_000)
    path = tmp_path / "photons"
    path.write_text("".join(photon.replace("<photon>", start_tag) + "\n" for photon in photons(60, 1)))
    ranges = ingest._ranges(path)
    assert len(ranges) > 5
    ids = pa.RecordBatch.from_pydict({"id": list(range(len(ranges)))})
    wanted = Wanted(ingest._template(next(photons(1, 1))), tuple(range(7)), (True,) * 7)
    rows = pa.Table.from_batches(ingest._shred(str(path), ranges, wanted, [ids])).to_pylist()
    expected = [photon.replace("<", ">").split(">") for photon in photons(60, 1)]
    assert [row["ra"] for row in rows] == [float(parts[parts.index("ra") + 1]) for parts in expected]
    assert [row["det_time"] for row in rows] == [float(parts[parts.index("det_time") + 1]) for parts in expected]
