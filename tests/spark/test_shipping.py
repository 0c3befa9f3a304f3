"""What workers of a cluster are sent: the package and the modules of functions, as archives; no Spark needed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from itertools import count
from pathlib import Path

import pytest

import anabranch
from anabranch.errors import UsageError
from anabranch.law.calls import ImportedFunction
from anabranch.runtime.registering import function_named, import_all
from anabranch.spark.cluster import shipping
from anabranch.spark.cluster.shipping import functions_archive, package_archive

_numbers = count()


def printed(archive: Path, text: str, **environment: str) -> str:
    """What a Python process prints that has the archive in front of its path, as a worker of Spark has."""
    program = f"import sys; sys.path.insert(1, {str(archive)!r}); {text}"
    given = {**os.environ, "PYTHONPATH": "", **environment}
    done = subprocess.run([sys.executable, "-c", program], env=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.mass
def test_a_worker_gets_the_package_of_the_driver_unpacked(tmp_path: Path) -> None:
    """It is imported from the user's cache, module by module the driver's text, also where another is installed."""
    archive = package_archive(tmp_path)
    where = "import anabranch, anabranch.language.ast as ast; print(anabranch.__file__, ast.__file__)"
    package, module = map(Path, printed(archive, where, XDG_CACHE_HOME=str(tmp_path / "cache")).split())
    folder = tmp_path / "cache" / "anabranch" / "packages" / archive.stem / "anabranch"
    assert package == folder / "__init__.py"
    assert module == folder / "language" / "ast.py"
    mine = Path(anabranch.__file__).parent
    texts = {path.relative_to(mine): path.read_bytes() for path in mine.rglob("*.py")}
    assert {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.py")} == texts
    assert (folder / "spark" / "log4j2.properties").exists()
    assert (tmp_path / "cache" / "anabranch" / "packages").stat().st_mode & 0o777 == 0o700


def test_a_package_is_unpacked_once_and_again_when_it_is_damaged(tmp_path: Path) -> None:
    """The second process takes what the first has left; what a power cut has cut short is written anew."""
    archive = package_archive(tmp_path)
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    module = Path(printed(archive, "import anabranch.visible as m; print(m.__file__)", **cache))
    made = module.stat().st_ino
    printed(archive, "import anabranch.visible", **cache)
    assert module.stat().st_ino == made
    whole = module.read_bytes()
    module.write_bytes(b"")
    assert printed(archive, "from anabranch.visible import visible; print(visible('x'))", **cache) == "x"
    assert module.read_bytes() == whole
    assert [each.name for each in module.parents[2].iterdir()] == [archive.stem]


@pytest.mark.mass
def test_without_a_home_the_package_is_unpacked_beside_the_archive(tmp_path: Path) -> None:
    """Workers often run as a user that has no folder of its own."""
    archive = package_archive(tmp_path)
    (tmp_path / "file").touch()
    found = printed(archive, "import anabranch; print(anabranch.__file__)", XDG_CACHE_HOME=str(tmp_path / "file"))
    assert Path(found) == tmp_path / "anabranch" / "packages" / archive.stem / "anabranch" / "__init__.py"


@pytest.mark.mass
def test_workers_that_start_together_agree(tmp_path: Path) -> None:
    """Four processes at once: one of them unpacks, and none takes from another what it has begun to read."""
    archive = package_archive(tmp_path)
    look = "import anabranch, os; print(os.stat(anabranch.__file__).st_ino)"
    program = f"import sys; sys.path.insert(1, {str(archive)!r}); {look}"
    given = {**os.environ, "PYTHONPATH": "", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    started = [
        subprocess.Popen([sys.executable, "-c", program], env=given, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    assert len({process.communicate()[0] for process in started}) == 1
    assert [process.returncode for process in started] == [0] * 4
    assert [each.name for each in (tmp_path / "cache" / "anabranch" / "packages").iterdir()] == [archive.stem]


_HITS = "; ".join(
    (
        "from anabranch.columnar.scan.kernels import is_space, number_at",
        "import numpy",
        "is_space(32), number_at(numpy.zeros(1, numpy.uint8), 0, 1)",
        "print(*(each.stats.cache_hits.total() for each in (is_space, number_at)))",
    )
)


@pytest.mark.mass
def test_workers_take_over_loops_that_the_driver_has_compiled(tmp_path: Path) -> None:
    """What was compiled here is not compiled there; what they have compiled themselves stays as it is."""
    driver = {"PYTHONPATH": str(Path(anabranch.__file__).parents[1]), "NUMBA_CACHE_DIR": str(tmp_path / "driver")}
    modules = "from pathlib import Path; from anabranch.spark.cluster.shipping import kernels_archive"
    send = f"{modules}; kernels_archive(Path({str(tmp_path)!r}))"
    printed(tmp_path, send, **driver)
    assert list(tmp_path.glob("*.zip")) == []
    assert printed(tmp_path, f"{_HITS}; {send}", **driver) == "0 0"
    (kernels,) = tmp_path.glob("*.zip")
    archive = package_archive(tmp_path)
    assert printed(archive, _HITS, XDG_CACHE_HOME=str(tmp_path / "one")) == "1 1"
    there = tmp_path / "one" / "anabranch" / "kernels"
    (there / kernels.stem).unlink()
    (compiled,) = there.rglob("*is_space*.nbi")
    before = compiled.stat().st_ino
    (lost,) = there.rglob("*number_at*.nbi")
    lost.unlink()
    assert printed(archive, _HITS, XDG_CACHE_HOME=str(tmp_path / "one")) == "1 1"
    assert compiled.stat().st_ino == before


def test_an_archive_is_a_function_of_its_texts(tmp_path: Path) -> None:
    """The same bytes under the same name each time, whatever the times of files; another text is another name."""
    folders = [tmp_path / name for name in "abc"]
    for folder, text in zip(folders, ("x = 1\n", "x = 1\n", "x = 2\n"), strict=True):
        (folder / "pack").mkdir(parents=True)
        (folder / "pack" / "__init__.py").write_text(text)
    os.utime(folders[1] / "pack" / "__init__.py", (1, 1))
    found = [functions_archive([ImportedFunction("pack", "x", str(folder))], folder) for folder in folders]
    first, second, third = (each for each in found if each is not None)
    assert first.name == second.name != third.name
    assert first.read_bytes() == second.read_bytes() != third.read_bytes()


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    """Modules beside a site, by what they are for; every test has names of its own, which Python imports once."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    number = next(_numbers)
    names = {each: f"shipped_{each}_{number}" for each in ("roads", "ways", "lazy", "pack", "other")}
    texts = {
        f"{names['roads']}.py": f"import json, {names['ways']}\ndef far(a):\n    import {names['lazy']} as lazy\n"
        f"    return lazy.twice({names['ways']}.one() + a)\n",
        f"{names['ways']}.py": f"from {names['pack']}.deep import one\n",
        f"{names['lazy']}.py": "def twice(a):\n    return 2 * a\n",
        f"{names['pack']}/__init__.py": "",
        f"{names['pack']}/deep.py": "from . import number\ndef one():\n    return number.ONE\n",
        f"{names['pack']}/number.py": "ONE = 1\n",
        f"{names['pack']}/__pycache__/x.pyc": "",
        f"{names['other']}.py": "",
        "json.py": "raise AssertionError('the one of Python comes first')\n",
    }
    for path, text in texts.items():
        (tmp_path / "site" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "site" / path).write_text(text)
    return names


