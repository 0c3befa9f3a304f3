"""What all tests share: those that start a JVM are marked `spark` and run last, so cheap failures show first.

Those that need a Kafka broker are among them; there is one broker for the run (`brokers.py`).

Those with very many cases are marked `mass`, and share a budget of time; of those marked `kills` some are drawn
(`mass.py`).

With two processes (`pytest -n 2 --dist worksteal`, as in `make test`) each has a Spark of its own; who is done first
takes half of what the other has left, from its end.
"""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from costs import bounded
from mass import Mass, examples, not_drawn, seed_of, settle_amount, share_of, shares
from oracle.counting import compared
from s3 import S3Server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from brokers import Broker

MASS = "mass"
SEED = pytest.StashKey[int]()
SHARES = pytest.StashKey[dict[str, float]]()
BROKER = pytest.StashKey[Path]()
LEFT = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Settle how much the run does, its seed, and the folder of its broker."""
    settle_amount(config)
    settings.register_profile("usual", examples(100))
    settings.load_profile("usual")
    config.stash[SEED] = seed_of(config)
    handed = getattr(config, "workerinput", {}).get("broker")
    config.stash[BROKER] = Path(handed or tempfile.mkdtemp(prefix="anabranch-broker-"))
    if handed is None:
        (config.stash[BROKER] / "owner").write_text(str(os.getpid()))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the broker, if there was one; whoever has been handed it leaves that to the one that handed it out."""
    folder = config.stash[BROKER]
    if hasattr(config, "workerinput"):
        return
    if (folder / "pid").exists():
        from brokers import stop

        stop(folder)
    shutil.rmtree(folder)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Where tests run in several processes, all have the same seed and the same broker."""
    node.workerinput["seed"] = node.config.stash[SEED]
    node.workerinput["broker"] = str(node.config.stash[BROKER])


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Move the tests that start a JVM, by mark or by fixture, behind the others; otherwise keep the order.

    Those that need what takes minutes to build or to fetch are chosen only by name.
    """
    for mark in "s3", "peers":
        if mark not in config.option.markexpr:
            left_out = [item for item in items if item.get_closest_marker(mark) is not None]
            config.hook.pytest_deselected(items=left_out)
            items[:] = [item for item in items if item.get_closest_marker(mark) is None]
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        for name in {"spark", "mass"}.intersection(fixtures):
            item.add_marker(name)
        if "broker" in fixtures:
            item.add_marker("spark")
    items.sort(key=lambda item: item.get_closest_marker("spark") is not None)


@pytest.hookimpl(trylast=True, specname="pytest_collection_modifyitems")  # behind -m and -k
def pytest_kills_are_drawn(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out most of the tests that kill runs on Spark; the summary says which."""
    left = not_drawn(items, config.stash[SEED])
    config.stash[LEFT] = [item.nodeid for item in left]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Divide the budget of the mass tests among those that were chosen.

    Search for garbage less often, and never among what stays: thousands of tests and all that they have imported.

    Else every seventh second of a run would go by in that search.
    """
    session.config.stash[SHARES] = shares(session.items)
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 50)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where tests run in several processes, tell the one that reports which queries were compared with Saxon."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["compared"] = sorted(compared)
        session.config.workeroutput["left"] = session.config.stash[LEFT]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """... which takes it from each that has ended."""
    told = getattr(node, "workeroutput", {})
    compared.update(told.get("compared", ()))
    node.config.stash[LEFT] = told.get("left", [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A line behind the test results, if there were mass tests, and one each if some were left out or queries were
    compared."""
    counts = [
        each for report in terminalreporter.getreports("") for name, each in report.user_properties if name == MASS
    ]
    if counts:
        done, total = (sum(each) for each in zip(*counts, strict=True))
        seed = terminalreporter.config.stash[SEED]
        terminalreporter.write_line(f"mass: {done:,} of {total:,} cases, ANABRANCH_SEED={seed}")
    if left := terminalreporter.config.stash.get(LEFT, []):
        terminalreporter.write_line(f"kills: not drawn by this seed, but run by make mass: {', '.join(left)}")
    if compared:
        terminalreporter.write_line(f"oracle: {len(compared)} different generated queries compared with SaxonC-HE")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """A test that costs too much for a fast run fails there."""
    with bounded(item):
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A mass test that fails says which case it was."""
    report = yield
    mass = getattr(item, "funcargs", {}).get(MASS)
    if report.failed and isinstance(mass, Mass):
        report.sections.append((MASS, f"case {mass.case}, ANABRANCH_SEED={mass.seed}"))
    return report


@pytest.fixture
def mass(request: pytest.FixtureRequest) -> Iterator[Mass]:
    """For a test with very many cases: which of them to run."""
    config = request.config
    found = Mass(config.stash[SEED], share_of(request.node, config.stash[SHARES]))
    yield found
    request.node.user_properties.append((MASS, (found.done, found.total)))


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """The seed of the run."""
    return request.config.stash[SEED]


@pytest.fixture(scope="session", autouse=True)
def hurried() -> Iterator[None]:
    """Files are not waited for, since no test pulls the plug, and a JVM does not polish code that soon ends.

    The one is a fifth of the time of the tests without Spark, the other a third of the work of those with it.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)  # which minds a handle that is none, too
        patch.setenv("SPARK_SUBMIT_OPTS", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")
        yield


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark that all tests share; a start costs seconds."""
    from anabranch.spark.session import start_session  # here, so that other tests do not pay for importing pyspark

    session = start_session(cores=2)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def broker(request: pytest.FixtureRequest) -> Broker:
    """The one Kafka broker of the run, in all its processes."""
    from brokers import started

    return started(request.config.stash[BROKER])


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A real S3 server, for tests that are marked `s3`."""
    server = S3Server.start(tmp_path_factory.mktemp("s3") / "data")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment.items():
            patch.setenv(name, value)
        yield server
    server.stop()
