"""Several queries of one family, served by one branch while some of them leave, and each of them alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from anabranch.branch import Branch, BranchMember, BranchState, open_branch
from anabranch.branch.family import family_of
from anabranch.branch.intake.entries import FeedOrigin, pack
from branch.feeding import Question, Stream, Taken, parts_of, some_of


@dataclass
class Schedule:
    """What an epoch brings: feeds, then the streams' end where it is the last."""

    feeds: list[bytes]
    ended: list[tuple[str, int]] = field(default_factory=list)

    def play(self, branch: Branch) -> None:
        for feed in self.feeds:
            branch.feed(feed)
        for stream, partition in self.ended:
            branch.end(stream, partition)


def schedules(random: Random, streams: Sequence[Stream], epochs: int) -> list[Schedule]:
    """The streams cut into random feeds over some epochs."""
    feeds = [
        [pack(FeedOrigin(stream.name, number, f"file{number}"), part) for part in parts_of(random, cuts)]
        for stream in streams
        for number, cuts in enumerate(stream.cuts)
    ]
    found = [Schedule(some_of(random, feeds, everything=epoch == epochs - 1)) for epoch in range(epochs)]
    found[-1].ended = [(stream.name, number) for stream in streams for number in range(stream.partitions)]
    return found


@dataclass
class Crowd:
    """Questions over the same streams."""

    questions: Sequence[Question]
    held: int = 0
    """How many items the last epoch left."""

    def families(self) -> set[str]:
        return {family_of(each.standing, each.operator) for each in self.questions}

    def run(self, plan: Sequence[Schedule], leaving: Sequence[int]) -> list[Taken]:
        """What each is given by one branch; it leaves before the epoch of this number."""
        taken = [Taken() for _ in self.questions]
        state: BranchState | None = None
        spill = Taken()
        for epoch, schedule in enumerate(plan):
            members = [
                BranchMember(str(number), "q", each.standing, taken[number])
                for number, each in enumerate(self.questions)
                if epoch < leaving[number]
            ]
            if members:
                inputs = {each.name: each.for_branch() for each in self.questions[0].streams}
                branch = open_branch(self.questions[0].operator, members, inputs, state, {}, {}, spill)
                schedule.play(branch)
                saved = branch.save()
                self.held = branch.held
                state = None if saved is None else BranchState.from_bytes(saved.to_bytes())
            for each in taken:
                each.marks.append(_mark(each))
        return taken

    def check(self, random: Random, epochs: int, label: str) -> list[Taken]:
        """Whoever leaves when: after every epoch each has been given what it would have been given alone."""
        plan = schedules(random, self.questions[0].streams, epochs)
        leaving = [random.choice((epochs, epochs, random.randint(1, epochs))) for _ in self.questions]
        leaving[random.randrange(len(leaving))] = epochs
        together = self.run(plan, leaving)
        late: set[str] = set()
        for number, question in enumerate(self.questions):
            (alone,) = Crowd([question]).run(plan, [leaving[number]])
            assert together[number].marks == alone.marks, f"{label}: {question.text}"
            late |= set(map(str, alone.places))
            if leaving[number] == epochs:
                assert question.answer(together[number]) == question.law().text, f"{label}: {question.text}"
        assert {str(place) for each in together for place in each.places} == late, label
        return together


def _mark(taken: Taken) -> tuple[str, Counter[str]]:
    """What was given so far."""
    return "".join(taken.pieces), Counter(each.to_json() for each in taken.dead)
