from pathlib import Path
from random import Random

import pytest

from anabranch.errors import StateError
from anabranch.spark.checkpoint import durable, registry
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.registry import RegisteredTable, Registry


def table(text: str) -> RegisteredTable:
    return RegisteredTable({"text": text}, "2026-11-18T05:00:00Z")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    return Checkpoint.make(tmp_path / "state")


def test_a_new_checkpoint_has_nothing_registered(checkpoint: Checkpoint) -> None:
    """Before the first registration there is nothing, and no folder is needed."""
    assert Registry(checkpoint).tables == {}


def test_whoever_opens_the_registry_later_has_what_was_changed(checkpoint: Checkpoint) -> None:
    """After random registrations, changes and cancellations, a registry that is opened anew equals a plain dict."""
    random, expected = Random(7), dict[str, RegisteredTable]()
    here = Registry(checkpoint)
    for number in range(200):
        names = [f"q{random.randrange(20)}" for _ in range(random.randrange(1, 4))]
        changes = {name: None if random.random() < 0.3 else table(f"{name} {number}") for name in names}
        here.change(changes)
        for name, each in changes.items():
            if each is None:
                expected.pop(name, None)
            else:
                expected[name] = each
        assert here.tables == expected
        if number % 20 == 0:
            assert Registry(checkpoint).tables == expected
    assert Registry(checkpoint).tables == expected


def test_the_registry_stays_as_small_as_what_is_registered(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a subscription that is changed a thousand times a few objects are kept, and nothing is lost."""
    monkeypatch.setattr(registry, "_FEWEST_CHANGES", 10)
    here = Registry(checkpoint)
    for number in range(1000):
        here.change({"q": table(str(number))})
        if number % 100 == 50:
            here = Registry(checkpoint)
    assert Registry(checkpoint).tables == {"q": table("999")}
    assert len(checkpoint.registry.names()) <= 12


def test_of_two_runs_the_later_to_write_is_told(checkpoint: Checkpoint) -> None:
    """A run that another has overtaken cannot register: the number of its object is taken."""
    first, second = Registry(checkpoint), Registry(checkpoint)
    second.change({"b": table("b")})
    with pytest.raises(StateError, match="another run has registered"):
        first.change({"a": table("a")})
    assert Registry(checkpoint).tables == {"b": table("b")}


def test_a_kill_between_a_whole_and_the_removal_of_what_it_holds_changes_nothing(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Objects before a whole that are still there do not count."""
    here = Registry(checkpoint)
    here.change({"a": table("a"), "b": table("b")})
    here.change({"a": None})
    monkeypatch.setattr(durable, "delete", lambda where, names: None)
    here._take_up()
    here.change({"c": table("c")})
    assert Registry(checkpoint).tables == {"b": table("b"), "c": table("c")}


def test_a_damaged_object_is_named(checkpoint: Checkpoint) -> None:
    """A registry that was damaged is refused by name, never read in part."""
    Registry(checkpoint).change({"a": table("a")})
    path = checkpoint.registry.path
    assert path is not None
    (path / "00000000.json").write_bytes(b"{}\n")
    with pytest.raises(StateError, match=r"00000000\.json' is damaged"):
        Registry(checkpoint)


def test_a_write_that_was_killed_leaves_nothing_that_counts(checkpoint: Checkpoint) -> None:
    """What lies beside the numbered objects, as a killed write leaves it, is no registration and no failure."""
    Registry(checkpoint).change({"a": table("1")})
    folder = checkpoint.registry.path
    assert folder is not None
    (folder / ".00000001.json.tmp").write_bytes(b'{"half')
    again = Registry(checkpoint)
    assert again.tables == {"a": table("1")}
    again.change({"b": table("2")})
    assert Registry(checkpoint).tables == {"a": table("1"), "b": table("2")}
