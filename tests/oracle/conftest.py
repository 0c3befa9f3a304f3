"""Says at the end of a run how many generated queries were compared with Saxon."""

from __future__ import annotations

import pytest

from oracle.compare import compared


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line behind the test results, if any were compared."""
    if compared:
        terminalreporter.write_line(f"oracle: {len(compared)} different generated queries compared with SaxonC-HE")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where tests run in several processes, tell the one that reports (`tests/conftest.py`)."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["compared"] = sorted(compared)
