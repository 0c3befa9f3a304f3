"""SITE.toml: the streams and subscriptions of one running engine, as a user declares them.

Paths are relative to the file.
Unknown keys are refused by name, with their table (`stream/reading/toml_tables.py`).
Two sites are equal when they mean the same, whatever the layout; so a run detects changes of its file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from anabranch.algebra.plans.written import read_plan
from anabranch.algebra.reactions.signature import POLICIES, Policy
from anabranch.endpoint.settings import EndpointSettings
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import Checking, prepare
from anabranch.errors import AnabranchError, UsageError, did_you_mean
from anabranch.kafka import KafkaCluster
from anabranch.kafka.cluster import flat_settings
from anabranch.language import check
from anabranch.language.checks.outputs import outputs_of
from anabranch.law.calls import ImportedFunction
from anabranch.runtime.registering import functions_of, plan_of
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.registry import Registry
from anabranch.spark.sinks import Console, Files, Kafka, Parquet, Sink, file_of
from anabranch.spark.sinks.claims import check_sinks, sink_use
from anabranch.sql import LANGUAGES, Language, language_of_file, read_query
from anabranch.storage import Location, Where
from anabranch.stream.files import DEAD_LETTERS, LATE_ITEMS, Claim, FileConflict, document_claims, stream_use
from anabranch.stream.limits import SITE_CAPS, CostCaps, Limits
from anabranch.stream.reading.documents import DocumentSource
from anabranch.stream.reading.source import Source
from anabranch.stream.reading.toml_tables import (
    Table,
    documents_of,
    max_steps_of,
    read_tables,
    read_text,
    sized,
    source_of,
)
from anabranch.stream.settings import Keep, Settings
from anabranch.values.declared import declared_timing

_MOST_TASKS = 10_000
"""Each shard is a task of every epoch."""


@dataclass(frozen=True, slots=True)
class SiteSubscription:
    """A query, its file, and its sink besides the answer log."""

    text: str
    file: Location | None
    """None where the query stands in the site file itself, or was registered through the service."""
    sink: Sink | None
    policy: Policy
    """What it does with accents that its answer cannot express."""
    language: Language | None = None
    """How its query is written; None where its text tells."""
    is_plan: bool = False
    """Whether its text is that of a plan of operators."""
    replays: bool = False
    """Whether it begins with what its streams' sources still hold (`engine/replaying.py`)."""
    caps: CostCaps = SITE_CAPS
    """What it may take before it ends by name (LAWS 2.9)."""

    @property
    def label(self) -> str | None:
        """How its query is called in errors: by its file, if it has one."""
        return None if self.file is None else str(self.file)


