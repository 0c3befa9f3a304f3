"""Which Spark a run is on, as its user says: a master, and settings that are passed through.

Without a master, Spark runs inside this machine and nothing listens outside loopback.
With the master of a cluster the driver must be reached by its workers, so it listens on one address of this machine:
the one that `spark.driver.host` names, or else the one from which this machine reaches the master.

This module knows no Spark, so options are checked before Spark is loaded.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from anabranch.errors import UsageError

LOOPBACK = "127.0.0.1"
HOST, BIND = "spark.driver.host", "spark.driver.bindAddress"
_MASTER = re.compile(r"local(\[.*\])?|yarn|k8s://.+|spark://[^/\s]+:[0-9]+")
_CONNECT = "a session of Spark Connect cannot run a trunk: its client has no jobs of its own"
_CONNECT_HINT = "give the master of the cluster itself, as in spark://HOST:7077"
_CONNECT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """A master, None for Spark in this machine, and settings of Spark by name."""

    master: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        master = self.master
        if master is not None and master.startswith("sc://"):
            raise connect_refused()
        if master is not None and not _MASTER.fullmatch(master):
            hint = "as in spark://HOST:7077, yarn, k8s://https://HOST:443, or local[4]"
            raise UsageError(f"'{master}' is no master of Spark", hint=hint)
        for name in self.settings:
            _check(name)
        if master is None and os.environ.get("SPARK_REMOTE"):
            raise UsageError(f"SPARK_REMOTE is set, and {_CONNECT}", hint=f"unset it; {_CONNECT_HINT}")

    @property
    def is_local(self) -> bool:
        """Whether everything runs on this machine."""
        return is_local(self.master)

    def addresses(self) -> dict[str, str]:
        """Where the driver listens, as settings; for a cluster whose master has no address, Spark decides."""
        if self.is_local:
            return {HOST: LOOPBACK, BIND: LOOPBACK}
        if HOST in self.settings:
            return {BIND: self.settings[HOST]}
        assert self.master is not None
        found = _address_towards(self.master)
        return {} if found is None else {HOST: found, BIND: found}


def is_local(master: str | None) -> bool:
    """Whether a master is a Spark inside this machine."""
    return master is None or master.startswith("local")


def connect_refused() -> UsageError:
    """The refusal of Spark Connect."""
    return UsageError(_CONNECT, hint=_CONNECT_HINT)


def _check(name: str) -> None:
    if not name.startswith("spark.") or name != name.strip():
        raise UsageError(f"'{name}' is no setting of Spark", hint="its name begins with 'spark.'")
    if name in ("spark.master", "spark.remote"):
        raise UsageError(f"the setting '{name}' is not taken", hint="give the master with --master")
    if name == "spark.submit.deployMode":
        raise UsageError(f"the setting '{name}' is not taken", hint="the driver is the process of the command")


def _address_towards(master: str) -> str | None:
    """The address of this machine from which it reaches a master; None for one that is found otherwise."""
    if not master.startswith("spark://"):
        return None
    reasons: list[str] = []
    for each in master.removeprefix("spark://").split(","):
        host, _, port = each.rpartition(":")
        try:
            with socket.create_connection((host.strip("[]"), int(port or 0)), _CONNECT_SECONDS) as found:
                return str(found.getsockname()[0])
        except (OSError, OverflowError) as error:
            reasons.append(f"{each}: {getattr(error, 'strerror', None) or error}")
    raise UsageError(f"no master answers: {'; '.join(reasons)}", hint="start it, or correct --master")


def settings_of(given: Sequence[str]) -> dict[str, str]:
    """Settings as the command line has them, KEY=VALUE each; a later one of the same name counts."""
    found: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals:
            raise UsageError(f"--conf takes KEY=VALUE, not '{each}'", hint="as in --conf spark.executor.memory=2g")
        found[name] = value
    return found
