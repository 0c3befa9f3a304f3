"""`format-number()`: numbers written by a picture such as `#,##0.00`, with the symbols of XQuery's default format.

A picture is read once into its parts and kept; what is written is exact: the digits of a decimal, or the fewest that
spell a double, rounded half to even where the picture has no place for them.
Time and size are those of the number's digits and of the picture, which has a limit.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from functools import lru_cache

from anabranch.errors import DynamicError
from anabranch.law.library.arguments import needed_text, numeric_of, text_of
from anabranch.values.numbers import shown
from anabranch.values.sequences import Values

MOST_PICTURE = 1_000
"""Characters that a picture has at most, of a number or of a time."""

_ACTIVE = "0123456789#.,"
_PART = re.compile(r"(?P<whole>[#,]*[0-9,]*)(?:\.(?P<fraction>[0-9,]*[#,]*))?(?:e(?P<exponent>[0-9]+))?", re.ASCII)
_DIGITS = re.compile("[0-9]")
_PLACES = re.compile("[0-9#]")
_SCALES = {"%": 2, "\u2030": 3}
"""By sign of percent or per mille: the power of ten that a number is multiplied by."""


_WIDE = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)


@dataclass(frozen=True, slots=True)
class _NumberPicture:
    """One part of a picture: that for numbers from 0 on, or that for negative ones."""

    before: str
    behind: str
    least_whole: int
    """The least digits in front of the point."""
    least_fraction: int
    most_fraction: int
    scale: int
    """The power of ten that a number is multiplied by."""
    whole_marks: frozenset[int]
    """How many digits stand between each grouping separator and the point."""
    spacing: int
    """The distance of these separators where it is regular, so that it goes on in front of the picture; else 0."""
    fraction_marks: frozenset[int]
    """How many digits stand between the point and each grouping separator behind it."""
    mantissa: int
    """How many digits the whole part of a mantissa has."""
    exponent: int
    """The least digits of the exponent; 0 for none."""


def format_number(values: Values, picture: Values, format_name: Values | None = None) -> Values:
    """`format-number()`; there is no other format than the default one."""
    number, wanted = numeric_of(values, "format-number()"), needed_text(picture, "format-number()")
    named = None if format_name is None else text_of(format_name, "format-number()")
    if named is not None:
        raise DynamicError(f"there is no decimal format '{shown(named)}'", code="FODF1280")
    usual, negative = _picture(wanted)
    if number is None or math.isnan(number):
        return ["NaN"]
    chosen = negative if (math.copysign(1, number) if isinstance(number, float) else number) < 0 else usual
    if isinstance(number, float):
        number *= 10**chosen.scale  # in double, as XQuery has it
    text = "Infinity" if math.isinf(number) else _written(number, chosen)
    return [f"{chosen.before}{text}{chosen.behind}"]


# --- pictures ---------------------------------------------------------------------------------------------


@lru_cache(maxsize=1_024)
def _picture(text: str) -> tuple[_NumberPicture, _NumberPicture]:
    """What numbers from 0 on are written by, and negative ones."""
    parts = text.split(";")
    if len(text) > MOST_PICTURE or len(parts) > 2:
        raise _invalid(text)
    usual = _part(parts[0], text)
    return usual, _part(parts[1], text) if len(parts) > 1 else replace(usual, before=f"-{usual.before}")


def _invalid(text: str) -> DynamicError:
    return DynamicError(f"'{shown(text)}' is no picture of a number", code="FODF1310")


def _part(part: str, text: str) -> _NumberPicture:
    places = [place for place, each in enumerate(part) if each in _ACTIVE]
    if not places:
        raise _invalid(text)
    before, active, behind = part[: places[0]], part[places[0] : places[-1] + 1], part[places[-1] + 1 :]
    found = _PART.fullmatch(active)
    if found is None:
        raise _invalid(text)
    whole, fraction, exponent = (found[each] or "" for each in ("whole", "fraction", "exponent"))
    signs = [each for each in before + behind if each in _SCALES]
    misplaced = ",," in whole or ",," in fraction or whole.endswith(",") or fraction.startswith(",")
    if misplaced or not _PLACES.search(whole + fraction) or len(signs) + bool(exponent) > 1:
        raise _invalid(text)
    least_whole, least_fraction = len(_DIGITS.findall(whole)), len(_DIGITS.findall(fraction))
    most_fraction, mantissa = len(_PLACES.findall(fraction)), least_whole
    if not least_whole and not most_fraction:
        if exponent:
            least_fraction = most_fraction = 1
        else:
            least_whole = 1
    if exponent and not least_whole and "#" in whole:
        least_whole = 1
    if not least_whole and not least_fraction:
        least_fraction = 1
    whole_marks = _marks(whole[::-1])
    return _NumberPicture(
        before,
        behind,
        least_whole,
        least_fraction,
        max(least_fraction, most_fraction),
        sum(_SCALES[each] for each in signs),
        whole_marks,
        _spacing(whole_marks, len(_PLACES.findall(whole))),
        _marks(fraction),
        mantissa,
        len(exponent),
    )


def _marks(digits: str) -> frozenset[int]:
    """How many digits stand in front of each grouping separator."""
    return frozenset(len(_PLACES.findall(digits[:place])) for place, each in enumerate(digits) if each == ",")


def _spacing(marks: frozenset[int], digits: int) -> int:
    """The distance of separators that stand at all of its multiples among some digits, and nowhere else; else 0."""
    least = min(marks, default=0)
    is_regular = least and marks >= set(range(least, digits, least)) and all(each % least == 0 for each in marks)
    return least if is_regular else 0


# --- numbers ----------------------------------------------------------------------------------------------


def _written(number: int | Decimal | float, picture: _NumberPicture) -> str:
    """A finite number without its sign."""
    decimal = (
        Decimal(repr(float(number))) if isinstance(number, float) else Decimal(number).scaleb(picture.scale, _WIDE)
    )
    _, figures, exponent = decimal.as_tuple()
    assert isinstance(exponent, int), "it is finite"
    digits = "".join(map(str, figures)).lstrip("0")
    point = len(digits) + exponent if digits else 0
    power = 0
    if picture.exponent and digits:
        point, power = picture.mantissa, point - picture.mantissa
    whole, fraction = _rounded(digits, point, picture.most_fraction)
    whole, fraction = whole.zfill(picture.least_whole), fraction.ljust(picture.least_fraction, "0")
    text = _grouped(whole[::-1], picture.whole_marks, picture.spacing)[::-1]
    if fraction:
        text += f".{_grouped(fraction, picture.fraction_marks, 0)}"
    if picture.exponent:
        text += f"e{'-' if power < 0 else ''}{abs(power):0{picture.exponent}d}"
    return text


def _rounded(digits: str, point: int, places: int) -> tuple[str, str]:
    """The digits before and behind the point of the number 0.DIGITS * 10^POINT, rounded half to even."""
    if point < 0:
        digits, point = "0" * min(-point, places + 1) + digits, 0  # of more zeros none would be left
    kept, rest = digits[: point + places].ljust(point, "0"), digits[point + places :].rstrip("0")
    if rest > "5" or (rest == "5" and kept[-1:] in tuple("13579")):
        short = kept.rstrip("9")
        grown = (short[:-1] + str(int(short[-1]) + 1)) if short else "1"
        point += not short
        kept = grown + "0" * (len(kept) - len(short))
    return kept[:point].lstrip("0"), kept[point:].rstrip("0")


def _grouped(digits: str, marks: frozenset[int], spacing: int) -> str:
    """Digits with separators in front of those at some places, or at all multiples of a distance."""
    if not marks:
        return digits
    return "".join(
        f",{each}" if place and (place % spacing == 0 if spacing else place in marks) else each
        for place, each in enumerate(digits)
    )
