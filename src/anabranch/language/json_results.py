"""Results of an answer in JSON that may be something else: each round looks at its own (LAWS 7.3).

An answer is lines of JSON where one of its results may be JSON; what is none, an element beside objects or INF, is an
error, which belongs to the round of its item, window or pair.
So where the writing of a query does not tell that all its results are JSON, what a round returns is handed to
`op:json-results`, which gives it on or fails:

    for $o in stream("s") return ($o, $o/a/..)   ->   for $o in stream("s") return op:json-results(($o, $o/a/..))
"""

from __future__ import annotations

from dataclasses import replace

from anabranch.language import ast
from anabranch.language.checks.outputs import AnswerForm, QueryOutputs, outputs_of
from anabranch.language.versions import value_past

JSON_RESULTS = "op:json-results"
_PLACING = ("head", "tail", "subsequence", "reverse")


def with_json_results(query: ast.Query, form: AnswerForm, *, edited: bool = False) -> ast.Query:
    """A query whose rounds look at their results, where its answer is JSON and they may be something else.

    Where streams are `edited`, updates may have made of an object what JSON cannot say.
    """
    return replace(query, body=json_results(query.body, outputs_of(query), form, edited=edited))


def json_results(
    expression: ast.Expression, outputs: QueryOutputs, form: AnswerForm, *, edited: bool = False
) -> ast.Expression:
    """The same of an expression that stands for the answer; `outputs` are those of the query."""
    is_sure = form == "xml" or (outputs.is_json_only and not edited)
    return expression if is_sure else _looked_at(expression)


def _looked_at(expression: ast.Expression) -> ast.Expression:
    """An expression whose value is that of the query, with the results of its rounds looked at."""
    match expression:
        case ast.Flwor(clauses, result=result):
            inner = _looked_at(result)
            has_rounds = any(isinstance(each, ast.For) for each in clauses) and not isinstance(result, ast.Pipeline)
            return replace(expression, result=_call(inner) if has_rounds else inner)
        case ast.Pipeline(result=result):
            return replace(expression, result=_call(_looked_at(result)))
        case ast.Sequence(items):
            return replace(expression, items=tuple(map(_looked_at, items)))
        case ast.If(then=then, otherwise=otherwise):
            return replace(expression, then=_looked_at(then), otherwise=_looked_at(otherwise))
        case ast.Filter(base) if value_past(expression) is None:
            return replace(expression, base=_looked_at(base))
        case ast.Call(name, (first, *rest)) if name.removeprefix("fn:") in _PLACING:
            return replace(expression, arguments=(_looked_at(first), *rest))
        case _:
            return expression


def _call(expression: ast.Expression) -> ast.Expression:
    return ast.Call(JSON_RESULTS, (expression,), span=expression.span)
