"""Worlds of ranks that are not there: they answer the steps of an isolation as a machine with a fault would."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from diag.estimate.isolation import Known, add, asked, inside

ALPHA = {True: 8e-6, False: 25e-6}
BANDWIDTH = {True: 200e9, False: 40e9}
CALL = 2e-3

Slow = Callable[[int, int], float]


@dataclass
class Machine:
    """Ranks with a fault: how many times slower a pair is, and which ranks are late or slow by themselves.

    `noise` is the chance that a measurement is disturbed, which makes it up to four times slower.
    """

    hosts: tuple[str, ...]
    slow: Slow = lambda source, target: 1.0
    together: frozenset[str] = frozenset()
    late: frozenset[int] = frozenset()
    device: frozenset[int] = frozenset()
    noise: float = 0.02
    seed: int = 0
    counted: int = 0
    chance: random.Random = field(default_factory=random.Random)

    def __post_init__(self) -> None:
        self.chance.seed(self.seed)
        self.known = Known(self.hosts, 32 * 2**20)

    def isolated(self) -> list[dict[str, Any]]:
        """All steps that are asked, with their answers."""
        taken: list[dict[str, Any]] = []
        cells: dict[tuple[int, int], Any] = {}
        while step := asked(self.known, taken, cells):
            answer = {"self": self.alone, "late": self.chain, "pairs": self.pairs, "groups": self.groups}
            taken.append({**step, **answer[step["kind"]](step)})
            add(cells, taken[-1])
        return taken

    def disturbed(self, seconds: float) -> float:
        jitter = self.chance.uniform(1.0, 1.15)
        return seconds * jitter * (self.chance.uniform(1.5, 4.0) if self.chance.random() < self.noise else 1.0)

    def alone(self, step: dict[str, Any]) -> dict[str, Any]:
        return {"seconds": [self.disturbed(3e-4 if rank in self.device else 1e-4) for rank in range(len(self.hosts))]}

    def chain(self, step: dict[str, Any]) -> dict[str, Any]:
        late = self.late | self.device
        calls = [0.7 * CALL if rank in late else CALL for rank in range(len(self.hosts))]
        return {"seconds": [call * self.chance.uniform(1.0, 1.08) for call in calls]}

    def pairs(self, step: dict[str, Any]) -> dict[str, Any]:
        self.counted += sum(map(len, step["rounds"]))
        return {"seconds": [[self.pair(*pair, step["bytes"]) for pair in pairs] for pairs in step["rounds"]]}

    def pair(self, source: int, target: int, sizes: list[int]) -> list[float]:
        near = inside(self.known, (source, target))
        factor = self.slow(source, target)
        return [self.disturbed(2 * ALPHA[near] + factor * size / BANDWIDTH[near]) for size in sizes]

    def groups(self, step: dict[str, Any]) -> dict[str, Any]:
        self.counted += len(step["groups"])
        hosts = [{self.hosts[rank] for rank in group} for group in step["groups"]]
        bad = [len(self.together) > 0 and self.together <= group for group in hosts]
        return {"seconds": [CALL * self.chance.uniform(1, 1.1) * (9 if one else 1) for one in bad]}
