"""What a fault is: what is laid out before diag is started, and what diag must come to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

BOUND = ("--timeout", "2")
STOPPED = "stopped: time bound reached"
CUT = "the time bound was reached before all of"
NONE_SEEN = "no accelerator was seen"


@dataclass(frozen=True)
class Fault:
    """One fault. In all texts `$BOX` is the folder of the run (`bin` of it is first on PATH), `$PYTHON` diag's own.

    `files` are written and `made` is run by a shell before; `before` is run by the shell that becomes diag, `after`
    by the one that was waiting for it. `unavailable` are names of `Unavailable` with their reasons, `finds` the ids
    of findings, `incomplete` what the report says was not answered; `stderr` is the one line of exit code 2.
    """

    name: str
    files: Mapping[str, str] = field(default_factory=dict)
    made: str = ""
    before: str = ""
    after: str = ""
    options: tuple[str, ...] = ("--quick",)
    environment: Mapping[str, str | None] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    slow: bool = False
    exit: int = 4
    unavailable: Mapping[str, str] = field(default_factory=dict)
    finds: tuple[str, ...] = ()
    incomplete: str = NONE_SEEN
    stderr: str = ""
    writes: tuple[str, ...] = ("home/.cache/diag/redact.key",)
    document: str = "out"
    outlives: str = ""
    seconds: float = 9.0
    mib: int = 400

    def told(self) -> str:
        """What diag says of it, for the table."""
        said = [f"`{what}`: {reason}" for what, reason in self.unavailable.items()]
        said += [f"finding `{one}`" for one in self.finds]
        said += [f"stderr: {self.stderr}"] if self.stderr else []
        said += [f"not answered: {self.incomplete} …"] if self.incomplete not in ("", NONE_SEEN) else []
        return "; ".join(said) or "what can still be asked"
