"""LAWS 2.9 for displays over items: one that keeps too much ends behind a definite moment, which is shown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from anabranch.stream.limits import CostCaps
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from growing.questions import question
from growing.streams import some_items
from growing.test_timelines import shown_at_once
from mass import Mass, some
from spark.bare import BareTrunk

S = "stream('s')/r/i"


def shown(
    folder: Path,
    sources: Sequence[Source],
    texts: Sequence[str],
    epochs: Sequence[int],
    held: int | None,
    seed: int = 1,
) -> list[tuple[list[str], str | None]]:
    """By query: what it has shown, moment after moment, and why it has ended; a trunk after the other goes on."""
    queries = {f"q{number}": text for number, text in enumerate(texts)}
    for _ in range(2):
        trunk = BareTrunk(folder, sources, Random(seed), finite=False)
        trunk.resume()
        trunk.caps = dict.fromkeys(queries, CostCaps(held=held))
        trunk.run(queries, epochs, [1, 2])
    assert trunk.plan is not None
    found: list[tuple[list[str], str | None]] = []
    for name in queries:
        subscription = trunk.log.subscription(name)
        assert subscription is not None
        moments = [each.text for each in trunk.log.answer(subscription).moments()]
        found.append((moments, trunk.aborted.get(trunk.plan.by_name[name].id)))
    return found


@pytest.mark.parametrize(
    ("text", "last"),
    some(
        [
            (f"for $i in {S}[v > 0] order by $i/v return $i/t", 14),
            (f"for $i in {S} group by $k := $i/t return <g>{{ $k, count($i) }}</g>", 10),
            (f"for $i in {S} group by $k := $i/v return <g>{{ $k, median($i/t) }}</g>", 6),
            (f"for $i in {S} let $k := $i/v group by $k return <g>{{ $k, $i[last()]/t }}</g>", 6),
            (f"distinct-values({S}/t)", 10),
            (f"median({S}/t)", 10),
            (f"count(for $w in {S} |t diff 100| return $w)", 10),
            (f"sum(for $w in {S} |t diff 1| return sum($w/v))", None),
            (f"for $i in {S} group by $k := $i/v return <g>{{ $k, count($i) }}</g>", None),
            (f"sum({S}/v)", None),
            (f"(for $i in {S} order by $i/v return $i/t)[position() <= 10]", None),
        ]
    ),
)
def test_the_last_moment(text: str, last: int | None, tmp_path: Path) -> None:
    """LAWS case 174, and others: with ten entries, what is kept of twenty items decides which moment is the last."""
    (tmp_path / "s").write_text("".join(f"<i><t>{number}</t><v>{number % 4}</v></i>\n" for number in range(20)))
    source = Source("s", tmp_path / "s", "lines", root="r", time=ItemPath.parse("t"))
    ((free, _),) = shown(tmp_path / "free", [source], [text], [1 << 20], None)
    for epochs in ([1 << 20], [60]):
        ((moments, why),) = shown(tmp_path / str(epochs[0]), [source], [text], epochs, 10)
        if last is None:
            assert (moments, why) == (free, None)
        else:
            assert why == "it holds more than 10 nodes and entries of its display; 'max_held' allows more"
            assert moments == free[: len(moments)]
            assert moments == shown_upto(tmp_path, source, text, last)


def shown_upto(folder: Path, source: Source, text: str, last: int) -> list[str]:
    """What a query shows that takes no more than the first items."""
    lines = (folder / "s").read_text().splitlines(keepends=True)
    part = folder / f"upto {last}"
    part.write_text("".join(lines[: last + 1]))
    short = Source("s", part, "lines", root="r", time=source.time)
    ((moments, _),) = shown(folder / f"of {len(list(folder.iterdir()))}", [short], [text], [1 << 20], None)
    return moments


def test_random_displays_end_where_they_would_in_one_epoch(mass: Mass, tmp_path: Path) -> None:
    """Whatever the epochs, shards and trunks: what is shown is the beginning of what is shown without a bound."""
    over = 0
    for number in mass.cases(400):
        random = Random(number)
        folder = tmp_path / str(number)
        folder.mkdir()
        dull = random.random() < 0.8
        for name in ("a", "b"):
            items = some_items(random, 25, dull=dull)
            (folder / name).write_text("".join(f"{each}\n" for each in items))
        sources = [Source(name, folder / name, "lines", root="r", time=ItemPath.parse("t")) for name in ("a", "b")]
        texts = [text for text in (question(random) for _ in range(6)) if shown_at_once(text)]
        room = random.choice((2, 5, 10))
        free = shown(folder / "free", sources, texts, [1 << 20], None, number)
        whole = shown(folder / "whole", sources, texts, [1 << 20], room, number)
        parts = shown(folder / "parts", sources, texts, [40, 200, 1_000], room, number)
        assert whole == parts, (number, texts)
        for (moments, why), (all_moments, none) in zip(whole, free, strict=True):
            assert moments == (all_moments[: len(moments)] if why else all_moments) or none, (number, texts)
            over += why is not None
    assert over or mass.done < 10
