"""Where clients of the service ask about queries: what is known for it is kept between requests.

Few such requests are worked on at a time, so that editors that check at every key do not take the time of epochs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import BoundedSemaphore

from anabranch.errors import AnabranchError
from anabranch.service.evolving.courses import StreamEvolutions
from anabranch.service.queries.checking import LABEL, CheckedQuery, QueryExplanation, QueryInputs
from anabranch.service.queries.explaining import QueryCost, cost_of
from anabranch.service.queries.preview import Preview, Previews
from anabranch.service.queries.sharing import QueryShare, SharedWork
from anabranch.service.queries.spelling import QuerySpelling, SpellingName, spelled
from anabranch.service.refusals import TooMany
from anabranch.site_work import SiteAtWork, SubscriptionEntry
from anabranch.spark.plan.epoch_plan import Plan, Registration
from anabranch.spark.plan.wanted import Epoch
from anabranch.sql import Language

_AT_ONCE = 4
_PATIENCE = 10.0
"""The seconds that a request waits for its turn."""


@dataclass(frozen=True, slots=True)
class NewQuery:
    """A query beside the subscriptions that run."""

    checked: CheckedQuery
    explained: QueryExplanation
    shares: tuple[QueryShare, ...]
    cost: QueryCost


class QueryDesk:
    """Answers what is asked about queries; any thread may ask."""

    def __init__(self, work: SiteAtWork, newest: Callable[[], Epoch | None], evolutions: StreamEvolutions) -> None:
        """`newest` gives the newest epoch of the run."""
        self._work = work
        self._previews = Previews(work, evolutions)
        self._newest = newest
        self._inputs: QueryInputs | None = None
        self._shared = SharedWork(lambda: tuple(work.functions.items()))
        self._turns = BoundedSemaphore(_AT_ONCE)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._turns.acquire(timeout=_PATIENCE):
            raise TooMany("too many queries are checked at once", hint="try again in some seconds")
        try:
            yield
        finally:
            self._turns.release()

    @property
    def inputs(self) -> QueryInputs:
        """What queries may read in the version of the site that is in force."""
        site, found = self._work.site, self._inputs
        if found is None or found.site is not site:
            found = self._inputs = QueryInputs(site, self._work.inputs)
        return found

    def check(self, text: str, language: Language | None) -> tuple[CheckedQuery, QueryExplanation]:
        """The verdict on a query, as registering would give it; raises where that would refuse it."""
        with self._turn():
            inputs, plan = self.inputs, self._plan
            checked = inputs.check(text, language, plan)
            self._previews.warm()
            return checked, inputs.explain(LABEL, checked, plan)

    def preview(self, text: str, language: Language | None, items: int) -> Preview:
        """The answer of a query over the newest items; raises where registering would refuse it."""
        with self._turn():
            checked = self.inputs.check(text, language, self._plan)
        return self._previews.preview(checked, language, items)

    def spell(self, text: str, language: Language | None, to: SpellingName) -> QuerySpelling:
        """A query in another spelling; raises where it is wrong, or cannot be written so."""
        with self._turn():
            return spelled(text, language, to, self.inputs.inputs)

    def close(self) -> None:
        """End what waits for further queries."""
        self._previews.close()

    def explain(self, text: str, language: Language | None) -> NewQuery:
        """A query beside those that run; raises where registering would refuse it."""
        checked, explained = self.check(text, language)
        plan, policy = self._plan, self._work.site.policy
        shares = self._shared.new(plan, checked, self._begun, policy)
        readers, shapes = self._shared.counts(plan, checked.query.streams)
        return NewQuery(checked, explained, shares, cost_of(checked, explained, shares, readers, shapes))

    def registered(
        self, entry: SubscriptionEntry, running: Registration | None
    ) -> tuple[QueryExplanation | None, tuple[QueryShare, ...]]:
        """The explanation of a subscription, None where there is none now; and what it shares, once it runs."""
        shares = () if running is None or running.aborted else self._shared.running(self._plan, running)
        try:
            with self._turn():
                inputs, plan = self.inputs, self._plan
                checked = inputs.check(entry.declared.text, entry.declared.language, plan, name=entry.name)
                return inputs.explain(entry.name, checked, plan), shares
        except AnabranchError:  # it is refused now, or there was no turn: what was registered is registered
            return None, shares

    @property
    def _plan(self) -> Plan | None:
        return self._work.trunk.plan if self._work.trunk else None

    @property
    def _begun(self) -> frozenset[str]:
        """The streams that had elements by now."""
        newest = self._newest()
        if newest is not None:
            return frozenset(newest.manifest.begun)
        return frozenset(self._work.site.streams) if self._plan else frozenset()
