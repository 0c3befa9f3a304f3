"""`anabranch run`: a site at work until it is stopped, and `anabranch answer`: its committed answers.

A run watches its site: changes take effect with the next epoch, without a restart.
A new version with an error is reported and the old one stays as a whole.
SIGTERM and SIGINT let the epoch at work finish, and a second one does not; kill -9 only makes it run again.

Every event is one line of JSON in the log, which is standard error unless the site names a file; on a terminal a
display replaces the lines of epochs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from threading import Event

from anabranch.endpoint.opening import TrunkEndpoint
from anabranch.engine.converting import converted
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import prepare
from anabranch.engine.reports.timelines import converted_line, line
from anabranch.errors import UsageError, did_you_mean
from anabranch.language import print_query
from anabranch.language.checks.outputs import AnswerForm
from anabranch.law.steps import allow
from anabranch.run_control import Log, Waits, Watch, reason_of, signals
from anabranch.runtime.registering import import_all
from anabranch.service.settings import ServiceSettings
from anabranch.site import read_site
from anabranch.site_work import Outputs, SiteAtWork, tell_addresses
from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.epoch.trunk import Trunk
from anabranch.spark.hosts.host import Host
from anabranch.spark.hosts.local_host import LocalHost
from anabranch.spark.hosts.spark_host import SparkHost
from anabranch.spark.options import SparkOptions
from anabranch.spark.plan.kinds import not_begun
from anabranch.spark.plan.kinds.kind import QueryContext
from anabranch.spark.plan.wanted import Epoch, Listener
from anabranch.spark.session import start_session
from anabranch.storage import Where
from anabranch.visible import note


def run(
    file: Path,
    *,
    once: bool = False,
    dead_letters: Where | None = None,
    late_items: Where | None = None,
    stop: Event | None = None,
    spark: SparkOptions | None = None,
    serve: ServiceSettings | None = None,
    local: bool = False,
) -> None:
    """Run a site: to the end of the present input (`once`), or until a signal comes or `stop` is set.

    `spark` says which Spark it runs on, by default one of its own on this machine; with `local`, none.
    With `serve`, programs and people can ask it meanwhile (`service/`).
    """
    watch = Watch([file])
    site = read_site(file)
    site.check_files(dead_letters, late_items)  # before any of them is written, including the log
    allow(site.settings.limits.steps)
    # On a terminal the display stays below what is printed; output to a file or pipe must bypass it.
    outputs = Outputs(dead_letters, late_items, None if sys.stdout.isatty() else sys.stdout)
    stop = stop or Event()
    with ExitStack() as held:
        log = held.enter_context(Log.opened(site.log))
        import_all(site.functions)
        warn = partial(_warn, log)
        work = SiteAtWork(file, site, outputs, log)
        watch.also(work.files)
        if not once and any(each.http is not None for each in site.streams.values()):
            site.endpoint.token()  # who lacks one should not wait for Spark
        work.checkpoint = Checkpoint.make(site.checkpoint, site.owner)
        trace = held.enter_context(_traced(work))
        tell_service = held.enter_context(_served(work, serve))
        log.say("starting" if local else "starting Spark")
        host: Host = LocalHost() if local else SparkHost(start_session(spark, tell=warn))
        come = held.enter_context(signals(stop))

        def committed_epoch(epoch: Epoch) -> None:
            log.epoch(epoch)
            trace(epoch)
            tell_service(epoch)

        listener = Listener(committed_epoch, warn)
        trunk = held.enter_context(Trunk(host, site.checkpoint, site.settings, work.functions, listener))
        work.restore()
        endpoint = held.enter_context(TrunkEndpoint(trunk, site.endpoint, warn, listens=not once))
        work.begin(trunk, endpoint)
        trunk.start(once=once)
        log.event("started", run=trunk.run, epoch=trunk.last + 1, subscriptions=len(work.entries))
        tell_addresses(endpoint, {}, log)
        work.state = "ready"
        waits = Waits(log, trunk.waits)
        while trunk.active and not stop.is_set():
            trunk.wait(lambda: stop.is_set() or watch.touched() or waits.due())
            if not stop.is_set() and watch.touched():
                work.reload(watch)
            if waits.due():
                waits.tell()
        work.state = "stopping"
        if once and not stop.is_set():
            waits.tell(at_once=True)
        endpoint.close()
        trunk.stop(lambda: come.hurry)
        trunk.raise_failure()
        log.event("stopped", epoch=trunk.last, reason=reason_of(come, stop))


@contextmanager
def _traced(work: SiteAtWork) -> Iterator[Callable[[Epoch], None]]:
    """Trace the epochs of a site, if it asks for that; gives whom to tell of epochs."""
    if not work.site.traces:
        yield lambda epoch: None
        return
    from anabranch.service.watch.tracing import epoch_traces  # loads OpenTelemetry only where it is needed

    with epoch_traces(work.file.name, work.log) as trace:
        yield trace


@contextmanager
def _served(work: SiteAtWork, serve: ServiceSettings | None) -> Iterator[Callable[[Epoch], None]]:
    """Serve a site, if that is asked for; gives whom to tell of epochs."""
    if serve is None:
        yield lambda epoch: None
        return
    from anabranch.service.serving import Service  # loads FastAPI only where it is needed

    with Service(work, serve) as service:
        yield service.epoch


def committed(file: Path, name: str, *, timeline: bool = False, convert: AnswerForm | None = None) -> Iterator[str]:
    """The committed answer of one subscription of a site, complete and in order, in pieces.

    With `timeline`, its displays, one line of JSON for each moment that changed it; with `convert`, in this form.
    """
    site = read_site(file)
    import_all(site.functions)
    wanted = site.with_registered().get(name)
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
    inputs = Inputs(tuple(site.streams.values()), site.documents, site.functions)
    prepared = prepare(name, wanted.text, inputs, "spark", label=wanted.label, endless=True, language=wanted.language)
    known = QueryContext.of(site.streams.values(), site.functions)
    nobody = not_begun(name, print_query(prepared.checked.query), known)
    if timeline:
        return iter(())
    empty = AnswerLog(Checkpoint.at(site.checkpoint)).answer(nobody, site.functions)
    return iter(empty) if convert is None else converted(empty, convert)


def _warn(log: Log, message: str) -> None:
    log.event("warning", message=message)
