"""`nvidia-smi` is there and gets no answer from a driver.

## What it finds
The tool's own refusal: it cannot communicate with the driver, cannot initialise NVML or find its library. Where the
same text shows a later answer, that one counts. That there is no device, or that one is lost, is an answer of the
driver's, and a fault of its own.

## Why it matters
No program can use the device until the driver answers.

## What it cannot know
Why: a module that is not loaded, a container without the driver's libraries. A finding that knows the
cause stands before this one.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Driver, Evidence, Facts, Finding, Remedy, Unavailable, Undecided, check

NO_DRIVER = """\
$ nvidia-smi
NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver \
is installed and running.
"""
NO_LIBRARY = """\
root@host:/w# nvidia-smi
NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that the NVIDIA Display Driver is \
properly installed and present in your system.
Please also try adding directory that contains libnvidia-ml.so to your system PATH.
"""
ANSWERS = """\
$ nvidia-smi
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 525.105.17   Driver Version: 525.105.17   CUDA Version: 12.0     |
|-------------------------------+----------------------+----------------------+
"""
LOST = """\
$ nvidia-smi
Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost. Reboot the system to recover this GPU
"""
ANSWERED = ("Unable to determine the device handle", "No devices")
"""How the words begin that need a driver that answers."""


@check(
    "nvidia/driver-silent",
    severity="error",
    about="nvidia",
    needs=(),
    uses=(Driver, Unavailable),
    words={
        "en": {
            "title": "nvidia-smi gets no answer from the driver",
            "summary": "nvidia-smi: {reason}",
            "cause": "The kernel module is not loaded, or the driver's libraries are not visible (a container without "
            "them) or of another version.",
        },
        "zh": {
            "title": "nvidia-smi 无法从驱动得到应答",
            "summary": "nvidia-smi 报告：{reason}",
            "cause": "内核模块未加载、驱动库不可见（例如容器中未挂载），或驱动库与内核模块版本不一致。",
        },
    },
    remedies=(
        Remedy(
            key="host",
            title={
                "en": "On the host: see whether the module is loaded, and what the kernel says of it",
                "zh": "在主机上：检查内核模块是否已加载，以及内核日志中的相关信息",
            },
            commands=("lsmod | grep nvidia", "sudo dmesg | grep -i nvrm"),
            safety="safe",
            verify="nvidia-smi",
            source="https://github.com/mattshma/bigdata/issues/133",
        ),
        Remedy(
            key="container",
            title={
                "en": "In a container: see whether the driver's library was mounted into it",
                "zh": "在容器中：检查驱动库是否已挂载",
            },
            commands=("ldconfig -p | grep libnvidia-ml",),
            safety="safe",
            verify="nvidia-smi",
            source="https://github.com/dengcao/Qwen3-Reranker-0.6B/issues/3",
        ),
    ),
    sources=(
        "https://github.com/mattshma/bigdata/issues/133",
        "https://github.com/dengcao/Qwen3-Reranker-0.6B/issues/3",
    ),
    explains=("torch/device-unavailable",),
    fires=(NO_DRIVER, NO_LIBRARY),
    silent=(ANSWERS, LOST, NO_DRIVER + "$ sudo reboot\n" + ANSWERS),
)
def driver_silent(facts: Facts) -> Iterator[Answer]:
    """Look for the tool's refusal."""
    refusals = [one for one in facts.all(Unavailable) if one.what == "nvidia-smi" and one.how == "failed"]
    refusal = refusals[-1] if refusals else None
    answered = bool(refusal and any(words in refusal.reason for words in ANSWERED))
    if refusal and not answered and not refusal.reason.startswith("stopped") and not _answered_after(refusal, facts):
        yield Finding(values={"reason": refusal.reason}, evidence=(Evidence.of(refusal),))
    elif not answered and not any(one.vendor == "nvidia" and one.version for one in facts.all(Driver)):
        yield Undecided(reason="nvidia-smi was not asked")


def _answered_after(refusal: Unavailable, facts: Facts) -> bool:
    """Whether the tool showed a driver further down in the same text."""
    place = refusal.origin
    later = (one.origin for one in facts.all(Driver) if one.vendor == "nvidia" and one.version)
    return any(origin.capture == place.capture and 0 < place.line < origin.line for origin in later)
