"""Files in encodings that cannot be read, among others of a stream: they are set aside, and stop nobody."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Literal

import pytest

from anabranch.stream.elements import DeadLetter
from anabranch.stream.limits import Limits
from anabranch.stream.reading.source import Source, read
from spark.bare import BareTrunk

UNREADABLE = {
    "declared": b'<?xml version="1.0" encoding="EBCDIC-CP-US"?><r><p>2</p><p>3</p></r>\n' * 3,
    "utf-16": '<?xml version="1.0" encoding="UTF-16"?>\n<r>\n<p>2</p>\n<p>3</p>\n</r>\n'.encode("utf-16"),
    "utf-16 without a mark": "<r>\n<p>2</p>\n<p>3</p>\n</r>\n".encode("utf-16-le"),
    "utf-32": "<r>\n<p>2</p>\n</r>\n".encode("utf-32"),
}


@pytest.mark.parametrize("form", ["document", "lines", "json"])
@pytest.mark.parametrize("name", UNREADABLE)
def test_a_file_that_cannot_be_read_is_set_aside(
    tmp_path: Path, form: Literal["document", "lines", "json"], name: str
) -> None:
    """Whatever the epochs; the reference does the same, and says the same."""
    good = {"document": "<r><p>{}</p></r>\n", "lines": "<p>{}</p>\n", "json": '{{"p": {}}}\n'}[form]
    folder = tmp_path / "in"
    folder.mkdir()
    for file, number in (("a", 1), ("c", 4)):
        (folder / file).write_text(good.format(number))
    (folder / "b").write_bytes(UNREADABLE[name])
    source = Source("s", folder, form, root="r")
    law = [each for each in read(source, Limits()) if isinstance(each, DeadLetter)]
    assert bool(law) is not (form == "lines" and name == "declared")  # a line is UTF-8, whatever is declared in it
    if form == "document":
        [letter] = law
        assert "is not supported" in letter.reason
    path = 'stream("s")/r/item/p' if form == "json" else 'stream("s")/r/p'
    for seed in range(4):
        trunk = BareTrunk(tmp_path / f"state-{seed}", [source], Random(seed), finite=True)
        trunk.run({"q": f"for $p in {path} return $p"}, (3, 11, 1 << 20), (1,))
        assert trunk.answer("q") == "<p>1</p><p>4</p>"
        assert Counter(trunk.log.dead_letters()) == Counter(law)
