"""Killed again and again while clients register and follow, a service has all that it has answered for.

One client registers, changes and cancels subscriptions, alone and several at once; another follows an answer all the
time, over the same stream of answers, whatever is killed in between; items come in meanwhile.
The service is started again at the same port, where its clients find it by themselves.

What a client was told is the judge: whatever was answered with success is so after every restart; what broke off has
happened as a whole or not at all, and stays as it was found.
"""

from __future__ import annotations

import faulthandler
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from threading import Event, Lock, Thread

import pytest

from anabranch.cli import main
from anabranch.client import RemoteAnswer, RemoteSite, RemoteUnavailable, connect
from anabranch.client.following import place_of
from mass import Mass
from service import local_service
from service.killed import PATIENCE, Killed, Victim, free_port
from service.local_service import SITE, is_alive, is_ready, make_site

MOST = 40
"""Subscriptions, above which there are no more."""
MINE = 'for $p in stream("s")/root/p return <mine>{ $p/text() }</mine>'
CHANGED = 'for $p in stream("s")/root/p where $p >= 0 return <changed>{ $p/text() }</changed>'


@dataclass
class Registrar:
    """A client that registers, changes and cancels; what it was told is what must be."""

    url: str
    seed: int
    there: dict[str, str] = field(default_factory=dict)
    """By name: the query of what was registered."""
    gone: set[str] = field(default_factory=set)
    """Was cancelled, or was found not to be there."""
    unknown: list[tuple[frozenset[str], str | None]] = field(default_factory=list)
    """Names, and the query that they would have, None for none, of requests that broke off."""
    told: int = 0
    """How many requests were answered with success."""
    failures: list[str] = field(default_factory=list)
    stop: Event = field(default_factory=Event)
    turn: Lock = field(default_factory=Lock)
    """Held for each request, and for each check."""

    def work(self) -> None:
        random, numbers = Random(f"registrar {self.seed}"), count()
        site: RemoteSite | None = None
        try:
            while not self.stop.is_set():
                try:
                    site = site or connect(self.url, timeout=30)
                    with self.turn:
                        self._ask(site, random, numbers)
                    self.told += 1
                    self.stop.wait(0.01)
                except RemoteUnavailable:
                    self.stop.wait(0.02)
        except BaseException as error:
            self.failures.append(f"{type(error).__name__}: {error}")

    def _ask(self, site: RemoteSite, random: Random, numbers: count[int]) -> None:
        """One request, whose effect is noted before it is sent, and settled when it is answered."""
        settled = sorted(self.there.keys() - {name for names, _ in self.unknown for name in names})
        usual = ("register", "register", "several", "cancel", "change")
        deed = random.choice(usual if len(settled) < MOST else ("cancel", "change")) if settled else "register"
        match deed:
            case "register" | "several":
                names = [f"r{next(numbers)}" for _ in range(4 if deed == "several" else 1)]
                self.unknown.append((frozenset(names), MINE))
                if deed == "several":
                    assert site.register_all([{"name": name, "query": MINE} for name in names]) == names
                else:
                    site.subscribe(MINE, names[0])
                self.there |= dict.fromkeys(names, MINE)
            case "cancel":
                name = random.choice(settled)
                self.unknown.append((frozenset((name,)), None))
                site.subscription(name).cancel()
                del self.there[name]
                self.gone.add(name)
            case "change":
                name = random.choice(settled)
                self.unknown.append((frozenset((name,)), CHANGED))
                site.subscription(name).change(CHANGED)
                self.there[name] = CHANGED
        self.unknown.pop()

    def check(self, site: RemoteSite) -> None:
        """Compare what is there with what was told; whatever is found of what broke off is so from then on."""
        with self.turn:
            found = {each.name: str(each.details()["query"]) for each in site.subscriptions(origin="service")}
            open_names = {name for names, _ in self.unknown for name in names}
            missing = [name for name, text in self.there.items() if name not in open_names and found.get(name) != text]
            assert missing == [], "what was registered or changed with success is not there"
            assert self.gone.isdisjoint(found), "what was cancelled is back"
            assert found.keys() <= self.there.keys() | open_names, "something is there that nobody was told of"
            for names, wanted in self.unknown:
                states = {found.get(name) for name in names}
                assert len(states) == 1, "of what was registered at once only a part is there"
                assert states <= {wanted, *(self.there.get(name) for name in names)}
            for name in open_names:
                if name in found:
                    self.there[name] = found[name]
                else:
                    self.there.pop(name, None)
                    self.gone.add(name)
            self.unknown.clear()


@dataclass
class FollowingClient:
    """A client that follows an answer, from one connection of its to the next."""

    url: str
    answers: list[RemoteAnswer] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    last: str | None = None
    """The answer with which it ends, once that is known."""

    def work(self) -> None:
        try:
            for answer in connect(self.url).subscription("all").answers(follow=True, patience=PATIENCE):
                self.answers.append(answer)
                if answer.text == self.last:
                    return
        except BaseException as error:
            self.failures.append(f"{type(error).__name__}: {error}")


