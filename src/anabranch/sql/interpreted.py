"""sqlglot as Python, also where `sqlglotc`, its compiled variant, is installed beside it.

Our parser extends sqlglot's, and compiled classes refuse to be extended in Python.
Where sqlglot was loaded in its compiled form before, that cannot be mended, and is told (`parsing.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ExtensionFileLoader, ModuleSpec, PathFinder
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType


class InterpretedModules(MetaPathFinder):
    """Finds sqlglot's modules by their sources, where compiled ones beside these would go first."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith("sqlglot."):
            return None
        found = PathFinder.find_spec(fullname, path, target)
        if found is None or not isinstance(found.loader, ExtensionFileLoader):
            return found
        source = Path(found.loader.path).with_name(f"{fullname.rpartition('.')[2]}.py")
        return spec_from_file_location(fullname, source) if source.exists() else found


def prefer_interpreted() -> None:
    """Load sqlglot's modules as Python from here on."""
    sys.meta_path.insert(0, InterpretedModules())
