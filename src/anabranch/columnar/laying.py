"""Laying answers out: what a compiled query gives for items in columns, one behind the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from anabranch.columnar import kernels
from anabranch.columnar.kernels import Bytes, Indices
from anabranch.columnar.query import CompiledQuery, Fragment
from anabranch.columnar.shred import Shredded, Wanted


@dataclass(frozen=True, slots=True)
class Laid:
    """A compiled query with its fragments in the form the kernels take."""

    query: CompiledQuery
    fragments: Indices
    fixed: Bytes

    @staticmethod
    def of(query: CompiledQuery, wanted: Wanted) -> Laid:
        return Laid(query, *fragment_arrays(query.fragments, wanted))


def fragment_arrays(fragments: Sequence[Fragment], wanted: Wanted) -> tuple[Indices, Bytes]:
    """Fragments as the kernels take them (`kernels.measure`), and the fixed bytes among them."""
    fixed = bytearray()
    found = np.empty((len(fragments), 4), np.int64)
    for number, each in enumerate(fragments):
        if isinstance(each, bytes):
            found[number] = -1, 0, len(fixed), len(fixed) + len(each)
            fixed += each
        else:
            found[number] = wanted.leaves.index(each.first), wanted.leaves.index(each.last), each.back, each.ahead
    return found, np.frombuffer(bytes(fixed), np.uint8)


def laid_out(shredded: Shredded, laid: Laid, picks: Indices, pieces: Sequence[bytes]) -> tuple[bytes, Indices]:
    """The answers to the items that were picked, with pieces that are ready among them, and where each ends.

    A pick is the number of an entry, or, below 0, the complement of the number of a piece.
    """
    ready = np.frombuffer(b"".join(pieces), np.uint8)
    bounds = np.array([*accumulate(map(len, pieces), initial=0)], np.int64)
    offsets = np.zeros(len(picks) + 1, np.int64)
    spans = shredded.starts, shredded.ends
    kernels.measure(laid.fragments, *spans, picks, bounds, offsets)
    answers = np.empty(offsets[-1], np.uint8)
    kernels.lay_out(shredded.data, laid.fragments, laid.fixed, *spans, picks, ready, bounds, answers)
    return answers.tobytes(), offsets
