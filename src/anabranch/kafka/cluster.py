"""A Kafka cluster as a user declares it: its brokers, and the settings that are passed to its clients.

    [kafka]
    brokers = "broker1:9093,broker2:9093"
    security.protocol = "SASL_SSL"
    sasl.mechanisms = "SCRAM-SHA-512"
    sasl.username = "anabranch"
    sasl.password = "env:KAFKA_PASSWORD"

Settings are librdkafka's, by their names: those of TLS and SASL, timeouts, sizes.
Those that exactly-once delivery and reading by offsets depend on are ours and refused here; which others there are, and
what they may be, the library says when a client is made.

A secret is named and never written down: `env:NAME` is a variable of the environment, `file:PATH` what a file holds.
The declaration holds the reference, so no log, plan or checkpoint can show more than that; `clients.py` looks it up
when it makes a client.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from anabranch.errors import UsageError

_BROKER = re.compile(r"(?:[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})")
_SECRET = re.compile(r"password|secret|passphrase|key\.pem|oauthbearer\.config")
_REFERENCE = re.compile(r"(env|file):(.+)")
_NAME = re.compile(r"[a-z][a-z0-9_]*(?:\.[a-z0-9_]+)*")
_LARGEST_SECRET = 1 << 20
OURS = frozenset(
    {
        "auto.offset.reset",
        "bootstrap.servers",
        "delivery.report.only.error",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.gapless.guarantee",
        "enable.idempotence",
        "enable.partition.eof",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "isolation.level",
        "log.queue",
        "metadata.broker.list",
        "partitioner",
        "test.mock.num.brokers",
        "transactional.id",
    }
)
"""Settings that follow from what a client is for."""
LOADING = frozenset({"plugin.library.paths", "ssl.engine.location", "sasl.kerberos.kinit.cmd"})
"""Settings by which a client would load or run a program."""


@dataclass(frozen=True, slots=True)
class KafkaCluster:
    """The brokers by which a cluster is found, as in `host:port,host:port`, and settings by name, in their order."""

    brokers: str
    settings: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        brokers = [each.strip() for each in self.brokers.split(",")]
        for each in brokers:
            found = _BROKER.fullmatch(each)
            if found is None or not 0 < int(found[1]) < 65536:
                raise UsageError(f"the broker '{each}' is no host with a port", hint="as in 'kafka.example.org:9092'")
        object.__setattr__(self, "brokers", ",".join(brokers))
        for name, value in self.settings:
            _check(name, value)
        object.__setattr__(self, "settings", tuple(sorted(self.settings)))

    @staticmethod
    def of(brokers: str, settings: Mapping[str, object] | None = None, folder: Path | None = None) -> KafkaCluster:
        """A cluster from a table of settings; tables in it are names with dots, as TOML reads them.

        Paths of `file:` references are relative to a folder, by default the current one.
        """
        found = {name: _placed(value, folder or Path()) for name, value in flat_settings(settings or {}).items()}
        return KafkaCluster(brokers, tuple(found.items()))

    def resolved(self) -> dict[str, str]:
        """The settings with secrets in the place of references; UsageError where one cannot be had."""
        return {name: _looked_up(name, value) for name, value in self.settings}

    def hides(self, text: str) -> str:
        """A text of a client, without any secret of these settings."""
        for name, value in self.settings:
            if _REFERENCE.fullmatch(value) and (secret := _looked_up(name, value)):
                text = text.replace(secret, "***")
        return text


def flat_settings(settings: Mapping[str, object]) -> dict[str, str]:
    """Settings by their whole names, from tables in tables."""
    return dict(_flat(settings))


def _flat(settings: Mapping[str, object], before: str = "") -> Iterator[tuple[str, str]]:
    for name, value in settings.items():
        match value:
            case Mapping():
                yield from _flat(value, f"{before}{name}.")
            case bool():
                yield f"{before}{name}", str(value).lower()
            case str() | int() | float():
                yield f"{before}{name}", str(value)
            case _:
                raise UsageError(f"the setting '{before}{name}' of Kafka takes a text, a number, true or false")


def _check(name: str, value: str) -> None:
    if not _NAME.fullmatch(name):
        raise UsageError(f"'{name}' is no setting of Kafka", hint="librdkafka's names have small letters and dots")
    if name in OURS:
        raise UsageError(f"the setting '{name}' of Kafka cannot be chosen", hint="it follows from what a client is for")
    if name in LOADING:
        raise UsageError(f"the setting '{name}' of Kafka is refused", hint="it would load or run a program")
    if _SECRET.search(name) and not _REFERENCE.fullmatch(value):
        raise UsageError(
            f"the setting '{name}' of Kafka is a secret, and is not written down here",
            hint="say where it is, as in 'env:KAFKA_PASSWORD' or 'file:/run/secrets/kafka'",
        )


def _placed(value: str, folder: Path) -> str:
    found = _REFERENCE.fullmatch(value)
    return f"file:{folder.absolute() / found[2]}" if found and found[1] == "file" else value


def _looked_up(name: str, value: str) -> str:
    found = _REFERENCE.fullmatch(value)
    match found and found[1]:
        case "env":
            assert found is not None
            if (secret := os.environ.get(found[2])) is None:
                raise UsageError(f"the environment has no '{found[2]}', which is to be '{name}' of Kafka")
            return secret
        case "file":
            assert found is not None
            try:
                with open(found[2], encoding="utf-8") as file:
                    return file.read(_LARGEST_SECRET).rstrip("\r\n")
            except (OSError, UnicodeDecodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
                raise UsageError(f"cannot read '{found[2]}', which is to be '{name}' of Kafka: {reason}") from None
        case _:
            return value
