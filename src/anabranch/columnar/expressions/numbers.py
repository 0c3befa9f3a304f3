"""Columns of numbers: read from texts and spelled as texts, each as the law has it for one number.

Guarantees: a number that is read is the double nearest to the decimal that the text spells; a double is spelled with
the fewest digits that read back as the same double, and of those the nearest.
A text of which that is not certain is *unclear*, and left to the law: one of more than 19 significant digits, or one
that lies, as far as 128 bits of a power of ten can tell, exactly between two doubles.

Reading takes the way of Clinger where mantissa and power of ten are doubles themselves, else that of Eisel and Lemire:
the mantissa times the leading 128 bits of the power of ten, of which the error is known.
Spelling is Schubfach (R. Giulietti, 2020): the bounds of all decimals that read back as the double, by three such
products, and of the one or two shortest decimals between them the nearest.
"""

from __future__ import annotations

import numpy as np

from anabranch.columnar.expressions.texts import TextColumn
from anabranch.columnar.scan.kernels import Bytes, Indices, Numbers, Places, compiled, is_space

NUMBER, NO_NUMBER, UNCLEAR = range(3)
"""The kinds of texts: a number of xs:double, also INF and NaN; certainly no number; left to the law."""
_MINUS, _PLUS, _POINT, _ZERO, _NINE, _SMALL_E, _LARGE_E = b"-+.09eE"
_INF, _NAN = np.frombuffer(b"INF", np.uint8), np.frombuffer(b"NaN", np.uint8)

_MOST_DIGITS = 19  # digits that a uint64 holds
_FARTHEST = 10**10  # larger exponents are cut to this: no text has so many digits
_NO_EXPONENT = 2 * _FARTHEST
_LEAST_POWER, _LARGEST_POWER = -342, 324
"""Below the least power, 19 digits are less than half the smallest double; spelling needs the largest, and beyond 308 a
number is INF."""
_LARGEST_FINITE = 308
_LARGEST_DOUBLE, _LARGEST_EXACT = 22, 55
"""Powers of ten up to the first are exact doubles, and up to the second they fit into 128 bits."""

_ONE, _TWO, _FOUR, _TEN, _FORTY, _HUNDRED = (np.uint64(number) for number in (1, 2, 4, 10, 40, 100))
_HALF_WORD, _WORD_BITS, _LOW_HALF, _TOP = np.uint64(32), 64, np.uint64(0xFFFFFFFF), np.uint64(1 << 63)
_FRACTION_BITS, _FRACTION, _HIDDEN = np.uint64(52), np.uint64((1 << 52) - 1), np.uint64(1 << 52)
_BIAS, _LEAST_EXPONENT, _LARGEST_EXPONENT = 1023, -1022, 1023
_SMALL, _LARGE = 1e-6, 1e6
"""Numbers between these are written without an exponent."""
_SHORT = 1e11
"""Numbers below this are tried as thousandths, which then have at most 15 digits."""
_DOUBLE_ROOM, _INTEGER_ROOM = 25, 20
"""The bytes that the longest spelling takes: -0.0000012345678901234567, and the least integer's."""