@dataclass(frozen=True, slots=True)
class SiteDescription:
    """The content of a SITE.toml."""

    file: Path
    owner: Path
    """The file, under the name that its checkpoint knows; it may have been renamed."""
    checkpoint: Location
    settings: Settings
    log: Path | None
    dead_letters: Location | None
    late_items: Location | None
    streams: Mapping[str, Source]
    subscriptions: Mapping[str, SiteSubscription]
    schemas: Mapping[str, Location]
    """The files with the DTDs of streams."""
    functions: Mapping[str, ImportedFunction]
    """Functions in Python that queries may call, by name; not imported yet."""
    documents: Mapping[str, DocumentSource]
    """The files behind `doc()`."""
    endpoint: EndpointSettings
    """Where the run listens, if it has streams that are pushed."""
    policy: Policy = "accumulate"
    """That of subscriptions that have none of their own."""
    kafka: Mapping[str, Any] = field(default_factory=dict)
    """The brokers and settings that streams and sinks have in common."""
    traces: bool = False
    """Whether epochs are traced, by OpenTelemetry."""

    def subscription(self, name: str, values: Mapping[str, Any]) -> SiteSubscription:
        """A subscription that a table with these values would declare in the file."""
        table = Table(self.file, f"subscriptions.{name}", dict(values), [])
        _share_brokers(Table(self.file, "kafka", dict(self.kafka), []), [table])
        return _subscription(name, table, self.policy, self.settings.caps, self.streams)

    def with_registered(self) -> dict[str, SiteSubscription]:
        """What the file declares, and what was registered through the service and can still be read."""
        found = dict(self.subscriptions)
        checkpoint = Checkpoint.at(self.checkpoint)
        for name, each in Registry(checkpoint).tables.items() if checkpoint.is_made() else ():
            with suppress(AnabranchError):
                found[name] = self.subscription(name, each.table)
        return found

    def check_files(self, dead_letters: Where | None = None, late_items: Where | None = None) -> None:
        """Refuse files that conflict; those given here override those of the site."""
        read = [
            Claim(self.file, "the site file"),
            *(Claim(each.file, f"the query of '{name}'") for name, each in self.subscriptions.items() if each.file),
            *(Claim(file, f"the DTD of '{name}'") for name, file in self.schemas.items()),
            *document_claims(self.documents),
            *([Claim(self.endpoint.token_file, "the file with the token")] if self.endpoint.token_file else ()),
        ]
        others = {
            "the log": self.log,
            DEAD_LETTERS: dead_letters or self.dead_letters,
            LATE_ITEMS: late_items or self.late_items,
        }
        texts = {name: each.text for name, each in self.subscriptions.items()}
        sinks = {name: each.sink for name, each in self.subscriptions.items() if each.sink is not None}
        check_sinks(self.streams, texts, sinks, checkpoint=self.checkpoint, files=others, read=read)


def read_site(path: Path) -> SiteDescription:
    """Read a site with all the files it names; `UsageError` says what is wrong and where."""
    top = read_tables(path)
    engine = top.table("engine")
    streams = top.tables("streams")
    subscriptions = top.tables("subscriptions")
    functions = top.table("functions")
    documents = top.tables("documents")
    kafka = top.table("kafka")
    brokers = dict(kafka.values)
    _share_brokers(kafka, (*streams.values(), *subscriptions.values()))
    http = top.table("http")
    top.done()
    checkpoint = engine.where("checkpoint")
    if checkpoint is None:
        hint = engine.misspelt("checkpoint") or 'as in checkpoint = "state"'
        raise UsageError(f"'{path}': [engine] lacks 'checkpoint'", hint=hint)
    policy, settings = _policy(engine, "accumulate"), _settings(engine)
    schemas = {name: file for name, table in streams.items() if (file := table.named("dtd")) is not None}
    declared = {name: _stream(name, table, Checkpoint.at(checkpoint), subscriptions) for name, table in streams.items()}
    site = SiteDescription(
        path.absolute(),
        path.absolute().parent / engine.text("name", path.name),
        checkpoint,
        settings,
        engine.path("log"),
        engine.where("dead_letters"),
        engine.where("late"),
        declared,
        {name: _subscription(name, table, policy, settings.caps, declared) for name, table in subscriptions.items()},
        schemas,
        functions_of(functions),
        documents_of(documents, streams),
        _endpoint(http),
        policy,
        brokers,
        engine.flag("traces", default=False),
    )
    engine.done()
    http.done()
    site = _with_displays(site)
    try:
        site.check_files()
    except FileConflict as error:
        places = {"the log": (engine, "log"), LATE_ITEMS: (engine, "late"), DEAD_LETTERS: (engine, "dead_letters")}
        places |= {sink_use(name): (table, "path") for name, table in subscriptions.items()}
        places |= {stream_use(name): (table, "path") for name, table in streams.items()}
        table, key = places.get(error.use, (engine, "checkpoint"))
        raise table.wrong(error.message, key=key, hint=error.hint) from None
    return site


def _share_brokers(kafka: Table, tables: Iterable[Table]) -> None:
    """Let tables that name a topic have the brokers and settings of [kafka] where they have none of their own."""
    brokers = kafka.text("brokers", None)
    for table in tables:
        own = table.values.get("kafka", {})
        if "kafka" not in (table.values.get("source"), table.values.get("sink")) or not isinstance(own, dict):
            continue
        if brokers is not None:
            table.values.setdefault("brokers", brokers)
        try:
            table.values["kafka"] = flat_settings(kafka.values) | flat_settings(own)
        except UsageError as error:
            raise table.wrong(error.message, key="kafka", hint=error.hint) from None


