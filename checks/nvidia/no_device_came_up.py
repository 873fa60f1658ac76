"""The NVIDIA driver answers and has no GPU.

## What it finds
`nvidia-smi` that ends with "No devices were found". Where the same text shows a device further down, that counts.

## Why it matters
No program can use a GPU, although module and libraries are there.

## What it cannot know
Why, without the kernel's log: the driver failed to start each GPU, or a container was given the driver's libraries and
no GPU. A finding that knows the cause stands before this one.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Accelerator, Answer, Evidence, Facts, Finding, Remedy, Unavailable, Undecided, check

THREAD = "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/862"
REFUSED = "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/789"
NONE = ("No devices were found", "No devices found")

ON_THE_BUS = """\
$ nvidia-smi
No devices were found
$ lspci -nn | grep -i nvidia
18:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330] (rev a1)
"""
TABLE = """\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 525.105.17   Driver Version: 525.105.17   CUDA Version: 12.0     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|                               |                      |               MIG M. |
|===============================+======================+======================|
|   0  NVIDIA A100-SXM...  Off  | 00000000:AF:00.0 Off |                    0 |
| N/A   32C    P0    42W / 400W |  48770MiB / 81920MiB |      0%      Default |
|                               |                      |             Disabled |
"""


@check(
    "nvidia/no-device-came-up",
    severity="error",
    about="nvidia",
    needs=(),
    uses=(Accelerator, Unavailable),
    words={
        "en": {
            "title": "The NVIDIA driver answers and has no GPU",
            "summary": "nvidia-smi: {reason}",
            "cause": "The driver is loaded and could not start any GPU (the kernel's log then has RmInitAdapter "
            "failed), or this container was given no GPU.",
        },
        "zh": {
            "title": "NVIDIA 驱动有应答，但没有任何 GPU",
            "summary": "nvidia-smi 报告：{reason}",
            "cause": "驱动已加载，但未能启动任何 GPU（此时内核日志中有 RmInitAdapter failed），或未给该容器分配 GPU。",
        },
    },
    remedies=(
        Remedy(
            key="host",
            title={
                "en": "On the host: read why the driver could not start the GPU",
                "zh": "在主机上：查看驱动无法启动 GPU 的原因",
            },
            commands=("sudo dmesg | grep -iE 'nvrm|RmInitAdapter'", "lspci -nnk -d 10de:"),
            safety="safe",
            verify="nvidia-smi -L",
            source=REFUSED,
        ),
        Remedy(
            key="firmware",
            title={
                "en": "Where the log has RmInitAdapter failed: turn on Above 4G Decoding and Resizable BAR in the "
                "firmware's setup, and install a driver that knows this GPU (Blackwell needs the open modules)",
                "zh": "若日志中有 RmInitAdapter failed：在 BIOS 中启用 Above 4G Decoding 与 Resizable BAR，并安装支持"
                "该 GPU 的驱动（Blackwell 需要开源内核模块）",
            },
            safety="manual",
            verify="nvidia-smi -L",
            source=THREAD,
        ),
        Remedy(
            key="container",
            title={"en": "In a container: see whether a GPU was passed on", "zh": "在容器中：检查是否传入了 GPU"},
            commands=("ls -l /dev/nvidia*",),
            safety="safe",
            verify="nvidia-smi -L",
        ),
    ),
    sources=(THREAD, REFUSED),
    explains=("torch/device-unavailable", "device/count-below-expected"),
    fires=(ON_THE_BUS, "$ nvidia-smi\nNo devices were found\n"),
    silent=(TABLE, "$ nvidia-smi\nNo devices were found\n$ nvidia-smi\n" + TABLE),
)
def no_device_came_up(facts: Facts) -> Iterator[Answer]:
    """Look for the tool's words."""
    refusals = [one for one in facts.all(Unavailable) if one.what == "nvidia-smi" and one.how == "failed"]
    refusal = refusals[-1] if refusals else None
    listed = [one for one in facts.all(Accelerator) if one.vendor == "nvidia" and one.seen_by == "tool"]
    if refusal and refusal.reason.startswith(NONE):
        place = refusal.origin
        if not any(one.origin.capture == place.capture and place.line < one.origin.line for one in listed):
            yield Finding(values={"reason": refusal.reason}, evidence=(Evidence.of(refusal),))
    elif not listed:
        yield Undecided(reason="nvidia-smi did not tell which devices there are")
