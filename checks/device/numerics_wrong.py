"""A device gives results that are not those of the host, or data that are not those it was given.

## What it finds
A product of small whole numbers, which is exact in each type, that differs from the host's in double precision; a copy
within the device, or to it and back, that comes back changed; a kernel that adds one and does not. Products, softmax,
sort, top-k, running sums and norms in float32, bfloat16, float16, int8 and float8 with an element that is further from
the host's than rounding explains, TF32 and sums that are rounded in parts allowed for; random numbers that are not
drawn from their distribution: by chance a sound device fails less than twice in 10^9 tests.

## Why it matters
Whatever a model on this device says is worth nothing, and nothing fails: it is seen as bad answers, or as a loss that
does not fall.

## What it cannot know
Whether the device, the link, the memory of the host or the library of kernels errs; other shapes than those tried (a
softmax of Intel's erred for rows just longer than a power of two); of a device that errs once an hour a test of seconds
sees nothing, nor of one wrong random number that could have been drawn.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    DeviceMeasure,
    DeviceMemory,
    DeviceNumerics,
    DeviceTest,
    Evidence,
    Facts,
    Finding,
    HostLink,
    MatrixProduct,
    Remedy,
    check,
)

# In the form of the child, recorded on a host, by itself and with a torch whose products were spoilt in one element.
SOUND = """\
{"schema": "diag/device/1", "executable": "/opt/venv/bin/python", "devices": [{"device": "cpu", "name": \
"host", "steps": [{"step": "memory by copy", "read": 268435456, "written": 268435456, "correct": true, \
"seconds": 0.046367202, "fastest": 0.039230376, "samples": 5, "calls": 1}, {"step": "memory by kernel", \
"read": 268435456, "written": 268435456, "correct": true, "seconds": 0.038581907, "fastest": 0.037171046, \
"samples": 5, "calls": 1}, {"step": "matrix product in bf16", "type": "bf16", "size": 256, "operations": \
33554432, "wrong": 0, "correct": true, "seconds": 0.029501896, "fastest": 0.025733861, "samples": 5, \
"calls": 1}, {"step": "matrix product in fp16", "type": "fp16", "size": 256, "operations": 33554432, \
"wrong": 0, "correct": true, "seconds": 0.025798376, "fastest": 0.025329066, "samples": 6, "calls": 1}, \
{"step": "matrix product in fp32", "type": "fp32", "size": 1024, "operations": 2147483648, "wrong": 0, \
"correct": true, "seconds": 0.013304306, "fastest": 0.01214823, "samples": 11, "calls": 1}], "phase": \
"done", "error": "", "free": 11712729088, "seconds": 5.72}], "torch": "2.13.0+cpu", "unseen": ""}
"""
SPOILT = """\
{"schema": "diag/device/1", "executable": "/opt/venv/bin/python", "devices": [{"device": "cpu", "name": \
"host", "steps": [{"step": "memory by copy", "read": 268435456, "written": 268435456, "correct": true, \
"seconds": 0.018960637, "fastest": 0.017818503, "samples": 8, "calls": 1}, {"step": "memory by kernel", \
"read": 268435456, "written": 268435456, "correct": true, "seconds": 0.018691941, "fastest": 0.017803766, \
"samples": 8, "calls": 1}, {"step": "matrix product in bf16", "type": "bf16", "size": 256, "operations": \
33554432, "wrong": 1, "correct": false, "seconds": 0.025591426, "fastest": 0.025151195, "samples": 6, \
"calls": 1}, {"step": "matrix product in fp16", "type": "fp16", "size": 256, "operations": 33554432, \
"wrong": 0, "correct": true, "seconds": 0.024626406, "fastest": 0.024367804, "samples": 6, "calls": 1}, \
{"step": "matrix product in fp32", "type": "fp32", "size": 1024, "operations": 2147483648, "wrong": 0, \
"correct": true, "seconds": 0.013068596, "fastest": 0.012334718, "samples": 11, "calls": 1}], "phase": \
"done", "error": "", "free": 11788648448, "seconds": 4.0}], "torch": "2.13.0+cpu", "unseen": ""}
"""
# The same of operators, some steps left out: a softmax that wrote a stripe, and draws a tenth too large.
EXACT = """\
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
STRIPE = """\
{"schema": "diag/device/1", "executable": "/opt/venv/bin/python", "devices": [{"device": "cpu", "name": \
"host", "steps": [{"step": "matmul in bf16", "operator": "matmul", "type": "bf16", "elements": 231936, \
"wrong": 0, "worst": 0.12459, "allowed": 0.63269, "correct": true}, {"step": "softmax in fp32", "operator": \
"softmax", "type": "fp32", "elements": 100323, "wrong": 4224, "worst": 0.24971, "allowed": 3.6683e-08, \
"looks": "constant", "extent": "block", "rows": [0, 32], "columns": [512, 639], "shape": [33, 1025], \
"correct": false}, {"step": "cumsum in fp32", "operator": "cumsum", "type": "fp32", "elements": 337953, \
"wrong": 0, "worst": 0.0, "allowed": 0.0, "correct": true}, {"step": "exponential draws in fp32", \
"operator": "exponential draws", "type": "fp32", "elements": 524288, "wrong": 0, "worst": 0.034931, \
"allowed": 0.0047562, "looks": "distribution", "correct": false}], "phase": "done", "error": "", "free": \
11712729088, "seconds": 5.72}], "torch": "2.13.0+cpu", "unseen": ""}
"""
SHOWN = 4
"""Steps that the summary tells; all are evidence."""
LOOKS = {
    "nan": ("no numbers", "出现 NaN"),
    "infinite": ("infinite", "出现无穷大"),
    "zero": ("all zero", "全为 0"),
    "constant": ("all the same", "全部相同"),
    "permuted": ("right values in wrong places", "数值正确但位置错乱"),
    "scaled": ("all by one factor", "均相差同一倍数"),
}
EXTENTS = {
    "one": ("row {rows}, column {columns} of {shape}", "{shape} 的第 {rows} 行第 {columns} 列"),
    "block": ("in rows {rows}, columns {columns} of {shape}", "集中在 {shape} 的第 {rows} 行、第 {columns} 列"),
    "scattered": ("scattered over rows {rows} of {shape}", "分散在 {shape} 的第 {rows} 行"),
    "all": ("everywhere", "遍布全部元素"),
}
DRAWN = {
    "constant": ("are all the same", "全部相同"),
    "outside": ("hold {wrong} that the distribution does not have", "有 {wrong} 个不属于该分布的值"),
    "repeated": ("come again", "重复出现"),
    "ordered": ("are not independent: neighbours rise or fall too often", "不独立：相邻数的大小关系有偏"),
    "distribution": (
        "do not follow that distribution: {worst} apart, by chance at most {allowed}",
        "不服从该分布：分布函数距离 {worst}，随机波动最多 {allowed}",
    ),
}


