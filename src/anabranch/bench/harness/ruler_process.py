"""Event Ruler in a process of its own, which matches a file of items whenever it is asked to.

The jar and what it depends on come from Maven, by coordinates; the program (`RulerRounds.java`) is compiled beside.
The process stays at work from round to round, so that it can take turns with others, and is idle in between.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from shutil import which
from types import TracebackType

from anabranch.errors import UsageError

RULER = ("software.amazon.event.ruler", "event-ruler", "2.1.0")
_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:build-classpath"
_PROJECT = """<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>anabranch.bench</groupId>
  <artifactId>ruler</artifactId>
  <version>0</version>
  <dependencies>
    <dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>
  </dependencies>
</project>
"""
_TOOLS = {
    "mvn": "install Maven, as in 'apt-get install maven'",
    "javac": "install a JDK, as in 'apt-get install openjdk-17-jdk-headless'",
    "java": "install a JDK, as in 'apt-get install openjdk-17-jdk-headless'",
}
_MEMORY = "-Xmx2g"


def require_tools() -> None:
    """UsageError where there is no Maven or no JDK on the PATH."""
    for tool, hint in _TOOLS.items():
        if which(tool) is None:
            raise UsageError(f"the bench 'ruler' needs '{tool}', which is not on the PATH", hint=hint)


def compiled(folder: Path) -> str:
    """The class path of the program and all that it needs, made in a new folder; UsageError where that fails."""
    folder.mkdir(parents=True)
    project, found = folder / "pom.xml", folder / "classpath"
    project.write_text(_PROJECT.format(*RULER), encoding="utf-8")
    _run("mvn", "-q", "-B", "-f", str(project), _PLUGIN, f"-Dmdep.outputFile={found}")
    jars = found.read_text(encoding="utf-8").strip()
    source = folder / "RulerRounds.java"
    source.write_text(files(__package__).joinpath(source.name).read_text("utf-8"), encoding="utf-8")
    _run("javac", "-cp", jars, "-d", str(folder), str(source))
    return f"{folder}{os.pathsep}{jars}"


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise UsageError(f"'{command[0]}' failed", hint=(done.stdout + done.stderr).strip()[-500:])


class RulerProcess:
    """Rules over a file of JSON lines, matched by some threads; there is nothing but matching."""

    def __init__(self, classpath: str, file: Path, rules: Sequence[str], work: Path, threads: int = 2) -> None:
        work.mkdir(parents=True)
        written = work / "rules"
        written.write_text("".join(f"{each}\n" for each in rules), encoding="utf-8")
        self._command = "java", _MEMORY, "-cp", classpath, "RulerRounds", str(file), str(written), str(threads)
        self.matches = 0
        """The number of matches of the last round."""

    def __enter__(self) -> RulerProcess:
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._answer() == "ready"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()  # without any more orders it ends

    def counts(self) -> list[int]:
        """How many items each rule matches."""
        return [int(each) for each in self._ask("counts").split()]

    def round(self) -> float:
        """The seconds of one more round."""
        nanoseconds, matches = self._ask("round").split()
        self.matches = int(matches)
        return int(nanoseconds) / 1e9

    def _ask(self, order: str) -> str:
        assert self._process.stdin is not None
        print(order, file=self._process.stdin, flush=True)
        return self._answer()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "Event Ruler has ended; standard error says why"
        return line.strip()
