"""The variables that a launch command sets for its engine, as settings of the environment.

They are told after those of the machine, which they outdo. What the shell or a script adds to them it cannot know.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from diag.api import Fact, Facts, LaunchArguments, Setting, deduction, program, replace

CHILD = str(Path(__file__).resolve().parent / "_environment.py")


@deduction(needs=(LaunchArguments,), tells=(Setting,))
def launched(facts: Facts) -> Iterator[Fact]:
    """What each command sets, as far as it may be told."""
    for launch in facts.all(LaunchArguments):
        for name, value in launch.environment:
            shown = program(CHILD)["told"](name, value)
            if shown is not None and "$" not in shown:
                quote = f"{name}={shown} of the launch command"
                yield Setting(origin=replace(launch.origin, quote=quote), name=name, value=shown)
