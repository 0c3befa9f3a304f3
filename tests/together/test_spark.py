"""LAWS 3.7 on Spark: a crowd that comes and goes on a real trunk is given what each would have been given alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from anabranch.spark.plan.wanted import Settings, Workload
from spark.trunks import Site, printed
from together.crowds import Crowd


@pytest.mark.spark
@pytest.mark.parametrize(("number", "finite"), [(11, True), (2, False)], ids=["finite", "endless"])
def test_sharing_shows_in_no_answer_on_spark(spark: SparkSession, tmp_path: Path, finite: bool, number: int) -> None:
    """Each phase is a run of the trunk, in epochs of half of what there is."""
    crowd = Crowd.of(number, finite=finite, size=40)
    folder = tmp_path / "shared"
    site = Site(spark, folder)
    site.settings = Settings(trigger_ms=20, finite=finite, shards=2)
    site.wanted = Workload({each.name: each for each in crowd.sources(folder)}, {})

    def serve(wanted: Mapping[str, str]) -> None:
        texts = {name: printed(text, *site.wanted.streams) for name, text in wanted.items()}
        site.wanted = replace(site.wanted, subscriptions=texts)
        site.run(epoch_bytes=1 + sum(path.stat().st_size for path in folder.glob("[su]-?")) // 2)

    shared = crowd.run_on(serve, folder, crowd.lives)
    for place, life in enumerate(crowd.lives):
        alone = crowd.run(tmp_path / f"alone-{place}", [life])
        assert shared.given[life] == alone.given[life], life
        assert shared.late >= alone.late
    assert len(crowd.lives) > 10