def _leading_bits(power: int) -> int:
    """The first 128 bits of a power of ten, rounded up."""
    if power >= 0:
        number: int = 10**power
        excess = number.bit_length() - 128
        return number << -excess if excess <= 0 else -(-number >> excess)
    divisor: int = 10**-power
    return -(-(1 << 127 + divisor.bit_length()) // divisor)


_POWERS = np.array(
    [divmod(_leading_bits(power), 1 << 64) for power in range(_LEAST_POWER, _LARGEST_POWER + 1)], np.uint64
)
"""By power of ten, from the least on: its leading 128 bits, in two words."""
_DOUBLE_POWERS = np.array([float(10**power) for power in range(_LARGEST_DOUBLE + 1)])
_TENS = np.array([10**power for power in range(20)], np.uint64)
_PAIRS = np.frombuffer("".join(f"{number:02}" for number in range(100)).encode(), np.uint8).copy()
"""The numbers below a hundred in two digits each."""


@compiled
def _high_product(a: np.uint64, b: np.uint64) -> np.uint64:
    """The upper word of a product; the compiler makes one instruction of it."""
    a_low, a_high, b_low, b_high = a & _LOW_HALF, a >> _HALF_WORD, b & _LOW_HALF, b >> _HALF_WORD
    low, high = a_low * b_high, a_high * b_low
    middle = (a_low * b_low >> _HALF_WORD) + (low & _LOW_HALF) + high
    return np.uint64(a_high * b_high + (low >> _HALF_WORD) + (middle >> _HALF_WORD))


@compiled
def _binary_exponent(power: int) -> int:
    """The exponent of the largest power of two that is no more than a power of ten, for powers in the table."""
    return power * 1741647 >> 19


# --- reading --------------------------------------------------------------------------------------------------


@compiled
def _nearest(mantissa: np.uint64, power: int) -> tuple[float, bool]:
    """The double nearest to a mantissa above 0 times a power of ten, and whether that is certain."""
    if power < _LEAST_POWER:
        return 0.0, True
    if power > _LARGEST_FINITE:
        return np.inf, True
    exponent = _binary_exponent(power) + _WORD_BITS
    while mantissa < _TOP:
        mantissa <<= _ONE
        exponent -= 1
    upper, lower = _POWERS[power - _LEAST_POWER]
    # Three words of the product; the true one is less by less than one mantissa, since the power is rounded up.
    carry = _high_product(mantissa, lower)
    low = mantissa * lower
    middle = mantissa * upper + carry
    high = _high_product(mantissa, upper) + np.uint64(middle < carry)
    error_high, error = np.uint64(0), np.uint64(0) if 0 <= power <= _LARGEST_EXACT else mantissa
    if high < _TOP:
        high = high << _ONE | middle >> np.uint64(63)
        middle = middle << _ONE | low >> np.uint64(63)
        low <<= _ONE
        error_high, error = error >> np.uint64(63), error << _ONE
        exponent -= 1
    if exponent > _LARGEST_EXPONENT:
        return np.inf, True
    kept = 53 if exponent >= _LEAST_EXPONENT else 53 - (_LEAST_EXPONENT - exponent)
    if kept < 0:
        return 0.0, True
    drop = np.uint64(63 - kept)  # one less than the bits that are rounded off, which may be all
    digits = high >> drop >> _ONE
    rest = high - (digits << drop << _ONE)
    half = _ONE << drop
    # Only where the true product may be on the other side of a half, or on it, is the rounding uncertain.
    if rest == half and (middle < error_high or (middle == error_high and low < error)):
        return np.nan, False
    if rest > half or (rest == half and (middle | low | digits & _ONE) > np.uint64(0)):
        digits += _ONE
    if exponent < _LEAST_EXPONENT:
        return np.uint64(digits).view(np.float64), True
    return np.uint64((np.uint64(exponent + _BIAS) << _FRACTION_BITS) + digits - _HIDDEN).view(np.float64), True


@compiled
def _read_digits(data: Bytes, at: int, stop: int) -> tuple[float, int]:
    """The number without a sign that some bytes spell in digits, and their kind."""
    mantissa = np.uint64(0)
    power = digits = 0  # only significant digits
    empty, excess, fraction = True, False, False
    while at < stop:
        byte = data[at]
        if _ZERO <= byte <= _NINE:
            empty = False
            if digits < _MOST_DIGITS:
                mantissa = mantissa * _TEN + np.uint64(byte - _ZERO)
                digits += int(mantissa > np.uint64(0))
                power -= fraction
            else:
                excess |= byte != _ZERO
                power += not fraction
        elif byte == _POINT and not fraction:
            fraction = True
        else:
            break
        at += 1
    if empty:
        return np.nan, NO_NUMBER
    if at < stop:
        exponent = _read_exponent(data, at, stop)
        if exponent == _NO_EXPONENT:
            return np.nan, NO_NUMBER
        power += exponent
    if excess:
        return np.nan, UNCLEAR
    if mantissa == np.uint64(0):
        return 0.0, NUMBER
    if power == 0:
        return float(mantissa), NUMBER
    if mantissa <= _HIDDEN << _ONE and -_LARGEST_DOUBLE <= power <= _LARGEST_DOUBLE:  # both are doubles: rounded once
        number = float(mantissa)
        return number * _DOUBLE_POWERS[power] if power > 0 else number / _DOUBLE_POWERS[-power], NUMBER
    number, certain = _nearest(mantissa, power)
    return number, NUMBER if certain else UNCLEAR


@compiled
def _read_exponent(data: Bytes, at: int, stop: int) -> int:
    """The exponent in the bytes behind a mantissa, at most `_FARTHEST`."""
    if data[at] not in (_SMALL_E, _LARGE_E):
        return _NO_EXPONENT
    at += 1
    negative = at < stop and data[at] == _MINUS
    if negative or (at < stop and data[at] == _PLUS):
        at += 1
    if at == stop:
        return _NO_EXPONENT
    exponent = 0
    while at < stop:
        if not _ZERO <= data[at] <= _NINE:
            return _NO_EXPONENT
        exponent = min(exponent * 10 + int(data[at]) - _ZERO, _FARTHEST)
        at += 1
    return -exponent if negative else exponent


@compiled
def _is_word(word: Bytes, data: Bytes, at: int, stop: int) -> bool:
    """Whether some bytes are a word of three letters."""
    if stop - at != 3:
        return False
    return bool(data[at] == word[0] and data[at + 1] == word[1] and data[at + 2] == word[2])


@compiled
def _read_double(data: Bytes, at: int, stop: int) -> tuple[float, int]:
    """The number that some bytes spell, and their kind."""
    while at < stop and is_space(data[at]):
        at += 1
    while at < stop and is_space(data[stop - 1]):
        stop -= 1
    negative = at < stop and data[at] == _MINUS
    signed = negative or (at < stop and data[at] == _PLUS)
    if signed:
        at += 1
    if _is_word(_INF, data, at, stop):
        return -np.inf if negative else np.inf, NUMBER
    if not signed and _is_word(_NAN, data, at, stop):
        return np.nan, NUMBER
    number, state = _read_digits(data, at, stop)
    return -number if negative else number, state


@compiled
def read_doubles(texts: TextColumn, found: Numbers, state: Bytes) -> None:
    """The double that each text spells, and its kind: `NUMBER`, or with NaN `NO_NUMBER` or `UNCLEAR`."""
    for item in range(len(found)):
        found[item], state[item] = _read_double(texts.data, texts.starts[item], texts.ends[item])


# --- spelling -------------------------------------------------------------------------------------------------


@compiled
def _rounded_to_odd(upper: np.uint64, lower: np.uint64, factor: np.uint64) -> np.uint64:
    """The upper word of the product of 128 bits and a word, odd where there is anything behind it."""
    carry = _high_product(lower, factor)
    middle = upper * factor + carry
    return np.uint64(_high_product(upper, factor) + np.uint64(middle < carry) | np.uint64(middle > _ONE))


@compiled
def _shortest(bits: np.uint64) -> tuple[np.uint64, int]:
    """The shortest digits of a double above 0, and the power of ten that they are multiplied with."""
    fraction = bits & _FRACTION
    biased = int(np.int64(bits >> _FRACTION_BITS))
    regular = fraction != np.uint64(0) or biased <= 1  # the double below is as far as the one above
    mantissa = fraction | _HIDDEN if biased else fraction
    exponent = (biased if biased else 1) - _BIAS - 52
    power = exponent * 1262611 - (0 if regular else 524031) >> 22
    shift = np.uint64(exponent + _binary_exponent(-power) + 1)
    upper, lower = _POWERS[-power - _LEAST_POWER]
    middle = mantissa * _FOUR
    odd = mantissa & _ONE  # bounds read back as the double where its mantissa is even
    low = _rounded_to_odd(upper, lower, middle - (_TWO if regular else _ONE) << shift) + odd
    high = _rounded_to_odd(upper, lower, middle + _TWO << shift) - odd
    value = _rounded_to_odd(upper, lower, middle << shift)
    digits = value // _FOUR
    fewer = digits // _TEN
    if fewer > np.uint64(0):
        below = low <= _FORTY * fewer
        above = _FORTY * fewer + _FORTY <= high
        if below != above:
            return fewer + np.uint64(above), power + 1
    below = low <= _FOUR * digits
    above = _FOUR * digits + _FOUR <= high
    if below == above:
        half = _FOUR * digits + _TWO
        above = value > half or (value == half and digits & _ONE == _ONE)
    return digits + np.uint64(above), power


@compiled
def _without_zeros(digits: np.uint64, power: int) -> tuple[np.uint64, int]:
    """The number without zeros at the end of its digits."""
    for zeros in (8, 4, 2, 1):
        while digits % _TENS[zeros] == np.uint64(0):
            digits //= _TENS[zeros]
            power += zeros
    return digits, power


@compiled
def _count_of(digits: np.uint64) -> int:
    """The number of digits of a number."""
    count = 9 if digits >= _TENS[8] else 1
    while count < len(_TENS) and digits >= _TENS[count]:
        count += 1
    return count


@compiled
def _write_digits(digits: np.uint64, out: Bytes, at: int, end: int) -> None:
    """Write the last digits of a number to `out[at:end]`."""
    while end - at >= 2:
        rest = digits // _HUNDRED
        pair = np.int64(digits - rest * _HUNDRED) * 2
        end -= 2
        out[end] = _PAIRS[pair]
        out[end + 1] = _PAIRS[pair + 1]
        digits = rest
    if end > at:
        out[at] = _ZERO + np.int64(digits % _TEN)


@compiled
def _write_word(word: Bytes, out: Bytes, at: int) -> int:
    for place in range(len(word)):
        out[at + place] = word[place]
    return at + len(word)


@compiled
def _write_decimal(digits: np.uint64, power: int, out: Bytes, at: int) -> int:
    """Write digits that have a power of ten, with a point where one is needed; gives their end."""
    count = _count_of(digits)
    whole = count + power  # the number of digits before the point
    if power >= 0:
        _write_digits(digits * _TENS[power], out, at, at + whole)
        return at + whole
    if whole <= 0:
        out[at] = _ZERO
        out[at + 1] = _POINT
        _write_digits(digits, out, at + 2, at + 2 - power)
        return at + 2 - power
    _write_digits(digits, out, at + 1, at + count + 1)
    for place in range(at, at + whole):
        out[place] = out[place + 1]
    out[at + whole] = _POINT
    return at + count + 1


@compiled
def _write_scientific(digits: np.uint64, power: int, out: Bytes, at: int) -> int:
    """Write digits that have a power of ten, with an exponent; gives their end."""
    count = _count_of(digits)
    exponent = power + count - 1
    if count == 1:
        digits *= _TEN
        count = 2
    _write_digits(digits, out, at + 1, at + count + 1)
    out[at] = out[at + 1]
    out[at + 1] = _POINT
    out[at + count + 1] = _LARGE_E
    return _write_integer(exponent, out, at + count + 2)


@compiled
def _write_integer(value: int, out: Bytes, at: int) -> int:
    digits = np.uint64(value)
    if value < 0:
        out[at] = _MINUS
        at += 1
        digits = np.uint64(-value)
    end = at + _count_of(digits)
    _write_digits(digits, out, at, end)
    return end


@compiled
def _write_double(value: float, out: Bytes, at: int) -> int:
    """Write XQuery's spelling of a double; gives its end."""
    if np.isnan(value):
        return _write_word(_NAN, out, at)
    bits = np.float64(value).view(np.uint64)
    if bits >= _TOP:
        out[at] = _MINUS
        at += 1
        bits -= _TOP
        value = -value
    if value < _LARGE and value == np.floor(value):
        return _write_integer(int(value), out, at)
    if np.isinf(value):
        return _write_word(_INF, out, at)
    thousandths = np.floor(value * 1e3 + 0.5)
    if value < _SHORT and thousandths / 1e3 == value:  # at most 15 digits, so no shorter decimal reads as this double
        digits, power = np.uint64(thousandths), -3
    else:
        digits, power = _shortest(bits)
    digits, power = _without_zeros(digits, power)
    if _SMALL <= value < _LARGE:
        return _write_decimal(digits, power, out, at)
    return _write_scientific(digits, power, out, at)


@compiled
def _spell_doubles(values: Numbers, out: Bytes, starts: Places, ends: Places) -> None:
    at = 0
    for item in range(len(values)):
        starts[item] = at
        at = _write_double(values[item], out, at)
        ends[item] = at


@compiled
def _spell_integers(values: Indices, out: Bytes, starts: Places, ends: Places) -> None:
    at = 0
    for item in range(len(values)):
        starts[item] = at
        at = _write_integer(values[item], out, at)
        ends[item] = at


def spelled_doubles(values: Numbers) -> TextColumn:
    """XQuery's spelling of each double (LAWS 2.1)."""
    texts = TextColumn.room(len(values), len(values) * _DOUBLE_ROOM)
    _spell_doubles(values, *texts)
    return texts


def spelled_integers(values: Indices) -> TextColumn:
    """The digits of each integer."""
    texts = TextColumn.room(len(values), len(values) * _INTEGER_ROOM)
    _spell_integers(values, *texts)
    return texts
