"""Where Numba keeps a compiled loop: in its folder by content (`kernel_cache.py`), wherever the package itself lies.

Numba would name a folder in it after the place of the source file.
But the same package lies at different places: in several environments of one machine, and unpacked on the workers of a
cluster (`spark/cluster/loader.py`), for each version anew; loops of the same text need compiling once for all of them.
"""

from __future__ import annotations

from pathlib import Path

from numba.core.caching import UserProvidedCacheLocator


class KernelLocator(UserProvidedCacheLocator):
    """Locates the loops of a file; Numba makes one for each function."""

    @classmethod
    def get_suitable_cache_subpath(cls, py_file: str) -> str:
        """The name of a file's folder; which file of that name it is, the folder around it says."""
        return Path(py_file).parent.name
