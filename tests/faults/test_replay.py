"""An epoch that was begun and not finished is repeated as it was begun, whatever has changed since."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from anabranch import Engine
from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.checkpoint.folder import Checkpoint
from faults.small import QUERIES, Small


def answered(small: Small, name: str, until: int) -> str:
    """What the epochs before `until` have answered to a subscription, without its frame."""
    log = AnswerLog(Checkpoint.open(small.checkpoint))
    found = log.subscription(name)
    assert found is not None
    early = (manifest for manifest in log.manifests.since(0) if manifest.epoch < until)
    return "".join(log.text(chunk) for manifest in early for chunk in log.chunks(manifest, found.id))


def test_a_stream_that_has_left_takes_no_part_in_an_epoch_that_comes_again(spark: SparkSession, tmp_path: Path) -> None:
    """Killed when epoch 1 had its plan; its stream and queries are taken out before it comes again: they end there."""
    for name in ("undisturbed", "killed"):
        (tmp_path / name).mkdir()
    undisturbed = Small.make(spark, tmp_path / "undisturbed")
    undisturbed.run()

    killed = Small.make(spark, tmp_path / "killed")
    killed.run_until("plan-written", 1)
    with Engine(spark, checkpoint=killed.checkpoint, once=True) as engine:
        engine.stream("document", killed.folder / "document")
        document = engine.subscribe(QUERIES["doc"], "doc").answer()

    assert document == killed.law()["doc"]
    for name in ("all", "threes"):
        assert answered(killed, name, until=9) == answered(undisturbed, name, until=1)
