"""The kernel driver refuses to open `/dev/kfd`, which is there and whose rights are in order.

## What it finds
The reason that `rocminfo` gives, where it is neither a missing file nor its rights: `Invalid argument`, `Operation not
permitted`, `Cannot allocate memory` and others.

## Why it matters
No program that uses ROCm sees a device.

## What it cannot know
The driver's own reason: the kernel's log of the host tells it.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Accelerator, Answer, Evidence, Facts, Finding, Remedy, Unavailable, Undecided, check, expression

REFUSED = expression(r"Unable to open /dev/kfd read-write: (?P<why>.{3,60})")
OTHERS = ("No such file", "Permission denied")
"""What other checks are about."""

INVALID = """\
root:~# rocminfo
ROCk module version 6.7.0 is loaded
Unable to open /dev/kfd read-write: Invalid argument
root is member of nogroup group
root:~# groups root
root : root video nogroup render
"""
MEMORY = """\
ROCk module is loaded
Unable to open /dev/kfd read-write: Cannot allocate memory
igor is member of render group
"""
OPENED = """\
ROCk module version 6.12.12 is loaded
HSA Agents
==========
*******
Agent 1
*******
  Name:                    INTEL(R) XEON(R) PLATINUM 8568Y+
  Marketing Name:          INTEL(R) XEON(R) PLATINUM 8568Y+
  Vendor Name:             CPU
*******
Agent 2
*******
  Name:                    gfx942
"""


@check(
    "amd/kfd-refused",
    severity="error",
    about="amd",
    needs=(),
    uses=(Accelerator, Unavailable),
    words={
        "en": {
            "title": "The AMD kernel driver refuses to open /dev/kfd",
            "summary": "/dev/kfd cannot be opened: {why}",
            "cause": "The kernel's driver does not do what ROCm asks: a container with unmapped user ids or in a "
            "sandbox, a control group that does not allow the device, a device that the driver does not support, or a "
            "driver older than this ROCm. More groups do not help.",
        },
        "zh": {
            "title": "AMD 内核驱动拒绝打开 /dev/kfd",
            "summary": "无法打开 /dev/kfd：{why}",
            "cause": "内核驱动拒绝了 ROCm 的请求：容器的用户命名空间未映射或运行在沙箱中、cgroup 未允许该设备、"
            "驱动不支持该设备，或驱动版本低于当前 ROCm。增加用户组没有作用。",
        },
    },
    remedies=(
        Remedy(
            key="log",
            title={
                "en": "On the host: see what the driver says, and whether rocminfo works there",
                "zh": "在宿主机上：查看驱动日志，并确认 rocminfo 在宿主机上是否正常",
            },
            commands=("sudo dmesg | grep -iE 'kfd|amdgpu' | tail -n 30", "rocminfo | grep gfx"),
            safety="safe",
            verify="rocminfo | grep gfx",
            source="https://github.com/ROCm/legacy-rocm-build/issues/2232",
        ),
        Remedy(
            key="container",
            title={
                "en": "Where it works on the host: start an ordinary container with the devices named, not one with "
                "mapped user ids, nested or in a sandbox",
                "zh": "若宿主机正常：用普通容器并显式传入设备，不要使用用户命名空间映射、嵌套或沙箱容器",
            },
            commands=("docker run --device /dev/kfd --device /dev/dri --security-opt seccomp=unconfined …",),
            safety="disruptive",
            verify="rocminfo | grep gfx",
            source="https://rocm.docs.amd.com/projects/install-on-linux/en/latest/how-to/docker.html",
        ),
    ),
    sources=(
        "https://github.com/ROCm/legacy-rocm-build/issues/4043",
        "https://github.com/ROCm/legacy-rocm-build/issues/2232",
        "https://github.com/ROCm/legacy-rocm-build/issues/1211",
    ),
    explains=(
        *("device/tool-unanswered", "host/device-refused", "torch/device-unavailable"),
        "amd/runtime-does-not-open-device",
    ),
    fires=(INVALID, MEMORY),
    silent=(OPENED,),
)
def kfd_refused(facts: Facts) -> Iterator[Answer]:
    """Read the reason that the last attempt was given."""
    tries = [found for one in facts.all(Unavailable) if (found := REFUSED.search(one.reason))]
    told = [one for one in facts.all(Unavailable) if REFUSED.search(one.reason)]
    if not tries:
        if not any(one.architecture.startswith("gfx") for one in facts.all(Accelerator)):
            yield Undecided(reason="rocminfo was not asked")
    elif not tries[-1]["why"].startswith(OTHERS):
        yield Finding(values={"why": tries[-1]["why"].strip()}, evidence=(Evidence.of(told[-1]),))
