"""Paths name an attribute of an item: `coord/cel/ra`, `@id`, `coord/@unit`; they are relative to the item.

An item that is a value itself, `<t>25.0</t>`, has it at the path `.`; accents and descriptions may name it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from anabranch.errors import StreamError

_STEP = re.compile(r"@?[^\W\d][\w.\-]*(:[^\W\d][\w.\-]*)?\Z")


TimeUnit: TypeAlias = Literal["s", "ms", "us", "ns"]
"""What the numbers at a stream's declared time path may count in (LAWS 1.3)."""


@dataclass(frozen=True, slots=True, order=True)
class Path:
    """The names from just below the item down; only the last may be an attribute (`@name`). None is `.`."""

    steps: tuple[str, ...]
    unit: TimeUnit | None = field(default=None, compare=False)
    """Of a stream's declared time path: what its numbers count in, from 1970 on, where that was said.

    It names no place, so paths with other units are equal.
    """

    def counting(self, unit: TimeUnit | None) -> Path:
        """The same path, as the place of times whose numbers count in a unit."""
        return replace(self, unit=unit)

    @staticmethod
    def parse(text: str, *, itself: bool = False) -> Path:
        """Read `a/b/@c`; a leading `./` is allowed, with `itself` also `.`, anything else is an error."""
        if itself and text.strip() == ".":
            return Path(())
        steps = tuple(text.strip().removeprefix("./").split("/"))
        bad = [step for step in steps if not _STEP.match(step)]
        if bad or any(step.startswith("@") for step in steps[:-1]):
            raise StreamError(f"'{text}' is not a path", hint="write names with '/' between them, as in coord/cel/ra")
        return Path(steps)

    def __str__(self) -> str:
        return "/".join(self.steps) or "."
