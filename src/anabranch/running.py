"""`anabranch run`: a site at work until it is stopped, and `anabranch answer`: its committed answers.

A run watches its site: changes take effect with the next epoch, without a restart.
A new version with an error is reported and the old one stays as a whole.
SIGTERM and SIGINT let the epoch at work finish, and a second one does not; kill -9 only makes it run again.

Every event is one line of JSON in the log, which is standard error unless the site names a file; on a terminal a
display replaces the lines of epochs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event
from typing import TextIO, TypeAlias

from anabranch.endpoint.opening import TrunkEndpoint
from anabranch.engine.converting import converted
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import Checking, prepare
from anabranch.engine.registering import import_all
from anabranch.engine.replaying import replayed
from anabranch.engine.reports.timelines import converted_line, line
from anabranch.errors import AnabranchError, UsageError, did_you_mean
from anabranch.language import print_query
from anabranch.language.checks.outputs import AnswerForm
from anabranch.law.calls import ImportedFunction
from anabranch.law.steps import allow
from anabranch.run_control import Log, Waits, Watch, changes, reason_of, signals
from anabranch.site import SiteDescription, read_site
from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.epoch.trunk import Trunk
from anabranch.spark.hosts.spark_host import SparkHost
from anabranch.spark.options import SparkOptions
from anabranch.spark.plan.kinds import not_begun
from anabranch.spark.plan.kinds.kind import QueryContext
from anabranch.spark.plan.wanted import Listener, Workload
from anabranch.spark.session import start_session
from anabranch.spark.sinks import Console as ConsoleSink
from anabranch.spark.sinks import Sink
from anabranch.storage import Where
from anabranch.visible import note

_Functions: TypeAlias = Mapping[str, ImportedFunction]


@dataclass(frozen=True, slots=True)
class Outputs:
    """The outputs named on the command line; its files override those of the site."""

    dead_letters: Where | None
    late_items: Where | None
    console: TextIO | None
    """For console sinks; None is standard output at the time of printing."""


def run(
    file: Path,
    *,
    once: bool = False,
    dead_letters: Where | None = None,
    late_items: Where | None = None,
    stop: Event | None = None,
    spark: SparkOptions | None = None,
) -> None:
    """Run a site: to the end of the present input (`once`), or until a signal comes or `stop` is set.

    `spark` says which Spark it runs on, by default one of its own on this machine.
    """
    site = read_site(file)
    site.check_files(dead_letters, late_items)  # before any of them is written, including the log
    allow(site.settings.limits.steps)
    # On a terminal the display stays below what is printed; output to a file or pipe must bypass it.
    outputs = Outputs(dead_letters, late_items, None if sys.stdout.isatty() else sys.stdout)
    functions = site.functions
    stop = stop or Event()
    with ExitStack() as held:
        log = held.enter_context(Log.opened(site.log))
        import_all(functions)
        warn = partial(_warn, log)
        wanted = _wanted(site, outputs, functions, warn)
        if not once and any(each.http is not None for each in site.streams.values()):
            site.endpoint.token()  # who lacks one should not wait for Spark
        Checkpoint.make(site.checkpoint, site.owner)
        log.say("starting Spark")
        session = start_session(spark, tell=warn)
        come = held.enter_context(signals(stop))
        listener = Listener(log.epoch, warn)
        trunk = held.enter_context(Trunk(SparkHost(session), site.checkpoint, site.settings, functions, listener))
        endpoint = held.enter_context(TrunkEndpoint(trunk, site.endpoint, warn, listens=not once))
        with endpoint.opened(wanted.streams.values()):
            trunk.want(wanted)
        trunk.start(once=once)
        log.event("started", run=trunk.run, epoch=trunk.last + 1, subscriptions=len(site.subscriptions))
        _tell_addresses(endpoint, {}, log)
        watch, waits = Watch(_files(file, site)), Waits(log, trunk.waits)
        while trunk.active and not stop.is_set():
            trunk.wait(lambda: stop.is_set() or watch.touched() or waits.due())
            if not stop.is_set() and watch.touched():
                site = _reload(file, watch, trunk, endpoint, site, outputs, functions, log)
            if waits.due():
                waits.tell()
        if once and not stop.is_set():
            waits.tell(at_once=True)
        endpoint.close()
        trunk.stop(lambda: come.hurry)
        trunk.raise_failure()
        log.event("stopped", epoch=trunk.last, reason=reason_of(come, stop))


def committed(file: Path, name: str, *, timeline: bool = False, convert: AnswerForm | None = None) -> Iterator[str]:
    """The committed answer of one subscription of a site, complete and in order, in pieces.

    With `timeline`, its displays, one line of JSON for each moment that changed it; with `convert`, in this form.
    """
    site = read_site(file)
    import_all(site.functions)
    wanted = site.subscriptions.get(name)
    if Checkpoint.at(site.checkpoint).is_made():
        log = AnswerLog(Checkpoint.open(site.checkpoint, site.owner))
        found = log.subscription(name)
        if found is not None:
            answer = log.answer(found, site.functions)
            if timeline:
                return map(line if convert is None else partial(converted_line, to=convert), log.moments(found))
            if not answer.whole and not found.shows:
                note(f"the beginning of '{name}' is no longer kept")
            return iter(answer) if convert is None else converted(answer, convert)
    if wanted is None:
        hint = did_you_mean(name, site.subscriptions)
        raise UsageError(f"'{file}' has no subscription '{name}', and none has run", hint=hint)
    prepared = prepare(name, wanted.text, _inputs(site, site.functions), "spark", label=str(wanted.file), endless=True)
    known = QueryContext.of(site.streams.values(), site.functions)
    nobody = not_begun(name, print_query(prepared.checked.query), known)
    if timeline:
        return iter(())
    empty = AnswerLog(Checkpoint.at(site.checkpoint)).answer(nobody, site.functions)
    return iter(empty) if convert is None else converted(empty, convert)


def _tell_addresses(endpoint: TrunkEndpoint, before: Mapping[str, str], log: Log) -> None:
    """Log where streams are pushed, unless that is as it was before."""
    if endpoint.streams != before:
        log.event("listening", streams=endpoint.streams)


def _warn(log: Log, message: str) -> None:
    log.event("warning", message=message)


def _inputs(site: SiteDescription, functions: _Functions) -> Inputs:
    return Inputs(tuple(site.streams.values()), site.documents, functions)


def _wanted(
    site: SiteDescription,
    outputs: Outputs,
    functions: _Functions,
    warn: Callable[[str], None] = lambda message: None,
    known: Collection[str] = (),
) -> Workload:
    """The workload of a site; raises for a query that is wrong, or has to wait for the end.

    State that grows without bound is reported to `warn`, except for the subscriptions `known`.
    """
    site.check_files(outputs.dead_letters, outputs.late_items)
    checking = Checking(_inputs(site, functions))
    texts: dict[str, str] = {}
    sinks: dict[str, Sink] = {}
    streams = dict(site.streams)
    for name, each in site.subscriptions.items():
        texts[name] = checking.printed(name, each.text, label=str(each.file), sink=each.sink, language=each.language)
        if each.replays:
            texts[name], own = replayed(name, texts[name], site.streams)
            streams |= own
        if each.sink is not None:
            sinks[name] = ConsoleSink(outputs.console) if isinstance(each.sink, ConsoleSink) else each.sink
    for name, warnings in checking.growth.items():
        for message in warnings if name not in known else ():
            warn(message)
    return Workload(
        streams,
        texts,
        sinks,
        outputs.dead_letters or site.dead_letters,
        outputs.late_items or site.late_items,
        site.settings.epoch_bytes,
        site.settings.epoch_files,
        documents=site.documents,
        policies={name: each.policy for name, each in site.subscriptions.items()},
    )


# --- changes ----------------------------------------------------------------------------------------------


def _files(file: Path, site: SiteDescription) -> list[Where]:
    """The files of a site that are watched."""
    return [file, *(each.file for each in site.subscriptions.values())]


def _reload(
    file: Path,
    watch: Watch,
    trunk: Trunk,
    endpoint: TrunkEndpoint,
    site: SiteDescription,
    outputs: Outputs,
    functions: _Functions,
    log: Log,
) -> SiteDescription:
    """Apply the new version of a site, or keep the old one and say why; gives the one in force.

    The functions stay those of the start.
    """
    watch.follow(_files(file, site))  # before reading: later writes are another change
    try:
        fresh = read_site(file)
        if fresh == site:
            return site
        same = [name for name, each in fresh.subscriptions.items() if site.subscriptions.get(name) == each]
        pushed = endpoint.streams
        wanted = _wanted(fresh, outputs, functions, partial(_warn, log), same)
        with endpoint.opened(wanted.streams.values()):
            trunk.want(wanted)
    except AnabranchError as error:
        log.event("refused", message=str(error))
        return site
    watch.follow(_files(file, fresh))
    for kind, names in changes(site.streams, fresh.streams).items():
        for name in names:
            log.event(f"stream {kind}", name=name, epoch=trunk.last + 1)
    for kind, names in changes(site.documents, fresh.documents).items():
        for name in names:
            log.event(f"document {kind}", name=name, epoch=trunk.last + 1)
    for kind, names in changes(site.subscriptions, fresh.subscriptions).items():
        for name in names:
            log.event(f"subscription {kind}", name=name, epoch=trunk.last + 1)
    _tell_addresses(endpoint, pushed, log)
    fixed = changes(_fixed(site), _fixed(fresh))["changed"]
    if fixed:
        log.event("warning", message=f"'{', '.join(fixed)}' takes effect with the next start")
    return fresh


def _fixed(site: SiteDescription) -> dict[str, object]:
    """The settings of a site that take effect only with a start."""
    settings = {
        each: getattr(site.settings, each) for each in ("trigger_ms", "shards", "strands", "sharing", "accents")
    }
    others = {"keep": site.settings.keep, "max_steps": site.settings.limits.steps}
    others |= {"functions": site.functions, "log": site.log, "http": site.endpoint}
    return {"checkpoint": site.checkpoint, **settings, **others}
