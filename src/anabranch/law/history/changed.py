"""Changes of a stream that a query over updates cannot follow: it ends where one comes that it depends on (LAWS 4.5).

A stream of updates has no accents; one that stands there is bad, and leaves its path in doubt.
A stream of items that such a query reads beside it may evolve; but what is remembered of its items is not converted.
Either way the queries end that look at the path, or whose elements have their times there; the others go on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from anabranch.algebra.accents.sets import below
from anabranch.language import ast
from anabranch.law.evolution.vantage import Change
from anabranch.sharing.needs import needs_of
from anabranch.sharing.retention import Needs, looks_at
from anabranch.stream.elements import Accent
from anabranch.stream.path import Path


@dataclass(frozen=True, slots=True, eq=False)
class Dependence:
    """The paths and times of its streams that a query depends on."""

    needs: Needs
    times: Mapping[str, Path | None]
    """By stream: where its elements have their times."""

    @staticmethod
    def of(query: ast.Query, times: Mapping[str, Path | None]) -> Dependence:
        return Dependence(needs_of(query), times)

    def ended_by(self, stream: str, change: Change) -> str | None:
        """Why a query ends with a change of a stream; None where that does not concern it."""
        if isinstance(change, Accent):
            path = change.evolution.path
            if self._is_on(stream, path):
                return f"'{path}' of stream '{stream}' changes ({change.place}), and a query over updates cannot follow"
            return None
        for doubt in change.doubts:
            if self._is_on(stream, doubt.path):
                return f"the query reads '{doubt.path}', which is unknown from here on: {change.reason}"
        return None

    def _is_on(self, stream: str, path: Path) -> bool:
        time = self.times.get(stream)
        if time is not None and (below(time, path) or below(path, time)):
            return True
        return looks_at(self.needs.streams[stream], path)
