from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent.parent / "scripts"


class Machine:
    """A machine on which only the programs put there are on the PATH."""

    def __init__(self, root: Path) -> None:
        self.bin = root / "bin"
        self.bin.mkdir(parents=True)
        for tool in ("sed", "sh"):
            (self.bin / tool).symlink_to(shutil.which(tool) or tool)
        self.program("id", "echo 1000")

    def program(self, name: str, body: str) -> None:
        """Put a shell script on the PATH."""
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def java(self, version: str) -> None:
        """Put a `java` on the PATH that claims to be of this version, in the words of the real one."""
        self.program("java", says(version))

    def run(self, script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run one of our scripts here."""
        return subprocess.run(
            [SCRIPTS / script, *arguments],
            env={"PATH": str(self.bin), **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=30,
        )


def says(version: str) -> str:
    """The body of a `java` of this version."""
    return f"""echo 'Picked up JAVA_TOOL_OPTIONS: -Dx=1' >&2\necho 'openjdk version "{version}" 2025-04-15' >&2"""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine without Java, without apt-get, and whose user is not root."""
    return Machine(tmp_path)


@pytest.mark.parametrize("version", ["17", "17.0.15", "21", "21.0.2", "22-ea", "100.1"])
def test_a_recent_java_is_used(machine: Machine, version: str) -> None:
    """The command runs, and nothing is said, with any Java from 17 on, however it spells its version."""
    machine.java(version)
    done = machine.run("with-java.sh", "sh", "-c", "echo ran $1", "sh", "a b")
    assert (done.returncode, done.stdout, done.stderr) == (0, "ran a b\n", "")


@pytest.mark.parametrize("version", ["1.8.0_292", "9", "11.0.2", "16.0.1", "none"])
def test_an_old_java_stops_with_the_one_command_to_run(machine: Machine, version: str) -> None:
    """A Java before 17 is no Java: the command does not run, and the user reads what to run instead."""
    machine.java(version)
    machine.program("apt-get", "echo apt-get must not be called by a user who is not root")
    done = machine.run("with-java.sh", "sh", "-c", "echo ran")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        "Java 17 or newer is needed and was not found; run:",
        "    sudo apt-get install openjdk-17-jre-headless",
    ]


def test_a_missing_java_where_nothing_can_be_installed(machine: Machine) -> None:
    """Without Java and without a known package manager, the message says where a Java can be had."""
    done = machine.run("with-java.sh", "sh", "-c", "echo ran")
    assert (done.returncode, done.stdout) == (1, "")
    assert "https://adoptium.net" in done.stderr


def test_java_home_comes_first(machine: Machine, tmp_path: Path) -> None:
    """Spark takes JAVA_HOME before the PATH, and so do we."""
    home = Machine(tmp_path / "jdk")
    home.java("21")
    machine.java("11")
    done = machine.run("with-java.sh", "sh", "-c", "echo $JAVA_HOME", JAVA_HOME=str(home.bin.parent))
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{home.bin.parent}\n", "")


def test_an_old_java_home_is_set_aside(machine: Machine, tmp_path: Path) -> None:
    """Where JAVA_HOME is too old and the PATH is not, the command runs without JAVA_HOME, and it is said."""
    home = Machine(tmp_path / "jdk")
    home.java("1.8.0_292")
    machine.java("17.0.1")
    done = machine.run("with-java.sh", "sh", "-c", "echo [$JAVA_HOME]", JAVA_HOME=str(home.bin.parent))
    assert (done.returncode, done.stdout) == (0, "[]\n")
    assert "is not Java 17 or newer; using the one on the PATH" in done.stderr


def test_root_on_debian_gets_java_installed(machine: Machine) -> None:
    """As root with apt-get, Java is installed, the next package being tried where the first is not to be had."""
    machine.program("id", "echo 0")
    (machine.bin / "cat").symlink_to(shutil.which("cat") or "cat")
    (machine.bin / "chmod").symlink_to(shutil.which("chmod") or "chmod")
    java = machine.bin / "java"
    machine.program(
        "apt-get",
        f"""case "$*" in
*default-jre-headless) cat >{java} <<'END'
#!/bin/sh
{says("21.0.1")}
END
chmod +x {java} ;;
*openjdk-17-jre-headless) exit 100 ;;
esac""",
    )
    done = machine.run("with-java.sh", "sh", "-c", "echo ran")
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert done.stderr.splitlines() == ["installing openjdk-17-jre-headless", "installing default-jre-headless"]


def test_the_exit_status_is_that_of_the_command(machine: Machine) -> None:
    """`make` sees the status of pytest, not of the wrapper."""
    machine.java("17")
    assert machine.run("with-java.sh", "sh", "-c", "exit 7").returncode == 7


def test_an_old_python_is_named(machine: Machine, tmp_path: Path) -> None:
    """Where no Python is recent enough, the message says which one there is, and no environment is made."""
    machine.program("python3", 'case "$1" in --version) echo Python 3.9.2 ;; *) exit 1 ;; esac')
    done = machine.run("venv.sh", str(tmp_path / "venv"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "Python 3.11 or newer is needed; 'python3' is Python 3.9.2\n"
    assert not (tmp_path / "venv").exists()


def test_a_newer_python_than_python3_is_found(machine: Machine, tmp_path: Path) -> None:
    """An old `python3` does not matter where a `python3.12` stands beside it; a lack of venv is told with its cure."""
    machine.program("python3", "exit 1")
    machine.program(
        "python3.12", 'case "$2" in *version_info\\ *) exit 0 ;; *ensurepip*) exit 1 ;; *) echo python3.12-venv ;; esac'
    )
    done = machine.run("venv.sh", str(tmp_path / "venv"))
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "Python's venv module is missing; run:",
        "    sudo apt-get install python3.12-venv",
    ]
