"""Queries checked on their way into a trunk that has no end.

Of those that differ in their constants only one is looked at closely (`reference.texts`).
"""

from __future__ import annotations

from anabranch.engine.finite import Inputs, prepare, refuse_endless
from anabranch.reference.texts import Texts
from anabranch.spark.sinks.tables import check_table


class Checking:
    """Checks queries over some inputs; with other inputs it begins anew."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs
        self._texts = Texts(inputs.functions)

    def printed(self, name: str, text: str, *, label: str | None = None, table: bool = False) -> str:
        """A query as it is understood; `table` asks that its answers make one. Raises for a query that is wrong."""
        if not table and (known := self._texts.printed(text)) is not None:
            return known
        prepared = prepare(name, text, self._inputs, "spark", label=label)
        refuse_endless(prepared, self._inputs)
        if table:
            check_table(name, prepared.checked.query)
        return self._texts.learn(text, prepared.checked.query)
