"""Qualifiers: which versions of a region are meant.

`#v` is the version before the last `v`, `?t` the one that lived `t` seconds ago; `#[v]` and `?[t]` are all versions
that reach so far, the newest first (history paper, section 3, as LAWS 5.2 has it).
A region without a qualifier shows its newest version, as with `#0`.

A life is half open: from the version's start until just before its end, which is None as long as it lasts.
Times are decimals and are reckoned with exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Literal, Protocol, TypeVar

_EXACT = Context(prec=1_000)


class Life(Protocol):
    """When a version began, and when it was replaced or what it stands in was."""

    @property
    def start(self) -> Decimal: ...
    @property
    def end(self) -> Decimal | None: ...


L = TypeVar("L", bound=Life)


@dataclass(frozen=True, slots=True)
class Qualifier:
    """`#v`, `?t`, `#[v]` or `?[t]`; `amount` is the `v` or `t`."""

    kind: Literal["version", "time"]
    amount: Decimal
    is_window: bool = False
    is_outer: bool = False
    """Whether regions directly inside have the same qualifier: then the newest version shows as well, for these."""
    is_inner: bool = False
    """Whether the region directly around has the same qualifier: once that was replaced, the newest version shows."""

    @staticmethod
    def parse(text: str) -> Qualifier:
        """Read what `str` has written."""
        asked = text.rstrip("<>")
        is_window = asked[1] == "["
        amount = Decimal(asked[2:-1] if is_window else asked[1:])
        return Qualifier("version" if text[0] == "#" else "time", amount, is_window, "<" in text, ">" in text)

    def __str__(self) -> str:
        mark, amount = "#" if self.kind == "version" else "?", f"{self.amount:f}"
        asked = f"{mark}[{amount}]" if self.is_window else f"{mark}{amount}"
        return asked + "<" * self.is_outer + ">" * self.is_inner

    def ago(self, now: Decimal) -> Decimal:
        """The moment that a time qualifier looks back to."""
        return _EXACT.subtract(now, self.amount)

    def due(self, moment: Decimal) -> Decimal:
        """When a time qualifier will look back to this moment."""
        return _EXACT.add(moment, self.amount)


def effective(qualifier: Qualifier | None, versions: Sequence[L], now: Decimal) -> list[L]:
    """The versions that a qualifier shows, of all that are kept (newest first)."""
    match qualifier:
        case None:
            return list(versions[:1])
        case Qualifier("version", amount, is_window, is_outer):
            newest = versions[:1] if is_outer and amount and not is_window else ()
            return [*newest, *versions[0 if is_window else int(amount) : int(amount) + 1]]
        case Qualifier(is_window=True):
            ago = qualifier.ago(now)
            return [each for each in versions if each.end is None or each.end > ago]
        case Qualifier():
            ago = qualifier.ago(now)
            return [each for each in versions if each.start <= ago and (each.end is None or each.end > ago)]


def needed(qualifier: Qualifier | None, versions: Sequence[L], now: Decimal) -> list[L]:
    """The versions that a qualifier can still show, now or later, whatever follows."""
    match qualifier:
        case None:
            return list(versions[:1])
        case Qualifier("version", amount):
            return list(versions[: int(amount) + 1])
        case Qualifier():
            ago = qualifier.ago(now)
            return [each for each in versions if each.end is None or each.end > ago]


def next_change(qualifier: Qualifier | None, versions: Sequence[L], now: Decimal) -> Decimal | None:
    """The first moment from which `effective` or `needed` may differ by time alone; None where there is none."""
    if qualifier is None or qualifier.kind == "version":
        return None
    marks = [each.end for each in versions if each.end is not None]
    if not qualifier.is_window:
        marks += [each.start for each in versions]
    return min((due for mark in marks if (due := qualifier.due(mark)) > now), default=None)