@dataclass
class Feeder:
    """Lets items come."""

    file: Path
    stop: Event = field(default_factory=Event)
    count: int = 0

    def work(self) -> None:
        with self.file.open("a") as file:
            while not self.stop.is_set():
                file.write("".join(f"<p>{self.count + more}</p>\n" for more in range(5)))
                file.flush()
                self.count += 5
                self.stop.wait(0.02)


def chain(service: Killed, victims: Sequence[Victim], seed: int) -> tuple[Registrar, FollowingClient]:
    """Kill a service again and again, then let it come to an end; all that was told is checked on the way."""
    random = Random(seed)
    registrar, follower = Registrar(service.url, seed), FollowingClient(service.url)
    feeder = Feeder(service.folder / "in" / "items")
    threads = [Thread(target=each.work, daemon=True) for each in (registrar, feeder, follower)]
    service.start()
    service.watch(lambda: is_ready(service.url), "it was ready")
    for each in threads:
        each.start()
    service.watch(lambda: bool(follower.answers), "the follower had an answer")  # its first connection has to succeed
    for victim in victims:
        told, heard = registrar.told + random.choice((0, 3, 15)), len(follower.answers) + random.choice((0, 10, 100))
        service.watch(
            lambda told=told, heard=heard: (  # type: ignore[misc]
                (registrar.told >= told and len(follower.answers) >= heard)
                or bool(registrar.failures or follower.failures)
            ),
            "its clients had what they wanted",
        )
        assert registrar.failures == follower.failures == []
        service.kill(victim)
        service.start()
        if random.random() < 0.3:  # killed as soon as it listens, which is before it is ready
            service.watch(lambda: is_alive(service.url), "it listened")
            service.kill("process")
            service.start()
        service.watch(lambda: is_ready(service.url), "it was ready again")
        registrar.check(connect(service.url))
    told = registrar.told
    service.watch(lambda: registrar.told >= told + 10 or bool(registrar.failures), "clients went on")
    for stopped in (registrar, feeder):
        stopped.stop.set()
    for thread in threads[:2]:
        thread.join(PATIENCE)
    with feeder.file.open("a") as file:
        file.write("<p>last</p>\n")
    follower.last = "<n>last</n>"
    service.watch(lambda: not threads[2].is_alive(), "the follower had the last answer")
    assert registrar.failures == follower.failures == []
    _check_answers(service, registrar, follower, feeder.count)
    service.end()
    return registrar, follower


def _check_answers(service: Killed, registrar: Registrar, follower: FollowingClient, items: int) -> None:
    """Answers have no gap and nothing twice: the one that was followed has everything, others all since they began."""
    expected = [*map(str, range(items)), "last"]
    assert [each.text for each in follower.answers] == [f"<n>{each}</n>" for each in expected]
    places = [place_of(each.position) for each in follower.answers]
    assert places == sorted(set(places), key=lambda place: place or (0, 0))
    site = connect(service.url)
    assert list(site.subscription("all")) == follower.answers
    registrar.check(site)
    for name, text in registrar.there.items():
        found = [each.text.partition(">")[2].partition("<")[0] for each in site.subscription(name)]
        wanted = expected if text == MINE else expected[:-1]  # a text is no number
        assert found == wanted[len(wanted) - len(found) :], f"the answer of '{name}' has a gap"


def _check_file(service: Killed, follower: FollowingClient, capsys: pytest.CaptureFixture[str]) -> None:
    """The whole answer, as the site's own command prints it, is what the follower had."""
    capsys.readouterr()
    assert main(["answer", str(service.folder / "SITE.toml"), "all"]) == 0
    assert capsys.readouterr().out == "".join(each.text for each in follower.answers) + "\n"


def test_no_kill_shows_to_clients(mass: Mass, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without Spark: many kills of the process."""
    faulthandler.cancel_dump_traceback_later()  # many processes, of which each has its own limit
    port = free_port()
    command: list[str | Path] = [sys.executable, local_service.__file__, make_site(tmp_path), str(port)]
    service = Killed(tmp_path, port, command)
    try:
        registrar, follower = chain(service, ["process"] * mass.amount(40, budget=2), mass.seed)
    finally:
        service.give_up()
    _check_file(service, follower, capsys)
    assert len(registrar.there) > 3


@pytest.mark.kills
@pytest.mark.spark
def test_no_kill_shows_to_clients_of_spark(mass: Mass, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`anabranch serve` with its JVM: kills of the process, of the JVM, and of both."""
    faulthandler.cancel_dump_traceback_later()
    port = free_port()
    site = make_site(tmp_path, SITE.replace("trigger_ms = 20", "trigger_ms = 50\nshards = 1"))
    command: list[str | Path] = [Path(sys.executable).with_name("anabranch"), "serve", site, "--port", str(port)]
    victims: list[Victim] = ["process", "jvm", "both"]
    chosen = [victims[number % 3] for number in range(mass.amount(15, budget=2))]
    service = Killed(tmp_path, port, command)
    try:
        registrar, follower = chain(service, chosen, mass.seed)
    finally:
        service.give_up()
    _check_file(service, follower, capsys)
    with capsys.disabled():
        print(f"\nservice: {len(chosen)} kills, {len(registrar.there)} registered, {len(follower.answers)} answers")
