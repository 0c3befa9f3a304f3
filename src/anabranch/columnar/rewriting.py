"""Calls that mean what another construct means, as that construct: what remains to be compiled is less.

Where an error is caught, columns compute what would be tried: they raise no errors, and leave an item whose value they
cannot tell to the law, which knows what catches what.
"""

from __future__ import annotations

from typing import Any

from anabranch.language import ast
from anabranch.language.rewrite import rebuild

_POSITION = ast.Call("position", ())
_TRUTHS = ("not", "exists", "empty", "contains", "starts-with", "ends-with", "matches", "boolean", "true", "false")


def in_usual_forms(node: Any) -> Any:
    """The node with such calls replaced."""
    match rebuild(node, in_usual_forms):
        case ast.Call("op:try", (ast.InlineFunction(_, body), *_)):
            return body
        case ast.Call("for-each" | "fn:for-each", (source, ast.InlineFunction((name,), body))) as call:
            return ast.Flwor((ast.For(name, source, None),), None, (), body, span=call.span)
        case ast.Call("filter" | "fn:filter", (source, ast.InlineFunction((name,), body))) as call if _is_truth(body):
            return ast.Flwor((ast.For(name, source, None),), body, (), ast.Variable(name), span=call.span)
        case ast.Call("head" | "fn:head", (source,)) as call:
            return ast.Filter(source, (ast.Positional(ast.Number("1")),), span=call.span)
        case ast.Call("tail" | "fn:tail", (source,)) as call:
            later = ast.Comparison(">", _POSITION, ast.Number("1"))
            return ast.Filter(source, (ast.Positional(later),), span=call.span)
        case ast.Call("subsequence" | "fn:subsequence", (source, *places)) as call if all(map(_is_whole, places)):
            first, *behind = (int(each.text) for each in places if isinstance(each, ast.Number))
            asked: list[ast.Expression] = [ast.Comparison(">=", _POSITION, ast.Number(str(first)))]
            asked += [ast.Comparison("<", _POSITION, ast.Number(str(first + length))) for length in behind]
            condition = asked[0] if len(asked) == 1 else ast.And(tuple(asked))
            return ast.Filter(source, (ast.Positional(condition),), span=call.span)
        case ast.Call("unordered" | "fn:unordered", (source,)):
            return source
        case found:
            return found


def _is_whole(expression: ast.Expression) -> bool:
    return isinstance(expression, ast.Number) and expression.text.isdigit()


def _is_truth(expression: ast.Expression) -> bool:
    """Whether an expression gives a boolean, as `filter` asks for."""
    match expression:
        case ast.Comparison() | ast.And() | ast.Or() | ast.Quantified():
            return True
        case ast.Call(name):
            return name.removeprefix("fn:") in _TRUTHS
        case _:
            return False
