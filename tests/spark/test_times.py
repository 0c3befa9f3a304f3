"""Times on a trunk without a JVM, over XML and JSON: answers and dead letters are those of the law (LAWS 2.3, 2.7)."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Literal

import pytest

from anabranch.stream.reading.source import Source
from mass import Mass
from oracle.time_queries import item_values, json_item, time_query, xml_item
from spark.test_local import found


@pytest.mark.parametrize("form", ["lines", "json"])
def test_generated_times(tmp_path: Path, form: Literal["lines", "json"], mass: Mass) -> None:
    """Eight queries at a time over forty items, in epochs of a few items, shared where they can be."""
    for number in mass.cases(40):
        random = Random(number)
        queries = {f"q{each}": time_query(random) for each in range(8)}
        write = xml_item if form == "lines" else json_item
        path = tmp_path / f"s{number}"
        path.write_text("\n".join(write(item_values(random)) for _ in range(40)) + "\n")
        source = Source("s", path, form, root="r", item="i" if form == "json" else None)
        size = random.choice((500, 5_000))
        assert found("local", [source], queries, size) == found("reference", [source], queries, size), queries
