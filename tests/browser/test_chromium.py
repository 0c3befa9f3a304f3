"""How the tests of the page come by a browser (`scripts/chromium.sh`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from test_scripts import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine without a browser, without apt-get, and whose user is not root."""
    return Machine(tmp_path)


@pytest.mark.parametrize("name", ["chromium", "chromium-browser", "google-chrome"])
def test_a_browser_on_the_path_is_taken(machine: Machine, name: str) -> None:
    """Its path is printed, under whichever name it is there, and nothing else is said."""
    machine.program(name, "true")
    done = machine.run("chromium.sh")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{machine.bin / name}\n", "")


def test_a_browser_that_is_named_comes_first(machine: Machine, tmp_path: Path) -> None:
    """ANABRANCH_CHROMIUM is taken before the PATH; one that cannot be run is told and passed over."""
    machine.program("chromium", "true")
    machine.program("mine", "true")
    mine = str(machine.bin / "mine")
    assert machine.run("chromium.sh", ANABRANCH_CHROMIUM=mine).stdout == f"{mine}\n"
    missing = machine.run("chromium.sh", ANABRANCH_CHROMIUM=str(tmp_path / "none"))
    assert missing.stdout == f"{machine.bin / 'chromium'}\n"
    assert "cannot be run" in missing.stderr


def test_a_machine_without_a_browser_is_told_what_to_run(machine: Machine) -> None:
    """Who may not install anything is told the command, and the script fails."""
    machine.program("apt-get", "exit 9")
    done = machine.run("chromium.sh")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "sudo apt-get install chromium" in done.stderr


def test_root_on_debian_gets_one(machine: Machine) -> None:
    """As root it is installed, and then found."""
    machine.program("id", "echo 0")
    (machine.bin / "chmod").symlink_to("/bin/chmod")
    target = machine.bin / "chromium"
    machine.program("apt-get", f"case $* in *install*) echo '#!/bin/sh' >{target}; chmod +x {target};; esac")
    done = machine.run("chromium.sh")
    assert (done.returncode, done.stdout) == (0, f"{target}\n")
