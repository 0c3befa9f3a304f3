"""NETWORK.toml: super-peers and links, thin peers, and the streams and subscriptions that they register.

    [network]
    topology = "hypercube"          # or grid, line, star, random; or no word, and links written down
    peers = 8                       # for random also seed = 1
    bandwidth = 1000000             # of every link, in bytes per second; without it no link is ever short
    strategy = "widening"           # or sharing, shipping
    budget = 1.0                    # seconds to plan one subscription
    checkpoint = "state"            # all that a run must not forget; nothing else needs it
    epoch_bytes = 16777216          # how much of its streams a super-peer reads at once, at most
    log = "network.log"             # of a run; without it, standard error
    dead_letters = "dead.jsonl"     # what a run sets aside
    max_steps = 1000000             # how many steps one evaluation may take, for each item in it; more, not fewer
    link = "kafka"                  # or folder: what super-peers in different processes send one another goes this way
    topics = "telescopes"           # the prefix of its topics; or for a folder
    folder = "s3://bucket/between"  # that all of them reach, on a disk or in an object store

    [kafka]                         # as in SITE.toml
    brokers = "localhost:9092"

    [[links]]
    between = ["SP0", "SP1"]
    bandwidth = 2000

    [peers.P0]                      # a thin peer, registered at a super-peer
    at = "SP4"

    [streams.photons]               # as in SITE.toml, and where it comes from
    at = "P0"
    path = "in"
    time = "det_time"
    accents = false                 # it will not evolve

    [subscriptions.vela]
    at = "P1"
    query = "vela.xq"

    [subscriptions.pairs]           # or a plan of operators, as the builder writes it
    at = "P1"
    plan = "pairs.json"

    [functions]                     # as in SITE.toml
    distance = "roads:distance"

    [documents.catalogue]           # as in SITE.toml
    path = "catalogue.xml"

Paths are relative to the file; subscriptions are registered in the order of the file.
Unknown keys are refused by name, with their line.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias, get_args
from urllib.parse import quote

from anabranch.errors import AnabranchError, UsageError, did_you_mean
from anabranch.kafka import KafkaCluster
from anabranch.law.calls import ImportedFunction
from anabranch.network.topology import SHAPES, Link, Topology, built, topology
from anabranch.runtime.registering import functions_of, plan_of
from anabranch.sql import in_xquery
from anabranch.storage import Location, Where
from anabranch.stream.files import (
    DEAD_LETTERS,
    Claim,
    FileConflict,
    check_claims,
    document_claims,
    stream_claims,
    stream_use,
)
from anabranch.stream.limits import Limits
from anabranch.stream.reading.documents import DocumentSource
from anabranch.stream.reading.source import Source
from anabranch.stream.reading.toml_tables import Table, documents_of, max_steps_of, read_tables, read_text, source_of
from anabranch.stream.settings import EPOCH_BYTES
from anabranch.values.declared import declared_timing

_LINKS = "the folder of links"
_PREFIX = re.compile(r"[A-Za-z0-9._-]{1,100}")
Strategy: TypeAlias = Literal["shipping", "sharing", "widening"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)


@dataclass(frozen=True, slots=True)
class ThinPeer:
    """A peer that registers streams and subscriptions at a super-peer; it may come and go."""

    name: str
    at: str


@dataclass(frozen=True, slots=True)
class RegisteredStream:
    """A stream, the super-peer where it comes in, and its items per second, where known."""

    source: Source
    at: str
    by: str
    """The thin peer, or super-peer, that registered it."""
    rate: float | None = None
    accents: bool = True
    """Whether it may evolve."""


@dataclass(frozen=True, slots=True)
class RegisteredQuery:
    """A query or a plan of operators, and the super-peer where it is answered."""

    name: str
    text: str
    file: Where
    at: str
    by: str


@dataclass(frozen=True, slots=True)
class TopicLinks:
    """Topics for what super-peers in different processes send one another: a cluster, and the prefix of their names."""

    cluster: KafkaCluster
    prefix: str

    def between(self, maker: str, reader: str) -> str:
        """The topic of all that a super-peer sends to another."""
        return ".".join((self.prefix, *(quote(each, safe="").replace("%", "_") for each in (maker, reader))))

    @property
    def plan(self) -> str:
        """The topic of the plans, and of all orders."""
        return f"{self.prefix}.plan"

    @property
    def reports(self) -> str:
        """The topic of the reports of the parts."""
        return f"{self.prefix}.reports"


@dataclass(frozen=True, slots=True)
class FolderLinks:
    """A folder for what super-peers in different processes send one another, which all of them reach."""

    folder: Location


@dataclass(frozen=True, slots=True)
class Network:
    """The content of a NETWORK.toml."""

    topology: Topology
    thin: Mapping[str, ThinPeer]
    streams: Mapping[str, RegisteredStream]
    subscriptions: Mapping[str, RegisteredQuery]
    strategy: Strategy
    budget: float
    """The seconds for planning a subscription; then the best plan so far is taken."""
    checkpoint: Path | None = None
    """The folder of a run's durable state; None for a network that is only planned."""
    epoch_bytes: int = EPOCH_BYTES
    log: Path | None = None
    dead_letters: Path | None = None
    file: Path | None = None
    """The NETWORK.toml itself; None for a network that was created otherwise."""
    schemas: Mapping[str, Location] = field(default_factory=dict)
    """The files with the DTDs of streams."""
    max_steps: int = Limits().steps
    """The step limit of one evaluation, for each item in it (LAWS 2.6)."""
    documents: Mapping[str, DocumentSource] = field(default_factory=dict)
    """The files behind `doc()`, which every super-peer reads."""
    link: TopicLinks | FolderLinks | None = None
    """The way of links between super-peers in different processes; None where all are in one."""
    functions: Mapping[str, ImportedFunction] = field(default_factory=dict)
    """The functions of modules that queries may call, which every super-peer imports."""

    @property
    def read(self) -> list[Claim]:
        """The files and folders that are read."""
        return [
            *([Claim(self.file, "the network file")] if self.file else []),
            *stream_claims([each.source for each in self.streams.values()]),
            *(Claim(each.file, f"the query of '{name}'") for name, each in self.subscriptions.items()),
            *(Claim(file, f"the DTD of '{name}'") for name, file in self.schemas.items()),
            *document_claims(self.documents),
        ]

    def part(self, here: Collection[str]) -> tuple[str, ...]:
        """The super-peers that are run in one process; all of them unless some are named."""
        every = self.topology.peers
        for name in here:
            if name not in self.topology.places:
                raise UsageError(f"'{name}' is no super-peer", hint=did_you_mean(name, every))
        found = tuple(name for name in every if not here or name in here)
        if len(found) < len(every) and self.link is None:
            hint = 'set link = "folder" or link = "kafka"'
            raise UsageError("parts of a network need links that reach other processes", hint=hint)
        return found

    def check_files(self, dead_letters: Path | None = None) -> None:
        """Refuse files that conflict; those given here override those of the network."""
        files = {"the log": self.log, DEAD_LETTERS: dead_letters or self.dead_letters}
        written = [Claim(path, use) for use, path in files.items() if path is not None]
        if isinstance(self.link, FolderLinks):
            written.append(Claim(self.link.folder, _LINKS, whole=True))
        state = None if self.checkpoint is None else Claim(self.checkpoint, "the checkpoint", whole=True)
        check_claims(self.read, written, state=state)


