"""Functions with pictures, `analyze-string()` and `parse-ietf-date()` over generated arguments, judged by Saxon."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from mass import Mass
from oracle.pictures import analysis_call, ietf_call, number_call, ours, saxons, time_call

_CALLS = 50
"""How many calls one query makes: most of the time of a query is that of its start."""


@pytest.mark.parametrize("made", [number_call, time_call, analysis_call, ietf_call], ids=lambda each: each.__name__)
def test_generated_calls(mass: Mass, made: Callable[[Random], str]) -> None:
    """Each call gives what Saxon gives, or fails with the same code; the shortest difference is shown."""
    differences: list[str] = []
    for number in mass.cases(40):
        random = Random(number)
        calls = [made(random) for _ in range(_CALLS)]
        for call, mine, theirs in zip(calls, ours(calls), saxons(calls), strict=True):
            if _plain(mine) != _plain(theirs):
                differences.append(f"{call}\nours:  {mine}\nsaxon: {theirs}")
    assert not differences, f"{len(differences)} differences, the shortest:\n{min(differences, key=len)}"


def _plain(text: str) -> str:
    """A value without the hyphens in words, which Saxon writes and XQuery leaves open."""
    return text.replace("-", " ")
