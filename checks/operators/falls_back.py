"""Operators that engines need run on the CPU instead of the accelerator, by what torch says or by what was seen.

## What it finds
Operators for which torch's dispatcher has a fallback on the accelerator, registered for the operator or for all that
have no kernel, and that the samplers, logits processors or decoder layers of vLLM and SGLang reach; and those whose
tensors were seen to go to the host, or whose launch takes as long as if they did. Those that bound a step that was
measured stand under `operators/step-on-cpu`.

## Why it matters
Such a call copies its tensors to the host, computes there and copies back while the device waits, and nothing fails.

## What it cannot know
Whether the engine takes a kernel of its own for the step; of what was not measured, what it costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diag.api import (
    Answer,
    BackendFallback,
    EngineStep,
    Evidence,
    Facts,
    Finding,
    Operator,
    OperatorScan,
    OperatorStep,
    Platform,
    Remedy,
    bounding,
    check,
    governing,
    listed,
    titles,
    unaccelerated,
)

SHOWN = 6
HEAD = (
    '{"schema": "diag/operators/1", "detectors": ["static"], "how": "static", "torch": "2.13.0+cpu", "device": '
    '"hostdev", "key": "PrivateUse1", "asked": [], "operators": [{"name": "aten::exponential_", "placement": "%s", '
    '"owner": "%s"}, {"name": "aten::sort", "placement": "%s", "owner": ""}, {"name": "aten::sort.values_stable", '
    '"placement": "%s", "owner": "%s"}], "seconds": 0.9}\n'
)
"""In the form of the child."""
FILE, WIDE = "csrc/fallback.cpp:20", "csrc/fallback.cpp:31"
ALONE = HEAD % ("fallback", FILE, "composite", "native", "")
ALL = HEAD % ("backend-fallback", WIDE, "composite", "backend-fallback", WIDE)
P800 = """\
$ xpu-smi
+-----------------------------------------------------------------------------+
| XPU-SMI               Driver Version: 5.0.21.26    XPU-RT Version: 5.0.21   |
|-------------------------------+----------------------+----------------------+
| XPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | XPU-Util  Compute M. |
|                               |             L3-Usage |            SR-IOV M. |
|===============================+======================+======================|
|   0  P800 OAM           N/A   | 00000000:03:00.0 N/A |                    0 |
| N/A   37C  N/A     85W / 400W |      0MiB / 98304MiB |      0%      Default |
|                               |      0MiB /    96MiB |             Disabled |
+-------------------------------+----------------------+----------------------+
"""
NATIVE = HEAD % ("native", "", "composite", "native", "")
OWN_SORT = HEAD % ("native", "", "native", "backend-fallback", WIDE)
REPLACED = HEAD % ("python", "fix.py:12", "composite", "native", "")
# In the form of the child, recorded on a backend made for such tests; steps and operators of no interest left out.
SLOW = """\
{"schema": "diag/operators/1", "detectors": ["dynamic"], "torch": "2.13.0+cpu", "device": "hostdev", "how": \
"dynamic", "operators": [{"name": "aten::exponential_", "overload": "", "placement": "copies", "calls": 1, \
"copying": 1, "bytes_down": 4866048, "bytes_up": 4866048, "microseconds": 43796, "steps": ["exponential-draw"], \
"shape": [8, 152064], "dtype": "float32", "elements": 1216512, "evidence": ["came whole from the host", "copied to \
the host"]}, {"name": "aten::_softmax", "overload": "out", "placement": "native", "calls": 1, "copying": 0, \
"bytes_down": 0, "bytes_up": 0, "microseconds": 40, "steps": ["exponential-draw"]}], "steps": [{"step": \
"exponential-draw", "part": "sampler", "batch": 8, "vocabulary": 152064, "profiled_seconds": 0.046072, "host": \
{"aten::exponential_": 43796, "aten::div.out": 72}}], "seconds": 1.67}
"""
QUICK = """\
{"schema": "diag/operators/1", "detectors": ["dynamic"], "torch": "2.13.0+cpu", "device": "hostdev", "how": \
"dynamic", "operators": [{"name": "aten::topk", "overload": "values", "placement": "copies", "calls": 1, "copying": \
1, "bytes_down": 21184, "bytes_up": 4800, "microseconds": 513, "steps": ["top-k"], "shape": [8, 512], "dtype": \
"float32", "elements": 4096, "evidence": ["computed on the host", "copied to the host"]}], "steps": [{"step": \
"top-k", "part": "sampler", "batch": 8, "vocabulary": 512, "profiled_seconds": 0.001258, "host": \
{"aten::topk.values": 513, "aten::masked_fill_.Scalar": 50}}], "seconds": 1.75}
"""
SOUND = """\
{"schema": "diag/operators/1", "detectors": ["dynamic"], "torch": "2.13.0+cpu", "device": "hostdev", "how": \
"dynamic", "operators": [{"name": "aten::_softmax", "overload": "out", "placement": "native", "calls": 1, \
"copying": 0, "bytes_down": 0, "bytes_up": 0, "microseconds": 43, "steps": ["exponential-draw"]}], "steps": \
[{"step": "exponential-draw", "part": "sampler", "batch": 8, "vocabulary": 152064, "profiled_seconds": 0.037717, \
"host": {"aten::_softmax.out": 43, "aten::exponential_": 31}}], "seconds": 1.72}
"""
LAUNCHES = """\
{"schema": "diag/operators/1", "detectors": ["timing"], "torch": "2.13.0+cpu", "device": "hostdev", "how": \
"timing", "operators": [{"name": "aten::exponential_", "seeded": false, "verdict": "grows", "rounds": 4, "small": \
0.0002958, "large": 0.0282555, "whole": 0.028391, "floor": 0.0015077}, {"name": "aten::exponential_", "seeded": \
true, "verdict": "grows", "rounds": 4, "small": 0.0003192, "large": 0.0330073, "whole": 0.0331471, "floor": \
0.0015077}, {"name": "aten::bincount", "seeded": false, "verdict": "unknown", "reason": "its shape depends on the \
values"}], "asynchronous": true, "small": 4096, "large": 1048576, "seconds": 3.67}
"""


@check(
    "operators/falls-back",
    severity="warning",
    about="device",
    applies=unaccelerated,
    needs=(OperatorScan,),
    uses=(BackendFallback, EngineStep, Operator, OperatorStep, Platform),
    words={
        "en": {
            "title": "Operators that engines need for every token run on the CPU",
            "summary": "{device}: {operators} on the CPU, in place of a kernel of its own{steps.en}",
            "cause": "The maker's layer of torch has no kernel for them and registers the CPU in its place, or has one "
            "that goes there by itself. What an engine does without torch (a fused sampler, an attention kernel of its "
            "own) is not slowed by it.",
        },
        "zh": {
            "title": "引擎每个 token 都要用到的算子在 CPU 上执行",
            "summary": "{device}：{operators} 没有设备内核，在 CPU 上执行{steps.zh}",
            "cause": "厂商的 torch 适配层没有这些算子的内核而注册了 CPU 回退，或其内核自行拷回主机计算。"
            "若引擎在该步骤使用自带的融合内核（如融合采样、专用注意力内核），则不受影响。",
        },
    },
    remedies=(
        Remedy(
            key="fast-random-sample",
            title={
                "en": "Let vLLM-Kunlun draw without exponential_",
                "zh": "让 vLLM-Kunlun 不使用 exponential_ 进行随机采样",
            },
            commands=("export FAST_RANDOM_SAMPLE=1",),
            safety="disruptive",
            verify="diag env-check --select kunlun/",
            source="https://github.com/baidu/vLLM-Kunlun/pull/3",
        ),
        Remedy(
            key="upgrade",
            title={
                "en": "Take a release of the maker's torch that has kernels for them",
                "zh": "更换带有这些算子内核的厂商 torch 版本",
            },
            safety="manual",
            verify="diag ops",
            source="https://github.com/intel/torch-xpu-ops/issues/262",
        ),
        Remedy(
            key="forbid",
            title={
                "en": "In a test, forbid it: the call then ends with an error whose traceback shows what made it. Not "
                "in production",
                "zh": "在测试环境中禁止回退：调用会报错，其调用栈指出来源。不要用于生产环境",
            },
            commands=("export {forbid}",),
            safety="disruptive",
            verify="env | grep -i FALLBACK",
            source="https://github.com/Ascend/pytorch/blob/9e73e708ab93/docs/zh/api/environment_variable/op_execution"
            "/TORCH_NPU_FALLBACK_CPU_DISABLE.md",
        ),
    ),
    sources=(
        "https://github.com/baidu/vLLM-Kunlun/pull/3",
        "https://github.com/intel/torch-xpu-ops/blob/ab84f925a234/src/ATen/native/xpu/XPUFallback.cpp",
        "https://github.com/Ascend/pytorch/issues/40",
    ),
    fires=(ALONE, ALL, P800 + ALONE.replace("hostdev", "cuda"), QUICK, LAUNCHES),
    silent=(NATIVE, OWN_SORT, REPLACED, SLOW, SOUND),
)
def falls_back(facts: Facts) -> Iterator[Answer]:
    """One finding for each kind of device."""
    for device in dict.fromkeys(one.device for one in facts.all(OperatorScan)):
        told = {name for one in bounding(facts, device) for name in one.operators}
        away = [one for one in facts.all(Operator) if one.device == device and one.placement != "missing"]
        rest = [one for one in away if not {one.name, one.name.partition(".")[0]} & told]
        if rest:
            yield _finding(facts, device, sorted(rest, key=lambda one: -len(one.steps)))


def _finding(facts: Facts, device: str, away: Sequence[Operator]) -> Finding:
    reached = {step for one in away for step in one.steps}
    row = governing(facts, device)
    remedies = ["upgrade", *(["forbid"] if row and row.forbid else [])]
    if row and row.vendor == "kunlun" and any(one.name == "aten::exponential_" for one in away):
        remedies.insert(0, "fast-random-sample")
    return Finding(
        subject=device,
        values={
            "device": device,
            "operators": listed([one.name for one in away]),
            "steps.en": f"; steps that need it: {titles(facts, reached, 'en')}" if reached else "",
            "steps.zh": f"；涉及步骤：{titles(facts, reached, 'zh')}" if reached else "",
            "forbid": row.forbid if row else "",
        },
        evidence=tuple(Evidence.of(one) for one in away[:SHOWN]),
        remedies=tuple(remedies),
    )
