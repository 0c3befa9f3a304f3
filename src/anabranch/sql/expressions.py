"""Values of SQL as expressions of XQuery: a value, or nothing for NULL (LAWS 8).

Where XQuery's own operator does the same for nothing and for `null`, it stands there alone; else a loop over what is
there, `for $x in non-null($s.a) return upper-case($x)`, gives nothing for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from sqlglot import exp

from anabranch.errors import Span
from anabranch.language import ast
from anabranch.language.objects import LOOKUP, MEMBER
from anabranch.language.operators import VALUE_COMPARISONS
from anabranch.language.parsing.cursor import MAX_DIGITS
from anabranch.language.rewrite import parts
from anabranch.sql.conditions import CONDITIONS, OPERATORS, SqlConditions
from anabranch.sql.functions import CASTS, DATE_PARTS, EXTRACTS, FUNCTIONS, TRIMS, call, date_of, moment_of
from anabranch.sql.naming import kind_of, refused_hint, refused_name
from anabranch.sql.scope import GroupedKey, SqlScope, names_of
from anabranch.sql.times import TYPES, TimeColumns, bare, duration_literal, interval_of, time_text
from anabranch.values.operators import ArithmeticOperator

_ARITHMETIC: dict[type[exp.Expr], ArithmeticOperator] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "div",
    exp.Mod: "mod",
}
_SUMS, _PRODUCTS = (exp.Add, exp.Sub), (exp.Mul, exp.Div, exp.Mod)
_WORDS = dict(zip(("=", "!=", "<", "<=", ">", ">="), VALUE_COMPARISONS, strict=True))
_NUMBER = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_EPOCH = "1970-01-01T00:00:00Z"


class SqlExpressions(SqlConditions):
    """Values; `SqlQueries` adds the aggregates and the query around them."""

    times: TimeColumns

    def aggregate(self, node: exp.Expr, scope: SqlScope) -> ast.Expression | None:
        """The value of an aggregate function; None for what is none."""
        raise AssertionError("SqlQueries gives this")

    def present(self, value: ast.Expression) -> ast.Expression:
        """A value without `null`, which is NULL as well."""
        return call("non-null", (value,), value.span) if _may_be_null(value) else value

    def operand(self, node: exp.Expr, scope: SqlScope) -> ast.Expression:
        """A value that is compared or computed with: a column that is a time becomes one."""
        value = self.value(node, scope)
        kind = self.times.type_of(bare(node))
        if kind == "xs:date":
            return moment_of(value, value.span)
        return value if kind is None else call(kind, (value,), value.span)

    def value(self, node: exp.Expr, scope: SqlScope) -> ast.Expression:
        """The value of an expression: nothing where it is NULL."""
        span = self.made(node)
        if isinstance(node, exp.Paren):
            return self.value(node.this, scope)
        if (found := self._known(node, scope)) is not None:
            return found
        match node:
            case exp.Column() | exp.Dot():
                return self._column(node, scope)
            case exp.Literal():
                return self._literal(node, span)
            case exp.Boolean():
                return call("true" if node.this else "false", (), span)
            case exp.Null():
                return ast.Sequence((), span=span)
            case exp.Neg():
                return ast.Negation(self.operand(node.this, scope), span=span)
            case exp.DPipe():
                return self._joined(node, scope, span)
            case exp.ConcatWs():
                self.check_args(node, ("expressions", "safe", "coalesce"))
                among = tuple(self.present(self.value(each, scope)) for each in node.expressions[1:])
                between = self.value(node.expressions[0], scope)
                joined = ast.Sequence(among, span=span)
                return self._strict([between], lambda given: call("string-join", (joined, *given), span), span)
            case exp.Concat():
                self.check_args(node, ("expressions", "safe", "coalesce"))
                parts = tuple(self.value(each, scope) for each in node.expressions)
                return call("concat", parts if len(parts) > 1 else (*parts, ast.String("", span=span)), span)
            case exp.Cast():
                return self._cast(node, scope, span)
            case exp.Case() | exp.If():
                return self._case(node, scope, span)
            case exp.Coalesce():
                self.check_args(node, ("this", "expressions"))
                return self._coalesced((node.this, *node.expressions), scope, span)
            case exp.Nullif():
                sides = self.operand(node.this, scope), self.operand(node.expression, scope)
                same = ast.Comparison("=", *sides, span=span)
                return ast.If(same, ast.Sequence((), span=span), self.value(node.this, scope), span=span)
            case exp.Greatest() | exp.Least():
                self.check_args(node, ("this", "expressions", "ignore_nulls"))
                name = "max" if isinstance(node, exp.Greatest) else "min"
                among = tuple(self.operand(each, scope) for each in (node.this, *node.expressions))
                return call(name, (ast.Sequence(among, span=span) if len(among) > 1 else among[0],), span)
            case exp.Interval():
                return self._interval(node, span)
            case exp.Extract():
                return self._extracted(node, scope, span)
            case exp.Bracket():
                return self._member(node, scope, span)
            case exp.Trim():
                return self._trimmed(node, scope, span)
            case _ if type(node) in _ARITHMETIC:
                return self._arithmetic(node, scope, span)
            case _ if type(node) in OPERATORS:
                self.check_args(node, ("this", "expression"))
                word = _WORDS[OPERATORS[type(node)]]
                left, right = self.operand(node.this, scope), self.operand(node.args["expression"], scope)
                return call(f"op:{word}", (left, right), span)
            case exp.Is() | exp.NullSafeEQ() | exp.NullSafeNEQ():  # never unknown
                found = self.holds(node, scope)
                return call("boolean", (found,), span) if _may_be_null(found) else found
            case _ if isinstance(node, CONDITIONS):
                otherwise = ast.If(
                    self.fails(node, scope), call("false", (), span), ast.Sequence((), span=span), span=span
                )
                return ast.If(self.holds(node, scope), call("true", (), span), otherwise, span=span)
            case _ if type(node) in FUNCTIONS:
                return self.called(node, scope, strict=True)
            case _:
                if (aggregate := self.aggregate(node, scope)) is not None:
                    return aggregate
                raise self.refuse(refused_name(node, self.text, self.span(node).start), node, refused_hint(node))

    # --- names and literals -------------------------------------------------------------------------------

    def _known(self, node: exp.Expr, scope: SqlScope) -> ast.Expression | None:
        """The key of a group, or the bound of a window, that an expression is."""
        if scope.window is not None and (bound := self.window_column(node, scope)) is not None:
            return bound
        for key in scope.keys or ():
            if type(key.node) is type(node) and self._is_key(node, key, scope):
                return ast.Variable(key.variable, span=self.made(node))
        return None

    def _is_key(self, node: exp.Expr, key: GroupedKey, scope: SqlScope) -> bool:
        if names_of(node) is not None:
            return self.resolved(node, scope) == self.resolved(key.node, scope)
        return node == key.node and _names_in(node) == _names_in(key.node)  # sqlglot does not tell cases apart

    def _column(self, node: exp.Expr, scope: SqlScope) -> ast.Expression:
        names = names_of(node)
        if names is None:
            raise self.refuse("'*' beside other columns" if isinstance(node.this, exp.Star) else kind_of(node), node)
        if len(names) == 1 and (output := scope.outputs.get(names[0])) is not None:
            return self.value(output, scope)
        return self.column(node, scope, names)

    def _literal(self, node: exp.Literal, span: Span) -> ast.Expression:
        if node.is_string:
            return ast.String(str(node.this), span=span)
        text = str(node.this)
        if len(text) > MAX_DIGITS or not _NUMBER.fullmatch(text):
            raise self.error(f"'{text[:40]}' is no number", node)
        return ast.Number(text, span=span)

    def _interval(self, node: exp.Interval, span: Span) -> ast.Expression:
        found = interval_of(node)
        if found is None:
            raise self.error("this is no interval", node, "as in INTERVAL '5 MINUTES'; months go with years only")
        return call(duration_literal(found), (ast.String(str(found), span=self.derived(node)),), span)

    # --- operators ----------------------------------------------------------------------------------------

    def _arithmetic(self, node: exp.Expr, scope: SqlScope, span: Span) -> ast.Arithmetic:
        kinds = _SUMS if isinstance(node, _SUMS) else _PRODUCTS
        rest: list[tuple[ArithmeticOperator, ast.Expression]] = []
        at: exp.Expr = node
        while isinstance(at, kinds):
            self.check_args(at, ("this", "expression", "typed", "safe"))
            rest.append((_ARITHMETIC[type(at)], self.operand(at.args["expression"], scope)))
            at = at.this
        return ast.Arithmetic(self.operand(at, scope), tuple(reversed(rest)), span=span)

    def _joined(self, node: exp.Expr, scope: SqlScope, span: Span) -> ast.Expression:
        """`a || b`, which is NULL where one of them is."""
        operands: list[exp.Expr] = []
        at = node
        while isinstance(at, exp.DPipe):
            operands.append(at.args["expression"])
            at = at.this
        values = [self.value(each, scope) for each in (at, *reversed(operands))]
        return self._strict(values, lambda found: call("concat", found, span), span)

    def _strict(
        self, values: Sequence[ast.Expression], build: Callable[[list[ast.Expression]], ast.Expression], span: Span
    ) -> ast.Expression:
        """What is built of values, where all of them are there; nothing where one is not."""
        clauses: list[ast.For] = []
        given: list[ast.Expression] = []
        for each in values:
            if isinstance(each, ast.String | ast.Number):
                given.append(each)
                continue
            name = self.variable("x")
            clauses.append(ast.For(name, self.present(each), span=each.span))
            given.append(ast.Variable(name, span=each.span))
        result = build(given)
        return ast.Flwor(tuple(clauses), None, (), result, span=span) if clauses else result

    def called(self, node: exp.Expr, scope: SqlScope, *, strict: bool) -> ast.Expression:
        """A scalar function; where it need not be `strict`, NULL may give what XQuery gives for nothing."""
        function, span = FUNCTIONS[type(node)], self.made(node)
        self.check_args(node, (*function.arguments, "binary", "encoding"))
        found = [node.args.get(each) for each in function.arguments]
        while found and found[-1] is None:
            found.pop()
        if len(found) < function.needed or None in found:
            raise self.error(f"{kind_of(node)} takes more arguments", node)
        values = [self.operand(each, scope) for each in found if each is not None]
        plain = function.of_nothing is None and not (function.repeats and _is_large(values[0]))
        if not strict or (plain and all(isinstance(each, ast.Number) for each in values[1:])):
            return function.build(values, span)
        return self._strict(values, lambda given: function.build(given, span), span)

    def _trimmed(self, node: exp.Trim, scope: SqlScope, span: Span) -> ast.Expression:
        self.check_args(node, ("this", "position"))
        build = TRIMS[str(node.args.get("position") or "").upper()]
        return self._strict([self.value(node.this, scope)], lambda given: build(given, span), span)

    def _cast(self, node: exp.Cast, scope: SqlScope, span: Span) -> ast.Expression:
        self.check_args(node, ("this", "to"))
        kind = node.to.this
        if kind not in CASTS or node.to.expressions:
            raise self.refuse("type", node)
        name, given = CASTS[kind], node.this
        if kind in TYPES and isinstance(given, exp.Literal):
            written = time_text(str(given.this), name)
            if written is None:
                raise self.error(f"'{str(given.this)[:40]}' is no {name.removeprefix('xs:')}", node)
            return call(name, (ast.String(written, span=self.derived(node)),), span)
        value = self.value(given, scope)
        if kind == exp.DType.DATE:
            return self._strict([value], lambda found: date_of(found, span), span)
        return call(name, (value,), span)

    def _case(self, node: exp.Case | exp.If, scope: SqlScope, span: Span) -> ast.Expression:
        if isinstance(node, exp.If):
            self.check_args(node, ("this", "true", "false"))
            whens, subject, default = [node], None, node.args.get("false")
        else:
            self.check_args(node, ("this", "ifs", "default"))
            whens, subject, default = node.args["ifs"], node.args.get("this"), node.args.get("default")
        found: ast.Expression = ast.Sequence((), span=span) if default is None else self.value(default, scope)
        for each in reversed(whens):
            condition: exp.Expr = each.this
            if subject is not None:
                test: ast.Expression = ast.Comparison(
                    "=", self.operand(subject, scope), self.operand(condition, scope), span=self.made(condition)
                )
            else:
                test = self.holds(condition, scope)
            found = ast.If(test, self.value(each.args["true"], scope), found, span=span)
        return found

    def _coalesced(self, nodes: Sequence[exp.Expr], scope: SqlScope, span: Span) -> ast.Expression:
        values = [self.value(each, scope) for each in nodes]
        if len(values) == 1:
            return values[0]
        first = ast.Positional(ast.Number("1", span=span), span=span)
        among = tuple(self.present(each) for each in values)
        return ast.Filter(ast.Sequence(among, span=span), (first,), span=span)

    def _extracted(self, node: exp.Extract, scope: SqlScope, span: Span) -> ast.Expression:
        self.check_args(node, ("this", "expression"))
        part = str(node.this.name).upper()
        if part in DATE_PARTS and names_of(node.expression) is not None:  # whose text may be a date
            values = [self.value(node.expression, scope)]
            return self._strict(
                values, lambda found: call(f"{EXTRACTS[part]}-from-date", (date_of(found, span),), span), span
            )
        moment = call("xs:dateTime", (self.value(node.expression, scope),), span)
        if part == "EPOCH":
            since = call("xs:dateTime", (ast.String(_EPOCH, span=span),), span)
            second = call("xs:dayTimeDuration", (ast.String("PT1S", span=span),), span)
            passed = ast.Arithmetic(moment, (("-", since),), span=span)
            return ast.Arithmetic(passed, (("div", second),), span=span)
        if part not in EXTRACTS:
            raise self.refuse(f"EXTRACT of {part}", node, f"known are {', '.join(EXTRACTS)} and EPOCH")
        return call(f"{EXTRACTS[part]}-from-dateTime", (moment,), span)

    def _member(self, node: exp.Bracket, scope: SqlScope, span: Span) -> ast.Expression:
        """`tags[1]`; sqlglot counts from 0."""
        self.check_args(node, ("this", "expressions", "offset", "safe"))
        match node.expressions:
            case [exp.Literal() as place] if not place.is_string and str(place.this).isdecimal():
                number = ast.Number(str(int(str(place.this)) + 1), span=span)
                return call(MEMBER, (self.value(node.this, scope), number), span)
        raise self.refuse("array", node)


def _names_in(node: exp.Expr) -> list[str]:
    return [each.name for each in node.find_all(exp.Identifier)]


def _is_large(value: ast.Expression) -> bool:
    """Whether a value is more than a column, or an aggregate of one."""
    return sum(1 for _ in parts(value)) > 12


def _may_be_null(value: ast.Expression) -> bool:
    """Whether a value may be JSON's `null`: what is computed never is."""
    match value:
        case ast.Call(name):
            return name in (LOOKUP, MEMBER)
        case ast.If(_, then, otherwise):
            return _may_be_null(then) or _may_be_null(otherwise)
        case ast.Filter(ast.Sequence(items)):
            return any(map(_may_be_null, items))
        case ast.Flwor(result=result):
            return _may_be_null(result)
        case _:
            return False
