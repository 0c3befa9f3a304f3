"""The commands to try things out with: `generate` test data, the `demo`, and `bench`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from anabranch.bench import BENCHES
from anabranch.bench import run as run_bench
from anabranch.cli.arguments import Commands, port
from anabranch.errors import UsageError
from anabranch.service.settings import DEFAULT_PORT
from anabranch.stream.photons import write_photons


def declare(commands: Commands) -> None:
    """Declare the commands and their arguments."""
    generate = commands.add_parser("generate", help="make test data")
    kinds = generate.add_subparsers(required=True, metavar="KIND")
    photons = kinds.add_parser("photons", help="photons as the sharing paper's satellite sees them")
    photons.add_argument("--count", type=int, required=True, metavar="N")
    photons.add_argument("--seed", type=int, default=0, metavar="S")
    photons.add_argument("--out", type=Path, metavar="FILE", help="default: standard output")
    photons.set_defaults(run=_generate_photons)

    demo = commands.add_parser("demo", help="show the main job at work, for less than two minutes, and then the page")
    demo.add_argument("--count", type=int, default=400_000, metavar="N", help="how many photons")
    demo.add_argument("--port", type=port, default=DEFAULT_PORT, help="where the page is; default: %(default)s")
    demo.add_argument("--no-page", action="store_true", help="end before the page")
    demo.set_defaults(run=_demo)

    bench = commands.add_parser("bench", help="measure")
    bench.add_argument("name", choices=tuple(BENCHES), metavar="NAME", help="what to measure: %(choices)s")
    bench.add_argument("--quick", action="store_true", help="fewer rounds")
    bench.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    bench.add_argument("--svg", type=Path, metavar="FILE", help="draw the figures there; not all can be drawn")
    bench.add_argument("--markdown", type=Path, metavar="FILE", help="write the figures as tables; not all can be")
    bench.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="PART",
        help="measure just this, as in 'plain' or 'plain.json' of forms, 'readings' of sharing; may be given again",
    )
    bench.set_defaults(run=_bench)


def _generate_photons(options: argparse.Namespace) -> None:
    if options.count < 0:
        raise UsageError(f"--count takes a number of photons, not {options.count}")
    if options.out is None:
        write_photons(sys.stdout, options.count, options.seed)
        return
    with options.out.open("w", encoding="utf-8", newline="") as file:
        write_photons(file, options.count, options.seed)


def _demo(options: argparse.Namespace) -> None:
    from anabranch.demo import show

    show(options.count, port=None if options.no_page else options.port)


def _bench(options: argparse.Namespace) -> None:
    run_bench(
        options.name,
        quick=options.quick,
        json_file=options.json,
        svg_file=options.svg,
        markdown_file=options.markdown,
        only=tuple(options.only),
    )