def _settings(engine: Table) -> Settings:
    default = Settings()
    keep = engine.take("keep", lambda value: isinstance(value, int | str), "a number of epochs or a size", None)
    return Settings(
        trigger_ms=engine.whole("trigger_ms", default.trigger_ms),
        keep=Keep.parse(keep),
        limits=Limits(steps=max_steps_of(engine)),
        caps=_caps(engine, SITE_CAPS),
        shards=_tasks(engine, "shards"),
        strands=_tasks(engine, "strands"),
        sharing=engine.flag("sharing", default=True),
        accents=engine.flag("accents", default=True),
        epoch_bytes=engine.whole("epoch_bytes", default.epoch_bytes),
        epoch_files=engine.whole("epoch_files", None),
    )


def _caps(table: Table, default: CostCaps) -> CostCaps:
    """What a subscription may take (LAWS 2.9), as a table says, or else as by default."""
    held, overruns = table.whole("max_held", default.held), table.whole("max_overruns", default.overruns)
    return CostCaps(held, overruns)


def _tasks(engine: Table, key: str) -> int | None:
    found = engine.whole(key, None)
    if found is not None and found > _MOST_TASKS:
        raise engine.wrong(f"'{key}' may be {_MOST_TASKS:,} at most", key=key)
    return found


def _endpoint(http: Table) -> EndpointSettings:
    default = EndpointSettings()
    limits = sized(http, "max_body", default.max_body), http.whole("connections", default.connections)
    try:
        return EndpointSettings(http.text("listen", default.listen), http.path("token_file"), *limits)
    except UsageError as error:
        raise http.wrong(error.message, key="listen", hint=error.hint) from None


def _stream(name: str, table: Table, checkpoint: Checkpoint, subscriptions: Collection[str]) -> Source:
    found = source_of(name, table, declared_timing, checkpoint)
    table.done()
    if found.answer and found.answer not in subscriptions:
        hint = did_you_mean(found.answer, subscriptions)
        raise table.wrong(f"there is no subscription '{found.answer}'", key="of", hint=hint)
    return found


def _with_displays(site: SiteDescription) -> SiteDescription:
    """Mark the streams that are displays as streams of updates, and those that are answers in JSON as streams of JSON
    (LAWS 3.12)."""
    streams = dict(site.streams)
    while shown := [
        each for each in streams.values() if each.answer and not each.updates and _shows(site, each.answer, streams)
    ]:
        streams |= {each.name: replace(each, updates=True) for each in shown}
    for each in [each for each in streams.values() if each.answer and _is_json(site, each.answer, streams)]:
        streams[each.name] = replace(each, format="json", root=each.root or "answer")
    return replace(site, streams=streams)


def _is_json(site: SiteDescription, name: str, streams: Mapping[str, Source]) -> bool:
    """Whether a subscription answers in JSON; what is wrong with its query is told later."""
    inputs = Inputs(tuple(streams.values()), site.documents, site.functions)
    try:
        return inputs.gives_json(inputs.check(site.subscriptions[name].text, name, site.subscriptions[name].language))
    except AnabranchError:
        return False


def _shows(site: SiteDescription, name: str, streams: Mapping[str, Source]) -> bool:
    """Whether the answer of a subscription is a display; errors in its query are reported later."""
    inputs = Inputs(tuple(streams.values()), site.documents, site.functions)
    try:
        asked = site.subscriptions[name]
        return prepare(name, asked.text, inputs, "spark", endless=True, language=asked.language).shows
    except AnabranchError:
        return False


