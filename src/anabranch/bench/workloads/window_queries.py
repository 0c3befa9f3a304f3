"""Window aggregates over photons, all different: filters, sizes, steps and functions are drawn from a seed.

A photon comes every 250 ms, so steps of 20 to 30 seconds make about one window per 100 photons.
A filter asks for an interval of one path, of two, or of one and one half of another; it lets some hundredths to some
tenths of the photons through.
"""

from __future__ import annotations

from random import Random

_SPANS = {
    "coord/det/dx": (100, 380, 20, 60),
    "coord/det/dy": (100, 380, 20, 60),
    "coord/cel/ra": (0, 320, 10, 40),
    "coord/cel/dec": (-40, 20, 6, 24),
    "phc": (20, 120, 5, 30),
}
"""Where an interval may begin, and how wide it may be."""
_CALLS = (("avg", "en"), ("max", "en"), ("min", "en"), ("sum", "phc"), ("avg", "phc"), ("count", "en"))
_SIZES = (0.5, 1, 1.5, 2, 3)
"""By the step."""


def window_queries(count: int, seed: int = 1) -> dict[str, str]:
    """So many queries by name."""
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
