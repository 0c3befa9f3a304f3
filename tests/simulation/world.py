"""The simulated world: one seed decides who runs when, what fails, who dies and what time it is.

Everything that a run of the simulation does is done by *fibers*, of which exactly one runs at a time.
A fiber is a thread, but it never runs beside another: it goes on until it comes to a *step*, and there the seed decides
who runs next.
Every operation of the simulated disk and of the simulated object store is a step, so at each of them the work may be
handed to another fiber, an error may come, and the process may die.

A fiber belongs to a *process*: a run of the trunk, or one of the workers that run its tasks.
A process that dies is ended as by kill -9: nothing that its fibers do while they unwind has an effect any more, for
each further step of theirs raises `Killed`, which is no `Exception` and so is caught by nobody.

Nothing here asks the clock, the machine or the interpreter for anything, so a seed gives the same steps each time, as
long as strings are hashed alike (`PYTHONHASHSEED=0`, which `run.py` sees to).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from random import Random
from threading import Semaphore, Thread, get_ident
from typing import Any, Generic, TypeVar

from anabranch.branch import cache

T = TypeVar("T")

_START = 1_800_000_000_000_000
"""The microseconds since 1970 at which the world begins."""


class Killed(BaseException):
    """Ends the fibers of a process that has died."""


class Lost(Exception):
    """A worker has died; whoever waits for its task is told so."""


class Deadlock(AssertionError):
    """Nobody can go on."""


@dataclass(eq=False)
class Process:
    """A process of the simulated machines."""

    name: str
    alive: bool = True
    paused: bool = False
    """Whether it stands still, like a machine that is suspended; it goes on when it is waked."""
    fates: list[Callable[[], None]] = field(default_factory=list)
    """Called before each of its steps; they may kill the process, let it stand still, or raise an error."""
    cache: cache.ProcessCache = field(default_factory=cache.ProcessCache)


class Fiber(Generic[T]):
    """A flow of work in a process."""

    def __init__(self, world: World, process: Process, work: Callable[[], T] | None, weight: float = 1.0) -> None:
        self.number = world.begin()
        """Tells it from all others."""
        self.process = process
        self.weight = weight
        """How likely it is to go on, beside others; a slow one has little."""
        self.done = work is None
        self.error: BaseException | None = None
        self.result: T | None = None
        self.until: Callable[[], bool] | None = None
        """What it waits for."""
        self.deadline: float | None = None
        """When it waits no longer, by the clock that only goes forwards."""
        self._world = world
        self._work = work
        self._turn = Semaphore(0)
        self._thread: Thread | None = None

    @property
    def is_ready(self) -> bool:
        """Whether it can go on; one whose process has died can unwind."""
        if self.done:
            return False
        if not self.process.alive:
            return True
        if self.process.paused:
            return False
        return self.until is None or self.until() or self.is_late

    @property
    def is_late(self) -> bool:
        """Whether it has waited as long as it wanted to."""
        return self.deadline is not None and self._world.clock.monotonic() >= self.deadline

    def resume(self) -> None:
        """Let it go on; the caller waits for its own turn, or ends."""
        if self._thread is None and self._work is not None:
            self._thread = Thread(target=self._run, name=self.process.name, daemon=True)
            self._thread.start()
        self._turn.release()

    def wait(self) -> None:
        """Wait for the next turn."""
        self._turn.acquire()

    def _run(self) -> None:
        self.wait()
        self._world.arrive(self)
        try:
            assert self._work is not None
            if self.process.alive:
                self.result = self._work()
            else:
                self.error = Killed()
        except BaseException as error:
            self.error = error
        self.done = True
        self._world.leave(self)


class World:
    """All that the seed decides; `random` is for whoever makes up what happens in it."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(f"what happens {seed}")
        self._order = Random(f"who runs when {seed}")
        self._bytes = Random(f"names {seed}")
        self.restless = self._order.choice((0.0, 0.02, 0.1, 0.4))
        """How often another fiber goes on at a step."""
        self.steps = 0
        self.trace = hashlib.sha256()
        """What was done, in order: equal for equal seeds."""
        self.after_step: list[Callable[[], None]] = []
        """What happens outside of all processes, after each step: files grow, requests that were late arrive."""
        self.clock = Clock(self._order)
        self._begun = 0
        self._outside = Fiber[None](self, Process("outside"), None)
        self._outside.done = False
        self._fibers: list[Fiber[Any]] = [self._outside]
        self.current: Fiber[Any] = self._outside
        self._ident = get_ident()
        self._quiet = 0

    def begin(self) -> int:
        """The number of a new fiber."""
        self._begun += 1
        return self._begun

    # --- steps --------------------------------------------------------------------------------------------

    def step(self, what: str, name: str) -> bool:
        """Something is about to be done to something; whether it is a part of the world, and not looked at only.

        Raises `Killed` where the process is dead, and whatever its fate wants.
        """
        if self._quiet or get_ident() != self._ident:
            return False
        process = self.current.process
        if not process.alive:
            raise Killed
        self.steps += 1
        self.trace.update(f"{process.name} {what} {name}\n".encode())
        self.clock.tick()
        for each in self.after_step:
            each()
        for fate in process.fates:
            fate()
        if process.paused or self._order.random() < self.restless:
            self._hand_on()
        return True

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Look at the world from outside: nothing happens meanwhile."""
        self._quiet += 1
        try:
            yield
        finally:
            self._quiet -= 1

    @property
    def is_looking(self) -> bool:
        """Whether somebody looks at the world from outside."""
        return bool(self._quiet)

    def urandom(self, size: int) -> bytes:
        """Random bytes, for names that nobody else uses."""
        return self._bytes.randbytes(size)

    # --- fibers -------------------------------------------------------------------------------------------

    def spawn(self, process: Process, work: Callable[[], T], weight: float = 1.0) -> Fiber[T]:
        """A new fiber, which begins when it is handed the work."""
        fiber = Fiber(self, process, work, weight)
        self._fibers.append(fiber)
        return fiber

    def wait(self, until: Callable[[], bool], seconds: float | None = None) -> bool:
        """Let others go on until something holds, or for so long; whether it holds.

        Where all wait, the clock passes to the moment at which the first of them waits no longer.
        """
        me = self.current
        deadline = None if seconds is None else self.clock.monotonic() + seconds
        while not until():
            if deadline is not None and self.clock.monotonic() >= deadline:
                return False
            me.until, me.deadline = until, deadline
            self._hand_on()
            me.until = me.deadline = None
        return True

    def sleep(self, seconds: float) -> None:
        """Let time pass, and others go on."""
        self.wait(lambda: False, seconds)

    def join(self, fiber: Fiber[T]) -> T:
        """Wait for the end of a fiber; gives its result, or raises its error."""
        self.wait(lambda: fiber.done)
        if fiber.error is not None:
            raise fiber.error
        return fiber.result  # type: ignore[return-value]  # it has ended without an error

    def kill(self, *processes: Process) -> None:
        """Let processes die; their fibers unwind before anything else is done."""
        for each in processes:
            each.alive = False
        mine = [each for each in self._fibers if each.process in processes and each is not self.current]
        if self.current.process not in processes:
            self.wait(lambda: all(each.done for each in mine))

    def unwind(self) -> None:
        """Wait until all fibers of dead processes have ended."""
        self.wait(lambda: all(each.done or each.process.alive for each in self._fibers))

    def fibers(self, process: Process) -> Sequence[Fiber[Any]]:
        """The fibers of a process that have not ended."""
        return [each for each in self._fibers if each.process is process and not each.done]

    def arrive(self, fiber: Fiber[Any]) -> None:
        """A fiber has begun, or goes on: the world is its own now."""
        self._ident = get_ident()
        cache.here = fiber.process.cache

    def leave(self, fiber: Fiber[Any]) -> None:
        """A fiber has ended, and hands the work on."""
        self._fibers.remove(fiber)
        following = self._chosen()
        self.current = following
        following.resume()

    def _hand_on(self) -> None:
        me = self.current
        following = self._chosen()
        if following is not me:
            self.current = following
            following.resume()
            me.wait()
            self.arrive(me)
        if not me.process.alive:
            raise Killed

    def _chosen(self) -> Fiber[Any]:
        """Who goes on: those who unwind at once, else anyone who can."""
        ready = [each for each in self._fibers if each.is_ready]
        if not ready:
            self.clock.pass_to([each.deadline for each in self._fibers if each.deadline and not each.process.paused])
            ready = [each for each in self._fibers if each.is_ready]
        if not ready:
            waiting = [each.process.name for each in self._fibers]
            raise Deadlock(f"nobody can go on: {waiting}")
        dead = [each for each in ready if not each.process.alive]
        if dead:
            return dead[0]
        return ready[0] if len(ready) == 1 else self._order.choices(ready, [each.weight for each in ready])[0]


class Clock:
    """The time of the world, which moves with its steps, and jumps to and fro."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._wall = _START
        self._passed = 0
        self._jumpy = random.random() < 0.5

    def tick(self) -> None:
        """Let some time pass."""
        passed = self._random.randint(1, 3_000)
        self._wall += passed
        self._passed += passed
        if self._jumpy and self._random.random() < 0.002:
            self._wall += self._random.choice((-1, 1)) * self._random.choice((10**6, 3_600 * 10**6, 10**13))

    def pass_to(self, moments: Sequence[float]) -> None:
        """Let time pass to the first of some moments, if there are any."""
        if moments:
            passed = max(0, ceil(min(moments) * 1_000_000) + 1 - self._passed)
            self._wall += passed
            self._passed += passed

    def time_ns(self) -> int:
        """What the clock on the wall shows, which may be set back."""
        return self._wall * 1_000

    def time(self) -> float:
        """The same in seconds."""
        return self._wall / 1_000_000

    def monotonic(self) -> float:
        """The seconds that have passed."""
        return self._passed / 1_000_000


