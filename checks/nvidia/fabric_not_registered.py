"""Devices are not registered with the NVSwitch fabric.

## What it finds
The state of the registration as `nvidia-smi -q` prints it: `In Progress` or `Not Started`.

## Why it matters
CUDA starts only when it is `Completed`: until then it fails with error 802, "system not yet initialized".

## What it cannot know
Whether it will be completed in a moment, as after a boot; on a B200 board that is divided into partitions the state
stays so until a partition with the device is made active. `N/A` and `Not Supported` are what a device without a fabric
says.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, Reading, Remedy, Undecided, check, device_name

WAITING = ("In Progress", "Not Started")

IN_PROGRESS = """\
/usr/bin/nvidia-smi --query

==============NVSMI LOG==============

Timestamp                                              : Tue Jun  2 09:49:44 2026
Driver Version                                         : 580.159.04
CUDA Version                                           : 13.0

GPU 00000000:83:00.0
    Fabric
        State                                          : In Progress
        Status                                         : N/A
        CliqueId                                       : N/A
        ClusterUUID                                    : N/A
"""
COMPLETED = """\
==============NVSMI LOG==============

GPU 00000000:83:00.0
    Fabric
        State                                          : Completed
        Status                                         : Success
        CliqueId                                       : 0
        ClusterUUID                                    : 00000000-0000-0000-0000-000000000000
"""


@check(
    "nvidia/fabric-not-registered",
    severity="error",
    about="nvidia",
    needs=(Reading,),
    words={
        "en": {
            "title": "Devices are not registered with the NVSwitch fabric",
            "summary": "fabric state of {count} of {all} devices: {state} ({devices})",
            "cause": "The Fabric Manager does not run, is of another version than the driver, lacks the subnet manager "
            "(NVLSM) that Blackwell boards need beside it, or was started a moment ago.",
        },
        "zh": {
            "title": "设备尚未注册到 NVSwitch 互联",
            "summary": "{all} 个设备中有 {count} 个的 fabric 状态为 {state}（{devices}）",
            "cause": "Fabric Manager 未运行、版本与驱动不一致、缺少 Blackwell 主板所需的子网管理器（NVLSM），"
            "或刚刚启动尚未完成注册。",
        },
    },
    remedies=(
        Remedy(
            key="manager",
            title={
                "en": "See what the Fabric Manager says, and start it; on Blackwell boards install nvlsm, too",
                "zh": "查看 Fabric Manager 的输出并启动服务；Blackwell 主板还需安装 nvlsm",
            },
            commands=(
                "systemctl status nvidia-fabricmanager --no-pager",
                "sudo journalctl -u nvidia-fabricmanager -n 50 --no-pager",
                "sudo systemctl restart nvidia-fabricmanager",
            ),
            safety="disruptive",
            verify="nvidia-smi -q | grep -A 3 Fabric",
            source="https://github.com/siderolabs/extensions/pull/717",
        ),
    ),
    sources=(
        "https://github.com/NVIDIA/NVSentinel/issues/883",
        "https://github.com/siderolabs/extensions/pull/717",
        "https://github.com/NVIDIA/gpu-operator/issues/2511",
        "https://github.com/NVIDIA/gpu-driver-container/pull/909",
        "https://docs.nvidia.com/deploy/nvml-api/structnvmlGpuFabricInfo__t.html",
    ),
    explains=("nvidia/system-not-initialized", "torch/device-unavailable"),
    fires=(IN_PROGRESS,),
    silent=(COMPLETED,),
)
def fabric_not_registered(facts: Facts) -> Iterator[Answer]:
    """Look at the state of each device, and tell of all that wait at once: it is one fault."""
    states = {(one.index, one.address): one for one in facts.all(Reading) if one.name == "fabric.state"}
    waiting = [one for one in states.values() if one.value in WAITING]
    if not states:
        yield Undecided(reason="no state of the registration was printed")
    elif waiting:
        names = (device_name(facts, index=one.index, address=one.address, vendor="nvidia") for one in waiting)
        yield Finding(
            values={
                "count": len(waiting),
                "all": len(states),
                "state": waiting[0].value,
                "devices": ", ".join(filter(None, names)),
            },
            evidence=tuple(map(Evidence.of, waiting[:8])),
        )
