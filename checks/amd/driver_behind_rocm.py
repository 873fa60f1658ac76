"""The kernel driver is older than those AMD tested this ROCm with.

## What it finds
The version of the loaded `amdgpu` module below the oldest that AMD's table of user and kernel space has for the ROCm
that torch was built for (else for the ROCm that is installed).

## Why it matters
User space asks the driver for what it does not have yet: devices are not found, or calls fail under load.

## What it cannot know
AMD calls these combinations tested, not the only ones that run; where torch says that its device is available this is
silent. A driver of the kernel itself has no version; a release without a row is undecided.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    Driver,
    Evidence,
    Fact,
    Facts,
    Finding,
    Package,
    Remedy,
    Runtime,
    RuntimeDriver,
    TorchBuild,
    Undecided,
    at_least,
    check,
    local,
    minor,
    numbers,
)

NEWEST_MAJOR = 7
"""Drivers of 2019 were numbered by the year (`19.10`)."""

SMI_6_3_6 = """\
{
    "card0": {
        "Device ID": "0x738c",
        "Max Graphics Package Power (W)": "290.0",
        "Average Graphics Package Power (W)": "36.0"
    },
    "system": {
        "Driver version": "6.3.6"
    }
}
"""
INFO_6_7_0 = """\
$ /opt/rocm/bin/rocminfo --support
ROCk module version 6.7.0 is loaded
"""
TORCH_6_3 = """\
PyTorch version: 2.7.0+rocm6.3
Is debug build: False
CUDA used to build PyTorch: N/A
ROCM used to build PyTorch: 6.3.42131-fa1d09cbd
"""
TORCH_6_1 = """\
PyTorch version: 2.4.1+rocm6.1
Is debug build: False
CUDA used to build PyTorch: N/A
ROCM used to build PyTorch: 6.1.40091-a8dbc0c19
"""


@check(
    "amd/driver-behind-rocm",
    severity="warning",
    about="amd",
    verdict="known-bad",
    checked="2026-11-30",
    needs=(Driver,),
    uses=(Package, Runtime, RuntimeDriver, TorchBuild),
    words={
        "en": {
            "title": "The amdgpu driver is older than this ROCm was tested with",
            "summary": "amdgpu {driver}; ROCm {rocm} was tested with {oldest} and newer",
            "cause": "A container or a wheel brought a newer ROCm than the host's driver: AMD tests two releases each "
            "way.",
        },
        "zh": {
            "title": "amdgpu 驱动版本低于该 ROCm 的测试范围",
            "summary": "amdgpu 为 {driver}；ROCm {rocm} 的测试范围为 {oldest} 及更新版本",
            "cause": "容器或 wheel 带入的 ROCm 比宿主机驱动新得多：AMD 只测试前后各两个版本的组合。",
        },
    },
    remedies=(
        Remedy(
            key="newer-driver",
            title={
                "en": "On the host: install the driver that ROCm {rocm} shipped with ({shipped}) or a newer one",
                "zh": "在宿主机上：安装 ROCm {rocm} 随附的驱动（{shipped}）或更新版本",
            },
            commands=("cat /sys/module/amdgpu/version", "dkms status"),
            safety="disruptive",
            verify="cat /sys/module/amdgpu/version",
            source="https://rocm.docs.amd.com/projects/install-on-linux/en/docs-6.3.0/reference/user-kernel-space-compat-matrix.html",
        ),
        Remedy(
            key="older-rocm",
            title={
                "en": "Or take an image or a torch that was built for an older ROCm",
                "zh": "或者改用基于较旧 ROCm 构建的镜像或 torch",
            },
            safety="manual",
            verify='python -c "import torch; print(torch.version.hip, torch.cuda.is_available())"',
            source="https://rocm.docs.amd.com/projects/install-on-linux/en/docs-6.3.0/reference/user-kernel-space-compat-matrix.html",
        ),
    ),
    sources=(
        "https://rocm.docs.amd.com/projects/install-on-linux/en/docs-6.3.0/reference/user-kernel-space-compat-matrix.html",
        "https://github.com/vllm-project/vllm/blob/main/docs/getting_started/installation/gpu.rocm.inc.md",
    ),
    explains=("torch/device-unavailable",),
    fires=(SMI_6_3_6 + TORCH_6_3,),
    silent=(INFO_6_7_0 + TORCH_6_3, SMI_6_3_6 + TORCH_6_1),
)
def driver_behind_rocm(facts: Facts) -> Iterator[Answer]:
    """Compare the loaded driver with the row of the user space."""
    driver = next((one for one in facts.all(Driver) if one.vendor == "amd" and one.version), None)
    space, rocm = next(_user_spaces(facts), (None, ""))
    if any(one.available for one in facts.all(TorchBuild)):
        return
    row = next((one for one in facts.all(RuntimeDriver) if one.vendor == "amd" and one.version == rocm), None)
    if driver is None or space is None:
        yield Undecided(reason="the driver's version and the ROCm that is used are not both told")
    elif row is None or not (0,) < numbers(driver.version) < (NEWEST_MAJOR + 1,):
        yield Undecided(reason=f"no row tells which drivers ROCm {rocm} was tested with, or what {driver.version} is")
    elif at_least(driver.version, row.compatible_driver) is False:
        values = {"driver": driver.version, "rocm": rocm, "oldest": row.compatible_driver, "shipped": row.driver}
        yield Finding(
            values={**values}, confidence="medium", evidence=tuple(map(Evidence.of, dict.fromkeys((driver, space))))
        )


def _user_spaces(facts: Facts) -> Iterator[tuple[Fact, str]]:
    """What tells the ROCm that programs use, torch's own first, with its major and minor number."""
    for build in facts.all(TorchBuild):
        if build.backend == "rocm" and build.backend_version:
            yield build, minor(build.backend_version)
    torch = facts.package("torch")
    if torch and local(torch.version).startswith("rocm"):
        yield torch, minor(local(torch.version).removeprefix("rocm"))
    for runtime in facts.all(Runtime):
        if runtime.name == "rocm":
            yield runtime, minor(runtime.version)
