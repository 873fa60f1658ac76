"""The options of `diag mem plan` and `diag mem probe`: groups like those of `options`."""

from __future__ import annotations

from pathlib import Path

import click
from msgspec import Struct

from diag.cli.options import IMPORTS, OPTIONS, PYTHON
from diag.cli.values import place, told


class Planned(Struct, frozen=True, kw_only=True):
    """Which launch of which model is planned on which devices; see the help of `diag mem plan`."""

    launch: str
    config: Path
    device: str
    devices: int | None
    engine: str | None
    weights_bytes: str | None
    requests: str | None
    log: str | None


class Probed(Struct, frozen=True, kw_only=True):
    """Of which devices the memory is asked about, and how much is allocated; see the help of `diag mem probe`."""

    device: tuple[str, ...]
    allocate: bool
    limit: str | None
    imports: tuple[str, ...]
    python: str | None


OPTIONS[Probed] = (
    click.option(
        "--device",
        multiple=True,
        default=("auto",),
        callback=told,
        metavar="NAME",
        help="As torch calls it: cuda, cuda:1, xpu, npu, cpu (repeatable); without it every accelerator.",
    ),
    click.option("--allocate", is_flag=True, help="Find what can really be had, where nobody else holds the device."),
    click.option("--limit", callback=told, metavar="SIZE", help="Never allocate more than this: 2GiB."),
    IMPORTS,
    PYTHON,
)
OPTIONS[Planned] = (
    click.option(
        "--launch",
        required=True,
        callback=told,
        metavar="COMMAND",
        help='What is to be started: "ENGINE serve MODEL …".',
    ),
    click.option(
        "--config", required=True, callback=place, metavar="PATH", help="The model's config.json, or its folder."
    ),
    click.option(
        "--device", required=True, callback=told, metavar="NAME|SIZE", help="As its tool calls it (H200), or 79.19GiB."
    ),
    click.option(
        "--devices", type=click.IntRange(1, 2**16), help="How many there are; without it as many as are used."
    ),
    click.option(
        "--engine", callback=told, metavar="NAME==VERSION", help="The engine's release; without it the newest."
    ),
    click.option(
        "--weights-bytes", callback=told, metavar="SIZE", help="Of all weights (31GB), where the config does not tell."
    ),
    click.option(
        "--requests", callback=told, metavar="NxTOKENS", help="Served at once, and tokens of each: 256x(512+512)."
    ),
    click.option(
        "--log",
        callback=told,
        metavar="FILE",
        help="What this launch printed at a start: its figures replace estimates.",
    ),
)
