"""`max`: the greatest value; empty for no values (LAWS 2.1)."""

from __future__ import annotations

from anabranch.aggregates.extreme import Extreme


class Max(Extreme):
    name = "max"
    needs = "g"
    greatest = True
