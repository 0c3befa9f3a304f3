"""The input of most benches: photons in files of lines, the way in which plain Spark reads them, and queries over them.

Times go on from file to file as in one long observation, so that a file is an epoch and none of it is late.
The queries are the stateful ones of the sharing paper, as its figures 3 and 10 print them, and window aggregates that
are all different: filters, sizes, steps and functions are drawn from a seed.
A photon comes every 250 ms, so steps of 20 to 30 seconds make about one window per 100 photons.
A filter asks for an interval of one path, of two, or of one and one half of another; it lets some hundredths to some
tenths of the photons through.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

from anabranch.stream.path import Path as ItemPath
from anabranch.stream.photons import photons
from anabranch.stream.reading.source import Source

Spark: TypeAlias = Any
"""A session of Spark, whose types only `spark/` knows."""
Rows: TypeAlias = Any
"""A data frame of Spark."""

LEAVES = ("ra", "dec", "dx", "dy", "phc", "en", "det_time")
_SCHEMA = """coord struct<cel: struct<ra: double, dec: double>, det: struct<dx: double, dy: double>>,
    phc double, en double, det_time double"""


def write_files(folders: Sequence[Path], files: int, items: int, start_tag: str = "<photon>", seed: int = 1) -> None:
    """Write `files` files of `items` photons each into each folder.

    Several folders get photons in turn, as instruments that look at the same sky: all different, and none ahead of the
    others, which would have to wait in a join.
    """
    stream = (photon.replace("<photon>", start_tag) + "\n" for photon in photons(len(folders) * files * items, seed))
    for folder in folders:
        folder.mkdir(parents=True)
    for number in range(files):
        with ExitStack() as held:
            opened = [held.enter_context((folder / f"photons-{number:05}").open("w")) for folder in folders]
            for _ in range(items):
                for file in opened:
                    file.write(next(stream))


def source(name: str, folder: Path) -> Source:
    """The stream of such files, with its declared time."""
    return Source(name, folder, root="photons", format="lines", time=ItemPath.parse("det_time"))


def read_photons(lines: Rows) -> Rows:
    """Photons out of lines of text, by Spark's own XML; nested as they are written."""
    return lines.selectExpr(f"from_xml(value, '{_SCHEMA}') as p").selectExpr("p.*")


def photons_streamed(spark: Spark, folder: Path) -> Rows:
    """Files of photons as a stream of plain Spark, one file to a trigger."""
    return read_photons(spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder)))


Q1 = """\
<photons>
{ for $w in stream("photons")/photons/photon
    [coord/cel/ra >= 120.0 and
     coord/cel/ra <= 138.0 and
     coord/cel/dec >= -49.0 and
     coord/cel/dec <= -40.0]
    |det_time diff 60 step 40|
  let $a := avg($w/en)
  where $a >= 1.3
  return <avg_en> { $a } </avg_en> }
</photons>
"""

Q2 = """\
<photons>
{ for $w in stream("photons")/photons/photon
    [coord/cel/ra >= 120.0 and
     coord/cel/ra <= 138.0 and
     coord/cel/dec >= -49.0 and
     coord/cel/dec <= -40.0]
    |det_time diff 20 step 10|
  let $a := avg($w/en)
  return <avg_en> { $a } </avg_en> }
</photons>
"""

Q5 = """\
<photons>
{ for $x in stream("photon1")/photons/photon
    |det_time diff 10 step 5|
  for $y in stream("photon2")/photons/photon
    |det_time diff 20 step 10|
  where $x/en >= $y/en + 0.5
  return
    <result>
      { $x/en } { $x/phc }
      { $y/en } { $y/phc }
    </result> }
</photons>
"""


_SPANS = {
    "coord/det/dx": (100, 380, 20, 60),
    "coord/det/dy": (100, 380, 20, 60),
    "coord/cel/ra": (0, 320, 10, 40),
    "coord/cel/dec": (-40, 20, 6, 24),
    "phc": (20, 120, 5, 30),
}
"""By path: the least and greatest begin of an interval, and its least and greatest width."""
_CALLS = (("avg", "en"), ("max", "en"), ("min", "en"), ("sum", "phc"), ("avg", "phc"), ("count", "en"))
_SIZES = (0.5, 1, 1.5, 2, 3)
"""Sizes of windows, in steps."""


def window_queries(count: int, seed: int = 1) -> dict[str, str]:
    """`count` queries by name."""
    random = Random(seed)
    return {f"w{number}": _query(random) for number in range(1, count + 1)}


def _query(random: Random) -> str:
    step = random.randrange(400, 601) / 20
    size = random.choice(_SIZES) * step
    function, path = random.choice(_CALLS)
    name = f"{function}_{path}"
    return f"""<photons>
{{ for $w in stream("photons")/photons/photon[{_condition(random)}] |det_time diff {size:g} step {step:g}|
  let $a := {function}($w/{path})
  return <{name}>{{ $a }}</{name}> }}
</photons>"""


def _condition(random: Random) -> str:
    first, second = random.sample(list(_SPANS), 2)
    return random.choice(
        (
            _interval(first, random),
            f"{_interval(first, random)} and {second} >= {_SPANS[second][0] + _SPANS[second][2]}",
            f"{_interval(first, random)} and en >= 0.{random.randrange(11, 20)}",
            f"({_interval(first, random)} or en > 2) and phc < {random.randrange(150, 250)}",
        )
    )


def _interval(path: str, random: Random) -> str:
    low, high, least, most = _SPANS[path]
    begin, width = random.randrange(low, high), random.randrange(least, most)
    return f"{path} >= {begin} and {path} < {begin + width}"
