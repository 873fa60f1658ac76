"""Options that several commands share: groups that a command takes as one value each."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from msgspec import Struct

from diag.cli.values import bound, number, place, told
from diag.finding import LANGUAGES, FailOn

Command = Callable[..., int]
OPS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "sendrecv")
MODES = ("synchronised", "free-running", "graph")
SIZES = "1KiB:64MiB:4"
"""Sizes that are measured where neither others nor a model is given."""
BATCHES = "1,4,16,64,256"
"""Tokens in the decode steps of a model of which no others are asked for."""
C = TypeVar("C", bound=Command)


class Output(Struct, frozen=True, kw_only=True):
    """Where the report goes, and in what form."""

    form: str
    report: tuple[Path, ...]
    fail_on: FailOn
    quiet: bool


class Told(Output, frozen=True, kw_only=True):
    """The same of a command that tells, and judges only when asked to."""


class Beside(Output, frozen=True, kw_only=True):
    """The same of a command whose stdout and exit code are another program's: the report goes to stderr."""

    form: str = "terminal"
    report: tuple[Path, ...] = ()
    fail_on: FailOn = "never"
    quiet: bool = False


class Content(Struct, frozen=True, kw_only=True):
    """In which language the report is made, and whether it passes the exit gate."""

    lang: str = "en"
    no_redact: bool = False


