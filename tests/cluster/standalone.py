"""Spark's own cluster manager on machines of a lab: a master, and workers with one executor each."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from time import monotonic, sleep

import pyspark

from cluster.machines import Lab, Machine

PATIENCE = 120.0
_HOME = Path(pyspark.__file__).parent
_PORT = 7077


def python_paths() -> list[str]:
    """What a machine needs to see to run Python with all packages of others, and Java."""
    venv = Path(sys.prefix)
    return [str(venv), sys.base_prefix, *([os.environ["JAVA_HOME"]] if os.environ.get("JAVA_HOME") else [])]


class Cluster:
    """A master and its workers; none of them has the package that is tried out."""

    def __init__(self, lab: Lab, paths: Sequence[str] = (), environment: dict[str, str] | None = None) -> None:
        self._lab = lab
        self._paths = [*python_paths(), *paths]
        self._environment = {"SPARK_HOME": str(_HOME), "SPARK_DAEMON_MEMORY": "256m", **(environment or {})}
        self.workers: list[Machine] = []
        self.master = self._machine("master")
        self._start(self.master, "org.apache.spark.deploy.master.Master", "--port", str(_PORT))
        self._said(self.master, "Starting Spark master at")

    @property
    def url(self) -> str:
        return f"spark://{self.master.address}:{_PORT}"

    def worker(self, *, cores: int = 1, memory: str = "600m") -> Machine:
        """A new worker; returns when the master knows it."""
        machine = self._machine(f"worker{len(self.workers) + 1}")
        self.workers.append(machine)
        size = ["--cores", str(cores), "--memory", memory, "--work-dir", "/tmp/work"]
        self._start(machine, "org.apache.spark.deploy.worker.Worker", self.url, *size)
        self._said(machine, "Successfully registered with master")
        return machine

    def _machine(self, name: str) -> Machine:
        return self._lab.machine(name, self._paths, self._environment)

    def _start(self, machine: Machine, service: str, *arguments: str) -> None:
        here = ["--host", machine.address, "--webui-port", "0"]
        command = [str(_HOME / "bin" / "spark-class"), service, *arguments, *here]
        given = {"SPARK_LOCAL_IP": machine.address, "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false"}
        machine.background(command, "/tmp/service.log", environment=given)

    def _said(self, machine: Machine, pattern: str) -> None:
        """Wait until a service has said something."""
        patience = monotonic() + PATIENCE
        while not re.search(pattern, log := machine.log("/tmp/service.log")):
            assert monotonic() < patience, f"{machine.name}: {log}"
            sleep(0.1)
