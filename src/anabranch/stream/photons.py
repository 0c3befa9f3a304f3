"""Synthetic photons, reproducible everywhere: the stream of the sharing paper's examples.

The sky is evenly covered, a few point sources stand out, and a good part of the photons comes from the Vela supernova
remnant and, within it, from RX J0852.0-4622, because that is where the paper's queries look.
Energies fall off as they do in soft X-rays (0.1 to 2.4 keV); the channel `phc` follows the energy; detection times
never decrease.
For 90 seconds in every 300 Vela is bright in hard photons: invented, so that averages over windows differ.

Guarantees: the same count and seed give the same bytes on every machine and Python version, and a smaller count gives
the beginning of a larger one's.
Everything is therefore computed in integers (ten-thousandths of a degree, eV, milliseconds), with our own random
generator and tables instead of logarithms: the last bit of floating-point functions differs between platforms.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from importlib import resources
from itertools import accumulate
from typing import TextIO

_MASK = (1 << 64) - 1
_DEGREE = 10_000

# places in ten-thousandths of a degree: west, east, south, north of a box; ra, dec of a point
_VELA = (1_200_000, 1_380_000, -490_000, -400_000)
_REMNANT = (1_305_000, 1_355_000, -480_000, -450_000)
_POINT_SOURCES = ((836_331, 220_145), (2_449_795, -156_403), (2_995_903, 352_016))
"""The Crab, Scorpius X-1 and Cygnus X-1."""

# times in milliseconds
_MEAN_GAP = 250
_BRIGHT, _PERIOD = 90_000, 300_000


def photons(count: int, seed: int) -> Iterator[str]:
    """The first `count` photons of a seed, each the text of one item."""
    below = _generator(seed)
    time = 0
    for _ in range(count):
        time += bisect_right(_GAPS, below(_GAPS[-1]))
        share = below(100)
        if share < 60:
            (ra, dec), spectrum = _anywhere(below), _SOFT
        elif share < 65:
            (ra, dec), spectrum = _near(_POINT_SOURCES[below(len(_POINT_SOURCES))], below), _MEDIUM
        else:
            (ra, dec) = _inside(_VELA if share < 85 else _REMNANT, below)
            spectrum = _HARD if time % _PERIOD < _BRIGHT else _MEDIUM
        energy = 100 + bisect_right(spectrum, below(spectrum[-1]))
        channel = energy * (850 + below(301)) // 10_000
        dx, dy = (below(512) + below(512)) // 2, (below(512) + below(512)) // 2
        yield (
            f"<photon><coord><cel><ra>{_degrees(ra)}</ra><dec>{_degrees(dec)}</dec></cel>"
            f"<det><dx>{dx}</dx><dy>{dy}</dy></det></coord><phc>{channel}</phc>"
            f"<en>{energy // 1000}.{energy % 1000:03}</en><det_time>{time // 1000}.{time % 1000:03}</det_time></photon>"
        )


def write_photons(out: TextIO, count: int, seed: int) -> None:
    """Write a whole document of `count` photons, one to a line."""
    out.write("<photons>\n")
    for photon in photons(count, seed):
        out.write(photon + "\n")
    out.write("</photons>\n")


def photons_dtd() -> str:
    """The DTD of the stream, figure 2 of the sharing paper."""
    return resources.files(__package__).joinpath("photons.dtd").read_text(encoding="utf-8")


def _generator(seed: int) -> Callable[[int], int]:
    """SplitMix64 (Steele, Lea, Flood 2014) as a function `below(n)`: a number from 0 to n - 1."""
    state = seed & _MASK

    def below(n: int) -> int:
        nonlocal state
        state = (state + 0x9E3779B97F4A7C15) & _MASK
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return ((z ^ (z >> 31)) * n) >> 64

    return below


# --- the sky ------------------------------------------------------------------------------------------------


def _anywhere(below: Callable[[int], int]) -> tuple[int, int]:
    """A place on the sphere: a declination is taken with the probability of its cosine, by Bhaskara's formula."""
    while True:
        dec = below(180 * _DEGREE + 1) - 90 * _DEGREE
        whole, square = 32_400 * _DEGREE * _DEGREE, dec * dec
        if below(whole + square) < whole - 4 * square:
            return below(360 * _DEGREE), dec


def _near(source: tuple[int, int], below: Callable[[int], int]) -> tuple[int, int]:
    ra, dec = source
    return ra + below(501) - 250, dec + below(501) - 250


def _inside(box: tuple[int, int, int, int], below: Callable[[int], int]) -> tuple[int, int]:
    west, east, south, north = box
    return west + below(east - west + 1), south + below(north - south + 1)


def _degrees(value: int) -> str:
    sign, size = "-" if value < 0 else "", abs(value)
    return f"{sign}{size // _DEGREE}.{size % _DEGREE:04}"


# --- tables: a draw below the last entry falls between two entries, whose number is the value -----------------


def _table(weights: Iterable[int]) -> list[int]:
    return list(accumulate(weights))


def _falling(first: int, factor: tuple[int, int]) -> Iterator[int]:
    """Weights in geometric progression until they vanish."""
    weight = first
    while weight:
        yield weight
        weight = weight * factor[0] // factor[1]


_ENERGIES = range(100, 2_401)
_SOFT = _table(10**12 // energy**2 for energy in _ENERGIES)
_MEDIUM = _table(10**12 // energy for energy in _ENERGIES)
_HARD = _table(energy for energy in _ENERGIES)
_GAPS = _table(_falling(1 << 40, (_MEAN_GAP - 1, _MEAN_GAP)))
"""Milliseconds to the next photon: the exponential distribution, cut into whole milliseconds."""
