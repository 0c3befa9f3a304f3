"""Which Spark a run is on: what is taken, what is refused, and where the driver listens; no Spark needed."""

from __future__ import annotations

import socket

import pytest

from anabranch.cli import main
from anabranch.errors import UsageError
from anabranch.spark.options import SparkOptions, settings_of

LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


@pytest.mark.parametrize("master", [None, "local", "local[4]", "local[*,4]"])
def test_on_this_machine_everything_is_on_loopback(master: str | None) -> None:
    """The default, and the masters that Spark calls local."""
    options = SparkOptions(master)
    assert options.is_local
    assert options.addresses() == LOOPBACK


def test_on_a_cluster_the_driver_listens_where_the_master_reaches_it() -> None:
    """The address is that of the way to the master; the first of several that answers decides."""
    with socket.create_server(("127.0.0.1", 0)) as master, socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        ports = nobody.getsockname()[1], master.getsockname()[1]
        options = SparkOptions(f"spark://127.0.0.1:{ports[0]},127.0.0.1:{ports[1]}")
        assert not options.is_local
        assert options.addresses() == LOOPBACK


def test_the_address_of_a_driver_can_be_told() -> None:
    """Then nobody is asked, and the driver is bound to the same address unless that is told, too."""
    told = SparkOptions("spark://nobody.invalid:7077", {"spark.driver.host": "10.1.2.3"})
    assert {**told.addresses(), **told.settings} == {
        "spark.driver.host": "10.1.2.3",
        "spark.driver.bindAddress": "10.1.2.3",
    }
    assert SparkOptions("yarn").addresses() == {}


def test_a_master_that_does_not_answer_is_named() -> None:
    """At once, and not after Spark has tried for a minute."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        with pytest.raises(UsageError, match=f"no master answers: 127.0.0.1:{port}: Connection refused"):
            SparkOptions(f"spark://127.0.0.1:{port}").addresses()


@pytest.mark.parametrize("master", ["here", "spark://host", "spark://host:port", "http://host:7077", "localhost:7077"])
def test_what_is_no_master_is_refused(master: str) -> None:
    """With the forms that there are."""
    with pytest.raises(UsageError, match=f"'{master}' is no master of Spark"):
        SparkOptions(master)


def test_spark_connect_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """As a master on the command line, and where the environment would have Spark use it."""
    assert main(["run", "site.toml", "--master", "sc://127.0.0.1:15002"]) == 2
    assert "a session of Spark Connect cannot run a trunk" in capsys.readouterr().err
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:15002")
    with pytest.raises(UsageError, match="SPARK_REMOTE is set"):
        SparkOptions()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("spark.cores.max", "--conf takes KEY=VALUE"),
        ("executor.memory=2g", "'executor.memory' is no setting of Spark"),
        ("spark.master=local", "the setting 'spark.master' is not taken"),
        ("spark.remote=sc://x", "the setting 'spark.remote' is not taken"),
        ("spark.submit.deployMode=cluster", "the setting 'spark.submit.deployMode' is not taken"),
    ],
)
def test_settings_that_are_not_taken_are_refused(given: str, message: str) -> None:
    """What is no setting of Spark, and those that would send the run elsewhere."""
    with pytest.raises(UsageError, match=message):
        SparkOptions("local", settings_of([given]))


def test_settings_are_passed_on_as_they_are() -> None:
    """A value may hold signs of equality; the last of one name counts."""
    given = ["spark.executorEnv.A=b=c", "spark.cores.max=1", "spark.cores.max=2"]
    assert settings_of(given) == {"spark.executorEnv.A": "b=c", "spark.cores.max": "2"}
