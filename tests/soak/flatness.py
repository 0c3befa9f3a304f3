"""Whether a curve is flat: the line that fits it best does not rise by more than a bound, once all is warm.

The slope is that of Theil and Sen, the median of the slopes between any two samples: a peak here and there, as a
restart or a collection of garbage makes it, does not bend it.
What grows is told as a share of the median, over the part of the run that is judged.
Where other programs have work for the same processors, what takes time is first relieved of what it owes to them: a
line through latency and their load, over the same samples, says how much that is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np


@dataclass(frozen=True, slots=True)
class Bound:
    """How much a curve may grow."""

    share: float
    """By what share of its median, over the part that is judged."""
    least: float = 0.0
    """A growth up to this is none, in the unit of the curve: a thread more is no leak."""
    under_load: bool = False
    """Whether it depends on what else the machine does."""


@dataclass(frozen=True, slots=True)
class Flatness:
    """What was found of a curve."""

    level: float
    """Its median."""
    growth: float
    """By how much the fitted line rises over the part that is judged, in the unit of the curve."""
    bound: Bound

    @property
    def is_flat(self) -> bool:
        """Whether it grows by no more than it may; what falls is flat."""
        return self.growth <= max(self.bound.least, self.bound.share * self.level)

    @property
    def share(self) -> float:
        """The growth as a share of the median."""
        return self.growth / self.level if self.level else 0.0


def flatness(times: Sequence[float], values: Sequence[float], bound: Bound, load: Sequence[float] = ()) -> Flatness:
    """Fit a curve; `load` is that of others at the same times."""
    assert len(times) == len(values) >= 8, f"{len(values)} samples are too few to tell"
    level = median(values)
    if bound.under_load and load:
        values = relieved(times, values, load)
    return Flatness(level, slope(times, values) * (times[-1] - times[0]), bound)


def slope(times: Sequence[float], values: Sequence[float]) -> float:
    """The median of the slopes between any two samples."""
    at, value = np.array(times), np.array(values)
    first, second = np.triu_indices(len(at), 1)
    return float(np.median((value[second] - value[first]) / (at[second] - at[first])))


def relieved(times: Sequence[float], values: Sequence[float], load: Sequence[float]) -> list[float]:
    """The values without the part that follows the load, as least squares over time and load say."""
    at, value, other = np.array(times), np.array(values), np.array(load)
    by_load = np.linalg.lstsq(np.stack([np.ones_like(at), at, other], axis=1), value, rcond=None)[0][2]
    return [float(each) for each in value - max(0.0, by_load) * (other - other.mean())]
