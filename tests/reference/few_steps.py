"""What the tests of bounded work share: a process in which few steps are allowed, as no user can have it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from anabranch.law.steps import allow
from anabranch.stream.limits import Limits


@contextmanager
def allowing(steps: int) -> Iterator[None]:
    """While so few steps are allowed to one evaluation."""
    allow(steps)
    try:
        yield
    finally:
        allow(Limits().steps)


def doubling(count: int, body: str, first: str) -> str:
    """Functions that call the one before twice: `{f}` in the body, on their parameter `$x`."""
    declared = [f"declare function local:f0($x) {{ {first} }};"]
    for number in range(1, count):
        called = body.replace("{f}", f"local:f{number - 1}")
        declared.append(f"declare function local:f{number}($x) {{ {called} }};")
    return " ".join(declared)
