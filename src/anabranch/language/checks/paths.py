"""Static checks of paths: where they lead, what stands behind their steps, and what a schema says of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from anabranch.errors import QueryError, Span
from anabranch.language import ast
from anabranch.language.checks.refusals import refuse
from anabranch.language.checks.streams import UNKNOWN, Known, Position, Scope
from anabranch.language.checks.unbounded import is_loop, qualified
from anabranch.language.positions import asks_position
from anabranch.language.printer import print_path
from anabranch.language.signatures import SIGNATURES
from anabranch.stream.path import Path
from anabranch.stream.schema import Schema

_DEEPEST = 200
"""How far down positions are followed; no input is deeper, and longer paths must not cost more than their length."""
_ITEM = 2
"""How many names lead from a stream's document to an item."""
_VALUES_OF_JSON = {"true": "true()", "false": "false()", "null": "()"}
"""What who writes JSON means by a name, as XQuery writes it."""
_PATHS = (ast.Path, ast.Filter, ast.Variable, ast.Source, ast.ContextItem, ast.Root)


@dataclass(frozen=True, slots=True)
class Warning:  # the word users know; Python's own is not used here
    """Something allowed that may be a mistake, with its place in the text."""

    message: str
    span: Span


@dataclass(frozen=True, slots=True)
class ItemNames:
    """The names of the root and the items of a stream that has no schema."""

    root: str
    items: tuple[str, ...]
    """The names of its items, or of its first ones; empty where they are not known."""
    agreed: bool
    """Whether the names are fixed, because the format has none itself; else they were learned from the first items."""

    def lacks(self, position: Position) -> bool:
        """Whether a path to a root or to items names what the stream does not have."""
        if any("*" in name or ":" in name or name.endswith("()") for name in position):
            return False
        root, *item = position
        return root != self.root or (bool(item and self.items) and item[0] not in self.items)

    def path(self, stream: str) -> str:
        """The path that leads to the items."""
        return f'stream("{stream}")/{self.root}/{self.items[0] if len(self.items) == 1 else "*"}'


def _meant(name: str, step: ast.Step) -> str | None:
    """What a path may have been meant for: a value of JSON, or a function, whose `#` here asks for versions."""
    if any(isinstance(each, ast.Qualifier) for each in step.tail) and name in SIGNATURES:
        return f"function($x) {{ {name}($x) }}"
    return _VALUES_OF_JSON.get(name)


