"""`distinct-values()` over a stream that only grows: each different value is an entry, which comes once and stays."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from anabranch.branch.display.evaluation import Changed, QuerySite
from anabranch.branch.display.stages import EntrySource
from anabranch.branch.growing.items import Entries
from anabranch.branch.growing.stages import LastingSource
from anabranch.errors import DynamicError
from anabranch.law.evaluate import ResultRow
from anabranch.law.functions import DistinctAtoms
from anabranch.values.atomic import Atomic
from anabranch.values.sequences import atomize
from anabranch.values.written import read_atom, write_atom


class DistinctSource(LastingSource):
    """The different values that the entries of `over` give, which are never edited; `entries` numbers the values."""

    may_forget = False
    """A value that was forgotten would be taken for a new one when it comes again."""

    def __init__(self, id: str, site: QuerySite, over: EntrySource, entries: Entries) -> None:
        super().__init__(id, site, id)
        self._over, self._entries = over, entries
        self._known = DistinctAtoms()
        self._values: dict[int, Atomic] = {}

    def again(self, changed: Changed) -> Collection[int]:
        """The values that are new."""
        found: list[int] = []
        for entry in self._over.again(changed):
            for row in self._over.rows(entry):
                try:
                    atoms = atomize(row.values)
                except DynamicError as error:
                    self.fails(entry, error)
                    continue
                for each in atoms:
                    if self._known.add(each):
                        found.append(self._entries.enter())
                        self._values[found[-1]] = each
                        self._entries.keep(found[-1])
        return found

    def tried(self, entry: int) -> Sequence[ResultRow]:
        return [ResultRow((), [self._values[entry]])]

    def remembered(self, stream: str, entry: int) -> Any:
        """A value as plain data."""
        return write_atom(self._values[entry]) if stream == self.stream else None

    def recall(self, stream: str, entry: int, data: Any) -> None:
        """Take back a value."""
        if stream == self.stream and data is not None and entry not in self._values:
            self._values[entry] = read_atom(data)
            self._known.add(self._values[entry])
