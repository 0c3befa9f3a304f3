"""A site that reads a table and one of its own answers, killed in the midst of an epoch, on Spark."""

from __future__ import annotations

import faulthandler
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from anabranch.running import committed

SITE = """
[engine]
checkpoint = "state"
epoch_bytes = 300

[documents.t]
path = "t.xml"

[streams.s]
path = "in"
format = "lines"
root = "r"

[streams.found]
source = "answer"
of = "looked"

[subscriptions.looked]
query = "looked.xq"

[subscriptions.counted]
query = "counted.xq"
"""
LOOKED = """<found>{ for $p in stream("s")/r/p for $x in doc("t")/t/row where $x/k = $p/k
return <f>{ $p/n }{ $x/v }</f> }</found>"""
COUNTED = """for $w in stream("found")/found/f|count 3| return <c>{ string($w[n mod 3 = 0]/n), sum($w/v) }</c>"""


@pytest.mark.kills
@pytest.mark.spark
def test_an_epoch_that_is_run_again_sees_what_is_there_now(tmp_path: Path) -> None:
    """The table changes while the run is dead: the epoch that was begun has the new one; half a table nobody takes."""
    faulthandler.cancel_dump_traceback_later()  # other processes, each with its own limit
    (tmp_path / "in").mkdir()
    site = tmp_path / "site.toml"
    site.write_text(SITE)
    (tmp_path / "looked.xq").write_text(LOOKED)
    (tmp_path / "counted.xq").write_text(COUNTED)
    (tmp_path / "t.xml").write_text("<t><row><k>a</k><v>1</v></row></t>")
    (tmp_path / "in" / "0").write_text("".join(f"<p><n>{number}</n><k>a</k></p>\n" for number in range(60)))
    assert _run(site, "plan-written:2") == -signal.SIGKILL
    before = _values(site)
    assert set(before) == {1}
    (tmp_path / "t.xml").write_text("<t><row><k>a</k><v>2</v></row></t>")
    assert _run(site, "sinks-moved:3") == -signal.SIGKILL
    (tmp_path / "t.xml").write_text("<t><row><k>a</k><v>3</")  # half of it, which nobody takes
    assert _run(site) == 0
    after = _values(site)
    assert after == [1] * len(before) + [2] * (60 - len(before))
    text = "".join(committed(site, "looked"))
    assert re.findall(r"<n>(\d+)</n>", text) == [str(number) for number in range(60)]
    counted = "".join(f"<c>{number} {sum(after[number : number + 3])}</c>" for number in range(0, 60, 3))
    assert "".join(committed(site, "counted")) == counted


def _values(site: Path) -> list[int]:
    """What was found in the table, item by item."""
    return [int(found) for found in re.findall(r"<v>(\d)</v>", "".join(committed(site, "looked")))]


def _run(site: Path, crash: str = "") -> int:
    """Run to the end of what is there, or to a point of an epoch where the run kills itself."""
    command = Path(sys.executable).with_name("anabranch")
    with (site.parent / "log").open("ab") as log:
        return subprocess.run(
            [command, "run", site, "--once"],
            env={**os.environ, "ANABRANCH_CRASH": crash},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            check=False,
            timeout=180,
        ).returncode
