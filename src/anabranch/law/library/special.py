"""Calls that need more than the values of their arguments: functions as values, `try`, types, constructors.

A function that a query makes is a closure: it keeps the variables of the place where it was made.
Functions call each other no deeper than constructs may nest, and each call is a step; so every evaluation ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.language.parsing.cursor import MAX_NESTING
from anabranch.language.signatures import PLACES
from anabranch.law.construct import computed
from anabranch.law.env import Env
from anabranch.law.library.analysis import analyzed
from anabranch.law.library.arguments import whole_of
from anabranch.law.library.operators import nodes_of
from anabranch.law.library.places import id_of, path_to
from anabranch.law.pipelines import Pipelines
from anabranch.law.steps import Exhausted
from anabranch.stream.tree import LETTERS, Node
from anabranch.values.atomic import order_rank
from anabranch.values.function_items import FunctionItem
from anabranch.values.objects.lookups import called
from anabranch.values.objects.maps import JsonArray, JsonObject
from anabranch.values.sequence_types import converted, is_of, typed
from anabranch.values.sequences import Values, atomize

_CONSTRUCTORS = frozenset(
    f"op:{kind}" for kind in ("element", "attribute", "processing-instruction", "text", "comment", "document")
)
_TYPES = frozenset(("op:instance", "op:treat", "op:typed", "op:convert"))
_HIGHER = frozenset(("op:call", "for-each", "filter", "fold-left", "fold-right", "for-each-pair", "sort"))
_PLACED = frozenset(("root", *PLACES))
SPECIAL = frozenset(("op:try", "op:to", "analyze-string", *_PLACED, *_CONSTRUCTORS, *_TYPES, *_HIGHER))


class SpecialCalls(Pipelines):
    """Evaluates such calls; `Evaluator` adds the other expressions."""

    _calls_open = 0

    def function_item(self, function: ast.InlineFunction, env: Env) -> FunctionItem:
        """A function as a value."""

        def call(arguments: Sequence[Values]) -> Values:
            bound = env
            for name, values in zip(function.parameters, arguments, strict=True):
                bound = bound.bind(name, list(values))
            return self.value(function.body, bound)

        return FunctionItem(len(function.parameters), call)

    def special(self, name: str, call: ast.Call, env: Env) -> Values:
        """The value of a call that needs more than its arguments."""
        if name == "op:try":
            return self._try(call.arguments, env)
        if name in _PLACED and not call.arguments:
            return self._of_place(name, [self.context(env)])
        arguments = [self.value(each, env) for each in call.arguments]
        try:
            if name in _TYPES:
                return self._of_type(name, arguments, env)
            if name == "op:text" and not arguments[0]:
                return []
            if name in _CONSTRUCTORS:
                return [computed(name[3:], arguments, env.namespaces, self.spend)]
            if name in _PLACED:
                return self._of_place(name, arguments[0])
            if name == "analyze-string":
                return [analyzed(arguments, self.spend)]
        except DynamicError as error:
            raise error.given([value for each in arguments for value in each]) from None
        if name == "op:to":
            return self._range(*arguments)
        found = self._higher(name, arguments)
        self.spend(len(found))
        return found

    def _range(self, first: Values, last: Values) -> Values:
        """The whole numbers of a range, whose steps are counted before the list is built."""
        start, end = whole_of(first, "'to'"), whole_of(last, "'to'")
        if start is None or end is None or start > end:
            return []
        self.spend(end - start + 1)
        return list(range(start, end + 1))

    def _of_place(self, name: str, values: Values) -> Values:
        """The outermost node around one, or where it stands in that; an item of a stream is outermost (LAWS 2.8)."""
        nodes = nodes_of(values, f"{name}()")
        if len(nodes) > 1:
            raise DynamicError(f"{name}() takes one node", code="XPTY0004")
        if not nodes:
            return [""] if name == "generate-id" else []
        (node,) = nodes
        top = _top(node, self.outside)
        match name:
            case "root":
                return [top]
            case "path":
                path = path_to(node, top)
                self.spend(len(path) >> LETTERS)
                return [path]
            case _:
                return [id_of(node, top)]

    def _of_type(self, name: str, arguments: list[Values], env: Env) -> Values:
        values, (text,) = arguments
        assert isinstance(text, str)
        match name:
            case "op:instance":
                return [is_of(values, text, env.namespaces)]
            case "op:treat":
                return typed(values, text, env.namespaces, "XPDY0050")
            case "op:typed":
                return typed(values, text, env.namespaces, "XPTY0004")
            case _:
                return converted(values, text, env.namespaces)

    # --- errors -------------------------------------------------------------------------------------------

    def _try(self, arguments: Sequence[ast.Expression], env: Env) -> Values:
        body, *catches = arguments
        assert isinstance(body, ast.InlineFunction)
        try:
            return self.value(body.body, env)
        except Exhausted:
            raise
        except DynamicError as error:
            for codes, handler in zip(catches[::2], catches[1::2], strict=True):
                assert isinstance(codes, ast.String)
                assert isinstance(handler, ast.InlineFunction)
                if any(_catches(each, error.code or "") for each in codes.value.split(" ")):
                    known: list[Values] = [[f"err:{error.code}"], [error.message]]
                    inner = env
                    for place, name in enumerate(handler.parameters):  # the other variables of a catch are empty
                        inner = inner.bind(name, known[place] if place < len(known) else [])
                    return self.value(handler.body, inner)
            raise

    # --- functions that take functions --------------------------------------------------------------------

    def applied(self, function: Values, arguments: Sequence[Values]) -> Values:
        """The value of a call of a function that is a value."""
        match function:
            case [FunctionItem() as item]:
                pass
            case [JsonObject() | JsonArray()] if len(arguments) == 1:
                return called(function, arguments[0])
            case _:
                raise DynamicError("what is called is no function", code="XPTY0004")
        if item.arity != len(arguments):
            raise DynamicError(f"the function takes {item.arity} arguments, not {len(arguments)}", code="XPTY0004")
        self.spend(1)
        if self._calls_open >= MAX_NESTING:
            raise Exhausted
        self._calls_open += 1
        try:
            found: Values = item.call(arguments)
            return found
        finally:
            self._calls_open -= 1

    def _higher(self, name: str, arguments: list[Values]) -> Values:
        match name, arguments:
            case "op:call", (function, *given):
                return self.applied(function, given)
            case "for-each", (values, function):
                return list(chain.from_iterable(self.applied(function, [[each]]) for each in values))
            case "filter", (values, function):
                return [each for each in values if self._holds_for(function, [each])]
            case "fold-left", (values, found, function):
                for each in values:
                    found = self.applied(function, [found, [each]])
                return found
            case "fold-right", (values, found, function):
                for each in reversed(values):
                    found = self.applied(function, [[each], found])
                return found
            case "for-each-pair", (left, right, function):
                pairs = zip(left, right, strict=False)
                return list(chain.from_iterable(self.applied(function, [[a], [b]]) for a, b in pairs))
            case _:
                return self._sorted(arguments)

    def _holds_for(self, function: Values, given: Values) -> bool:
        (holds,) = converted(self.applied(function, [given]), "xs:boolean", {})
        return holds is True

    def _sorted(self, arguments: list[Values]) -> Values:
        """`sort()`: by the order of `order by` (LAWS 2.3), where keys have several values, one after the other."""
        values, *more = arguments
        function = more[1] if len(more) > 1 else None
        keyed = [(self.applied(function, [[each]]) if function else [each], each) for each in values]
        ranked = [([order_rank(key) for key in atomize(keys)], each) for keys, each in keyed]
        return [each for _, each in sorted(ranked, key=lambda pair: pair[0])]


def _catches(test: str, code: str) -> bool:
    """Whether a name test, as `err:FOAR0001` or `*`, takes a code."""
    prefix, _, local = test.rpartition(":")
    return local in ("*", code) and prefix in ("", "err", "*") and not (prefix == "" and local != "*")


def _top(node: Node, outside: Sequence[Node]) -> Node:
    while node.parent is not None and not any(node.parent is each for each in outside):
        node = node.parent
    return node
