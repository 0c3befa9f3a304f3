"""What is planned, for the scenarios of the paper and for single decisions."""

from __future__ import annotations

import json
from itertools import count

import pytest

import papers
from anabranch.bench.workloads.paper import placed, workload
from anabranch.errors import QueryError, UsageError
from anabranch.network.catalogue import AnswerQuery, BeginFlow, CancelQuery, EndFlow, ReplaceFlow, step_text
from anabranch.network.description import STRATEGIES, Strategy
from anabranch.network.explanation import decision_json, decision_text, plan_json, plan_text
from anabranch.network.planner import Planner
from anabranch.network.topology import hypercube, line
from anabranch.sharing.tree import PropertyTree
from network.making import FIGURE_1, RARE, check_plan, figure_1, planner, sample

WHOLE = '<all>{ for $p in stream("photons")/photons/photon return $p }</all>'
OTHERS = WHOLE.replace('"photons"', '"others"')


def arrows(found: Planner) -> list[tuple[str | None, str]]:
    """The arrows of a picture like figure 1."""
    return [(flow.before, flow.at) for flow in found.catalogue.hops]


# --- figure 1 -----------------------------------------------------------------------------------------------


def test_figure_1_without_widening() -> None:
    """Nothing can be shared, since each query needs more than those before it: nine arrows."""
    assert len(arrows(figure_1("sharing"))) == len(arrows(figure_1("shipping"))) == 9


def test_figure_1_with_widening() -> None:
    """Five arrows: the stream forks at SP5, and is handed on from each subscriber to the next."""
    found = figure_1("widening")
    assert sorted(arrows(found)) == [("SP3", "SP2"), ("SP4", "SP5"), ("SP5", "SP1"), ("SP5", "SP7"), ("SP7", "SP3")]
    assert found.topology.route("SP4", "SP1") == ("SP4", "SP0", "SP1"), "q1 has moved"
    check_plan(found)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_figure_1_told(strategy: Strategy) -> None:
    """Text and data say the same of every flow, and name its query."""
    found = figure_1(strategy)
    lines = list(plan_text(found))
    data = json.loads(json.dumps(plan_json(found)))
    assert lines[0].startswith(f"{strategy}: 4 subscriptions, {len(arrows(found))} flows on links, ")
    assert {each["name"] for each in data["flows"]} == set(found.catalogue.flows)
    assert all("stream(" in each["query"] for each in data["flows"] if each["made of"])
    for each in data["links"]:
        assert any(line.startswith(f"{each['from']} - {each['to']}: ") for line in lines)


# --- section 6 ----------------------------------------------------------------------------------------------

PAPER = {"sharing": 12.2, "widening": 6.4}


def experiment(strategy: Strategy, seed: int) -> tuple[Planner, int, float]:
    """Section 6: the planner, how many queries share, and the longest time to plan one."""
    found = planner(hypercube(3), {"photons": "SP0"}, strategy, known=1_200)  # Vela is bright in the first 360
    places = placed(seed, 32, found.topology.peers)
    decisions = [
        found.register(f"q{number}", *each) for number, each in enumerate(zip(workload(seed), places, strict=True))
    ]
    check_plan(found)
    shared = sum(each.chosen is not None and each.chosen.shares for each in decisions)
    return found, shared, max(each.seconds for each in decisions)


@pytest.mark.mass
def test_section_6() -> None:
    """With widening all but the first of 32 random queries share, and traffic falls as much as in the paper."""
    traffic, load, shared = {}, {}, {}
    for strategy in STRATEGIES:
        found, shared[strategy], _ = experiment(strategy, 4)
        traffic[strategy] = sum(found.catalogue.traffic(found.estimates).values())
        load[strategy] = sum(found.catalogue.load(found.estimates).values())
    assert shared == {"shipping": 0, "sharing": shared["sharing"], "widening": 31}
    assert 0 < shared["sharing"] < 20
    assert traffic["widening"] / traffic["sharing"] < PAPER["widening"] / PAPER["sharing"]
    assert traffic["widening"] < PAPER["widening"] / 100 * traffic["shipping"]
    assert load["widening"] < load["sharing"] < load["shipping"]


# --- single decisions ---------------------------------------------------------------------------------------


def test_what_matches_is_shared_as_it_is() -> None:
    """q3 is answered out of q4's stream at the same peer: no new flow, and nothing is widened."""
    found = planner(line(3), {"photons": "SP0"}, "sharing")
    found.register("q4", papers.Q4, "SP2")
    decision = found.register("q3", papers.Q3, "SP2")
    assert decision.chosen is not None
    assert (decision.chosen.shares, decision.chosen.added, decision.chosen.changes) == (True, (), {})
    assert [type(each) for each in decision.steps] == [AnswerQuery]


def test_a_stream_forks_where_it_passes() -> None:
    """q3 between the source and q4 reads what passes by."""
    found = planner(line(3), {"photons": "SP0"}, "sharing")
    found.register("q4", papers.Q4, "SP2")
    found.register("q3", papers.Q3, "SP1")
    assert arrows(found) == [("SP0", "SP1"), ("SP1", "SP2")]