class PathChecker(ABC):
    """Checks the paths of one query; a subclass visits the other expressions."""

    def __init__(self, text: str, schemas: Mapping[str, Schema], names: Mapping[str, ItemNames]) -> None:
        self.text = text
        self.schemas = schemas
        self.names = names
        self.warned: set[str] = set()
        """The streams for which a warning has said that they lack a name."""
        self.warnings: list[Warning] = []

    @abstractmethod
    def visit(self, expression: ast.Expression, scope: Scope) -> Known:
        """Check an expression; gives what is known of its value."""

    def error(self, message: str, span: Span, code: str | None = None, hint: str | None = None) -> QueryError:
        return QueryError(message, text=self.text, span=span, code=code, hint=hint)

    def filter(self, filtered: ast.Filter, scope: Scope) -> Known:
        base, asks = filtered.base, qualified(filtered)
        known = self.visit(base, scope.remembered() if asks else scope)
        refusal: str | None = None
        if asks or (isinstance(base, ast.Path | ast.Filter) and qualified(base)):
            refusal = "position beside a temporal qualifier"
        elif known.flowing and not known.looped and not is_loop(base):
            refusal = "positional predicate"
        return self.tail(known, filtered.tail, scope, is_path=isinstance(base, _PATHS), refusal=refusal)

    def lacking(self, span: Span, what: str) -> QueryError:
        return self.error(
            f"the schema has no '{what}'", span, "XPST0005", "a condition may only use paths that the schema has"
        )

    def path(self, path: ast.Path, scope: Scope) -> Known:
        if path.start is None:
            known = self.visit(ast.ContextItem(span=path.span), scope)
        else:
            known = self.visit(path.start, scope.remembered() if qualified(path) else scope)
        for step in path.steps:
            known = self.step(known, step, scope)
        return known

    def step(self, known: Known, step: ast.Step, scope: Scope) -> Known:
        if isinstance(step.test, ast.NameTest) and step.test.prefix not in (None, "*"):
            self.prefix(step.test.prefix or "", step.span, scope)
        inside = known.inside or known.looped or (known.position is not None and len(known.position) >= _ITEM)
        reached = replace(known, position=self.position(known, step), numeric=False, has_bounds=False, inside=inside)
        reached = self.in_schema(known, reached, step, scope)
        refusal: str | None = None
        if any(isinstance(each, ast.Qualifier) for each in step.tail):
            refusal = "position beside a temporal qualifier"
        elif known.flowing and not inside:
            refusal = "positional predicate"
        return self.tail(reached, step.tail, scope, is_path=True, refusal=refusal)

    def prefix(self, prefix: str, span: Span, scope: Scope) -> None:
        if prefix and prefix not in scope.prefixes:
            hint = f'declare it: declare namespace {prefix} = "...";'
            raise self.error(f"prefix '{prefix}' is not declared", span, "XPST0081", hint)

    def position(self, known: Known, step: ast.Step) -> Position | None:
        """Where a step leads, as far as its text shows."""
        at = known.position
        if at is None or len(at) > _DEEPEST or step.deep or step.axis in ("descendant", "descendant-or-self"):
            return None
        if step.axis in ast.CLIMBING:
            if known.source is not None and known.source.kind == "stream" and len(at) <= 2:
                raise refuse("step out of the item", self.text, step.span)
            return at[:-1] if step.axis == "parent" else None
        if step.axis == "self":
            return at
        if isinstance(step.test, ast.KindTest):
            return (*at, f"{step.test.kind}()")
        name = f"{step.test.prefix}:{step.test.local}" if step.test.prefix else step.test.local
        return (*at, f"@{name}" if step.axis == "attribute" else name)

    def in_schema(self, before: Known, reached: Known, step: ast.Step, scope: Scope) -> Known:
        """Look the step up; a path that the schema lacks is an error in a condition, and a warning in a result."""
        schema = self.schemas.get(before.source.name) if before.source else None
        if schema is None and before.source is not None and not before.missing:
            return self.in_names(before.source, reached, step)
        if schema is None or before.missing or _has(schema, reached.position):
            return reached
        assert reached.position is not None
        shown = "/".join(reached.position[2:]) or reached.position[-1]
        if scope.condition or len(reached.position) <= 2:
            raise self.lacking(step.span, shown)
        message = f"the schema has no '{shown}'; nothing is returned there unless it is added"
        self.warnings.append(Warning(message, step.span))
        return replace(reached, missing=step.span)

    def in_names(self, source: ast.Source, reached: Known, step: ast.Step) -> Known:
        """Report a path whose root or item name the stream does not have: it would be empty for ever (LAWS 1.5)."""
        names = self.names.get(source.name) if source.kind == "stream" else None
        position = reached.position
        if names is None or not position or len(position) > _ITEM or not names.lacks(position):
            return reached
        message = f"the stream '{source.name}' has no '/{'/'.join(position)}'"
        right = names.path(source.name)
        if names.agreed:
            hint = f"its items are {right}, unless '--root' and '--item' or the site's 'root' and 'item' name them"
            if (meant := _meant(position[0], step)) is not None:
                hint = f"a name alone is a path: write {meant}"
            raise self.error(message, step.span, "XPST0005", hint)
        if source.name not in self.warned:  # a step further down lacks the same name
            self.warned.add(source.name)
            self.warnings.append(Warning(f"{message} so far: its items are {right}", step.span))
        return reached

    def tail(
        self, known: Known, tail: Sequence[ast.Tail], scope: Scope, *, is_path: bool, refusal: str | None
    ) -> Known:
        """Check what stands behind a step or an expression; a `refusal` says why positions have no meaning there."""
        for each in tail:
            match each:
                case ast.Predicate(condition) | ast.Positional(condition):
                    found = self.visit(condition, scope.within(replace(known, flowing=False)))
                    if found.numeric or asks_position(condition):
                        if refusal:
                            raise refuse(refusal, self.text, each.span)
                        known = replace(known, flowing=known.flowing and is_path)  # a few results of a loop
                case ast.Qualifier(kind, _, amount):
                    if kind == "version" and not amount.text.isdigit():
                        raise self.error(f"version '{amount.text}' is no whole number", amount.span)
                    if isinstance(amount, ast.Number) and "e" in amount.text.lower():
                        hint = "write it without an exponent"
                        raise self.error(f"'{amount.text}' is no number of seconds", amount.span, hint=hint)
                    known = replace(known, flowing=False)  # a bounded piece of the past
        return known

    def window(self, window: ast.Window, known: Known, scope: Scope) -> None:
        """Check the reference of a time window and the key of a session: they are conditions on the item."""
        if not isinstance(window, ast.CountWindow):
            self.window_path(window.reference, "reference", known, scope)
        if isinstance(window, ast.SessionWindow) and window.by is not None:
            self.window_path(window.by, "key", known, scope)

    def window_path(self, path: ast.Path, what: str, known: Known, scope: Scope) -> None:
        for step in path.steps:
            plain = step.axis in ("child", "attribute", "self") and not step.deep and not step.tail
            if not plain or not isinstance(step.test, ast.NameTest | ast.KindTest):
                raise self.error(
                    f"'{print_path(path)}' is no plain path", path.span, hint=f"a window's {what} has names only"
                )
        context = replace(known, flowing=False)
        if isinstance(path.start, ast.Root):
            below = replace(UNKNOWN, position=())
            for step in path.steps:
                below = replace(below, position=self.position(below, step))
            names = below.position or ()
            if known.position is not None and names[: len(known.position)] != known.position:
                message = f"'{print_path(path)}' is not below '/{'/'.join(known.position)}'"
                hint = f"an absolute {what} goes from the stream's root to below the item"
                raise self.error(message, path.span, hint=hint)
            context = replace(UNKNOWN, source=known.source, position=())
        self.path(replace(path, start=ast.ContextItem()), replace(scope, context=context, condition=True))


def _has(schema: Schema, position: Position | None) -> bool:
    """Whether the schema has a position; one that cannot be looked up counts as present."""
    if position is None or any("*" in name or ":" in name or name.endswith("()") for name in position):
        return True
    if len(position) <= 1:
        return position in ((), (schema.root,))
    root, item, *below = position
    if root != schema.root or item not in schema.items:
        return False
    return not below or schema.has(Path(tuple(below)), item)
