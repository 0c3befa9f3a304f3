"""Run the steps of deploy/Dockerfile on a Debian machine without Docker, and what the image would run.

    make wheel && scripts/check_deploy.py [--keep FOLDER]

As root, with debootstrap: a root of the Debian that FROM names is made in a temporary folder, which is what its slim
image is, but for manuals and the like.
There each RUN is run as the user and with the ENV that hold at its place, and each COPY is made from the repository; an
instruction that is not known here is an error, not a step that is left out.
Then a site with one stream is put there, and ENTRYPOINT is started with the arguments of CMD, in a network of its own
that has loopback only; HEALTHCHECK is run until it is content, the answer of a subscription and the page are asked for,
and SIGTERM has to end it.
With --keep the root stays in that folder; where it is there already, steps are not run again.
Last, `systemd-analyze` verifies the unit, and says how exposed its service is.

What it does not do: it makes no image, and pulls none; what a container adds, such as a root that is read-only, is not
tried; and the base image may differ from what debootstrap makes of the same release.
Packages of Debian and of Python come by the network of this machine: variables of proxies, pip's variables, and the
certificates of this machine go along.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
DOCKERFILE = TOP / "deploy/Dockerfile"
UNIT = TOP / "deploy/anabranch.service"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
PASSED = re.compile(r"(https?|no)_proxy|PIP_INDEX_URL|PIP_EXTRA_INDEX_URL|PIP_DEFAULT_TIMEOUT", re.IGNORECASE)
"""Variables of this machine without which it might not reach the network."""
MOST_EXPOSED = 2.5
"""The exposure, from 0 to 10, that `systemd-analyze security` may find."""
SECONDS = 300

TOKEN = "check-deploy-0123456789"
SITE = """\
[engine]
checkpoint = "state/checkpoint"

[streams.orders]
path = "in"
format = "json"

[subscriptions.large]
query = "large.xq"
"""
FILES = {
    "srv/anabranch/SITE.toml": SITE,
    "srv/anabranch/large.xq": 'for $o in stream("orders") where $o.amount >= 1000 return { "amount": $o.amount }\n',
    "srv/anabranch/in/0001.jsonl": '{"amount": 5}\n{"amount": 2400}\n',
    "run/secrets/tokens": f"administer {TOKEN} check\n",
}
ASK = """\
import sys, urllib.error, urllib.request
request = urllib.request.Request(sys.argv[1], headers={"Authorization": "Bearer " + sys.argv[2]} if sys.argv[2] else {})
try:
    with urllib.request.urlopen(request, timeout=10) as answer:
        print(answer.status, answer.read().decode())
except urllib.error.HTTPError as refused:
    print(refused.status, refused.read().decode())
except OSError as error:
    print(0, error)
