"""What a driver sends to the workers of a cluster: this very package, and the modules of functions that a site names.

Both are zip files that Spark hands to each Python process (`SparkContext.addPyFile`), in front of what is installed
there; so workers run the driver's version, whatever they have, and need not have any.
Packages of others (Arrow, Numba and so on) are not sent: they hold machine code, and belong to the workers' Python.
The package is unpacked by its front (`loader.py`); modules of functions are imported from the zip as they are.
A third archive has the loops that the driver has compiled, which takes a minute and more: workers with the same
processor, Python and Numba need not compile them again, and the others find out and do.

An archive has the same bytes whenever its files have the same texts, and is named after their digest.
"""

from __future__ import annotations

import ast
import io
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from importlib.machinery import PathFinder
from importlib.resources import files
from pathlib import Path

from anabranch.columnar.kernel_cache import kept_loops
from anabranch.errors import UsageError
from anabranch.law.calls import ImportedFunction
from anabranch.spark.cluster import loader

_LEFT_OUT = ("__pycache__", ".pyc", ".pyo")
_MOST_BYTES = 64 << 20
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of all files in an archive; a zip file knows none that is earlier."""


def package_archive(folder: Path) -> Path:
    """Write the archive of this package into a folder."""
    package = Path(str(files("anabranch")))
    found = {f"{loader.PACKAGE}anabranch/{name}": data for name, data in _files(package)}
    front = Path(loader.__file__).read_bytes()
    return _archive(folder, "anabranch", {"anabranch/__init__.py": front, **found})


def kernels_archive(folder: Path) -> Path | None:
    """Write the archive of the compiled loops into a folder; None if there are none."""
    found = dict(kept_loops())
    return _archive(folder, loader.KERNELS, found) if 0 < sum(map(len, found.values())) <= _MOST_BYTES else None


def functions_archive(functions: Iterable[ImportedFunction], folder: Path) -> Path | None:
    """Write the archive of the modules that lie beside a site; None if all of its functions are installed."""
    found: dict[str, bytes] = {}
    for function in functions:
        found |= _beside(function.module.partition(".")[0], Path(function.folder), found)
    size = sum(map(len, found.values()))
    if size > _MOST_BYTES:
        raise UsageError(
            f"the modules of the functions have {size:,} bytes, and at most {_MOST_BYTES:,} are sent to a cluster",
            hint="install them in the workers' Python",
        )
    return _archive(folder, "anabranch-functions", found) if found else None


def _beside(module: str, folder: Path, known: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files of a module in a folder, and of all modules in that folder that it imports, also inside functions.

    A module that Python finds elsewhere first is none of them.
    """
    found: dict[str, bytes] = {}
    waiting, seen = [module], {module}
    while waiting:
        name = waiting.pop()
        for path, data in _module_files(name, folder):
            if path not in known:
                found[path] = data
            fresh = (_imported(data) if path.endswith(".py") else set()) - seen
            seen |= fresh
            waiting.extend(fresh)
    return found


def _module_files(name: str, folder: Path) -> Iterator[tuple[str, bytes]]:
    """The files of a top-level module or package of a folder, by their names in the archive."""
    others = [each for each in sys.path if each and Path(each) != folder]
    if name in sys.builtin_module_names or PathFinder.find_spec(name, others) is not None:
        return
    if (folder / name).is_dir():
        yield from ((f"{name}/{path}", data) for path, data in _files(folder / name))
    elif (folder / f"{name}.py").is_file():
        yield f"{name}.py", (folder / f"{name}.py").read_bytes()


def _imported(text: bytes) -> set[str]:
    """The top-level names of all modules that a text imports."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return set()
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def _files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The files below a folder, by relative name; hidden ones and what Python has compiled are left out."""
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if path.is_file() and not any(each.startswith(".") or each.endswith(_LEFT_OUT) for each in parts):
            yield "/".join(parts), path.read_bytes()


def _archive(folder: Path, name: str, found: Mapping[str, bytes]) -> Path:
    digest = blake2b(digest_size=16)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path, data in sorted(found.items()):
            digest.update(f"{len(path)} {len(data)} {path}".encode() + data)
            entry = zipfile.ZipInfo(path, _EPOCH)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED, 1)
    made = folder / f"{name}-{digest.hexdigest()}.zip"
    made.write_bytes(packed.getvalue())
    return made
