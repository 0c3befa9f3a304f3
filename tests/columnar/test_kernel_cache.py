"""Compiled loops are kept by the texts that they were compiled from."""

from __future__ import annotations

import sys
from pathlib import Path
from shutil import copytree, ignore_patterns
from subprocess import run

import pytest

import anabranch

_ASK = """
import sys
from pathlib import Path
from anabranch.columnar import kernel_cache
root = Path(kernel_cache.__file__).parent
print(*(kernel_cache.folder_of(str(root / each), Path("kept")) for each in sys.argv[1:]))
"""


def _folders(source: Path, *files: str) -> list[str]:
    """The folders of some files, as a process of its own sees them."""
    asked = run([sys.executable, "-c", _ASK, *files], env={"PYTHONPATH": str(source)}, capture_output=True, check=True)
    return asked.stdout.decode().split()


def test_only_loops_that_can_see_a_change_are_compiled_again(tmp_path: Path) -> None:
    """A change in a file moves the folder of that file and of those that import it, and no others."""
    package = Path(anabranch.__file__).parent
    copytree(package, tmp_path / "anabranch", ignore=ignore_patterns("__pycache__"))
    files = "panes/spans.py", "scan/json_scan.py", "scan/json_record.py", "scan/xml_scan.py"
    before = _folders(tmp_path, *files)
    changed = tmp_path / "anabranch/columnar/scan/json_tokens.py"
    changed.write_text(changed.read_text() + "# changed\n")
    after = _folders(tmp_path, *files)
    assert [old == new for old, new in zip(before, after, strict=True)] == [True, False, False, True]


_COMPILE = """
from anabranch.columnar.scan.kernels import is_space
is_space(32)
print(is_space.stats.cache_hits.total(), is_space.stats.cache_misses.total())
"""


@pytest.mark.mass
def test_loops_of_one_text_are_compiled_once_wherever_the_package_lies(tmp_path: Path) -> None:
    """A second copy of the package, elsewhere, takes what the first has compiled."""
    package = Path(anabranch.__file__).parent
    found = []
    for each in ("one", "two/deeper"):
        copytree(package, tmp_path / each / "anabranch", ignore=ignore_patterns("__pycache__"))
        environment = {"PYTHONPATH": str(tmp_path / each), "NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
        asked = run([sys.executable, "-c", _COMPILE], env=environment, capture_output=True, check=True)
        found.append(asked.stdout.decode().split())
    assert found == [["0", "1"], ["1", "0"]]  # hits and misses
