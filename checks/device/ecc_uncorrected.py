"""Memory errors that could not be corrected were counted since the driver was loaded.

## What it finds
A count above zero of uncorrected errors that the vendor's tool shows as volatile: one finding for each device.

## Why it matters
The process that read that memory was ended, or computed with wrong values; the page or row is in use until the next
reset.

## What it cannot know
Whether they came from one bad cell or from a device that is dying: the retired pages and remapped rows tell.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, Reading, Remedy, Undecided, check, device_name

FLAGS = "https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/error-recovery-and-response-flags.html"

K80 = """\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 384.111                Driver Version: 384.111                   |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|===============================+======================+======================|
|   0  Tesla K80           Off  | 00006B24:00:00.0 Off |                    0 |
| N/A   26C    P8    34W / 149W |   3322MiB / 11439MiB |      0%      Default |
+-------------------------------+----------------------+----------------------+
|   1  Tesla K80           Off  | 000083D4:00:00.0 Off |                    1 |
| N/A   32C    P8    28W / 149W |     11MiB / 11439MiB |      0%      Default |
+-------------------------------+----------------------+----------------------+
"""
A100 = """\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 525.105.17   Driver Version: 525.105.17   CUDA Version: 12.0     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|                               |                      |               MIG M. |
|===============================+======================+======================|
|   0  NVIDIA A100-SXM...  Off  | 00000000:AF:00.0 Off |                    0 |
| N/A   32C    P0    42W / 400W |  48770MiB / 81920MiB |      0%      Default |
"""


@check(
    "device/ecc-uncorrected",
    severity="error",
    about="device",
    needs=(Reading,),
    words={
        "en": {
            "title": "A device counted memory errors that could not be corrected",
            "summary": "{device}: {count} uncorrected memory errors since the driver was loaded",
            "cause": "Cells of the device's memory failed. One error is repaired by retiring the page or row at the "
            "next reset; more of them, or again after it, mean that the device is failing.",
        },
        "zh": {
            "title": "设备出现无法纠正的显存错误",
            "summary": "{device}：自驱动加载以来有 {count} 次无法纠正的显存错误",
            "cause": "设备显存单元损坏。单次错误会在下次复位时通过退役页或行来修复；若次数增多，或复位后再次出现，说"
            "明设备正在损坏。",
        },
    },
    remedies=(
        Remedy(
            key="reset",
            title={
                "en": "Stop everything that uses the GPU and reset it, then see whether rows or pages were replaced",
                "zh": "停止所有使用该 GPU 的进程并复位，然后查看是否已替换行或页",
            },
            commands=(
                "sudo nvidia-smi --gpu-reset -i {id}",
                "nvidia-smi -q -i {id} -d ECC,PAGE_RETIREMENT,ROW_REMAPPER",
            ),
            safety="disruptive",
            verify="nvidia-smi --query-gpu=index,ecc.errors.uncorrected.volatile.total --format=csv",
            source=FLAGS,
        ),
        Remedy(
            key="vendor-reset",
            title={
                "en": "Stop everything that uses the device and reboot the machine; ask the vendor if errors come "
                "again",
                "zh": "停止所有使用该设备的进程并重启机器；若再次出现错误请联系厂商",
            },
            commands=("sudo reboot",),
            safety="disruptive",
            verify="sudo dmesg | grep -i ecc",
        ),
    ),
    sources=(FLAGS, "https://github.com/vllm-project/vllm/issues/5222"),
    explains=("nvidia/diagnosis-failed", "nvidia/recovery-action-pending"),
    fires=(K80,),
    silent=(A100,),
)
def ecc_uncorrected(facts: Facts) -> Iterator[Answer]:
    """Compare each device's count with zero."""
    counts = [one for one in facts.all(Reading) if one.name == "ecc.uncorrected" and one.value.isdecimal()]
    told: dict[str, Reading] = {}
    for one in counts:
        device = device_name(facts, index=one.index, address=one.address, vendor=one.vendor)
        if int(one.value) > int(told[device].value if device in told else 0):
            told[device] = one
    for device, one in told.items():
        yield Finding(
            values={"device": device or one.vendor, "count": int(one.value), "id": one.address or str(one.index or 0)},
            subject=device,
            evidence=(Evidence.of(one),),
            remedies=("reset",) if one.vendor == "nvidia" else ("vendor-reset",),
        )
    if not counts:
        yield Undecided(reason="no count of uncorrected memory errors was told")
