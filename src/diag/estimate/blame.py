"""Who is to blame: what the steps of an isolation (`isolation.py`) say, with the threshold from which on they say it.

What explains most is named alone: of a slow device also its late calls and slow pairs are a consequence, of a host its
ranks. Where slow pairs make no picture, nobody is accused.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from diag.estimate.isolation import (
    MARGIN,
    MORE,
    RATIO,
    RATIOS,
    SMALL,
    VOTES,
    Cell,
    Known,
    Line,
    Unanswered,
    answers,
    asked,
    bases,
    explained,
    inside,
    measured,
    narrowed,
    places,
    ranks_of,
    slow_alone,
    steps_of,
    strained,
    voted,
)

if TYPE_CHECKING:
    from diag.estimate.isolation import Cells, Pair, Step

    Blamed = tuple["Verdict", set[Pair]]

RAIL = 0.25
"""The share of the hosts on which the same place must be slow to be one rail."""
Direction = Literal["", "both", "out", "in"]
Kind = Literal["device", "late", "node", "nic", "host", "rail", "link", "wrong", "configuration", "noise", "healthy"]


class Verdict(NamedTuple):
    """Who is to blame for what.

    `device`: slow alone. `late`: the others wait for it. `node`: all that a rank exchanges; `nic`: all that it
    exchanges with other hosts. `host`: those of all its ranks. `rail`: of the same place on many hosts. `link`: between
    `ranks` and `peers`. `wrong`: data that did not arrive as they were sent. `configuration`: all pairs are healthy,
    all together are not. `direction` is `both`, `out` or `in`; `seconds` stand against the `base` of their like, None
    where nothing arrived; `threshold` is from where on it is found: a factor, for `late` a share of the call.
    """

    kind: Kind
    ranks: tuple[int, ...] = ()
    peers: tuple[int, ...] = ()
    direction: Direction = ""
    bytes: int = 0
    seconds: float | None = None
    base: float | None = None
    threshold: float = RATIO


def judged(known: Known, taken: Sequence[Step], dead: Iterable[Pair] = ()) -> list[Verdict]:
    """What the steps say, the surest first; nothing where they were ended before they could.

    `dead` are pairs of which a message never arrived.
    """
    cells = measured(taken)
    for pair in dead:
        cells[pair] = Cell([float("inf")] * 2, MORE, False)
    found = _wrong(known, cells) + _slow_alone(known, taken) + _slow_pairs(known, cells) + _late(taken)
    devices = {one.ranks for one in found if one.kind == "device"}
    found = [one for one in found if one.kind in ("device", "wrong") or one.ranks not in devices]
    told = [one for one in found if one.kind != "noise"]
    found = told or found[:1] or _together(known, taken)
    healthy = Verdict("healthy", threshold=RATIO * strained(*steps_of("pairs", taken)))
    return found or ([] if asked(known, taken, cells) else [healthy])


def pairs_of(count: int) -> int:
    """How many ordered pairs there are."""
    return count * (count - 1)


def _wrong(known: Known, cells: Cells) -> list[Verdict]:
    """Pairs whose data arrived changed, and what they have in common."""
    odd = {pair for pair, cell in cells.items() if cell.wrong}
    cells = {pair: cell._replace(passes=MORE) for pair, cell in cells.items()}
    found, left = explained(known, cells, [odd])
    told = [Verdict("wrong", (one.rank,), (), one.direction, known.large) for one in found]
    return told + [Verdict("wrong", (one,), (other,), "out", known.large) for one, other in sorted(left)]


def _slow_alone(known: Known, taken: Sequence[Step]) -> list[Verdict]:
    """Ranks that do the same work slower than others."""
    slow = slow_alone(taken)
    if len(slow) > max(1, len(known.hosts) / 3):
        return [Verdict("noise")]
    limit = RATIO * strained(*steps_of("self", taken))
    return [Verdict("device", (rank,), (), "", 0, seconds, base, limit) for rank, (seconds, base) in slow.items()]


def _slow_pairs(known: Known, cells: Cells) -> list[Verdict]:
    """The rows, columns and cells that are slow, what has a host or a rail in common as one."""
    found, left = explained(known, cells)
    singles = _links(left)
    if len(singles) > max(1, len(known.hosts) / 3):
        return [Verdict("noise")]
    return [_figured(known, cells, one) for one in (*_common(known, found), *singles)]


def _links(left: set[Pair]) -> list[Blamed]:
    """Pairs that stand alone, those slow in both directions as one."""
    both = {(one, other) for one, other in left if one < other and (other, one) in left}
    told = [(Verdict("link", (one,), (other,), "both"), {(one, other), (other, one)}) for one, other in sorted(both)]
    single = sorted(pair for pair in left if tuple(sorted(pair)) not in both)
    return told + [(Verdict("link", pair[:1], pair[1:], "out"), {pair}) for pair in single]


def _common(known: Known, found: Sequence[Line]) -> list[Blamed]:
    """Lines of all ranks of a host as that host, of a place on many hosts as a rail, others by themselves."""
    told: list[Blamed] = []
    place, hosts, left = places(known), ranks_of(known), list(found)
    for direction in sorted({one.direction for one in found}):
        of = [one for one in found if one.direction == direction]
        for host, ranks in hosts.items():
            group = [one for one in of if known.hosts[one.rank] == host]
            if len(ranks) > 1 and len(group) == len(ranks):
                told.append(_together_as("host", group))
                left = [one for one in left if one not in group]
        by_place = defaultdict(list)
        for one in (one for one in of if one in left):
            by_place[place[one.rank]].append(one)
        for group in by_place.values():
            if len(hosts) > 2 and len(group) > max(2, RAIL * len(hosts)):
                told.append(_together_as("rail", group))
                left = [one for one in left if one not in group]
    split = len(hosts) > 1 and len(hosts) < len(known.hosts)
    return told + [(_alone(one, split, len(hosts) > 1), one.pairs) for one in left]


def _alone(line: Line, split: bool, several: bool) -> Verdict:
    """A line as a rank or its way to other hosts: where each host has one rank, there is nothing else."""
    nic = not line.whole or (several and not split)
    return Verdict("nic" if nic else "node", (line.rank,), (), line.direction)


def _together_as(kind: Kind, group: Sequence[Line]) -> Blamed:
    ranks = tuple(sorted(one.rank for one in group))
    return Verdict(kind, ranks, (), group[0].direction), set().union(*(one.pairs for one in group))


def _figured(known: Known, cells: Cells, blamed: Blamed) -> Verdict:
    """With the figures of its median pair, at the size where it is slowest."""
    verdict, pairs = blamed
    like = bases(known, cells)
    told = [
        (seconds / like[inside(known, pair), place] / RATIOS[place], seconds, place, pair)
        for pair in pairs
        for place, seconds in enumerate(cells[pair].least)
    ]
    place = max(told)[2]
    ratios = sorted(one for one in told if one[2] == place)
    _, seconds, _, pair = ratios[len(ratios) // 2]
    base = like[inside(known, pair), place]
    size, limit = known.large if place else SMALL, RATIOS[place] * cells[pair].strain
    return verdict._replace(
        bytes=size, seconds=None if seconds == float("inf") else seconds, base=base, threshold=limit
    )


def _late(taken: Sequence[Step]) -> list[Verdict]:
    """The rank that most passes vote for, and no pass against."""
    steps = steps_of("late", taken)
    votes = [vote for step in steps if (vote := voted(step["seconds"]))]
    counted = Counter(rank for rank, _ in votes).most_common()
    if len(counted) != 1 or counted[0][1] < max(VOTES, 0.8 * len(steps)):
        return []
    rank = counted[0][0]
    own = statistics.median(step["seconds"][rank] for step in steps)
    call = statistics.median(statistics.median(step["seconds"]) for step in steps)
    return [Verdict("late", (rank,), (), "", steps[0]["bytes"], own, call, MARGIN)]


def _together(known: Known, taken: Sequence[Step]) -> list[Verdict]:
    """Hosts that are slow in groups only."""
    if not (found := slow_together(known, taken)):
        return []
    ranks = tuple(rank for host in found[0] for rank in ranks_of(known)[host])
    return [Verdict("configuration", ranks, (), "", known.large, *found[1:])]


def slow_together(known: Known, taken: Sequence[Step]) -> tuple[tuple[str, str], float, float] | None:
    """Two hosts that slow down whatever group both are in, with the seconds of all together and of the faster half."""
    hosts, answer = list(ranks_of(known)), answers(known, taken)
    try:
        found = narrowed(hosts, answer)
    except Unanswered:
        return None
    middle = len(hosts) // 2
    return (found, answer(hosts)[0], min(answer(hosts[:middle], hosts[middle:]))) if found else None
