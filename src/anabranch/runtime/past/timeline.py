"""The answers of a query at every moment of its streams, where they change.

Each moment is answered from scratch, over the arrivals so far.
Results that wait for the end of an input, an open window say, come with the last element of that input.
Where a query fails as a whole, the answer is empty, and the dead letters say why, when it starts to fail.
Before the first element the answer is empty, without its frame.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.language.json_results import with_json_results
from anabranch.law.answer import ShownAnswer, form_of
from anabranch.law.arrivals.past import Past
from anabranch.law.arrivals.recall import Recalling, asks
from anabranch.law.calls import PythonFunction
from anabranch.law.construct import answer_text
from anabranch.law.env import Env
from anabranch.law.evaluate import Evaluator
from anabranch.law.inputs import Input
from anabranch.stream.elements import DeadLetter


class Timeline:
    """The successive answers of a query over streams of items."""

    def __init__(
        self,
        query: ast.Query,
        inputs: Mapping[str, Input],
        *,
        functions: Mapping[str, PythonFunction] | None = None,
        name: str | None = None,
    ) -> None:
        form = form_of(query, inputs)
        self._query = query = with_json_results(query, form)
        self._json = form == "json"
        self._past = Past(query, inputs)
        self._recalling: Recalling | None = None
        if asks(query):
            self._recalling = Recalling(query, self._past, inputs, functions or {}, name)
        self._evaluator = self._recalling or Evaluator(query, inputs, functions or {}, name)
        self.dead: dict[DeadLetter, None] = {}
        """The dead letters on the way, each once."""
        self.failure: DynamicError | None = None
        """Why the query fails as a whole at the latest moment, if it does."""

    def __iter__(self) -> Iterator[ShownAnswer]:
        shown = ""
        for number, moment in enumerate(self._past.moments):
            try:
                answer, self.failure = self._at(number), None
            except DynamicError as error:
                if self.failure is None or error.message != self.failure.message:
                    self.dead[DeadLetter(moment.place, error.message, "", error.code, self._evaluator.name)] = None
                answer, self.failure = "", error
            if answer != shown:
                yield ShownAnswer(moment.now, answer)
                shown = answer

    def _at(self, moment: int) -> str:
        evaluator = self._evaluator
        env = Env.of(self._query)
        try:
            if self._recalling is not None:
                with self._recalling.at(moment):
                    return answer_text(evaluator.top(self._query.body, env), json=self._json)
            with self._past.shown(moment) as evaluator.inputs:
                return answer_text(evaluator.top(self._query.body, env), json=self._json)
        finally:
            self.dead |= dict.fromkeys(evaluator.dead)
            evaluator.dead.clear()
