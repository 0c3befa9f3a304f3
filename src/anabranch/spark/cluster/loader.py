"""What a worker of a cluster imports as `anabranch`: the front of the archive that Spark sends it.

In the archive (`shipping.py`) this text is `anabranch/__init__.py`, and the real package lies in a folder beside it.
When a Python process first imports it, it unpacks the real package on the machine's own disk and takes its place.
From an archive itself Python would compile every module in every process, and loops that Numba has compiled could not
be kept; unpacked, both are kept for all processes and all later runs on this machine.

Compiled loops are kept beside, for all versions of the package (`columnar/kernel_cache.py`); those that the driver has
sent are taken over where they are missing.

The folder is named after the digest of the package, is made for this user only, and appears by a rename; of
processes that start together one unpacks and the others wait, so none removes what another has begun to read.
It is a cache: it may be deleted whenever no run uses it, and one that is damaged is made anew.

Guarantees: it needs nothing but Python's own library, since nothing else is there yet.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

PACKAGE = "package/"
"""The folder of the real package in the archive."""
KERNELS = "anabranch-kernels"
"""How the name of an archive of compiled loops begins."""
_INDEX = ".nbi"
"""How the name of a file ends in which Numba lists the compiled forms of a loop."""


def become_package(archive: Path) -> None:
    """Put the real package in the place of the module `anabranch`."""
    folder = _unpacked(archive) / "anabranch"
    kernels = Path(os.environ.setdefault("NUMBA_CACHE_DIR", str(folder.parents[2] / "kernels")))
    for sent in sorted(archive.parent.glob(f"{KERNELS}-*.zip")):
        with suppress(OSError, zipfile.BadZipFile):  # without them loops are compiled here
            _take_kernels(sent, kernels)
    spec = importlib.util.spec_from_file_location(
        "anabranch", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    sys.modules["anabranch"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


def _take_kernels(archive: Path, kernels: Path) -> None:
    """Unpack the compiled loops that are missing here, once for each archive."""
    done = kernels / archive.stem
    if done.exists():
        return
    with zipfile.ZipFile(archive) as packed:
        names = set(packed.namelist())
        missing = {each for each in names if each.endswith(_INDEX) and not (kernels / each).exists()}
        loops = tuple(each.removesuffix(_INDEX) for each in missing)
        for name in sorted(names, key=lambda each: (each in missing, each)):  # a list comes behind what it lists
            if name.startswith(loops):
                _write(kernels / name, packed.read(name))
    _write(done, b"")


def _write(path: Path, data: bytes) -> None:
    """Write a file that other processes may write at the same time."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, fresh = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    os.replace(fresh, path)


def _unpacked(archive: Path) -> Path:
    """The folder with the package: in the user's cache, or else beside the archive."""
    for parent in _caches(archive):
        with suppress(OSError):
            parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return _unpacked_in(parent, archive)
    raise ImportError(f"there is no room on this machine to unpack '{archive}'")


def _caches(archive: Path) -> Iterator[Path]:
    home = os.environ.get("XDG_CACHE_HOME")
    with suppress(RuntimeError):  # a user without a home
        yield (Path(home) if home else Path.home() / ".cache") / "anabranch" / "packages"
    yield archive.parent / "anabranch" / "packages"


def _unpacked_in(parent: Path, archive: Path) -> Path:
    folder = parent / archive.stem
    with zipfile.ZipFile(archive) as packed, (parent.parent / "packages.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        members = [each for each in packed.infolist() if each.filename.startswith(PACKAGE)]
        if _is_whole(folder, members):
            return folder
        fresh = Path(tempfile.mkdtemp(prefix=f".{archive.stem}.", dir=parent))
        try:
            packed.extractall(fresh, members)
            shutil.rmtree(folder, ignore_errors=True)  # one that a power cut has damaged
            (fresh / PACKAGE).rename(folder)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return folder


def _is_whole(folder: Path, members: list[zipfile.ZipInfo]) -> bool:
    """Whether all files of the package are there, with their sizes."""
    try:
        return all(os.stat(folder / each.filename.removeprefix(PACKAGE)).st_size == each.file_size for each in members)
    except OSError:
        return False


if __name__ == "anabranch":
    become_package(Path(__file__).parent.parent)
