"""How many generated queries were compared in a run; `tests/conftest.py` says so at its end."""

from __future__ import annotations

compared: set[str] = set()
"""Their texts."""