@check(
    "device/numerics-wrong",
    severity="error",
    about="device",
    needs=(DeviceTest,),
    uses=(DeviceMemory, DeviceNumerics, HostLink, MatrixProduct),
    words={
        "en": {
            "title": "A device computes or copies wrongly",
            "summary": "{device} ({name}) errs: {what.en}",
            "cause": "The device, its memory or its link is faulty, or the library that computes was not built for it.",
        },
        "zh": {
            "title": "设备计算或复制结果错误",
            "summary": "{device}（{name}）出错：{what.zh}",
            "cause": "设备、显存或链路有故障，或计算库不是为该设备构建的。",
        },
    },
    remedies=(
        Remedy(
            key="again",
            title={
                "en": "Take it out of use and test again, then with another torch: what stays belongs to the device",
                "zh": "停用该设备并重测，再换一个 torch 测试：仍然出错则属设备故障",
            },
            commands=("diag device --device {device} --budget 60",),
            safety="safe",
            source="https://arxiv.org/abs/2102.11245",
        ),
    ),
    sources=(
        "https://arxiv.org/abs/2102.11245",
        "https://github.com/microsoft/superbenchmark/blob/main/docs/user-tutorial/benchmarks/model-benchmarks.md",
        "https://docs.pytorch.org/docs/stable/notes/numerical_accuracy.html",
        "https://github.com/intel/torch-xpu-ops/issues/4772",
        "https://github.com/pytorch/pytorch/issues/48841",
        "https://projecteuclid.org/euclid.aop/1176990746",
    ),
    explains=("collectives/wrong-result",),
    fires=(SPOILT, STRIPE),
    silent=(SOUND, EXACT),
)
def numerics_wrong(facts: Facts) -> Iterator[Answer]:
    """All steps of a device that were wrong, as one finding."""
    steps: list[DeviceMeasure | DeviceNumerics] = [*facts.all(MatrixProduct), *facts.all(DeviceMemory)]
    steps += [*facts.all(HostLink), *(one for one in facts.all(DeviceNumerics) if not one.near)]
    for test in facts.all(DeviceTest):
        wrong = [one for one in steps if one.device == test.device and one.correct is False]
        if wrong:
            english, chinese = zip(*map(_what, wrong[:SHOWN]), strict=True)
            more = len(wrong) - len(english)
            yield Finding(
                subject=test.device,
                values={
                    "device": test.device,
                    "name": test.name,
                    "what.en": "; ".join(english) + (f"; and {more} more" if more else ""),
                    "what.zh": "；".join(chinese) + (f"；另有 {more} 项" if more else ""),
                },
                evidence=tuple(map(Evidence.of, wrong)),
            )


def _what(one: DeviceMeasure | DeviceNumerics) -> tuple[str, str]:
    if isinstance(one, DeviceNumerics):
        return _answered(one) if one.extent else _drawn(one)
    if isinstance(one, MatrixProduct):
        english = f"{one.wrong} elements of a product in {one.dtype} are wrong"
        return english, f"{one.dtype} 矩阵乘有 {one.wrong} 个元素错误"
    if isinstance(one, HostLink):
        return f"data come back changed ({one.direction})", f"传输后数据改变（{one.direction}）"
    return "memory holds something else than was written", "显存内容与写入的不同"


def _answered(one: DeviceNumerics) -> tuple[str, str]:
    """Which operator, in how many elements, how it looks, where, and by how much."""
    place = {"rows": _span(one.rows), "columns": _span(one.columns), "shape": " x ".join(map(str, one.shape))}
    english, chinese = (text.format(**place) for text in EXTENTS[one.extent])
    looks, mark = LOOKS.get(one.looks, ("", "")), "" if one.worst is None else f"{one.worst:.2g}"
    off = (f"off by up to {mark}", f"最大误差 {mark}") if mark else ("", "")
    return (
        f"{one.operator} in {one.dtype}: {one.wrong} of {one.elements} elements are wrong "
        f"({', '.join(filter(None, (looks[0], english, off[0])))})",
        f"{one.dtype} {one.operator}：{one.elements} 个元素中有 {one.wrong} 个错误"
        f"（{'，'.join(filter(None, (looks[1], chinese, off[1])))}）",
    )


def _span(ends: tuple[int, ...]) -> str:
    return "-".join(map(str, dict.fromkeys(ends)))


def _drawn(one: DeviceNumerics) -> tuple[str, str]:
    english, chinese = (text.format(**one.told()) for text in DRAWN[one.looks])
    return f"{one.operator} in {one.dtype} {english}", f"{one.dtype} {one.operator.partition(' ')[0]} 随机数{chinese}"
