"""An object store that is away: the run says which, nothing is taken for empty, and the next run goes on."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import obstore
import pytest
from obstore.exceptions import GenericError

from anabranch import Engine
from anabranch.errors import AnabranchError, StateError
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.epoch.metrics import Metrics
from anabranch.spark.sinks.topics.record import identity_of, read_record
from anabranch.storage import objects
from service.killed import free_port

QUERY = '<all>{ for $w in stream("s")/root/p |count 3 step 2| return <w>{ $w }</w> }</all>'


@pytest.mark.mass
def test_a_store_that_goes_away_ends_the_run(tmp_path: Path) -> None:
    """Between two epochs, for reading and writing: with the store back, the answer is as if nothing had been."""
    (tmp_path / "in").write_text("".join(f"<p>{number}</p>\n" for number in range(40)))
    store, away = tmp_path / "store", tmp_path / "away"

    def lose(metrics: Metrics) -> None:
        if metrics.epoch == 2 and not away.exists():
            store.rename(away)
            store.write_text("no folder any more")  # so every request fails, as none is a request for nothing

    def answer(**more: object) -> str:
        with Engine(local=True, checkpoint=f"file+object://{store}/state", once=True, epoch_bytes=60, **more) as engine:  # type: ignore[arg-type]
            engine.stream("s", tmp_path / "in")
            return engine.subscribe(QUERY, "q").answer()

    with pytest.raises(StateError, match=f"cannot (read|write) 'file[+]object://{store}"):
        answer(on_epoch=lose)
    store.unlink()
    away.rename(store)
    windows = (range(first, first + 3) for first in range(0, 38, 2))
    expected = "".join(f"<w>{''.join(f'<p>{number}</p>' for number in window)}</w>" for window in windows)
    assert answer() == f"<all>{expected}</all>"


@pytest.mark.mass
def test_a_store_that_does_not_answer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the start nobody listens there: after some attempts an error says so, and no checkpoint is begun elsewhere."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "nobody")
    monkeypatch.setattr(objects, "_PATIENCE", timedelta(seconds=0.5))
    objects._opened.cache_clear()
    try:
        with pytest.raises(AnabranchError, match=r"'s3://that-is-away/state.*'"):
            Engine(local=True, checkpoint="s3://that-is-away/state").start()
    finally:
        objects._opened.cache_clear()


def test_what_is_known_of_topics_is_not_taken_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the store does not say whether there is a record, the error names it, and none is begun."""
    checkpoint = Checkpoint.make(f"file+object://{tmp_path}/state")

    def unanswered(*_: object) -> None:
        raise GenericError("no answer")

    monkeypatch.setattr(obstore, "head", unanswered)
    for ask in (lambda: identity_of(checkpoint), lambda: read_record(checkpoint.topics("cluster"))):
        with pytest.raises(StateError, match=r"cannot read 'file\+object://.*\.topics': "):
            ask()
