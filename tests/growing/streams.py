"""Two streams of items as files, for queries that are answered at once."""

from __future__ import annotations

from pathlib import Path
from random import Random

from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source


def some_items(random: Random, count: int, *, dull: bool = False) -> list[str]:
    """Items that are out of order here and there, one to a line; some values are no numbers, unless they are `dull`."""
    now, found = 0, []
    for _ in range(count):
        now += random.choice((0, 0, 1, 1, 2, 5))
        late = random.choice((0, 0, 0, 0, 1))
        value = random.choice((*range(10), *range(10), 2.5, 4 if dull else "x"))
        key = "".join(f"<k>{random.choice('abc')}</k>" for _ in range(random.choice((0, 1, 1, 1))))
        found.append(f"<i><t>{max(0, now - late)}</t>{key}<v>{value}</v></i>")
        if random.random() < 0.1:
            found.append(f'<s:punctuation xmlns:s="urn:anabranch:stream" at="{now}"/>')
        if random.random() < 0.05:
            found.append("<i><v></i>")
    return found


def sources(folder: Path, random: Random) -> list[Source]:
    """The streams, to their end; 'a' may have several partitions."""
    dull = random.random() < 0.6
    found = []
    for name, partitions in (("a", random.choice((1, 1, 2))), ("b", 1)):
        files = [folder / f"{name}{number}" for number in range(partitions)]
        for file in files:
            file.write_text("\n".join([*some_items(random, random.randrange(1, 10), dull=dull), ""]))
        found.append(Source(name, files[0], "lines", more=tuple(files[1:]), time=ItemPath.parse("t"), root="r"))
    return found
