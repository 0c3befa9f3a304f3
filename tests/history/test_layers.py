"""A state in layers: an epoch writes what has changed, and whoever has an earlier state reads what came since."""

from __future__ import annotations

from fractions import Fraction
from math import log2
from random import Random
from typing import Any

import pytest

from anabranch.algebra.display.display import Edit, Insert, Remove
from anabranch.branch import cache
from anabranch.branch.display.continuous import ContinuousQuery
from anabranch.branch.document.layers import Resumed, StateLayer, read_layers, shown
from anabranch.branch.state import BranchState
from anabranch.errors import StateError
from history.asking import elements
from history.editing import apply
from history.following import TICKER, Followed, items, replaced


class Epochs:
    """A ticker over some items, put away after every epoch."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
        self._monkeypatch = monkeypatch
        self.blobs: list[bytes] = []
        self.read_back: list[str] = []
        self.followed = Followed(TICKER, s="")
        self.kept: Any = None
        self.go_on(cache.ProcessCache())
        self.epoch(items(count))

    def write(self, data: bytes) -> str:
        self.blobs.append(data)
        return str(len(self.blobs) - 1)

    def read(self, ref: str) -> bytes:
        self.read_back.append(ref)
        return self.blobs[int(ref)]

    def go_on(self, process: cache.ProcessCache) -> None:
        """The next epochs are in another process."""
        self._monkeypatch.setattr(cache, "here", process)

    def epoch(self, stream: str, *, counts: bool = True) -> str:
        """One epoch; gives what is on display behind it, which `counts` or is an attempt that failed."""
        self.read_back.clear()
        resumed: Resumed[ContinuousQuery] = Resumed(self.followed.fresh, "", self.kept, self)
        edits: list[Edit] = []
        for each in elements(stream, "s"):
            for change in resumed.machine.take("s", each, Fraction(0)):
                edits += change.edits
        text, count = resumed.machine.text, len(resumed.machine.kept["s"].by_number)
        kept = resumed.save(count, {"": edits}, lambda: {"": text})
        if counts:
            self.kept = kept
        return text

    @property
    def laid(self) -> list[tuple[str, int]]:
        """The layers, with their weights."""
        return [(ref, weight) for ref, weight, _ in self.kept["laid"]]


def test_an_epoch_writes_what_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One update among many entries is a small layer; nothing is read where the process has the state."""
    epochs = Epochs(monkeypatch, 1_000)
    ground = len(epochs.blobs[0])
    assert epochs.epoch(replaced(7, 100)) == '<up k="7"><v>100</v></up>'
    assert len(epochs.blobs[1]) < ground / 5
    assert epochs.read_back == []
    assert len(epochs.laid) == 2


@pytest.mark.mass
def test_layers_are_few_and_no_more_than_the_ground(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many epochs there are; and each is put together from those of like weight."""
    epochs, random, most = Epochs(monkeypatch, 300), Random(1), 0
    for number in range(200):
        numbers = random.sample(range(300), random.choice((1, 1, 1, 5)))
        epochs.epoch("".join(replaced(each, random.randint(1, 300)) for each in numbers))
        (_, ground), *above = epochs.laid
        assert sum(weight for _, weight in above) <= ground + 1, number
        assert len(above) <= log2(ground) + 1
        most = max(most, len(above))
    assert most > 3


def test_another_process_reads_what_it_has_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """All where it never had the branch; the latest layers where it was there before; and no attempt that failed."""
    epochs = Epochs(monkeypatch, 300)
    one, other = cache.here, cache.ProcessCache()
    epochs.go_on(other)
    epochs.epoch(replaced(1, 50))
    assert epochs.read_back == ["0"]
    epochs.go_on(one)
    assert epochs.epoch(replaced(2, 60)) == '<up k="1"><v>50</v></up><up k="2"><v>60</v></up>'
    assert "0" not in epochs.read_back
    before = epochs.kept
    assert epochs.epoch(replaced(3, 70), counts=False).count("<up") == 3
    assert epochs.kept is before
    assert epochs.epoch(replaced(4, 80)).count("<up") == 3
    assert epochs.read_back[0] == "0"
    epochs.go_on(other)
    assert epochs.epoch(replaced(1, 1)).count("<up") == 2
    assert "0" not in epochs.read_back


@pytest.mark.mass
def test_a_state_without_its_process_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries come, go and change, and each epoch may be in a process that knows nothing."""
    epochs, random = Epochs(monkeypatch, 150), Random(2)
    single = Followed(TICKER, s="")
    for each in elements(items(150), "s"):
        list(single.machine.take("s", each, Fraction(0)))
    regions = 150
    for _ in range(40):
        stream = ""
        for _ in range(random.randint(1, 6)):
            target = random.randrange(regions)
            match random.choice(("replace", "replace", "delete", "item")):
                case "replace":
                    stream += replaced(target, random.randint(1, 300))
                case "delete":
                    stream += f'<s:replace target="{target}"/>'
                case _:
                    stream += f'<i k="{regions}"><s:mutable id="{regions}"><v>1</v></s:mutable></i>'
                    regions += 1
        for each in elements(stream, "s"):
            list(single.machine.take("s", each, Fraction(0)))
        if random.random() < 0.5:
            epochs.go_on(cache.ProcessCache())
        assert epochs.epoch(stream) == single.machine.text
        assert shown(read_layers(epochs.kept, epochs.read)) == single.machine.text


def test_two_ids_of_a_region_that_is_gone() -> None:
    """They are still those of one region: one cannot be replaced inside of the other (LAWS 5.3)."""
    gone = (
        '<s:mutable id="1"><a><s:mutable id="2"/></a></s:mutable><s:replace target="2" id="3"/><s:replace target="1"/>'
    )
    followed = Followed('stream("s")/root/a', s="")
    for each in elements(gone, "s"):
        list(followed.machine.take("s", each, Fraction(0)))
    fresh = followed.fresh()
    fresh.decode(StateLayer.from_bytes(StateLayer.of(followed.machine.encode()).to_bytes()).data())
    for machine in (followed.machine, fresh):
        (bad,) = elements('<s:replace target="2"><s:replace target="3"/></s:replace>', "s")
        assert list(machine.take("s", bad, Fraction(0))) == []
        assert [each.reason for each in machine.kept["s"].admission.dead] == ["the region '3' is being replaced"]


@pytest.mark.parametrize("long", [10, 100_000])
def test_a_text_from_its_edits(long: int) -> None:
    """What is on display is put together from all edits, however long it is."""
    random, text = Random(long), ""
    layers: list[StateLayer] = []
    for _ in range(20):
        edits: list[Edit] = []
        for _ in range(10):
            position = random.randint(0, len(text))
            if random.random() < 0.4 and position < len(text):
                edit: Edit = Remove(position, random.randint(1, len(text) - position))
            else:
                edit = Insert(position, chr(97 + random.randrange(26)) * random.randint(1, long))
            text = apply([edit], text)
            edits.append(edit)
        layers.append(StateLayer.of({"streams": {}}, {"": edits}))
        assert shown(layers) == text
    assert shown([layers[1].over(layers[0]), *layers[2:]]) == text


def test_layers_of_another_release_are_refused() -> None:
    """Those of before ids were forgotten have no version of their own, and are called the first."""
    state = BranchState.from_bytes(StateLayer.of(Followed(TICKER, s="").machine.encode()).to_bytes())
    older = BranchState({key: value for key, value in state.meta.items() if key != "version"}, state.tables)
    with pytest.raises(StateError, match="of updates is of version 1, and this release reads version 2"):
        StateLayer.from_bytes(older.to_bytes())
