"""Functions as values, which queries make with `function($x) { ... }` and hand to other functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, eq=False)
class FunctionItem:
    """A function: how many arguments it takes, and what it gives for them."""

    arity: int
    call: Callable[[Sequence[list[Any]]], list[Any]]
