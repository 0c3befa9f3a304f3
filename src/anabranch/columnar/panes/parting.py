"""Rows of a batch that hold more than plain numbers, which become panes in Python's own values.

Sums of computed doubles that are no decimals of few places have no ticks; they are added up apart (`doubles.py`).
Strings that a lookup finds were counted by their ranks among the strings of the batch (`batch.py`): the least and the
greatest rank of a row are its least and greatest string.
They are no numbers, so the partial has the failure that `sum` would have, and names the first items of the row; where
numbers come to the same window, that is what its dead letter says (LAWS 2.4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TypeAlias

import numpy as np

from anabranch.aggregates.exact import not_summed
from anabranch.aggregates.partial import Failure, ItemAt, Partial, TypedValues
from anabranch.columnar.panes.batch import PaneBatch
from anabranch.columnar.panes.doubles import LIMBS, add_binary, sums_of
from anabranch.columnar.panes.rows import Numbered, Rows
from anabranch.columnar.scan.kernels import Indices, Numbers, Places
from anabranch.stream.elements import MOST_NAMED

_Finish: TypeAlias = Callable[[Partial], Partial]
_Show: TypeAlias = Callable[[int], tuple[int, ItemAt]]


def parted(
    rows: Rows, batch: PaneBatch, hits: Indices, conditions: Indices, show: _Show
) -> tuple[Rows, list[Numbered]]:
    """The rows that hold plain numbers, and the others as panes.

    `hits` has the row of each hit of the batch, `conditions` the condition of each row; `show` gives the place of an
    entry in the stream, and its item as a dead letter has it.
    """
    finished: dict[int, dict[int, _Finish]] = {}
    for path in range(rows.paths):
        for row, finish in (
            *_binary(rows, batch, hits, path, conditions),
            *_strings(batch, hits, path, show),
        ):
            finished.setdefault(row, {})[path] = finish
    if not finished:
        return rows, []
    held = np.zeros(len(rows), np.bool_)
    held[list(finished)] = True
    picked = rows.at(held)
    panes: list[Numbered] = []
    numbers = (each.tolist() for each in (np.flatnonzero(held), picked.members, picked.keys, picked.panes))
    for row, member, key, number, pane in zip(*numbers, picked.read(), strict=True):
        given = (finished[row].get(path, _as_it_is)(each) for path, each in enumerate(pane.partials))
        panes.append((member, key, number, replace(pane, partials=tuple(given))))
    return rows.at(~held), panes


def _as_it_is(known: Partial) -> Partial:
    return known


# --- doubles ----------------------------------------------------------------------------------------------------


def _binary(rows: Rows, batch: PaneBatch, hits: Indices, path: int, conditions: Indices) -> list[tuple[int, _Finish]]:
    """The rows with such sums, each with what puts its sum into its partial."""
    binary = np.array([path < len(each) and each[path].is_binary for each in batch.paths], np.bool_)
    if not binary.any():
        return []
    there = np.flatnonzero(binary[conditions] & (rows.known.counts[path] > 0)).tolist()
    sums = _binary_sums(batch, hits, path, len(rows))
    return [(row, partial(_exactly, total=sums[row])) for row in there]


def _binary_sums(batch: PaneBatch, rows: Indices, path: int, count: int) -> list[Fraction]:
    """The exact sums of an aggregated path in `count` rows of hits, for the conditions to which it gives doubles."""
    assert batch.columns is not None, "what hits has columns"
    places = [each[path].places if path < len(each) and each[path].is_binary else () for each in batch.paths]
    limbs = np.zeros((count, LIMBS), np.int64)
    add_binary(
        batch.hits,
        rows,
        np.cumsum([0, *map(len, places)]),
        np.array([each.taken for given in places for each in given], np.int64),
        np.array([each.leaf for given in places for each in given], np.int64),
        batch.columns.times,
        *batch.columns.doubles,
        limbs,
    )
    return sums_of(limbs)


def _exactly(known: Partial, total: Fraction) -> Partial:
    """The partial aggregate of computed doubles, with their exact sum, which was held apart."""
    least, greatest = (each and each._replace(exact=Fraction(each.value)) for each in (known.least, known.greatest))
    return replace(known, rest=total, least=least, greatest=greatest)


# --- strings ----------------------------------------------------------------------------------------------------


def _strings(batch: PaneBatch, hits: Indices, path: int, show: _Show) -> list[tuple[int, _Finish]]:
    """The rows with strings, each with what makes a partial of strings of that of their ranks."""
    found: list[tuple[int, _Finish]] = []
    columns = batch.columns
    if columns is None or not columns.strings:
        return found
    times, (ranks, _) = columns.times, columns.extremes
    for condition, paths in enumerate(batch.paths):
        for place in paths[path].places if path < len(paths) else ():
            if place.leaf in columns.strings:
                entries, given = batch.hits.of(condition), hits[slice(*batch.hits.bounds[condition : condition + 2])]
                mine = given >= 0
                if place.taken >= 0:
                    mine &= times[place.taken][entries] > 0
                strings = columns.strings[place.leaf]
                found += _strings_of(entries[mine], given[mine], strings, ranks[place.leaf], show)
    return found


def _strings_of(
    entries: Places, given: Indices, strings: Sequence[str], ranks: Numbers, show: _Show
) -> list[tuple[int, _Finish]]:
    """The same for entries with strings, which are `given` to rows."""
    order = np.lexsort((entries, given))
    entries, given = entries[order], given[order]
    found, begins = np.unique(given, return_index=True)
    firsts = (entries[begin : begin + MOST_NAMED + 1].tolist() for begin in begins.tolist())
    finished: list[tuple[int, _Finish]] = []
    for row, named in zip(found.tolist(), firsts, strict=True):
        error, items = not_summed(strings[int(ranks[named[0]])]), tuple(map(show, named))
        failure = Failure(1, items[0][0], error.message, error.code, items)
        finished.append((row, partial(_typed, strings=strings, failure=failure)))
    return finished


def _typed(known: Partial, strings: Sequence[str], failure: Failure) -> Partial:
    """The partial of strings, of which the ranks are known."""
    assert known.least is not None, "ranks are counted where there are strings"
    assert known.greatest is not None, "ranks are counted where there are strings"
    least, greatest = (strings[int(each.value)] for each in (known.least, known.greatest))
    typed = TypedValues(known.count, least, greatest)
    return Partial(known.count, failure=failure._replace(values=known.count), typed=typed)
