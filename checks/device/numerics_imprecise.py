"""An operator of a device answers nearly right, and less exactly than its type allows.

## What it finds
Elements of a product, a softmax or a norm that are further from the host's in double precision than rounding explains,
TF32 and sums that are rounded in parts allowed for, and yet all within a hundredth of it.

## Why it matters
It adds up over the layers of a model: answers differ from those of other devices, near ties between tokens fall
otherwise, and what a quantised model had to spare is gone.

## What it cannot know
Whether somebody chose it: a mode of fewer digits, or a kernel that is fast and knows it.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, DeviceNumerics, DeviceTest, Evidence, Facts, Finding, Remedy, check

# In the form of the child, recorded on a host, whose softmax was made to compute in float16; some steps are left out.
COARSE = """\
{"schema": "diag/device/1", "executable": "/opt/venv/bin/python", "devices": [{"device": "cpu", "name": \
"host", "steps": [{"step": "softmax in fp32", "operator": "softmax", "type": "fp32", "elements": 100323, \
"wrong": 78533, "worst": 5.8645e-06, "allowed": 2.931e-07, "looks": "imprecise", "extent": "all", "rows": \
[0, 128], "columns": [0, 256], "shape": [129, 257], "correct": false}], "phase": "done", "error": "", \
"free": 11712729088, "seconds": 5.72}], "torch": "2.13.0+cpu", "unseen": ""}
"""
SOUND = """\
{"schema": "diag/device/1", "executable": "/opt/venv/bin/python", "devices": [{"device": "cpu", "name": \
"host", "steps": [{"step": "matmul in bf16", "operator": "matmul", "type": "bf16", "elements": 231936, \
"wrong": 0, "worst": 0.12459, "allowed": 0.63269, "correct": true}, {"step": "softmax in fp32", "operator": \
"softmax", "type": "fp32", "elements": 100323, "wrong": 0, "worst": 5.7952e-10, "allowed": 9.5514e-08, \
"correct": true}, {"step": "cumsum in fp32", "operator": "cumsum", "type": "fp32", "elements": 337953, \
"wrong": 0, "worst": 0.0, "allowed": 0.0, "correct": true}, {"step": "exponential draws in fp32", \
"operator": "exponential draws", "type": "fp32", "elements": 524288, "wrong": 0, "worst": 0.00070168, \
"allowed": 0.0047562, "looks": "", "correct": true}], "phase": "done", "error": "", "free": 11712729088, \
"seconds": 5.72}], "torch": "2.13.0+cpu", "unseen": ""}
"""
NUMERICAL = "https://docs.pytorch.org/docs/stable/notes/numerical_accuracy.html"


@check(
    "device/numerics-imprecise",
    severity="warning",
    about="device",
    needs=(DeviceTest,),
    uses=(DeviceNumerics,),
    words={
        "en": {
            "title": "An operator of a device is less exact than its type",
            "summary": "{device} ({name}): {operator} in {dtype} is off by up to {worst}, where rounding explains "
            "{allowed}, in {wrong} of {elements} elements",
            "cause": "A mode of fewer digits is on, or the library's kernel computes in a smaller type than it says.",
        },
        "zh": {
            "title": "设备算子的精度低于其数据类型",
            "summary": "{device}（{name}）：{dtype} {operator} 误差达 {worst}，而舍入只能解释 {allowed}，"
            "涉及 {elements} 个元素中的 {wrong} 个",
            "cause": "启用了低精度模式，或计算库的内核以更低精度的类型计算。",
        },
    },
    remedies=(
        Remedy(
            key="exact",
            title={
                "en": "Turn off modes of fewer digits (of float32 products: the highest precision), and test again",
                "zh": "关闭低精度模式（fp32 矩阵乘使用最高精度），然后重测",
            },
            commands=("diag device --device {device}",),
            safety="safe",
            source=NUMERICAL,
        ),
    ),
    sources=(NUMERICAL,),
    fires=(COARSE,),
    silent=(SOUND,),
)
def numerics_imprecise(facts: Facts) -> Iterator[Answer]:
    """Each operator that is near, and not near enough."""
    for one in facts.all(DeviceNumerics):
        if one.near:
            yield Finding(
                subject=one.device,
                values={
                    "device": one.device,
                    "name": one.name,
                    "operator": one.operator,
                    "dtype": one.dtype,
                    "worst": str(one.worst),
                    "allowed": str(one.allowed),
                    "wrong": one.wrong,
                    "elements": one.elements,
                },
                confidence="medium",
                evidence=(Evidence.of(one),),
            )
