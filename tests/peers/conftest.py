"""Peers of tests need no disk that survives a power cut."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are written and not waited for."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)
