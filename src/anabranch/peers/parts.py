"""A part of a network: the super-peers of one process, which change their plan together with those of other processes.

The part with the first super-peer, the *leader*, publishes the orders of a change (`orders.py`), carries each out
itself, and waits until the network is settled before it publishes the next.
Every other part *follows*: it carries out the orders as they come, reads on until nothing is left, and reports.

A part notes each order that it has carried out, and all of them can be carried out again; so a part that is killed goes
on where it was.
Under an order that holds streams it reads nothing of them from its next start on until it is told to: whatever it has
read by then, it has sent.
A leader that is killed in the midst of a change finds its own orders where it has published them.
A plan that was published is carried to its end; streams that are only held are let go, and what was wanted is planned
again, by the description as it is then.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

from anabranch.errors import AnabranchError, StateError
from anabranch.peers.orders import HOLDING, OrderKind, PartReport, PlanOrder, ReadSoFar, is_settled, missing
from anabranch.peers.records import SavedPlan
from anabranch.peers.team import Team
from anabranch.peers.transport import Transport
from anabranch.spark.checkpoint import durable
from anabranch.stream.plain import from_plain, to_plain

_POLL_SECONDS = 0.05
_FIRST_ORDERS = 3
"""The number of orders that bring the first plan."""
_UNTIL_SAID = 5.0
"""The seconds that other parts are waited for before that is said."""


class ChangeInterrupted(AnabranchError):
    """A part was stopped in the midst of a change; it is finished when the part runs again."""


@dataclass(frozen=True)
class CarriedOut:
    """The last order that a part has carried out, as on disk."""

    number: int = 0
    kind: OrderKind = "go"
    flows: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    """All flows that have ended."""


@dataclass
class NetworkPart:
    """The peers of this process, in a network with others; only one caller at a time."""

    team: Team
    transport: Transport
    peers: tuple[str, ...]
    """All super-peers of the network."""
    leads: bool
    folder: Path
    read_plan: Callable[[Mapping[str, Any]], SavedPlan | str]
    """Reads a plan that was published; gives the name of a stream that comes in here and is not described here yet."""
    check: Callable[[], None]
    """Raises what has failed, or `ChangeInterrupted` if this part is to stop."""
    warn: Callable[[str], None]
    done: CarriedOut = field(init=False)
    _failed: Exception | None = None
    """What has kept an order from being carried out everywhere."""
    _unknown: str | None = None
    """The stream that is waited for, since it is not described here yet."""
    _reports: list[PartReport] = field(default_factory=list)
    """The reports under the last order, of all parts."""

    def __post_init__(self) -> None:
        self.done = durable.read_record(CarriedOut, self._record) if self._record.exists() else CarriedOut()
        self._pause = Event()

    @property
    def _record(self) -> Path:
        return self.folder / "order.json"

    @property
    def is_held(self) -> bool:
        """Whether streams are held by the last order."""
        return self.done.kind in HOLDING

    def take_up(self, planned: SavedPlan | None) -> None:
        """Go on with the plan of an earlier run."""
        if planned is not None:
            self.team.take_up(planned, self.done.ended)
            if self.done.kind == "plan":
                self.team.carry_out(PlanOrder("plan", self.done.flows, planned))
            if not self.is_held:
                self.team.release()
        self._carry()

    def _carry(self) -> None:
        self.transport.carried = self.team.carried(self.transport.channel)

    def _carry_out(self, number: int, order: PlanOrder) -> None:
        self.team.carry_out(order)
        self._carry()
        self.done = CarriedOut(number, order.kind, order.flows, tuple(sorted(self.team.ended)))
        durable.write_record(self._record, self.done)

    def _own_report(self) -> PartReport | None:
        """The report of this part; None as long as it has something to do."""
        taken = self.transport.carried.taken()  # before it is read
        self.team.catch_up()
        self.team.drain()
        sent = self.transport.sent()
        if sent is None:
            return None
        return PartReport(self.done.number, tuple(self.team.peers), self.team.read_so_far(), sent, taken)

    # --- following ------------------------------------------------------------------------------------------

    def await_plan(self) -> None:
        """Wait until the first plan is in force here."""
        patience = monotonic() + _UNTIL_SAID
        while not self.has_begun:
            self.check()
            if monotonic() > patience:
                self.transport.await_order()
            self.follow()
            self._pause.wait(_POLL_SECONDS)

    def follow(self) -> None:
        """Carry out the orders that have come, and report."""
        while (data := self.transport.order(self.done.number + 1)) is not None:
            order = self._read(data)
            if order is None:
                break
            self._carry_out(self.done.number + 1, order)
        if self.is_held:
            self._report(self._own_report())
        elif self.done.kind == "call":
            self._report(PartReport(self.done.number, tuple(self.team.peers)))

    def _report(self, report: PartReport | None) -> None:
        if report is not None and report not in self._reports:
            self._reports = [report]
            self.transport.report(json.dumps(to_plain(report)).encode())

    def _read(self, data: bytes) -> PlanOrder | None:
        """An order that was published; None where this part cannot carry it out yet."""
        found = json.loads(data)
        planned = None if found["plan"] is None else self.read_plan(found["plan"])
        if isinstance(planned, str):
            if planned != self._unknown:
                self.warn(f"waiting for the stream '{planned}', which comes in here and is not described here yet")
            self._unknown = planned
            return None
        self._unknown = None
        return PlanOrder(found["kind"], tuple(found["flows"]), planned)

    # --- leading --------------------------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Carry out what earlier runs of the leader have published and may not have carried out."""
        try:
            published = self.transport.published(self.done.number)
        except Exception:
            self.check()  # one that is stopped meanwhile has not failed
            raise
        for number, data in published.items():
            order = self._read(data)
            assert order is not None, "the leader has described all that it has published"
            self._carry_out(number, order)

    @property
    def has_begun(self) -> bool:
        """Whether the first plan is in force here."""
        return self.done.number >= _FIRST_ORDERS

    def begin(self, planned: SavedPlan) -> None:
        """Publish the first plan, or what is left of it; nobody has read anything yet, so nobody is waited for."""
        orders = PlanOrder("plan", (), planned), PlanOrder("use"), PlanOrder("go")
        assert len(orders) == _FIRST_ORDERS
        for order in orders[self.done.number :]:
            self._publish(order)
            self._carry_out(self.done.number + 1, order)

    def finish(self) -> None:
        """Finish the change of an earlier run, or let streams go."""
        match self.done.kind:
            case "plan":
                self._settle()
                self.give(PlanOrder("use"))
                self.give(PlanOrder("go"))
            case "use":
                self._settle()
                self.give(PlanOrder("go"))
            case "hold" | "end":
                self.give(PlanOrder("go"))

    def give(self, order: PlanOrder) -> None:
        """Have an order carried out by all parts, and everything read; a hold begins when all of them are there."""
        if self._failed is not None:
            raise self._failed  # the others are in the midst of a change
        if order.kind == "hold":
            self.give(PlanOrder("call"))
        try:
            self._publish(order)
            self._carry_out(self.done.number + 1, order)
            if order.kind != "go":
                self._settle()
        except Exception as error:
            self._failed = error
            raise

    def read_so_far(self) -> ReadSoFar:
        """What the peers of all parts have read, under the last order."""
        return ReadSoFar.together(each.read for each in self._reports)

    def _publish(self, order: PlanOrder) -> None:
        plan = None if order.planned is None else order.planned.written(self.folder)
        data = json.dumps({"kind": order.kind, "flows": order.flows, "plan": plan}).encode()
        is_known = bool(self._reports) and all(each.order == self.done.number for each in self._reports)
        self.transport.publish(self.done.number + 1, data, self.done.number if is_known else 0)
        while not self.transport.is_published:
            self.check()
            self._pause.wait(_POLL_SECONDS)

    def _settle(self) -> None:
        """Wait until all parts have carried out the last order, and read everything that was sent."""
        is_call, patience = self.done.kind == "call", monotonic() + _UNTIL_SAID
        self.transport.listens = True
        try:
            while True:
                self.check()
                if is_call:
                    self.team.advance()
                own = PartReport(self.done.number, tuple(self.team.peers)) if is_call else self._own_report()
                found = [_report_of(each) for each in self.transport.reports.values()]
                reports = [each for each in (own, *found) if each is not None and each.order == self.done.number]
                absent = [
                    each for each in missing(reports, self.peers, self.done.number) if each not in self.team.peers
                ]
                if not absent and (is_call or is_settled(reports, self.peers, self.done.number)):
                    self._reports = reports
                    return
                if absent and monotonic() > patience:
                    self.warn(f"a change of the plan waits for {', '.join(absent)}")
                    patience = inf
                self._pause.wait(_POLL_SECONDS)
        finally:
            self.transport.listens = False


def _report_of(data: bytes) -> PartReport:
    try:
        return from_plain(PartReport, json.loads(data))
    except ValueError as error:
        hint = "run all parts of a network with releases that share the version of its plans"
        raise StateError(f"a part of the network reports what this release cannot read: {error}", hint=hint) from None
