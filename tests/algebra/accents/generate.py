"""Random descriptions and accents, and a grid of items that has one of every kind they can tell apart.

Constants are whole numbers and two words; items have them, what lies between, a word, NaN, and nothing.
"""

from __future__ import annotations

from itertools import product
from random import Random

from algebra.accents.making import tree
from anabranch.stream.tree import Element

NUMBERS = (1, 2)
GRID: dict[str, tuple[object, ...]] = {
    "a": ("FOO", "BAR", "x", None),
    "s": ("0.5", "1", "1.50", "2", "3", "word", "NaN", None),
    "t": (0, 1, "1.5", 2, "25e-1", "NaN", None),
}


def description(random: Random, depth: int = 2, names: str = "ast") -> str:
    """A description of the paths named."""
    if depth and random.random() < 0.6:
        kind = random.choice(("and", "or", "not"))
        if kind == "not":
            return f"not({description(random, depth - 1, names)})"
        return f"({description(random, depth - 1, names)} {kind} {description(random, depth - 1, names)})"
    name = random.choice(names)
    if name == "a":
        return f"a {random.choice(('=', '!='))} '{random.choice(('FOO', 'BAR'))}'"
    return f"{name} {random.choice(('=', '!=', '<', '<=', '>', '>='))} {random.choice(NUMBERS)}"


def grid() -> list[Element]:
    """One item of every kind."""
    return [
        tree(**{name: value for name, value in zip(GRID, values, strict=True) if value is not None})
        for values in product(*GRID.values())
    ]
