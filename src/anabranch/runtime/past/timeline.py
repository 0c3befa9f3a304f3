"""What a query shows, element by element: its answer at every moment of its streams, where that is another one.

Each moment is answered from scratch, over what has arrived by then.
Where results stand, `Growing` only adds what is new, and `Corrected` looks at what is remembered only.
What waits for the end of an input, an open window say, comes with the last element of that input.
Where a query fails as a whole nothing is shown, and the dead letters say why, when it begins to.
Before the first element nothing is shown, not even what stands around the results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.law.answer import ShownAnswer
from anabranch.law.arrivals.past import Past
from anabranch.law.arrivals.recall import Recalling, asks
from anabranch.law.calls import PythonFunction
from anabranch.law.construct import content_text
from anabranch.law.env import Env
from anabranch.law.evaluate import Evaluator
from anabranch.law.inputs import Input
from anabranch.law.slices import WholeNeeded
from anabranch.runtime.past.asked import Asked, asked_of, only_past
from anabranch.runtime.past.recollection import Recollection
from anabranch.runtime.past.remember import Remembering, Shape, shape_of
from anabranch.runtime.units import NOTHING, joined
from anabranch.stream.elements import DeadLetter


class Timeline:
    """The answers of a query over streams of items, one after the other."""

    def __init__(
        self,
        query: ast.Query,
        inputs: Mapping[str, Input],
        *,
        functions: Mapping[str, PythonFunction] | None = None,
        name: str | None = None,
        text: str | None = None,
    ) -> None:
        self._query = query
        self._past = Past(query, inputs)
        self._recalling: Recalling | None = None
        if asks(query):
            self._recalling = Recalling(query, self._past, inputs, functions or {}, name, text)
        self._evaluator = self._recalling or Evaluator(query, inputs, functions or {}, name, text)
        self.dead: dict[DeadLetter, None] = {}
        """What was set aside on the way, each thing once."""
        self.failure: DynamicError | None = None
        """Why the query fails as a whole at the latest moment, if it does."""

    def __iter__(self) -> Iterator[ShownAnswer]:
        return self._from(0, "")

    def _from(self, first: int, shown: str) -> Iterator[ShownAnswer]:
        """What is shown from a moment on, behind what was shown before."""
        for number in range(first, len(self._past.moments)):
            moment = self._past.moments[number]
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
                    return content_text(evaluator.top(self._query.body, env))
            with self._past.shown(moment) as evaluator.inputs:
                return content_text(evaluator.top(self._query.body, env))
        finally:
            self.dead |= dict.fromkeys(evaluator.dead)
            evaluator.dead.clear()


class Growing(Timeline):
    """The same for a query whose results stand, item by item, so that the answer only grows (`remember.py`)."""

    def __init__(
        self,
        shape: Shape,
        inputs: Mapping[str, Input],
        *,
        functions: Mapping[str, PythonFunction] | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(shape.standing.query, inputs, functions=functions, name=name, text=shape.standing.text)
        self._shape = shape
        self._remembering = Remembering(shape, inputs, functions, name)

    def __iter__(self) -> Iterator[ShownAnswer]:
        shown, grown, after_value = "", "", False
        for number, moment in enumerate(self._past.moments):
            try:
                piece = self._remembering.take(moment.stream, moment.element)
            except WholeNeeded:  # a path turns out to reach the root of a stream: the law goes on
                yield from self._from(number, shown)
                return
            grown += "".join(joined((piece,), after_value))
            after_value = piece.ends if piece != NOTHING else after_value
            answer = self._shape.around(grown)
            if answer != shown:
                yield ShownAnswer(moment.now, answer)
                shown = answer
        self.dead |= dict.fromkeys(self._remembering.dead)


class Corrected(Timeline):
    """The same for a query that asks for the past of all its streams, and so needs a part of it only."""

    def __init__(
        self,
        query: ast.Query,
        asked: tuple[Asked, ...],
        inputs: Mapping[str, Input],
        *,
        functions: Mapping[str, PythonFunction] | None = None,
        name: str | None = None,
        text: str | None = None,
    ) -> None:
        super().__init__(query, inputs, functions=functions, name=name, text=text)
        self._recollection = Recollection(query, asked, inputs, functions, name, text)
        self._whole = False
        """Whether it needs all that was, after all."""

    def _from(self, first: int, shown: str) -> Iterator[ShownAnswer]:
        try:
            yield from super()._from(first, shown)
        finally:
            self.dead |= dict.fromkeys(self._recollection.dead)

    def _at(self, moment: int) -> str:
        if self._whole:
            return super()._at(moment)
        now = self._past.moments[moment]
        try:
            self._recollection.take(now.stream, now.element)
            return content_text(self._recollection.value(self._query.body, Env.of(self._query)))
        except WholeNeeded:  # a path turns out to reach the root of a stream: the law goes on
            self._whole = True
            return super()._at(moment)


def timeline_of(
    query: ast.Query,
    inputs: Mapping[str, Input],
    *,
    functions: Mapping[str, PythonFunction] | None = None,
    name: str | None = None,
    text: str | None = None,
) -> Timeline:
    """The timeline of a query, by the shortest way."""
    shape = shape_of(query, functions, text)
    if shape is not None:
        return Growing(shape, inputs, functions=functions, name=name)
    asked = asked_of(query) if only_past(query) else None
    if asked is not None:
        return Corrected(query, asked, inputs, functions=functions, name=name, text=text)
    return Timeline(query, inputs, functions=functions, name=name, text=text)
