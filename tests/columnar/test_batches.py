"""A batch is gone when it is answered: its columns are large, and nobody waits for a collection of garbage."""

from __future__ import annotations

import gc
from pathlib import Path
from random import Random

import pytest

from anabranch.bench.workloads.forms import mixture
from anabranch.bench.workloads.readings import ELEMENTS, JSON_LINES, WireFormat, write_readings
from anabranch.columnar.expressions.evaluating import FrameEvaluation
from mass import some
from spark.bare import BareTrunk


@pytest.mark.parametrize("wire", some([ELEMENTS, JSON_LINES]), ids=lambda each: each.name)
def test_evaluations_are_no_garbage(tmp_path: Path, wire: WireFormat) -> None:
    """Of all forms of queries; whatever evaluates holds its batch."""
    (tmp_path / "in").mkdir()
    write_readings(tmp_path / "in" / "readings", wire, 500, "repeated")
    queries = {name: text for part in mixture(34, 0.9) for name, text in part.queries(wire).items()}
    run = BareTrunk(tmp_path / "run", [wire.source(tmp_path / "in")], Random(1), finite=True)
    gc.collect()
    gc.disable()
    try:
        run.run(queries, (20_000,), (1,))
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        left = [each for each in gc.garbage if type(each) is FrameEvaluation]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert left == []
