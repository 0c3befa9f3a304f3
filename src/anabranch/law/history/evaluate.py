"""What a query answers over streams of updates at a moment (LAWS 5): the reference evaluator over nodes with lives.

An unqualified path sees the newest versions, which are ordinary trees (`view.py`), so it is evaluated as ever.
New are four things:

* *Qualifiers* on paths give versions chain by chain (`versions.py`); `(e)?t` on what is no path is evaluated over the
  document of `t` seconds ago, with that as now; nodes in its variables are those nodes as they were then, and a node
  that had not come is left out.
  Other qualifiers there choose among the values that it had at the moments so far (`values.py`).
* The unit of an error is the *entry*, a child of the stream's root in any of its versions (LAWS 2.4): a path is taken
  entry by entry, and each round of `for`s over streams is named by the entries that its variables come from.
* Every `for` over updates is evaluated anew at each moment, so no result stands.
* A window holds what its path selects in the document as it stands: nothing is late, and nothing waits (LAWS 5.10).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import accumulate, groupby
from typing import TypeAlias, TypedDict, TypeVar, Unpack

from anabranch.errors import DynamicError, Unsupported
from anabranch.language import ast
from anabranch.language.checks.outputs import AnswerForm, outputs_of
from anabranch.language.checks.unbounded import flows, readings
from anabranch.language.printer import print_query
from anabranch.language.rewrite import parts
from anabranch.language.versions import is_path
from anabranch.law.calls import PythonFunction
from anabranch.law.env import Env
from anabranch.law.evaluate import ResultRow
from anabranch.law.history.chains import DocumentContents, DocumentMoment
from anabranch.law.history.value_versions import ValueVersions
from anabranch.law.history.versions import Asked, cut, within
from anabranch.law.history.view import DocumentView, Lives
from anabranch.law.history.windows import JoinedSide, PlacedNode, joined_rounds, window_round, windows_of
from anabranch.law.inputs import Arrival, Input
from anabranch.law.paths import base_of
from anabranch.law.pipelines import StreamUnit
from anabranch.law.rounds.rounds import Round
from anabranch.law.rounds.windows import WindowContent
from anabranch.law.slices import Slice, WholeNeeded, path_in_item, slice_of
from anabranch.law.spelling import Spelling
from anabranch.stream import tree
from anabranch.stream.culprits import letter_for, letter_of
from anabranch.stream.elements import DeadLetter, Place
from anabranch.stream.path import PLAIN, Path, TimeScale
from anabranch.stream.reading.json_items import item_text
from anabranch.stream.tree import Attribute, Child, Comment, Element, Instruction, Node, Text
from anabranch.values.sequences import NODES, Value, Values


class Around(TypedDict, total=False):
    """What an evaluation is given beside the query and its streams."""

    functions: Mapping[str, PythonFunction] | None
    """The functions that the user registered."""
    inputs: Mapping[str, Input] | None
    """The documents behind `doc()`."""
    name: str | None
    """The name of the query in dead letters."""
    text: str | None
    """The text that errors point into."""
    form: AnswerForm
    """Whether its answer is JSON or XML (LAWS 7.3)."""
    retain: Fraction | None
    """How many seconds back values for nodes are counted, where nothing else says how far (LAWS 5.4)."""
    retained: Mapping[str, Fraction | None]
    """By stream of items, how many seconds back arrivals are counted where nothing else says how far (LAWS 5.5)."""
    scales: Mapping[str, Callable[[Path | None], TimeScale]]
    """By stream, the time scale of the values at a path of its items (LAWS 3.1)."""


def form_around(query: ast.Query, around: Around) -> AnswerForm:
    """What the answer of a query is; where nothing is said of its streams, they are XML."""
    return around.get("form") or outputs_of(query).form({})


T = TypeVar("T")
Clauses: TypeAlias = Sequence[ast.For | ast.Let]
Unit: TypeAlias = tuple[Child | None, ...]
"""The entries that a round is named by, one for each `for` over a stream so far."""


@dataclass(slots=True)
class RoundResults:
    """The results of rounds, each with its unit, and the units with a failed round, whose results are all dropped."""

    found: list[tuple[Unit, ResultRow]] = field(default_factory=list)
    failed: dict[Unit, DynamicError] = field(default_factory=dict)


class HistoryEvaluator(ValueVersions):
    """Evaluates the expressions of one query over documents of updates, as of a moment."""

    def __init__(
        self,
        query: ast.Query,
        documents: Mapping[str, DocumentContents],
        now: Fraction,
        *,
        until: Fraction | None = None,
        moment: int | None = None,
        lives: Lives | None = None,
        **around: Unpack[Around],
    ) -> None:
        self._lives = lives or Lives()
        self._documents = documents
        self._around = around
        self._until, self._moment = until, moment
        self._views = {stream: DocumentView(each, self._lives, until, moment) for stream, each in documents.items()}
        for stream, view in self._views.items():
            self._lives.tops |= {view.document: stream, view.root: stream}
        shown = {stream: Input(view.document) for stream, view in self._views.items()}
        inputs = {**(around.get("inputs") or {}), **shown}
        super().__init__(query, inputs, around.get("functions") or {}, around.get("name"))
        self._now = now
        self._pasts: dict[tuple[Fraction, int | None], HistoryEvaluator] = {}

    # --- paths, entry by entry ----------------------------------------------------------------------------

    def path(self, expression: ast.Expression, env: Env) -> Values:
        if self._stream(expression) is None:
            return self.walk(expression, env)
        return [value for _, value in self._by_entry(expression, env)]

    def _by_entry(self, expression: ast.Expression, env: Env) -> list[tuple[Child | None, Value]]:
        """The values of an expression, each with the entry that it is part of."""
        view = self._stream(expression)
        if view is None:
            return [(self._entry(value), value) for value in self.value(expression, env)]
        if not view.places:  # there is nothing but the root
            return [(None, value) for value in self.walk(expression, env)]
        mark = len(self.dead)
        found: list[tuple[Child | None, Value]] = []
        try:
            for entry in view.places:
                part = self._slice(view, entry)
                reached = self._tried(entry, partial(self.walk, expression, env, part))
                part.look_at_result(reached)
                found += [(entry, value) for value in reached]
        except WholeNeeded:
            del self.dead[mark:]
            return [(self._entry(value), value) for value in self.walk(expression, env)]
        return found

    def _slice(self, view: DocumentView, entry: Child) -> Slice:
        part = slice_of(view.root, entry)
        part.document.order, part.root.order = view.document.order, view.root.order  # in front of the entry
        self._lives.everything[part.root] = [entry]
        if not self._lives.standing[entry].shown:
            part.root.children.clear()
        return part

    def _stream(self, expression: ast.Expression) -> DocumentView | None:
        """The stream that a path begins with."""
        source = base_of(expression)
        return self._views.get(source.name) if isinstance(source, ast.Source) and source.kind == "stream" else None

    def _entry(self, value: Value) -> Child | None:
        """The entry that a node is part of."""
        at: Node | None = value if isinstance(value, NODES) else None
        while at is not None and not isinstance(at, tree.Document):
            if not isinstance(at, Attribute) and any(at in view.places for view in self._views.values()):
                return at
            at = at.parent
        return None

    def _tried(self, entry: Child | None, body: Callable[[], list[T]]) -> list[T]:
        """Run what concerns one entry; where it fails, it is set aside and gives nothing."""
        try:
            return self.apart(body)
        except DynamicError as error:
            self._bury(entry, error)
            return []

    def _bury(self, entry: Child | None, error: DynamicError) -> None:
        if self._in_unit:
            raise error  # an error in a part of a round fails the round
        items = [] if entry is None else [self._shown(entry)]
        self.dead.append(letter_of(error, items, 0, self.name))

    def failed(self, error: DynamicError) -> DeadLetter:
        """The dead letter of a query that fails as a whole, with the entries whose values failed."""
        entries = [entry for view in self._views.values() for entry in view.places]
        return letter_for(error, zip(entries, entries, strict=True), self._shown, self.name)

    def _shown(self, entry: Child) -> tuple[Place, str]:
        places = [view.places[entry] for view in self._views.values() if entry in view.places]
        return places[0] if places else Place("", "", 0), item_text(entry)

    # --- qualifiers ---------------------------------------------------------------------------------------

    def _step(self, values: Values, taken: ast.Step, env: Env, part: Slice | None) -> Values:
        before, qualifier, after = cut(taken.tail)
        if qualifier is None:
            return super()._step(values, taken, env, part)
        starts: list[Node] = []
        for value in values:
            if not isinstance(value, NODES):
                raise DynamicError("a step needs a node to start from", code="XPTY0019")
            if part is not None:
                part.look_at_step(value, taken)
            starts.append(value)
        asked = Asked(qualifier, self._now, self._lives)
        reached = asked.step(starts, taken, env.namespaces, partial(self._fulfils, before, env, part))
        return self._filter(within(part, reached), after, env, part)

    def _fulfils(self, predicates: Sequence[ast.Predicate], env: Env, part: Slice | None, value: Value) -> bool:
        return bool(self._filter([value], predicates, env, part))

    def walk(self, expression: ast.Expression, env: Env, part: Slice | None = None) -> Values:
        if isinstance(expression, ast.Filter):
            before, qualifier, after = cut(expression.tail)
            if qualifier is not None:
                values = self._qualified(expression.base, before, qualifier, env, part)
                return self._filter(values, after, env, part)
        return super().walk(expression, env, part)

    def _qualified(
        self,
        base: ast.Expression,
        before: tuple[ast.Predicate, ...],
        qualifier: ast.Qualifier,
        env: Env,
        part: Slice | None,
    ) -> Values:
        """A qualifier behind something that is not a step."""
        match base:
            case ast.Path(_, (*steps, last)) if cut(last.tail)[1] is None:
                behind = replace(last, tail=(*last.tail, *before, qualifier))
                return self.walk(replace(base, steps=(*steps, behind)), env, part)
            case _ if is_path(base):
                versions = Asked(qualifier, self._now, self._lives).versions(self.walk(base, env, part))
                return self._filter(within(part, versions), before, env, part)
            case _:
                expression = ast.Filter(base, before) if before else base
                if qualifier.kind == "time" and not qualifier.window:
                    return self._value_as_of(expression, qualifier.amount.exact, env)
                return self._value_versions(expression, qualifier, env)

    # --- the document of then -----------------------------------------------------------------------------

    def _value_as_of(self, expression: ast.Expression, ago: Fraction, env: Env) -> Values:
        """The value of an expression over the documents of some time ago."""
        past = self._past(self._now - ago)
        context = past._counterparts([] if env.context is None else [env.context])
        if env.context is not None and not context:
            return []  # it had not come
        variables = {name: past._counterparts(values) for name, values in env.variables.items()}
        past._in_unit, past.left = self._in_unit, self.left
        try:
            return past.value(expression, replace(env, variables=variables, context=context[0] if context else None))
        finally:
            self.left = past.left

    def _past(self, then: Fraction, moment: int | None = None) -> HistoryEvaluator:
        """An evaluator of an earlier time, or moment; of a time, among the moments that this one sees."""
        key = then, self._moment if moment is None else moment
        if key not in self._pasts:
            found = self._pasts[key] = self._as_of(*key)
            found.dead = self.dead
            found._is_past = self._is_past or (moment is None and then < self._now)
        return self._pasts[key]

    def _as_of(self, then: Fraction, moment: int | None) -> HistoryEvaluator:
        """An evaluator of an earlier moment, over the same lives."""
        return HistoryEvaluator(
            self.query, self._documents, then, until=then, moment=moment, lives=self._lives, **self._around
        )

    def _moments(self) -> list[DocumentMoment]:
        """The moments of all documents that are seen here, in their order, each with the time that is now then."""
        merged = sorted(each for document in self._documents.values() for each in document.moments)
        times = accumulate((each.now for each in merged), max)
        found = (DocumentMoment(each.number, now) for each, now in zip(merged, times, strict=True))
        return [
            each
            for each in found
            if (self._moment is None or each.number <= self._moment)
            and (self._until is None or each.now <= self._until)
        ]

    def _retained(self) -> Fraction | None:
        retain = self._around.get("retain")
        return None if retain is None else self._now - retain

    def _counterparts(self, values: Values) -> Values:
        """Values of another moment as they are at this one; nodes that are not there now are left out."""
        return [each for value in values for each in self._counterpart(value)]

    def _counterpart(self, value: Value) -> Iterator[Value]:
        match value:
            case Attribute(parent=Element() as owner):
                for each in self._counterpart(owner):
                    assert isinstance(each, Element)
                    yield from (found for found in each.attributes if found.name == value.name)
            case tree.Document() | Element() if value in self._lives.tops:
                view = self._views[self._lives.tops[value]]
                yield view.document if isinstance(value, tree.Document) else view.root
            case Element() | Text() | Comment() | Instruction() if value in self._lives.origin:
                lived = self._lives.origin[value]
                yield from (view.nodes[lived] for view in self._views.values() if lived in view.nodes)
            case _:
                yield value  # a value, or a node that has no history

    # --- FLWR ---------------------------------------------------------------------------------------------

    def units(self, clause: ast.For, env: Env) -> Iterator[StreamUnit]:
        if clause.window is not None:
            for each in self.window_rounds([clause], env):
                yield StreamUnit([each.env], each.items, partial(self._bury_unit, [each]))
            return
        for entry, values in groupby(self._by_entry(clause.source, env), key=lambda each: each[0]):
            rounds = [env.bind(clause.variable, [value]) for _, value in values]
            yield StreamUnit(rounds, 1, partial(self._bury, entry))

    def reads(self, source: ast.Expression, env: Env) -> bool:
        return self._reads(source, env)

    def rows(self, flwor: ast.Flwor, env: Env) -> list[ResultRow]:
        rounds = RoundResults()
        self._rounds(flwor, flwor.clauses, env, (), rounds)
        return self._surviving(rounds)

    def _surviving(self, rounds: RoundResults) -> list[ResultRow]:
        """The results of units that do not fail; the others are set aside."""
        for unit, error in rounds.failed.items():
            self._bury(unit[-1], error)
        return [row for unit, row in rounds.found if not any(unit[: len(each)] == each for each in rounds.failed)]

    def _rounds(self, flwor: ast.Flwor, clauses: Clauses, env: Env, unit: Unit, rounds: RoundResults) -> None:
        """Run the rounds of the clauses that are left, inside of the unit bound so far."""
        try:
            if clauses and isinstance(clauses[0], ast.For) and self._reads(clauses[0].source, env):
                if clauses[0].window is not None:
                    fors = [each for each in clauses if isinstance(each, ast.For) and self._is_window(each, env)]
                    others = [each for each in clauses if not any(each is one for one in fors)]
                    for each in self.window_rounds(fors, env):
                        rounds.found += [(unit, row) for row in self._unit([each], flwor, others)]
                    return
                variable = clauses[0].variable
                for entry, values in groupby(self._by_entry(clauses[0].source, env), key=lambda each: each[0]):
                    those = [env.bind(variable, [value]) for _, value in values]
                    inner = partial(self._entry_rounds, flwor, clauses[1:], those, (*unit, entry), rounds)
                    self.apart(inner, len(unit) + 1)
            elif clauses:
                asked = flwor.where if len(clauses) == 1 else None
                for bound in self._inside(unit, lambda: list(self._tuples(clauses[:1], env, asked))):
                    self._rounds(flwor, clauses[1:], bound, unit, rounds)
            else:
                rounds.found += [(unit, row) for row in self._inside(unit, lambda: list(self._rows(flwor, (), env)))]
        except DynamicError as error:
            if self._in_unit or not unit:
                raise
            rounds.failed.setdefault(unit, error)

    def _entry_rounds(
        self,
        flwor: ast.Flwor,
        clauses: Clauses,
        bound: Sequence[Env],
        unit: Unit,
        rounds: RoundResults,
    ) -> None:
        """The rounds of one entry, with its nodes bound in turn."""
        for env in bound:
            self._rounds(flwor, clauses, env, unit, rounds)

    def _inside(self, unit: Unit, body: Callable[[], list[T]]) -> list[T]:
        """Run a part of a round; an error in it fails the round."""
        before, self._in_unit = self._in_unit, self._in_unit or bool(unit)
        try:
            return body()
        finally:
            self._in_unit = before

    def _reads(self, source: ast.Expression, env: Env) -> bool:
        """Whether a `for` runs over a stream, qualified or not."""
        base = base_of(source)
        if isinstance(base, ast.Variable) and base.name in env.flowing:
            return True
        return self._stream(source) is not None or flows(source, env.flowing, self.declared)

    # --- windows ------------------------------------------------------------------------------------------

    def _is_window(self, clause: ast.For, env: Env) -> bool:
        return clause.window is not None and self._reads(clause.source, env)

    def window_rounds(self, clauses: Sequence[ast.For], env: Env) -> Iterator[Round]:
        """One round per window of a `for` over a document as it stands (LAWS 5.10), or per tuple of several (5.12)."""
        sides: list[JoinedSide] = []
        for clause in clauses:
            nodes = self.placed_nodes(clause, env)
            sides.append(JoinedSide(clause, nodes, self.scale(clause, env, nodes)))
        if len(sides) > 1:
            yield from joined_rounds(sides, env)
        else:
            yield from windows_of(sides[0].clause, sides[0].nodes, sides[0].scale, env)

    def window_rows(
        self, flwor: ast.Flwor, clause: ast.For, window: WindowContent[PlacedNode], env: Env
    ) -> list[ResultRow]:
        """The results of one window, given what it holds; where it fails, it is set aside."""
        others = flwor.clauses[flwor.clauses.index(clause) + 1 :]
        return self._unit([window_round(clause, window, self.scale(clause, env, window.content), env)], flwor, others)

    def placed_nodes(self, clause: ast.For, env: Env) -> list[PlacedNode]:
        """The nodes that a windowed `for` holds, in document order; one without a place among the windows is buried."""
        found = [(self._arrived(entry), value) for entry, value in self._by_entry(clause.source, env)]
        scale = self.scale(clause, env, [PlacedNode(arrival, node) for arrival, node in found])
        placed: list[PlacedNode] = []
        for arrival, node in found:
            try:
                placed.append(PlacedNode.of(clause, arrival, node, env, self.value, scale))
            except DynamicError as error:
                self.set_aside(arrival, error)
        return placed

    def scale(self, clause: ast.For, env: Env, nodes: Sequence[PlacedNode]) -> TimeScale:
        """The time scale of the reference values of a window."""
        if clause.window is None or isinstance(clause.window, ast.CountWindow):
            return PLAIN
        views = {name: view for name, view in self._views.items() if view is self._stream(clause.source)}
        if not views and nodes and nodes[0].arrival is not None:  # a variable stands for the stream
            item = nodes[0].arrival.item
            views = {name: view for name, view in self._views.items() if item in view.places}
        for name, view in views.items():
            names = Spelling(env.namespaces, view.root.namespaces)
            scale = (self._around.get("scales") or {}).get(name)
            return PLAIN if scale is None else scale(path_in_item(clause.source, clause.window.reference, names))
        return PLAIN

    def _arrived(self, entry: Child | None) -> Arrival | None:
        """An entry as what a round is named by."""
        if entry is None:
            return None
        place, _ = self._shown(entry)
        return Arrival(entry, self._now, 0, place)  # type: ignore[arg-type]  # text between items is an entry, too


def refuse_joined_windows(query: ast.Query, text: str | None, name: str | None = None) -> None:
    """Refuse to join count windows of streams of updates with others: places and values have no order (LAWS 5.12)."""
    lets = {each.variable for each in parts(query) if isinstance(each, ast.Let) and readings(each.value, frozenset())}
    for part in parts(query):
        if not isinstance(part, ast.Flwor):
            continue
        windowed = [each for each in part.clauses if isinstance(each, ast.For) and each.window is not None]
        bases = [(each, base_of(each.source)) for each in windowed]
        over = [
            each.window
            for each, base in bases
            if each.window is not None
            and (isinstance(base, ast.Source) or (isinstance(base, ast.Variable) and base.name in lets))
        ]
        counting = [isinstance(each, ast.CountWindow) for each in over]
        if any(counting) and not all(counting):
            raise Unsupported(
                "a count window cannot be joined with one over values in streams of updates",
                text=text or print_query(query),
                span=over[counting.index(not counting[0])].span,
                name=name,
                hint="let all of them count, or none: a document has no order between its places and its values",
            )


def refuse_windows_of_items(
    query: ast.Query, edited: Collection[str], text: str | None, name: str | None = None
) -> None:
    """Refuse windows over a stream of items beside streams of updates, which are `edited`."""
    for part in parts(query):
        if isinstance(part, ast.For) and part.window is not None:
            source = base_of(part.source)
            if isinstance(source, ast.Source) and source.kind == "stream" and source.name not in edited:
                raise Unsupported(
                    "a window over a stream of items cannot be asked for beside a stream of updates yet",
                    text=text or print_query(query),
                    span=part.window.span,
                    name=name,
                    hint="register the answer over the windows as a stream, and ask for its past with '#[v]' or '?[t]'",
                )
