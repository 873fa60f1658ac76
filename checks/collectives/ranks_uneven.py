"""One rank comes late to every exchange, and the others wait for it.

## What it finds
In calls that begin together, one rank that spends clearly less time in them than all others, at several sizes and each
time the same one. Who waits longest is innocent; who waits least is waited for.

## Why it matters
Every step of a model that spans these devices takes as long as its slowest rank.

## What it cannot know
What holds it up: its processor, its device's clock, another tenant. A slow link makes all ranks equally slow and is not
found here, and a rank that is late by less than an eighth of the call is not either: without any fault the ranks of a
busy machine differ by a tenth. Of two ranks none is accused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from diag.api import Answer, Collective, CollectiveRank, Evidence, Facts, Finding, Remedy, Undecided, check

MARGIN = 0.12
"""How much less than its sisters' nearest a rank's time must be, as a share of their median."""
AGREED = 3
"""Measurements in which it must be the same rank."""
RANKS = 3
ABSOLUTE = 20.0
"""Microseconds; less is a wake-up of the processor."""

HEAD = (
    '{"schema": "diag/collectives/1", "device": "cuda", "backend": "nccl", "dtype": "bf16", "launcher": "diag", '
    '"size": 4, '
    '"ranks": [{"rank": 0, "host": "a"}, {"rank": 1, "host": "a"}, {"rank": 2, "host": "a"}, {"rank": 3, "host": '
    '"a"}], '
    '"results": ['
)
ROW = (
    '{"op": "all_reduce", "bytes": %d, "mode": "synchronised", "in_place": true, "correct": true, "error": "", '
    '"calls": 60, '
    '"median": %s, "interval90": 0.000001, "blocks": [[%s]], "ranks": [[0.0024], [0.00236], [%s], [0.00241]], '
    '"foreign_cpu": 0.0}'
)
LATE = HEAD + ", ".join(ROW % (size, 0.0024, 0.0024, 0.0016) for size in (2**20, 2**22, 2**24)) + "]}\n"
EVEN = HEAD + ", ".join(ROW % (size, 0.0024, 0.0024, 0.00225) for size in (2**20, 2**22, 2**24)) + "]}\n"


@check(
    "collectives/ranks-uneven",
    severity="warning",
    about="device",
    needs=(Collective,),
    uses=(CollectiveRank,),
    words={
        "en": {
            "title": "One rank is late, the others wait for it",
            "summary": "rank {rank} ({where}) spends {own} µs in a call of {size} bytes, the others {others} µs: they "
            "wait for it",
            "cause": "Its process gets less of the processors than the others', is bound far from its device, or its "
            "device "
            "runs at a lower clock or for somebody else as well.",
        },
        "zh": {
            "title": "某个 rank 总是迟到，其他 rank 在等它",
            "summary": "rank {rank}（{where}）在 {size} 字节的调用中停留 {own} µs，其他 rank 为 {others} µs：它们在等"
            "它",
            "cause": "其进程获得的 CPU 少于其他进程、绑定到远离设备的核心，或其设备降频、被他人占用。",
        },
    },
    remedies=(
        Remedy(
            key="look",
            title={
                "en": "Compare its device's clock and its process's processors with the others'",
                "zh": "将其设备频率与进程的 CPU 绑定和其他 rank 对比",
            },
            commands=(
                "nvidia-smi --query-gpu=index,clocks.sm,clocks_event_reasons.active,utilization.gpu --format=csv",
                "grep Cpus_allowed_list /proc/PID/status",
                "top -H -b -n 1 | head -20",
            ),
            safety="safe",
        ),
    ),
    sources=(
        "https://arxiv.org/abs/2410.12588",
        "https://github.com/NVIDIA/nccl/issues/644",
    ),
    fires=(LATE,),
    silent=(EVEN,),
)
def ranks_uneven(facts: Facts) -> Iterator[Answer]:
    """The rank that stands out in most measurements."""
    told = [one for one in facts.all(Collective) if len(one.rank_us) >= RANKS and one.mode == "synchronised"]
    told = [one for one in told if not one.noisy and (one.foreign_cpu or 0.0) <= 0.05]
    if len(told) < AGREED:
        yield Undecided(reason="the times of single ranks are not told, or were disturbed")
        return
    votes = Counter(rank for one in told if (rank := _late(one.rank_us)) is not None)
    rank, count = votes.most_common(1)[0] if votes else (0, 0)
    if count < AGREED or sum(votes.values()) > count:
        return
    shown = max((one for one in told if _late(one.rank_us) == rank), key=lambda one: one.bytes)
    others = sorted(time for other, time in enumerate(shown.rank_us) if other != rank)
    known = next((one for one in facts.all(CollectiveRank) if one.rank == rank), None)
    yield Finding(
        subject=f"rank {rank}",
        values={
            "rank": rank,
            "where": ", ".join(filter(None, (known.host, known.address))) if known else "",
            "own": round(shown.rank_us[rank]),
            "others": round(others[len(others) // 2]),
            "size": shown.bytes,
        },
        confidence="medium",
        evidence=(Evidence.of(shown), *((Evidence.of(known),) if known else ())),
    )


def _late(times: tuple[float, ...]) -> int | None:
    """The rank that waits least, where it does so by a margin that its sisters do not have among themselves."""
    least, next_, *rest = sorted(times)
    middle = sorted(times)[len(times) // 2]
    gap, spread = next_ - least, (rest[-1] if rest else next_) - next_
    return times.index(least) if gap > max(MARGIN * middle, ABSOLUTE, spread) else None
