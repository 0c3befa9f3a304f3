"""The commands about a site: `run` or `serve` it; print an `answer`, the `state`, the `history` of a stream; publish an
`accent`; `export` what was registered while it ran; `backup` all that a run remembers, and `restore` it.

Imports are made when needed: Spark is not loaded for commands that can do without.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from anabranch.cli.arguments import Commands, absolute, declare_conversion, declare_spark, port, spark_of, user_file
from anabranch.cli.printing import print_answer, print_lines, print_report, short
from anabranch.errors import UsageError
from anabranch.storage import Location
from anabranch.visible import tell, visible

if TYPE_CHECKING:
    from anabranch.service.settings import ServiceSettings
    from anabranch.spark.checkpoint.backup import Backup


def declare(commands: Commands) -> None:
    """Declare the commands and their arguments."""
    run = commands.add_parser("run", help="keep answering subscriptions over streams that grow")
    _declare_run(run)
    run.add_argument("--once", action="store_true", help="to the end of what is there, then stop")
    run.add_argument("--serve", action="store_true", help="answer HTTP requests meanwhile, as 'serve' does")
    run.set_defaults(run=_run)

    serve = commands.add_parser("serve", help="run a site, and answer programs and people over HTTP meanwhile")
    _declare_run(serve)
    serve.set_defaults(run=_run, once=False, serve=True)

    export = commands.add_parser("export", help="print what was registered through the service, as tables of SITE.toml")
    export.add_argument("site", type=Path, metavar="SITE.toml")
    export.set_defaults(run=_export)

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

    backup = commands.add_parser("backup", help="copy all that a run remembers, also while it is at work")
    backup.add_argument("site", type=Path, metavar="SITE.toml")
    backup.add_argument("where", metavar="FOLDER", help="a new folder, or one in an object store: s3://BUCKET/NAME")
    backup.set_defaults(run=_back_up)

    restore = commands.add_parser("restore", help="let a site go on from a backup, where it has no checkpoint")
    restore.add_argument("site", type=Path, metavar="SITE.toml")
    restore.add_argument("where", metavar="FOLDER", help="the backup")
    restore.set_defaults(run=_restore)

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


def _declare_run(command: argparse.ArgumentParser) -> None:
    """The arguments of commands that run a site."""
    command.add_argument("site", type=Path, metavar="SITE.toml", help="the streams and subscriptions")
    command.add_argument("--dead-letter", type=user_file, metavar="FILE", help="what was set aside, one JSON line each")
    command.add_argument(
        "--late", type=user_file, metavar="FILE", help="items too late for windows, one JSON line each"
    )
    declare_service(command)
    declare_spark(command)


def declare_service(command: argparse.ArgumentParser) -> None:
    """The arguments of commands that may serve."""
    command.add_argument("--host", help="where to serve; default: 127.0.0.1, which only this machine reaches")
    command.add_argument("--port", type=port, help="the port to serve at; default: 8080, and 0 is any that is free")
    command.add_argument("--token-file", type=Path, metavar="FILE", help="who may ask: a role and a token on each line")


def service_of(options: argparse.Namespace) -> ServiceSettings | None:
    """The settings of the service, if there is to be one."""
    from anabranch.service.settings import DEFAULT_PORT, ServiceSettings

    given = {"host": options.host, "port": options.port, "token_file": options.token_file}
    if not options.serve:
        for name, value in given.items():
            if value is not None:
                raise UsageError(f"'--{name.replace('_', '-')}' goes with '--serve'")
        return None
    if options.once:
        raise UsageError("'--once' ends with the input, and '--serve' goes on", hint="give one of them")
    chosen = DEFAULT_PORT if options.port is None else options.port
    settings = ServiceSettings(
        options.host or "127.0.0.1", chosen, options.token_file and options.token_file.absolute()
    )
    settings.tokens()  # who lacks them should not wait for Spark
    return settings


def _export(options: argparse.Namespace) -> None:
    from anabranch.site_reports import exported

    print_report(exported(options.site))


def _run(options: argparse.Namespace) -> None:
    from anabranch.running import run

    run(
        options.site,
        once=options.once,
        dead_letters=absolute(options.dead_letter),
        late_items=absolute(options.late),
        spark=spark_of(options),
        serve=service_of(options),
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


def _back_up(options: argparse.Namespace) -> None:
    from anabranch.site import read_site
    from anabranch.spark.checkpoint.backup import back_up
    from anabranch.spark.checkpoint.folder import Checkpoint

    site, where = read_site(options.site), Location.of(options.where)
    found = back_up(Checkpoint.open(site.checkpoint, site.owner), where, tell)
    tell(f"{_content(found)} in '{visible(str(where))}'")


def _restore(options: argparse.Namespace) -> None:
    from anabranch.site import read_site
    from anabranch.spark.checkpoint.backup import restore
    from anabranch.spark.checkpoint.folder import Checkpoint

    site = read_site(options.site)
    checkpoint = Checkpoint.at(site.checkpoint)
    found = restore(Location.of(options.where), checkpoint, tell)
    tell(f"{_content(found)} in '{visible(str(checkpoint.folder))}'")


def _content(backup: Backup) -> str:
    upto = "no epoch" if backup.epoch is None else f"all up to epoch {backup.epoch:,}"
    return f"{upto}: {len(backup.objects):,} files, {backup.size:,} bytes"


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
