"""Plain values are read by the types of fields, by whichever threads."""

from __future__ import annotations

import subprocess
import sys

RACE = """
import sys
from dataclasses import make_dataclass
from threading import Barrier, Thread
from anabranch.stream.plain import from_plain

sys.setswitchinterval(1e-6)
for _ in range(50):
    inner = make_dataclass("Inner", [(f"n{each}", int) for each in range(20)])
    outer = make_dataclass("Outer", [(f"i{each}", inner) for each in range(10)])
    value = {f"i{each}": {f"n{number}": number for number in range(20)} for each in range(10)}
    together, found = Barrier(8), []

    def read():
        together.wait()
        found.append(from_plain(outer, value))

    threads = [Thread(target=read) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == 8 and found[0].i9.n19 == 19 and all(each == found[0] for each in found), found
"""


def test_first_values_of_a_type_in_several_threads() -> None:
    """All of them are read; msgspec by itself ends the process here, so it is one of its own."""
    done = subprocess.run([sys.executable, "-c", RACE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