def test_only_as_far_as_needed() -> None:
    """A stream is widened up to the fork; behind it each link carries what is needed there."""
    found = planner(line(4), {"photons": "SP0"})
    found.register("q3", papers.Q3, "SP3")
    decision = found.register("q4", papers.Q4, "SP1")
    rates = [found.estimates.rate(flow.form) for flow in found.catalogue.hops]
    assert rates[0] > 2 * rates[1] == 2 * rates[2]
    [replaced, *rest] = [each for each in decision.steps if isinstance(each, ReplaceFlow) and each.flow.before]
    assert (replaced.flow.name, replaced.dependants, rest) == ("photons.2", ("photons.3",), [])
    assert step_text(replaced) == "replace photons.2 from SP0 to SP1; photons.3 switch at the end of an epoch"


def test_a_small_stream_beside_a_large_one() -> None:
    """What is small travels by itself where that costs less than to send much to those who need little."""
    found = planner(line(12), {"photons": "SP0"})
    found.register("q1", papers.Q1, "SP11")
    found.register("all", WHOLE, "SP2")
    rates = {flow.at: 0.0 for flow in found.catalogue.hops}
    for flow in found.catalogue.hops:
        rates[flow.at] += found.estimates.rate(flow.form)
    assert rates["SP2"] > 700 > 100 > rates["SP3"] == rates["SP11"]


def test_steps_go_downwards_and_ends_upwards() -> None:
    """What is made of another flow begins behind it, and ends before it."""
    found = planner(line(3), {"photons": "SP0"})
    begun = found.register("q4", papers.Q4, "SP2").steps
    assert [each.flow.name for each in begun if isinstance(each, BeginFlow)] == ["photons.1", "photons.2", "photons.3"]
    ended = found.cancel("q4").steps
    assert isinstance(ended[0], CancelQuery)
    assert [each.flow.name for each in ended if isinstance(each, EndFlow)] == ["photons.3", "photons.2", "photons.1"]
    assert list(found.catalogue.flows) == ["photons"]


@pytest.mark.parametrize("has_begun", [True, False])
def test_windows_of_items_that_have_begun_stay_where_they_are(has_begun: bool) -> None:
    """Who has counted items goes on with items, fewer of them, when nobody else needs the others; windows are made on
    the way only as long as nothing has come."""
    found = planner(line(2), {"photons": "SP0"})
    found.register("all", WHOLE, "SP1")
    found.register("q1", papers.Q1, "SP1")
    assert found.catalogue.subscriptions["q1"].reads == found.catalogue.subscriptions["all"].reads
    found.begun = frozenset(found.catalogue.flows if has_begun else ())
    assert found.cancel("all").narrowed
    check_plan(found)
    (flow,) = found.catalogue.subscriptions["q1"].reads
    form = found.catalogue.flows[flow].form
    assert isinstance(form, PropertyTree)
    assert (form.window is None) is has_begun
    assert all(len(each.path) > 2 for each in form.outputs)


def test_who_ends_frees_what_only_it_needed() -> None:
    """The others keep what they read, and what was shared is narrowed to that (sharing paper, 4)."""
    found = planner(line(3), {"photons": "SP0"})
    found.register("q3", papers.Q3, "SP1")
    found.register("all", WHOLE, "SP2")
    decision = found.cancel("all")
    assert arrows(found) == [("SP0", "SP1")]
    assert set(decision.narrowed) == {"photons.1", "photons.2"}
    assert any("narrowed: photons.1" in each for each in decision_text(decision))
    assert found.catalogue.flows["photons.2"].form == found.catalogue.subscriptions["q3"].need.inputs[0]
    check_plan(found)


@pytest.mark.parametrize("at", ["SP1", "SP2"])
def test_a_link_that_is_short_is_relieved(at: str) -> None:
    """What nobody needs any more leaves room for another stream, also where the flow goes on behind the link."""
    topology = line(3).with_bandwidth(1_000)
    found = planner(topology, {"photons": "SP0", "others": "SP0"})
    found.register("q3", papers.Q3, at)
    found.register("all", WHOLE, at)
    full = found.register("too much", OTHERS, "SP1")
    assert full.chosen is not None
    assert full.chosen.price.short > 0
    found.cancel("too much")
    found.cancel("all")
    decision = found.register("more", OTHERS, "SP1")
    assert decision.chosen is not None
    assert decision.chosen.price.short == 0
    assert max(found.catalogue.traffic(found.estimates).values()) < 1_000
    check_plan(found)


def test_a_way_around_a_link_that_is_short() -> None:
    """Of two ways of the same length the one is taken that has room."""
    cube = hypercube(2)
    links = {**cube.links, ("SP0", "SP1"): 100.0}
    found = planner(type(cube)(cube.peers, links), {"photons": "SP0"}, "sharing")
    found.register("far", WHOLE, "SP3")
    assert arrows(found) == [("SP0", "SP2"), ("SP2", "SP3")]


