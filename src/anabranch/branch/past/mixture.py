"""What must be remembered so that a query can look at items of the past and at documents that are edited.

Of streams of items it is what the query can still ask for (`runtime/past/recollection.py`), of streams of updates
the documents as far as the query sees them (`branch/document/projection.py`).
Expressions are evaluated by the law itself (`law/arrivals/mixed.py`) over just that: nothing that was forgotten
could be chosen, so the values are the same.
An evaluation looks at all that is remembered, so it costs as much as the documents are large.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from anabranch.branch.document.projection import KeptDocument, LateStart
from anabranch.branch.document.state import Data, decode, encode
from anabranch.branch.past.queries import RecalledQuery
from anabranch.language import ast
from anabranch.law.arrivals.mixed import MixedEvaluator, Stood
from anabranch.law.env import Env
from anabranch.law.history.chains import Content
from anabranch.law.history.document import EditedDocument
from anabranch.law.history.settings import Around
from anabranch.law.inputs import Arrival, Signal
from anabranch.runtime.past.recollection import Recollection
from anabranch.sharing.retention import needs_of
from anabranch.stream.elements import DeadLetter, Item, Place, Punctuation, StreamElement
from anabranch.stream.limits import Limits
from anabranch.stream.tree import Element
from anabranch.values.sequences import Values

NOWHERE = Place("", "", 0)
"""Where a branch stands that begins late."""


class Mixture:
    """The memory of one query; `roots` are the root elements of its streams."""

    def __init__(
        self,
        asked: RecalledQuery,
        items: Recollection,
        roots: Mapping[str, Element],
        limits: Limits,
        around: Around,
    ) -> None:
        needs = needs_of(asked.query)
        self.edited = {name: KeptDocument(roots[name], name, needs, limits) for name in asked.edited}
        """The documents of the streams of updates."""
        self._query, self._around = asked.query, around
        self._items = items
        self._documents = {
            name: EditedDocument(root, limits) for name, root in roots.items() if name not in self.edited
        }
        self._contents: dict[Arrival, Content] = {}
        """Items as their documents hold them."""
        self._dead: dict[DeadLetter, None] = {}

    @property
    def now(self) -> Fraction:
        """The time of the latest element."""
        return self._items.now

    # --- what comes in ------------------------------------------------------------------------------------

    def edit(self, stream: str, element: StreamElement, at: Fraction, partition: int) -> Iterator[None]:
        """Take an element of a stream of updates; after each yield all is as of a moment."""
        for moment in self.edited[stream].take(element, at, partition):
            self.move(stream, element, moment)
            yield

    def move(self, stream: str, element: StreamElement, at: Fraction) -> None:
        """Time moves with an element that is no item."""
        self._items.take(stream, Signal(Punctuation(None, element.place), at, 0))
        self._moved()

    def arrive(self, arrival: Arrival) -> None:
        """Take an item."""
        self._items.take(arrival.place.stream, arrival)
        self.put(arrival)
        self._moved()

    def put(self, arrival: Arrival) -> None:
        """Have an item that is remembered in its document."""
        document = self._documents[arrival.place.stream]
        for _ in document.take(Item(arrival.item, arrival.place), arrival.time, arrival.partition):
            self._contents[arrival] = document.entries.pop()

    def begin(self, documents: Mapping[str, LateStart]) -> None:
        """Begin late, with the documents of streams of updates as they stand (LAWS 3.6)."""
        for name, document in documents.items():
            self.edited[name].begin(document)
            self._items.take(name, Signal(Punctuation(None, NOWHERE), document.now, 0))

    def _moved(self) -> None:
        for each in self.edited.values():
            each.moved(self.now)
            each.changed.clear()

    # --- what is asked ------------------------------------------------------------------------------------

    def value(self, expression: ast.Expression, env: Env, item: Arrival | None = None) -> Values:
        """The value of an expression now; where it loops over items, its one round is that of `item`."""
        arrivals = self._items.arrivals
        self._contents = {each: self._contents[each] for each in arrivals}
        for name, document in self._documents.items():
            document.entries = [content for each, content in self._contents.items() if each.place.stream == name]
        stood = Stood(frozenset(self._documents))
        if item is not None and isinstance(expression, ast.Flwor):
            loops = [id(clause) for clause in expression.clauses if isinstance(clause, ast.For)]
            others = [each for each in arrivals if each is not item]
            stood.rows.update({(loop, each.place): [] for loop in loops for each in others})
        items = {name: each.contents for name, each in self._documents.items()}
        documents = {name: each.whole() for name, each in self.edited.items()}
        evaluator = MixedEvaluator(self._query, {**documents, **items}, self.now, stood, **self._around)
        try:
            return evaluator.top(expression, env)
        finally:
            self._dead.update(dict.fromkeys(evaluator.dead))
            for document in self._documents.values():
                document.entries = []

    def drained(self) -> list[DeadLetter]:
        """What was set aside since this was last asked, each thing once."""
        found = list(self._dead)
        self._dead.clear()
        return found

    # --- between epochs -----------------------------------------------------------------------------------

    def encode(self) -> dict[str, Data]:
        """The documents of the streams of updates as plain data."""
        return {name: encode(each) for name, each in self.edited.items()}

    def decode(self, data: Mapping[str, Data]) -> None:
        """Go on from what `encode` gave, where nothing was taken yet."""
        for name, each in data.items():
            decode(self.edited[name], name, each)
