"""Ranks exchange more slowly than in an earlier run.

## What it finds
An operation of the same size, type, mode and number of ranks, by the same tool, that takes at least a fifth longer than
in the run that `diag comm --compare` names, by more than both runs' intervals together.

## Why it matters
The machine did better before: something changed, or broke.

## What it cannot know
Whether the earlier run was of this machine, and whether it was idle then. Of a run that was disturbed now, the fastest
call must be slower than the earlier median.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from diag.api import Answer, Collective, CollectiveEarlier, Evidence, Facts, Finding, Remedy, Undecided, check

SLOWER = 1.2
SHOWN = 3
NOW = (
    '{"schema": "diag/collectives/1", "device": "cpu", "backend": "gloo", "dtype": "bf16", "launcher": "diag", "size": '
    '2, "ranks": [{"rank": 0, "host": "a", "device": "cpu"}, {"rank": 1, "host": "a", "device": "cpu"}], "results": '
    '[{"op": "all_reduce", "bytes": 16777216, "mode": "synchronised", "in_place": true, "correct": true, "error": "", '
    '"calls": 60, "median": MEDIAN, "interval90": 0.001, "foreign_cpu": 0.5, "blocks": [[MEDIAN], [MEDIAN]], "ranks": '
    "[[MEDIAN], [MEDIAN]]}]}\n"
)
EARLIER = json.dumps(
    {
        "schema": "diag/collectives-earlier/1",
        "file": "monday.json",
        "results": [
            {
                "op": "all_reduce",
                "bytes": 16777216,
                "tool": "diag",
                "mode": "synchronised",
                "in_place": True,
                "dtype": "bf16",
                "ranks": 2,
                "latency_us": {"median": 33749.0},
                "interval90_us": 1012.0,
            }
        ],
    }
)
"""Two runs of ours between two gloo ranks, the later one while others used the processors."""


@check(
    "collectives/slower-than-earlier",
    severity="warning",
    about="device",
    needs=(Collective, CollectiveEarlier),
    words={
        "en": {
            "title": "Ranks exchange more slowly than in an earlier run",
            "summary": "{op} between {ranks} ranks takes {worst} times as long as earlier ({sizes})",
            "cause": "A link, a device or a clock runs slower than it did, a variable or a version changed, or others "
            "use the machine now.",
        },
        "zh": {
            "title": "rank 间通信比之前的测量慢",
            "summary": "{ranks} 个 rank 间的 {op} 耗时为之前的 {worst} 倍（{sizes}）",
            "cause": "链路、设备或时钟变慢，环境变量或版本有变化，或当前有其他进程在使用本机。",
        },
    },
    remedies=(
        Remedy(
            key="again",
            title={
                "en": "Measure again on an idle machine, and compare the machines' reports",
                "zh": "在空闲状态下重新测量，并比较两次的报告",
            },
            commands=(
                "diag comm --compare EARLIER --budget 60",
                "env | grep -E 'CCL_|GLOO_'",
                "nvidia-smi -q -d CLOCK",
            ),
            safety="safe",
            source="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",
        ),
    ),
    sources=("https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",),
    fires=(NOW.replace("MEDIAN", "0.0651") + EARLIER,),
    silent=(NOW.replace("MEDIAN", "0.0342") + EARLIER,),
)
def slower_than_earlier(facts: Facts) -> Iterator[Answer]:
    """Compare what was measured alike."""
    before = {_kind(one): one for one in facts.all(CollectiveEarlier)}
    alike = [(one, before[_kind(one)]) for one in facts.all(Collective) if _kind(one) in before]
    if not alike:
        yield Undecided(reason="the earlier run measured nothing of the same operation, size, type, mode and ranks")
    slower: dict[tuple[str, int | None], list[tuple[float, Collective, CollectiveEarlier]]] = {}
    for now, then in alike:
        if (ratio := _ratio(now, then)) >= SLOWER:
            slower.setdefault((now.op, now.ranks), []).append((ratio, now, then))
    for (op, ranks), found in slower.items():
        worst = max(found, key=lambda one: one[0])
        sizes = ", ".join(dict.fromkeys(f"{now.bytes} B" for _, now, _ in found[:SHOWN]))
        yield Finding(
            subject=op,
            values={"op": op, "ranks": ranks or "?", "worst": f"{worst[0]:.2f}", "sizes": sizes},
            evidence=(Evidence.of(worst[1]), Evidence.of(worst[2])),
        )


def _kind(one: Collective) -> tuple[object, ...]:
    return one.tool, one.op, one.bytes, one.dtype, one.mode, one.ranks, one.in_place


def _ratio(now: Collective, then: Collective) -> float:
    """How many times as long it takes, 0 where the runs do not tell: they are noisy, or their intervals meet."""
    typical = now.latency_us.min if now.noisy else now.latency_us.typical
    earlier = then.latency_us.typical
    if not typical or not earlier:
        return 0.0
    apart = typical - earlier > (now.interval90_us or 0.0) + (then.interval90_us or 0.0)
    return typical / earlier if apart else 0.0
