"""Files with encodings or roots that cannot be read: they are set aside with their reasons, and stop nobody.

LAWS 2.5, for the first file of a stream as for any other.
"""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path
from random import Random
from typing import Literal

import pytest

from anabranch.stream.elements import DeadLetter
from anabranch.stream.limits import Limits
from anabranch.stream.reading.source import Source, read
from anabranch.stream.serialize import serialize
from mass import some
from spark.bare import BareTrunk

UNREADABLE = {
    "declared": b'<?xml version="1.0" encoding="EBCDIC-CP-US"?><r><p>2</p><p>3</p></r>\n' * 3,
    "utf-16": '<?xml version="1.0" encoding="UTF-16"?>\n<r>\n<p>2</p>\n<p>3</p>\n</r>\n'.encode("utf-16"),
    "utf-16 without a mark": "<r>\n<p>2</p>\n<p>3</p>\n</r>\n".encode("utf-16-le"),
    "utf-32": "<r>\n<p>2</p>\n</r>\n".encode("utf-32"),
}
BAD_DOCUMENTS = {
    **UNREADABLE,
    "declared": b'<?xml version="1.0" encoding="EBCDIC-CP-US"?>\n<r>\n<p>2</p>\n</r>\n',
    "attribute": b"<r a=1><p>2</p></r>\n",
    "prefix": b"<x:r><p>2</p></x:r>\n",
    "bytes": b'<r a="\xff"><p>2</p></r>\n',
    "entity": b'<r a="&e;"><p>2</p></r>\n',
}


@pytest.mark.parametrize("form", ["document", "lines", "json"])
@pytest.mark.parametrize("name", UNREADABLE)
@pytest.mark.parametrize("order", ["abc", "bac"])
def test_a_file_that_cannot_be_read_is_set_aside(
    tmp_path: Path, form: Literal["document", "lines", "json"], name: str, order: str
) -> None:
    """Whatever the epochs, and also where it comes first; the reference does the same, and says the same."""
    good = {"document": "<r><p>{}</p></r>\n", "lines": "<p>{}</p>\n", "json": '{{"p": {}}}\n'}[form]
    folder = tmp_path / "in"
    folder.mkdir()
    first, bad, last = (str(order.index(each)) for each in "abc")
    for file, number in ((first, 1), (last, 4)):
        (folder / file).write_text(good.format(number))
    (folder / bad).write_bytes(UNREADABLE[name])
    source = Source("s", folder, form, root="r")
    law = [each for each in read(source, Limits()) if isinstance(each, DeadLetter)]
    assert bool(law) is not (form == "lines" and name == "declared")  # a line is UTF-8, whatever is declared in it
    if form == "document":
        [letter] = law
        assert "is not supported" in letter.reason
    path = 'stream("s")/r/item/p' if form == "json" else 'stream("s")/r/p'
    for seed in some(range(4)):
        trunk = BareTrunk(tmp_path / f"state-{seed}", [source], Random(seed), finite=True)
        trunk.run({"q": f"for $p in {path} return $p"}, (3, 11, 1 << 20), (1,))
        assert trunk.answer("q") == "<p>1</p><p>4</p>"
        assert Counter(trunk.log.dead_letters()) == Counter(law)


@pytest.mark.parametrize("name", BAD_DOCUMENTS)
@pytest.mark.parametrize("packed", [False, True])
def test_the_first_file_of_a_stream_cannot_be_read(tmp_path: Path, name: str, packed: bool) -> None:
    """Nobody says how the stream is written: the first file that can be read does, and its root is the stream's."""
    folder = tmp_path / "in"
    folder.mkdir()
    data = BAD_DOCUMENTS[name]
    (folder / "0").write_bytes(gzip.compress(data) if packed else data)
    (folder / "1").write_text('<r k="v"><p>4</p></r>\n')
    source = Source("s", folder)
    contents = read(source, Limits())
    assert serialize(contents.root) == '<r k="v"/>'
    law = [each for each in contents if isinstance(each, DeadLetter)]
    assert [each.place.partition for each in law] == ["0"]
    assert "is not supported" in law[0].reason or "root element cannot be read" in law[0].reason
    query = 'for $p in stream("s")/r/p return <o>{ $p }</o>'
    for seed in some(range(3)):
        trunk = BareTrunk(tmp_path / f"state-{seed}", [source], Random(seed), finite=True)
        trunk.run({"q": query}, (3, 11, 1 << 20), (1,))
        assert trunk.answer("q") == "<o><p>4</p></o>"
        assert Counter(trunk.log.dead_letters()) == Counter(law)


@pytest.mark.parametrize("name", BAD_DOCUMENTS)
def test_nothing_of_a_stream_can_be_read(tmp_path: Path, name: str) -> None:
    """All of it is set aside, and a query that asks for its items has an empty answer."""
    file = tmp_path / "s"
    file.write_bytes(BAD_DOCUMENTS[name])
    source = Source("s", file)
    law = [each for each in read(source, Limits()) if isinstance(each, DeadLetter)]
    assert len(law) == 1
    trunk = BareTrunk(tmp_path / "state", [source], Random(1), finite=True)
    trunk.run({"q": '<o>{ for $p in stream("s")/r/p return $p }</o>'}, (1 << 20,), (1,))
    assert trunk.answer("q") == "<o/>"
    assert list(trunk.log.dead_letters()) == law


def test_a_run_waits_for_a_file_that_can_be_read(tmp_path: Path) -> None:
    """As long as nobody can know the root of the stream, the log says why nothing is read, and what helps."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "0").write_bytes(UNREADABLE["utf-16"])
    trunk = BareTrunk(tmp_path / "state", [Source("s", folder)], Random(1), finite=False)
    query = {"q": 'for $p in stream("s")/r/p return $p'}
    trunk.run(query, (1 << 20,), (1,))
    [wait] = trunk.waits()
    assert wait.message == f"'{folder / '0'}' cannot be read: the encoding 'UTF-16' is not supported"
    (folder / "1").write_text("<r>\n<p>4</p>\n")
    trunk.run(query, (1 << 20,), (1,))
    assert trunk.answer("q") == "<p>4</p>"
    assert [each.reason for each in trunk.log.dead_letters()] == ["the encoding 'UTF-16' is not supported"]
