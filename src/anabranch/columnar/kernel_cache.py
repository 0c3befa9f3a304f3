"""The folders of compiled loops on disk, such that no process uses a loop that was compiled from another text.

Numba looks at the file of a loop only, and would go on with an old one where another that it calls, or a constant that
it reads, has changed in another file.
So the loops of a file are kept in a folder that is named after the texts of that file and of all files of ours that it
imports, directly or not; a change anywhere else compiles nothing anew.
Numba itself tells loops for other processors, and those of other versions of Python and Numba, apart.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent
KEPT = Path(os.environ.get("NUMBA_CACHE_DIR") or Path(__file__).resolve().parent / "__pycache__")
"""The cache of compiled loops: beside these files, or where the user says."""
_IMPORT = re.compile(rb"^from anabranch\.([\w.]+) import (\([^)]*\)|.*)", re.MULTILINE)
_NAME = re.compile(rb"\w+")


def kept_loops() -> Iterator[tuple[str, bytes]]:
    """The files with loops that this version of the package has compiled so far, by their names in the cache."""
    for file in sorted(Path(__file__).resolve().parent.rglob("*.py")):
        for path in sorted(folder_of(str(file)).rglob("*.nb[ci]")):
            yield path.relative_to(KEPT).as_posix(), path.read_bytes()


@cache
def folder_of(file: str, kept: Path = KEPT) -> Path:
    """The folder for the loops of a file, in the cache of compiled loops."""
    digest = blake2b(digest_size=8)
    for each in sorted(_with_imports(Path(file).resolve())):
        digest.update(_digest(each))
    return kept / f"kernels-{digest.hexdigest()}"


def _with_imports(file: Path) -> set[Path]:
    """A file and all those of ours that it imports, directly or not."""
    found, waiting = {file}, [file]
    while waiting:
        fresh = _imports(waiting.pop()) - found
        found |= fresh
        waiting.extend(fresh)
    return found


@cache
def _imports(file: Path) -> frozenset[Path]:
    """The files of ours that a file imports."""
    found: set[Path] = set()
    for module, names in _IMPORT.findall(file.read_bytes()):
        path = _PACKAGE.joinpath(*module.decode().split("."))
        inside = (path / name.decode() for name in _NAME.findall(names))
        candidates = (path.with_suffix(".py"), path / "__init__.py", *(each.with_suffix(".py") for each in inside))
        found.update(each for each in candidates if each.exists())
    return frozenset(found)


@cache
def _digest(file: Path) -> bytes:
    return blake2b(file.read_bytes(), digest_size=16).digest()
