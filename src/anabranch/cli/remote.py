"""`anabranch --url URL COMMAND`: the commands that ask a service, whose site may be on another machine.

They print what their local namesakes print, from the replies of docs/service.md; nothing of an engine is loaded.
Without `--url` in front of the command, commands are the local ones.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeAlias

from anabranch.cli.printing import CommandParser, print_answer, print_lines, print_report
from anabranch.client import RemoteSite, RemoteSubscription, connect
from anabranch.engine.reports.tables import aligned, named
from anabranch.errors import QueryError, UsageError
from anabranch.stream.reading.toml_tables import read_text
from anabranch.visible import note, tell, visible, visible_json

_LANGUAGES = ("xquery", "sql")
_ROLES = ("read", "subscribe", "administer")
_ROWS = 1_000
_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # argparse gives it no other name
_Record: TypeAlias = Mapping[str, Any]


def remote_parser() -> argparse.ArgumentParser:
    """The parser of the commands that ask a service."""
    parser: argparse.ArgumentParser = CommandParser(
        prog="anabranch", description="Ask a service, as 'anabranch serve' runs one.", allow_abbrev=False
    )
    parser.add_argument("--url", required=True, metavar="URL", help="where it is, as in http://127.0.0.1:8080")
    parser.add_argument(
        "--token-file", type=Path, metavar="FILE", help="a file with the token; default: ANABRANCH_TOKEN, if it is set"
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _declare_subscriptions(commands)
    _declare_queries(commands)
    _declare_streams(commands)
    return parser


def _declare_subscriptions(commands: _Commands) -> None:
    listed = commands.add_parser("subscriptions", help="list the subscriptions")
    listed.add_argument("--search", metavar="TEXT", help="those with this text in their name or query")
    listed.set_defaults(run=_subscriptions)

    subscribe = commands.add_parser("subscribe", help="register a subscription")
    subscribe.add_argument("name", metavar="NAME")
    _declare_query(subscribe)
    subscribe.add_argument("--policy", choices=("accumulate", "abort", "absorb"), help="what it does with accents")
    subscribe.add_argument(
        "--from-beginning", action="store_true", help="begin with what the sources of its streams still hold"
    )
    subscribe.set_defaults(run=_subscribe)

    cancel = commands.add_parser("cancel", help="end a subscription")
    cancel.add_argument("name", metavar="NAME")
    cancel.set_defaults(run=_cancel)

    answer = commands.add_parser("answer", help="print the committed answer of one subscription")
    answer.add_argument("name", metavar="NAME", help="the subscription")
    answer.add_argument("--after", metavar="POSITION", help="only what is behind a position, as in 12-3")
    answer.add_argument("--follow", action="store_true", help="and whatever comes, until it is interrupted")
    answer.set_defaults(run=_answer)


def _declare_queries(commands: _Commands) -> None:
    check = commands.add_parser("check", help="check a query against the streams of the site")
    _declare_query(check)
    check.set_defaults(run=_check)

    explain = commands.add_parser("explain", help="show what a query would share with those that run")
    _declare_query(explain)
    explain.set_defaults(run=_explain)


def _declare_query(command: argparse.ArgumentParser) -> None:
    command.add_argument("query", type=Path, metavar="QUERY.xq", help="a file with one query")
    command.add_argument("--language", choices=_LANGUAGES, help="default: sql in files *.sql, else by its text")


def _declare_streams(commands: _Commands) -> None:
    commands.add_parser("streams", help="list the streams").set_defaults(run=_streams)

    accent = commands.add_parser("accent", help="publish an accent into a stream, behind all that it holds")
    accent.add_argument("stream", metavar="STREAM")
    accent.add_argument("text", metavar="ACCENT", help='as in <s:accent><s:drop path="phc"/></s:accent>')
    accent.add_argument("--partition", metavar="N", help="which of several, from 0 on, or 'all'")
    accent.add_argument("--dry-run", action="store_true", help="say what each subscription would do, publish nothing")
    accent.set_defaults(run=_accent)

    commands.add_parser("state", help="print what the branches of the site remember").set_defaults(run=_state)

    history = commands.add_parser("history", help="print how a stream has evolved")
    history.add_argument("stream", metavar="STREAM")
    history.set_defaults(run=_history)

    letters = commands.add_parser("dead-letters", help="print what was set aside, one JSON line each")
    letters.add_argument("--stream", metavar="STREAM", help="only of this one")
    letters.set_defaults(run=_dead_letters)

    commands.add_parser("now", help="print what the run does, and what is late").set_defaults(run=_now)


def _site(options: argparse.Namespace) -> RemoteSite:
    return connect(options.url, None if options.token_file is None else _token(options.token_file))


def _token(file: Path) -> str:
    """The one token in a file: alone, or in a line of the service's own file, with its role in front."""
    lines = [line.split() for line in read_text(file).splitlines() if line.strip() and line.strip()[0] != "#"]
    if len(lines) != 1:
        raise UsageError(f"'{file}' has {len(lines) or 'no'} tokens", hint="it has to have the one to use")
    words = lines[0]
    return words[1] if len(words) > 1 and words[0] in _ROLES else words[0]


