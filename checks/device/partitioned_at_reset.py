"""A GPU will be divided into parts (MIG) at its next reset.

## What it finds
MIG mode that `nvidia-smi` shows as on with a star: it was asked for and waits for a reset. One finding for each device.

## Why it matters
The GPU works as a whole until it is reset or the machine is restarted; then CUDA cannot use it until parts are created.

## What it cannot know
Whether it is meant so.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, Reading, Remedy, Undecided, check, device_name

GUIDE = "https://docs.nvidia.com/datacenter/tesla/mig-user-guide/getting-started-with-mig.html"

PENDING = """\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 525.125.06   Driver Version: 525.125.06   CUDA Version: 12.0     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|                               |                      |               MIG M. |
|===============================+======================+======================|
|   7  NVIDIA A800 80G...  On   | 00000000:9E:00.0 Off |                    0 |
| N/A   69C    P0   308W / 300W |  59743MiB / 81920MiB |    100%      Default |
|                               |                      |             Enabled* |
+-------------------------------+----------------------+----------------------+
"""
NOW = """\
root@host-1:~# nvidia-smi -i 0 --query-gpu=pci.bus_id,mig.mode.current --format=csv
pci.bus_id, mig.mode.current
00000000:01:00.0, Enabled
"""


@check(
    "device/partitioned-at-reset",
    severity="warning",
    about="nvidia",
    needs=(Reading,),
    words={
        "en": {
            "title": "A GPU will be divided (MIG) at its next reset",
            "summary": "{device}: MIG mode is {mode}, the star means that it waits for a reset",
            "cause": "Somebody turned MIG on while the GPU was in use. After a reset or a restart of the machine CUDA "
            "cannot use the GPU until parts are created.",
        },
        "zh": {
            "title": "GPU 将在下次复位时被切分（MIG）",
            "summary": "{device}：MIG 模式为 {mode}，星号表示等待复位后生效",
            "cause": "有人在 GPU 使用期间开启了 MIG。复位 GPU 或重启机器后，在创建分片之前 CUDA 无法使用该 GPU。",
        },
    },
    remedies=(
        Remedy(
            key="keep-whole",
            title={
                "en": "If the GPU is to stay whole: take the request back before the next reset",
                "zh": "若要保持整块 GPU：在下次复位前撤销该设置",
            },
            commands=("sudo nvidia-smi -i {id} -mig 0",),
            safety="manual",
            verify="nvidia-smi --query-gpu=index,mig.mode.current,mig.mode.pending --format=csv",
            source=GUIDE,
        ),
    ),
    sources=(GUIDE,),
    fires=(PENDING,),
    silent=(NOW,),
)
def partitioned_at_reset(facts: Facts) -> Iterator[Answer]:
    """Look for the star."""
    modes = [one for one in facts.all(Reading) if one.name == "mig.mode"]
    told: dict[str, Reading] = {}
    for mode in modes:
        if mode.value == "Enabled*":
            told.setdefault(device_name(facts, index=mode.index, address=mode.address, vendor="nvidia"), mode)
    for device, mode in told.items():
        yield Finding(
            values={"device": device, "id": mode.address or str(mode.index or 0), "mode": mode.value},
            subject=device,
            evidence=(Evidence.of(mode),),
        )
    if not modes:
        yield Undecided(reason="no tool told whether a device is divided")