def test_modules_beside_a_site_are_sent_with_what_they_import(tmp_path: Path, beside: Mapping[str, str]) -> None:
    """Also what a function imports when it is called, and packages whole; nothing that Python finds elsewhere."""
    function = function_named("far", f"{beside['roads']}:far", tmp_path / "site")
    import_all({"far": function})
    archive = functions_archive([function], tmp_path)
    assert archive is not None
    names = printed(archive, f"import zipfile; print(*zipfile.ZipFile({str(archive)!r}).namelist())").split()
    pack = [f"{beside['pack']}/{each}.py" for each in ("__init__", "deep", "number")]
    assert sorted(names) == sorted([*pack, *(f"{beside[each]}.py" for each in ("roads", "ways", "lazy"))])
    assert printed(archive, f"from {beside['roads']} import far; print(far(2))") == "6"


def test_functions_that_are_installed_are_not_sent(tmp_path: Path) -> None:
    """They belong to the workers' Python, as everything that is installed."""
    function = function_named("quoted", "json:dumps", tmp_path)
    assert functions_archive([function], tmp_path) is None


def test_modules_that_are_too_large_are_refused(
    tmp_path: Path, beside: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Spark hands to every worker has a limit; the error says how much it would be."""
    monkeypatch.setattr(shipping, "_MOST_BYTES", 10)
    function = function_named("far", f"{beside['roads']}:far", tmp_path / "site")
    with pytest.raises(UsageError, match=r"the modules of the functions have \d+ bytes, and at most 10 are sent"):
        functions_archive([function], tmp_path)
