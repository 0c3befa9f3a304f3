"""The classes of branches that keep panes: plain windows, grouped windows, sessions."""

from __future__ import annotations

from anabranch.branch.panes.grouped import GroupedWindows
from anabranch.branch.panes.panes import PaneWindows
from anabranch.branch.panes.plan import PanePlan
from anabranch.branch.panes.sessions import SessionWindows


def windows_of(plan: PanePlan) -> type[PaneWindows]:
    """The class that keeps and answers the windows of a plan."""
    if plan.query.is_session:
        return SessionWindows
    return GroupedWindows if plan.keys else PaneWindows
