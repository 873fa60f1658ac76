"""The list of RDMA adapters for Kunlun devices has not one entry a device.

## What it finds
`BKCL_RDMA_NICS` or `BKCL_FORCE_RDMA_NICS_ORDER` with another number of adapters than the machine has devices.

## Why it matters
The list is read by position: the first adapter is the first device's, and so on; four adapters for eight devices are
written twice each. With a shorter list devices send over an adapter that is far from them.

## What it cannot know
Whether the launch uses all devices; and older documentation shows a list of four for eight devices. Hence information.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Accelerator, Answer, Evidence, Facts, Finding, Remedy, Setting, Undecided, check, devices

NAMES = ("BKCL_FORCE_RDMA_NICS_ORDER", "BKCL_RDMA_NICS")

HEAD = """\
+-----------------------------------------------------------------------------+
| XPU-SMI               Driver Version: 5.0.21.21    XPU-RT Version: 5.0.21   |
|-------------------------------+----------------------+----------------------+
| XPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | XPU-Util  Compute M. |
|                               |             L3-Usage |            SR-IOV M. |
|===============================+======================+======================|
"""
CARD = """\
|   %d  P800 OAM           N/A   | 00000000:%s:00.0 N/A |                    0 |
| N/A   37C  N/A     88W / 400W |      0MiB / 98304MiB |      0%%      Default |
|                               |      0MiB /    96MiB |             Disabled |
+-------------------------------+----------------------+----------------------+
"""
FOUR_CARDS = HEAD + "".join(CARD % (number, bus) for number, bus in enumerate(("03", "05", "63", "65")))
SHORT = FOUR_CARDS + "export BKCL_RDMA_NICS=mlx5_1,mlx5_2\n"
EACH = FOUR_CARDS + "export BKCL_RDMA_NICS=mlx5_1,mlx5_1,mlx5_2,mlx5_2\n"


@check(
    "kunlun/rdma-adapters-fewer",
    severity="info",
    about="kunlun",
    needs=(Accelerator, Setting),
    words={
        "en": {
            "title": "The list of RDMA adapters has not one entry for each device",
            "summary": "{name} names {listed} adapters, the machine has {devices} devices",
            "cause": "The list was copied from a machine with other adapters, or each was written once.",
        },
        "zh": {
            "title": "RDMA 网卡列表与设备数不一致",
            "summary": "{name} 列出 {listed} 个网卡，而本机有 {devices} 个设备",
            "cause": "列表取自网卡不同的机器，或每个网卡只写了一次。",
        },
    },
    remedies=(
        Remedy(
            key="one-each",
            title={
                "en": "Write the nearest adapter of each device, in the order of the devices",
                "zh": "按设备顺序为每个设备写出最近的网卡",
            },
            commands=(
                "xpu-smi topo -m",
                "export BKCL_RDMA_NICS=mlx5_1,mlx5_1,mlx5_2,mlx5_2,mlx5_3,mlx5_3,mlx5_4,mlx5_4",
            ),
            safety="safe",
            source="https://github.com/PaddlePaddle/FastDeploy/pull/7262",
        ),
    ),
    sources=("https://github.com/PaddlePaddle/FastDeploy/pull/7262",),
    explains=("collectives/below-typical",),
    fires=(SHORT,),
    silent=(EACH,),
)
def rdma_adapters_fewer(facts: Facts) -> Iterator[Answer]:
    """Count the entries of the list that is read first."""
    settings = facts.environment()
    there = [one for one in devices(facts) if one.vendor == "kunlun"]
    setting = next((settings[name] for name in NAMES if name in settings and settings[name].value), None)
    if setting is None or not there:
        yield Undecided(reason="no list of adapters, or no Kunlun device is told")
        return
    listed = [word for word in setting.value.split(",") if word.strip()]
    if len(listed) != len(there):
        yield Finding(
            subject=setting.name,
            values={"name": setting.name, "listed": len(listed), "devices": len(there)},
            confidence="low",
            evidence=(Evidence.of(setting),),
        )
