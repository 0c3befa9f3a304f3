"""The compiled loops read and write nothing beyond their arrays, whatever the tests of columns show them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from subprocess import run

import pytest

HERE = Path(__file__).parent
CHECK = """
import numpy as np
from numba import njit
@njit
def element(values, place):
    return values[place]
try:
    element(np.zeros(3), 5)
except IndexError:
    print("checked")
"""


def checking(folder: Path) -> dict[str, str]:
    """The environment of a process whose loops check bounds; they are no others' loops, so they have a folder."""
    return {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(folder), "ANABRANCH_MASS": "few"}


@pytest.mark.mass
@pytest.mark.kills
def test_the_tests_of_columns_with_bounds_checked(tmp_path: Path) -> None:
    """All tests of this folder but this one pass where a place outside of an array is an error."""
    environment = checking(tmp_path)
    asked = run([sys.executable, "-c", CHECK], env=environment, capture_output=True, text=True, check=True)
    assert asked.stdout == "checked\n"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE), f"--ignore={__file__}"]
    done = run(command, env=environment, cwd=HERE.parent.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6_000:]
