"""A GPU is in MIG mode and has no parts.

## What it finds
MIG mode that is on, in a table of `nvidia-smi` that was printed to its end and lists no part of that GPU: one finding
for each device.

## Why it matters
CUDA uses parts alone while the mode is on: an engine finds no device there.

## What it cannot know
Whether somebody is about to create the parts. They do not outlast a restart of the machine, while the mode does.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    Evidence,
    Facts,
    Finding,
    Partition,
    Reading,
    Remedy,
    Text,
    Undecided,
    check,
    device_name,
)

GUIDE = "https://docs.nvidia.com/datacenter/tesla/mig-user-guide/getting-started-with-mig.html"

NONE = """\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 510.47.03    Driver Version: 510.47.03    CUDA Version: N/A      |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|                               |                      |               MIG M. |
|===============================+======================+======================|
|   0  NVIDIA A100-PCI...  On   | 00000000:0F:00.0 Off |                   On |
| N/A   58C    P0   110W / 250W |      0MiB / 40960MiB |     N/A      Default |
|                               |                      |              Enabled |
+-------------------------------+----------------------+----------------------+

+-----------------------------------------------------------------------------+
| MIG devices:                                                                |
+------------------+----------------------+-----------+-----------------------+
| GPU  GI  CI  MIG |         Memory-Usage |        Vol|         Shared        |
|      ID  ID  Dev |           BAR1-Usage | SM     Unc| CE  ENC  DEC  OFA  JPG|
|                  |                      |        ECC|                       |
|==================+======================+===========+=======================|
|  No MIG devices found                                                       |
+-----------------------------------------------------------------------------+

+-----------------------------------------------------------------------------+
| Processes:                                                                  |
|  GPU   GI   CI        PID   Type   Process name                  GPU Memory |
|        ID   ID                                                   Usage      |
|=============================================================================|
|  No running processes found                                                 |
+-----------------------------------------------------------------------------+
"""
OFF = NONE.replace("|                   On |", "|                    0 |").replace(
    "|              Enabled |", "|             Disabled |"
)


@check(
    "device/partitioned-without-parts",
    severity="warning",
    about="nvidia",
    needs=(Reading,),
    uses=(Partition, Text),
    words={
        "en": {
            "title": "A GPU is in MIG mode and has no parts",
            "summary": "{device}: MIG mode is on and no part of it is listed",
            "cause": "MIG was turned on and no parts were created, or they were lost when the machine was restarted. "
            "CUDA cannot use the GPU until the mode is off or there are parts.",
        },
        "zh": {
            "title": "GPU 已开启 MIG，但没有任何分片",
            "summary": "{device}：MIG 模式已开启，但没有列出任何分片",
            "cause": "开启 MIG 后没有创建分片，或重启机器后分片丢失。在关闭 MIG 或创建分片之前，CUDA 无法使用该 GPU。",
        },
    },
    remedies=(
        Remedy(
            key="whole",
            title={"en": "To use the whole GPU: turn MIG off", "zh": "若要使用整块 GPU：关闭 MIG"},
            commands=("sudo nvidia-smi -i {id} -mig 0",),
            safety="disruptive",
            verify="nvidia-smi --query-gpu=index,mig.mode.current --format=csv",
            source=GUIDE,
        ),
        Remedy(
            key="parts",
            title={
                "en": "To use parts: list the profiles, then create GPU instances with their compute instances",
                "zh": "若要使用分片：查看可用的 profile，然后创建 GPU 实例及其计算实例",
            },
            commands=("sudo nvidia-smi mig -i {id} -lgip", "sudo nvidia-smi mig -i {id} -cgi <profile> -C"),
            safety="manual",
            verify="nvidia-smi -L",
            source=GUIDE,
        ),
    ),
    sources=(GUIDE,),
    explains=("device/partitioned", "torch/device-unavailable"),
    fires=(NONE,),
    silent=(OFF,),
)
def partitioned_without_parts(facts: Facts) -> Iterator[Answer]:
    """Look for parts of each device whose mode is on, where the table goes on below it."""
    modes = [one for one in facts.all(Reading) if one.name == "mig.mode"]
    divided = [one for one in modes if one.value == "Enabled"]
    ends = [one.origin for one in facts.all(Text) if "device-processes" in one.kinds]
    told: dict[str, Reading] = {}
    for mode in divided:
        place = mode.origin
        closed = any(end.capture == place.capture and 0 < place.line < end.line for end in ends)
        if closed and not any(one.index in (mode.index, None) for one in facts.all(Partition)):
            told.setdefault(device_name(facts, index=mode.index, address=mode.address, vendor="nvidia"), mode)
    for device, mode in told.items():
        yield Finding(
            values={"device": device, "id": mode.address or str(mode.index or 0)},
            subject=device,
            evidence=(Evidence.of(mode),),
        )
    if not modes or (divided and not ends):
        yield Undecided(reason="no table of the tool told modes and parts to its end")
