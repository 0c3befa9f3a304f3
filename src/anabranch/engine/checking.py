"""Queries checked on their way into a trunk that has no end.

Of those that differ in their constants only one is looked at closely (`reference.texts`).
"""

from __future__ import annotations

from anabranch.algebra.plans.interpret import Plan
from anabranch.algebra.plans.written import streams_of, write_plan
from anabranch.engine.preparing import Inputs, prepare, refuse_endless
from anabranch.errors import DynamicError, UsageError, did_you_mean
from anabranch.runtime.shapes import CheckedTexts
from anabranch.spark.sinks.tables import check_table


class Checking:
    """Checks queries over some inputs; with other inputs it begins anew."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs
        self._texts = CheckedTexts(inputs.functions)

    def printed(self, name: str, text: str, *, label: str | None = None, table: bool = False) -> str:
        """A query as it is understood; `table` asks that its answers make one. Raises for a query that is wrong."""
        try:
            return self._printed(name, text, label, table)
        except DynamicError as error:
            message = f"the query '{label or name}' has no answer: {error.message}"
            raise DynamicError(message, code=error.code, hint=error.hint) from error

    def _printed(self, name: str, text: str, label: str | None, table: bool) -> str:
        if not table and (known := self._texts.printed(text)) is not None:
            return known
        prepared = prepare(name, text, self._inputs, "spark", label=label)
        refuse_endless(prepared, self._inputs)
        if table and prepared.shows:
            raise UsageError(f"the answer of '{name}' is corrected as it goes, so it makes no table")
        if table:
            check_table(name, prepared.checked.query)
        return self._texts.learn(text, prepared.checked.query)

    def written(self, name: str, plan: Plan) -> str:
        """A plan of the builder as it is written down; raises where it reads what is not there."""
        text = write_plan(plan)
        known = {each.name: each for each in self._inputs.streams}
        for each in streams_of(plan):
            if each in known and known[each].updates:
                raise UsageError(f"the plan '{name}' reads '{each}', and operators cannot follow updates yet")
            if each not in known:
                hint = did_you_mean(each, known, f"there is {', '.join(sorted(known)) or 'none yet'}")
                raise UsageError(f"the plan '{name}' reads the stream '{each}', which is not registered", hint=hint)
        return text
