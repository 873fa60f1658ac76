"""SYCL sees Intel's GPU through OpenCL alone, not through Level Zero.

## What it finds
A list of `sycl-ls` with GPUs under `opencl:gpu` and none under `level_zero:gpu`.

## Why it matters
torch for XPU uses Level Zero: it counts no device, and the engine does not start on it.

## What it cannot know
Whether a variable hid the other back end when the list was taken: where `ONEAPI_DEVICE_SELECTOR` is known to be set, it
is undecided. A program that uses OpenCL is not affected.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Accelerator, Answer, Evidence, Facts, Finding, Remedy, Setting, TorchBuild, Undecided, check

FILTERS = ("ONEAPI_DEVICE_SELECTOR", "SYCL_DEVICE_FILTER")

OPENCL_ALONE = """\
[opencl:cpu][opencl:0] Intel(R) OpenCL, Intel(R) Core(TM) i9-10900X CPU @ 3.70GHz OpenCL 3.0 (Build 0) \
[2024.18.6.0.02_160000]
[opencl:gpu][opencl:1] Intel(R) OpenCL Graphics, Intel(R) Arc(TM) A770 Graphics OpenCL 3.0 NEO  [23.17.26241.33]
"""
MAX_1550 = """\
[opencl:acc:0] Intel(R) FPGA Emulation Platform for OpenCL(TM), Intel(R) FPGA Emulation Device OpenCL 1.2  \
[2024.17.3.0.08_160000]
[opencl:cpu:1] Intel(R) OpenCL, Intel(R) Xeon(R) Platinum 8480+ OpenCL 3.0 (Build 0) [2023.16.7.0.21_160000]
[opencl:gpu:2] Intel(R) OpenCL Graphics, Intel(R) Data Center GPU Max 1550 OpenCL 3.0 NEO  [23.52.28202.51]
[opencl:gpu:3] Intel(R) OpenCL Graphics, Intel(R) Data Center GPU Max 1550 OpenCL 3.0 NEO  [23.52.28202.51]
"""
BOTH = """\
[opencl:cpu:1] Intel(R) OpenCL, 13th Gen Intel(R) Core(TM) i7-13700K OpenCL 3.0 (Build 0) [2023.16.10.0.17_160000]
[opencl:gpu:2] Intel(R) OpenCL Graphics, Intel(R) Arc(TM) A770 Graphics OpenCL 3.0 NEO  [23.30.26918.50]
[ext_oneapi_level_zero:gpu:0] Intel(R) Level-Zero, Intel(R) Arc(TM) A770 Graphics 1.3 [1.3.26918]
"""


@check(
    "intel/level-zero-missing",
    severity="error",
    about="intel",
    needs=(Accelerator,),
    uses=(Setting, TorchBuild),
    words={
        "en": {
            "title": "Intel's GPU is not offered by Level Zero",
            "summary": "sycl-ls lists {device} under OpenCL alone",
            "cause": "The Level Zero driver (libze-intel-gpu1, formerly intel-level-zero-gpu) or its loader (libze1) "
            "is missing, or the two are of different releases.",
        },
        "zh": {
            "title": "Level Zero 未提供 Intel GPU",
            "summary": "sycl-ls 仅在 OpenCL 下列出 {device}",
            "cause": "缺少 Level Zero 驱动（libze-intel-gpu1，旧名 intel-level-zero-gpu）或其加载器（libze1），"
            "或二者版本不一致。",
        },
    },
    remedies=(
        Remedy(
            key="install",
            title={
                "en": "Install the loader and the driver of Level Zero together, of one release",
                "zh": "同时安装同一版本的 Level Zero 加载器与驱动",
            },
            commands=("dpkg -l | grep -E 'libze|level-zero'", "sudo apt-get install libze1 libze-intel-gpu1"),
            safety="disruptive",
            verify="sycl-ls | grep level_zero:gpu",
            source="https://github.com/intel/compute-runtime/issues/764",
        ),
        Remedy(
            key="open",
            title={
                "en": "See whether the user may open the device files, and whether a variable hides the back end",
                "zh": "检查当前用户能否打开设备文件，以及是否有环境变量隐藏了该后端",
            },
            commands=("ls -l /dev/dri", "id", "env | grep -E 'ONEAPI_DEVICE_SELECTOR|SYCL_DEVICE_FILTER|ZE_'"),
            safety="safe",
            verify="sycl-ls | grep level_zero:gpu",
            source="https://github.com/intel/intel-extension-for-pytorch/issues/651",
        ),
    ),
    sources=(
        "https://github.com/intel/compute-runtime/issues/764",
        "https://github.com/intel/compute-runtime/issues/477",
        "https://github.com/intel/intel-extension-for-pytorch/issues/622",
        "https://github.com/intel/intel-extension-for-pytorch/issues/678",
        "https://github.com/pytorch/pytorch/issues/179891",
    ),
    explains=("torch/device-unavailable",),
    fires=(OPENCL_ALONE, MAX_1550),
    silent=(BOTH,),
)
def level_zero_missing(facts: Facts) -> Iterator[Answer]:
    """Compare the back ends that list a device."""
    listed = [one for one in facts.all(Accelerator) if one.vendor == "intel" and one.seen_by == "tool"]
    native = [one for one in listed if "level_zero:gpu" in one.origin.quote]
    plain = [one for one in listed if "opencl:gpu" in one.origin.quote]
    hidden = next((one for one in facts.all(Setting) if one.name in FILTERS and one.value), None)
    if native or any(one.available for one in facts.all(TorchBuild)):
        return
    if not plain or hidden:
        yield Undecided(reason="sycl-ls was not asked, or a variable chose what it lists")
    else:
        xpu = any(one.backend == "xpu" for one in facts.all(TorchBuild))
        yield Finding(
            values={"device": plain[0].name},
            confidence="high" if xpu else "medium",
            evidence=tuple(map(Evidence.of, plain[:4])),
        )
