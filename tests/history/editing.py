"""Edits of a text, applied naively."""

from __future__ import annotations

from collections.abc import Iterable

from anabranch.algebra.display.display import Edit, Insert, Remove


def apply(edits: Iterable[Edit], text: str) -> str:
    """What edits make of a text."""
    for edit in edits:
        match edit:
            case Insert(position, new):
                text = text[:position] + new + text[position:]
            case Remove(position, length):
                text = text[:position] + text[position + length :]
    return text
