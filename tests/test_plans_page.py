"""What docs/evolution.md shows of plans in Python is run, with a bare trunk in the place of Spark."""

from __future__ import annotations

import doctest
from pathlib import Path
from random import Random

from anabranch.algebra.plans import builder
from anabranch.algebra.plans.interpret import StreamSource
from anabranch.algebra.plans.written import write_plan
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from spark.bare import BareTrunk
from test_docs import TOP, blocks

PAGE = TOP / "docs/evolution.md"


class Engine:
    """As much of an engine as the page needs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._source: Source | None = None
        self._count = 0

    def stream(self, name: str, path: str, *, time: str) -> builder.DerivedStream:
        self._source = Source(name, self._folder / path, "document", time=ItemPath.parse(time))
        return builder.DerivedStream(StreamSource(name))

    def subscribe(self, query: builder.DerivedStream) -> Answer:
        assert self._source is not None
        self._count += 1
        trunk = BareTrunk(self._folder / str(self._count), [self._source], Random(self._count), finite=False)
        trunk.run({"q": write_plan(query.plan)}, (200,), (1, 2))
        return Answer(trunk)


class Answer:
    """A subscription that has read what there is."""

    def __init__(self, trunk: BareTrunk) -> None:
        self._trunk = trunk

    def answer(self) -> str:
        return self._trunk.answer("q")


def test_the_plans_of_the_page(tmp_path: Path) -> None:
    """The examples give what stands there, over the stream with the pressure that stands above them."""
    (readings,) = (each.text for each in blocks(PAGE) if each.kind == "xml" and "<s:add" in each.text and each.words)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0001").write_text(readings)
    (shown,) = (each.text for each in blocks(PAGE) if each.text.startswith(">>> "))
    test = doctest.DocTestParser().get_doctest(f"{shown}\n", {"engine": Engine(tmp_path)}, PAGE.name, str(PAGE), 0)
    assert doctest.DocTestRunner().run(test) == (0, 6)
