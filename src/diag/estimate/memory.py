"""A device's memory as one rank of an engine divides it: what it takes for itself, what that is spent on, what is over.

Each term says where its figure comes from: read in the engine's source (`src`), fitted to printed start-ups (`fit`), a
hypothesis (`hyp`), printed by this very engine (`printed`), computed from a checkpoint or a config, or given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from diag.estimate.pool import Shares, Widths

if TYPE_CHECKING:
    from diag.estimate.model import Model
    from diag.estimate.pool import Pool
    from diag.estimate.slots import Slots

GIB = 2**30
WHOLE, USUAL = Shares(), Widths()
Origin = Literal["src", "fit", "hyp", "printed", "given", "checkpoint", "config"]
Outcome = Literal[
    "starts", "tight", "refused-free", "refused-room", "refused-length", "refused-states", "oom-at-runtime"
]
"""What comes of a launch."""
GRAPHS_CAP = 512
"""The largest batch of which a graph is captured where nothing else is asked."""
UNEXPLAINED = "unexplained"
KEPT, ALLOWED = 0.15, 0.02
"""GiB that stay reserved in pieces that nothing fits into, and the part of the peak that does."""


@dataclass(frozen=True)
class Launch:
    """What an engine is started with: tokens and requests of its largest step, the longest request, its KV cache.

    `fraction` is the part of the memory that it may take, None where the engine decides. `width` are bytes of a number
    of the model, `kept` those of what is kept of it. `captured` is the largest batch that graphs are captured of.
    `cached_prefixes`: what requests have in common is kept for later ones. `slots`: states that are kept, if told.
    `engines` are started beside each other, each on devices of its own. `pool_bytes` are asked for in place of a part.
    `drafted`: a model of its own drafts, of which nothing is told.
    """

    tokens: int
    requests: int
    length: int
    fraction: float | None = None
    shares: Shares = WHOLE
    width: int = 2
    kept: Widths = USUAL
    eager: bool = False
    cached_prefixes: bool = False
    captured: int | None = None
    slots: int | None = None
    engines: int = 1
    pool_bytes: float | None = None
    drafted: bool = False

    @property
    def largest_graph(self) -> int:
        """The largest batch of which a graph is captured; 0 where none is."""
        if self.eager:
            return 0
        return min(2 * self.requests, GRAPHS_CAP) if self.captured is None else self.captured


@dataclass(frozen=True)
class Term:
    """A part of the memory: bytes on one rank, where the figure comes from, and how many bytes it may be off."""

    name: str
    bytes: float
    origin: Origin
    off: float = 0.0


@dataclass(frozen=True)
class Device:
    """A device of so many bytes, and those that are free before the engine starts, where they are told.

    `fitted`: it is of the kind on which the constants were fitted.
    """

    total: float
    free: float | None = None
    fitted: bool = True


@dataclass(frozen=True)
class Division:
    """The memory of a device in bytes: `asked` for the engine's own, what that goes to, and what is taken beside it.

    `fraction` is what that is of what the engine takes it of: of the whole, or of what was free.
    """

    total: float
    asked: float
    inside: tuple[Term, ...]
    outside: tuple[Term, ...]
    free: float
    fraction: float
    pool: Pool | Slots | None = None

    @property
    def room(self) -> float:
        """What is left for the KV cache and states; negative where nothing is."""
        return self.asked - sum(one.bytes for one in self.inside)

    @property
    def spare(self) -> float:
        """What nothing takes while it serves; negative where more is taken than there is."""
        return self.total - self.asked - sum(one.bytes for one in self.outside)

    @property
    def terms(self) -> tuple[Term, ...]:
        """All of them."""
        return (*self.inside, *self.outside)


class Rules(Protocol):
    """What a release of an engine does with memory."""

    def divide(self, case: Case) -> Division:
        """The memory of a rank, without its pool."""

    def pool(self, case: Case, room: int) -> Pool | Slots:
        """What so many bytes are cut into."""

    def refused(self, case: Case, told: Division) -> Outcome | None:
        """Why it does not start with this division; None where it does."""

    def fits(self, case: Case) -> tuple[str, ...]:
        """What of this case lies outside of what the constants were fitted on."""


@dataclass(frozen=True)
class Case:
    """A launch of a model on a device. `weights` are those of a rank, by how the model is divided.

    `corrections` are bytes by which what was printed differed from what was estimated for the launch that printed it,
    by the name of the term; `printed` is that launch.
    """

    model: Model
    launch: Launch
    device: Device
    rules: Rules
    weights: Callable[[Shares], Term]
    corrections: Mapping[str, float] = field(default_factory=dict)
    printed: Launch | None = None

    def term(self, name: str, value: float, origin: Origin, off: float = 0.0) -> Term:
        """A term, corrected by what was printed of it; with the same launch it is what was printed."""
        if name not in self.corrections:
            return Term(name, value, origin, off)
        value = max(value + self.corrections[name], 0.0)
        return Term(name, value, "printed") if self.launch == self.printed else Term(name, value, origin, off / 2)

    def weighed(self) -> Term:
        """The weights of a rank, as printed where they were."""
        one = self.weights(self.launch.shares)
        return self.term(one.name, one.bytes, one.origin, one.off)

    def unexplained(self) -> tuple[Term, ...]:
        """What is left of a printed pool that no term explains; less than nothing where the terms are too much."""
        left = self.corrections.get(UNEXPLAINED, 0.0)
        return (Term(UNEXPLAINED, left, "printed", 0.0 if self.launch == self.printed else abs(left)),) if left else ()


def fragments(work: float) -> Term:
    """What an allocator keeps in pieces that are too small, beside a peak of so many bytes."""
    value = KEPT * GIB + ALLOWED * work
    return Term("fragmentation", value, "fit", value)
