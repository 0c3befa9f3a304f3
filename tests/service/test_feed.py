"""The index of epochs and the feed of results over logs made by hand: any epochs, chunks, parts and directions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Barrier, Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.errors import StateError
from anabranch.service.answers import epochs as epochs_module
from anabranch.service.answers import feed as feed_module
from anabranch.service.answers.epochs import EpochIndex
from anabranch.service.answers.feed import AnswerFeed, ResultSource
from anabranch.service.answers.positions import ResultPosition
from anabranch.service.answers.shared_cache import SharedCache
from anabranch.spark.answers.log import AnswerFrame, AnswerLog
from anabranch.spark.answers.segments import DEAD_LETTERS, Segment, SegmentWriter
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifest
from anabranch.stream.elements import DeadLetter, Place
from mass import examples

FRAME = AnswerFrame("<a>", "</a>", "<a/>")
EpochAnswers = Mapping[int, Sequence[str]]
"""By subscription: the chunks of an epoch."""


def written(folder: Path, epochs: Sequence[EpochAnswers], first: int = 0) -> AnswerLog:
    """A log with these answers, whose epochs begin with `first`."""
    log = AnswerLog(Checkpoint.at(folder))
    for epoch, answers in enumerate(epochs, first):
        segments: tuple[Segment, ...] = ()
        for number, chunks in answers.items():
            for chunk in chunks:  # a segment each, so that chunks stay apart
                with SegmentWriter(Checkpoint.at(folder).segments, epoch, len(segments)) as writer:
                    writer.add(number, chunk)
                segments += writer.segments
        log.manifests.publish(replace(Manifest.first(1, "plan"), epoch=epoch, segments=segments))
    return log


def feed_of(log: AnswerLog) -> AnswerFeed:
    return AnswerFeed(log, EpochIndex(log, lambda: log.manifests.epochs().stop - 1))


CHUNKS = st.lists(st.lists(st.sampled_from(["<a/>", "<b>1</b>", "<c><d/></c>"]), min_size=1).map("".join), max_size=3)
EPOCHS = st.lists(st.dictionaries(st.integers(0, 2), CHUNKS, max_size=2), min_size=1, max_size=6)


@examples(60)
@given(EPOCHS, st.integers(0, 4), st.sampled_from([1, 12, 1 << 20]), st.data())
def test_results_have_the_same_positions_in_all_directions(
    epochs: list[EpochAnswers], first: int, part_bytes: int, data: st.DataObject
) -> None:
    """Forwards and backwards, from any position, whatever parts an epoch is read in."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr(feed_module, "_PART_BYTES", part_bytes)
        log = written(Path(folder), epochs, first)
        feed, source = feed_of(log), ResultSource(1, first, FRAME)
        expected = [
            (ResultPosition(epoch, index), text)
            for epoch, answers in enumerate(epochs, first)
            for index, text in enumerate(split("".join(answers.get(1, ()))))
        ]
        assert list(feed_of(log).backward(source, None)) == expected[::-1]
        for _ in range(5):
            epoch = data.draw(st.integers(0, first + len(epochs) + 1))
            place = ResultPosition(epoch, data.draw(st.integers(0, 20)))
            assert list(feed.forward(source, place)) == [each for each in expected if each[0] > place]
            assert list(feed.backward(source, place)) == [each for each in expected if each[0] < place][::-1]
        assert list(feed.forward(source, None)) == expected


def split(text: str) -> list[str]:
    """The results of a text that is made of the elements above."""
    found = []
    while text:
        end = next(len(each) for each in ("<a/>", "<b>1</b>", "<c><d/></c>") if text.startswith(each))
        found.append(text[:end])
        text = text[end:]
    return found


