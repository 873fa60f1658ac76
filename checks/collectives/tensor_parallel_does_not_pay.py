"""Dividing a model over devices makes its decode steps slower, not faster.

## What it finds
As many tensor-parallel ranks as a launch asks for (else as were measured) on which a decode step of a few tokens takes
longer than on one device: what the calls between the ranks cost is more than what reading a part of the weights saves.

## Why it matters
Each token waits for two calls a layer. Replicas on single devices would answer every request sooner, and several at
once.

## What it cannot know
What an engine's own kernels take: the times are those of the collective library in a loop, an upper bound where an
engine replaces it. What a device really reads its memory with, unless `diag device` told it: below the
maker's figure dividing pays earlier, which lowers the confidence. Whether the memory of one device holds the cache
beside the weights. Prefill, and steps of many tokens: there the work is divided, too.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    Collective,
    DecodeStep,
    Evidence,
    Facts,
    Finding,
    ModelShape,
    Remedy,
    Undecided,
    check,
    size_in_words,
)

REACHED = 0.6
"""The share of the maker's bandwidth that a device is trusted to read weights with: diag's own proposal."""

WISHED = """\
{"hidden_size": 5120, "num_hidden_layers": 64, "architectures": ["Qwen3_5ForCausalLM"]}
{"schema": "diag/decode/1", "batches": [1, 256], "weights_bytes": 31000000000}
"""
HEAD = (
    '{"schema": "diag/collectives/1", "device": "cuda", "backend": "nccl", "dtype": "bf16", "launcher": "diag", "size":'
    ' 8, "ranks": [{"rank": 0, "host": "a", "device": "P800"}, {"rank": 1, "host": "a"}, {"rank": 2, "host": "a"}, '
    '{"rank": 3, "host": "a"}, {"rank": 4, "host": "a"}, {"rank": 5, "host": "a"}, {"rank": 6, "host": "a"}, {"rank": '
    '7, "host": "a"}], "results": ['
)
ROW = (
    '{"op": "all_reduce", "bytes": %s, "mode": "free-running", "in_place": true, "correct": true, "error": "", '
    '"calls": 60, "median": %s, "interval90": 0.0000001, "blocks": [[%s]], "ranks": [[%s]], "foreign_cpu": 0.0}'
)


def _sweep(alpha: float) -> str:
    """A sweep of eight ranks that take so many seconds for a call of nothing, and 0.135 ms for 2.6 MB."""
    sizes = (10240, 163840, 2621440)
    taken = [f"{alpha + size / sizes[-1] * (0.000135 - alpha):.9f}" for size in sizes]
    return HEAD + ", ".join(ROW % (size, *(us,) * 3) for size, us in zip(sizes, taken, strict=True)) + "]}\n" + WISHED


@check(
    "collectives/tensor-parallel-does-not-pay",
    severity="warning",
    about="device",
    needs=(Collective, ModelShape),
    uses=(DecodeStep,),
    words={
        "en": {
            "title": "Tensor parallelism makes decode steps slower",
            "summary": "{ranks} ranks: a decode step at batch {batch} takes {step} ms, on one device {alone} ms: "
            "{calls} calls of {size} take {call} µs each, and may take {even} µs",
            "cause": "At this size a call costs its fixed part, however little is sent. The times are those of the "
            "collective library in a loop: an upper bound where the engine has kernels of its own for it, and what it "
            "gets where it has none.",
        },
        "zh": {
            "title": "张量并行使解码变慢",
            "summary": "{ranks} 个 rank：批大小为 {batch} 的解码步需 {step} ms，单设备为 {alone} ms；每步 {calls} 次 "
            "{size} 的通信，每次 {call} µs，而盈亏平衡点为 {even} µs",
            "cause": "在该消息大小下，每次调用的开销几乎全是固定时延，与数据量无关。此处为循环调用通信库测得的时间："
            "若引擎使用自带的通信内核，则为上限；否则即为引擎实际得到的时间。",
        },
    },
    remedies=(
        Remedy(
            key="replicas",
            title={
                "en": "Serve replicas on fewer devices each, where one device holds the weights and the cache",
                "zh": "若单设备放得下权重与缓存，则改用每副本更少设备的多副本部署",
            },
            commands=("vllm serve MODEL --tensor-parallel-size 1 --data-parallel-size {ranks}",),
            safety="disruptive",
            source="https://docs.vllm.ai/en/latest/serving/parallelism_scaling.html",
        ),
        Remedy(
            key="fixed-part",
            title={
                "en": "Look for what makes small calls slow, and measure them captured in a graph as engines call them",
                "zh": "查找小消息变慢的原因，并按引擎的方式在图中捕获后测量",
            },
            commands=(
                "env | grep -E 'NCCL|RCCL|BKCL|HCCL|CCL_'; cat /etc/nccl.conf",
                "diag comm --mode graph --ranks {ranks} --sizes {bytes}",
            ),
            safety="safe",
            source="https://github.com/ModelTC/LightLLM/pull/1405",
        ),
    ),
    sources=(
        "https://github.com/vllm-project/vllm/blob/main/vllm/model_executor/layers/linear.py",
        "https://github.com/NVIDIA/nccl/blob/master/src/graph/tuning.cc",
        "https://github.com/baidu/vLLM-Kunlun",
    ),
    fires=(_sweep(0.000130), _sweep(0.000095)),
    silent=(_sweep(0.000046),),
)
def tensor_parallel_does_not_pay(facts: Facts) -> Iterator[Answer]:
    """The fewest tokens for which it does not, of each number of ranks that is chosen."""
    told = [one for one in facts.all(DecodeStep) if one.chosen and one.ranks > 1 and one.gain is not None]
    judged = [one for one in told if one.basis != "assumed" and one.fits_one is not False]
    if not judged:
        yield Undecided(reason=_why(facts))
    for ranks in dict.fromkeys(one.ranks for one in judged):
        slower = [one for one in judged if one.ranks == ranks and (one.gain or 0) < 1]
        if slower:
            yield _finding(min(slower, key=lambda one: one.batch))


def _why(facts: Facts) -> str:
    chosen = [one for one in facts.all(DecodeStep) if one.chosen and one.ranks > 1]
    if any(one.basis == "assumed" for one in chosen):
        return "not measured between as many ranks as the launch asks for"
    if any(one.fits_one is False for one in chosen):
        return "the weights do not fit in one device: there is nothing to compare with"
    if chosen and not any(one.weights_bytes for one in chosen):
        return "the shape of the model does not tell how many bytes of weights a step reads"
    return "nothing tells what a decode step of a few tokens takes on these devices"


def _finding(one: DecodeStep) -> Finding:
    alone = (one.weights_ms or 0) * one.ranks
    # With less bandwidth reading takes longer on one device, and dividing it saves more.
    doubtful = (alone - (one.weights_ms or 0)) / REACHED > one.comm_ms and one.bandwidth_from == "table"
    return Finding(
        subject=f"{one.ranks} ranks",
        confidence="low" if doubtful or one.weights_from == "estimated" else "medium",
        values={
            "ranks": one.ranks,
            "batch": one.batch,
            "step": f"{one.step_ms:.1f}",
            "alone": f"{alone:.1f}",
            "calls": one.calls,
            "size": size_in_words(one.bytes),
            "bytes": one.bytes,
            "call": f"{one.call_us:.0f}",
            "even": f"{max(0.0, one.break_even_us or 0.0):.0f}",
        },
        evidence=(Evidence.of(one),),
    )
