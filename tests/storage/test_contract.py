"""What every storage guarantees: the same tests over a disk, and over object stores by the same client as S3."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from anabranch.storage import Location
from s3 import S3Server

Make = Callable[[Path], Location]

MAKE: dict[str, Make] = {
    "disk": lambda folder: Location.of(folder),
    "objects on a disk": lambda folder: Location.of(f"file+object://{folder}"),
    "objects in memory": lambda folder: Location.of(f"memory://{folder.name}/{folder.parent.name}"),
}


@pytest.fixture(params=[*MAKE, pytest.param("s3", marks=pytest.mark.s3)])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    """An empty folder in each kind of storage."""
    if request.param == "s3":
        server: S3Server = request.getfixturevalue("s3_server")
        return server.folder(tmp_path.name)
    return MAKE[request.param](tmp_path / "within")


class TestContract:
    """Objects are whole, ranges are exact, one creator wins, and folders are what their objects make of them."""

    def test_what_was_put_is_read(self, folder: Location) -> None:
        """All of it, the newest version, also from within a folder that was not made."""
        at = folder / "a" / "b c%é"
        at.put(b"one")
        at.put(b"second")
        assert at.read() == b"second"
        assert at.exists()
        stat = at.stat()
        assert stat is not None
        assert stat.size == 6

    @pytest.mark.parametrize(
        ("start", "length", "found"),
        [(0, None, b"0123456789"), (3, None, b"3456789"), (3, 4, b"3456"), (8, 9, b"89"), (10, 1, b""), (12, 5, b"")],
    )
    def test_a_range_is_read(self, folder: Location, start: int, length: int | None, found: bytes) -> None:
        """The bytes asked for, fewer where the object ends before, none behind its end."""
        (folder / "x").put(b"0123456789")
        assert (folder / "x").read(start, length) == found

    def test_what_is_missing_is_said(self, folder: Location) -> None:
        """Reading is an error, looking is none, removing is fine, and an unknown folder is empty."""
        for start, length in ((0, None), (1, 2)):
            with pytest.raises(FileNotFoundError):
                (folder / "x").read(start, length)
        assert (folder / "x").stat() is None
        assert not (folder / "x").exists()
        (folder / "x").delete()
        folder.delete_all(["y", "z/u"])
        assert list(folder.names()) == list(folder.names(below=True)) == []
        assert folder.list() == {}

    def test_a_version_tells_contents_apart(self, folder: Location) -> None:
        """Another content of the same size has another version; what was not written again keeps its own."""
        at = folder / "x"
        at.put(b"one")
        first = at.stat()
        assert at.stat() == first
        at.put(b"two")
        assert at.stat() != first

    def test_of_two_creators_one_wins(self, folder: Location) -> None:
        """The second is told, and the object is that of the first."""
        at = folder / "x"
        at.create(b"first")
        with pytest.raises(FileExistsError):
            at.create(b"second")
        assert at.read() == b"first"

    def test_of_many_creators_at_once_one_wins(self, folder: Location) -> None:
        """Of eight that begin together, exactly one."""
        together = Barrier(8)

        def attempt(number: int) -> bool:
            together.wait()
            try:
                (folder / "x").create(b"%d" % number)
            except FileExistsError:
                return False
            return True

        for _ in range(5):
            with ThreadPoolExecutor(8) as threads:
                won = list(threads.map(attempt, range(8)))
            assert (folder / "x").read() == b"%d" % won.index(True)
            assert won.count(True) == 1
            (folder / "x").delete()

    def test_a_folder_is_what_is_in_it(self, folder: Location) -> None:
        """Names in order, those in folders below on request; a folder is gone with its last object."""
        for name in ("b", "a", "c/d", "c/e/f", "cc"):
            (folder / name).put(name.encode())
        assert list(folder.names()) == ["a", "b", "cc"]
        assert list(folder.names(below=True)) == ["a", "b", "c/d", "c/e/f", "cc"]
        assert list((folder / "c").names()) == ["d"]
        assert {name: stat.size for name, stat in folder.list().items()} == {"a": 1, "b": 1, "cc": 2}
        folder.delete_all(["c/d", "c/e/f", "a"])
        assert list(folder.names(below=True)) == ["b", "cc"]

    def test_what_is_written_in_pieces_is_there_at_the_end(self, folder: Location) -> None:
        """Also what was written is read before the end; another object in the same folder is not touched."""
        folder_of = folder / "00000001"
        with (folder_of / "x").writer() as writer:
            writer.write(b"abc")
            writer.write(memoryview(b"defgh"))
            assert writer.read(2, 3) == b"cde"
            writer.write(b"i")
        folder.settle("00000001", "missing")
        assert (folder_of / "x").read() == b"abcdefghi"
        assert list(folder.names(below=True)) == ["00000001/x"]

    def test_large_objects(self, folder: Location) -> None:
        """More than is sent at once: whole, and in ranges."""
        piece = bytes(range(256)) * 4096
        with (folder / "x").writer() as writer:
            for _ in range(20):
                writer.write(piece)
        stat = (folder / "x").stat()
        assert stat is not None
        assert stat.size == 20 * len(piece)
        assert (folder / "x").read(19 * len(piece) - 1, 3) == b"\xff\x00\x01"

    def test_a_location_is_a_value(self, folder: Location) -> None:
        """Equal to another of the same name, also behind a pickle, small, and called what the user called it."""
        at = folder / "a" / "b"
        (folder / "a" / "b").put(b"x")
        again = pickle.loads(pickle.dumps(at))  # noqa: S301
        assert again == at
        assert hash(again) == hash(at)
        assert again.read() == b"x"
        assert Location.of(str(at)) == at
        assert (at.name, at.parent.name, at.parent.parent) == ("b", "a", folder)
        assert len(pickle.dumps(at)) < 500