@examples(60)
@given(
    st.lists(st.sets(st.integers(0, 3)), min_size=1, max_size=12),
    st.lists(st.tuples(st.booleans(), st.integers(0, 3), st.integers(0, 14)), max_size=20),
)
def test_the_index_finds_the_next_epoch_with_answers(
    who: list[set[int]], questions: list[tuple[bool, int, int]]
) -> None:
    """In both directions, in any order of questions, while little is kept."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr(epochs_module, "_LISTED", 3)
        log = written(Path(folder), [{number: ["<a/>"] for number in each} for each in who])
        index = EpochIndex(log, lambda: len(who) - 1)
        for is_forward, number, epoch in questions:
            mine = [at for at, each in enumerate(who) if number in each]
            if is_forward:
                assert index.behind(number, epoch) == next((each for each in mine if each >= epoch), None)
            else:
                assert index.before(number, epoch) == next((each for each in mine[::-1] if each < epoch), None)


def test_epochs_that_come_and_go(tmp_path: Path) -> None:
    """New epochs are found, dropped ones are skipped, and what is damaged is told, not skipped."""
    log = written(tmp_path, [{1: ["<a/>"]}, {}, {1: ["<b>1</b>"], 2: ["<a/>"]}])
    feed, source = feed_of(log), ResultSource(1, 0, FRAME)
    assert [str(position) for position, _ in feed.forward(source, None)] == ["0-0", "2-0"]
    written(tmp_path, [{1: ["<a/>"]}], first=3)
    assert [str(position) for position, _ in feed.forward(source, ResultPosition(2, 0))] == ["3-0"]
    log.manifests.drop(0)
    written(tmp_path, [{}], first=4)
    assert feed.epochs.first == 1
    assert [str(position) for position, _ in feed.forward(source, ResultPosition(0, 0))] == ["2-0", "3-0"]
    assert [str(position) for position, _ in feed.backward(source, None)] == ["3-0", "2-0"]
    assert feed.wire_step(source, 0, 0).found == feed.peek(source, 2, 0)
    assert feed.peek(source, 0, 0) is None
    segment = Checkpoint.at(tmp_path).segments / log.manifests.load(2).segments[0].name
    segment.put(b"x" * 100)
    with pytest.raises(StateError, match="is damaged"):
        list(feed_of(AnswerLog(Checkpoint.at(tmp_path))).forward(source, None))


def test_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However much is read, only so many bytes are kept, and what was dropped is read again."""
    monkeypatch.setattr(feed_module, "_CACHE_BYTES", 20_000)
    log = written(tmp_path, [{1: [f"<a>{'x' * 3_000}</a>"]} for _ in range(20)])
    feed, source = feed_of(log), ResultSource(1, 0, FRAME)
    for _ in range(2):
        assert len(list(feed.forward(source, None))) == 20
        assert 0 < feed._parts.bytes <= 20_000
    assert feed._parts.made == 40


def test_letters_are_found_beside_answers(tmp_path: Path) -> None:
    """An epoch that has dead letters only has no answers of anybody, and the other way round."""
    log = written(tmp_path, [{1: ["<a/>"]}, {}])
    with SegmentWriter(Checkpoint.at(tmp_path).segments, 2, 0) as writer:
        writer.bury(DeadLetter(Place("s", "a", 0), "bad", "<x"))
    log.manifests.publish(replace(Manifest.first(1, "plan"), epoch=2, segments=writer.segments))
    index = EpochIndex(log, lambda: 2)
    assert (index.behind(DEAD_LETTERS, 0), index.behind(1, 0), index.behind(1, 1)) == (2, 0, None)


# --- values that are made once ----------------------------------------------------------------------------------------


def test_a_value_is_made_once_for_all_who_wait() -> None:
    """Threads that ask at the same time get the same object; an error is everybody's, and not kept."""
    cache: SharedCache[int, list[int]] = SharedCache(1_000, len)
    together = Barrier(4)
    found: list[object] = []

    def make() -> list[int]:
        together.wait()  # the others ask while it is being made, or when it is there
        return [1]

    def ask() -> None:
        found.append(cache.get(7, make))

    def join() -> None:
        together.wait()
        found.append(cache.get(7, lambda: [2]))

    threads = [Thread(target=ask), *(Thread(target=join) for _ in range(3))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (cache.made, found) == (1, [[1]] * 4)
    assert len({id(each) for each in found}) == 1
    with pytest.raises(ZeroDivisionError):
        cache.get(8, lambda: [1 // 0])
    assert cache.get(8, lambda: [3]) == [3]
    cache.get(9, lambda: [0] * 2_000)  # larger than all that is kept
    assert (cache.peek(9), cache.bytes) == (None, 2)
