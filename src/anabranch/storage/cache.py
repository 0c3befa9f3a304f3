"""A cache of what was read of objects that are never replaced, in the memory of a process.

A request to an object store takes as long as reading a megabyte, and segments and states are read in many small pieces:
so they are read in blocks, and the latest blocks are kept.
It is a cache only: what is not in it is read again.
"""

from __future__ import annotations

from functools import lru_cache

from anabranch.storage.location import Location

_BLOCK = 1 << 20
_BLOCKS = 32
_MOST = 4
"""More blocks than this are read in one request, past the cache."""


def read_fixed(at: Location, start: int, length: int) -> bytes:
    """Some bytes of an object that is never replaced; fewer where it ends before."""
    first, last = start // _BLOCK, (start + length - 1) // _BLOCK
    if at.path is not None or length <= 0 or last - first >= _MOST:
        return at.read(start, length)
    blocks = b"".join(_block(at, number) for number in range(first, last + 1))
    return blocks[start - first * _BLOCK :][:length]


@lru_cache(maxsize=_BLOCKS)
def _block(at: Location, number: int) -> bytes:
    return at.read(number * _BLOCK, _BLOCK)
