"""What parts of a query come to: the law's own evaluator, asked about one entry, or about all of a stream.

An error inside a round sets aside what the law says; one that no round holds makes the whole answer fail (`failing`),
and nothing is on display until it is gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from anabranch.algebra.history.display import Piece
from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.law.calls import PythonFunction
from anabranch.law.env import Env
from anabranch.law.evaluate import Known, ResultRow
from anabranch.law.history.document import Document
from anabranch.law.history.evaluate import HistoryEvaluator
from anabranch.law.inputs import Input
from anabranch.runtime.units import piece_of
from anabranch.stream.elements import DeadLetter
from anabranch.values.sequences import Values, atomize


@dataclass(frozen=True, slots=True)
class Scope:
    """What names mean at a place in the query, and the namespaces that are declared around it in the answer."""

    env: Env
    declared: Mapping[str, str] = field(default_factory=dict)

    def piece(self, values: Values) -> Piece | None:
        """Values as they are written at that place; None for nothing at all."""
        if not values:
            return None
        piece = piece_of(values, self.declared)
        return Piece(piece.text, piece.begins, piece.ends)


class Evaluation:
    """Evaluates parts of one query; `now` is the time of the latest element."""

    def __init__(
        self,
        query: ast.Query,
        functions: Mapping[str, PythonFunction] | None,
        inputs: Mapping[str, Input] | None,
        name: str | None,
        text: str | None,
    ) -> None:
        self.query = query
        self.now = Fraction(0)
        self.evaluated = 0
        """How many evaluations there were; for tests and measurements."""
        self.aside: list[DeadLetter] = []
        """What the latest evaluation has set aside."""
        self.functions = functions
        self._inputs, self._name, self._text = inputs, name, text

    def rows(self, expression: ast.Expression, scope: Scope, documents: Mapping[str, Document]) -> list[ResultRow]:
        """The results of an expression in the order of the document, with their ranks where it asks for an order."""
        evaluator = self._evaluator(documents, {})
        if isinstance(expression, ast.Flwor) and expression.order:
            rows = evaluator.rows(expression, scope.env)
        else:
            rows = [ResultRow((), evaluator.top(expression, scope.env))]
        self.aside = list(dict.fromkeys(evaluator.dead))
        return rows

    def texts(
        self, expression: ast.Expression, scope: Scope, documents: Mapping[str, Document]
    ) -> tuple[str, ...] | None:
        """The texts that an expression over nodes finds; None where something fails on the way."""
        evaluator = self._evaluator(documents, {})
        try:
            found = tuple(str(each) for each in atomize(evaluator.top(expression, scope.env)))
        except DynamicError:
            return None
        return None if evaluator.dead else found

    def value(
        self,
        expression: ast.Expression,
        scope: Scope,
        documents: Mapping[str, Document],
        known: Known,
    ) -> Values:
        """The value of an expression."""
        evaluator = self._evaluator(documents, known)
        values = evaluator.top(expression, scope.env)
        self.aside = list(dict.fromkeys(evaluator.dead))
        return values

    def _evaluator(self, documents: Mapping[str, Document], known: Known) -> HistoryEvaluator:
        self.evaluated += 1
        self.aside = []
        evaluator = HistoryEvaluator(
            self.query,
            documents,
            self.now,
            functions=self.functions,
            inputs=self._inputs,
            name=self._name,
            text=self._text,
        )
        evaluator.known = known
        return evaluator
