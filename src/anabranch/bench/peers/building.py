"""Programs of peers, built: their jars come from Maven, by coordinates, and the program is compiled beside.

A JDK is the one on the PATH, where it is new enough for the peer, or one that is installed next to it.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from shutil import which

from anabranch.bench.peers.peer import Coordinates, PeerEngine, PeerFailure
from anabranch.errors import UsageError

_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:build-classpath"
_PROJECT = """<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>anabranch.bench</groupId>
  <artifactId>peer</artifactId>
  <version>0</version>
  <dependencies>
{}  </dependencies>
</project>
"""
_DEPENDENCY = "    <dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>\n"
_TOOLS = {
    "mvn": "install Maven, as in 'apt-get install maven'",
    "javac": "install a JDK, as in 'apt-get install openjdk-17-jdk-headless'",
    "java": "install a JDK, as in 'apt-get install openjdk-17-jdk-headless'",
}
_RELEASE = re.compile(r'^JAVA_VERSION="(\d+)', re.MULTILINE)
_SECONDS = 900
"""Maven fetches some hundred megabytes the first time."""


def require_tools() -> None:
    """UsageError where there is no Maven or no JDK on the PATH."""
    for tool, hint in _TOOLS.items():
        if which(tool) is None:
            raise UsageError(f"the bench 'peers' needs '{tool}', which is not on the PATH", hint=hint)


@dataclass(frozen=True, slots=True)
class JavaProgram:
    """The program of a peer, ready to run."""

    peer: PeerEngine
    home: Path
    """The JDK that it runs on."""
    classpath: str

    @property
    def version(self) -> str:
        """The version of Java that it runs on."""
        return str(_version(self.home))

    def command(self, memory: str, main: str, *arguments: str) -> tuple[str, ...]:
        """The command line that runs one of its main classes."""
        java = str(self.home / "bin" / "java")
        return java, f"-Xmx{memory}", *self.peer.options, "-cp", self.classpath, main, *arguments


def built(peer: PeerEngine, folder: Path) -> JavaProgram:
    """Fetch a peer and compile its program into a new folder; PeerFailure where either fails."""
    home = java_home(peer.jdk)
    folder.mkdir(parents=True)
    project, found = folder / "pom.xml", folder / "classpath"
    project.write_text(project_of(peer.artifacts), encoding="utf-8")
    _run("mvn", "-q", "-B", "-f", str(project), _PLUGIN, f"-Dmdep.outputFile={found}")
    jars = found.read_text(encoding="utf-8").strip()
    sources = [folder / f"{each}.java" for each in peer.sources]
    for each in sources:
        text = files(__package__).joinpath("java", each.name).read_text("utf-8")
        each.write_text(text, encoding="utf-8")
    _run(str(home / "bin" / "javac"), "-nowarn", "-cp", jars, "-d", str(folder), *map(str, sources))
    return JavaProgram(peer, home, f"{folder}{os.pathsep}{jars}")


def project_of(artifacts: Iterable[Coordinates]) -> str:
    """A project of Maven that needs some artifacts."""
    return _PROJECT.format("".join(_DEPENDENCY.format(*each) for each in artifacts))


def java_home(least: int) -> Path:
    """Where a JDK of this version or a newer one is installed; PeerFailure where there is none."""
    for home in _homes():
        if (home / "bin" / "javac").exists() and _version(home) >= least:
            return home
    raise PeerFailure(f"it needs a JDK of version {least} or newer, and there is none")


def _version(home: Path) -> int:
    """The version of an installed JDK; 0 where there is none."""
    release = home / "release"
    found = _RELEASE.search(release.read_text(encoding="utf-8")) if release.exists() else None
    return 0 if found is None else int(found[1])


def _homes() -> Iterator[Path]:
    """The JDK on the PATH, and those next to it."""
    javac = which("javac")
    if javac is not None:
        home = Path(javac).resolve().parent.parent
        yield home
        yield from sorted(each for each in home.parent.iterdir() if each.is_dir() and each != home)


def _run(*command: str) -> None:
    name = Path(command[0]).name
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise PeerFailure(f"'{name}' did not end within {_SECONDS} s") from error
    if done.returncode != 0:
        said = [each for each in (done.stdout + done.stderr).splitlines() if each.strip()]
        raise PeerFailure(f"'{name}' failed: {said[0][:300] if said else 'without a word'}")
