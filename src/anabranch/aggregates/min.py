"""`min`: the least value; empty for no values (LAWS 2.1)."""

from __future__ import annotations

from anabranch.aggregates.extreme import Extreme


class Min(Extreme):
    name = "min"
    needs = "l"
    greatest = False