class Bounds(Struct, frozen=True, kw_only=True):
    """Which rules judge, how long all may take, and, where a command has them, overlays of the matrix."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    root: tuple[Path, ...] = ()
    overlay: tuple[Path, ...] = ()
    timeout: float | None = None


class Live(Struct, frozen=True, kw_only=True):
    """How much of this host is looked at, which interpreter, and in which container."""

    quick: bool = False
    deep: bool = False
    python: str | None = None
    container: str | None = None


class Comm(Struct, frozen=True, kw_only=True):
    """What is measured between ranks, and what it is compared with; see the help of `diag comm`."""

    ranks: int | None
    device: str
    backend: str
    op: tuple[str, ...]
    sizes: str | None
    dtype: str
    mode: tuple[str, ...]
    budget: float
    patience: float
    isolate: bool
    model: Path | None
    batch: str | None
    weights_bytes: float | None
    step: tuple[str, ...]
    compare: Path | None
    imports: tuple[str, ...]
    ray: str | None
    python: str | None


class Device(Struct, frozen=True, kw_only=True):
    """Which devices are tested, and for how long; see the help of `diag device`."""

    device: tuple[str, ...]
    budget: float
    patience: float
    imports: tuple[str, ...]
    python: str | None


class Operators(Struct, frozen=True, kw_only=True):
    """Of which device the operators are looked at, and which; see the help of `diag ops`."""

    device: str
    part: str
    only: tuple[str, ...]
    batch: int
    vocabulary: int
    budget: float
    hot_fix: Path | None
    pid: int | None
    imports: tuple[str, ...]
    python: str | None


PYTHON = click.option(
    "--python",
    callback=told,
    metavar="PATH",
    help="The interpreter to examine, where torch and the engine live. Without it: diag's own if it has torch, "
    "else that of the active environment, else python3.",
)
IMPORTS = click.option(
    "--import", "imports", multiple=True, callback=told, metavar="MODULE", help="A plug-in of torch to import."
)
ROOT = click.option("--root", callback=place, multiple=True, metavar="DIR", help="A further root: checks, kb, reports.")
TIMEOUT = click.option(
    "--timeout", type=float, callback=bound, metavar="SECONDS", help="A bound on the whole run, in seconds."
)
LANG = click.option("--lang", type=click.Choice(LANGUAGES), default="en", help="Language of the words.")
LAUNCH = click.option("--launch", metavar="COMMAND", help='What is about to be started: "ENGINE serve MODEL …".')
EXPECT = click.option("--expect", metavar="COUNTxNAME", help='Accelerators that must be there: "8xH200".')
FROM = click.option(
    "--from", "source", callback=told, metavar="FILE", help="Judge what this text or bundle tells, - for stdin."
)
OVERLAY = click.option(
    "--overlay",
    callback=place,
    multiple=True,
    metavar="DIR",
    help="Rows of a site's own, in files like those of kb/matrix: they replace ours of the same id.",
)
NO_REDACT = click.option("--no-redact", is_flag=True, help="Leave names, addresses and secrets as they were read.")


STALL = click.option(
    "--stall",
    type=float,
    callback=bound,
    metavar="SECONDS",
    help="Say what COMMAND does when it wrote nothing for so long and does not wait for its terminal.",
)
FORMAT = click.option(
    "--format", "form", default="terminal", metavar="FORMAT", help="terminal, json, markdown, issue or nccl-tests."
)
REPORT = click.option(
    "--report", callback=place, multiple=True, metavar="PATH", help="Write the report here, too (.json, .md)."
)


def _output(fail_on: FailOn) -> tuple[Callable[[Any], Any], ...]:
    return (
        FORMAT,
        REPORT,
        click.option(
            "--fail-on",
            type=click.Choice(["error", "warning", "never"]),
            default=fail_on,
            help="Severity from which the exit code is 1.",
        ),
        click.option("--quiet", is_flag=True, help="Write nothing to stdout; the exit code says it."),
    )


OPTIONS: dict[type[Struct], tuple[Callable[[Any], Any], ...]] = {
    Output: _output("error"),
    Told: _output("never"),
    Beside: (FORMAT, REPORT, click.option("--quiet", is_flag=True, help="Write nothing of diag's own to stderr.")),
    Content: (
        click.option("--lang", type=click.Choice(LANGUAGES), default="en", help="Language of the report."),
        NO_REDACT,
    ),
    Bounds: (
        click.option(
            "--select",
            callback=told,
            multiple=True,
            metavar="ID-PREFIX",
            help="Only checks whose id begins so (repeatable).",
        ),
        click.option(
            "--ignore",
            callback=told,
            multiple=True,
            metavar="ID-PREFIX",
            help="No checks whose id begins so (repeatable).",
        ),
        ROOT,
        TIMEOUT,
    ),
    Comm: (
        click.option("--ranks", type=click.IntRange(1, 65536), help="How many; without it one for each device."),
        click.option(
            "--device", default="auto", show_default=True, callback=told, help="As torch calls it: cuda, xpu, npu, cpu."
        ),
        click.option(
            "--backend",
            default="auto",
            show_default=True,
            callback=told,
            help="gloo, nccl, xccl, hccl, or a plug-in's.",
        ),
        click.option(
            "--op",
            type=click.Choice(OPS),
            multiple=True,
            default=OPS[:1],
            show_default=True,
            help="The operation (repeatable).",
        ),
        click.option(
            "--sizes",
            show_default=SIZES,
            callback=told,
            help="FROM:TO[:FACTOR], or several with commas.",
        ),
        click.option(
            "--dtype",
            type=click.Choice(["bf16", "fp16", "fp32"]),
            default="bf16",
            show_default=True,
            help="Of the elements.",
        ),
        click.option(
            "--mode", type=click.Choice(MODES), multiple=True, default=MODES, help="How calls are timed (repeatable)."
        ),
        click.option(
            "--budget", type=float, callback=bound, default=20.0, show_default=True, help="Seconds of measuring."
        ),
        click.option(
            "--patience",
            type=float,
            callback=bound,
            default=30.0,
            show_default=True,
            help="Seconds for which nothing may move; four times as many before the first call.",
        ),
        click.option("--isolate", is_flag=True, help="Find the rank, link or host that is to blame, too."),
        click.option("--model", callback=place, metavar="FILE|DIR", help="config.json: the sizes that a decode sends."),
        click.option(
            "--batch",
            show_default=BATCHES,
            callback=told,
            help="With --model: tokens in a step, beside those of --step.",
        ),
        click.option(
            "--weights-bytes",
            type=click.FloatRange(1, 2**60),
            callback=number,
            metavar="N",
            help="With --model: the bytes of weights that a step reads, if not all of a dense model in its own type.",
        ),
        click.option(
            "--step",
            multiple=True,
            callback=told,
            metavar="TOKENS:MS",
            help="With --model: a step that was measured, 256:52.8 (repeatable).",
        ),
        click.option("--compare", callback=place, metavar="FILE", help="An earlier report, or a text with its table."),
        IMPORTS,
        click.option(
            "--ray",
            envvar="RAY_ADDRESS",
            callback=told,
            metavar="ADDRESS",
            help="Let this Ray cluster place the ranks.",
        ),
        PYTHON,
    ),
    Device: (
        click.option(
            "--device",
            multiple=True,
            default=("auto",),
            callback=told,
            metavar="NAME",
            help="As torch calls it: cuda, cuda:1, xpu, npu, cpu (repeatable); without it every accelerator.",
        ),
        click.option("--budget", type=float, callback=bound, default=6.0, help="Seconds of measuring for each."),
        click.option(
            "--patience", type=float, callback=bound, default=60.0, help="Seconds for which nothing may move."
        ),
        IMPORTS,
        PYTHON,
    ),
    Operators: (
        click.option(
            "--device", default="auto", show_default=True, callback=told, help="As torch calls it: cuda, xpu, npu."
        ),
        click.option(
            "--set",
            "part",
            type=click.Choice(["sampler", "decode", "all"]),
            default="all",
            show_default=True,
            help="The steps of engines that are run.",
        ),
        click.option(
            "--only",
            multiple=True,
            callback=told,
            metavar="OPERATOR,…",
            help="These by themselves: sort, or one overload: aten::sort.values_stable (repeatable).",
        ),
        click.option(
            "--batch", type=click.IntRange(1, 65536), default=256, show_default=True, help="Requests of a step."
        ),
        click.option(
            "--vocabulary",
            type=click.IntRange(16, 2**20),
            default=152_064,
            show_default=True,
            help="Entries of each request's logits.",
        ),
        click.option(
            "--budget",
            type=float,
            callback=bound,
            default=10.0,
            show_default=True,
            help="Seconds of timing, of all steps and of all launches.",
        ),
        click.option(
            "--pid",
            type=click.IntRange(1, 2**22),
            help="Run nothing: look at this server and its workers for some seconds (perf and py-spy where they are).",
        ),
        click.option(
            "--hot-fix",
            callback=place,
            metavar="DIR",
            help="Look at nothing: write a kernel of exponential_ for the device there, for servers to load.",
        ),
        IMPORTS,
        PYTHON,
    ),
    Live: (
        click.option("--quick", is_flag=True, help="No torch import; no device is touched."),
        click.option("--deep", is_flag=True, help="All measurements in full."),
        PYTHON,
        click.option(
            "--container", callback=told, metavar="ID", help="Examine inside this running container of the host."
        ),
    ),
}


def grouped(**groups: type[Struct]) -> Callable[[C], C]:
    """Give a command the options of each group, and each group as one argument of this name."""

    def decorate(function: C) -> C:
        @functools.wraps(function)
        def command(**given: Any) -> int:
            taken = {
                name: group(**{field: given.pop(field) for field in group.__struct_fields__ if field in given})
                for name, group in groups.items()
            }
            return function(**given, **taken)

        for option in reversed([one for group in groups.values() for one in OPTIONS[group]]):
            command = option(command)
        return command  # type: ignore[return-value]

    return decorate
