"""Who is to blame where ranks exchange slowly: what to measure next, and what the measurements say.

A step is a question with its answer, as the document keeps it: `self` (seconds of the same work on each rank alone),
`late` (seconds that each rank spends in an all_reduce that nobody waited to begin), `pairs` (rounds of ordered pairs
that send at the same time, seconds of each by size) and `groups` (an all_reduce among some). `asked` is pure: from the
steps so far it gives the next one, so that a recorded run is replayed without ranks.

How it judges: by minima, as a busy machine is slower and never faster, of several passes that lie apart. A pair is slow
from `RATIO` times the lower quartile of its kind (on one host, between two) on, `1 / (1 - f)` times that where others
use a share f of the processors. All cells of a row slow: what leaves the rank; of a column: what reaches it; of both:
the rank. What remains is a link, or noise where it is much.

What it cannot know: why. A slow link hides from the late vote as all wait alike, a late rank from the pairs. Where many
hosts are paired at random, a single path between two of them is found only when an all_reduce is slow over it.

Standard library alone, and nothing of diag: the ranks' child loads this file by its path.
"""

from __future__ import annotations

import random
import statistics
from collections import defaultdict
from itertools import islice
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, Literal

    Step = dict[str, Any]
    Pair = tuple[int, int]
    Cells = dict[Pair, "Cell"]
    Answer = Callable[..., list[float]]

RATIO = 1.6
"""How many times slower than its like a pair, a rank alone or a group must be."""
RATIOS = (3.0, RATIO)
"""That of pairs with small messages, whose time is that of wake-ups, and with large ones."""
APART = 50e-6
"""Seconds that a pair must be slower besides; less is a wake-up of a processor."""
MARGIN = 0.12
"""How much less than all others a late rank spends in a call, as a share of the call."""
PASSES, MORE, MOST = 3, 6, 9
"""Passes of all pairs: at first, where one is slow, and where what is slow makes no picture."""
VOTES, CONFIRMED = 3, 5
"""Passes of the late vote: at first, and where a rank was voted for."""
WHOLE = 16
"""Ranks up to which every pair is measured, one at a time."""
CIRCLE, ROUNDS, FOLLOW = 8, 3, 8
"""Hosts up to which all of them meet; rounds of random meetings of more; and rounds that then follow a suspicion."""
SMALL = 8 * 2**10


class Known(NamedTuple):
    """The world: the host of each rank, and the bytes of a large message."""

    hosts: tuple[str, ...]
    large: int = 2**20


class Line(NamedTuple):
    """A row of the matrix (`out`), a column (`in`) or both of a rank; `whole` also to the ranks of its own host."""

    rank: int
    direction: Literal["both", "out", "in"]
    whole: bool
    pairs: set[Pair]


class Cell(NamedTuple):
    """An ordered pair: its least seconds by size, passes, whether a message arrived wrong, the least `strained`."""

    least: list[float]
    passes: int
    wrong: bool
    strain: float = 1.0


def asked(known: Known, taken: Sequence[Step], cells: Cells | None = None) -> Step | None:
    """The next step, None where nothing more would tell; `cells` are those of the steps, where they are at hand."""
    if len(known.hosts) < 2:
        return None
    if step := _alone(known, taken) or _chain(known, taken):
        return step
    cells = measured(taken) if cells is None else cells
    steps = (stage(known, taken, cells) for stage in (_every_pair, _meetings, _halves))
    return next((step for step in steps if step), None)


def measured(taken: Sequence[Step]) -> Cells:
    """The matrix of pairs: the least of all passes."""
    cells: Cells = {}
    for step in taken:
        add(cells, step)
    return cells


def add(cells: Cells, step: Step) -> None:
    """Put what a step measured into the matrix."""
    wrong, strain = set(map(tuple, step.get("wrong", ()))), strained(step)
    for pairs, answers in zip(step.get("rounds", ()), step["seconds"]):
        for pair, seconds in zip(map(tuple, pairs), answers):
            old = cells.get(pair) or Cell(seconds, 0, False, strain)
            least = [min(both) for both in zip(old.least, seconds)]
            cells[pair] = Cell(least, old.passes + 1, old.wrong or pair in wrong, min(old.strain, strain))


def strained(*steps: Step) -> float:
    """How many times longer work may take, at most 20, as others use processors, in the quietest of some steps."""
    return max(0.05, 1 - min((float(step.get("foreign", 0.0)) for step in steps), default=0.0)) ** -1


