"""`make soak`: an hour, or any other time, of a site under all that users and faults do to it, and what it holds.

usage: run.py [MINUTES] [--subscriptions N] [--seed N] [--svg FILE]

`anabranch serve` runs a site on Spark, and `anabranch network run` a network beside it, each in processes of its own.
Items come to six streams all the time, late and bad ones, accents and updates among them; a hundred of five thousand
subscriptions leave each minute, and as many come (`crowd.py`).
The site is stopped and started once, and killed twice, at first its driver, then its JVM too; so is the network.
Meanwhile memory, open files, threads, state on disk and the time to an answer are sampled (`watching.py`).

In the end all curves have to be flat from the middle of the run on (`flatness.py`), and every answer must be what
recomputation from scratch says (`judging.py`): of all subscriptions that look at one item at a time, by arithmetic,
and by the law of those that were there through the restarts and of a sample of the others.

Prints what it does, one line for each check, and last how many have passed and failed; the exit status is 1 if any has
failed. The minutes may be in ANABRANCH_SOAK_MINUTES, too.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from random import Random
from time import monotonic, sleep
from typing import Literal, TypeAlias

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from anabranch.algebra.display.replay import OPENING
from anabranch.client import RemoteSite, connect
from anabranch.engine.finite import answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import prepare
from anabranch.site import read_site
from anabranch.spark.answers.log import AnswerFrame
from progress import Progress
from service.killed import Killed, Victim, free_port
from service.local_service import is_ready
from soak.crowd import ALWAYS, KINDS, MOVERS, Crowd, Kind
from soak.flatness import flatness
from soak.judging import Judges
from soak.lives import Life, Lives
from soak.picture import draw
from soak.site import ANABRANCH, NETWORK_QUERIES, Feeder, NetworkAtWork, write_network, write_site
from soak.streams import RATES, GrowingStream, broken_lines
from soak.watching import BOUNDS, PingClient, Sampler, curves, panels

WARM = 0.5
"""The share of the run that is not judged: processes have started anew in it, caches and the kept epochs fill."""
RESTARTS: Mapping[float, Victim | None] = {0.15: None, 0.25: "process", 0.35: "both"}
"""After which share of the run the site is stopped, or what of it is killed."""
NETWORK_KILL = 0.2
SAMPLED = 84
"""How many answers the law judges of subscriptions that were not there all the time, or that arithmetic judges."""
Answered: TypeAlias = tuple[str, Life, Kind]
"""A subscription by name, what it was answered, and its kind."""
_CHURN = 0.02
"""The share of all subscriptions that leave each minute, and come."""
_CHURN_SECONDS = 6.0
_PATIENCE = 900.0
"""Seconds that a step may take: the machine may have other work."""
_ASKED_SECONDS = 0.5
"""How often a service is asked whether it is ready."""


@dataclass(frozen=True)
class Plan:
    """What is asked of a soak."""

    minutes: float
    subscriptions: int
    seed: int
    svg: Path

    @property
    def sample_seconds(self) -> float:
        """About two hundred samples, but none more often than every two seconds."""
        return max(2.0, self.minutes * 60 / 200)


class Soak:
    """A site, its network, its users and its watchers."""

    def __init__(self, folder: Path, plan: Plan, progress: Progress) -> None:
        self._folder, self._plan, self._progress = folder, plan, progress
        site = write_site(folder)
        self.streams = {name: GrowingStream(name, folder / "in" / name) for name in RATES}
        self.sources = read_site(site).streams
        self.feeder = Feeder(self.streams)
        port = free_port()
        self.service = Killed(folder, port, [ANABRANCH, "serve", site, "--port", str(port)], patience=_PATIENCE)
        self.network = NetworkAtWork(write_network(folder / "network"))
        self.crowd = Crowd(plan.seed)
        self.pings = PingClient(self.service.url, self.feeder)
        self.restarts: list[float] = []
        """The minutes of the restarts."""
        self.covered: list[int] = []
        """The newest epoch before each of them."""
        self._lives: Lives | None = None
        self._client: RemoteSite | None = None

    @property
    def lives(self) -> Lives:
        assert self._lives is not None
        return self._lives

    @property
    def driver(self) -> int:
        assert self.service.process is not None
        return self.service.process.pid

    def begin(self) -> None:
        """Start everything, and register all subscriptions."""
        self.service.start()
        self.network.start()
        self._await_ready()
        self._lives = Lives(self._folder / "state")
        self.feeder.start()
        self.service.watch(lambda: self._look() > 0, "its first epochs")
        assert self._client is not None
        self._client.register_all(self.crowd.come(self._plan.subscriptions, each_kind=True))
        self.pings.start()

    def work(self) -> Sampler:
        """Let time pass, users come and go, and faults happen."""
        plan, began = self._plan, monotonic()
        sampler = Sampler(self._folder, self.pings, self.network, began)
        faults: dict[float, Victim | str | None] = {**RESTARTS, NETWORK_KILL: "network"}
        churned = sampled = told = began
        while (passed := monotonic() - began) < plan.minutes * 60 or faults:
            due = min(faults, default=1.0)
            if passed >= due * plan.minutes * 60:
                self._fault(faults.pop(due), passed / 60)
            if monotonic() - churned >= _CHURN_SECONDS:
                churned = monotonic()
                self._churn()
            if monotonic() - sampled >= plan.sample_seconds:
                sampled = monotonic()
                sample = sampler.sample(self.driver, self.lives.held_by_branch(self._look()))
                if sample is not None and sampled - told >= 60:
                    told = sampled
                    self._progress.say(_told(sample.minute, self.lives.newest, sampler))
            self._look()
            assert self.service.is_at_work, self.service.story("the site has ended")
            assert self.network.is_at_work, self.network.story()
            assert not self.pings.failures, self.pings.failures
            sleep(0.2)
        return sampler

    def end(self) -> None:
        """Let all that came be read, and stop."""
        self.feeder.end()
        self.service.watch(self._has_read_all, "all was read")
        self.service.end()
        self.lives.look()
        self.network.end()

    def give_up(self) -> None:
        """End all that is still there."""
        self.feeder.stop.set()
        self.service.give_up()
        if self.network.is_at_work:
            self.network.kill()

    def _churn(self) -> None:
        assert self._client is not None
        amount = max(1, round(self._plan.subscriptions * _CHURN * _CHURN_SECONDS / 60))
        for name in self.crowd.go(amount):
            self._client.subscription(name).cancel()
        self._client.register_all(self.crowd.come(amount))

    def _fault(self, fault: str | None, minute: float) -> None:
        self.restarts.append(minute)
        match fault:
            case "network":
                self._progress.say("the network is killed, and started again")
                self.network.kill()
                self.network.start()
                return
            case None:
                self._progress.say("the site is stopped, and started again")
                self.covered.append(self._look())
                self.service.end()
            case _:
                self._progress.say(f"kill -9 of {'driver and JVM' if fault == 'both' else 'the driver'}")
                self.covered.append(self._look())
                self.service.kill("both" if fault == "both" else "process")
        self.service.start()
        self._await_ready()

    def _await_ready(self) -> None:
        self.service.watch(self._is_ready, "it was ready")
        self._client = connect(self.service.url, timeout=_PATIENCE)

    def _is_ready(self) -> bool:
        sleep(_ASKED_SECONDS)
        return is_ready(self.service.url)

    def _look(self) -> int:
        """Read what is new in the checkpoint; gives the newest epoch."""
        self.lives.look()
        return self.lives.newest

    def _has_read_all(self) -> bool:
        sleep(_ASKED_SECONDS)
        newest = self._look()
        return all(
            stream.byte_at(*self.lives.end(newest, name)) == stream.size for name, stream in self.streams.items()
        )


def _told(minute: float, epoch: int, sampler: Sampler) -> str:
    sample = sampler.samples[-1]
    site, network = sample.site, sample.network
    return (
        f"minute {minute:.0f}: epoch {epoch}, driver {site.driver_mb:.0f} MB, JVM {site.jvm_mb:.0f} MB, workers "
        f"{site.workers_mb:.0f} MB, network {network.driver_mb + network.jvm_mb + network.workers_mb:.0f} MB, state "
        f"{sample.state_mb:.1f} MB, {site.files} files, {site.threads} threads, latency {sample.latency_ms:.0f} ms, "
        f"{sample.processor:.2f} processors, others {sample.others:.2f}"
    )


# --- what must hold in the end ----------------------------------------------------------------------------------------


def judge_curves(plan: Plan, soak: Soak, sampler: Sampler, progress: Progress) -> None:
    """Check that all curves are flat, and draw them."""
    samples = sampler.samples
    judged = [number for number, each in enumerate(samples) if each.minute >= WARM * plan.minutes]
    times = [samples[number].minute for number in judged]
    load = [samples[number].others for number in judged]
    verdicts: dict[str, str] = {}
    for name, curve in curves(samples).items():
        values = [curve[number] for number in judged]
        found = flatness(times, values, BOUNDS[name], load)
        verdicts[name] = f"{found.share:+.1%}"
        with progress.check(
            f"{name} is flat: {found.level:,.1f}, {found.share:+.2%} in {times[-1] - times[0]:.0f} min"
        ):
            assert found.is_flat, f"it has grown by {found.growth:,.2f}"
    subtitle = (
        f"{plan.subscriptions:,} subscriptions, {round(plan.subscriptions * _CHURN)} come and go each minute; judged "
        f"from minute {WARM * plan.minutes:.0f} on; dotted: stopped or killed, and started again"
    )
    minutes = [each.minute for each in samples]
    picture = draw(
        f"a soak of {plan.minutes:.0f} minutes",
        subtitle,
        minutes,
        panels(samples, verdicts),
        WARM * plan.minutes,
        soak.restarts,
    )
    plan.svg.parent.mkdir(parents=True, exist_ok=True)
    plan.svg.write_text(picture)
    progress.say(f"the curves are in '{plan.svg}'")


def judge_answers(plan: Plan, soak: Soak, progress: Progress, folder: Path) -> None:
    """Check that all answers are what recomputation says."""
    judges = Judges(soak.streams, soak.sources, soak.lives)
    lives = soak.lives.by_name()
    named = [(name, lives[name], kind) for name, kind in soak.crowd.kinds.items() if name in lives]
    through = {name for name, life, _ in named if life.asked.first <= soak.covered[0] and life.last > soak.covered[-1]}
    progress.say(f"{len(named)} subscriptions were there, {len(through)} of them through all restarts")
    plainly = [each for each in named if each[2].judge == "arithmetic"]
    with progress.check(f"{len(plainly)} answers are those of arithmetic, {_count(judges, plainly):,} bytes"):
        _compare(plainly, "by_arithmetic", judges)
    others = [each for each in named if each[2].judge != "arithmetic" and each[0] in through]
    for kind in (each for each in KINDS if each.judge != "arithmetic"):
        mine = sorted((each for each in others if each[2] is kind), key=lambda each: each[1].asked.text)
        with progress.check(f"{len(mine)} answers of '{kind.name}' through all restarts are those of the law"):
            assert mine, "there is none"
            _compare(mine, "by_law", judges)
    rest = [each for each in named if each not in others]
    sample = _sample(rest, plan.seed)
    with progress.check(f"{len(sample)} answers of others, of all kinds, are those of the law"):
        _compare(sample, "by_law", judges)
    for name, text in ALWAYS.items():
        kind = Kind(name, 0, ("tickers",), "document", lambda random: MOVERS)
        with progress.check(f"'{name}', which looks at the past, is that of the law: {len(text)} characters of query"):
            _compare([(name, lives[name], kind)], "by_law", judges)
    sinks = [each for each in named if each[0] in soak.crowd.sinks]
    with progress.check(f"{len(sinks)} files are the answers of their subscriptions, without their ends"):
        _check_sinks(sinks, folder)


def _sample(found: Sequence[Answered], seed: int) -> list[Answered]:
    """Some of them, and of each kind a few."""
    random = Random(f"sample {seed}")
    shuffled = random.sample(found, len(found))
    by_kind = Counter[str]()
    chosen = []
    for each in shuffled:
        by_kind[each[2].name] += 1
        if by_kind[each[2].name] <= SAMPLED // len(KINDS):
            chosen.append(each)
    return chosen


_judging: tuple[Judges, Sequence[Answered], Literal["by_arithmetic", "by_law"]]
"""What the processes that compare answers have in common."""


def _compare(found: Sequence[Answered], by: Literal["by_arithmetic", "by_law"], judges: Judges) -> None:
    """Compare answers, in a process for each core; they have all that is known when they begin."""
    global _judging
    judges.read()
    _judging = judges, found, by
    with ProcessPoolExecutor(os.cpu_count(), get_context("fork")) as pool:
        wrong = [each for each in pool.map(_difference, range(len(found)), chunksize=_chunk(found)) if each]
    assert not wrong, f"{len(wrong)} of {len(found)} are not, as {wrong[0]}"


def _chunk(found: Sequence[Answered]) -> int:
    """How many in a row one process compares: twins stand together, and are asked for once."""
    return max(1, len(found) // 8)


def _difference(number: int) -> str:
    """How an answer differs from what is due; nothing if it does not."""
    judges, found, by = _judging
    name, life, kind = found[number]
    given, due = judges.given(life, kind), getattr(judges, by)(life, kind)
    if given == due:
        return ""
    at = next((at for at, pair in enumerate(zip(given, due, strict=False)) if pair[0] != pair[1]), -1)
    near = slice(max(0, at - 80), at + 120)
    return (
        f"{name} from epoch {life.asked.first} to {life.last}: {len(given)} and {len(due)} characters, at {at}: "
        f"{given[near]!r} is not {due[near]!r}: {life.asked.text}"
    )


def _count(judges: Judges, found: Sequence[Answered]) -> int:
    return sum(len(judges.given(life, kind)) for _, life, kind in found)


def _check_sinks(found: Sequence[Answered], folder: Path) -> None:
    wrong = []
    for name, life, kind in found:
        file = folder / "out" / name
        text = file.read_text() if file.exists() else ""
        is_display = kind.judge in ("display", "document")
        opening = OPENING if is_display else AnswerFrame.of(life.asked).told(life.answer).opening
        if text != opening + life.answer and (text or life.answer):
            wrong.append(f"{name}: {text[:200]!r} is not {(opening + life.answer)[:200]!r}")
    assert not wrong, f"{len(wrong)} are not, as {wrong[0]}"


def judge_letters(soak: Soak, progress: Progress, folder: Path) -> None:
    """Check that each bad element was set aside once, and that the late output has each late item once."""
    letters = [json.loads(line) for line in (folder / "dead.jsonl").read_text().splitlines()]
    found = Counter(each["stream"] for each in letters if not each.get("subscription"))
    due = {name: broken_lines(name, len(stream.lines)) for name, stream in soak.streams.items()}
    with progress.check(f"{sum(due.values())} bad elements were set aside, each once"):
        assert found == Counter({name: count for name, count in due.items() if count}), f"{found}, not {due}"
    late = [json.loads(line) for line in (folder / "late.jsonl").read_text().splitlines()]
    with progress.check(f"{len(late)} late items are told, none of them twice"):
        assert late
        assert len({(each["partition"], each["offset"]) for each in late}) == len(late)


def judge_network(soak: Soak, progress: Progress) -> None:
    """Check the answers of the network."""
    given = soak.network.answers()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "photons"
        file.write_text("".join(soak.streams["photons"].lines))
        inputs = Inputs([replace(soak.sources["photons"], path=file)], finite=True)
        for name, (_, text) in NETWORK_QUERIES.items():
            with answering([prepare(name, text, inputs, "reference")], inputs) as run:
                due = "".join(run.answers[name])
            with progress.check(f"'{name}' of the network, {len(due)} bytes, is that of the law"):
                assert given[name].strip() == due.strip(), f"{given[name][-300:]!r} is not {due[-300:]!r}"


@contextmanager
def _soaking(plan: Plan, progress: Progress, folder: Path) -> Iterator[Soak]:
    soak = Soak(folder, plan, progress)
    try:
        yield soak
    finally:
        soak.give_up()


def run(plan: Plan) -> int:
    """Run a soak; gives the exit status."""
    progress = Progress()
    with tempfile.TemporaryDirectory(prefix="anabranch-soak-") as name:
        folder = Path(name)
        try:
            with _soaking(plan, progress, folder) as soak:
                progress.say(f"{plan.subscriptions} subscriptions for {plan.minutes:g} minutes, seed {plan.seed}")
                soak.begin()
                progress.say("all subscriptions are registered")
                sampler = soak.work()
                progress.say("all that came is read to its end")
                soak.end()
            judge_curves(plan, soak, sampler, progress)
            judge_letters(soak, progress, folder)
            judge_network(soak, progress)
            judge_answers(plan, soak, progress, folder)
        except Exception as error:
            progress.failed += 1
            progress.say(f"FAILED {type(error).__name__}: {str(error)[:4000]}")
    print(f"{progress.passed} passed, {progress.failed} failed")
    return 1 if progress.failed else 0


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="make soak", description="a site under load and faults, and what it holds")
    default = float(os.environ.get("ANABRANCH_SOAK_MINUTES", "60"))
    parser.add_argument("minutes", type=float, nargs="?", default=default)
    parser.add_argument("--subscriptions", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("ANABRANCH_SEED", "1")))
    parser.add_argument("--svg", type=Path, default=Path("build/soak.svg"))
    given = parser.parse_args(arguments)
    return run(Plan(given.minutes, given.subscriptions, given.seed, given.svg))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
