"""The links of tests forget as soon as they may."""

from __future__ import annotations

import pytest

from anabranch.peers import links


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the newest document of a link stays when all have read it."""
    monkeypatch.setattr(links, "RETAINED", 1)