def bases(known: Known, cells: Cells) -> dict[tuple[bool, int], float]:
    """The lower quartile of the pairs of one host (True) and of two, by the place of the size."""
    told = defaultdict(list)
    for pair, cell in cells.items():
        for place, seconds in enumerate(cell.least):
            told[inside(known, pair), place].append(seconds)
    return {kind: sorted(seconds)[(len(seconds) - 1) // 4] for kind, seconds in told.items()}


def inside(known: Known, pair: Pair) -> bool:
    """Whether both are of one host."""
    return known.hosts[pair[0]] == known.hosts[pair[1]]


def steps_of(kind: str, taken: Sequence[Step]) -> list[Step]:
    """The steps of a kind."""
    return [step for step in taken if step["kind"] == kind]


def _alone(known: Known, taken: Sequence[Step]) -> Step | None:
    """The same work on each rank, with something else in between; again where one was slow."""
    done = len(steps_of("self", taken))
    wanted = MORE if slow_alone(taken) else PASSES
    return {"kind": "self"} if done < min(wanted, 1 + len(steps_of("late", taken))) or PASSES <= done < wanted else None


def _chain(known: Known, taken: Sequence[Step]) -> Step | None:
    done = steps_of("late", taken)
    wanted = CONFIRMED if any(voted(step["seconds"]) for step in done) else VOTES
    return {"kind": "late", "bytes": known.large} if len(known.hosts) > 2 and len(done) < wanted else None


def _every_pair(known: Known, taken: Sequence[Step], cells: Cells) -> Step | None:
    """A pass of all pairs of a small world, else of those inside each host."""
    done = [step for step in steps_of("pairs", taken) if step["of"] == "all"]
    few = len(known.hosts) <= WHOLE
    rounds = _one_by_one(known, len(done)) if few else list(_inner(known))
    if not rounds or len(done) >= MOST:
        return None
    if len(done) < PASSES:
        return _step("all", rounds, known)
    own = {pair: cell for pair, cell in cells.items() if few or inside(known, pair)}
    slow = slow_pairs(known, own)
    _, odd = explained(known, own, slow)
    wanted = MOST if odd else MORE if any(slow) else PASSES
    return _step("all", rounds, known) if len(done) < wanted else None


def _step(of: str, rounds: list[list[Pair]], known: Known) -> Step:
    pairs = [[list(pair) for pair in one] for one in rounds]
    return {"kind": "pairs", "of": of, "bytes": [SMALL, known.large], "rounds": pairs}


def _one_by_one(known: Known, number: int) -> list[list[Pair]]:
    """Every ordered pair by itself, in another order each time."""
    ranks = range(len(known.hosts))
    pairs = [[(one, other)] for one in ranks for other in ranks if one != other]
    random.Random(number).shuffle(pairs)
    return pairs


def _inner(known: Known) -> Iterator[list[Pair]]:
    """All pairs inside each host, as many at a time as share no rank."""
    locals_ = list(ranks_of(known).values())
    for meeting in circle(max(map(len, locals_))):
        pairs = [(of[one], of[other]) for of in locals_ for one, other in meeting if max(one, other) < len(of)]
        if pairs:
            yield pairs
            yield [(other, one) for one, other in pairs]


def circle(count: int) -> Iterator[list[Pair]]:
    """Rounds in which each of so many meets another, until all have met (the circle method)."""
    seats = list(range(count + count % 2))
    for _ in range(len(seats) - 1):
        halves = zip(seats[: len(seats) // 2], reversed(seats))
        yield [(one, other) for one, other in halves if max(one, other) < count]
        seats[1:] = [seats[-1], *seats[1:-1]]


def ranks_of(known: Known) -> dict[str, list[int]]:
    """The ranks of each host."""
    told = defaultdict(list)
    for rank, host in enumerate(known.hosts):
        told[host].append(rank)
    return dict(told)


def _meetings(known: Known, taken: Sequence[Step], cells: Cells) -> Step | None:
    """The next meeting of hosts of a large world, all their ranks at once: at random, then where there is suspicion."""
    hosts = list(ranks_of(known))
    if len(known.hosts) <= WHOLE or len(hosts) < 2:
        return None
    done = [step for step in steps_of("pairs", taken) if step["of"] == "hosts"]
    shuffled = random.Random(0).sample(hosts, len(hosts))
    meetings = islice(circle(len(hosts)), len(hosts) if len(hosts) <= CIRCLE else ROUNDS)
    first = [[(shuffled[one], shuffled[other]) for one, other in meeting] for meeting in meetings]
    if len(done) < len(first):
        return _meeting(known, first[len(done)], "hosts")
    number = len(done) - len(first)
    follow = _suspected(known, cells, number) if number < FOLLOW else []
    return _meeting(known, follow, "hosts") if follow else None


def _meeting(known: Known, meeting: Sequence[tuple[str, str]], of: str) -> Step:
    """Rank beside rank of hosts that meet, in both directions one after the other."""
    ranks = ranks_of(known)
    there = [pair for one, other in meeting for pair in zip(ranks[one], ranks[other])]
    return _step(of, [there, [(other, one) for one, other in there]], known)


def _suspected(known: Known, cells: Cells, number: int) -> list[tuple[str, str]]:
    """A meeting in which suspects meet those that are known to be good, or again those with whom they were slow."""
    outer = {pair: cell for pair, cell in cells.items() if not inside(known, pair)}
    slow = set().union(*slow_pairs(known, outer))
    sends, hears = ({pair[end] for pair in outer if pair not in slow} for end in (0, 1))
    good = sends & hears
    again = [pair for pair in slow if outer[pair].passes < MORE and good.issuperset(pair)]
    seen: dict[tuple[int, int], int] = defaultdict(int)
    for pair in slow:
        for end in (0, 1):
            seen[pair[end], end] += outer[pair].passes if pair[1 - end] in good else 0
    weak = {rank for pair in slow for rank in pair if rank not in good and max(seen[rank, 0], seen[rank, 1]) < MORE}
    if not again and not weak:
        return []
    again.sort(key=lambda pair: (-outer[pair].passes, pair))
    return _arranged(known, [(known.hosts[one], known.hosts[other]) for one, other in again], weak, good, number)


def _arranged(
    known: Known, again: list[tuple[str, str]], weak: set[int], good: set[int], number: int
) -> list[tuple[str, str]]:
    """Every host meets another: first who is to meet again, then suspects somebody good in the same place, then all."""
    place, ranks = places(known), ranks_of(known)
    free = dict.fromkeys(random.Random(number + 1).sample(sorted(set(known.hosts)), len(set(known.hosts))))
    met: list[tuple[str, str]] = []

    def meet(one: str, other: str) -> None:
        if one != other and one in free and other in free:
            del free[one], free[other]
            met.append((one, other))

    for pair in again:
        meet(*pair)
    clean = {host: {place[rank] for rank in of if rank in good} for host, of in ranks.items()}
    for host in [one for one in free if weak.intersection(ranks[one])]:
        wanted = {place[rank] for rank in ranks[host] if rank in weak}
        meet(host, next((one for one in free if one != host and wanted <= clean[one]), host))
    rest = list(free)
    return met + list(zip(rest[::2], rest[1::2]))


def places(known: Known) -> dict[int, int]:
    """The number of each rank on its host."""
    return {rank: place for ranks in ranks_of(known).values() for place, rank in enumerate(ranks)}


def _halves(known: Known, taken: Sequence[Step], cells: Cells) -> Step | None:
    """Where many hosts met without fault: the groups to narrow down where all together are slow, then that pair."""
    if len(known.hosts) <= WHOLE or len(ranks_of(known)) <= CIRCLE or any(explained(known, cells)):
        return None
    try:
        found = narrowed(list(ranks_of(known)), answers(known, taken))
    except Unanswered as question:
        ranks = ranks_of(known)
        groups = [[rank for host in group for rank in ranks[host]] for group in question.groups]
        return {"kind": "groups", "bytes": known.large, "groups": groups}
    done = sum(step["of"] == "narrowed" for step in steps_of("pairs", taken))
    return _meeting(known, [found], "narrowed") if found and done < MORE else None


class Unanswered(Exception):
    """Groups that must be measured first."""

    def __init__(self, *groups: Sequence[str]) -> None:
        self.groups = groups


def answers(known: Known, taken: Sequence[Step]) -> Answer:
    """What says the seconds of groups of hosts, from the steps so far."""
    told = {}
    for step in steps_of("groups", taken):
        for group, seconds in zip(step["groups"], step["seconds"]):
            told[frozenset(known.hosts[rank] for rank in group)] = seconds

    def answer(*groups: Sequence[str]) -> list[float]:
        if any(frozenset(group) not in told for group in groups):
            raise Unanswered(*groups)
        return [told[frozenset(group)] for group in groups]

    return answer


def narrowed(hosts: list[str], answer: Answer) -> tuple[str, str] | None:
    """Two hosts that are slow wherever both take part, None where all together are as fast as a half."""
    middle = len(hosts) // 2
    (whole,), halves = answer(hosts), answer(hosts[:middle], hosts[middle:])
    limit = RATIO * min(halves)
    if whole <= limit:
        return None

    def slow(group: list[str]) -> bool:
        return len(group) > 1 and answer(group)[0] > limit

    def first(of: list[str], beside: list[str]) -> str:
        """The one whose coming makes the others slow, by bisection."""
        low, high = 1, len(of)
        while low < high:
            half = (low + high) // 2
            low, high = (low, half) if slow(of[:half] + beside) else (half + 1, high)
        return of[low - 1]

    while len(hosts) > 2:
        left, right = hosts[: len(hosts) // 2], hosts[len(hosts) // 2 :]
        if slow(left) or slow(right):
            hosts = left if slow(left) else right
            continue
        one = first(left, right)
        return one, first(right, [one])
    return hosts[0], hosts[1]


def voted(seconds: Sequence[float]) -> tuple[int, float] | None:
    """The rank that waits least and by how much, as a share of the call; None where nobody stands out."""
    least, next_ = sorted(seconds)[:2]
    margin = (next_ - least) / statistics.median(seconds)
    return (list(seconds).index(least), margin) if margin > MARGIN else None


def slow_alone(taken: Sequence[Step]) -> dict[int, tuple[float, float]]:
    """Ranks whose best pass of the same work is slower than that of others, with its seconds and theirs."""
    steps = steps_of("self", taken)
    best = [min(ranks) for ranks in zip(*(step["seconds"] for step in steps))] if len(steps) >= PASSES else []
    base = sorted(best)[(len(best) - 1) // 4] if best else 0.0
    limit = RATIO * strained(*steps) * base
    return {rank: (seconds, base) for rank, seconds in enumerate(best) if seconds > limit}


def slow_pairs(known: Known, cells: Cells) -> tuple[set[Pair], set[Pair]]:
    """The pairs that are slow with small messages, and with large ones."""
    like = bases(known, cells)
    slow: tuple[set[Pair], set[Pair]] = (set(), set())
    for pair, cell in cells.items():
        for place, seconds in enumerate(cell.least):
            base = like[inside(known, pair), place]
            if seconds > RATIOS[place] * cell.strain * base and seconds - base > APART:
                slow[place].add(pair)
    return slow


def explained(known: Known, cells: Cells, odd: Sequence[set[Pair]] | None = None) -> tuple[list[Line], set[Pair]]:
    """The fewest rows and columns that explain odd pairs, those that explain most first; and what they do not.

    `odd` are sets of pairs, in each of which a line must be whole; without them the slow ones by size. A pair that no
    line explains and that was not seen often enough is not told.
    """
    of: dict[int, tuple[set[Pair], set[Pair]]] = defaultdict(lambda: (set(), set()))
    for pair in cells:
        for end in (0, 1):
            of[pair[end]][end].add(pair)
    odd = slow_pairs(known, cells) if odd is None else odd
    left = set().union(*odd)
    lines = [
        line
        for one in odd
        for rank in {rank for pair in one for rank in pair}
        if (line := _line(known, cells, one, rank, of[rank]))
    ]
    found = []
    for line in sorted(lines, key=lambda one: (-len(one.pairs), one.rank)):
        if line.pairs & left:
            found.append(line)
            left -= line.pairs
    return found, {pair for pair in left if cells[pair].passes >= MORE}


def _line(known: Known, cells: Cells, odd: set[Pair], rank: int, both: tuple[set[Pair], set[Pair]]) -> Line | None:
    """The row, the column or both of a rank, where all of it is odd, or all of it that leads to other hosts."""
    outer = tuple({pair for pair in pairs if not inside(known, pair)} for pairs in both)
    for pairs, whole in ((both, True), (outer, False)):
        full = [len(one) > 1 and one <= odd and sum(cells[pair].passes for pair in one) >= MORE for one in pairs]
        if any(full):
            direction: Literal["both", "out", "in"] = "both" if all(full) else "out" if full[0] else "in"
            return Line(rank, direction, whole, set().union(*(one for one, is_ in zip(pairs, full) if is_)))
    return None
