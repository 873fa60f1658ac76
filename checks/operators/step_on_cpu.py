"""An operator that runs on the CPU instead of the accelerator bounds how many tokens are generated.

## What it finds
Steps of vLLM's and SGLang's samplers and decoder layers, done with plain torch on the accelerator, in which tensors of
an operator went to the host and came back, as torch's profiler saw it, or whose launch takes as long as such a way
would, although nothing of it is seen; where that alone keeps the step below 10,000 tokens a second.

## Why it matters
The device waits meanwhile, and nothing fails. A sampler's operator goes over `[batch, vocabulary]` numbers for each
token: a draw on the CPU held eight accelerators at 32 tokens a second, where 2,300 were possible.

## What it cannot know
Whether the engine takes a kernel of its own for the step. What an operator took contains what the device still had to
do when it began.
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
SAMPLERS = {"nvidia": "flashinfer", "ascend": "ascend", "intel": "intel_xpu"}
"""What SGLang calls its sampler for a maker's devices."""
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


@check(
    "operators/step-on-cpu",
    severity="error",
    about="device",
    applies=unaccelerated,
    needs=(OperatorStep,),
    uses=(BackendFallback, EngineStep, Operator, Platform),
    words={
        "en": {
            "title": "An operator on the CPU bounds how many tokens are generated",
            "summary": "{device}: {operators} on the CPU in {step.en}: {cpu} of {ms} ms for {batch} requests and a "
            "vocabulary of {vocabulary}, hence at most {rate} tokens a second{more.en}",
            "cause": "The maker's layer of torch has no kernel of the device's own for it: it hands the operator to "
            "the CPU, or a kernel that bears the device's name does so by itself. An engine that does the step without "
            "torch (a fused sampler, an attention kernel of its own) is not slowed by it.",
        },
        "zh": {
            "title": "在 CPU 上执行的算子限制了生成速度",
            "summary": "{device}：{step.zh}中 {operators} 在 CPU 上执行：{batch} 个请求、词表 {vocabulary} 时"
            "占 {ms} ms 中的 {cpu} ms，因此每秒至多 {rate} token{more.zh}",
            "cause": "厂商的 torch 适配层没有该算子的设备内核：回退到 CPU，或名义上的设备内核自行拷回主机计算。"
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
            key="sampling-backend",
            title={
                "en": "SGLang: sample with a kernel made for the device",
                "zh": "SGLang：改用该设备的专用采样内核",
            },
            commands=("python -m sglang.launch_server --model-path MODEL --sampling-backend {backend}",),
            safety="disruptive",
            verify="curl -s localhost:30000/get_server_info | grep -o '.sampling_backend.:.[a-z_]*'",
            source="https://github.com/sgl-project/sglang/blob/001733e9b0ead27aff53e4c4494f8579ff819ee5/python/sglang"
            "/srt/layers/sampler.py",
        ),
        Remedy(
            key="hot-fix",
            title={
                "en": "Until the maker has a kernel: draw on the device by uniform_, log_ and neg_ (test it first)",
                "zh": "在厂商提供内核之前：用 uniform_、log_、neg_ 在设备上采样（先运行其检验）",
            },
            commands=("diag ops --hot-fix exponential",),
            safety="manual",
            verify="PYTHONPATH=exponential diag ops --device {device} --import PLUGIN --import exponential_on_device",
            source="https://docs.pytorch.org/docs/stable/library.html",
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
        "https://github.com/baidu/vLLM-Kunlun/pull/406",
        "https://github.com/intel/torch-xpu-ops/blob/ab84f925a234/src/ATen/native/xpu/XPUFallback.cpp",
    ),
    fires=(SLOW, P800 + SLOW.replace("hostdev", "cuda")),
    silent=(QUICK, SOUND),
)
def step_on_cpu(facts: Facts) -> Iterator[Answer]:
    """The step that is bounded most, for each kind of device."""
    for device in dict.fromkeys(one.device for one in facts.all(OperatorStep)):
        if bounded := bounding(facts, device):
            worst, *others = bounded
            names = list(dict.fromkeys(name for one in bounded for name in one.operators))
            measured = ("dynamic", "timing")
            seen = {one.name: one for one in facts.all(Operator) if one.device == device and one.detector in measured}
            row, slow = governing(facts, device), [one.step.step for one in others]
            step = {language: titles(facts, [worst.step.step], language) for language in ("en", "zh")}
            more = {language: titles(facts, slow, language, step[language]) for language in ("en", "zh")}
            draws = "aten::exponential_" in names
            kunlun = draws and row and row.vendor == "kunlun"
            forbids = row and row.forbid
            makers = {maker for one in facts.all(Platform) for maker in one.present}
            backend = next((SAMPLERS[one] for one in sorted(makers) if one in SAMPLERS), "")
            slowed = {one.step.step for one in bounded}
            sampled = any(one.step in slowed and "sglang" in one.engines for one in facts.all(EngineStep))
            told = {
                "fast-random-sample": kunlun,
                "sampling-backend": backend and sampled,
                "hot-fix": draws,
                "upgrade": True,
                "forbid": forbids,
            }
            yield Finding(
                subject=device,
                values={
                    "device": device,
                    "operators": listed(worst.operators),
                    "cpu": _rounded(worst.cpu_ms),
                    "ms": _rounded(worst.step.ms or worst.cpu_ms),
                    "batch": worst.step.batch,
                    "vocabulary": worst.step.vocabulary,
                    "rate": _rounded(worst.rate),
                    "step.en": step["en"],
                    "step.zh": step["zh"],
                    "more.en": f"; as well: {more['en']}" if more["en"] else "",
                    "more.zh": f"；同样受限：{more['zh']}" if more["zh"] else "",
                    "forbid": row.forbid if row else "",
                    "backend": backend,
                },
                evidence=tuple(map(Evidence.of, [worst.step, *(seen[one] for one in names if one in seen)][:SHOWN])),
                remedies=tuple(key for key, fits in told.items() if fits),
            )


def _rounded(value: float) -> float | int:
    """Three digits, as people compare them."""
    short = float(f"{value:.3g}")
    return int(short) if short >= 100 else short