# --- what stands in for threads ---------------------------------------------------------------------------------------


def threads_of(world: World) -> type:
    """The class of threads in the world: fibers of the process that starts them."""

    class FiberThread:
        """A thread, as far as production code uses one."""

        def __init__(
            self, target: Callable[..., None], args: Sequence[Any] = (), name: str = "", daemon: bool = False
        ) -> None:
            self._target = partial(target, *args)
            self._fiber: Fiber[None] | None = None

        def start(self) -> None:
            self._fiber = world.spawn(world.current.process, self._target)

        def join(self, timeout: float | None = None) -> None:
            if self._fiber is not None:
                fiber = self._fiber
                world.wait(lambda: fiber.done, timeout)

        def is_alive(self) -> bool:
            return self._fiber is not None and not self._fiber.done

    return FiberThread


def conditions_of(world: World) -> type:
    """The class of conditions in the world; nobody else goes on while one is held, since nothing there is a step."""

    class FiberCondition:
        """A condition, as far as production code uses one."""

        def __enter__(self) -> None:
            pass

        def __exit__(self, *_: object) -> None:
            pass

        def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
            return world.wait(predicate, timeout)

        def notify_all(self) -> None:
            pass

    return FiberCondition


def events_of(world: World) -> type:
    """The class of events in the world."""

    class FiberEvent:
        """An event, as far as production code uses one."""

        def __init__(self) -> None:
            self._is_set = False

        def set(self) -> None:
            self._is_set = True

        def is_set(self) -> bool:
            return self._is_set

        def wait(self, timeout: float) -> bool:
            return world.wait(self.is_set, timeout)

    return FiberEvent


def futures_of(world: World) -> type:
    """The class of futures in the world."""

    class FiberFuture:
        """What a fiber will have found."""

        def __init__(self) -> None:
            self._done = False
            self._found: Any = None
            self._error: BaseException | None = None

        def set_result(self, found: Any) -> None:
            self._done, self._found = True, found

        def set_exception(self, error: BaseException) -> None:
            self._done, self._error = True, error

        def result(self, timeout: float) -> Any:
            if not world.wait(lambda: self._done, timeout):
                raise TimeoutError
            if self._error is not None:
                raise self._error
            return self._found

    return FiberFuture


def pools_of(world: World) -> type:
    """The class of thread pools in the world: they do what they are given one after the other, in any order."""

    class Pool:
        """A pool of threads, as far as production code uses one."""

        def __init__(self, size: int) -> None:
            pass

        def __enter__(self) -> Pool:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def map(self, work: Callable[[T], Any], given: Iterable[T]) -> list[Any]:
            items = list(given)
            found: list[Any] = [None] * len(items)
            for number in world.random.sample(range(len(items)), len(items)):
                found[number] = work(items[number])
            return found

    return Pool
