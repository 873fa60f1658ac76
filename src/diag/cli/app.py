"""The commands and their arguments; what they do is imported when one is called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from diag import __version__
from diag.cli.memory import memory
from diag.cli.options import (
    EXPECT,
    FROM,
    LANG,
    LAUNCH,
    NO_REDACT,
    OVERLAY,
    ROOT,
    STALL,
    TIMEOUT,
    Beside,
    Bounds,
    Comm,
    Content,
    Device,
    Live,
    Operators,
    Output,
    Told,
    grouped,
)
from diag.cli.values import place, told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diag.cli.examine import Question


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="diag", message="%(prog)s %(version)s")
def app() -> None:
    """Is this machine fit to serve or benchmark a large language model, and if not, why."""


@app.command("env-check")
@click.argument("source", nargs=-1, callback=told)
@grouped(output=Output, content=Content, bounds=Bounds, live=Live)
@LAUNCH
@EXPECT
def env_check(
    source: tuple[str, ...], live: Live, bounds: Bounds, output: Output, content: Content, **given: Any
) -> int:
    """Examine this host, or each SOURCE (a bundle, a text file, - for stdin), and name what is wrong.

    Each SOURCE is about a machine of its own: cat texts of one machine into one.
    """
    from diag.cli import examine

    question = asked(source, live, given)
    return examine.run(question, output=output, content=content, bounds=bounds, live=live)


def asked(source: tuple[str, ...], live: Live, given: dict[str, Any]) -> Question:
    """The question that sources and options make; what is asked about is taken out of the options given."""
    from diag.cli.examine import Question

    if source and live != Live():
        raise click.UsageError("--quick, --deep, --python and --container are about this host, not about a SOURCE")
    texts = {key: text for key in ("launch", "expect") if (text := given.pop(key)) is not None}
    return Question(command="env-check", sources=source, texts=texts)


@app.command()
@click.argument("source", nargs=-1, required=True, callback=told, metavar="FILE... | -")
@grouped(output=Told, content=Content, bounds=Bounds)
def explain(source: tuple[str, ...], bounds: Bounds, output: Output, content: Content) -> int:
    """Name the cause and the fix of what a log, a traceback, a pasted issue or an archive of logs shows.

    Exit code: 0, or 4 where something failed whose cause no rule names; 1 only with --fail-on.
    """
    from diag.cli import examine

    question = examine.Question(command=examine.EXPLAIN, sources=source)
    return examine.run(question, output=output, content=content, bounds=bounds, live=Live())


@app.command(context_settings={"allow_interspersed_args": False})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="[--] COMMAND...")
@STALL
@grouped(output=Beside, content=Content, bounds=Bounds)
def run(command: tuple[str, ...], stall: float | None, output: Beside, content: Content, bounds: Bounds) -> int:
    """Run COMMAND as if it stood alone, and explain it when it fails or stalls.

    Its input, output, signals and exit code stay its own; the explanation follows on stderr, and --report is written
    only then. --timeout bounds what diag adds: diag never ends COMMAND.

    Exit code: COMMAND's; 127 where it cannot be found, 126 where it cannot be executed.
    """
    from diag.cli import running

    return running.run(command, running.Asked(output, content, bounds, stall))


@app.command()
@grouped(comm=Comm, output=Output, content=Content, bounds=Bounds)
def comm(comm: Comm, output: Output, content: Content, bounds: Bounds) -> int:
    """Measure collectives between the devices of this host, verify them, and judge the numbers.

    \b
    Under torchrun, srun or mpirun this process is a rank of that world, and rank 0 reports:
      torchrun --nproc-per-node 8 --no-python diag comm
      mpirun -np 16 diag comm
    Without an accelerator it measures gloo between two processes. GB/s are 10^9 bytes a second,
    busbw as nccl-tests has it; --format nccl-tests prints its table. --isolate also measures each
    rank alone, who comes late, and pairs, and names the rank, link, interface or host that is slow.
    """
    from diag.cli import comm as command

    return command.run(comm, output=output, content=content, bounds=bounds)


@app.command()
@grouped(device=Device, output=Output, content=Content, bounds=Bounds)
def device(device: Device, output: Output, content: Content, bounds: Bounds) -> int:
    """Test each device of this host: numerics, memory, links to the host, matrix products.

    Each is asked in a process of its own, so one that hangs or crashes is named. Results are verified against the
    host's, and the numbers compared with what is known of the model and with the other devices. GB/s are 10^9 bytes a
    second. Exit code: 4 where there is no accelerator; --device cpu measures the host.
    """
    from diag.cli import device as command

    return command.run(device, output=output, content=content, bounds=bounds)


@app.command()
@grouped(operators=Operators, output=Output, content=Content, bounds=Bounds)
def ops(operators: Operators, output: Output, content: Content, bounds: Bounds) -> int:
    """Find operators of torch that run on the CPU instead of the accelerator, and what they cost engines.

    Three detectors in processes of their own: the table of torch's dispatcher, which executes nothing; the steps of a
    sampler and a decoder under torch's profiler, which sees tensors go to the host; and how the launch of the operators
    that took longest grows with their tensors, which also sees what passes by torch. --import MODULE loads a plug-in
    that torch does not load by itself. Exit code: 4 where there is no accelerator.
    """
    from diag.cli import ops as command

    return command.run(operators, output=output, content=content, bounds=bounds)


app.add_command(memory)


@app.command()
@click.option("-o", "--output", "out", callback=place, required=True, metavar="FILE", help="The archive (.tar.gz).")
@grouped(bounds=Bounds, live=Live)
@NO_REDACT
def bundle(out: Path, bounds: Bounds, live: Live, no_redact: bool) -> int:
    """Collect what this host tells into one redacted archive, for support to examine elsewhere."""
    from diag.cli import collect

    return collect.run(out, bounds=bounds, live=live, redacted=not no_redact)


@app.command()
@click.argument("document", callback=place, metavar="REPORT.json")
@grouped(output=Output)
def render(document: Path, output: Output) -> int:
    """Give a report in JSON another form."""
    from diag.cli import emit

    return emit.rerender(document, output)


@app.group()
def matrix() -> None:
    """Judge a set of versions, find the way to one that works, show what is known."""


@matrix.command("check")
@click.argument("component", nargs=-1, callback=told)
@FROM
@OVERLAY
@LAUNCH
@grouped(output=Output, content=Content, bounds=Bounds, live=Live)
def matrix_check(
    component: tuple[str, ...], output: Output, content: Content, bounds: Bounds, live: Live, **given: Any
) -> int:
    """Judge the versions of this host, of a text (--from), or a set named by COMPONENTs.

    \b
    A COMPONENT is a distribution (NAME==VERSION) or a part:
      gpu=8xH200 driver=570.124.06 python=3.12 glibc=2.31
      cuda=12.8 (rocm=, xpu=: what torch is built for)  nvcc=12.8 (the local toolkit)
      cuda-compat=13.0 dtk=26.04 cann=8.5.1 xre=5.0 maca=3.5 rocm-toolkit=7.2.1
      ranks=8 (tensor-parallel size) model=Qwen/Qwen3-8B
    Verdicts: known-bad, verified, reported, metadata-conflict, allowed-by-metadata, unknown.
    Exit code: 1 where a reason at or above --fail-on stands behind a bad verdict, 4 where no
    versions were told, else 0, also for unknown.
    """
    from diag.cli import matrix

    wish = matrix.Wish(components=component, **given)
    return matrix.check(wish, output=output, content=content, bounds=bounds, live=live)


@matrix.command("suggest")
@click.argument("component", nargs=-1, callback=told)
@click.option(
    "--want",
    multiple=True,
    callback=told,
    metavar="WISH",
    help='What must be in the set: NAME, "NAME>=1.2", model=NAME.',
)
@FROM
@OVERLAY
@LAUNCH
@grouped(output=Output, content=Content, bounds=Bounds, live=Live)
def matrix_suggest(
    component: tuple[str, ...], output: Output, content: Content, bounds: Bounds, live: Live, **given: Any
) -> int:
    """Find the nearest sets that work, from COMPONENTs, a text (--from) or this host, and the commands to get there."""
    from diag.cli import matrix, suggest

    wish = matrix.Wish(components=component, seeks=True, **given)
    return suggest.suggest(wish, output=output, content=content, bounds=bounds, live=live)


@matrix.command("show")
@click.argument("component", default="")
@ROOT
@OVERLAY
def matrix_show(component: str, root: tuple[Path, ...], overlay: tuple[Path, ...]) -> int:
    """Show what is known of COMPONENT: a distribution, a release (NAME==VERSION), a device (gpu=H100) or a vendor."""
    from diag.cli import show

    return show.show(component, Bounds(root=root, overlay=overlay))


@app.group()
def checks() -> None:
    """List the rules, and show what each is about."""


@checks.command("list")
@ROOT
def checks_list(root: tuple[Path, ...]) -> int:
    """List every check, entry and matrix row."""
    from diag.cli import catalogue

    return catalogue.listed(root)


@checks.command("show")
@click.argument("id", metavar="ID")
@ROOT
def checks_show(id: str, root: tuple[Path, ...]) -> int:
    """Show one rule: what it finds, its remedies, its sources."""
    from diag.cli import catalogue

    return catalogue.shown(id, root)


@checks.command("why")
@click.argument("id", metavar="ID")
@click.argument("source", nargs=-1, callback=told)
@grouped(content=Content, live=Live)
@LAUNCH
@EXPECT
@ROOT
@TIMEOUT
def checks_why(id: str, source: tuple[str, ...], live: Live, content: Content, **given: Any) -> int:
    """Say why the rule ID fired, stayed silent or was skipped on this host, or on each SOURCE."""
    from diag.cli import why

    question = asked(source, live, given)
    return why.run(id, question, content=content, bounds=Bounds(**given), live=live)


@checks.command("new")
@click.argument("id", metavar="ID")
@click.option("--root", callback=place, metavar="DIR", help="The root to write into; without it the user's own.")
def checks_new(id: str, root: Path | None) -> int:
    """Write the skeleton of a check: one file, to be filled with vectors, wording and the question."""
    from diag.cli import skeleton

    return skeleton.write(id, root)


@app.group("kb")
def knowledge() -> None:
    """List, search and show the entries of the knowledge base; write a new one, and see whether it holds."""


@knowledge.command("list")
@click.argument("component", default="")
@LANG
@ROOT
def kb_list(component: str, lang: str, root: tuple[Path, ...]) -> int:
    """List the entries, or those of COMPONENT (memory, network, python, …)."""
    from diag.cli import knowledge

    return knowledge.listed(component, lang, root)


@knowledge.command("search")
@click.argument("word", nargs=-1, required=True, callback=told)
@LANG
@ROOT
def kb_search(word: tuple[str, ...], lang: str, root: tuple[Path, ...]) -> int:
    """List the entries that hold every WORD, in their title, symptom, cause or fix."""
    from diag.cli import knowledge

    return knowledge.searched(word, lang, root)


@knowledge.command("show")
@click.argument("id", metavar="ID")
@LANG
@ROOT
def kb_show(id: str, lang: str, root: tuple[Path, ...]) -> int:
    """Show one entry: cause, symptom, fix, sources."""
    from diag.cli import knowledge

    return knowledge.shown(id, lang, root)


@knowledge.command("export")
@click.argument("component", default="")
@ROOT
def kb_export(component: str, root: tuple[Path, ...]) -> int:
    """Print the entries, or those of COMPONENT, as one JSON document with both languages and all vectors."""
    from diag.cli import export

    return export.run(component, root)


@knowledge.command("new")
@click.argument("id", metavar="ID")
@click.option("--root", callback=place, metavar="DIR", help="The root to write into; without it the user's own.")
def kb_new(id: str, root: Path | None) -> int:
    """Write the skeleton of an entry: one file, to be filled with a symptom, its cause, its fix and vectors."""
    from diag.cli import knowledge

    return knowledge.made(id, root)


@knowledge.command("lint")
@click.argument("file", nargs=-1, callback=place)
@ROOT
def kb_lint(file: tuple[Path, ...], root: tuple[Path, ...]) -> int:
    """Say what is wrong with each entry FILE, or with all entries: schema, expressions, vectors."""
    from diag.cli import knowledge

    return knowledge.linted(file, root)


@app.command()
@ROOT
def selftest(root: tuple[Path, ...]) -> int:
    """Run the vectors of every rule: those that must fire and those that must stay silent."""
    from diag.cli import catalogue

    return catalogue.selftest(root)


@app.command()
@click.argument("document", metavar="DOCUMENT")
def schema(document: str) -> int:
    """Print the JSON Schema of a DOCUMENT: report, bundle, matrix or kb."""
    from diag.cli import catalogue

    return catalogue.schema(document)
