"""Parts of a bench, which can be asked for by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from anabranch.errors import UsageError, did_you_mean


def chosen_parts(known: Iterable[str], only: Sequence[str]) -> list[str]:
    """The parts in `only`, in the order of the bench, all of them where it is empty; UsageError for an unknown name."""
    names = list(known)
    for name in only:
        if name not in names:
            hint = did_you_mean(name, names, f"there are {', '.join(names)}")
            raise UsageError(f"there is no part '{name}'", hint=hint)
    return [name for name in names if not only or name in only]
