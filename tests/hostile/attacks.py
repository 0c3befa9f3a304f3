"""Attacks: hostile input by class, and what is to come of each.

An attack is carried out in a process of its own, whose processor time and memory are measured (`outcomes.py`).
What is to come of it is one word:

* `set aside`: the input is a dead letter, and its neighbours are answered;
* `refused`: an error of ours that says what is wrong;
* `answered`: it is harmless, and is answered as any other input is, its neighbours too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

Outcome: TypeAlias = Literal["set aside", "refused", "answered"]
Carry: TypeAlias = Callable[[Path], Outcome]


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack; `carry_out` gets an empty folder, and gives what came of it."""

    group: str
    name: str
    carry_out: Carry
    expected: Outcome

    def __str__(self) -> str:
        return f"{self.group}: {self.name}"


def every() -> Iterator[Attack]:
    """All attacks, group by group."""
    from hostile import (
        json_input,
        messages,
        output,
        page,
        query_text,
        requests,
        settings,
        sql_text,
        xml_documents,
        xml_input,
    )

    inputs = (xml_input, xml_documents, json_input, messages, query_text, sql_text, settings)
    for module in (*inputs, requests, output, page):
        yield from module.attacks()
