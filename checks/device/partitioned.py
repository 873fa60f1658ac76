"""A GPU is divided into parts (MIG).

## What it finds
MIG mode that is on (not one that waits for a reset, which a star tells), or parts that are listed: one finding for each
device.

## Why it matters
A process sees one part and no more: an engine has the memory and the speed of that part, and tensor parallelism over
parts is not possible. The GPU as a whole cannot be used until the mode is off.

## What it cannot know
Whether it is meant so, as on shared machines.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Fact, Facts, Finding, Partition, Reading, Remedy, Undecided, check, device_name

THREAD = "https://github.com/pytorch/pytorch/pull/92315"
GUIDE = "https://docs.nvidia.com/datacenter/tesla/mig-user-guide/620/deployment-considerations.html"

H200 = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 590.48.01              Driver Version: 590.48.01      CUDA Version: 13.1     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA H200                    On  |   00000000:83:00.0 Off |                   On |
| N/A   28C    P0             78W /  700W |      55MiB / 143771MiB |     N/A      Default |
|                                         |                        |              Enabled |
+-----------------------------------------+------------------------+----------------------+
"""
QUERY = """\
root@host-1:~# nvidia-smi -i 0 --query-gpu=pci.bus_id,mig.mode.current --format=csv
pci.bus_id, mig.mode.current
00000000:01:00.0, Enabled
"""
WHOLE = H200.replace("|                   On |", "|                    0 |").replace(
    "|              Enabled |", "|             Disabled |"
)


@check(
    "device/partitioned",
    severity="info",
    about="device",
    needs=(),
    uses=(Reading, Partition),
    words={
        "en": {
            "title": "A GPU is divided into parts (MIG)",
            "summary": "{device} is divided; parts listed: {parts}",
            "cause": "MIG mode is on. A process gets one part: no tensor parallelism over parts, no NVLink between "
            "them.",
        },
        "zh": {
            "title": "GPU 已被切分（MIG）",
            "summary": "{device} 已被切分；列出的分片数：{parts}",
            "cause": "MIG 模式已开启。一个进程只能使用一个分片：分片之间没有张量并行，也没有 NVLink。",
        },
    },
    remedies=(
        Remedy(
            key="one-part",
            title={
                "en": "Give each engine one part, by its UUID, and no tensor parallelism",
                "zh": "以 UUID 为每个推理引擎指定一个分片，且不使用张量并行",
            },
            commands=("nvidia-smi -L", "CUDA_VISIBLE_DEVICES=MIG-… vllm serve … --tensor-parallel-size 1"),
            safety="safe",
            verify="nvidia-smi",
            source=THREAD,
        ),
        Remedy(
            key="whole",
            title={
                "en": "To use the whole GPU: end all work on it and turn MIG off (this removes its parts)",
                "zh": "若要使用整块 GPU：结束其上的所有任务并关闭 MIG（会删除其分片）",
            },
            commands=("sudo nvidia-smi -i {id} -mig 0",),
            safety="disruptive",
            verify="nvidia-smi --query-gpu=index,mig.mode.current --format=csv",
            source=GUIDE,
        ),
    ),
    sources=(THREAD, GUIDE, "https://docs.rapids.ai/deployment/stable/guides/mig"),
    fires=(H200, QUERY),
    silent=(WHOLE, H200.replace("|              Enabled |", "|             Enabled* |")),
)
def partitioned(facts: Facts) -> Iterator[Answer]:
    """Gather the modes and the parts, device by device."""
    modes = [one for one in facts.all(Reading) if one.name == "mig.mode"]
    parts = [one for one in facts.all(Partition) if one.vendor == "nvidia"]
    told: dict[str, tuple[str, Fact]] = {}
    for mode in modes:
        if mode.value == "Enabled":
            device = device_name(facts, index=mode.index, address=mode.address, vendor="nvidia")
            told.setdefault(device, (mode.address or str(mode.index or 0), mode))
    counts: dict[str, int] = {}
    for part in parts:
        device = device_name(facts, index=part.index, vendor="nvidia")
        device = next(iter(told)) if not device and len(told) == 1 else device
        counts[device] = counts.get(device, 0) + 1
        told.setdefault(device, (str(part.index or 0), part))
    for device, (number, fact) in told.items():
        yield Finding(
            values={"device": device or "GPU", "id": number, "parts": counts.get(device, 0)},
            subject=device,
            evidence=(Evidence.of(fact),),
        )
    if not modes and not told:
        yield Undecided(reason="no tool told whether a device is divided")
