"""The evaluation of an expression that is no path at the moments so far, to find its versions (LAWS 5.4).

A *closed* expression is evaluated at each moment by itself, as if it were a query.
One with variables is evaluated for what they hold, from the present moment back as far as versions are asked for: nodes
are those nodes as they were then, and moments before one of them came do not count.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Self

from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.language.rewrite import parts
from anabranch.language.versions import is_closed
from anabranch.law.env import Env
from anabranch.law.evaluate import Evaluator
from anabranch.law.history.chains import DocumentMoment
from anabranch.law.history.values import ValueVersion, WrittenValues, chosen_values, frozen, successive
from anabranch.values.sequences import Values


class ValueVersions(Evaluator):
    """An evaluator at a moment that knows the moments before."""

    _now: Fraction
    _is_past = False
    """Whether it evaluates what was some time ago."""

    @abstractmethod
    def _moments(self) -> Sequence[DocumentMoment]:
        """The moments up to this one, in their order."""

    @abstractmethod
    def _past(self, then: Fraction, moment: int | None = None) -> Self:
        """An evaluator of an earlier time, or moment."""

    @abstractmethod
    def _retained(self) -> Fraction | None:
        """The time since which versions of an expression with variables are counted; None where all are."""

    @abstractmethod
    def _counterparts(self, values: Values) -> Values:
        """Values of another moment as they are at this one; nodes that are not there now are left out."""

    def _value_versions(self, expression: ast.Expression, qualifier: ast.Qualifier, env: Env) -> Values:
        """The versions asked for of an expression that is no path, newest first."""
        if not is_closed(expression):
            return self._versions_back(expression, qualifier, env)
        own = replace(self._start, namespaces=env.namespaces)
        values: list[tuple[Fraction, WrittenValues]] = []
        failure: DynamicError | None = None
        for moment in self._moments():
            written, failure = self._at_moment(moment)._frozen_alone(expression, own)
            values.append((moment.now, written))
        return chosen_values(successive(values), qualifier, self._now, None if self._is_past else failure)

    def _at_moment(self, moment: DocumentMoment) -> Self:
        """An evaluator of a moment; all of them are asked for in their order."""
        return self._past(moment.now, moment.number)

    def _versions_back(self, expression: ast.Expression, qualifier: ast.Qualifier, env: Env) -> Values:
        """The versions of an expression with variables, from the present one back as far as they are asked for."""
        failure: DynamicError | None = None
        written = WrittenValues()
        try:
            written = frozen(self.value(expression, env))
        except DynamicError as error:
            failure = error
        versions = [ValueVersion(self._now, written)]
        enough = int(qualifier.amount.text) + 1 if qualifier.kind == "version" else None
        since = self._now - qualifier.amount.exact if enough is None else self._retained()
        names = {part.name for part in parts(expression) if isinstance(part, ast.Variable)}
        for moment in reversed(self._moments()):
            past = self._at_moment(moment)
            found = past._as_it_was(env, names)
            if found is None:
                break  # a node that it speaks of had not come
            past._in_unit, past.left = self._in_unit, self.left
            try:
                before = frozen(past.value(expression, found))
            except DynamicError:
                before = []
            self.left = past.left
            if before == versions[-1].written:
                versions[-1] = ValueVersion(moment.now, before)
            elif len(versions) == enough or (since is not None and versions[-1].start <= since):
                break
            else:
                versions.append(ValueVersion(moment.now, before))
        return chosen_values(versions, qualifier, self._now, None if self._is_past else failure)

    def _as_it_was(self, env: Env, names: Collection[str]) -> Env | None:
        """What variables and context were here; None where none of what one of them holds had come.

        `names` are the variables that count.
        """
        context = self._counterparts([] if env.context is None else [env.context])
        variables = {name: self._counterparts(values) for name, values in env.variables.items()}
        missing = any(env.variables[name] and not variables[name] for name in names if name in variables)
        if missing or (env.context is not None and not context):
            return None
        return replace(env, variables=variables, context=context[0] if context else None)

    def _frozen_alone(self, expression: ast.Expression, env: Env) -> tuple[WrittenValues, DynamicError | None]:
        """The value of a closed expression as it is kept, evaluated as if it were a query; nothing where it fails."""
        before, self._in_unit = self._in_unit, False
        try:
            return frozen(self.alone(expression, env)), None
        except DynamicError as error:
            return [], error
        finally:
            self._in_unit = before
