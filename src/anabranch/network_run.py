"""`anabranch network run`: all peers of a network on this machine, or some of them, until they are stopped.

A run watches its file: changes of subscriptions, thin peers and streams take effect without a restart, and a new
version with an error is reported and the old one stays as a whole.
Of a network that runs in parts, the part with the first super-peer does, and the others hear of it.
A thin peer that is removed from the file has left: its subscriptions are cancelled and its streams end.
Other changes, of super-peers and links above all, take effect with the next start.

SIGTERM and SIGINT let the epochs at work finish; kill -9 only makes them run again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from anabranch.engine.converting import converted
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import Checking
from anabranch.errors import AnabranchError, UsageError
from anabranch.language.checks.outputs import AnswerForm
from anabranch.law.steps import allow
from anabranch.network.description import Network, read_network
from anabranch.network.needs import plan_in
from anabranch.network.planner import Planner
from anabranch.peers.dead_letters import LetterFile
from anabranch.peers.inspection import RanNetwork
from anabranch.peers.parts import ChangeInterrupted
from anabranch.peers.programs import check_declared_times
from anabranch.peers.running import RunningNetwork
from anabranch.run_control import Log, Waits, Watch, changes, reason_of, signals
from anabranch.runtime.registering import import_all
from anabranch.service.settings import ServiceSettings
from anabranch.spark.options import SparkOptions
from anabranch.spark.plan.wanted import Epoch
from anabranch.spark.session import start_session
from anabranch.storage import Where

if TYPE_CHECKING:
    from anabranch.service.network_map import NetworkView

_POLL_SECONDS = 0.2
_FIXED = (
    "topology",
    "strategy",
    "budget",
    "checkpoint",
    "epoch_bytes",
    "log",
    "dead_letters",
    "max_steps",
    "documents",
    "link",
    "functions",
)

Opens = Callable[[Network, Path, Callable[[str, Epoch], None]], RunningNetwork]
"""Opens a network that runs in a folder and reports the epochs of its peers."""


def on_spark(
    network: Network,
    folder: Path,
    on_epoch: Callable[[str, Epoch], None],
    spark: SparkOptions | None = None,
    here: Collection[str] = (),
    on_warning: Callable[[str], None] | None = None,
    wanted: Callable[[], bool] = lambda: True,
    describe: Callable[[], Network] | None = None,
) -> RunningNetwork:
    """A network whose peers, or those of them that are run `here`, run their epochs on Spark."""
    return RunningNetwork(
        network,
        folder,
        session=start_session(spark),
        epoch_bytes=network.epoch_bytes,
        on_epoch=on_epoch,
        here=here,
        on_warning=on_warning,
        wanted=wanted,
        describe=describe,
    )


def run(
    file: Path,
    *,
    once: bool = False,
    dead_letters: Path | None = None,
    stop: Event | None = None,
    opens: Opens | None = None,
    here: Collection[str] = (),
    spark: SparkOptions | None = None,
    serve: ServiceSettings | None = None,
) -> None:
    """Run a network: to the end of the present input (`once`), or until a signal comes or `stop` is set.

    With `serve`, programs and people can see its map meanwhile (`service/network_serving.py`).

    Dead letters go to `dead_letters`, which overrides the file that the network names.
    By default, its peers run on Spark, the one that `spark` says.
    Where only those `here` do, the others are run by other processes.
    """
    if here and once:
        raise UsageError("a part of a network does not know where the others end", hint="leave --once out")
    watch = Watch([file])
    network = read_network(file, here or None)
    watch.also(_files(file, network))
    folder = checkpoint(network, file)
    network.check_files(dead_letters)
    allow(network.max_steps)
    stop = stop or Event()

    def hear(peer: str, epoch: Epoch) -> None:
        log.epoch(epoch, peer)
        if view is not None:
            view.epochs[peer] = epoch.manifest.epoch
        if once and stop.is_set():
            raise _RunStopped

    with ExitStack() as held:
        log = held.enter_context(Log.opened(network.log))
        check(network, here)
        letters = _letters(dead_letters or network.dead_letters, folder)
        view = None if serve is None else held.enter_context(_served(file, network, serve, log))
        import_all(network.functions)
        log.say("starting Spark")
        opens = opens or partial(
            on_spark,
            spark=spark,
            here=here,
            on_warning=lambda message: log.event("warning", message=message),
            wanted=lambda: not stop.is_set(),
            describe=lambda: _described(file, network, here),
        )
        opened = opens(network, folder, hear)
        come = held.enter_context(signals(stop))
        try:
            running = held.enter_context(opened)
        except ChangeInterrupted:
            log.event("stopped", reason=reason_of(come, stop))
            return
        asked = len(running.catalogue.subscriptions)
        log.event("started", strategy=network.strategy, peers=len(network.topology.peers), subscriptions=asked)
        if once:
            with suppress(_RunStopped):
                running.drain()
                Waits(log, running.waits).tell(at_once=True)
        elif not stop.is_set():
            _attend(file, network, running, watch, stop, log, letters, dead_letters, here=here, view=view)
        letters(running)
        log.event("stopped", reason=reason_of(come, stop))


@contextmanager
def _served(file: Path, network: Network, settings: ServiceSettings, log: Log) -> Iterator[NetworkView]:
    """Serve a network; gives what is to be told of it."""
    from anabranch.service.network_map import NetworkView
    from anabranch.service.network_serving import NetworkService  # loads FastAPI only where it is needed

    view = NetworkView(file, network)
    with NetworkService(view, settings, log):
        yield view


class _RunStopped(Exception):
    """Ends a run with `once` before the end of its input, after the committed epochs."""


def _letters(path: Path | None, folder: Path) -> Callable[[RunningNetwork], None]:
    """Writes the dead letters of a network to a file; it keeps its position in a folder."""
    if path is None:
        return lambda running: None
    return LetterFile.of(path, folder).take


def _attend(
    file: Path,
    network: Network,
    running: RunningNetwork,
    watch: Watch,
    stop: Event,
    log: Log,
    letters: Callable[[RunningNetwork], None],
    dead_letters: Path | None,
    *,
    here: Collection[str],
    view: NetworkView | None,
) -> None:
    """Let the network run, and apply changes of its file, unless this is a part of it where it is not planned."""
    plans = not here or network.topology.peers[0] in here
    waits = Waits(log, running.waits)
    if not running.start():
        log.event("warning", message="peers are run in rounds: items have times of arrival, or the machine is too busy")
    if view is not None:
        view.state = "ready"
    while running.running and not stop.wait(_POLL_SECONDS):
        letters(running)
        if plans and watch.touched():
            with suppress(ChangeInterrupted):
                network = _reload(file, watch, network, running, log, dead_letters, here)
            if view is not None:
                view.network = network
        if waits.due():
            waits.tell()
    if view is not None:
        view.state = "stopping"
    running.stop()


def _files(file: Path, network: Network) -> list[Where]:
    return [file, *(each.file for each in network.subscriptions.values())]


def checkpoint(network: Network, file: Path) -> Path:
    """The folder with the durable state of a network."""
    if network.checkpoint is None:
        raise UsageError(f"'{file}': [network] lacks 'checkpoint'", hint='as in checkpoint = "state"')
    return network.checkpoint


def _described(file: Path, network: Network, here: Collection[str]) -> Network:
    """The network as its file has it now, or as it was when that cannot be read."""
    try:
        return read_network(file, here)
    except AnabranchError:
        return network


def check(network: Network, here: Collection[str] = ()) -> None:
    """Refuse a network that cannot be planned, or a query that has to wait for the end; `here` are those of a part."""
    sources = tuple(each.source for each in network.streams.values())
    checking = Checking(Inputs(sources, network.documents, network.functions))
    for name, each in network.subscriptions.items():
        plan = plan_in(each.text)
        if plan is not None:
            checking.written(name, plan)
        else:
            checking.printed(name, each.text, label=str(each.file))
    planner, _ = Planner.of(network)
    if here:
        check_declared_times((each.need for each in planner.catalogue.subscriptions.values()), network.streams)


def committed(file: Path, name: str, convert: AnswerForm | None = None) -> Iterator[str]:
    """The committed answer of one subscription of a network, in pieces; with `convert`, in this form."""
    network = read_network(file, ())
    checkpoint(network, file)
    ran = RanNetwork.of(network)
    if ran is None:
        hint = f"'anabranch network run {file}' lets it run"
        raise UsageError(f"the network of '{file}' has not run yet", hint=hint)
    return converted(ran.answer(name), convert) if convert else ran.answer(name)


# --- changes ----------------------------------------------------------------------------------------------


def _reload(
    file: Path,
    watch: Watch,
    network: Network,
    running: RunningNetwork,
    log: Log,
    dead_letters: Path | None = None,
    here: Collection[str] = (),
) -> Network:
    """Apply the new version of a network, or keep the old one and say why; gives the one in force."""
    watch.follow(_files(file, network))  # before reading: later writes are another change
    try:
        fresh = read_network(file, here or None)
        if fresh == network:
            return network
        moved = changes(network.streams, fresh.streams)["changed"]
        if moved:
            raise UsageError(f"the stream '{moved[0]}' is read already, and cannot become another one")
        fresh.check_files(dead_letters)
        check(fresh, here)
    except AnabranchError as error:
        log.event("refused", message=str(error))
        return network
    watch.also(_files(file, fresh))
    for kind, name in _carry_out(network, fresh, running):
        log.event(kind, name=name)
    fixed = [key for key in _FIXED if getattr(network, key) != getattr(fresh, key)]
    if fixed:
        log.event("warning", message=f"'{', '.join(fixed)}' takes effect with the next start")
    return fresh


def _carry_out(old: Network, new: Network, running: RunningNetwork) -> Iterator[tuple[str, str]]:
    """Change a running network, and report the changes: first removals, then, at one place of all streams, the rest.

    So a subscription that comes with its stream sees all of it.
    """
    thin, streams = changes(old.thin, new.thin), changes(old.streams, new.streams)
    asked = changes(old.subscriptions, new.subscriptions)
    for name in (*thin["removed"], *thin["changed"]):
        running.leave(name)
        yield "peer left", name
    for name in streams["removed"]:
        if (
            old.streams[name].by in new.thin or old.streams[name].by in new.topology.places
        ):  # else it left with its peer
            running.end_stream(name)
        yield "stream removed", name
    for name in (*thin["added"], *thin["changed"]):
        running.join(name, new.thin[name].at)
        yield "peer joined", name
    with running.together():
        gone = [name for name in (*asked["removed"], *asked["changed"]) if name in running.catalogue.subscriptions]
        if gone:
            running.cancel(*gone)
        for name in streams["added"]:
            each = new.streams[name]
            running.register_stream(each.source, each.at, each.by, each.rate, accents=each.accents)
        for name in (*asked["added"], *asked["changed"]):
            query = new.subscriptions[name]
            running.register(name, query.text, query.at, query.by)
    yield from (("stream added", name) for name in streams["added"])
    yield from ((f"subscription {kind}", name) for kind, names in asked.items() for name in names)
