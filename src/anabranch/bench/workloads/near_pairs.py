"""Pairs of photons of one stream that come close together: an interval join, for us, for plain Spark and for peers.

Both hit the same column of the detector, the one no more than so long before or behind the other, and with so much more
energy.
Times have three digits, so an interval of half a millisecond more has no pairs on its edges, where roundings decide.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import TypeAlias

from anabranch.bench.workloads.photons import Rows, read_photons
from anabranch.stream.photons import photons

_PAIR = re.compile(r"<pair>(.*?)</pair>")
_VALUE = re.compile(r">([^<]+)<")
_ENDLESS = 1 << 40
Pair: TypeAlias = tuple[float, ...]
"""The energies and the times of both photons."""


@dataclass(frozen=True, slots=True)
class NearPairs:
    """Photons in the same column, up to `apart` milliseconds from each other, one with `more` eV than the other."""

    apart: int
    more: int

    @property
    def seconds(self) -> str:
        return f"{self.apart / 1_000 + 0.0005:.4f}"

    @property
    def query(self) -> str:
        """The query that answers with them."""
        return f"""<pairs>{{
  for $x in stream("photons")/photons/photon, $y in stream("photons")/photons/photon
  where $x/coord/det/dx = $y/coord/det/dx and $x/en >= $y/en + {self.more / 1_000}
    and $x/det_time - $y/det_time <= {self.seconds} and $y/det_time - $x/det_time <= {self.seconds}
  return <pair>{{ $x/en, $y/en, $x/det_time, $y/det_time }}</pair> }}</pairs>"""

    @property
    def line(self) -> str:
        """A line for the program of a peer."""
        return f"{self.apart} {self.more / 1_000}"

    def in_spark(self, lines: Rows) -> Rows:
        """The same as a join of plain Spark, over lines of photons."""
        columns = "en", "coord.det.dx as dx", "det_time", "timestamp_seconds(det_time) as time"
        found = read_photons(lines).selectExpr(*columns)
        found = found.withWatermark("time", "0 seconds")
        found.createOrReplaceTempView("near")
        reach = f"interval {1_000 * self.apart + 500} microseconds"
        return lines.sparkSession.sql(f"""
            select x.en as en, y.en as other_en, x.det_time as time, y.det_time as other_time
            from near as x join near as y on x.dx = y.dx and x.en >= y.en + {self.more / 1_000}
            and y.time >= x.time - {reach} and y.time <= x.time + {reach}""")


def near_pairs(many: int) -> list[NearPairs]:
    """So many different ones, all of which reach a minute."""
    return [NearPairs(60_000, 500 + 25 * number) for number in range(many)]


def pairs_in(answer: str) -> Counter[Pair]:
    """The pairs of an answer of ours."""
    return Counter(tuple(map(float, _VALUE.findall(each))) for each in _PAIR.findall(answer))


def long_files(folder: Path, items: int) -> Iterator[Path]:
    """Files of photons whose times go on from one to the next, without an end, each written when it is asked for."""
    folder.mkdir(parents=True)
    stream = photons(_ENDLESS, 1)
    for number in count():
        file = folder / f"photons-{number:05}"
        file.write_text("".join(f"{photon}\n" for photon in islice(stream, items)), encoding="utf-8")
        yield file
