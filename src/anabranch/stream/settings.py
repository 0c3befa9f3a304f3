"""The settings of an engine, with their defaults, in one place: how a trunk works, and how much it retains.

SITE.toml, NETWORK.toml, the Python API and the command line fill them; they are passed on as a whole.
Except for the limits (LAWS 2.5, 2.6), the caps (LAWS 2.9) and whether accents are followed (LAWS 4.5), none of them
shows in an answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from anabranch.errors import UsageError
from anabranch.stream.limits import NO_CAPS, CostCaps, Limits

EPOCH_BYTES = 16 << 20
"""How much an epoch reads by default: a few seconds of work, so that a run shows its progress."""
_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def size_in(text: str) -> int | None:
    """The bytes of a size with its unit, as in '500 MB'; None if it is none."""
    amount, unit = text[:-2].strip(), text[-2:]
    return int(amount) * _UNITS[unit] if unit in _UNITS and amount.isdecimal() else None


def size_of(given: object, key: str) -> int:
    """A number of bytes as users write it, 1000000 or '1 MB'; UsageError where it is none."""
    match given:
        case int() if not isinstance(given, bool) and given > 0:
            return given
        case str() if size := size_in(given):
            return size
    raise UsageError(f"'{key}' takes a number of bytes or a size, not '{given}'", hint="as in 1000000 or '1 MB'")


@dataclass(frozen=True, slots=True)
class Keep:
    """How much of the answer log is retained: a number of epochs, a number of bytes of answers, or everything."""

    epochs: int | None = None
    bytes: int | None = None

    @staticmethod
    def parse(value: object) -> Keep:
        """A number of epochs, or bytes as in '500 MB'."""
        match value:
            case None:
                return Keep()
            case int() if not isinstance(value, bool) and value > 0:
                return Keep(epochs=value)
            case str() if (size := size_in(value)) is not None:
                return Keep(bytes=size)
        raise UsageError(f"'keep' takes a number of epochs or a size, not '{value}'", hint="as in 5000 or '20 GB'")


@dataclass(frozen=True, slots=True)
class Settings:
    """How a trunk works."""

    trigger_ms: int = 200
    keep: Keep = field(default_factory=Keep)
    limits: Limits = field(default_factory=Limits)
    caps: CostCaps = NO_CAPS
    """What a subscription may take that has no caps of its own."""
    finite: bool = False
    """The inputs are complete; otherwise a last line without a newline waits for it."""
    shards: int | None = None
    """The number of tasks that share the branches; None for as many as there are cores."""
    sharing: bool = True
    """Whether common work of subscriptions is done once."""
    accents: bool = True
    """Whether accents are followed; otherwise they are bad (LAWS 4.5)."""
    timed: bool = False
    """Whether answers that only grow are recorded with their moments, for timelines."""
    strands: int | None = None
    """The number of strands for a new query over updates, if it can be divided; None for what suits the shards."""
    epoch_bytes: int = EPOCH_BYTES
    epoch_files: int | None = None
    """The bytes and files that an epoch reads of all streams together, about; None for no file limit."""