def read_network(file: Path, here: Collection[str] | None = None) -> Network:
    """Read a network with all the files it names; `UsageError` says what is wrong and where.

    Where only the super-peers `here` are of interest, streams that come in elsewhere need not be there.
    """
    top = read_tables(file)
    settings = top.table("network")
    links = top.listed("links")
    peers, streams, subscriptions = (top.tables(each) for each in ("peers", "streams", "subscriptions"))
    documents = documents_of(top.tables("documents"), streams)
    link, functions = _link(settings, top.table("kafka")), functions_of(top.table("functions"))
    top.done()
    found = _topology(settings, links)
    strategy = settings.text("strategy", "widening")
    if strategy not in STRATEGIES:
        hint = f"use {', '.join(STRATEGIES)}"
        raise settings.wrong(f"the strategy '{strategy}' is unknown", key="strategy", hint=hint)
    budget = settings.amount("budget", 1.0)
    checkpoint, log, dead_letters = (settings.path(each) for each in ("checkpoint", "log", "dead_letters"))
    epoch_bytes = settings.whole("epoch_bytes", EPOCH_BYTES)
    max_steps = max_steps_of(settings)
    settings.done()
    thin = {name: _thin(name, table, found) for name, table in peers.items()}
    places = {**{each: each for each in found.peers}, **{each.name: each.at for each in thin.values()}}
    schemas = {name: path for name, table in streams.items() if (path := table.named("dtd")) is not None}
    network = Network(
        found,
        thin,
        {name: _stream(name, table, places, here) for name, table in streams.items()},
        {name: _query(name, table, places, documents) for name, table in subscriptions.items()},
        strategy,
        budget,
        checkpoint,
        epoch_bytes,
        log,
        dead_letters,
        file.absolute(),
        schemas,
        max_steps,
        documents,
        link,
        functions,
    )
    try:
        network.check_files()
    except FileConflict as error:
        uses = {"the log": (settings, "log"), DEAD_LETTERS: (settings, "dead_letters")}
        uses[_LINKS] = settings, "folder"
        uses |= {stream_use(name): (table, "path") for name, table in streams.items()}
        table, key = uses.get(error.use, (settings, "checkpoint"))
        raise table.wrong(error.message, key=key, hint=error.hint) from None
    return network


