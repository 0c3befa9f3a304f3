"""The Python API: streams in, subscriptions that answer while the engine runs.

    with anabranch.Engine() as engine:
        engine.stream("photons", "in", dtd="photons.dtd")
        vela = engine.subscribe(text)
        for piece in vela:
            ...

A query is text, or a stream with operators (`algebra/plans/builder.py`):

    sensors = engine.stream("sensors", "in")
    engine.subscribe(sensors.select("t > 5").aggregate(by=["s"], avg=["t"]))

An engine is a trunk with names: `stream` and `subscribe` may be called at any time, before the start and after it, and
take effect with the next epoch.
The trunk starts when an answer is first asked for, or with `start`.
With a checkpoint, a later engine continues where this one ended: a subscription of the same name and text has the
same answer, from its first element on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import count
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Literal

from anabranch.algebra.plans import builder
from anabranch.algebra.plans.interpret import StreamSource
from anabranch.algebra.reactions.signature import Policy, known_policy
from anabranch.endpoint.opening import TrunkEndpoint
from anabranch.endpoint.settings import EndpointSettings
from anabranch.engine.handles import LiveSubscription, Stream
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import Checking
from anabranch.engine.replaying import replayed
from anabranch.engine.reports.explanation import Explanation, explanation
from anabranch.engine.reports.html import Tally, engine_html
from anabranch.errors import UsageError
from anabranch.law.calls import PythonFunction
from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.epoch.metrics import Metrics
from anabranch.spark.epoch.trunk import Trunk
from anabranch.spark.hosts.host import host_of
from anabranch.spark.plan.epoch_plan import Registration as Registered
from anabranch.spark.plan.kinds import not_begun
from anabranch.spark.plan.kinds.kind import QueryContext
from anabranch.spark.plan.wanted import Epoch, Listener, Workload
from anabranch.spark.sinks import Sink
from anabranch.spark.sinks.claims import settled
from anabranch.sql import Language
from anabranch.storage import Location, Where
from anabranch.storage.scratch import ScratchFolder
from anabranch.stream.files import check_name
from anabranch.stream.limits import NO_CAPS, CostCaps, Limits
from anabranch.stream.reading.documents import DocumentSource
from anabranch.stream.reading.source import NO_PATH, Http, Source, domains_of, seconds_of
from anabranch.stream.reading.topic import Topic, message_format, upserted
from anabranch.stream.schema import Schema
from anabranch.stream.settings import EPOCH_BYTES, Keep, Settings
from anabranch.values.declared import declared_timing

if TYPE_CHECKING:
    from anabranch.spark.session import Session


class Engine:
    """Streams and subscriptions on one trunk, on a Spark of its own or on one that runs already.

    `local` does without Spark: this process is the host, which starts quickly, for small streams.
    `checkpoint` is a folder for all durable state, on a disk or at `s3://bucket/name`; without it the state ends with
    the engine.
    `shards` tasks share the stateful subscriptions; another number next time changes no answer.
    A query over updates may be divided into `strands`, which are shared by those tasks; that changes no answer, either.
    `sharing` does common work of subscriptions once; without it, too, every answer is the same.
    `accents` are followed; without that, a stream that has one is refused.
    `policy` says what queries do with accents that their answers cannot express: keep them until they can
    (`accumulate`), end (`abort`), or stay in the units of their start for good (`absorb`).
    `caps` say what a subscription may take before it ends by name (LAWS 2.9).
    `once` reads to the end of the present input and ends; otherwise the engine follows its streams until it is closed.
    Streams that are pushed are taken at the address and port `listen`; elsewhere than on the loopback interface,
    clients need the token that stands in `token_file` or the environment.
    `on_epoch` is called with the metrics of each epoch, on a thread of the engine's.
    """

    def __init__(
        self,
        spark: Session | None = None,
        *,
        local: bool = False,
        checkpoint: Where | None = None,
        once: bool = False,
        epoch_bytes: int = EPOCH_BYTES,
        epoch_files: int | None = None,
        trigger_ms: int = 200,
        shards: int | None = None,
        strands: int | None = None,
        sharing: bool = True,
        accents: bool = True,
        policy: Policy = "accumulate",
        keep: int | str | None = None,
        limits: Limits | None = None,
        caps: CostCaps = NO_CAPS,
        functions: Mapping[str, PythonFunction] | None = None,
        listen: str = EndpointSettings().listen,
        token_file: str | Path | None = None,
        on_epoch: Callable[[Metrics], None] | None = None,
        on_warning: Callable[[str], None] | None = None,
    ) -> None:
        self.metrics: Metrics | None = None
        """The metrics of the newest epoch."""
        self.once = once
        self.functions = dict(functions or {})
        self._on_epoch = on_epoch or (lambda metrics: None)
        self._change = RLock()
        """Held while the workload changes."""
        self._wanted = Workload({}, {})
        self._subscriptions: dict[str, LiveSubscription] = {}
        self._numbers = count(1)
        self._started = self._closed = False
        self._policy = known_policy(policy)
        settings = Settings(
            trigger_ms,
            Keep.parse(keep),
            limits or Limits(),
            caps,
            shards=shards,
            sharing=sharing,
            accents=accents,
            strands=strands,
            epoch_bytes=epoch_bytes,
            epoch_files=epoch_files,
        )
        if local and spark is not None:
            raise UsageError("an engine is local or runs on a session of Spark, not both")
        endpoint = EndpointSettings(listen, None if token_file is None else Path(token_file).absolute())
        with ExitStack() as held:
            folder = checkpoint or held.enter_context(ScratchFolder())
            listener = Listener(self._take, on_warning or (lambda message: None))
            self._trunk = held.enter_context(
                Trunk(host_of(spark, local=local), folder, settings, self.functions, listener)
            )
            self._endpoint = held.enter_context(TrunkEndpoint(self._trunk, endpoint, listener.warning))
            self._held = held.pop_all()
        self._checking = Checking(Inputs(functions=self.functions))
        self._plan = self._trunk.plan
        self._at_work = self._plan.by_name if self._plan else {}
        self.log = AnswerLog(self._trunk.checkpoint)
        self._tally = Tally(self.log)

    def stream(
        self,
        name: str,
        source: Where | Sequence[Where] | Topic | LiveSubscription | Http,
        *,
        dtd: Where | None = None,
        time: str | None = None,
        time_unit: str | None = None,
        format: str = "auto",
        root: str | None = None,
        item: str | None = None,
        slack: str | Decimal | int = 0,
        origin: str | Decimal | int = 0,
        strict: bool = False,
        domains: Mapping[str, Sequence[object]] | None = None,
        updates: bool | Literal["upsert"] = False,
        envelope: str | None = None,
        retain: str | Decimal | int | None = None,
        heartbeat: str | Decimal | int | None = None,
    ) -> Stream:
        """Register a stream: a file or a directory that may grow; several of them are its partitions.

        It may be a topic of Kafka, whose messages have the `format` json or xml, one item each, or hold lines.
        It may also be a subscription of this engine, whose results are the items of the stream, and whose display is a
        stream of updates (LAWS 3.12).
        With `Http()` it is pushed: programs send its items to the stream's `url`; it is one of JSON unless `format`
        says `document` or `lines`.
        `time` is the path to the times of items, dateTimes or numbers; `time_unit` says that those count from 1970, in
        `s`, `ms`, `us` or `ns`.
        `slack`, how late items may come, is a number or a duration, and `origin`, where time windows begin, a number or
        a dateTime (LAWS 3.1, 3.2).
        `domains` are the only values that its items have at some paths, as in `{"s": [1, 2]}`.
        With `updates`, elements may be edited later (LAWS 5.1); late subscriptions see what has changed in the last
        `retain` seconds, or `"1 h"`, and everything by default.
        Without them, a join by keys holds an item for so long (LAWS 3.5).
        With `updates="upsert"` the messages of a topic are updates of their keys (LAWS 5.9); their `envelope` may be
        `debezium`.
        A partition that was idle for `heartbeat` seconds, or `"5 s"`, gets a heartbeat (LAWS 1.3).
        """
        check_name(name, "a stream")
        answer, topic, http = "", None, source if isinstance(source, Http) else None
        if isinstance(source, Topic):
            (topic, format), path, more = message_format(source, format), NO_PATH, list[Location]()
        elif isinstance(source, LiveSubscription):
            answer, updates, format = source.name, source.shows, "json" if source.is_json else "document"
            root = root or ("answer" if format == "json" else None)
            path, more = self._trunk.checkpoint.answer_stream(name), list[Location]()
        elif isinstance(source, Http):
            path, more = self._trunk.checkpoint.spool(name), []
        else:
            one = isinstance(source, str | Path | Location)
            path, *more = map(Location.of, [source] if one else source)  # type: ignore[arg-type]
        for each in () if answer or topic or http else (path, *more):
            if each.path is not None and not each.path.exists():  # an object store has no empty folders
                raise UsageError(f"stream '{name}': there is no '{each}'")
        if format not in ("auto", "lines", "document", "json"):
            raise UsageError(f"stream '{name}': the format '{format}' is unknown", hint="use lines, document or json")
        with self._change:
            if name in self._wanted.streams or name in self._wanted.documents:
                kind = "stream" if name in self._wanted.streams else "document"
                raise UsageError(f"there is a {kind} '{name}' already")
            if updates == "upsert":
                topic = upserted(topic, envelope, format)
            elif envelope is not None:
                raise UsageError(f"stream '{name}': an 'envelope' needs updates='upsert'")
            fresh = Source(
                name,
                path,
                format,  # type: ignore[arg-type]  # just checked
                Schema.read_dtd(dtd) if dtd is not None else None,
                root,
                item,
                *declared_timing(time, time_unit, slack, origin),
                strict,
                tuple(more),
                domains_of(domains or {}),
                bool(updates),
                None if retain is None else Fraction(seconds_of(retain)),
                heartbeat=None if heartbeat is None else seconds_of(heartbeat, "heartbeat"),
                answer=answer,
                topic=topic,
                http=http,
            )
            with self._endpoint.opened([fresh]):
                self._want(replace(self._wanted, streams={**self._wanted.streams, name: fresh}))
                self._check_anew()
        return Stream(StreamSource(name), fresh, self._trunk.checkpoint, self._endpoint.streams.get(name))

    def document(self, name: str, path: Where, *, root: str = "root", item: str = "item") -> None:
        """Register a document for `doc()`: an XML file, or JSON, with the names of its root and records.

        It is read again when it has changed, which takes effect with the next epoch (LAWS 3.12).
        """
        check_name(name, "a document")
        with self._change:
            if name in self._wanted.documents or name in self._wanted.streams:
                kind = "document" if name in self._wanted.documents else "stream"
                raise UsageError(f"there is a {kind} '{name}' already")
            fresh = DocumentSource(path, root, item)
            self._want(replace(self._wanted, documents={**self._wanted.documents, name: fresh}))
            self._check_anew()

    def _check_anew(self) -> None:
        """Check queries against the present registrations from now on."""
        wanted = self._wanted
        self._checking = Checking(Inputs(tuple(wanted.streams.values()), wanted.documents, self.functions))

    def subscribe(
        self,
        query: str | builder.DerivedStream,
        name: str | None = None,
        *,
        sink: Where | Sink | None = None,
        policy: Policy | None = None,
        caps: CostCaps | None = None,
        language: Language | None = None,
        from_beginning: bool = False,
    ) -> LiveSubscription:
        """Register a query; it answers from the next epoch on, also into a sink if one is given: a path is a file.

        It is text, or a stream with operators.
        With `from_beginning`, it begins with what the sources of its streams still hold (LAWS 3.6), and reads them by
        itself.
        Text that begins with SELECT or WITH is SQL, unless its `language` is given.
        Its `policy` and its `caps` are the engine's unless it has its own.
        """
        with self._change:
            held = self._wanted.subscriptions
            if name is None:
                name = f"query-{next(self._numbers)}"
            check_name(name, "a subscription")
            if name in held:
                raise UsageError(f"there is a subscription '{name}' already", hint="cancel it first")
            json = sink is not None and isinstance(query, str) and self._checking.gives_json(name, query, language)
            chosen = settled(sink, name, json=json)
            if isinstance(query, builder.DerivedStream):
                printed = self._checking.written(name, query.plan, sink=chosen)
            else:
                printed = self._checking.printed(name, query, sink=chosen, language=language)
            streams = self._wanted.streams
            if from_beginning:
                printed, own = replayed(name, printed, streams)
                streams = {**streams, **own}
            fresh = LiveSubscription(self, name, printed, self._policy if policy is None else known_policy(policy))
            fresh.registered = self._known(fresh)
            fresh.warnings = self._checking.growth.get(name, ())
            before, self._subscriptions = self._subscriptions, {**self._subscriptions, name: fresh}
            wanted = replace(self._wanted, subscriptions={**held, name: printed}, streams=streams)
            own_caps = {} if caps is None else {name: caps}
            wanted = replace(wanted, caps={**wanted.caps, **own_caps}) if own_caps else wanted
            if fresh.policy != "accumulate":
                wanted = replace(wanted, policies={**wanted.policies, name: fresh.policy})
            elif (
                chosen is None
                and not from_beginning
                and all(each.answer != name for each in self._wanted.streams.values())
            ):
                self._trunk.want_more({name: printed}, caps=own_caps)
                self._wanted = wanted
                return fresh
            try:
                self._want(replace(wanted, sinks={**wanted.sinks, name: chosen}) if chosen else wanted)
            except BaseException:
                self._subscriptions = before
                raise
        return fresh

    def explain(self) -> Explanation:
        """What the subscriptions have in common, and the work of the trunk: text, picture and data."""
        with self._change:
            wanted, plan = self._wanted, self._trunk.plan
        return explanation(wanted.streams, wanted.subscriptions, plan, self.functions)

    def start(self) -> None:
        """Start reading, unless it has started."""
        with self._change:
            if not self._started:
                if self._closed:
                    raise UsageError("the engine is closed")
                self._started = True
                self._trunk.start(once=self.once)

    def wait(self) -> None:
        """Wait for the end: of the present input with `once`, else of the engine."""
        self.start()
        self._trunk.wait()

    def close(self) -> None:
        """Stop after the epoch at work and release the checkpoint; a Spark session stays open."""
        self._closed = True
        self._held.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _repr_html_(self) -> str:
        """Streams, subscriptions, and the newest epoch, for a notebook."""
        now = "closed" if self._closed else "not started" if not self._started else "at work"
        if now == "at work" and not self._trunk.active:
            now = "ended"
        tally = self.tally
        answers = {each.name: (each.query, tally.of(each.registered)) for each in list(self._subscriptions.values())}
        return engine_html(now, self._wanted.streams, answers, tally.items, self.metrics)

    # --- for subscriptions --------------------------------------------------------------------------------

    @property
    def tally(self) -> Tally:
        """The numbers of committed answers."""
        return self._tally.now()

    @property
    def trunk(self) -> Trunk:
        return self._trunk

    def gives_json(self, name: str, text: str) -> bool:
        """Whether a query answers in JSON, over the streams as they are."""
        return self._checking.gives_json(name, text)

    def unbegun(self, name: str, text: str) -> Registered:
        """A subscription, as its query is printed, before its first epoch."""
        return not_begun(name, text, QueryContext.of(self._wanted.streams.values(), self.functions))

    def cancel(self, subscription: LiveSubscription) -> None:
        """End a subscription, if it has not ended; its answer so far stays."""
        with self._change:
            name = subscription.name
            if self._subscriptions.get(name) is subscription:
                queries = {each: text for each, text in self._wanted.subscriptions.items() if each != name}
                sinks = {each: held for each, held in self._wanted.sinks.items() if each != name}
                policies = {each: held for each, held in self._wanted.policies.items() if each != name}
                caps = {each: held for each, held in self._wanted.caps.items() if each != name}
                streams = {each: held for each, held in self._wanted.streams.items() if held.replays != name}
                rest = replace(self._wanted, subscriptions=queries, sinks=sinks, policies=policies, caps=caps)
                self._want(replace(rest, streams=streams))
                subscription.ended = self._trunk.last
                del self._subscriptions[name]

    def _known(self, handle: LiveSubscription) -> Registered | None:
        """The running subscription of the same name, text and policy, which continues."""
        found = self._at_work.get(handle.name)
        return found if found and (found.text, found.policy) == (handle.text, handle.policy) else None

    def _want(self, wanted: Workload) -> None:
        self._trunk.want(wanted)
        self._wanted = wanted

    def _take(self, epoch: Epoch) -> None:
        """Process an epoch: subscriptions that began with it now have their numbers."""
        if epoch.plan is not self._plan:
            self._plan = epoch.plan
            self._at_work = epoch.plan.by_name
            for handle in list(self._subscriptions.values()):
                handle.registered = self._known(handle) or handle.registered
        self.metrics = epoch.metrics
        self._on_epoch(epoch.metrics)
