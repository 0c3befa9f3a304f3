"""The commands about a network of peers: `network plan | show | run | answer NETWORK.toml`.

Imports are made when a command runs; `plan` and `show` need no Spark.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from anabranch.cli.arguments import Commands, declare_conversion, declare_spark, spark_of
from anabranch.cli.printing import print_answer, print_json, print_report, write_picture
from anabranch.cli.site import declare_service, service_of
from anabranch.network.description import STRATEGIES, read_network


def declare(commands: Commands) -> None:
    """Declare the commands and their arguments."""
    network = commands.add_parser("network", help="peers that share streams on the way").add_subparsers(
        required=True, metavar="COMMAND"
    )

    plan = network.add_parser("plan", help="print what would flow where, and who would compute what")
    _file(plan)
    plan.add_argument("--strategy", choices=STRATEGIES, help="instead of the one that the file names")
    plan.add_argument("--explain", action="store_true", help="also why: for each subscription the plans and prices")
    plan.add_argument("--json", action="store_true", help="as JSON")
    plan.set_defaults(run=_plan)

    show = network.add_parser("show", help="print what flows where, measured if the network has run")
    _file(show)
    show.add_argument("--strategy", choices=STRATEGIES, help="instead of the one that the file names; as planned")
    show.add_argument("--svg", type=Path, metavar="FILE", help="draw the map there, too")
    show.set_defaults(run=_show)

    run = network.add_parser("run", help="let all peers run on one Spark")
    _file(run)
    run.add_argument(
        "--peer", action="append", default=[], metavar="NAME", help="only this super-peer; may be given again"
    )
    run.add_argument("--once", action="store_true", help="to the end of what is there, then stop")
    run.add_argument("--dead-letter", type=Path, metavar="FILE", help="what was set aside, one JSON line each")
    run.add_argument("--serve", action="store_true", help="show the map over HTTP meanwhile")
    declare_service(run)
    declare_spark(run)
    run.set_defaults(run=_run)

    answer = network.add_parser("answer", help="print the committed answer of one subscription")
    _file(answer)
    answer.add_argument("name", metavar="NAME", help="the subscription")
    declare_conversion(answer)
    answer.set_defaults(run=_answer)


def _file(command: argparse.ArgumentParser) -> None:
    command.add_argument("network", type=Path, metavar="NETWORK.toml", help="the peers, streams and subscriptions")


def _plan(options: argparse.Namespace) -> None:
    from anabranch.network.explanation import decision_json, decision_text, plan_json, plan_text
    from anabranch.network.planner import Planner

    planner, decisions = Planner.of(read_network(options.network), options.strategy)
    if options.json:
        found = plan_json(planner)
        if options.explain:
            found["decisions"] = [decision_json(each) for each in decisions]
        print_json(found)
        return
    lines = [line for each in decisions for line in decision_text(each)] if options.explain else []
    print_report((*lines, *plan_text(planner)))


def _show(options: argparse.Namespace) -> None:
    from anabranch.network.explanation import plan_text, planned
    from anabranch.network.picture import draw
    from anabranch.network.planner import Planner
    from anabranch.peers.inspection import RanNetwork

    network = read_network(options.network)
    ran = None if options.strategy else RanNetwork.of(network)
    if ran is None:
        planner, _ = Planner.of(network, options.strategy)
        rates = planned(planner, {name: each.by for name, each in network.streams.items()})
    else:
        planner = ran.planner()
        rates = ran.rates(planner)
    if options.svg is not None:
        write_picture(draw(planner, rates), options.svg, network.read)
    print_report((*plan_text(planner, rates), *(() if ran is None else ran.sent_whole())))


def _run(options: argparse.Namespace) -> None:
    from anabranch.network_run import run

    run(
        options.network,
        once=options.once,
        dead_letters=options.dead_letter and options.dead_letter.absolute(),
        here=options.peer,
        spark=spark_of(options),
        serve=service_of(options),
    )


def _answer(options: argparse.Namespace) -> None:
    from anabranch.network_run import committed

    print_answer(committed(options.network, options.name, convert=options.convert))
