"""What `anabranch state` prints."""

from __future__ import annotations

from anabranch.site_reports import Holding, table


def test_a_branch_is_shown_with_its_members() -> None:
    """All who share it, as far as a line has room for them; and what each shard has."""
    found = [
        Holding(("q5", "q6"), "step join", 1, 160, 19_468, "412 of photon2/0"),
        Holding(tuple(f"w{number}" for number in range(1_006)), "windows", 0, 2, 5_731, ""),
    ]
    assert list(table(found)) == [
        "branch                         kind       shard  held   bytes  waiting",
        "q5, q6                         step join      1   160  19,468  412 of photon2/0",
        "w0, w1, w2, w3 and 1,002 more  windows        0     2   5,731",
        "shard 0: 5,731 bytes",
        "shard 1: 19,468 bytes",
    ]