# --- subscriptions and their answers ----------------------------------------------------------------------


def _subscriptions(options: argparse.Namespace) -> None:
    rows = map(_summary, _site(options).subscriptions(options.search))
    head = ("subscription", "state", "kind", "streams", "answers", "sink")
    lines = _tables(head, rows, right=(4,))
    print_report(lines)


def _summary(each: RemoteSubscription) -> tuple[str, ...]:
    about = each.about
    state = f"{about.get('state')}: {about['error']}" if about.get("error") else str(about.get("state"))
    streams = ", ".join(map(str, about.get("streams") or ()))
    return (
        each.name,
        state,
        str(about.get("kind") or "-"),
        streams,
        _count(about.get("answers")),
        str(about.get("sink") or ""),
    )


def _tables(head: Sequence[str], rows: Iterator[Sequence[str]], right: Sequence[int] = ()) -> Iterator[str]:
    """The lines of a table that may be long: it is aligned and printed part by part, as it comes in."""
    for part in iter(lambda: list(islice(rows, _ROWS)), []):
        yield from aligned([head, *part], right)


def _subscribe(options: argparse.Namespace) -> None:
    site, text = _site(options), read_text(options.query)
    with _labelled(options.query):
        found = site.subscribe(
            text,
            options.name,
            language=_language(options),
            policy=options.policy,
            from_beginning=options.from_beginning,
        )
    for warning in found.about.get("warnings") or ():
        note(str(warning))
    tell(f"registered '{visible(found.name)}'; it answers from the next epoch on")


def _cancel(options: argparse.Namespace) -> None:
    RemoteSubscription(_site(options).connection, options.name).cancel()
    tell(f"cancelled '{visible(options.name)}'; its answer so far stays")


def _answer(options: argparse.Namespace) -> None:
    found = _site(options).subscription(options.name)
    if found.is_display() and not options.follow and options.after is None:
        print_answer([found.display().text])
        return
    opening, closing = ("", "") if options.after is not None else found.frame()
    newest: list[str] = []

    def texts() -> Iterator[str]:
        for answer in found.answers(options.after, options.follow):
            newest[:] = [answer.position]
            yield answer.text

    try:
        if options.follow:
            _print_following(opening, texts(), closing)
        else:
            print_answer(chain((opening,), texts(), (closing,)))
    finally:
        if newest and (options.follow or options.after is not None):
            note(f"the next answer is the one --after {newest[0]}")


def _print_following(opening: str, texts: Iterator[str], closing: str) -> None:
    """Print answers as they come, each on lines of its own, so that whoever reads lines has it at once."""
    for text in chain((opening,), texts, (closing,)):
        if text:
            print_answer((text,))


# --- queries ----------------------------------------------------------------------------------------------


@contextmanager
def _labelled(file: Path) -> Iterator[None]:
    """Errors in the query of a file have the file's name in front of the line."""
    try:
        yield
    except QueryError as error:
        error.name = str(file)
        raise


def _language(options: argparse.Namespace) -> str | None:
    language: str | None = options.language
    return language or ("sql" if options.query.suffix == ".sql" else None)


def _check(options: argparse.Namespace) -> None:
    site, text = _site(options), read_text(options.query)
    with _labelled(options.query):
        found = site.check(text, language=_language(options))
    for warning in found.get("warnings") or ():
        note(str(warning))
    streams = ", ".join(map(str, found.get("streams") or ()))
    print_report(_lines(f"kind: {found.get('kind')}", f"answer: {found.get('answer')}", f"streams: {streams}"))
    print_report(_lines(found.get("printed"), found.get("columns")))


def _explain(options: argparse.Namespace) -> None:
    site, text = _site(options), read_text(options.query)
    with _labelled(options.query):
        found = site.explain(text, language=_language(options))
    for warning in found.get("warnings") or ():
        note(str(warning))
    print_report(_lines(found.get("text")))
    print_report(str(each.get("message")) for each in _records(found.get("shares")))
    cost = found.get("cost")
    print_report(f"cost, {name}: {said}" for name, said in (cost if isinstance(cost, dict) else {}).items())


def _lines(*texts: object) -> Iterator[str]:
    return (str(each) for each in texts if each)


# --- streams and the run ----------------------------------------------------------------------------------


def _streams(options: argparse.Namespace) -> None:
    head = ("stream", "source", "format", "partitions", "subscriptions", "items", "items/s", "lag")
    rows = (
        (
            str(each.get("name")),
            f"{each.get('source')} {each.get('where') or ''}".strip(),
            str(each.get("format")),
            *(_count(each.get(key)) for key in ("partitions", "subscriptions", "items", "items_per_second")),
            _lag(each.get("lag")),
        )
        for each in _site(options).streams()
    )
    print_report(_tables(head, rows, right=(3, 4, 5, 6)))


