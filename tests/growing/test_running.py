"""Displays over streams without an end: they show what the query answers over the input so far (LAWS 3.11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from anabranch.engine.reading import read_stream
from anabranch.errors import DynamicError
from anabranch.language import check, parse
from anabranch.law import evaluate
from anabranch.law.arrivals.past import named
from anabranch.law.inputs import Arrival, Input
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from growing.questions import question
from growing.streams import some_items
from growing.test_timelines import shown_at_once
from mass import Mass
from spark.bare import BareTrunk


def law_so_far(text: str, sources: Sequence[Source]) -> str:
    """What a query answers over what was taken, its windows excepted, which close as if more were to come."""
    query = check(parse(text), text).query
    read = {each.name: read_stream(each, Limits()).input for each in sources}
    try:
        return evaluate(query, taken(read, named(query))).text
    except DynamicError:
        return ""


def taken(inputs: Mapping[str, Input], streams: Sequence[str]) -> dict[str, Input]:
    """Streams as far as they were taken: an element waits until all others have shown that they bring none earlier."""
    counts = dict.fromkeys(streams, 0)
    while all(counts[name] < len(inputs[name].elements) for name in streams):
        first = min(streams, key=lambda name: inputs[name].elements[counts[name]].time)
        counts[first] += 1
    found: dict[str, Input] = {}
    for name, count in counts.items():
        elements = inputs[name].elements[:count]
        arrivals = tuple(each for each in elements if isinstance(each, Arrival))
        inputs[name].root.children[:] = [each.item for each in arrivals]
        found[name] = replace(inputs[name], elements=elements, arrivals=arrivals, waiting=frozenset((0,)))
    return found


def grow(files: Sequence[Path], items: Sequence[Sequence[str]], upto: int) -> None:
    """Write the first items of each file."""
    for file, several in zip(files, items, strict=True):
        file.write_text("".join(f"{each}\n" for each in several[:upto]))


def test_random_queries_show_the_input_so_far(mass: Mass, tmp_path: Path) -> None:
    """After each of some runs, of other trunks over the same checkpoint, while files grow; nobody is late."""
    for number in mass.cases(1_500):
        random = Random(number)
        folder = tmp_path / str(number)
        folder.mkdir()
        files = [folder / name for name in ("a", "b")]
        dull = random.random() < 0.6
        items = [some_items(random, 12, dull=dull) for _ in files]
        sources = [Source(each.name, each, "lines", root="r", time=ItemPath.parse("t")) for each in files]
        texts = [text for text in (question(random) for _ in range(5)) if shown_at_once(text)]
        queries = {f"q{at}": text for at, text in enumerate(texts)}
        for upto in (random.randint(1, 4), random.randint(5, 9), 100):
            grow(files, items, upto)
            trunk = BareTrunk(folder / "state", sources, random, finite=False)
            trunk.resume()
            trunk.run(queries, [40, 200, 1_000], [1, 2, 3])
            for name, text in queries.items():
                assert trunk.answer(name) == law_so_far(text, sources), (number, upto, text)
