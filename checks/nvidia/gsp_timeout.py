"""The processor inside a GPU that runs the driver's firmware (GSP) does not answer.

## What it finds
Xid 119 and 120 in the kernel's log, and the driver's words that the heartbeat of the GSP, or a call to it, timed out.

## Why it matters
Every call to the driver for that GPU waits and fails; `nvidia-smi` hangs, and so do engines at their start.

## What it cannot know
Whether firmware, driver or hardware is at fault; one that comes back after a reboot on the same GPU points at hardware.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, HardwareEvent, Remedy, Text, Undecided, check, device_name

CATALOGUE = "https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html"
CODES = {"119": "Xid 119", "120": "Xid 120"}

TIMEOUT = """\
[Sun Feb 23 16:24:18 2025] NVRM: Xid (PCI:0000:9b:00): 119, pid=2024380, name=nvidia-smi, Timeout after 6s of waiting \
for RPC response from GPU4 GSP! Expected function 103 (GSP_RM_ALLOC) (0x2081 0x4).
"""
REBOOTING = """\
[Mon Nov 30 03:12:44 2026] NVRM: Xid (PCI:0000:af:00): 119, pid=3344, name=python, Timeout after 6s of waiting for RPC \
response from GPU0 GSP! Expected function 76 (GSP_RM_CONTROL) (0x20802a02 0x4).
[Mon Nov 30 03:12:50 2026] NVRM: Xid (PCI:0000:af:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node \
Reboot Required)
"""
HEARTBEAT = """\
Mar 21 21:42:01 kernel: NVRM: GPU0 _kgspRpcRecvPoll: GSP RM heartbeat timed out
"""
CALLS = """\
[   24.302465] NVRM: GPU6 _kgspIsHeartbeatTimedOut: Heartbeat timed out, currentTimeMs 812751949 heartbeat 1899482 \
heartbeatWithOffsetMs 812745879 diff 6070 timeout 5200
[   84.300488] NVRM: GPU6 _kgspLogRpcTimeout: ********************************* GSP Timeout \
**********************************
"""
MARKED = """\
kern: warning: [2026-04-22T21:30:51.526447914Z]: NVRM: nvAssertFailedNoLog: Assertion failed: Back to back GSP RPC \
timeout detected! GPU marked for reset @ kernel_gsp.c:2387
"""
POLLED = """\
kern: warning: [2026-04-22T21:30:51.803749334Z]: NVRM: _issueRpcAndWait: rpcRecvPoll timedout for fn 76 sequence 4129!
"""
QUIET = """\
[   38.174242] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.195.03  Release Build  \
(dvs-builder@U22-I3-H04-03-1)  Sat Sep 20 00:47:16 UTC 2025
"""


@check(
    "nvidia/gsp-timeout",
    severity="error",
    about="nvidia",
    needs=(),
    uses=(HardwareEvent, Text),
    words={
        "en": {
            "title": "The processor inside a GPU does not answer the driver",
            "summary": "{device}: the GSP timed out ({what}), reported {count}x",
            "cause": "The firmware on the GPU's own processor (GSP) crashed or hangs; a GPU that is about to fall "
            "off the bus looks the same at first.",
        },
        "zh": {
            "title": "GPU 内部处理器（GSP）不应答驱动",
            "summary": "{device}：GSP 超时（{what}），报告了 {count} 次",
            "cause": "GPU 自带处理器（GSP）上的固件崩溃或挂起；即将掉卡的 GPU 起初也是同样的表现。",
        },
    },
    remedies=(
        Remedy(
            key="reset",
            title={
                "en": "Stop everything that uses the GPU and reset it; if the reset hangs, power the machine off "
                "and on",
                "zh": "停止所有使用该 GPU 的进程并复位；若复位挂起，则断电重启机器",
            },
            commands=("sudo nvidia-smi --gpu-reset",),
            safety="disruptive",
            verify="timeout 30 nvidia-smi",
            source=CATALOGUE,
        ),
        Remedy(
            key="reboot",
            title={
                "en": "The driver asks for a reboot (Xid 154): reboot the machine; a reset is not enough",
                "zh": "驱动要求重启（Xid 154）：重启机器，仅复位不够",
            },
            commands=("sudo reboot",),
            safety="disruptive",
            verify="timeout 30 nvidia-smi",
            source=CATALOGUE,
        ),
        Remedy(
            key="newer-driver",
            title={
                "en": "If it comes back: install a newer driver, whose firmware comes with it",
                "zh": "若再次出现：安装更新的驱动（固件随驱动一起更新）",
            },
            safety="disruptive",
            verify="sudo dmesg | grep -iE 'xid|gsp'",
            source="https://github.com/NVIDIA/open-gpu-kernel-modules/issues/446",
        ),
    ),
    sources=(
        CATALOGUE,
        "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/446",
        "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/1230",
    ),
    explains=("nvidia/driver-silent", "nvidia/recovery-action-pending"),
    fires=(TIMEOUT, REBOOTING, HEARTBEAT, CALLS, MARKED, POLLED),
    silent=(QUIET,),
)
def gsp_timeout(facts: Facts) -> Iterator[Answer]:
    """Gather what the driver logged of it, device by device."""
    told: dict[str, list[HardwareEvent]] = {}
    for event in facts.all(HardwareEvent):
        if event.kind == "gsp-timeout" or (event.kind == "xid" and event.code in CODES):
            told.setdefault(event.address, []).append(event)
    asked = {one.address: one.message for one in facts.all(HardwareEvent) if (one.kind, one.code) == ("xid", "154")}
    unnamed = told.pop("", []) if len(told) > 1 else []
    for place, (address, events) in enumerate(told.items()):
        events += unnamed if not place else []
        device = device_name(facts, address=address, vendor="nvidia")
        what = ", ".join(dict.fromkeys(map(_what, events)))
        said = asked.get(address, "") if address or len(asked) != 1 else next(iter(asked.values()))
        reboot = said.endswith("(Node Reboot Required)")
        yield Finding(
            values={"device": device or "GPU", "what": what, "count": len(events)},
            subject=device,
            remedies=("reboot" if reboot else "reset", "newer-driver"),
            evidence=tuple(map(Evidence.of, events[:1] if len(events) == 1 else [events[0], events[-1]])),
        )
    if not told and not facts.read("kernel-log"):
        yield Undecided(reason="the kernel's log was not read")


def _what(event: HardwareEvent) -> str:
    return CODES.get(event.code) or ("heartbeat" if "eartbeat timed out" in event.message else "RPC")
