"""The accelerator's backend hands operators to the CPU that engines need for every token.

## What it finds
Operators for which torch's dispatcher has a fallback on the accelerator, registered for the operator or for all that
have no kernel, and that the samplers, logits processors or decoder layers of vLLM and SGLang reach.

## Why it matters
Such a call copies its tensors to the host, computes there and copies back while the device waits, and nothing fails.
A sampler's operator goes over `[batch, vocabulary]` numbers for each token.

## What it cannot know
What it costs, and whether the engine takes a kernel of its own for the step. Whether kernels that are registered as the
device's own copy to the CPU by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    BackendFallback,
    EngineStep,
    Evidence,
    Facts,
    Finding,
    Operator,
    OperatorTable,
    Platform,
    Remedy,
    check,
)

SHOWN = 6
STEPS_SHOWN = 4
HEAD = (
    '{"schema": "diag/operators/1", "how": "static", "torch": "2.13.0+cpu", "device": "hostdev", "key": "PrivateUse1", '
    '"operators": [{"name": "aten::exponential_", "placement": "%s", "owner": "%s"}, {"name": "aten::sort", '
    '"placement": "%s", "owner": ""}, {"name": "aten::sort.values_stable", "placement": "%s", "owner": "%s"}], '
    '"unknown": [], "seconds": 0.9}\n'
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


@check(
    "operators/falls-back",
    severity="warning",
    about="device",
    needs=(OperatorTable,),
    uses=(BackendFallback, EngineStep, Operator, Platform),
    words={
        "en": {
            "title": "Operators that engines need for every token fall back to the CPU",
            "summary": "{device} has the CPU in place of a kernel for {operators}; steps that need it: {steps.en}",
            "cause": "The maker's layer of torch has no kernel for them and registers the CPU in its place. What an "
            "engine does without torch (a fused sampler, an attention kernel of its own) is not slowed by it.",
        },
        "zh": {
            "title": "引擎每个 token 都要用到的算子回退到 CPU",
            "summary": "{device}：{operators} 没有设备内核，在 CPU 上执行；涉及步骤：{steps.zh}",
            "cause": "厂商的 torch 适配层没有这些算子的内核，注册了 CPU 回退。若引擎在该步骤使用自带的融合内核"
            "（如融合采样、专用注意力内核），则不受影响。",
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
    fires=(ALONE, ALL, P800 + ALONE.replace("hostdev", "cuda")),
    silent=(NATIVE, OWN_SORT, REPLACED),
)
def falls_back(facts: Facts) -> Iterator[Answer]:
    """One finding for each kind of device."""
    for table in facts.all(OperatorTable):
        found = [one for one in facts.all(Operator) if one.device == table.device and one.detector == "static"]
        away = [one for one in found if one.placement in ("fallback", "backend-fallback")]
        if away:
            yield _finding(table, sorted(away, key=lambda one: -len(one.steps)), facts)


def _finding(table: OperatorTable, away: list[Operator], facts: Facts) -> Finding:
    reached = {step for one in away for step in one.steps}
    steps = [one for one in facts.all(EngineStep) if one.step in reached]
    makers = {maker for one in facts.all(Platform) for maker in one.present}
    rows = facts.all(BackendFallback)
    # A plug-in that takes the place of CUDA is known by its maker alone.
    row = next((one for one in rows if one.backend.lower() == table.device or one.vendor in makers), None)
    names = ", ".join(one.name.removeprefix("aten::") for one in away[:SHOWN])
    values: dict[str, str | int | float] = {
        "device": table.device,
        "operators": names + (", …" if len(away) > SHOWN else ""),
        "steps.en": _listed([one.title["en"] for one in steps], ", "),
        "steps.zh": _listed([one.title["zh"] for one in steps], "、"),
        "forbid": row.forbid if row else "",
    }
    evidence = [Evidence.of(one) for one in away[:SHOWN]]
    exponential = any(one.name == "aten::exponential_" for one in away)
    remedies = ["upgrade", *(["forbid"] if row and row.forbid else [])]
    if row and row.vendor == "kunlun" and exponential:
        remedies.insert(0, "fast-random-sample")
    return Finding(subject=table.device, values=values, evidence=tuple(evidence), remedies=tuple(remedies))


def _listed(titles: list[str], between: str) -> str:
    told = list(dict.fromkeys(titles))
    return between.join(told[:STEPS_SHOWN]) + (f"{between}…" if len(told) > STEPS_SHOWN else "")
