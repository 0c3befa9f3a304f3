"""Warnings of a run in which everything is set aside: told once, for a stream and for a subscription."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from anabranch.language import ast, parse
from anabranch.spark.epoch import silence
from anabranch.spark.epoch.silence import SilentSubscriptions
from anabranch.stream.reading.source import Source
from spark.bare import BareTrunk
from spark.trunks import Site

ABOVE = 'for $p in stream("s")/r/p where $p/f > 1 return <x>{ $p/f }</x>'
SUMS = 'for $w in stream("s")/r/p|count 2| return <x>{ sum($w/f) }</x>'
NEVER = 'for $p in stream("s")/r/q return $p'


def heard(folder: Path, lines: Sequence[str], **queries: str) -> list[str]:
    """What is told of a run over a stream, epoch by epoch."""
    (folder / "s").write_text("".join(f"{each}\n" for each in lines))
    trunk = BareTrunk(folder / "state", [Source("s", folder / "s", "lines", root="r")], Random(1), finite=False)
    trunk.run(queries, [40], [1])
    assert trunk.plan is not None
    assert trunk.epochs > 2
    warnings: list[str] = []
    silent = SilentSubscriptions(warnings.append)
    for manifest in trunk.log.manifests.since(0):
        letters = list(trunk.log.buried(manifest))
        answered = trunk.log.index(manifest).entries().numbers
        silent.take(trunk.plan, {"s": manifest.items}, answered, lambda found=letters: found)  # type: ignore[misc]
    return warnings


def test_a_subscription_that_fails_for_everything_is_told_once(tmp_path: Path) -> None:
    """By the first epoch whose items all fail, and not by the next; others that answer nothing are not told."""
    values = [f"<p><f>x{n}</f></p>" for n in range(9)]
    told = heard(tmp_path, values, bad=ABOVE, sums=SUMS, never=NEVER)
    assert sorted(each.split("'")[1] for each in told) == ["bad", "sums"]
    assert all(
        "answers nothing so far: all " in each and "is no number [FORG0001] (s/s at byte" in each for each in told
    )


def test_who_has_answered_is_not_told(tmp_path: Path) -> None:
    """Nor who has had an item that was not set aside."""
    values = ["<p><f>3</f></p>", *(f"<p><f>x{n}</f></p>" for n in range(8))]
    assert heard(tmp_path, values, good=ABOVE, empty=ABOVE.replace("> 1", "> 5")) == []


def test_a_stream_of_bad_items_is_told_once(tmp_path: Path) -> None:
    """Whatever the number of subscriptions."""
    (told,) = heard(tmp_path, ["<p><f>x</p>"] * 9, a=ABOVE, b=SUMS, c=NEVER)
    assert told.startswith("all items of stream 's' so far were set aside, as here: not well-formed")


def test_paths_that_lead_nowhere_are_looked_for_once_for_each_shape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many subscriptions differ in their constants only; the first of them are told."""
    checked: list[str] = []

    def noted(text: str) -> ast.Query:
        checked.append(text)
        return parse(text)

    monkeypatch.setattr(silence, "parse", noted)
    lost = {f"q{n}": f'for $p in stream("s")/lost/p where $p/f > {n} return $p' for n in range(50)}
    other = {"other": 'for $p in stream("s")/gone/p where $p/f > 1 return $p'}
    told = heard(tmp_path, ["<p><f>3</f></p>"] * 9, **lost, **other, good=ABOVE)
    assert [each.split("'")[1] for each in told] == [f"q{n}" for n in range(20)]
    assert all("lost" in each.partition(": ")[2] for each in told)
    assert len(checked) == 2


@pytest.mark.spark
def test_a_trunk_warns(spark: SparkSession, tmp_path: Path) -> None:
    """The trunk of a run tells it, once, in several epochs."""
    site = Site(spark, tmp_path)
    site.stream("s", "in")
    site.subscribe(bad='for $p in stream("s")/root/p where $p + 1 > 0 return $p')
    for name in "abc":
        site.write(f"in/{name}", "<p>x</p>\n<p>y</p>\n")
    site.run(epoch_bytes=10, epoch_files=1)
    assert len(site.seen) > 1
    assert [each for each in site.warnings if "answers nothing so far" in each] == [
        "the subscription 'bad' answers nothing so far: all 2 items were set aside, "
        "as here: 'y' is no number [FORG0001] (s/a at byte 9)"
    ]
