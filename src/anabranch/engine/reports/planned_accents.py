"""An accent that may be published into a stream of a site: checked, with its places, its warnings and its effects.

Nothing changes before `publish`; what the subscriptions would do is found by telling it to followers
(`reactions.py`), those that wait for their first epoch included.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from anabranch.algebra.accents.events import Announced
from anabranch.algebra.reactions.signature import Policy
from anabranch.engine.publishing import Publication, TopicPublication, partitions_of, publication, publish_all
from anabranch.engine.reports.evolution import StreamCourse
from anabranch.engine.reports.reactions import Forecast, forecast
from anabranch.engine.reports.sampling import unseen_paths
from anabranch.errors import StreamError
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifest
from anabranch.spark.plan.epoch_plan import Plan
from anabranch.spark.plan.kinds.kind import Functions
from anabranch.spark.plan.membership import subscriptions_of
from anabranch.storage import Location
from anabranch.stream.admission import TURNED_OFF
from anabranch.stream.limits import Limits
from anabranch.stream.reading.source import KnownStream


@dataclass(frozen=True)
class SubscribedSite:
    """The streams and subscriptions of a site, as its next epoch would have them."""

    streams: tuple[KnownStream, ...]
    texts: Mapping[str, str]
    """By name: the queries, checked and printed."""
    policies: Mapping[str, Policy]
    functions: Functions
    checkpoint: Checkpoint | None
    newest: Manifest | None
    """The newest epoch, None before the first."""
    before: Plan | None
    """Its plan."""

    def forecast(self, stream: str, said: Sequence[Announced]) -> Forecast:
        """How the subscriptions would react to accents of a stream, each in another partition."""
        newest = self.newest
        subscriptions, following = subscriptions_of(
            self.before,
            self.texts,
            newest.epoch + 1 if newest else 0,
            newest.begun if newest else (),
            self.streams,
            self.functions,
            aborted=newest.aborted if newest else {},
            policies=self.policies,
        )
        plan = Plan(self.streams, subscriptions, Limits(), following)
        return forecast(self.checkpoint, newest, plan, said, stream)


@dataclass(frozen=True, slots=True)
class AccentPlan:
    """An accent that may be published into a stream of a site, and its effects."""

    publications: tuple[Publication | TopicPublication, ...]
    """One for each partition."""
    warnings: tuple[str, ...]
    forecast: Callable[[], Forecast]
    """How the subscriptions would react to it."""

    def publish(self) -> list[Location | TopicPublication]:
        """Publish it; gives the places that have it: files, or partitions of a topic."""
        return publish_all(self.publications)


def planned_accent(
    course: StreamCourse, text: str, partition: str | None, site: Callable[[], SubscribedSite], *, accents: bool
) -> AccentPlan:
    """An accent to be published into a stream; raises where the stream cannot take it.

    All partitions are checked before anything is written; `accents` says whether the site follows them, and its
    subscriptions are asked for only if somebody wants to know what they would do.
    """
    name = course.source.name
    if not accents:
        raise StreamError(f"the stream '{name}' takes no accent: {TURNED_OFF}")
    found = tuple(publication(course, text, each) for each in partitions_of(course.source, partition))
    warnings = (each for one in found for each in unseen_paths(course, one.accent, one.partition, one.form))
    said = [Announced(name, each.partition, each.accent) for each in found]
    return AccentPlan(found, tuple(dict.fromkeys(warnings)), partial(_forecast, site, name, said))


def _forecast(site: Callable[[], SubscribedSite], stream: str, said: Sequence[Announced]) -> Forecast:
    return site().forecast(stream, said)
