"""AMD's kernel module is not loaded.

## What it finds
The words of AMD's tools that `amdgpu` is not among the loaded modules, or a device of AMD on the bus and a whole list
of modules without `amdgpu`, where no tool of AMD shows a device.

## Why it matters
Without the module there is neither `/dev/kfd` nor a device for any program.

## What it cannot know
A driver that is built into the kernel has no entry in the list of modules, and old versions of the tools do not find it
either; where a tool lists devices this is silent. The `rocminfo` of ROCm 4.1 asks `lsmod`, which an image may lack.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Accelerator,
    Answer,
    Driver,
    Evidence,
    Facts,
    Finding,
    KernelModule,
    Listing,
    Remedy,
    Unavailable,
    Undecided,
    check,
)

WORDS = ("amdgpu not found in modules", "ROCk module is NOT loaded")

NOT_LOADED = """\
rocm-user@host-1:~$ rocminfo
ROCk module is NOT loaded, possibly no GPU devices
"""
SMI = """\
cat: /sys/module/amdgpu/initstate: No such file or directory
ERROR:root:Driver not initialized (amdgpu not found in modules)
"""
AMD_SMI = """\
ERROR:root:Unable to get devices, driver not initialized (amdgpu not found in modules)
ERROR:root:Unable to detect any GPU devices, check amdgpu version and module status (sudo modprobe amdgpu)
"""
LOADED = """\
root:~# rocminfo
ROCk module version 6.7.0 is loaded
Unable to open /dev/kfd read-write: Invalid argument
root is member of nogroup group
"""
LATER = """\
  Name:                    gfx1100
  Marketing Name:          AMD Radeon RX 7900 XTX
  Vendor Name:             AMD
"""


@check(
    "amd/module-not-loaded",
    severity="error",
    about="amd",
    needs=(),
    uses=(Accelerator, Driver, KernelModule, Listing, Unavailable),
    words={
        "en": {
            "title": "The amdgpu module is not loaded",
            "summary": "amdgpu is not among the loaded modules: {reason}",
            "cause": "The driver is not installed, was not built for the running kernel (DKMS), is blacklisted, or "
            "the container's /sys is not that of a host with the driver.",
        },
        "zh": {
            "title": "amdgpu 内核模块未加载",
            "summary": "已加载的内核模块中没有 amdgpu：{reason}",
            "cause": "驱动未安装、未针对当前内核编译（DKMS）、被列入黑名单，或容器所在的宿主机未加载该驱动。",
        },
    },
    remedies=(
        Remedy(
            key="load",
            title={
                "en": "On the host: load the module, and see why it was not loaded",
                "zh": "在宿主机上：加载该模块，并查看未加载的原因",
            },
            commands=(
                "sudo modprobe amdgpu",
                "dkms status",
                "grep -rs 'blacklist amdgpu' /etc/modprobe.d",
                "sudo dmesg | grep -i amdgpu | tail",
            ),
            safety="disruptive",
            verify="lsmod | grep amdgpu && rocminfo",
            source="https://github.com/ROCm/ROCm-docker/issues/107",
        ),
    ),
    sources=(
        "https://github.com/ROCm/ROCm-docker/issues/107",
        "https://github.com/ROCm/legacy-rocm-build/issues/1794",
        "https://github.com/ROCm/tensorflow-upstream/pull/1364",
        "https://github.com/ROCm/rocminfo/pull/49",
        "https://github.com/ROCm/amdsmi/issues/45",
    ),
    explains=("device/tool-unanswered", "torch/device-unavailable"),
    fires=(NOT_LOADED, SMI, AMD_SMI),
    silent=(LOADED, NOT_LOADED + "$ sudo modprobe amdgpu\n$ rocminfo | grep Name\n" + LATER),
)
def module_not_loaded(facts: Facts) -> Iterator[Answer]:
    """Look for the tools' words, else compare the bus with the list of modules."""
    own = [one for one in facts.all(Accelerator) if one.vendor == "amd"]
    loaded = [one for one in facts.all(KernelModule) if one.name == "amdgpu"]
    running = [one for one in facts.all(Driver) if one.vendor == "amd" and _is_loaded(one)]
    if loaded or running or any(one.seen_by == "tool" for one in own):
        return
    said = [one for one in facts.all(Unavailable) if any(words in one.reason for words in WORDS)]
    on_bus = [one for one in own if one.seen_by == "pci"]
    listed = [one for one in facts.all(Listing) if one.kind == KernelModule.__name__]
    if said or (on_bus and listed):
        proof = [*said, *listed][:1]
        yield Finding(
            values={"reason": said[0].reason if said else "lsmod"},
            confidence="high" if said and on_bus else "medium",
            evidence=tuple(map(Evidence.of, (*proof, *on_bus[:1]))),
        )
    else:
        yield Undecided(reason="no tool of AMD was asked, and the bus and the modules were not both listed whole")


def _is_loaded(driver: Driver) -> bool:
    """Whether it was told of the running driver: `modinfo` tells of a file."""
    return "is loaded" in driver.origin.quote or driver.origin.capture == "sys/module/amdgpu"
