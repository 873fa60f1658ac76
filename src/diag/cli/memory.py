"""The commands about a device's memory; what they do is imported when one is called."""

from __future__ import annotations

import click

from diag.cli.options import Bounds, Content, Output, grouped
from diag.cli.planning import Planned, Probed


@click.group("mem")
def memory() -> None:
    """Plan what a launch takes of a device's memory, and ask a device what it has."""


@memory.command("plan")
@grouped(planned=Planned, output=Output, content=Content, bounds=Bounds)
def mem_plan(planned: Planned, output: Output, content: Content, bounds: Bounds) -> int:
    """Say whether a launch will start, with what margin, how many tokens fit, and what would help.

    \b
    It needs no accelerator:
      diag mem plan --launch "ENGINE serve MODEL -tp 2" --config config.json --device H200 \\
          --engine ENGINE==0.19.0 --requests "256x(512+512)"
    Every figure tells whether it was read in the engine's source (src), fitted to printed start-ups (fit), is a
    hypothesis (hyp), or was printed by this engine (--log). Exit code: 1 where it will not start, 4 without a plan.
    """
    from diag.cli import mem_plan as command

    return command.run(planned, output=output, content=content, bounds=bounds)


@memory.command("probe")
@grouped(probed=Probed, output=Output, content=Content, bounds=Bounds)
def mem_probe(probed: Probed, output: Output, content: Content, bounds: Bounds) -> int:
    """Say what each device tells of its memory, what a context takes, and what can really be allocated.

    Each question is asked in a process that ends at once. With --allocate the largest block is found by halving, in
    plain allocations that are freed at once; the last 2 GiB or 5 % are never taken, and nothing is where others hold
    the device. --device cpu does the same with the host's memory, within ulimit -v and cgroups. Exit code: 4 where
    there is no accelerator.
    """
    from diag.cli import mem_probe as command

    return command.run(probed, output=output, content=content, bounds=bounds)
