"""The ranks of a model spend a good part of a decode step in waiting for each other's data.

## What it finds
Calls that take from three to six tenths of a decode step that was measured, or three tenths and more of the weights and
calls of a step of a few tokens, on as many tensor-parallel ranks as a launch asks for, else as were measured. The
limits are diag's own proposal: nobody publishes any.

## Why it matters
It is what faster calls or fewer ranks could win at most; where it is more, `collectives/communication-dominates` says
so.

## What it cannot know
How much of the calls an engine hides behind other work, and what its own kernels take: the times are those of the
collective library in a loop, an upper bound where an engine replaces it. Against weights and calls alone the share is
an upper bound as well, for a step does more.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Collective, DecodeStep, Evidence, Facts, Finding, ModelShape, Remedy, Undecided, check

MUCH, MOST = 0.3, 0.6
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
A_THIRD = HEAD + '{"schema": "diag/decode/1", "batches": [256], "steps": [[256, 52.8]]}\n'
OF_FEW_TOKENS = HEAD.replace("2621440", "10240") + (
    '{"schema": "diag/decode/1", "batches": [1], "weights_bytes": 31000000000}\\n'
)
A_SIXTH = HEAD + '{"schema": "diag/decode/1", "batches": [256], "steps": [[256, 104.0]]}\n'
DOMINATES = HEAD + '{"schema": "diag/decode/1", "batches": [256], "steps": [[256, 25.0]]}\n'


@check(
    "collectives/communication-heavy",
    severity="info",
    about="device",
    needs=(Collective, ModelShape),
    uses=(DecodeStep,),
    words={
        "en": {
            "title": "Communication is a good part of a decode step",
            "summary": "{ranks} ranks: {calls} calls take {comm} of {step} ms of a decode step at batch {batch}, "
            "{percent} % ({basis.en})",
            "cause": "Two calls a layer wait for all ranks. The times are an upper bound where the engine has "
            "kernels of its own for them.",
        },
        "zh": {
            "title": "通信占解码步的较大比例",
            "summary": "{ranks} 个 rank：批大小为 {batch} 的解码步共 {step} ms，其中 {calls} 次通信占 {comm} ms，即 "
            "{percent} %（{basis.zh}）",
            "cause": "每层两次通信都要等待所有 rank。若引擎使用自带的通信内核，此时间为上限。",
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
    fires=(A_THIRD, OF_FEW_TOKENS),
    silent=(A_SIXTH, DOMINATES),
)
def communication_heavy(facts: Facts) -> Iterator[Answer]:
    """The largest share of each number of ranks that is chosen, a measured one before the model's own."""
    told = [one for one in facts.all(DecodeStep) if one.chosen and one.basis != "assumed" and one.told_share]
    if not told:
        yield Undecided(reason="nothing tells what a decode step takes on as many ranks, nor of a measured one")
    yield from (Undecided(reason=one.why_exceeded()) for one in told if one.exceeded)
    possible = [one for one in told if not one.exceeded]
    for ranks in dict.fromkeys(one.ranks for one in possible):
        own = [one for one in possible if one.ranks == ranks]
        worst = max([one for one in own if one.measured_share] or own, key=lambda one: one.told_share or 0.0)
        if (worst.told_share or 0) >= MUCH and (worst.measured_share or 0) <= MOST:
            yield _finding(worst)


def _finding(one: DecodeStep) -> Finding:
    given = one.measured_share is not None
    return Finding(
        subject=f"{one.ranks} ranks",
        confidence="medium" if given else "low",
        values={
            "ranks": one.ranks,
            "batch": one.batch,
            "calls": one.calls,
            "bytes": one.bytes,
            "comm": f"{one.comm_ms:.1f}",
            "step": f"{(one.measured_ms if given else one.step_ms) or 0:.1f}",
            "percent": round(100 * (one.told_share or 0)),
            "fewer": max(1, one.ranks // 2),
            "basis.en": "of a measured step" if given else "of weights and calls alone",
            "basis.zh": "占实测步长" if given else "仅计权重读取与通信",
        },
        evidence=(Evidence.of(one),),
        remedies=("fewer",) if one.device == HOST else (),
    )
