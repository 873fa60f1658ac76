"""The commands and their arguments; what they do is imported when one is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from diag.cli.options import Live, Output, Scope, grouped

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Is this machine fit to serve or benchmark a large language model, and if not, why.",
)
Asked = Annotated[
    list[str] | None,
    typer.Argument(help="A bundle, a text file, or - for stdin; this host without one.", metavar="SOURCE"),
]
LaunchOption = Annotated[
    str | None, typer.Option(help='What is about to be started: "ENGINE serve MODEL …".', metavar="COMMAND")
]


def command() -> Any:
    """The whole command line as one callable command."""
    return typer.main.get_command(app)


@app.callback()
def diag(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
) -> None:
    """Hold the options that stand before every command."""
    if version:
        from diag import __version__

        typer.echo(f"diag {__version__}")
        raise typer.Exit(0)


@app.command("env-check")
@grouped
def env_check(source: Asked = None, *, output: Output, scope: Scope, live: Live, launch: LaunchOption = None) -> int:
    """Examine this host, a bundle or a pasted text, and name what is wrong."""
    from diag.cli import examine

    return examine.run("env-check", source or [], output=output, scope=scope, live=live, launch=launch)


@app.command("bundle")
@grouped
def bundle(
    out: Annotated[Path, typer.Option("--output", "-o", help="The archive to write (.tar.gz).", metavar="FILE")],
    *,
    scope: Scope,
    live: Live,
    no_redact: Annotated[bool, typer.Option("--no-redact", help="Leave names, addresses and secrets as read.")] = False,
) -> int:
    """Collect what this host tells into one redacted archive, for support to examine elsewhere."""
    from diag.cli import collect

    return collect.run(out, scope=scope, live=live, redacted=not no_redact)


@app.command("render")
@grouped
def render(
    document: Annotated[Path, typer.Argument(help="A report in JSON.", metavar="REPORT.json")], *, output: Output
) -> int:
    """Give a report another form."""
    from diag.cli import examine

    return examine.rerender(document, output)


checks = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="The rules: what there is, and what each is about."
)
app.add_typer(checks, name="checks")
RootOption = Annotated[
    list[Path] | None, typer.Option(help="A further folder with checks, kb, reports.", metavar="DIR")
]


@checks.command("list")
def checks_list(root: RootOption = None) -> int:
    """List every check, entry and matrix row."""
    from diag.cli import catalogue

    return catalogue.listed(root or [])


@checks.command("show")
def checks_show(id: Annotated[str, typer.Argument(metavar="ID")], root: RootOption = None) -> int:
    """Show one check: what it finds, its remedies, its sources."""
    from diag.cli import catalogue

    return catalogue.shown(id, root or [])


@app.command("selftest")
def selftest(root: RootOption = None) -> int:
    """Run the vectors of every rule: those that must fire and those that must stay silent."""
    from diag.cli import catalogue

    return catalogue.selftest(root or [])


@app.command("schema")
def schema(document: Annotated[str, typer.Argument(help="report or bundle", metavar="DOCUMENT")]) -> int:
    """Print the JSON Schema of a document."""
    from diag.cli import catalogue

    return catalogue.schema(document)
