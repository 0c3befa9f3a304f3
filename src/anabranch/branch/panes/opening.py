"""Which branch keeps the windows of a plan that are counted by panes, and answered here."""

from __future__ import annotations

from anabranch.branch.panes.grouped import GroupedWindows
from anabranch.branch.panes.panes import PaneWindows
from anabranch.branch.panes.plan import PanePlan
from anabranch.branch.panes.sessions import SessionWindows


def windows_of(plan: PanePlan) -> type[PaneWindows]:
    """What keeps the windows of a plan."""
    if plan.query.is_session:
        return SessionWindows
    return GroupedWindows if plan.keys else PaneWindows