def test_time_is_up() -> None:
    """With no time the first plan is taken, straight from the stream; all others are not even priced."""
    ticks = count()
    samples, places = {"photons": sample()}, {"photons": "SP0"}
    found = Planner(line(3), samples, places, budget=0.5, clock=lambda: float(next(ticks)))
    found.register("one", papers.Q4, "SP2")
    decision = found.register("two", papers.Q4, "SP2")
    assert (decision.looked_at, decision.complete) == (1, False)
    assert decision.chosen is not None
    assert decision.chosen.anchors == ("photons",)
    assert next(decision_text(decision)).endswith("s, then time was up")


def test_why() -> None:
    """The chosen plan is the cheapest, and those that were not chosen stand there with their prices."""
    found = planner(hypercube(3), {"photons": "SP4"})
    decisions = [found.register(*each) for each in FIGURE_1]
    for decision in decisions[1:]:
        assert decision.chosen is not None
        prices = [decision.chosen.price, *(each.price for each in decision.others)]
        assert prices == sorted(prices)
        data = decision_json(decision)
        assert data["chosen"]["price"] <= min(each["price"] for each in data["others"])
        assert len(data["others"]) + 1 == data["plans priced"]
        text = list(decision_text(decision))
        assert text[1].startswith("  chosen, price ")
        assert text[2].startswith("  not, price ")


def test_where_a_join_is_made() -> None:
    """Many tuples: at the subscriber's; few: where the inputs meet (sharing paper, 5.3.1)."""
    chosen = []
    for text in (papers.Q6, RARE):
        found = planner(line(4), {"photon1": "SP0", "photon2": "SP1"})
        option = found.register("join", text, "SP3").chosen
        assert option is not None
        chosen.append(option.words.split(":")[0])
    assert chosen == ["joined at SP3, the subscriber's", "joined at SP1"]


def test_a_thin_peer_leaves() -> None:
    """Its subscriptions end; those of others do not change."""
    found = planner(line(3), {"photons": "SP0"})
    found.register("q3", papers.Q3, "SP1", by="P1")
    found.register("q4", papers.Q4, "SP2", by="P2")
    reads = found.catalogue.subscriptions["q3"].reads
    assert [type(each) for each in found.leave("P2").steps] == [ReplaceFlow, ReplaceFlow, CancelQuery, EndFlow]
    assert list(found.catalogue.subscriptions) == ["q3"]
    assert found.catalogue.subscriptions["q3"].reads == reads


def test_streams_come_and_go() -> None:
    """Who reads nothing else ends with a stream; a join stays for its other input, until it is cancelled."""
    found = planner(line(3), {"photon1": "SP0"})
    with pytest.raises(UsageError, match="nobody has registered"):
        found.register("join", RARE, "SP2")
    found.register_stream("photon2", sample("photon2", 2), "SP1")
    found.register("join", RARE, "SP2")
    found.register("one", papers.Q4.replace('"photons"', '"photon2"'), "SP0")
    found.end_stream("photon2")
    assert list(found.catalogue.subscriptions) == ["join"]
    assert "photon2" in found.catalogue.flows
    check_plan(found)
    with pytest.raises(UsageError, match="nobody has registered"):
        found.register("two", papers.Q4.replace('"photons"', '"photon2"'), "SP0")
    found.end_stream("photon1")
    assert (dict(found.catalogue.flows), dict(found.catalogue.subscriptions)) == ({}, {})
    with pytest.raises(UsageError, match="there is no stream 'photon1'"):
        found.end_stream("photon1")


def test_streams_that_are_called_like_flows() -> None:
    """Nothing is mixed up where a stream has a name that a flow might have."""
    found = planner(line(3), {"photons": "SP0", "photons.2": "SP0"})
    found.register("one", papers.Q4, "SP2")
    found.register("two", papers.Q4.replace('"photons"', '"photons.2"'), "SP2")
    check_plan(found)
    assert len(found.catalogue.flows) == 2 + 2 * 3


def test_what_makes_no_sense() -> None:
    """Names that are taken or unknown, streams that nobody has, and bad queries change nothing."""
    found = planner(line(2), {"photons": "SP0"})
    found.register("q3", papers.Q3, "SP1")
    before = found.catalogue
    with pytest.raises(UsageError, match="there is a subscription 'q3' already"):
        found.register("q3", papers.Q4, "SP1")
    with pytest.raises(UsageError, match="'SP9' is no super-peer"):
        found.register("q4", papers.Q4, "SP9")
    with pytest.raises(UsageError, match="reads a stream 'others' that nobody has registered"):
        found.register("q4", OTHERS, "SP1")
    with pytest.raises(UsageError, match="there is no subscription 'q4'"):
        found.cancel("q4")
    with pytest.raises(QueryError):
        found.register("q4", "for $p in", "SP1")
    assert found.catalogue is before
