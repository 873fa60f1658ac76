"""One rank is slow by itself: the others wait for it, however good the links are.

## What it finds
A rank that does the same work (a product of matrices and a copy) slower than its sisters while these are still; and one
that spends clearly less time than all others in calls that each begins when it is ready, in nearly every pass, and no
pass says another: who waits least is waited for.

## Why it matters
Every step of a model that spans these ranks takes as long as the slowest one.

## What it cannot know
What holds it up: its clock, its temperature, a control group, a neighbour on its processors. A rank that is late by
less than an eighth of the call is not found; a slow link hides a late rank, as then all wait.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, CollectiveRank, CollectiveVerdict, Evidence, Facts, Finding, RankTiming, Remedy, check

HEAD = (
    '{"schema": "diag/collectives/1", "device": "cpu", "backend": "gloo", "dtype": "bf16", "launcher": "torchrun", '
    '"size": 4, "ranks": [{"rank": 0, "host": "h0"}, {"rank": 1, "host": "h1"}, {"rank": 2, "host": "h2"}, {"rank": 3, '
    '"host": "h3"}], "results": [], "isolation": {"large": 1048576, "error": "", "steps": ['
)
PASSES = (
    (0.012998671, 0.013493329, 0.009477527, 0.013445444),
    (0.010352578, 0.009958157, 0.007237572, 0.010286835),
    (0.01148269, 0.011694659, 0.00917655, 0.011159817),
    (0.011059165, 0.011181398, 0.008296409, 0.011250021),
    (0.010279441, 0.009939001, 0.007042435, 0.010630605),
)
STEP = '{"kind": "%s", "bytes": 1048576, "seconds": [%s, %s, %s, %s]}'
END = "]}}\n"
LATE = HEAD + ", ".join(STEP % ("late", *seconds) for seconds in PASSES) + END
THROTTLED = HEAD + ", ".join([STEP % ("self", 0.000254, 0.000243, 0.002108, 0.000261)] * 3) + END
ROUND = str([[one, other] for one in range(4) for other in range(4) if one != other])
PAIRS = f'{{"kind": "pairs", "of": "all", "bytes": [8192, 1048576], "rounds": [{ROUND}], "seconds": '
PAIRS += f"[{[[0.0002, 0.0008]] * 12}]}}"
CALM = [STEP % (kind, 0.0104, 0.0101, 0.0099, 0.0103) for kind in ("self", "late")]
EVEN = HEAD + ", ".join([*CALM, PAIRS] * 3) + END


@check(
    "collectives/slow-rank",
    severity="warning",
    about="device",
    needs=(CollectiveVerdict,),
    uses=(CollectiveRank, RankTiming),
    words={
        "en": {
            "title": "One rank is slow, and the others wait for it",
            "summary": "rank {rank} ({where}) {what.en}; such a fault is found from {threshold.en} on",
            "cause": "Its processor or device runs slower or for somebody else as well: clock, heat, power, a control "
            "group's quota, a process bound far from its device.",
        },
        "zh": {
            "title": "某个 rank 慢，其他 rank 在等它",
            "summary": "rank {rank}（{where}）{what.zh}；检出阈值：{threshold.zh}",
            "cause": "其处理器或设备较慢或被他人占用：频率、温度、功耗、cgroup 配额，或进程绑定在远离设备的核心上。",
        },
    },
    remedies=(
        Remedy(
            key="look",
            title={
                "en": "On that host, compare clocks, throttling and the quota of the processors with another host's",
                "zh": "在该主机上检查频率、降频原因与 CPU 配额，并与其他主机对比",
            },
            commands=(
                "nvidia-smi --query-gpu=index,clocks.sm,clocks_event_reasons.active,utilization.gpu --format=csv",
                "cat /sys/fs/cgroup/cpu.max /sys/fs/cgroup/cpu.stat",
                "top -H -b -n 1 | head -20",
            ),
            safety="safe",
            verify="diag comm --isolate",
        ),
    ),
    sources=("https://arxiv.org/abs/2410.12588", "https://arxiv.org/abs/2406.04594"),
    explains=("collectives/ranks-uneven", "collectives/below-typical", "collectives/below-baseline"),
    fires=(LATE, THROTTLED),
    silent=(EVEN,),
)
def slow_rank(facts: Facts) -> Iterator[Answer]:
    """Each rank that is slow alone or late."""
    for one in facts.all(CollectiveVerdict):
        if one.kind not in ("device", "late") or one.us is None or not one.base_us:
            continue
        rank = one.ranks[0]
        told = [timing for timing in facts.all(RankTiming) if timing.rank == rank]
        yield Finding(
            subject=f"rank {rank}",
            values={"rank": rank, "where": one.hosts[0], **_words(one, one.us, one.base_us)},
            confidence="high" if one.kind == "device" else "medium",
            evidence=(Evidence.of(one), *map(Evidence.of, told)),
        )


def _words(one: CollectiveVerdict, own: float, base: float) -> dict[str, str | int | float]:
    if one.kind == "late":
        share = f"{1 - own / base:.0%}"
        return {
            "what.en": f"waits {own:.0f} µs in a call, the others {base:.0f} µs: it comes {share} of a call too late",
            "what.zh": f"在调用中停留 {own:.0f} µs，其他 rank 为 {base:.0f} µs：迟到约一次调用的 {share}",
            "threshold.en": f"{one.threshold:.0%} of a call",
            "threshold.zh": f"一次调用的 {one.threshold:.0%}",
        }
    return {
        "what.en": f"needs {own:.0f} µs for what the others do in {base:.0f} µs, alone and without any exchange",
        "what.zh": f"独自完成同样的工作需 {own:.0f} µs，其他 rank 为 {base:.0f} µs（与通信无关）",
        "threshold.en": f"{one.threshold:g} times",
        "threshold.zh": f"{one.threshold:g} 倍",
    }
