"""The ranks of a model spend most of a decode step in waiting for each other's data.

## What it finds
Calls that take more than six tenths of a decode step that was measured, on as many tensor-parallel ranks as a launch
asks for, else as were measured. The limit is diag's own proposal: nobody publishes any. Against a model's weights and
calls alone nothing is warned of, since a healthy machine passes the limit there.

## Why it matters
The devices idle meanwhile: more of them, or faster ones, change nothing, while faster calls or fewer ranks change all.

## What it cannot know
How much of the calls an engine hides behind other work, and what its own kernels take: the times are those of the
collective library in a loop, an upper bound where an engine replaces it. A measured step that is shorter than its calls
is not judged: it was measured without them, or on other ranks.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Collective, DecodeStep, Evidence, Facts, Finding, ModelShape, Remedy, Undecided, check

MOST = 0.6
HOST = "cpu"
"""The device that has neither graphs nor kernels of an engine for its calls."""

HEAD = (
    '{"schema": "diag/collectives/1", "device": "cuda", "backend": "nccl", "dtype": "bf16", "launcher": "diag", "size":'
    ' 8, "ranks": [{"rank": 0, "host": "a", "device": "P800"}, {"rank": 1, "host": "a"}, {"rank": 2, "host": "a"}, '
    '{"rank": 3, "host": "a"}, {"rank": 4, "host": "a"}, {"rank": 5, "host": "a"}, {"rank": 6, "host": "a"}, {"rank": '
    '7, "host": "a"}], "results": ['
    '{"op": "all_reduce", "bytes": 2621440, "mode": "free-running", "in_place": true, "correct": true, "error": "", '
    '"calls": 60, "median": 0.0001347, "interval90": 0.0000001, "blocks": [[0.0001347]], "ranks": [[0.0001347]], '
    '"foreign_cpu": 0.0}]}\n'
    '{"hidden_size": 5120, "num_hidden_layers": 64, "architectures": ["Qwen3_5ForCausalLM"]}\n'
)
DOMINATES = HEAD + '{"schema": "diag/decode/1", "batches": [256], "steps": [[256, 25.0]]}\n'
A_THIRD = HEAD + '{"schema": "diag/decode/1", "batches": [256], "steps": [[256, 52.8]]}\n'


@check(
    "collectives/communication-dominates",
    severity="warning",
    about="device",
    needs=(Collective, ModelShape),
    uses=(DecodeStep,),
    words={
        "en": {
            "title": "Most of a decode step is communication",
            "summary": "{ranks} ranks: {calls} calls take {comm} of {step} ms of a decode step measured at batch "
            "{batch}, {percent} %",
            "cause": "Two calls a layer wait for all ranks, and here they outweigh what the ranks compute. The times "
            "are an upper bound where the engine has kernels of its own for them.",
        },
        "zh": {
            "title": "解码步的大部分时间用于通信",
            "summary": "{ranks} 个 rank：批大小为 {batch} 的实测解码步共 {step} ms，其中 {calls} 次通信占 {comm} ms，"
            "即 {percent} %",
            "cause": "每层两次通信都要等待所有 rank，其开销已超过各 rank 的计算。"
            "若引擎使用自带的通信内核，此时间为上限。",
        },
    },
    remedies=(
        Remedy(
            key="fewer",
            title={
                "en": "Serve more replicas on fewer devices each, where they hold it: more tokens in all, none sooner",
                "zh": "在显存允许时，每副本使用更少设备并增加副本数：总吞吐更高，单个 token 不会更快",
            },
            commands=("vllm serve MODEL --tensor-parallel-size {fewer} --data-parallel-size 2",),
            safety="disruptive",
            source="https://docs.vllm.ai/en/latest/serving/parallelism_scaling.html",
        ),
        Remedy(
            key="faster",
            title={
                "en": "Use an engine's fused or one-shot kernels where its devices have them, and leave graphs on",
                "zh": "若设备支持，启用引擎自带的融合或单次通信内核，并保持图捕获开启",
            },
            commands=("diag comm --mode graph --ranks {ranks} --sizes {bytes}",),
            safety="safe",
            source="https://github.com/ModelTC/LightLLM/pull/1405",
        ),
    ),
    sources=(
        "https://github.com/vllm-project/vllm/blob/main/vllm/model_executor/layers/linear.py",
        "https://github.com/ModelTC/LightLLM/pull/1405",
        "https://github.com/baidu/vLLM-Kunlun",
    ),
    fires=(DOMINATES,),
    silent=(A_THIRD,),
)
def communication_dominates(facts: Facts) -> Iterator[Answer]:
    """The largest share of each number of ranks that is chosen."""
    told = [one for one in facts.all(DecodeStep) if one.chosen and one.basis != "assumed" and one.measured_share]
    if not told:
        yield Undecided(reason="no decode step that was measured is told for as many ranks (diag comm --step)")
    yield from (Undecided(reason=one.why_exceeded()) for one in told if one.exceeded)
    possible = [one for one in told if not one.exceeded]
    for ranks in dict.fromkeys(one.ranks for one in possible):
        worst = max((one for one in possible if one.ranks == ranks), key=lambda one: one.measured_share or 0.0)
        if (worst.measured_share or 0) > MOST:
            yield _finding(worst)


def _finding(one: DecodeStep) -> Finding:
    return Finding(
        subject=f"{one.ranks} ranks",
        confidence="medium",
        values={
            "ranks": one.ranks,
            "batch": one.batch,
            "calls": one.calls,
            "bytes": one.bytes,
            "comm": f"{one.comm_ms:.1f}",
            "step": f"{one.measured_ms:.1f}",
            "percent": round(100 * (one.measured_share or 0)),
            "fewer": max(1, one.ranks // 2),
        },
        evidence=(Evidence.of(one),),
        remedies=("fewer",) if one.device == HOST else (),
    )
