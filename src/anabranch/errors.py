"""One hierarchy of errors: what is wrong, where, and what to do about it.

Every error a user can meet is an `AnabranchError`.
It carries a short message (lower case, no full stop, the user's own names in quotes), the W3C code where one
exists, and a hint; errors in query text also know their place and can draw it.
As text, control characters from data, queries and file names are made visible: nothing acts on a terminal, and only the
parts of the error begin a line.
An `assert` elsewhere in the code is a bug of ours and cannot be reached by input.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from anabranch.visible import visible


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a query's text, as character positions `start` (first) and `end` (one past the last)."""

    start: int
    end: int


def did_you_mean(name: str, known: Iterable[str], otherwise: str | None = None) -> str | None:
    """The hint for an unknown name: a known one with a similar spelling, else `otherwise`."""
    folded = {each.casefold(): each for each in known}
    found = get_close_matches(name.casefold(), folded, n=1)
    return f"did you mean '{folded[found[0]]}'?" if found else otherwise


class AnabranchError(Exception):
    """The base of all errors that concern the user."""

    def __init__(self, message: str, *, code: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.hint = hint

    def __str__(self) -> str:
        return f"{visible(self.message)}{self._code}{self._hint}"

    @property
    def _code(self) -> str:
        return f" [{self.code}]" if self.code else ""

    @property
    def _hint(self) -> str:
        return f"\nhint: {visible(self.hint)}" if self.hint else ""


class UsageError(AnabranchError):
    """The command line or a call is wrong: a missing file, an unknown stream, a value out of range."""


class StreamError(AnabranchError):
    """An input as a whole cannot be read; a single bad element is a `DeadLetter`, not an error."""


class SourceUnavailable(StreamError):
    """An input cannot be reached for now; what needs it waits, and tries again."""


class StateError(AnabranchError):
    """Durable state cannot be used or written: a foreign, damaged or busy checkpoint, a full disk."""


class DiskFull(StateError):
    """There is no room on the disk; what was durable before is untouched."""


class BadItem(AnabranchError):
    """One element of a stream that cannot be used; it is set aside with this reason."""


class DynamicError(AnabranchError):
    """An evaluation failed for one item, window or pair (LAWS 2.4); `code` is the W3C code."""

    def __init__(self, message: str, *, code: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, code=code, hint=hint)
        self.operands: list[tuple[object, ...]] = []
        """The operands of the failing operation, then those of the predicates and loops around it, innermost first;
        `stream/culprits.py` finds their items."""

    def given(self, operands: Iterable[object]) -> DynamicError:
        """The same error, with further operands noted on it."""
        self.operands.append(tuple(operands))
        return self


class Aborted(AnabranchError):
    """An evolution that a query cannot survive (LAWS 4.6): it ends there, and its earlier results stay."""


class QueryError(AnabranchError):
    """Query text that cannot be accepted, with its place: line, column and a caret under it."""

    def __init__(
        self,
        message: str,
        *,
        text: str,
        span: Span,
        code: str | None = None,
        hint: str | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.text = text
        self.span = span
        self.name = name
        """The name of the query, such as a file name; shown in front of the line number."""

    @property
    def line(self) -> int:
        """The line of the error, counted from 1."""
        return self.text.count("\n", 0, self.span.start) + 1

    @property
    def column(self) -> int:
        """The column of the error, counted from 1."""
        return self.span.start - (self.text.rfind("\n", 0, self.span.start) + 1) + 1

    def __str__(self) -> str:
        begin = self.span.start - self.column + 1
        end = self.text.find("\n", begin)
        source = self.text[begin : end if end >= 0 else len(self.text)]
        shift = max(0, self.column - 80)  # a very long line is shown around the caret only
        # characters that a terminal would act on, or could not write, are shown as blanks
        shown = "".join(each if each.isprintable() else " " for each in source[shift : shift + 160])
        width = max(1, min(self.span.end, begin + len(source)) - self.span.start)
        caret = " " * (self.column - 1 - shift) + "^" * min(width, 160)
        line, column = self.line, self.column
        where = f"{visible(self.name)}:{line}:{column}" if self.name else f"line {line}, column {column}"
        return f"{where}: {visible(self.message)}{self._code}\n  {shown}\n  {caret}{self._hint}"


class Refused(QueryError):
    """A construct that is understood and deliberately not accepted; `language/checks/refusals.py` has all."""


class Unsupported(QueryError):
    """A query that this engine cannot run, though another can; the message names the construct."""
