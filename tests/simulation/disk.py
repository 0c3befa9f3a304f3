"""The simulated disk: real files, of which a power cut loses or tears what was not synced.

Production code works on a real folder by the usual calls of Python; these calls are watched here.
What the folder holds is what the page cache of a machine holds: it survives the end of a process.
Beside it stands what is on the platter: of a file its bytes when it was last synced, of a folder its names when it was
last synced.
A power cut leaves for each name one of the values that it had since its folder was synced, independently of all other
names, and for each file its synced bytes, the later ones, or blocks of both; so neither the order of writes nor any
sync of something else protects what was not synced.
POSIX promises no more, and file systems have been seen to do all of it.

A name is always a whole entry, so a rename shows the old file or the new one; and what was synced stays.
Only what is written and removed below the folder is watched; inputs of a run lie elsewhere.
"""

from __future__ import annotations

import builtins
import io
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import pytest

from simulation.world import World

_BLOCK = 32
"""The bytes that a disk writes whole or not at all; small, since files are."""


@dataclass(eq=False)
class File:
    """A file, under whatever names."""

    synced: bytes | None = None
    """Its bytes when it was last synced."""
    last: bytes | None = None
    """Its bytes when its last name was removed."""


@dataclass(eq=False)
class Folder:
    """A folder: the names in it as processes see them, and on the platter."""

    now: dict[str, Node] = field(default_factory=dict)
    synced: dict[str, Node] = field(default_factory=dict)
    since: dict[str, list[Node | None]] = field(default_factory=dict)
    """By name: what it stood for since the folder was synced, in order."""

    def set(self, name: str, node: Node | None) -> None:
        """Let a name stand for something, or for nothing."""
        if node is None:
            self.now.pop(name, None)
        else:
            self.now[name] = node
        self.since.setdefault(name, []).append(node)

    def sync(self) -> None:
        """What it holds is on the platter."""
        self.synced = dict(self.now)
        self.since.clear()


Node: TypeAlias = File | Folder


@dataclass(frozen=True, slots=True)
class PowerCut:
    """How much of what was not synced survives a power cut."""

    random: Random
    names: float
    """The chance of a name to have another value than the synced one."""
    content: float
    """The chance of a file to have other bytes than the synced ones."""

    @staticmethod
    def drawn(random: Random) -> PowerCut:
        """Often nothing survives, or everything; that shows most."""
        chances = (0.0, 0.0, 0.5, 1.0)
        return PowerCut(random, random.choice(chances), random.choice(chances))

    def node_of(self, folder: Folder, name: str) -> Node | None:
        """What a name stands for afterwards."""
        since = folder.since.get(name)
        if since and self.random.random() < self.names:
            return self.random.choice(since)
        return folder.synced.get(name)

    def bytes_of(self, synced: bytes | None, now: bytes) -> bytes:
        """What a file holds afterwards."""
        old = synced or b""
        if old == now or self.random.random() >= self.content:
            return old
        if self.random.random() < 0.4:
            return now
        length = self.random.randint(min(len(old), len(now)), max(len(old), len(now)))
        blocks = []
        for start in range(0, length, _BLOCK):
            size = min(_BLOCK, length - start)
            block = self.random.choice((old, now, now))[start : start + size]
            blocks.append(block.ljust(size, b"\0"))
        return b"".join(blocks)


