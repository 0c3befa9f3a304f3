"""The wheel: it has all files of the package and no others, and works where the repository is not.

It is built from the files that git tracks, in a folder of their own, so neither what a build has left behind nor a
file that somebody forgot to add can make it whole.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Sequence
from email.parser import Parser
from pathlib import Path

import pytest

from anabranch.columnar.kernel_cache import KEPT

TOP = Path(__file__).parent.parent
BESIDE = ("pyproject.toml", "README.md", "LICENSE")
"""What a build needs besides the package."""

pytestmark = pytest.mark.mass


def tracked(*below: str) -> list[str]:
    """The files that git knows."""
    done = subprocess.run(["git", "ls-files", "-z", *below], cwd=TOP, capture_output=True, check=True)
    return [each for each in done.stdout.decode().split("\0") if each]


def ran(command: Sequence[str | Path], folder: Path) -> str:
    """What a command prints in a folder, in which Python finds nothing of the repository."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment["NUMBA_CACHE_DIR"] = str(KEPT)  # loops are kept by their text, wherever it lies
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built of what git tracks."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in (*BESIDE, *tracked("src/anabranch")):
        if (TOP / name).exists():  # not one that is being removed
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(TOP / name, source / name)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    ran([*command, "--wheel-dir", out, source], out)
    (found,) = out.iterdir()
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a virtual environment with the wheel, and what it needs from the one that runs the tests."""
    folder = tmp_path_factory.mktemp("venv")
    ran([sys.executable, "-m", "venv", "--without-pip", folder], folder)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "beside.pth").write_text(sysconfig.get_path("purelib") + "\n")  # behind its own, and without its .pth
    python = folder / "bin/python"
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    ran([*command, wheel], folder)
    return folder / "bin"


def test_it_has_the_files_of_the_package(wheel: Path) -> None:
    """Each file below src/anabranch is in it, and nothing else but its own description."""
    names = zipfile.ZipFile(wheel).namelist()
    package = {name for name in names if ".dist-info/" not in name}
    there = {name for name in tracked("src/anabranch") if (TOP / name).exists()}
    assert package == {name.removeprefix("src/") for name in there}
    assert {Path(name).suffix for name in package} >= {".py", ".html", ".js", ".css", ".dtd", ".xq", ".java"}


def test_it_says_what_it_needs(wheel: Path) -> None:
    """Its description has the licence, the Python and the packages of pyproject.toml, and the licence's text."""
    archive = zipfile.ZipFile(wheel)
    (metadata,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    told = Parser().parsestr(archive.read(metadata).decode())
    assert (told["Name"], told["License-Expression"], told["Requires-Python"]) == ("anabranch", "Apache-2.0", ">=3.11")
    needs = [each for each in told.get_all("Requires-Dist", []) if "extra ==" not in each]
    assert any(each.startswith("pyspark") for each in needs)
    assert any(each.startswith("fastapi") for each in needs)
    assert any(name.endswith("/LICENSE") for name in archive.namelist())


def test_it_works_without_the_repository(installed: Path, tmp_path: Path) -> None:
    """In an empty folder it lists its commands, makes photons and answers a query over them."""
    where = ran([installed / "python", "-c", "import anabranch; print(anabranch.__file__)"], tmp_path)
    assert where.startswith(str(installed.parent))
    assert "serve" in ran([installed / "anabranch", "--help"], tmp_path)
    ran([installed / "anabranch", "generate", "photons", "--count", "50", "--out", "photons.xml"], tmp_path)
    (tmp_path / "q.xq").write_text('count(stream("photons")/photons/photon)')
    command = [str(installed / "anabranch"), "query", "q.xq", "--engine", "local", "--stream", "photons=photons.xml"]
    assert ran(command, tmp_path) == "50\n"


def test_it_has_the_page(installed: Path, tmp_path: Path) -> None:
    """The files of the page are where the service looks for them, so that it can be served."""
    code = "import anabranch.service.routes.page as p; print((p.FILES / 'index.html').read_text()[:15])"
    assert ran([installed / "python", "-c", code], tmp_path).lower().startswith("<!doctype html>")
