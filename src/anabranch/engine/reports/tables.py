"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from anabranch.visible import visible

_NAMED = 4


def named(names: Sequence[str]) -> str:
    """The names of some subscriptions, as many as fit into a table."""
    shown = ", ".join(names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED:,} more"


def aligned(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> Iterator[str]:
    """The lines of a table with aligned columns, some of them to the right; the first row is the head."""
    shown = [[visible(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        cells = (
            cell.rjust(width) if number in right else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()
