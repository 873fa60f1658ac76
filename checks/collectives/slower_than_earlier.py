"""Ranks exchange more slowly than in an earlier run.

## What it finds
An operation of the same size, type, mode and number of ranks, by the same tool, that takes at least a fifth longer than
in the run that `diag comm --compare` names, by more than both runs' intervals together.

## Why it matters
The machine did better before: something changed, or broke.

## What it cannot know
Whether the earlier run was of this machine, and whether it was idle then. Of a run that was disturbed now, the fastest
call must be slower than the earlier median; else what is noisy in one of both runs is not compared, and where all is
noisy nothing is judged.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from diag.api import (
    ALIKE,
    Against,
    Answer,
    Collective,
    CollectiveEarlier,
    Evidence,
    Facts,
    Finding,
    Remedy,
    Undecided,
    against_earlier,
    check,
)

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
    alike = against_earlier(facts.all(Collective), facts.all(CollectiveEarlier))
    if not alike:
        yield Undecided(reason=_unlike(facts.all(Collective), facts.all(CollectiveEarlier)))
    elif all(one.ratio is None for one in alike):
        yield Undecided(reason=f"noisy: cannot be compared with {alike[0].then.file}")
    slower: dict[tuple[str, int | None], list[Against]] = {}
    for one in alike:
        if one.slower:
            slower.setdefault((one.now.op, one.now.ranks), []).append(one)
    for (op, ranks), found in slower.items():
        worst = max(found, key=lambda one: one.ratio or 0.0)
        sizes = ", ".join(dict.fromkeys(f"{one.now.bytes} B" for one in found[:SHOWN]))
        yield Finding(
            subject=op,
            values={"op": op, "ranks": ranks or "?", "worst": f"{worst.ratio:.2f}", "sizes": sizes},
            evidence=(Evidence.of(worst.now), Evidence.of(worst.then)),
        )


def _unlike(now: Sequence[Collective], then: Sequence[CollectiveEarlier]) -> str:
    """In which properties no measurement is like any of the earlier run; where each is shared, none shares all."""
    values = ((name, _values(now, name), _values(then, name)) for name in ALIKE)
    unlike = [one for one in values if one[1].keys().isdisjoint(one[2])]
    apart = [f"{name} {_some(ours)} now, {_some(theirs)} then" for name, ours, theirs in unlike]
    said = f"the earlier run ({then[0].file}) measured nothing alike: "
    return said + ("; ".join(apart) or f"no result shares all of {', '.join(ALIKE)}")


def _values(told: Sequence[Collective], name: str) -> dict[object, None]:
    return dict.fromkeys(getattr(one, name) for one in told)


def _some(values: Iterable[object]) -> str:
    """The first of them, as they are called."""
    told = ["untold" if one in ("", None) else str(one) for one in values]
    return ", ".join(told[:SHOWN]) + (", …" if len(told) > SHOWN else "")
