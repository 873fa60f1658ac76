"""A step of an engine's sampler or decoder raises on the accelerator, done with plain torch.

## What it finds
Steps that diag replayed and that ended with an exception, with the operator in which they did: most often the draw of a
request that brought its own seed, whose generator a fallback to the CPU refuses.

## Why it matters
The first request that takes the step ends with it, and in most engines the server does, too.

## What it cannot know
Whether the engine takes a kernel of its own for the step.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    EngineStep,
    Evidence,
    Facts,
    Finding,
    Operator,
    OperatorStep,
    Remedy,
    check,
    cut,
    unaccelerated,
)

SHOWN = 6
LONGEST = 160
"""Characters of an exception in a summary."""
# In the form of the child, recorded on a backend made for such tests; steps and operators of no interest left out.
SEEDED = """\
{"schema": "diag/operators/1", "detectors": ["dynamic"], "torch": "2.13.0+cpu", "device": "hostdev", "how": \
"dynamic", "operators": [{"name": "aten::exponential_", "overload": "", "placement": "copies", "calls": 2, \
"copying": 2, "bytes_down": 18432, "bytes_up": 16384, "microseconds": 730, "steps": ["seeded-exponential-draw"], \
"shape": [8, 512], "dtype": "float32", "elements": 4096, "evidence": ["came whole from the host", "copied to the \
host"]}, {"name": "aten::_softmax", "overload": "out", "placement": "native", "calls": 1, "copying": 0, \
"bytes_down": 0, "bytes_up": 0, "microseconds": 46, "steps": ["seeded-exponential-draw"]}], "steps": [{"step": \
"seeded-exponential-draw", "part": "sampler", "batch": 8, "vocabulary": 512, "error": "RuntimeError: Expected a \
'cpu' device type for generator but found 'hostdev'", "operator": "aten::exponential_", "host": \
{"aten::exponential_": 730, "aten::_softmax.out": 46}}], "seconds": 0.54}
"""
SOUND = """\
{"schema": "diag/operators/1", "detectors": ["dynamic"], "torch": "2.13.0+cpu", "device": "hostdev", "how": \
"dynamic", "operators": [{"name": "aten::_softmax", "overload": "out", "placement": "native", "calls": 1, \
"copying": 0, "bytes_down": 0, "bytes_up": 0, "microseconds": 43, "steps": ["exponential-draw"]}], "steps": \
[{"step": "exponential-draw", "part": "sampler", "batch": 8, "vocabulary": 152064, "profiled_seconds": 0.037717, \
"host": {"aten::_softmax.out": 43, "aten::exponential_": 31}}], "seconds": 1.72}
"""
RAISED = """\
{"schema": "diag/operators/1", "detectors": ["dynamic"], "torch": "2.13.0+cpu", "device": "hostdev", "how": \
"dynamic", "operators": [{"name": "aten::_softmax", "overload": "out", "placement": "native", "calls": 1, \
"copying": 0, "bytes_down": 0, "bytes_up": 0, "microseconds": 12, "steps": ["top-k-top-p"]}], "steps": [{"step": \
"top-k-top-p", "part": "sampler", "batch": 8, "vocabulary": 512, "error": "NotImplementedError: Could not run \
'aten::cumsum.out' with arguments from the 'hostdev' backend. This could be because the operator doesn't exist for \
this backend, or was omitted during the selective/", "operator": "aten::cumsum.out", "host": {"aten::cumsum.out": \
135, "aten::sort.values_stable": 36}}], "seconds": 1.62}
"""
MISSING = """\
{"schema": "diag/operators/1", "detectors": ["static", "dynamic"], "how": "static", "torch": "2.13.0+cpu", "device": \
"hostdev", "key": "PrivateUse1", "asked": [], "operators": [{"name": "aten::cumsum.out", "placement": "missing", \
"owner": ""}], "seconds": 0.2}
"""


@check(
    "operators/step-raises",
    severity="warning",
    about="device",
    applies=unaccelerated,
    needs=(OperatorStep,),
    uses=(EngineStep, Operator),
    words={
        "en": {
            "title": "A step of an engine raises on the accelerator",
            "summary": "{device}: {steps.en} raises{operator.en}: {error}",
            "cause": "The maker's layer of torch lacks something that the step needs: a kernel, a type, or one that "
            "takes the generator of a request with a seed.",
        },
        "zh": {
            "title": "引擎的某一步在加速器上报错",
            "summary": "{device}：{steps.zh}报错{operator.zh}：{error}",
            "cause": "厂商的 torch 适配层缺少该步骤所需的能力：内核、数据类型，或接受带 seed 请求的随机数生成器。",
        },
    },
    remedies=(
        Remedy(
            key="upgrade",
            title={
                "en": "Take a release of the maker's torch that has it, or keep requests from taking the step",
                "zh": "更换支持该步骤的厂商 torch 版本，或避免请求走到这一步",
            },
            safety="manual",
            verify="diag ops",
            source="https://github.com/intel/torch-xpu-ops/issues/206",
        ),
    ),
    sources=("https://github.com/intel/torch-xpu-ops/issues/206",),
    fires=(SEEDED,),
    silent=(SOUND, MISSING + RAISED),
)
def step_raises(facts: Facts) -> Iterator[Answer]:
    """One finding for each operator that raises; those that the dispatcher has no kernel for are told elsewhere."""
    missing = {(one.device, one.name) for one in facts.all(Operator) if one.placement == "missing"}
    told: dict[tuple[str, str], list[OperatorStep]] = {}
    for step in facts.all(OperatorStep):
        if step.error and (step.device, step.operator) not in missing:
            told.setdefault((step.device, step.operator or step.error), []).append(step)
    for (device, _), steps in told.items():
        yield _finding(facts, device, steps)


def _finding(facts: Facts, device: str, steps: list[OperatorStep]) -> Finding:
    names = {one.step for one in steps}
    titles = [one.title for one in facts.all(EngineStep) if one.step in names][:SHOWN]
    operator = steps[0].operator.removeprefix("aten::")
    return Finding(
        subject=f"{device} {operator}".rstrip(),
        values={
            "device": device,
            "steps.en": ", ".join(one["en"] for one in titles),
            "steps.zh": "、".join(one["zh"] for one in titles),
            "operator.en": f" in {operator}" if operator else "",
            "operator.zh": f"（{operator}）" if operator else "",
            "error": cut(steps[0].error, LONGEST),
        },
        confidence="medium",
        evidence=tuple(Evidence.of(one) for one in steps[:SHOWN]),
    )
