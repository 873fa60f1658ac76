"""Matrix products are much slower on a device than on others of its model.

## What it finds
A large product in bf16, fp16 or fp32 of which even the fastest call is below somebody's threshold for this model, or
three quarters of what was published of it; where nobody published anything, of bf16 below three quarters of the
smallest share of the maker's figure that a sound device was published with.

## Why it matters
The prefill of a model consists of such products.

## What it cannot know
Whether the device or its software is slow: the library that multiplies makes as much as the device (an MI300X went from
450 to 668 TFLOPS by a release of its software). Small products, as those of a decode, are limited by other things.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Accelerator,
    Answer,
    DeviceBaseline,
    DeviceModel,
    DeviceTest,
    Evidence,
    Facts,
    Finding,
    MatrixProduct,
    Package,
    Platform,
    Remedy,
    Undecided,
    Vendor,
    check,
    expectation,
)

MAMF = "https://github.com/stas00/ml-engineering/blob/master/compute/accelerator/README.md"

# In the form of the child; 450 and 668.4 TFLOPS are what ml-engineering measured of MI300X under ROCm 6.1 and later.
EARLY = """\
{"schema": "diag/device/1", "executable": "/opt/venv/bin/python", "devices": [{"device": "cuda:0", "name": \
"AMD Instinct MI300X", "memory_bytes": 205822885888, "address": "", "steps": [{"step": "matrix product in \
bf16", "type": "bf16", "size": 8192, "operations": 1099511627776, "wrong": 0, "correct": true, "seconds": \
0.002443359, "fastest": 0.002443359, "samples": 40, "calls": 1}], "phase": "done", "error": "", "seconds": \
9.1}], "torch": "2.9.1", "unseen": ""}
"""
LATER = """\
{"schema": "diag/device/1", "executable": "/opt/venv/bin/python", "devices": [{"device": "cuda:0", "name": \
"AMD Instinct MI300X", "memory_bytes": 205822885888, "address": "", "steps": [{"step": "matrix product in \
bf16", "type": "bf16", "size": 8192, "operations": 1099511627776, "wrong": 0, "correct": true, "seconds": \
0.00164499, "fastest": 0.00164499, "samples": 40, "calls": 1}], "phase": "done", "error": "", "seconds": \
9.1}], "torch": "2.9.1", "unseen": ""}
"""
# 794.5 of H100 (MAMF); FlagPerf's A100 of 40 GB in three types.
H100 = """\
{"schema": "diag/device/1", "executable": "/opt/venv/bin/python", "devices": [{"device": "cuda:0", "name": \
"NVIDIA H100 80GB HBM3", "memory_bytes": 85520809984, "address": "", "steps": [{"step": "matrix product in \
bf16", "type": "bf16", "size": 8192, "operations": 1099511627776, "wrong": 0, "correct": true, "seconds": \
0.001383904, "fastest": 0.001383904, "samples": 40, "calls": 1}], "phase": "done", "error": "", "seconds": \
9.1}], "torch": "2.9.1", "unseen": ""}
"""
A100 = """\
{"schema": "diag/device/1", "executable": "/opt/venv/bin/python", "devices": [{"device": "cuda:0", "name": \
"NVIDIA A100-SXM4-40GB", "memory_bytes": 42298834944, "address": "", "steps": [{"step": "matrix product in \
bf16", "type": "bf16", "size": 8192, "operations": 1099511627776, "wrong": 0, "correct": true, "seconds": \
0.004241943, "fastest": 0.004241943, "samples": 40, "calls": 1}, {"step": "matrix product in fp16", "type": \
"fp16", "size": 8192, "operations": 1099511627776, "wrong": 0, "correct": true, "seconds": 0.004371816, \
"fastest": 0.004371816, "samples": 40, "calls": 1}, {"step": "matrix product in fp32", "type": "fp32", \
"size": 4096, "operations": 137438953472, "wrong": 0, "correct": true, "seconds": 0.007214643, "fastest": \
0.007214643, "samples": 40, "calls": 1}], "phase": "done", "error": "", "seconds": 9.1}], "torch": "2.9.1", \
"unseen": ""}
"""


@check(
    "device/matrix-product-slow",
    severity="warning",
    about="device",
    needs=(MatrixProduct,),
    uses=(Accelerator, DeviceBaseline, DeviceModel, DeviceTest, Package, Platform, Vendor),
    words={
        "en": {
            "title": "Matrix products are slower than this model's",
            "summary": "{device} ({name}): {value} TFLOPS in {dtype}; of this model at least {least} are expected",
            "cause": "Its clock is lowered (heat, a power limit), others use it meanwhile, or the release of the "
            "library that multiplies has no fast kernel for this device.",
        },
        "zh": {
            "title": "矩阵乘速度低于同型号应有水平",
            "summary": "{device}（{name}）：{dtype} 为 {value} TFLOPS；该型号至少应达到 {least}",
            "cause": "频率被降低（过热或功率限制）、测量时被他人占用，或所用矩阵库版本缺少该设备的高速内核。",
        },
    },
    remedies=(
        Remedy(
            key="again",
            title={
                "en": "Test again while nothing else runs, and look at its clocks meanwhile",
                "zh": "在无其他任务时重新测试，并同时观察其频率",
            },
            commands=("diag device --device {device}",),
            safety="safe",
            source=MAMF,
        ),
        Remedy(
            key="newer",
            title={
                "en": "It stays so: test with a newer torch and runtime",
                "zh": "结果依旧：换用更新的 torch 与运行时再测",
            },
            safety="manual",
            verify="diag device --device {device} --python NEWER",
            source=MAMF,
        ),
    ),
    sources=(MAMF, "https://github.com/ROCm/cvs", "https://github.com/FlagOpen/FlagPerf/tree/main/base/benchmarks"),
    explains=("device/slower-than-sisters",),
    fires=(EARLY,),
    silent=(LATER, H100, A100),
)
def matrix_product_slow(facts: Facts) -> Iterator[Answer]:
    """Each product beside what its model must reach."""
    for one in facts.all(MatrixProduct):
        expected = expectation(facts, one, one.dtype)
        if expected is None:
            yield Undecided(reason=f"{one.device}: nothing is known of how fast it must be in {one.dtype}")
        elif one.best < expected.least:
            yield Finding(
                subject=one.device,
                values={
                    "device": one.device,
                    "name": one.name,
                    "dtype": one.dtype,
                    "value": f"{one.best:.4g}",
                    "least": f"{expected.least:.4g}",
                },
                confidence="medium",
                evidence=(Evidence.of(one),),
                source=expected.row.source,
                checked=expected.row.checked,
            )
