"""The commands about a site: `run` it; print an `answer`, the `state`, the `history` of a stream; publish an `accent`.

Imports are made when needed: Spark is not loaded for commands that can do without.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from anabranch.cli.arguments import Commands, absolute, declare_conversion, declare_spark, spark_of, user_file
from anabranch.cli.printing import print_answer, print_lines, print_report, short
from anabranch.storage import Location
from anabranch.visible import tell, visible


def declare(commands: Commands) -> None:
    """Declare the commands and their arguments."""
    run = commands.add_parser("run", help="keep answering subscriptions over streams that grow")
    run.add_argument("site", type=Path, metavar="SITE.toml", help="the streams and subscriptions")
    run.add_argument("--once", action="store_true", help="to the end of what is there, then stop")
    run.add_argument("--dead-letter", type=user_file, metavar="FILE", help="what was set aside, one JSON line each")
    run.add_argument("--late", type=user_file, metavar="FILE", help="items too late for windows, one JSON line each")
    declare_spark(run)
    run.set_defaults(run=_run)

    answer = commands.add_parser("answer", help="print the committed answer of one subscription")
    answer.add_argument("site", type=Path, metavar="SITE.toml")
    answer.add_argument("name", metavar="NAME", help="the subscription")
    answer.add_argument(
        "--timeline", action="store_true", help="one JSON line for each element that changed what was shown"
    )
    declare_conversion(answer)
    answer.set_defaults(run=_answer)

    state = commands.add_parser("state", help="print what the branches of a site remember")
    state.add_argument("site", type=Path, metavar="SITE.toml")
    state.set_defaults(run=_state)

    history = commands.add_parser("history", help="print how a stream has evolved")
    history.add_argument("site", type=Path, metavar="SITE.toml")
    history.add_argument("stream", metavar="STREAM")
    history.set_defaults(run=_history)

    accent = commands.add_parser("accent", help="publish an accent into a stream, behind all that it holds")
    accent.add_argument("site", type=Path, metavar="SITE.toml")
    accent.add_argument("stream", metavar="STREAM")
    accent.add_argument("text", metavar="ACCENT", help='as in <s:accent><s:drop path="phc"/></s:accent>')
    accent.add_argument("--partition", metavar="N", help="which of several, from 0 on, or 'all'")
    accent.add_argument("--dry-run", action="store_true", help="say what each subscription would do, publish nothing")
    accent.set_defaults(run=_accent)


def _run(options: argparse.Namespace) -> None:
    from anabranch.running import run

    run(
        options.site,
        once=options.once,
        dead_letters=absolute(options.dead_letter),
        late_items=absolute(options.late),
        spark=spark_of(options),
    )


def _answer(options: argparse.Namespace) -> None:
    from anabranch.running import committed

    if options.timeline:
        print_lines(committed(options.site, options.name, timeline=True, convert=options.convert))
    else:
        print_answer(committed(options.site, options.name, convert=options.convert))


def _state(options: argparse.Namespace) -> None:
    from anabranch.site_reports import holdings, table

    print_report(table(holdings(options.site)))


def _history(options: argparse.Namespace) -> None:
    from anabranch.site_reports import stream_course

    print_report((str(stream_course(options.site, options.stream).history()),))


def _accent(options: argparse.Namespace) -> None:
    from anabranch.site_reports import accent_plan, forecast_lines

    plan = accent_plan(options.site, options.stream, options.text, options.partition)
    for warning in plan.warnings:
        tell(f"warning: {visible(warning)}")
    if options.dry_run:
        places = (getattr(each, "file", each) for each in plan.publications)
        files = (f"would be published in {_place(each)}" for each in places)
        print_report((*files, *forecast_lines(plan.forecast())))
        return
    for place in plan.publish():
        tell(f"published in {_place(place)}")


def _place(place: object) -> str:
    """A file, or a partition of a topic, for people."""
    return visible(str(short(place) if isinstance(place, Path | Location) else place))