def _accent(options: argparse.Namespace) -> None:
    partition = options.partition
    chosen = int(partition) if partition is not None and partition.isdecimal() else partition
    found = _site(options).accent(options.stream, options.text, preview=options.dry_run, partition=chosen)
    for warning in found.get("warnings") or ():
        tell(f"warning: {visible(str(warning))}")
    places = [visible(str(each)) for each in found.get("places") or ()]
    if not options.dry_run:
        for place in places:
            tell(f"published in {place}")
        return
    print_report(f"would be published in {place}" for place in places)
    print_report(_forecast(found))


def _forecast(found: _Record) -> Iterator[str]:
    """What subscriptions would do, as `anabranch accent --dry-run` says it of a site."""
    reasons = found.get("reasons")
    why = reasons if isinstance(reasons, dict) else {}
    reactions = _records(found.get("reactions"))
    for each in reactions:
        names = [str(name) for name in each.get("subscriptions") or ()]
        more = int(each.get("count") or len(names)) - len(names)
        behind = f" and {more:,} more" if more > 0 else ""
        if each.get("deed") == "ends":
            yield from (f"ends: {name}: {why.get(name, '')}" for name in names)
            if behind:
                yield f"ends:{behind}"
        else:
            yield f"{each.get('deed')}: {', '.join(names)}{behind}"
    if found.get("others"):
        yield f"not concerned: {_count(found['others'])} subscriptions"
    if not reactions and not found.get("others"):
        yield "nobody subscribes to the stream"


def _state(options: argparse.Namespace) -> None:
    found = _site(options).state()
    head = ("branch", "kind", "shard", "held", "bytes", "waiting")
    rows = (
        (
            _members(each),
            str(each.get("kind")),
            *(_count(each.get(key)) for key in ("shard", "held", "bytes")),
            str(each.get("waiting") or ""),
        )
        for each in _records(found.get("branches"))
    )
    print_report(_tables(head, rows, right=(2, 3, 4)))
    shards = _records(found.get("shards"))
    print_report(f"shard {each.get('shard')}: {_count(each.get('bytes'))} bytes" for each in shards)


def _members(branch: _Record) -> str:
    """The subscriptions of a branch, of which the service may have named only some, or the stream that it keeps."""
    if branch.get("stream"):
        return f"stream {branch['stream']}"
    names = [str(each) for each in branch.get("subscriptions") or ()]
    missing = int(branch.get("count") or len(names)) - len(names)
    return f"{named(names)} and {missing:,} more" if missing > 0 else named(names)


def _history(options: argparse.Namespace) -> None:
    found = _site(options).evolution(options.stream)
    head = ("epoch", "partition", "file", "byte", "change", "items", "subscriptions")
    print_report(_tables(head, map(_accent_row, _records(found.get("accents"))), right=()))


def _accent_row(accent: _Record) -> tuple[str, ...]:
    notes = [f"refused: {accent['refused']}"] if accent.get("refused") else []
    for each in _records(accent.get("reactions")):
        notes.append(f"{each.get('deed')}: {_members(each)}")
    place = (str(accent.get("epoch")), str(accent.get("partition")), str(accent.get("file")))
    told = (str(accent.get("change")), str(accent.get("items")))
    return (*place, _count(accent.get("offset")), *told, "; ".join(notes))


def _dead_letters(options: argparse.Namespace) -> None:
    print_lines(f"{visible_json(each)}\n" for each in _site(options).dead_letters(options.stream))


def _now(options: argparse.Namespace) -> None:
    found = _site(options).now()
    rates, totals = (value if isinstance(value, dict) else {} for value in (found.get("rates"), found.get("totals")))
    print_report(
        (
            f"{found.get('run_state')}, epoch {found.get('epoch')}, {_count(found.get('subscriptions'))} subscriptions",
            f"per second: {_counts(rates)}",
            f"in all: {_counts(totals)}",
        )
    )
    streams = (
        (str(each.get("name")), _count(each.get("items_per_second")), _count(each.get("items")), _lag(each.get("lag")))
        for each in _records(found.get("streams"))
    )
    print_report(_tables(("stream", "items/s", "items", "lag"), streams, right=(1, 2)))
    for each in _records(found.get("late")):
        hint = f" ({each['hint']})" if each.get("hint") else ""
        print_report([visible(f"late: {each.get('what')} '{each.get('name')}': {each.get('message')}{hint}")])


# --- cells ------------------------------------------------------------------------------------------------


def _records(value: object) -> list[_Record]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _counts(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {_count(each)}" for name, each in values.items())


def _count(value: object) -> str:
    """A number for people."""
    match value:
        case bool() | None:
            return "-"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.1f}"
        case _:
            return str(value)


def _lag(value: object) -> str:
    """How far a stream is behind: the figures that are known."""
    known = value if isinstance(value, dict) else {}
    parts: Iterable[str] = (
        f"{_count(known[unit])} {unit}" for unit in ("bytes", "offsets", "seconds") if known.get(unit) is not None
    )
    return ", ".join(parts) or "-"
