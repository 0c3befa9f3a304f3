"""Killed while it sends heartbeats, a run goes on behind those that were sent: no window is lost, none comes twice."""

from __future__ import annotations

import faulthandler
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import pytest

from anabranch.cli import main
from faults.harness import await_end
from mass import Mass

SITE = """
[engine]
checkpoint = "state"

[streams.s]
source = "files"
format = "lines"
path = "in"
time = "t"
heartbeat = "0.2 s"

[subscriptions.tens]
query = "tens.xq"
sink = "files"
path = "out"
"""
TENS = """<tens>{ for $w in stream("s")/*/p |t diff 2 step 1| return <w>{ $w/t, sum($w/t) }</w> }</tens>"""


@pytest.mark.kills
@pytest.mark.spark
def test_no_kill_shows_where_heartbeats_are_sent(
    mass: Mass, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Windows that only heartbeats close are answered before the kill, and with all others once in the end."""
    faulthandler.cancel_dump_traceback_later()  # many processes, of which each has its own limit
    rng = random.Random(mass.seed)
    (tmp_path / "site.toml").write_text(SITE)
    (tmp_path / "tens.xq").write_text(TENS)
    (tmp_path / "in").touch()
    for part in range(mass.amount(10, budget=1)):
        # Far enough behind the items before that heartbeats, which follow the clock, have not come so far.
        times = sorted(rng.sample(range(10_000 * part, 10_000 * part + 60), 12))
        with (tmp_path / "in").open("a") as file:
            file.writelines(f"<p><t>{time}</t></p>\n" for time in times)
        answered_and_killed(tmp_path, f"<t>{times[-1]}</t>")
    given = ["--stream", f"s={tmp_path / 'in'}", "--format", "s=lines", "--time", "s=t", "--engine", "reference"]
    assert main(["query", str(tmp_path / "tens.xq"), *given]) == 0
    expected = capsys.readouterr().out
    assert main(["answer", str(tmp_path / "site.toml"), "tens"]) == 0
    assert capsys.readouterr().out == expected


def answered_and_killed(folder: Path, last: str) -> None:
    """Start a run, wait until both windows that hold the last item are answered, and kill it."""
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            [Path(sys.executable).with_name("anabranch"), "run", folder / "site.toml"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    patience = monotonic() + 180
    while (folder / "out").read_text().count(last) < 2 if (folder / "out").exists() else True:
        alive = process.poll() is None and monotonic() < patience
        assert alive, (folder / "log").read_text()[-3000:]
        sleep(0.01)
    jvm = json.loads((folder / "state" / "run.json").read_bytes().split(b"\n")[0])["jvm"]
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(60)
    await_end(jvm)
