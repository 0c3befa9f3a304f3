"""Tables for notebooks: text of services is escaped and made visible, so it can be nothing but text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from anabranch.visible import visible_lines

_LONGEST = 300


def html_of(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A title and a table."""
    cells = "".join(f"<th>{escape(each)}</th>" for each in head)
    lines = "".join(f"<tr>{''.join(f'<td>{shown(each)}</td>' for each in row)}</tr>" for row in rows)
    return f"<b>{shown(title)}</b><table><tr>{cells}</tr>{lines}</table>"


def shown(value: object) -> str:
    """A value as text in HTML, cut."""
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    cut = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    return escape(visible_lines(cut))
