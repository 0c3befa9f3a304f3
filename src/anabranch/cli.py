"""The command line: `anabranch query | explain | run | answer | state | history | accent | generate | demo | bench`.

Answers go to standard output or to files, everything else to standard error.
The exit status is 0; 1 where a query is refused, aborted or fails; 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path

from rich.console import Console

from anabranch.algebra.signature import POLICIES
from anabranch.bench import BENCHES
from anabranch.bench import run as run_bench
from anabranch.engine import Inputs, Prepared, Run, answering, prepare
from anabranch.engine.reading import looked_into
from anabranch.engine.timelines import timelines
from anabranch.errors import Aborted, AnabranchError, Unsupported, UsageError
from anabranch.language import check, parse
from anabranch.sharing.explain.drawing import draw
from anabranch.sharing.explain.text import Explained, explain_json, explain_text
from anabranch.sharing.rules.derive import derive_forest
from anabranch.stream.elements import DeadLetter
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.photons import write_photons
from anabranch.stream.schema import Schema
from anabranch.stream.source import Source, domains_of
from anabranch.stream.tables import read_text


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; gives the exit status."""
    options = _parser().parse_args(arguments)
    run: Callable[[argparse.Namespace], None] = options.run
    try:
        run(options)
    except UsageError as error:
        print(f"anabranch: {error}", file=sys.stderr)
        return 2
    except AnabranchError as error:
        print(f"anabranch: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        sys.stderr.close()  # whoever read the answer has enough of it
        return 0
    except KeyboardInterrupt:
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="anabranch", description="Standing XQuery subscriptions over streams, on Spark."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    query = commands.add_parser("query", help="answer queries over inputs that have an end")
    query.add_argument("queries", nargs="+", type=Path, metavar="Q.xq", help="a file with one query")
    query.add_argument("--stream", action="append", default=[], metavar="NAME=FILE", help="a file or directory")
    query.add_argument("--doc", action="append", default=[], metavar="NAME=FILE", help="a document for doc()")
    query.add_argument("--dtd", action="append", default=[], metavar="NAME=FILE", help="the schema of a stream")
    query.add_argument("--time", action="append", default=[], metavar="NAME=PATH", help="where items carry their time")
    query.add_argument("--slack", action="append", default=[], metavar="NAME=N", help="how late items may come")
    query.add_argument("--origin", action="append", default=[], metavar="NAME=N", help="where time windows begin")
    query.add_argument("--format", action="append", default=[], metavar="NAME=F", help="lines, document or json")
    query.add_argument(
        "--domain", action="append", default=[], metavar="NAME=PATH:V,V", help="the only values that items have there"
    )
    query.add_argument("--policy", choices=POLICIES, default="accumulate", help="what queries do with accents")
    query.add_argument("--out", type=Path, metavar="DIR", help="write DIR/<query>.xml instead of printing")
    query.add_argument("--no-sharing", action="store_true", help="do nothing once for several queries")
    query.add_argument("--engine", choices=("spark", "reference"), help="default: spark where it can, else reference")
    query.add_argument(
        "--timeline", action="store_true", help="one JSON line for each element that changes what is shown"
    )
    query.add_argument("--dead-letter", type=Path, metavar="FILE", help="what was set aside, one JSON line each")
    query.add_argument(
        "--max-item-bytes", type=int, default=Limits().item_bytes, metavar="N", help="larger items are bad"
    )
    query.add_argument("--max-depth", type=int, default=Limits().depth, metavar="N", help="deeper items are bad")
    query.set_defaults(run=_query)

    explain = commands.add_parser("explain", help="show what queries have in common")
    explain.add_argument("queries", nargs="+", type=Path, metavar="Q.xq", help="a file with one query")
    explain.add_argument("--dtd", action="append", default=[], metavar="NAME=FILE", help="the schema of a stream")
    explain.add_argument("--json", action="store_true", help="as JSON")
    explain.add_argument("--svg", type=Path, metavar="FILE", help="draw it there, too")
    explain.set_defaults(run=_explain)

    run = commands.add_parser("run", help="keep answering subscriptions over streams that grow")
    run.add_argument("site", type=Path, metavar="SITE.toml", help="the streams and subscriptions")
    run.add_argument("--once", action="store_true", help="to the end of what is there, then stop")
    run.add_argument("--dead-letter", type=Path, metavar="FILE", help="what was set aside, one JSON line each")
    run.add_argument("--late", type=Path, metavar="FILE", help="items too late for time windows, one JSON line each")
    run.set_defaults(run=_run)

    answer = commands.add_parser("answer", help="print the committed answer of one subscription")
    answer.add_argument("site", type=Path, metavar="SITE.toml")
    answer.add_argument("name", metavar="NAME", help="the subscription")
    answer.add_argument(
        "--timeline", action="store_true", help="one JSON line for each element that changed what was shown"
    )
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
    accent.set_defaults(run=_accent)

    generate = commands.add_parser("generate", help="make test data")
    kinds = generate.add_subparsers(required=True, metavar="KIND")
    photons = kinds.add_parser("photons", help="photons as the sharing paper's satellite sees them")
    photons.add_argument("--count", type=int, required=True, metavar="N")
    photons.add_argument("--seed", type=int, default=0, metavar="S")
    photons.add_argument("--out", type=Path, metavar="FILE", help="default: standard output")
    photons.set_defaults(run=_generate_photons)

    demo = commands.add_parser("demo", help="show the main job at work, for less than two minutes")
    demo.add_argument("--count", type=int, default=400_000, metavar="N", help="how many photons")
    demo.set_defaults(run=_demo)

    bench = commands.add_parser("bench", help="measure")
    bench.add_argument("name", choices=tuple(BENCHES), metavar="NAME", help="what to measure: %(choices)s")
    bench.add_argument("--quick", action="store_true", help="fewer rounds")
    bench.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    bench.set_defaults(run=_bench)
    return parser


# --- query ------------------------------------------------------------------------------------------------


def _query(options: argparse.Namespace) -> None:
    limits = Limits(item_bytes=options.max_item_bytes, depth=options.max_depth)
    inputs = _inputs(options, limits)
    files: list[Path] = options.queries
    names = [file.stem for file in files]
    if len(files) > 1 and options.out is None:
        raise UsageError("several queries need a place for their answers", hint="give one with --out DIR")
    if len(set(names)) < len(names):
        raise UsageError("two queries have the same name", hint="their answers would be written to one file")
    prepared = [prepare(file.stem, read_text(file), inputs, options.engine, label=str(file)) for file in files]
    for query in prepared:
        notes = (query.note,) if query.note and not options.timeline else ()
        for warning in (*query.warnings, *notes):
            print(f"anabranch: note: {warning}", file=sys.stderr)
    if options.timeline:
        shown = timelines(prepared, inputs, limits)
        _write_timelines(prepared, shown, options.out)
        _report(shown, options.dead_letter)
        return
    console = Console(stderr=True)
    with (
        console.status("starting") as status,
        answering(
            prepared,
            inputs,
            limits=limits,
            sharing=not options.no_sharing,
            policy=options.policy,
            on_progress=lambda now: status.update(f"{now.items:,} items read"),
        ) as run,
    ):
        status.stop()
        _write_answers(prepared, run, options.out)
        _report(run, options.dead_letter)
        if run.aborted:
            raise Aborted("; ".join(f"the query '{name}' has ended: {why}" for name, why in run.aborted.items()))


def _write_answers(prepared: Sequence[Prepared], run: Run, out: Path | None) -> None:
    if out is None:
        _print(run.answers[prepared[0].name])
        return
    out.mkdir(parents=True, exist_ok=True)
    for query in prepared:
        with (out / f"{query.name}.xml").open("w", encoding="utf-8", newline="") as file:
            for piece in run.answers[query.name]:
                file.write(piece)
            file.write("\n")


def _write_timelines(prepared: Sequence[Prepared], run: Run, out: Path | None) -> None:
    if out is None:
        for line in run.answers[prepared[0].name]:
            sys.stdout.write(line)
            sys.stdout.flush()
        return
    out.mkdir(parents=True, exist_ok=True)
    for query in prepared:
        with (out / f"{query.name}.jsonl").open("w", encoding="utf-8", newline="") as file:
            file.writelines(run.answers[query.name])


def _print(pieces: Iterable[str]) -> None:
    for piece in pieces:
        sys.stdout.write(piece)
    sys.stdout.write("\n")
    sys.stdout.flush()


def _report(run: Run, dead_letter: Path | None) -> None:
    dead = list(run.dead)
    if dead_letter is not None:
        _write_dead_letters(dead, dead_letter)
    where = f", see {dead_letter}" if dead_letter and dead else ""
    parts = [f"items: {run.items:,}", f"dead letters: {len(dead):,}{where}"]
    if run.late:
        parts.append(f"late items: {run.late:,}")
    print(f"anabranch: {', '.join(parts)}", file=sys.stderr)


def _write_dead_letters(dead: Iterable[DeadLetter], path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        for letter in dead:
            file.write(f"{letter.to_json()}\n")


def _inputs(options: argparse.Namespace, limits: Limits) -> Inputs:
    streams = _pairs(options.stream, "--stream")
    settings = {key: _pairs(getattr(options, key), f"--{key}") for key in ("dtd", "time", "slack", "origin", "format")}
    for key, given in settings.items():
        for name in given:
            if name not in streams:
                raise UsageError(f"--{key} names stream '{name}', which is not given", hint=f"add --stream {name}=FILE")
    documents = {name: Path(path) for name, path in _pairs(options.doc, "--doc").items()}
    for name in documents.keys() & streams.keys():
        raise UsageError(f"'{name}' is both a stream and a document")
    domains = _domains(options.domain, streams)
    sources = [_source(name, Path(path), settings, domains.get(name, {})) for name, path in streams.items()]
    return Inputs([looked_into(each, limits) for each in sources], documents)


def _domains(given: Sequence[str], streams: Mapping[str, str]) -> dict[str, dict[str, list[str]]]:
    """By stream and path, the values of `NAME=PATH:V,V`."""
    found: dict[str, dict[str, list[str]]] = {}
    for each in given:
        name, _, rest = each.partition("=")
        path, colon, values = rest.rpartition(":")
        if not colon:
            raise UsageError(f"--domain takes NAME=PATH:V,V, not '{each}'", hint="as in --domain sensors=s:1,2")
        if name not in streams:
            raise UsageError(f"--domain names stream '{name}', which is not given", hint=f"add --stream {name}=FILE")
        if path in found.setdefault(name, {}):
            raise UsageError(f"--domain is given twice for '{name}={path}'")
        found[name][path] = values.split(",")
    return found


@dataclass(frozen=True, slots=True)
class _Settings:
    """The settings of one stream, as texts."""

    dtd: str | None
    time: str | None
    slack: str | None
    origin: str | None
    format: str | None


def _source(name: str, path: Path, settings: dict[str, dict[str, str]], domains: Mapping[str, Sequence[str]]) -> Source:
    if not path.exists():
        raise UsageError(f"stream '{name}': there is no '{path}'")
    given = _Settings(**{key: values.get(name) for key, values in settings.items()})
    form = given.format or "auto"
    if form not in ("auto", "lines", "document", "json"):
        raise UsageError(f"--format {name}={form} is unknown", hint="use lines, document or json")
    return Source(
        name,
        path,
        form,  # type: ignore[arg-type]  # just checked
        Schema.read_dtd(Path(given.dtd)) if given.dtd else None,
        time=ItemPath.parse(given.time) if given.time else None,
        slack=_decimal(given.slack, "--slack"),
        origin=_decimal(given.origin, "--origin"),
        domains=domains_of(domains),
    )


def _decimal(text: str | None, option: str) -> Decimal:
    try:
        value = Decimal(text or "0")
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite():
        raise UsageError(f"{option} takes a number, not '{text}'")
    return value


def _pairs(given: Sequence[str], option: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name or not value:
            raise UsageError(f"{option} takes NAME=VALUE, not '{each}'")
        if name in pairs:
            raise UsageError(f"{option} is given twice for '{name}'")
        pairs[name] = value
    return pairs


def _explain(options: argparse.Namespace) -> None:
    schemas = {name: Schema.read_dtd(Path(file)) for name, file in _pairs(options.dtd, "--dtd").items()}
    queries = [_explained(file, schemas) for file in options.queries]
    if options.svg is not None:
        _write_picture(draw(queries), options.svg)
    if options.json:
        _print((json.dumps(explain_json(queries), indent=2, ensure_ascii=False),))
    else:
        _print(("\n".join(explain_text(queries)),))


def _write_picture(picture: str, file: Path) -> None:
    try:
        file.write_text(picture, encoding="utf-8", newline="")
    except OSError as error:
        raise UsageError(f"cannot write '{file}': {error.strerror}") from None


def _explained(file: Path, schemas: Mapping[str, Schema]) -> Explained:
    text = read_text(file)
    checked = check(parse(text, str(file)), text, name=str(file))
    try:
        return Explained(file.stem, derive_forest(checked.query, schemas, text))
    except Unsupported as error:
        return Explained(file.stem, None, error.message)


# --- the others -------------------------------------------------------------------------------------------


def _generate_photons(options: argparse.Namespace) -> None:
    if options.count < 0:
        raise UsageError(f"--count takes a number of photons, not {options.count}")
    if options.out is None:
        write_photons(sys.stdout, options.count, options.seed)
        return
    with options.out.open("w", encoding="utf-8", newline="") as file:
        write_photons(file, options.count, options.seed)


def _run(options: argparse.Namespace) -> None:
    from anabranch.running import run  # Spark is not loaded for the commands that do not need it

    run(
        options.site,
        once=options.once,
        dead_letters=options.dead_letter and options.dead_letter.absolute(),
        late_items=options.late and options.late.absolute(),
    )


def _answer(options: argparse.Namespace) -> None:
    from anabranch.running import committed

    if options.timeline:
        for line in committed(options.site, options.name, timeline=True):
            sys.stdout.write(line)
        sys.stdout.flush()
    else:
        _print(committed(options.site, options.name))


def _state(options: argparse.Namespace) -> None:
    from anabranch.looking import holdings, table

    _print(("\n".join(table(holdings(options.site))),))


def _history(options: argparse.Namespace) -> None:
    from anabranch.looking import history

    _print((str(history(options.site, options.stream)),))


def _accent(options: argparse.Namespace) -> None:
    from anabranch.looking import publish_accent

    for file in publish_accent(options.site, options.stream, options.text, options.partition):
        print(f"anabranch: published in {file}", file=sys.stderr)


def _demo(options: argparse.Namespace) -> None:
    from anabranch.demo import show

    show(options.count)


def _bench(options: argparse.Namespace) -> None:
    run_bench(options.name, quick=options.quick, json_file=options.json)