"""


class CheckFailed(Exception):
    """Something does not do what it should."""


# --- the Dockerfile ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """An instruction of a Dockerfile: its keyword, its text, and the options in front of that."""

    keyword: str
    text: str
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def words(self) -> list[str]:
        """The words of an instruction in JSON form, or as a shell would part them."""
        return [str(each) for each in json.loads(self.text)] if self.text[:1] == "[" else shlex.split(self.text)


def steps_of(text: str) -> list[Step]:
    """The instructions of a Dockerfile, in their order."""
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    found = []
    for line in re.sub(r"\\\n\s*", "", lines).splitlines():
        if line.strip():
            keyword, _, rest = line.strip().partition(" ")
            options = {}
            while given := re.match(r"\s*--([\w-]+)=(\S+)\s+", rest):
                options[given[1]] = given[2]
                rest = rest[given.end() :]
            found.append(Step(keyword.upper(), rest.strip(), options))
    return found


# --- a root ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Root:
    """A root on this machine in which steps are made, and what the steps so far have set."""

    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str = "root"
    directory: str = "/"

    def command(self, words: Sequence[str]) -> list[str]:
        """The command that runs words there, as the user that holds."""
        group = ":" if self.user == "root" else f":{self._group()}"
        here = f'cd {shlex.quote(self.directory)} && exec "$@"'
        return ["chroot", f"--userspec={self.user}{group}", str(self.folder), "/bin/sh", "-c", here, "sh", *words]

    def _group(self) -> str:
        users = (self.folder / "etc/passwd").read_text().splitlines()
        found = [line.split(":")[3] for line in users if line.split(":")[0] == self.user]
        if not found:
            raise CheckFailed(f"USER {self.user}: there is no such user")
        return found[0]

    def run(self, script: str) -> None:
        """Run a script of a RUN, with processes of its own."""
        apart = ["unshare", "--mount", "--pid", "--fork", "--kill-child", f"--mount-proc={self.folder}/proc"]
        done = subprocess.run([*apart, *self.command(["/bin/sh", "-c", script])], env=self.variables(), check=False)
        if done.returncode:
            raise CheckFailed(f"the step ends with status {done.returncode}: RUN {script}")

    def variables(self) -> dict[str, str]:
        """The environment of a process there."""
        passed = {name: value for name, value in os.environ.items() if PASSED.fullmatch(name)}
        own = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": self._home()}
        if CERTIFICATES.exists():
            own["PIP_CERT"] = "/certificates-of-this-machine.crt"
        return {**passed, **own, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8", **self.environment}

    def _home(self) -> str:
        users = (self.folder / "etc/passwd").read_text().splitlines()
        return next((line.split(":")[5] for line in users if line.split(":")[0] == self.user), "/")

    def copy(self, step: Step) -> None:
        """Copy files of the repository, as COPY does."""
        *sources, target = step.words
        place = self.folder / target.lstrip("/")
        files = [path for source in sources for path in sorted(TOP.glob(source))]
        if len(files) < len(sources):
            raise CheckFailed(f"COPY {step.text}: not all of it is there; 'make wheel' makes the wheel")
        (place if target.endswith("/") else place.parent).mkdir(parents=True, exist_ok=True)
        for file in files:
            copied = Path(shutil.copyfile(file, place / file.name if target.endswith("/") else place))
            copied.chmod(int(step.options.get("chmod", "644"), 8))


def repositories() -> list[tuple[str, str]]:
    """Where this machine takes packages from: addresses and suites, in order."""
    asked = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)", "Created-By: Packages"]
    found = subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    pairs = (line.rpartition(" ") for line in found)
    return list(dict.fromkeys((where, suite) for where, _, suite in pairs))


def debian(image: str, folder: Path) -> Root:
    """The root that an image of Debian is."""
    found = re.fullmatch(r"debian:(\w+)-slim", image)
    if not found:
        raise CheckFailed(f"FROM {image}: only debian:RELEASE-slim can be made here")
    release = found[1]
    told(f"debootstrap of {release}")
    packages = repositories()
    first = next((where for where, suite in packages if suite == release), None)
    if first is None:
        raise CheckFailed(f"this machine takes no packages of {release}, so it cannot make a root of it")
    command = [tool("debootstrap"), "--variant=minbase", release, str(folder), first]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise CheckFailed(f"debootstrap has failed:\n{done.stdout[-2000:]}")
    updates = "".join(f"deb {where} {suite} main\n" for where, suite in packages if suite.startswith(f"{release}-"))
    with (folder / "etc/apt/sources.list").open("a") as sources:  # the image has them, too
        sources.write(updates)
    shutil.copyfile("/etc/resolv.conf", folder / "etc/resolv.conf")
    (folder / "etc/hosts").write_text(f"127.0.0.1 localhost {platform.node()}\n")  # a container knows its own name
    if CERTIFICATES.exists():
        shutil.copyfile(CERTIFICATES, folder / "certificates-of-this-machine.crt")
    return Root(folder)


def made(steps: Sequence[Step], folder: Path, *, kept: bool) -> tuple[Root, dict[str, list[str]]]:
    """The root behind all steps, and by keyword what the image would run; one that was kept has its files already."""
    root = Root(folder)
    runs: dict[str, list[str]] = {}
    for step in steps:
        began = time.monotonic()
        match step.keyword:
            case "FROM" | "RUN" | "COPY" if kept:
                continue
            case "FROM":
                root = debian(step.text, folder)
            case "RUN":
                root.run(step.text)
            case "COPY":
                root.copy(step)
            case "ENV":
                name, _, value = step.text.partition("=")
                root = replace(root, environment={**root.environment, name: value})
            case "USER":
                root = replace(root, user=step.text)
            case "WORKDIR":
                root = replace(root, directory=step.text)
            case "ENTRYPOINT" | "CMD":
                runs[step.keyword] = step.words
            case "HEALTHCHECK":
                runs[step.keyword] = Step("CMD", step.text.removeprefix("CMD").strip()).words
            case "EXPOSE" | "STOPSIGNAL":
                pass
            case other:
                raise CheckFailed(f"the instruction {other} is not known here")
        told(f"{time.monotonic() - began:6.1f} s  {step.keyword} {step.text[:90]}")
    return root, runs


# --- the service -------------------------------------------------------------------------------------------


@contextmanager
def started(root: Root, words: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """What the image runs, in a network of its own; it is killed at the end, if it has not ended by itself."""
    apart = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", f"--mount-proc={root.folder}/proc"]
    loopback = ["/bin/sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    with subprocess.Popen([*apart, *loopback, *root.command(words)], env=root.variables()) as process:
        try:
            yield process
        finally:
            process.kill()


def check_service(root: Root, runs: Mapping[str, Sequence[str]]) -> None:
    """Start the service over a small site, ask it, and stop it."""
    for name, text in FILES.items():
        file = root.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (root.folder / "etc/resolv.conf").write_text("")  # there is no network from now on, and nobody to ask for names
    with started(root, [*runs["ENTRYPOINT"], *runs["CMD"]]) as process:
        inside = ["nsenter", "--net", f"--target={process.pid}"]

        def asked(path: str, token: str = TOKEN) -> str:
            command = [*inside, sys.executable, "-c", ASK, f"http://127.0.0.1:8080{path}", token]
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

        def healthy() -> bool:
            command = [*inside, *root.command(runs["HEALTHCHECK"])]
            return subprocess.run(command, env=root.variables(), capture_output=True, check=False).returncode == 0

        until(healthy, "HEALTHCHECK is content", process)
        until(lambda: ready(asked("/readyz", "")), "the run is ready", process)
        until(lambda: "2400" in asked("/api/subscriptions/large/answers"), "the subscription is answered", process)
        if not asked("/api/subscriptions", "").startswith("401"):
            raise CheckFailed("the service answers without a token")
        if "<!doctype html>" not in asked("/", "").lower():
            raise CheckFailed("the page is not there")
        told("a token is asked for, and the page is there")
        (first,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(first), signal.SIGTERM)
        status = process.wait(SECONDS)
        if status:
            raise CheckFailed(f"after SIGTERM the status is {status}")
        told("SIGTERM ends it with status 0")


def ready(answer: str) -> bool:
    """Whether a run is at work, by what it answers."""
    if '"failed"' in answer:
        raise CheckFailed(f"the run has failed: {answer}")
    return answer.startswith("200")


def until(holds: Callable[[], bool], what: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until something holds."""
    began = time.monotonic()
    while not holds():
        if process.poll() is not None:
            raise CheckFailed(f"the service has ended with status {process.returncode} before {what}")
        if time.monotonic() - began > SECONDS:
            raise CheckFailed(f"after {SECONDS} seconds it does not hold that {what}")
        time.sleep(0.5)
    told(f"{time.monotonic() - began:6.1f} s  {what}")


