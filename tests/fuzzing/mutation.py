"""Inputs made of others: cut, repeated, spliced and overwritten, as mutating fuzzers do; for runs that measure nothing.

A run with coverage (`run.py`) has the mutations of libFuzzer instead.
"""

from __future__ import annotations

from random import Random

from fuzzing.target import LONGEST, Target

ODD = [
    b"\0", b"\t", b"\n", b"\r", b" ", b"\x7f", b"\x80", b"\xff", b"\xc0\xbc", b"\xed\xa0\x80", b"\xef\xbb\xbf",
    b"\xef\xbf\xbe", b"\xf4\x90\x80\x80", b"\xf0\x9f\x98\x80", b"\xe2\x80\xae", b"<", b">", b"&", b"'", b'"', b"\\",
    b"{", b"}", b"[", b"]", b"(", b")", b"-", b"0", b"9" * 20, b"1e400", b"NaN", b"::", b"//", b"$", b"#", b"?", b"|",
]  # fmt: skip
"""Bytes with which readers have trouble."""


def mutated(target: Target, random: Random) -> bytes:
    """An input somewhat like the seeds of a target."""
    data = random.choice(target.seeds)
    for _ in range(random.choice((1, 1, 1, 2, 2, 3, 5, 9))):
        data = _once(data, target, random)
    return data[:LONGEST]


def _once(data: bytes, target: Target, random: Random) -> bytes:
    at, other = sorted(random.randint(0, len(data)) for _ in range(2))
    match random.randrange(8):
        case 0:
            return data[:at] + random.choice(ODD) + data[at:]
        case 1:
            return data[:at] + random.choice(ODD) + data[at + 1 :]
        case 2:
            return data[:at] + data[at + random.choice((1, 1, 1, 2, 5, 20)) :]
        case 3:
            return data[:at] + bytes([random.randrange(256)]) + data[at + 1 :]
        case 4:
            return data[:at] + data[at:other] * random.choice((2, 2, 3, 20)) + data[other:]
        case 5 | 6 if target.words:
            return data[:at] + random.choice(target.words) + data[at if random.random() < 0.5 else at + 3 :]
        case _:
            second = random.choice(target.seeds)
            start, stop = sorted(random.randint(0, len(second)) for _ in range(2))
            return data[:at] + second[start:stop] + data[other if random.random() < 0.5 else at :]
