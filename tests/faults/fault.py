"""What a fault is: what is laid out before diag is started, and what diag must come to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

BOUND = ("--timeout", "3")
STOPPED = "stopped: time bound reached"
CUT = "the time bound was reached before all of"
NONE_SEEN = "no accelerator was seen"
KEY = "home/.cache/diag/redact.key"


@dataclass(frozen=True)
class Fault:
    """One fault. In all texts `$BOX` is the folder of the run (`bin` of it is first on PATH), `$OWN` diag's own.

    `files` are written and `made` is run by a shell before; `before` is run by the shell that becomes diag, or waits
    for it where there is an `after`. `needs` are names of what a machine may lack, in `box.NEEDS`.
    """

    name: str
    files: Mapping[str, str] = field(default_factory=dict)
    made: str = ""
    before: str = ""
    after: str = ""
    program: tuple[str, ...] = ("-m", "diag")
    command: tuple[str, ...] = ("env-check", "--format", "json")
    options: tuple[str, ...] = ("--quick",)
    environment: Mapping[str, str | None] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    soak: bool = False
    first: bool = False
    """Whether diag never ran before, so that nothing of what it parses is kept yet."""

    exit: int = 4
    unavailable: Mapping[str, str] = field(default_factory=dict)
    """Keys of probes, each with how the reason begins why it told nothing."""
    finds: tuple[str, ...] = ()
    incomplete: str = NONE_SEEN
    answered: tuple[str, ...] = ()
    """Keys of probes whose texts were taken all the same."""
    stderr: str = ""
    """How the one line begins that is said on stderr, after `diag: `."""
    document: str = "out"
    """Where the report is; empty where there is none."""
    writes: tuple[str, ...] = (KEY,)
    outlives: str = ""
    """A word in the command line of the process that outlives the run."""
    seconds: float = 9.0
    mib: int = 400

    def told(self) -> str:
        """What comes of it, for a reader."""
        said = [f"`{what}`: {reason or 'told'}" for what, reason in self.unavailable.items()]
        said += [f"finding `{one}`" for one in self.finds]
        said += [f"stderr: {self.stderr}"] if self.stderr else []
        said += [f"not answered: {self.incomplete} …"] if self.incomplete not in ("", NONE_SEEN) else []
        said += [f"outlives the run: {self.outlives}"] if self.outlives else []
        written = [place for place in self.writes if place.startswith("cwd/")]
        said += [f"written: {place[4:]}" for place in written if not said]
        return "; ".join(said) or "the report, of what can still be asked"