class SimulatedDisk:
    """A folder whose power can be cut."""

    def __init__(self, world: World, root: Path, patch: pytest.MonkeyPatch) -> None:
        self._world = world
        self._root = str(root)
        self._tree = Folder()
        self._image: dict[str, bytes | None] | None = None
        """What the disk holds after the last kill: bytes by path, None for folders."""
        self._laying = False
        """Whether it is being laid, which nobody watches."""
        self._real = {
            name: getattr(os, name)
            for name in ("replace", "rename", "link", "unlink", "remove", "rmdir", "mkdir", "fsync", "open")
        }
        self._real_open = io.open
        for name in self._real:
            patch.setattr(os, name, getattr(self, f"_{name}"))
        patch.setattr(io, "open", self._open_file)
        patch.setattr(builtins, "open", self._open_file)

    # --- kills --------------------------------------------------------------------------------------------

    def kill(self) -> None:
        """All processes are killed at this moment; what they have written stays, perhaps not all of the last bytes."""
        self._image = dict(self._contents(self._tree, self._root))

    def cut_power(self, cut: PowerCut) -> None:
        """The machine loses its power at this moment."""
        found: dict[str, bytes | None] = {}
        held: dict[File, bytes] = {}
        self._tree = self._survivor(self._tree, self._root, cut, found, held)
        self._image = found

    def restart(self) -> None:
        """Lay the files as they are after the last kill: whoever was killed has unwound meanwhile."""
        if self._image is None:
            return
        self._laying = True
        for each in Path(self._root).iterdir():
            if each.is_dir():
                shutil.rmtree(each)
            else:
                each.unlink()
        for path, data in self._image.items():
            if data is None:
                self._real["mkdir"](path)
            else:
                with self._real_open(path, "wb") as file:
                    file.write(data)
        self._image = None
        self._laying = False

    def _contents(self, folder: Folder, path: str) -> Iterator[tuple[str, bytes | None]]:
        for name, node in folder.now.items():
            inner = f"{path}/{name}"
            if isinstance(node, Folder):
                yield inner, None
                yield from self._contents(node, inner)
            else:
                yield inner, self._read(inner)

    def _survivor(
        self, folder: Folder, path: str, cut: PowerCut, found: dict[str, bytes | None], held: dict[File, bytes]
    ) -> Folder:
        fresh = Folder()
        for name in sorted({*folder.now, *folder.synced, *folder.since}):
            node, inner = cut.node_of(folder, name), f"{path}/{name}"
            if isinstance(node, Folder):
                found[inner] = None
                fresh.now[name] = self._survivor(node, inner, cut, found, held)
            elif node is not None:
                if node not in held:
                    there = self._path_of(node)
                    now = node.last or b"" if there is None else self._read(there)
                    held[node] = cut.bytes_of(node.synced, now)
                found[inner] = held[node]
                fresh.now[name] = File(held[node])
        fresh.sync()
        return fresh

    def _path_of(self, file: File) -> str | None:
        """A path at which a file is seen."""

        def search(folder: Folder, path: str) -> str | None:
            for name, node in folder.now.items():
                if node is file:
                    return f"{path}/{name}"
                if isinstance(node, Folder) and (inner := search(node, f"{path}/{name}")):
                    return inner
            return None

        return search(self._tree, self._root)

    def _read(self, path: str) -> bytes:
        with self._real_open(path, "rb") as file:
            data: bytes = file.read()
            return data

    # --- the tree -----------------------------------------------------------------------------------------

    def _inside(self, path: Any, folder: int | None = None) -> str | None:
        """A path below the root; None for one elsewhere."""
        if isinstance(path, int) or self._laying:
            return None
        text = os.fsdecode(path)
        if folder is not None and not os.path.isabs(text):
            text = os.path.join(os.readlink(f"/proc/self/fd/{folder}"), text)
        return text if text.startswith(f"{self._root}/") else None

    def _place(self, path: str) -> tuple[Folder, str]:
        """The folder that a path is in, and its name there."""
        *parents, name = path[len(self._root) + 1 :].split("/")
        folder = self._tree
        for each in parents:
            found = folder.now.get(each)
            assert isinstance(found, Folder), f"'{each}' of '{path}' is a folder"
            folder = found
        return folder, name

    def _step(self, what: str, path: str) -> None:
        self._world.step(what, path[len(self._root) + 1 :])

    # --- the calls that are watched -----------------------------------------------------------------------

    def _open_file(self, file: Any, mode: str = "r", *rest: Any, **more: Any) -> Any:
        path = self._inside(file)
        if path is None:
            return self._real_open(file, mode, *rest, **more)
        writes = mode[0] in "wxa" or "+" in mode
        self._step("write" if writes else "read", path)
        fresh = writes and not os.path.lexists(path)
        opened = self._real_open(file, mode, *rest, **more)
        if fresh:
            folder, name = self._place(path)
            folder.set(name, File())
        return opened

    def _open(self, path: Any, flags: int, *rest: Any, **more: Any) -> int:
        assert self._inside(path, more.get("dir_fd")) is None or not flags & (os.O_CREAT | os.O_WRONLY | os.O_RDWR)
        found: int = self._real["open"](path, flags, *rest, **more)
        return found

    def _fsync(self, handle: Any) -> None:
        number = handle if isinstance(handle, int) else handle.fileno()
        path = os.readlink(f"/proc/self/fd/{number}")
        if path != self._root and self._inside(path) is None:
            return
        self._step("sync", path)
        if path == self._root:
            self._tree.sync()
            return
        folder, name = self._place(path)
        node = folder.now[name]
        if isinstance(node, Folder):
            node.sync()
        else:
            node.synced = self._read(path)

    def _mkdir(self, path: Any, *rest: Any, **more: Any) -> None:
        inside = self._inside(path, more.get("dir_fd"))
        if inside is not None:
            self._step("make", inside)
        self._real["mkdir"](path, *rest, **more)
        if inside is not None:
            folder, name = self._place(inside)
            folder.set(name, Folder())

    def _rmdir(self, path: Any, **more: Any) -> None:
        inside = self._inside(path, more.get("dir_fd"))
        if inside is not None:
            self._step("remove", inside)
        self._real["rmdir"](path, **more)
        if inside is not None:
            folder, name = self._place(inside)
            folder.set(name, None)

    def _unlink(self, path: Any, **more: Any) -> None:
        inside = self._inside(path, more.get("dir_fd"))
        if inside is not None:
            self._step("remove", inside)
            self._forget(inside)
        self._real["unlink"](path, **more)
        if inside is not None:
            folder, name = self._place(inside)
            folder.set(name, None)

    _remove = _unlink

    def _link(self, source: Any, target: Any, **more: Any) -> None:
        before, after = self._inside(source), self._inside(target)
        assert (before is None) is (after is None), "nothing is linked across the border"
        if after is not None:
            self._step("link", after)
        self._real["link"](source, target, **more)
        if before is not None and after is not None:
            (old, old_name), (new, new_name) = self._place(before), self._place(after)
            new.set(new_name, old.now[old_name])

    def _replace(self, source: Any, target: Any, **more: Any) -> None:
        before, after = self._inside(source), self._inside(target)
        assert (before is None) is (after is None), "nothing is renamed across the border"
        if after is not None:
            self._step("rename", after)
            self._forget(after)
        self._real["replace"](source, target, **more)
        if before is not None and after is not None:
            (old, old_name), (new, new_name) = self._place(before), self._place(after)
            new.set(new_name, old.now[old_name])
            old.set(old_name, None)

    _rename = _replace

    def _forget(self, path: str) -> None:
        """Keep the bytes of a file that loses a name, perhaps its last: on the platter it may still have it."""
        if not os.path.isfile(path):
            return
        folder, name = self._place(path)
        node = folder.now[name]
        if isinstance(node, File):
            node.last = node.synced if node.synced is not None else self._read(path)