def _subscription(
    name: str, table: Table, policy: Policy, caps: CostCaps, streams: Mapping[str, Source]
) -> SiteSubscription:
    planned = plan_of(table)
    if planned is not None:
        sink, chosen, caps = _sink(name, table, json=False), _policy(table, policy), _caps(table, caps)
        table.done()
        return SiteSubscription(*planned, sink, chosen, is_plan=True, caps=caps)
    file, text = table.where("query"), table.text("text", None)
    if file is not None and text is not None:
        raise table.wrong("'query' names a file with the query, and 'text' is the query: give one of them", key="text")
    if file is not None:
        text, language = read_text(file), language_of_file(file, _language(table))
    elif text is not None:
        language = _language(table)
    else:
        raise table.missing(
            "query", "it names the file with the query; or give the query itself as 'text', or a 'plan'"
        )
    json = "sink" in table.values and _writes_json(text, language, streams)
    sink = _sink(name, table, json=json)
    chosen, begin = _policy(table, policy), table.text("from", "now")
    if begin not in ("now", "beginning"):
        raise table.wrong(f"'from' takes 'now' or 'beginning', not '{begin}'", key="from")
    caps = _caps(table, caps)
    table.done()
    return SiteSubscription(text, file, sink, chosen, language, replays=begin == "beginning", caps=caps)


def printed_of(name: str, declared: SiteSubscription, checking: Checking) -> str:
    """The text under which a subscription is registered; raises for one that is wrong."""
    if declared.is_plan:
        return checking.written(name, read_plan(declared.text), sink=declared.sink)
    return checking.printed(name, declared.text, label=declared.label, sink=declared.sink, language=declared.language)


def _language(table: Table) -> Language | None:
    given = table.text("language", None)
    found = next((each for each in LANGUAGES if each == given), None)
    if given is not None and found is None:
        raise table.wrong(f"the language '{given}' is unknown", key="language", hint=f"use {' or '.join(LANGUAGES)}")
    return found


def _writes_json(text: str, language: Language | None, streams: Mapping[str, Source]) -> bool:
    """Whether a query gives JSON by its writing, and the formats that its streams declare.

    What is wrong with it is told later.
    """
    declared = {each.name: each.item_name for each in streams.values() if each.format == "json"}
    try:
        return outputs_of(check(read_query(text, language=language)).query).form(declared) == "json"
    except AnabranchError:
        return False


def _policy(table: Table, default: Policy) -> Policy:
    name = table.text("policy", default)
    if name not in POLICIES:
        raise table.wrong(f"the policy '{name}' is unknown", hint=f"use {', '.join(POLICIES)}")
    return name


def _sink(name: str, table: Table, *, json: bool) -> Sink | None:
    kind, path = table.text("sink", None), table.where("path")
    match kind, path:
        case None, None:
            return None
        case "files", Location():
            try:
                return Files(file_of(path, name, json=json))
            except UsageError as error:
                raise table.wrong(
                    error.message, key="path", hint='name the file itself, as in path = "out/answer.xml"'
                ) from None
        case "parquet", Location():
            try:
                return Parquet(path, table.text("changes", None))
            except UsageError as error:
                raise table.wrong(error.message, key="changes", hint=error.hint) from None
        case "console", None:
            return Console()
        case "kafka", None:
            return _topic(table)
        case "console" | "kafka", _:
            raise table.wrong(f"the sink '{kind}' takes no 'path'")
        case ("files" | "parquet") | None, _:
            raise table.wrong("'sink' and 'path' go together")
    raise table.wrong(f"the sink '{kind}' is unknown", hint="use files, parquet, kafka or console")


def _topic(table: Table) -> Kafka:
    brokers, topic = (
        table.needed("brokers", "as in 'localhost:9092', here or in [kafka]"),
        table.needed("topic", "a name"),
    )
    settings = table.take("kafka", lambda value: isinstance(value, dict), "a table of settings", {})
    try:
        cluster = KafkaCluster.of(brokers, settings, table.file.absolute().parent)
        return Kafka(cluster, topic, key=table.text("key", None), changes=table.text("changes", None))
    except UsageError as error:
        raise table.wrong(error.message, hint=error.hint) from None
