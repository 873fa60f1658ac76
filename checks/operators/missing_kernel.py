"""The accelerator's backend has no kernel for operators that engines need for every token.

## What it finds
Operators that have a kernel on the CPU and none on the accelerator, not even a fallback, and that the samplers, logits
processors or decoder layers of vLLM and SGLang reach when they are done with plain torch.

## Why it matters
The call raises, at the first request that takes the step: a request with penalties ends a server that served others.

## What it cannot know
Whether the engine takes a kernel of its own for the step; then nothing is missing.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, EngineStep, Evidence, Facts, Finding, Operator, OperatorTable, Remedy, check, unaccelerated

SHOWN = 6
HEAD = (
    '{"schema": "diag/operators/1", "detectors": ["static"], "how": "static", "torch": "2.13.0+cpu", "device": '
    '"hostdev", "key": "PrivateUse1", "asked": [], '
    '"operators": [{"name": "aten::cumsum", "placement": "composite", "owner": ""}, {"name": "aten::cumsum.out", '
    '"placement": "%s", "owner": ""}, {"name": "aten::fft_fftshift", "placement": "%s", "owner": ""}], '
    '"seconds": 0.9}\n'
)
"""In the form of the child."""


@check(
    "operators/missing-kernel",
    severity="warning",
    about="device",
    applies=unaccelerated,
    needs=(OperatorTable,),
    uses=(EngineStep, Operator),
    words={
        "en": {
            "title": "Operators that engines need have no kernel on the accelerator",
            "summary": "{device} has no kernel for {operators}; steps that need it: {steps.en}",
            "cause": "The maker's layer of torch registers nothing for them, and no fallback to the CPU. What an "
            "engine does without torch (a fused sampler, an attention kernel of its own) does not need them.",
        },
        "zh": {
            "title": "引擎所需的算子在加速器上没有内核",
            "summary": "{device}：{operators} 没有内核，调用即报错；涉及步骤：{steps.zh}",
            "cause": "厂商的 torch 适配层未注册这些算子，也没有 CPU 回退。"
            "若引擎在该步骤使用自带的融合内核，则不需要它们。",
        },
    },
    remedies=(
        Remedy(
            key="upgrade",
            title={
                "en": "Take a release of the maker's torch that has kernels for them",
                "zh": "更换带有这些算子内核的厂商 torch 版本",
            },
            safety="manual",
            verify="diag ops",
            source="https://docs.pytorch.org/tutorials/advanced/extend_dispatcher",
        ),
    ),
    sources=(
        "https://docs.pytorch.org/tutorials/advanced/extend_dispatcher",
        "https://github.com/pytorch/pytorch/pull/58065",
    ),
    fires=(HEAD % ("missing", "composite"),),
    silent=(HEAD % ("native", "missing"),),
)
def missing_kernel(facts: Facts) -> Iterator[Answer]:
    """One finding for each kind of device."""
    for table in facts.all(OperatorTable):
        found = [one for one in facts.all(Operator) if one.device == table.device and one.placement == "missing"]
        if found:
            steps = [one for one in facts.all(EngineStep) if any(one.step in operator.steps for operator in found)]
            names = ", ".join(one.name.removeprefix("aten::") for one in found[:SHOWN])
            yield Finding(
                subject=table.device,
                confidence="medium",
                values={
                    "device": table.device,
                    "operators": names + (", …" if len(found) > SHOWN else ""),
                    "steps.en": ", ".join(dict.fromkeys(one.title["en"] for one in steps[:SHOWN])),
                    "steps.zh": "、".join(dict.fromkeys(one.title["zh"] for one in steps[:SHOWN])),
                },
                evidence=tuple(Evidence.of(one) for one in found[:SHOWN]),
                remedies=("upgrade",),
            )
