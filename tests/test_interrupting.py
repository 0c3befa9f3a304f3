"""Signals that end commands: at once, alike, once, and never in the midst of a call of Spark."""

from __future__ import annotations

import signal
from contextlib import ExitStack
from pathlib import Path
from threading import Event, Thread
from types import FunctionType

import pytest

from anabranch.cli import main
from anabranch.cli.interrupting import interruptible
from anabranch.run_control import Log

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_a_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], number: int) -> None:
    """Both give the status 130 and nothing on standard error; afterwards signals are handled as before."""
    before = [signal.getsignal(each) for each in SIGNALS]
    out = tmp_path / "photons"

    def interrupt() -> None:
        while not out.exists():
            Event().wait(0.001)
        signal.raise_signal(number)

    helper = Thread(target=interrupt)
    helper.start()
    assert main(["generate", "photons", "--count", "1000000000", "--out", str(out)]) == 130
    helper.join()
    assert capsys.readouterr() == ("", "")
    assert [signal.getsignal(each) for each in SIGNALS] == before


def test_further_signals_change_nothing() -> None:
    """Whatever is done on the way out is done to its end."""
    done = []

    def on_the_way_out() -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        done.append("on the way out")

    with ExitStack() as held:
        held.enter_context(pytest.raises(KeyboardInterrupt, match="SIGTERM"))
        held.enter_context(interruptible(for_good=False))
        held.callback(on_the_way_out)
        signal.raise_signal(signal.SIGTERM)
    assert done == ["on the way out"]


def test_a_call_of_spark_is_not_broken_off() -> None:
    """A signal that comes during one is put off until the call has returned."""
    returned: list[str] = []

    def call(told: list[str]) -> None:
        signal.raise_signal(signal.SIGINT)
        told.append("returned")

    spark = FunctionType(call.__code__, {"__name__": "py4j.clientserver", "signal": signal})
    with pytest.raises(KeyboardInterrupt, match="SIGINT"), interruptible(for_good=False):
        wait_behind(spark, returned)
    assert returned == ["returned"]


def wait_behind(call: FunctionType, told: list[str]) -> None:
    """Call, then wait to be interrupted."""
    call(told)
    assert not Event().wait(60), "nobody sets it"
    pytest.fail("the signal is lost")


def test_a_signal_before_a_run_is_at_work_stops_it(tmp_path: Path) -> None:
    """The log says so, with the signal as the reason."""
    with interruptible(for_good=False), Log.opened(tmp_path / "log"):
        signal.raise_signal(signal.SIGTERM)
    assert '"event": "stopped", "reason": "SIGTERM"' in (tmp_path / "log").read_text()
