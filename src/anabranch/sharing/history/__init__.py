"""What of its streams, and of their past, a query can ever need: the short history lists of the history paper."""

from anabranch.sharing.history.looking import needs_of
from anabranch.sharing.history.needs import CURRENT, Need, Needs, Reach
from anabranch.sharing.history.sight import Sight

__all__ = ["CURRENT", "Need", "Needs", "Reach", "Sight", "needs_of"]
