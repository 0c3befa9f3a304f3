"""Edits of a text: how a display tells what has changed (history paper, section 9).

They come one after the other, and a position is that of the moment at which its edit comes.
The paper's `remove` takes a position to end at; here it takes a length (LAWS 5.6).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Insert:
    """Text comes in at a position."""

    position: int
    text: str


@dataclass(frozen=True, slots=True)
class Remove:
    """So much text behind a position goes."""

    position: int
    length: int


Edit: TypeAlias = Insert | Remove


def apply(edits: Iterable[Edit], text: str) -> str:
    """What edits make of a text."""
    for edit in edits:
        match edit:
            case Insert(position, new):
                text = text[:position] + new + text[position:]
            case Remove(position, length):
                text = text[:position] + text[position + length :]
    return text
