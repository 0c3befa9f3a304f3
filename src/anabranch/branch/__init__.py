"""Branches: subscriptions with state, each a continuation of the trunk.

A branch is fed with raw elements, takes them in the order of LAWS 1.2 and answers by the laws of windows and joins;
its state between two epochs is a `BranchState`.
Nothing here knows Spark, files or clocks: how the input was cut into feeds and epochs cannot show in an answer.
"""

from anabranch.branch.members import BranchMember
from anabranch.branch.open import Branch, open_branch
from anabranch.branch.ports import InputStream
from anabranch.branch.state import BranchState

__all__ = ["Branch", "BranchMember", "BranchState", "InputStream", "open_branch"]
