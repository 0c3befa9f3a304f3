"""The planner: the flows for each subscription (sharing paper, sections 1 and 6).

Three strategies can be compared:

* `shipping`: each subscription gets its whole streams, over links of its own; nothing is shared or forked;
* `sharing`: it is answered from an existing flow that provides what it needs, or gets one of its own;
* `widening`: flows may be widened for it.

Every option has a price (`options.py`), and the cheapest is taken; after the time budget, the cheapest found by then.
Then subscriptions with a flow of their own are planned again, if that makes the whole cheaper: so the order of
registration does not decide for ever.
A subscription that ends frees what only it needed, and the flows that it shared are narrowed to what is still needed
(section 4), except windows and joins that have begun.
Where these are made once more for somebody who came later, they become one when both carry the same (`shared`).

Only this class holds a catalogue; each change is returned as a `Decision`, with the steps to it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from anabranch.errors import UsageError, did_you_mean
from anabranch.network.catalogue import Catalogue, Flow, Step, Subscription, steps
from anabranch.network.description import Network, Strategy
from anabranch.network.estimates import Estimates, Form, Sample, sample_of
from anabranch.network.needs import QueryNeeds, fed_inputs, inputs_of, need_of, provides, sent_needs, whole, widened
from anabranch.network.options import Option, Options, is_loose, total
from anabranch.network.topology import Topology
from anabranch.sharing.forest import PropertyForest
from anabranch.sharing.normalize import unwindowed
from anabranch.sharing.tree import PropertyTree
from anabranch.stream.schema import Schema

_CHEAPER = 0.98
"""Others are planned again only where the whole price falls below this part of what it was."""
_MOST_KEPT = 12
"""The most rejected options that are kept, for explanations."""


@dataclass(frozen=True)
class Decision:
    """A decision, and its reasons."""

    about: str
    """The subscription, or another event."""
    steps: tuple[Step, ...]
    chosen: Option | None = None
    others: tuple[Option, ...] = ()
    """The best rejected options, cheapest first."""
    looked_at: int = 0
    """The number of options that were priced."""
    seconds: float = 0.0
    complete: bool = True
    """Whether there was time to price all options."""
    narrowed: tuple[str, ...] = ()
    """Flows that were narrowed because nobody needs the rest of them any more."""
    moved: tuple[str, ...] = ()
    """Other subscriptions that are now answered from other flows."""


class Planner:
    """Plans a network; only its own methods change its catalogue."""

    def __init__(
        self,
        topology: Topology,
        samples: Mapping[str, Sample],
        places: Mapping[str, str],
        schemas: Mapping[str, Schema] | None = None,
        *,
        strategy: Strategy = "widening",
        budget: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        sent_needs: Callable[[QueryNeeds], QueryNeeds] = lambda need: need,
        fed_inputs: Callable[[PropertyForest], tuple[PropertyTree, ...]] = inputs_of,
    ) -> None:
        """`sent_needs` says which needs can be sent, `fed_inputs` what a join on the way receives (`needs.py`)."""
        self.topology = topology
        self.estimates = Estimates(samples)
        self.schemas = dict(schemas or {})
        self.strategy = strategy
        self.budget = budget
        self.edited: frozenset[str] = frozenset()
        """The streams of updates."""
        self.begun: frozenset[str] = frozenset()
        """The flows that have begun: of these, windows and joins on the way are not changed any more, and serve no
        others; and while there are any, a subscription is not moved to other flows."""
        self.functions: tuple[str, ...] = ()
        """The functions of modules that queries may call."""
        self.evolved: frozenset[str] = frozenset()
        """The streams that have evolved by now: those who begin behind an accent get no windows."""
        self._clock = clock
        self._sent_needs = sent_needs
        self._fed_inputs = fed_inputs
        self._ended: set[str] = set()
        """Streams that have ended, and that a join still reads."""
        self._number = _number_behind(places)
        streams = [Flow(name, whole(name, self.schemas.get(name)), at) for name, at in places.items()]
        self.catalogue = Catalogue({each.name: each for each in streams}, {})

    @staticmethod
    def over(
        network: Network, strategy: Strategy | None = None, clock: Callable[[], float] = time.monotonic
    ) -> Planner:
        """The planner of a described network, before any subscription."""
        streams = network.streams
        planner = Planner(
            network.topology,
            {name: sample_of(each.source, each.rate) for name, each in streams.items()},
            {name: each.at for name, each in streams.items()},
            {name: each.source.schema for name, each in streams.items() if each.source.schema},
            strategy=strategy or network.strategy,
            budget=network.budget,
            clock=clock,
            sent_needs=lambda need: sent_needs(need, streams, planner.evolved, planner.functions),
            fed_inputs=lambda join: fed_inputs(join, streams),
        )
        planner.edited = frozenset(name for name, each in streams.items() if each.source.updates)
        planner.functions = tuple(network.functions)
        return planner

    @staticmethod
    def of(
        network: Network, strategy: Strategy | None = None, clock: Callable[[], float] = time.monotonic
    ) -> tuple[Planner, list[Decision]]:
        """The same with all registered subscriptions."""
        planner = Planner.over(network, strategy, clock)
        asked = network.subscriptions.values()
        return planner, [
            planner.register(each.name, each.text, each.at, by=each.by, label=str(each.file)) for each in asked
        ]

    # --- subscriptions come and go --------------------------------------------------------------------------

    def register(self, name: str, text: str, at: str, *, by: str | None = None, label: str | None = None) -> Decision:
        """Plan a new subscription; `QueryError` where it cannot be answered, `UsageError` where it is invalid here.

        Errors in the text name it by its label, such as a file name.
        """
        if name in self.catalogue.subscriptions:
            raise UsageError(f"there is a subscription '{name}' already")
        if at not in self.topology.places:
            raise UsageError(f"'{at}' is no super-peer")
        begun = self._clock()
        need = need_of(text, self.schemas, label or name, self.edited, self.functions)
        for stream in need.streams:
            if stream not in self.catalogue.flows or stream in self._ended:
                flows = self.catalogue.flows.values()
                known = [each.name for each in flows if not each.inputs and each.name not in self._ended]
                hint = did_you_mean(stream, known, f"there is {' and '.join(known) or 'none'}")
                raise UsageError(f"'{name}' reads a stream '{stream}' that nobody has registered", hint=hint)
        need = self._sent_needs(need)
        old = self.catalogue
        options, complete = self._options(need, at, begun)
        chosen = min(options, key=lambda each: each.price)
        self._take(chosen, Subscription(name, at, by or at, text, need, chosen.reads))
        moved = self._settle(name, begun) if self.strategy == "widening" and not self.begun else ()
        others = sorted((each for each in options if each is not chosen), key=lambda each: each.price)[:_MOST_KEPT]
        seconds = self._clock() - begun
        changes = steps(old, self.catalogue)
        return Decision(name, changes, chosen, tuple(others), len(options), seconds, complete, moved=moved)

    def take_up(self, has_read: bool, evolved: Iterable[str], alike: Iterable[Collection[str]]) -> None:
        """Go on where everything is read: whether anything was, the streams that have evolved, and flows that carry
        the same from here on."""
        self.begun = frozenset(self.catalogue.flows if has_read else ())
        self.evolved = frozenset(evolved)
        self.catalogue = self.shared(alike)

    def resume(self, catalogue: Catalogue, number: int) -> None:
        """Continue with a catalogue that is in force; `number` is the largest number of a flow so far."""
        self.catalogue = catalogue
        self._number = max(self._number, number + 1)

    @property
    def numbered(self) -> int:
        """The largest number of a flow so far."""
        return self._number - 1

    def need_of(self, text: str, name: str) -> QueryNeeds:
        """What a query receives of its streams."""
        return self._sent_needs(need_of(text, self.schemas, name, self.edited, self.functions))

    def _options(self, need: QueryNeeds, at: str, begun: float) -> tuple[list[Option], bool]:
        late = False

        def is_late() -> bool:
            nonlocal late
            late = late or self._clock() - begun > self.budget
            return late

        known = self.catalogue, self.topology, self.estimates, self.strategy
        found = Options(*known, is_late, self._number, self.begun, self._fed_inputs)
        return list(found.of(need, at)), not late

    def _take(self, option: Option, subscription: Subscription) -> None:
        wider = [replace(self.catalogue.flows[name], form=form) for name, form in option.changes.items()]
        self.catalogue = self.catalogue.changed((*wider, *option.added), (subscription,))
        self._number += len(option.added)

    def _settle(self, new: str, begun: float) -> tuple[str, ...]:
        """Plan other subscriptions again, as long as that makes the whole cheaper and there is time."""
        moved: list[str] = []
        price = total(self.catalogue, self.topology, self.estimates)
        for name in tuple(self.catalogue.subscriptions):
            if name == new or self._clock() - begun > self.budget / 2:
                continue
            old, number = self.catalogue, self._number
            subscription = old.subscriptions[name]
            rest = old.without((name,))
            gone = [each for each in old.hops if each.name not in rest.flows]
            if not gone:
                continue
            above = {each for flow in gone for each in old.above(flow.name)}
            self.catalogue = rest
            self.narrow(above & rest.flows.keys())
            options, _ = self._options(subscription.need, subscription.at, begun)
            self._take(best := min(options, key=lambda each: each.price), replace(subscription, reads=best.reads))
            again = total(self.catalogue, self.topology, self.estimates)
            if (again.short, again.total) < (price.short, price.total * _CHEAPER):
                price = again
                moved.append(name)
            else:
                self.catalogue, self._number = old, number
        return tuple(moved)

    def cancel(self, *names: str) -> Decision:
        """End subscriptions and the flows that only they needed, and narrow those that they shared."""
        for name in names:
            if name not in self.catalogue.subscriptions:
                hint = did_you_mean(name, self.catalogue.subscriptions)
                raise UsageError(f"there is no subscription '{name}'", hint=hint)
        old = self.catalogue
        shared = {flow for name in names for each in old.subscriptions[name].reads for flow in (each, *old.above(each))}
        self.catalogue = self._without_ended(old.without(names))
        narrowed = self.narrow(shared & self.catalogue.flows.keys()) if self.strategy == "widening" else ()
        about = f"cancel {', '.join(names) or 'nothing'}"
        return Decision(about, steps(old, self.catalogue), narrowed=narrowed)

    def leave(self, thin: str) -> Decision:
        """Remove a thin peer: its subscriptions end; its streams end separately (`end_stream`)."""
        return self.cancel(*(each.name for each in self.catalogue.subscriptions.values() if each.by == thin))

    # --- streams come and go --------------------------------------------------------------------------------

    def register_stream(self, name: str, sample: Sample, at: str, schema: Schema | None = None) -> Decision:
        """Register a stream at a super-peer."""
        if name in self.catalogue.flows:
            raise UsageError(f"there is a stream '{name}' already")
        if at not in self.topology.places:
            raise UsageError(f"'{at}' is no super-peer")
        old = self.catalogue
        self._number = max(self._number, _number_behind((name,)))
        self.estimates = Estimates({**self.estimates.samples, name: sample})
        self.schemas = {**self.schemas, **({name: schema} if schema else {})}
        self.catalogue = old.changed((Flow(name, whole(name, schema), at),))
        return Decision(f"stream {name}", steps(old, self.catalogue))

    def end_stream(self, name: str) -> Decision:
        """End a stream, and subscriptions that read nothing else; a join goes on with its other inputs."""
        flow = self.catalogue.flows.get(name)
        if flow is None or flow.inputs:
            raise UsageError(f"there is no stream '{name}'")
        old = self.catalogue
        self._ended.add(name)
        left = old.without(
            each.name for each in old.subscriptions.values() if self._ended.issuperset(each.need.streams)
        )
        self.catalogue = self._without_ended(left)
        return Decision(f"end of stream {name}", steps(old, self.catalogue))

    def _without_ended(self, catalogue: Catalogue) -> Catalogue:
        """The catalogue without ended streams that have no readers."""
        gone = [each for each in self._ended if each in catalogue.flows and not catalogue.is_read(each)]
        if not gone:
            return catalogue
        self._ended.difference_update(gone)
        flows = {name: each for name, each in catalogue.flows.items() if name not in gone}
        return Catalogue(flows, catalogue.subscriptions)

    # --- becoming one ---------------------------------------------------------------------------------------

    def shared(self, alike: Iterable[Collection[str]]) -> Catalogue:
        """The catalogue in which flows that carry the same from now on are one, wherever several of them arrive.

        Those that are `alike` are made at one peer.
        At each peer the first that arrives is read, under the names of the others, too: their readers have begun with
        them and go on.
        """
        catalogue = self.catalogue
        for names in alike if self.strategy != "shipping" else ():
            there: dict[str, str] = {}
            for name in sorted(names, key=list(catalogue.flows).index):
                for flow in (each for each in catalogue.copies(name) if not each.is_kept):
                    first = there.setdefault(flow.at, flow.name)
                    if first != flow.name:
                        catalogue = _kept(catalogue, catalogue.flows[flow.name], first)
        if catalogue is self.catalogue:
            return catalogue
        ordered = {each.name: each for each in catalogue.downwards()}
        return Catalogue(ordered, catalogue.subscriptions).without(())

    # --- narrowing ------------------------------------------------------------------------------------------

    def narrow(self, names: set[str]) -> tuple[str, ...]:
        """Narrow some flows to what is still needed; gives the narrowed ones.

        Items that have begun stay items: whoever makes windows of them, on the way or of its own, has counted some.
        """
        found: list[str] = []
        for flow in reversed(self.catalogue.downwards()):
            if flow.name not in names or not flow.inputs or (flow.name in self.begun and not is_loose(flow)):
                continue
            asked = self._asked(flow)
            if flow.name in self.begun and isinstance(asked, PropertyTree):
                asked = unwindowed(asked)
            # the merged needs may be relaxed to more than the flow has ever had
            less = asked is not None and self.estimates.rate(asked) < self.estimates.rate(flow.form)
            if asked is not None and less and provides(flow.form, asked):
                self.catalogue = self.catalogue.changed((replace(self.catalogue.flows[flow.name], form=asked),))
                found.append(flow.name)
        return tuple(reversed(found))

    def _asked(self, flow: Flow) -> Form | None:
        """The merged needs of a flow's readers; None where no single form has all of them."""
        forms: list[Form] = [each.need.of(flow.form) for each in self.catalogue.answered[flow.name]]
        for reader in self.catalogue.readers[flow.name]:
            if isinstance(reader.form, PropertyForest) and not isinstance(flow.form, PropertyForest):
                stream = flow.form.stream
                forms.append(next(each for each in self._fed_inputs(reader.form) if each.stream == stream))
            else:
                forms.append(reader.form)
        merged: Form | None = forms[0] if forms else None
        for each in forms[1:]:
            merged = None if merged is None else widened(merged, each)
        return merged


def _kept(catalogue: Catalogue, flow: Flow, other: str) -> Catalogue:
    """The catalogue in which a flow is kept, as a copy of another one that comes to the same peer.

    Who read it where it was made reads what it was made of, which is the same.
    """

    def behind(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(new for name in names for new in (flow.inputs if name == flow.name else (name,))))

    made = (each for each in catalogue.readers[flow.name] if each.made_at != flow.at)
    asked = (each for each in catalogue.answered[flow.name] if each.at != flow.at)
    return catalogue.changed(
        (replace(flow, before=flow.at, inputs=(other,)), *(replace(each, inputs=behind(each.inputs)) for each in made)),
        [replace(each, reads=behind(each.reads)) for each in asked],
    )


def _number_behind(streams: Iterable[str]) -> int:
    """A flow number that no stream's name has: `photons.7` may be either."""
    numbered = (re.search(r"\.(\d{1,9})\Z", name) for name in streams)
    return 1 + max((int(each[1]) for each in numbered if each), default=0)