# --- the unit ----------------------------------------------------------------------------------------------


def check_unit(root: Root) -> None:
    """Verify the unit for systemd, with the programs of the root, and how exposed it is."""
    analyze = tool("systemd-analyze")
    with tempfile.TemporaryDirectory() as folder:
        unit = Path(folder) / UNIT.name  # its program is in the root, not here
        unit.write_text(
            UNIT.read_text().replace("/opt/anabranch/bin/anabranch", f"{root.folder}/opt/anabranch/bin/anabranch")
        )
        done = subprocess.run([analyze, "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False)
    if done.returncode or UNIT.name in done.stderr:
        raise CheckFailed(f"the unit is not right: {done.stderr}")
    level = f"--threshold={MOST_EXPOSED * 10:.0f}"
    done = subprocess.run(
        [analyze, "security", "--offline=yes", level, str(UNIT)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise CheckFailed(f"the unit is more exposed than {MOST_EXPOSED}: {done.stdout[-200:]}")
    told(done.stdout.strip().splitlines()[-1].removeprefix("→ "))


# --- all of it ---------------------------------------------------------------------------------------------


def told(text: str) -> None:
    """Say how far the check is."""
    print(f"check_deploy: {text}", flush=True)


def tool(name: str) -> str:
    """A program that is needed."""
    found = shutil.which(name)
    if found is None:
        raise CheckFailed(f"'{name}' is needed: apt-get install {'systemd' if name == 'systemd-analyze' else name}")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Check everything; gives the exit status."""
    parser = argparse.ArgumentParser(description="Run the steps of deploy/Dockerfile, and what the image would run.")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the root there, or use one that was kept")
    given: Path | None = parser.parse_args(arguments).keep
    folder = given or Path(tempfile.mkdtemp(prefix="check-deploy-"))
    try:
        if os.geteuid() != 0:
            raise CheckFailed("this needs root, to make a root of its own")
        for name in ("debootstrap", "chroot", "unshare", "nsenter", "ip", "systemd-analyze"):
            tool(name)
        kept = (folder / "root").exists()
        root, runs = made(steps_of(DOCKERFILE.read_text(encoding="utf-8")), folder / "root", kept=kept)
        check_service(root, runs)
        check_unit(root)
    except CheckFailed as failure:
        told(f"failed: {failure}")
        return 1
    finally:
        if given is None:
            shutil.rmtree(folder, ignore_errors=True)
    told("all steps of the Dockerfile have run, and its service works")
    return 0


if __name__ == "__main__":
    sys.exit(main())
