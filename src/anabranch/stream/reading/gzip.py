"""Gzip, unpacked as it is read.

The standard library's reader loses unpacked data when it meets damage; a stream must not lose good items to damage
behind them, so this one gives all that zlib could unpack and then reports the damage.

Guarantees: no more than a chunk is unpacked at a time, so a bomb costs time, in proportion to its output, but no
memory.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

MAGIC = b"\x1f\x8b"
"""The first bytes of a gzip file, which count instead of its name."""
PACKED_CHUNK = 1 << 14
"""The size of a chunk to pass: small, because zlib copies the rest of it for every member."""

_CHUNK = 1 << 20
_SMALLEST = 1 << 16
_GZIP_WINDOW = 31  # zlib's word for: expect a gzip header


@dataclass(frozen=True, slots=True)
class Damage:
    """The place from which on a file cannot be read."""

    reason: str


def gunzip(chunks: Iterable[bytes]) -> Iterator[bytes | Damage]:
    """Unpack the chunks of a file into pieces of 64 KiB or more, except the last; damage comes at the end."""
    out = bytearray()
    inflate = zlib.decompressobj(_GZIP_WINDOW)
    for chunk in chunks:
        while chunk:
            if inflate.eof:  # a gzip file may have several members
                inflate = zlib.decompressobj(_GZIP_WINDOW)
            before = inflate.copy()
            try:
                out += inflate.decompress(chunk, _CHUNK)
            except zlib.error:
                yield bytes(out + _inflated_before_damage(before, chunk))
                yield Damage("the gzip data is damaged")
                return
            chunk = inflate.unconsumed_tail or inflate.unused_data.lstrip(b"\0")
            if len(out) >= _SMALLEST:
                yield bytes(out)
                out.clear()
    yield bytes(out + inflate.flush())
    if not inflate.eof:
        yield Damage("the gzip data is cut short")


def _inflated_before_damage(inflate: zlib._Decompress, chunk: bytes) -> bytes:
    """The output that zlib dropped with its error: unpacked again byte by byte, up to the bad one."""
    out = bytearray()
    try:
        for byte in chunk:
            out += inflate.decompress(bytes((byte,)))
    except zlib.error:
        pass
    return bytes(out)
