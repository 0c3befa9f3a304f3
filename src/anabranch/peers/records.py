"""Plans on the disk: flows by their abstract queries, from which their forms follow again (sharing paper, 3.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anabranch.language import check, parse
from anabranch.network.catalogue import Catalogue, Flow, Subscription
from anabranch.network.estimates import Form
from anabranch.network.needs import Need, whole
from anabranch.sharing.forest import PropertyForest
from anabranch.sharing.rules.derive import derive_forest
from anabranch.spark import durable
from anabranch.stream.schema import Schema


@dataclass(frozen=True)
class Planned:
    """The plan in force, and the one before it as long as not every peer has changed over."""

    number: int
    flows: int
    """The largest number that a flow has had, which no other ever gets."""
    now: Catalogue
    before: Catalogue | None = None

    def save(self, path: Path) -> None:
        written = None if self.before is None else _written(self.before)
        fields = {"plan": self.number, "flows": self.flows, "now": _written(self.now), "before": written}
        durable.replace(path, durable.sealed(fields))

    @staticmethod
    def load(
        path: Path, places: Mapping[str, str], schemas: Mapping[str, Schema], need: Callable[[str, str], Need]
    ) -> Planned:
        """What was saved; `places` are where streams come in, `need` is what a subscription needs, by text and name."""
        found = durable.unsealed(path)
        before = found["before"]
        return Planned(
            found["plan"],
            found["flows"],
            _read(found["now"], places, schemas, need),
            None if before is None else _read(before, places, schemas, need),
        )


def _written(catalogue: Catalogue) -> dict[str, Any]:
    flows = [
        [each.name, each.abstract, each.form == whole(each.streams[0]), each.streams, each.at, each.before, each.inputs]
        for each in catalogue.flows.values()
    ]
    asked = [[each.name, each.at, each.by, each.text, each.reads] for each in catalogue.subscriptions.values()]
    return {"flows": flows, "subscriptions": asked}


def _read(
    fields: dict[str, Any], places: Mapping[str, str], schemas: Mapping[str, Schema], need: Callable[[str, str], Need]
) -> Catalogue:
    """A catalogue as it was written, without the streams that are registered no more, and who read them."""
    flows: dict[str, Flow] = {}
    for name, text, is_whole, streams, at, before, inputs in fields["flows"]:
        if any(each not in places for each in streams) or (not inputs and places[name] != at):
            continue
        if all(each in flows for each in inputs):
            form = whole(streams[0], schemas.get(streams[0])) if is_whole else _form(text, schemas)
            flows[name] = Flow(name, form, at, before, tuple(inputs))
    subscriptions = {
        name: Subscription(name, at, by, text, need(text, name), tuple(reads))
        for name, at, by, text, reads in fields["subscriptions"]
        if all(each in flows for each in reads)
    }
    return Catalogue(flows, subscriptions).without(())


def _form(text: str, schemas: Mapping[str, Schema]) -> Form:
    forest: PropertyForest = derive_forest(check(parse(text), text).query, schemas)
    return forest.trees[0] if forest.kind == "apart" and len(forest.trees) == 1 else forest