def _link(settings: Table, kafka: Table) -> TopicLinks | FolderLinks | None:
    kind, prefix = settings.text("link", "files"), settings.text("topics", None)
    folder, brokers = settings.where("folder"), kafka.text("brokers", None)
    if kind not in ("files", "folder", "kafka"):
        raise settings.wrong(f"the link '{kind}' is unknown", key="link", hint="use files, folder or kafka")
    if kind != "kafka" and (prefix is not None or brokers is not None or kafka.values):
        raise settings.wrong("'topics' and [kafka] go with link = \"kafka\"")
    if kind != "folder" and folder is not None:
        raise settings.wrong("'folder' goes with link = \"folder\"", key="folder")
    match kind:
        case "files":
            return None
        case "folder":
            if folder is None:
                raise settings.missing("folder", 'a folder that all super-peers reach, as in "s3://bucket/between"')
            return FolderLinks(folder)
        case _:
            return _topic_links(settings, kafka, prefix, brokers)


def _topic_links(settings: Table, kafka: Table, prefix: str | None, brokers: str | None) -> TopicLinks:
    if brokers is None:
        raise kafka.missing("brokers", "as in 'localhost:9092'")
    if prefix is None or not _PREFIX.fullmatch(prefix):
        raise settings.wrong("'topics' is the prefix of the topics of links", key="topics", hint='as in "telescopes"')
    try:
        return TopicLinks(KafkaCluster.of(brokers, kafka.values, kafka.file.absolute().parent), prefix)
    except UsageError as error:
        raise kafka.wrong(error.message, hint=error.hint) from None


def _topology(settings: Table, links: list[Table]) -> Topology:
    shape = settings.text("topology", None)
    count, seed = settings.whole("peers", None), settings.whole("seed", 1)
    bandwidth = settings.amount("bandwidth", None)
    pairs: dict[Link, float | None] = {}
    for table in links:
        ends = table.take("between", _is_pair, 'two super-peers, as in ["SP0", "SP1"]', None)
        if ends is None:
            raise table.missing("between", 'two super-peers, as in between = ["SP0", "SP1"]')
        pairs[(ends[0], ends[1])] = table.amount("bandwidth", bandwidth)
        table.done()
    try:
        if shape is None:
            if not pairs:
                hint = f"write topology = and one of {', '.join(SHAPES)}, or [[links]]"
                raise settings.wrong("nothing says which super-peers there are", hint=hint)
            return topology(dict.fromkeys(each for pair in pairs for each in pair), pairs)
        if count is None:
            raise settings.missing("peers", "how many super-peers, as in peers = 8")
        found = built(shape, count, seed).with_bandwidth(bandwidth)
        return topology(found.peers, {**found.links, **_known(found, pairs, links)}, found.shape)
    except UsageError as error:
        raise error if error.message.startswith("'") else settings.wrong(error.message, hint=error.hint) from None


def _known(found: Topology, pairs: Mapping[Link, float | None], tables: list[Table]) -> dict[Link, float | None]:
    """The links that a built-in shape has already, or gains, between its peers."""
    for pair, table in zip(pairs, tables, strict=True):
        for each in pair:
            if each not in found.places:
                raise table.wrong(f"'{each}' is no super-peer", key="between", hint=_some(found.peers))
    return {found.link(*pair): bandwidth for pair, bandwidth in pairs.items()}


def _thin(name: str, table: Table, found: Topology) -> ThinPeer:
    if name in found.places:
        raise table.wrong(f"'{name}' is a super-peer already", hint="a thin peer needs a name of its own")
    at = table.needed("at", "the super-peer where it registers")
    if at not in found.places:
        raise table.wrong(f"'{at}' is no super-peer", key="at", hint=_some(found.peers))
    table.done()
    return ThinPeer(name, at)


def _stream(name: str, table: Table, places: Mapping[str, str], here: Collection[str] | None) -> RegisteredStream:
    by = _place(table, places)
    is_here = here is None or places[by] in here
    rate = table.amount("rate", None)
    accents = table.flag("accents", default=True)
    found = RegisteredStream(source_of(name, table, declared_timing, is_here=is_here), places[by], by, rate, accents)
    table.done()
    for each in found.source.partitions:
        if each.path is None:
            raise table.wrong(f"'path' takes a path on a disk, not '{each}'", key="path")
    if found.source.heartbeat is not None:
        raise table.wrong("the streams of a network are sent no 'heartbeat' yet", hint="write them into the stream")
    return found


def _query(name: str, table: Table, places: Mapping[str, str], documents: Collection[str]) -> RegisteredQuery:
    by = _place(table, places)
    planned = plan_of(table)
    if planned is not None:
        table.done()
        return RegisteredQuery(name, *planned, places[by], by)
    file = table.path("query")
    if file is None:
        raise table.missing("query", "it names the file with the query; or give a 'plan'")
    table.done()
    try:
        return RegisteredQuery(name, in_xquery(read_text(file), file, documents), file, places[by], by)
    except AnabranchError as error:
        raise table.wrong(error.message, key="query", hint=error.hint) from None


def _place(table: Table, places: Mapping[str, str]) -> str:
    at = table.needed("at", "the peer that registers it")
    if at not in places:
        raise table.wrong(f"there is no peer '{at}'", key="at", hint=_some(tuple(places)))
    return at


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(each, str) for each in value)


def _some(peers: tuple[str, ...]) -> str:
    shown = ", ".join(peers[:8])
    return f"there are {shown}{' and others' if len(peers) > 8 else ''}"
