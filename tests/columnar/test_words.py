"""What is done eight bytes at a time gives what it gives byte by byte."""

from __future__ import annotations

from random import Random

import numpy as np

from anabranch.columnar.scan.template import PLAIN
from anabranch.columnar.scan.words import WORD, are_equal, find_byte, plain_before, put_bytes, word_at


def random_bytes(random: Random, count: int) -> bytes:
    """Mostly plain ones, and all that are next to those that are not."""
    edges = b"\0\x01\x1f\x20\x21\x22\x23\x25\x26\x27\x3b\x3c\x3d\x3e\x3f\x5b\x5c\x5d\x7e\x7f\x80\x81\xa2\xbc\xdc\xff\n"
    return bytes(random.choice(edges) if random.random() < 0.2 else random.randint(0x30, 0x39) for _ in range(count))


def test_words() -> None:
    """A word has the first byte lowest, and zeros behind the end."""
    data = bytes(range(1, 21))
    for at in range(21):
        assert int(word_at(np.frombuffer(data, np.uint8), at)) == int.from_bytes(data[at : at + WORD], "little")


def test_plain_bytes() -> None:
    """Each byte among plain ones, and random ones."""
    random = Random(1)
    words = [b"x" * at + bytes([byte]) + b"y" * (WORD - at - 1) for byte in range(256) for at in range(WORD)]
    words += [random_bytes(random, WORD) for _ in range(20_000)]
    for word in words:
        others = [at for at, byte in enumerate(word) if not PLAIN[byte] or byte == ord("\\")]
        assert plain_before(np.uint64(int.from_bytes(word, "little"))) == (others[0] if others else WORD), word


def test_finding_comparing_and_copying() -> None:
    """As slices do it."""
    random = Random(2)
    for _ in range(5_000):
        data = random_bytes(random, random.randint(1, 40))
        given = np.frombuffer(data, np.uint8)
        begin, end = sorted((random.randint(0, len(data)), random.randint(0, len(data))))
        byte = random.choice(data)
        found = data.find(byte, begin, end)
        assert find_byte(given, begin, end, byte) == (end if found < 0 else found)
        size = end - begin
        other = bytearray(random_bytes(random, 3) + data[begin:end] + random_bytes(random, random.randint(0, 9)))
        if random.random() < 0.5 and size:
            other[3 + random.randrange(size)] ^= 1 << random.randrange(8)
        is_same = bytes(other[3 : 3 + size]) == data[begin:end]
        assert are_equal(given, begin, np.frombuffer(bytes(other), np.uint8), 3, size) == is_same
        out = np.full(size + 2 + WORD + 5, 7, np.uint8)
        assert put_bytes(given, begin, end, out, 2) == 2 + size
        assert out[:2].tolist() == [7, 7]
        assert out[2 : 2 + size].tobytes() == data[begin:end]
        assert out[2 + size + WORD :].tolist() == [7] * 5
