"""A vendor's tool is there and gets no answer from its driver or device.

## What it finds
The refusal of a maker's own tool (`rocminfo`, `rocm-smi`, `amd-smi`, `hy-smi`, `npu-smi`, `xpu_smi`, `mx-smi`,
`mthreads-gmi`, `hl-smi`) in its own words, or that it ended in failure. NVIDIA's tool has a check of its own. A
managing tool that fails where another one of the same maker lists the devices is no fault; `rocminfo` asks the runtime
that programs use, so its refusal always counts. Where the tool lists a device further down in the same text, that
counts.

## Why it matters
No program can use the device until the driver answers.

## What it cannot know
Why: a module that is not loaded, device files that a container was not given or that the user may not open, a device
that is lost. A finding that knows the cause stands before this one. A failure in words that are not known for a refusal
may have another reason, hence its low confidence. On a machine with devices of several makers (Intel's graphics beside
them left out) this is not asked: a tool that was installed along may have nothing to manage.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Accelerator,
    Answer,
    Evidence,
    Facts,
    Finding,
    Platform,
    Remedy,
    Shell,
    Unavailable,
    Undecided,
    check,
)

TOOLS = {
    "rocminfo": ("amd", "hygon"),
    "rocm-smi": ("amd", "hygon"),
    "amd-smi": ("amd",),
    "hy-smi": ("hygon",),
    "npu-smi": ("ascend",),
    "kunlun/xpu-smi": ("kunlun",),
    "mx-smi": ("metax",),
    "mthreads-gmi": ("mthreads",),
    "hl-smi": ("intel",),
}
"""The probes of the tools, the most telling first, and whose devices each manages."""
RUNTIME = "rocminfo"
NO_WORK = ("stopped", "diag could not read")
USAGE = ("unrecognized arguments", "invalid choice", "nvalid option", "nknown option", "usage:")
"""A tool that does not know what it was asked for says nothing of its driver."""
REFUSALS = (
    *("NOT loaded", "NOT live", "not initialized", "dcmi mod", "No AMD GPUs", "/dev/kfd", "HSA_STATUS"),
    *("lists no accelerator", "cannot open shared object", "timed out"),
)
COMMANDS = {"kunlun/xpu-smi": "xpu_smi"}
LOOK = {
    "amd": ("/dev/kfd /dev/dri/renderD*", "amdgpu"),
    "hygon": ("/dev/kfd /dev/mkfd /dev/dri/renderD*", "hycu|hydcu"),
    "ascend": ("/dev/davinci* /dev/devmm_svm /dev/hisi_hdc", "davinci"),
    "kunlun": ("/dev/xpu*", "kunlun|xpu"),
    "metax": ("/dev/mxcd /dev/dri/renderD*", "metax"),
    "mthreads": ("/dev/mtgpu* /dev/dri/renderD*", "mtgpu"),
    "intel": ("/dev/accel/accel*", "habanalabs"),
}
"""The device files of each maker, and its modules of the kernel."""

NOT_LOADED = """\
rocm-user@host-1:~$ rocminfo
ROCk module is NOT loaded, possibly no GPU devices
"""
SMI_NONE = """\
user@host-1:~$ rocm-smi


======================= ROCm System Management Interface =======================
WARNING: No AMD GPUs specified
================================= Concise Info =================================
GPU  Temp  AvgPwr  SCLK  MCLK  Fan  Perf  PwrCap  VRAM%  GPU%
================================================================================
============================= End of ROCm SMI Log ==============================
"""
NPU_8005 = """\
DrvMngGetConsoleLogLevel failed. (g_conLogLevel=3)
dcmi module initialize failed. ret is -8005
"""
NPU_8020 = """\
root@aa6890a14c34:/# npu-smi info
DrvMngGetConsoleLogLevel failed. (g_conLogLevel=3)
dcmi model initialized failed, because the device is used. ret is -8020
"""
NPU_ANSWERS = """\
+------------------------------------------------------------------------------------------------+
| npu-smi 23.0.3                   Version: 23.0.3                                               |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 0     910B2C              | OK            | 89.9        53                0    / 0             |
| 0                         | 0000:5A:00.0  | 0           0    / 0          3317 / 65536         |
"""
SMI_ANSWERS = """\
========================= ROCm System Management Interface =========================
=================================== Concise Info ===================================
GPU  Temp (DieEdge)  AvgPwr  SCLK     MCLK    Fan     Perf  PwrCap  VRAM%  GPU%
0    35.0c           77.0W   1725Mhz  800Mhz  14.51%  auto  225.0W    9%   100%
1    30.0c           17.0W   930Mhz   350Mhz  14.51%  auto  225.0W    0%   0%
====================================================================================
=============================== End of ROCm SMI Log ================================
"""
ROCM_ANSWERS = """\
ROCk module is loaded
user is not member of "video" group, the default DRM access group. Users must be a member of the "video" group or \
another DRM access group in order for ROCm applications to run successfully.
==========
HSA Agents
==========
*******
Agent 2
*******
  Name:                    gfx803
  Marketing Name:          Ellesmere [Radeon RX 470/480/570/570X/580/580X]
  Vendor Name:             AMD
"""
HYGON_ANSWERS = """\
user@host:~$ /usr/local/dtk-24.04.3/bin/hy-smi --showid --showmeminfo vram --showuniqueid --json

Error: Failed to show unique id: File read or write error.
{"card0": {"Device ID": "0x55b7", "Card Series": "Z100L", "Card Vendor": "Chengdu Haiguang IC Design Co., Ltd.", \
"DCU use (%)": "0", "vram Total Memory (MiB)": "32752", "vram Total Used Memory (MiB)": "2"}}
Warning: One or more commands failed
"""


def elsewhere(facts: Facts) -> str:
    """Why it does not concern a machine that has none of these makers' devices, or devices of several makers."""
    present = _present(facts)
    known = {name for makers in TOOLS.values() for name in makers}
    return f"this machine has {' and '.join(sorted(present))}" if len(present) > 1 or present - known else ""


@check(
    "device/tool-unanswered",
    severity="error",
    about="device",
    needs=(),
    uses=(Accelerator, Platform, Unavailable),
    applies=elsewhere,
    words={
        "en": {
            "title": "The vendor's tool gets no answer from the driver",
            "summary": "{tool}: {reason}",
            "cause": "The kernel module is not loaded, a container has not been given the device files or the driver's "
            "libraries, the user may not open them, or the device does not answer.",
        },
        "zh": {
            "title": "厂商工具无法从驱动得到应答",
            "summary": "{tool} 报告：{reason}",
            "cause": "内核模块未加载、容器未挂载设备文件或驱动库、当前用户无权打开设备文件，或设备无应答。",
        },
    },
    remedies=(
        Remedy(
            key="look",
            title={
                "en": "See whether the device files are there and may be opened, whether the module is loaded, and "
                "what the kernel says",
                "zh": "检查设备文件是否存在且可访问、内核模块是否已加载，以及内核日志",
            },
            commands=("ls -l {nodes}", "id", "lsmod | grep -E '{modules}'", "sudo dmesg | grep -iE '{modules}'"),
            safety="safe",
            verify="{tool}",
            source="https://github.com/ROCm/ROCm-docker/issues/107",
        ),
        Remedy(
            key="holder",
            title={
                "en": "On the host: see whether another container holds the device (-8005 and -8020), and start this "
                "one with a free device",
                "zh": "在宿主机上：检查设备是否已被其他容器占用（-8005、-8020），改用空闲设备启动容器",
            },
            commands=(
                "npu-smi info",
                "docker ps -q | xargs docker inspect -f '{{.Name}} {{.HostConfig.Devices}}'",
            ),
            safety="safe",
            verify="npu-smi info",
            source="https://github.com/vllm-project/vllm-ascend/issues/2698",
        ),
    ),
    sources=(
        "https://github.com/ROCm/ROCm-docker/issues/107",
        "https://github.com/ROCm/legacy-rocm-build/issues/4043",
        "https://github.com/ROCm/ROCm/issues/1008",
        "https://github.com/vllm-project/vllm-ascend/issues/2698",
        "https://github.com/Ascend/cann-container-image/issues/46",
        "https://github.com/gpustack/gpustack/issues/1508",
    ),
    explains=("torch/device-unavailable",),
    fires=(NOT_LOADED, SMI_NONE, NPU_8005, NPU_8020),
    silent=(
        NPU_ANSWERS,
        ROCM_ANSWERS,
        HYGON_ANSWERS,
        NOT_LOADED + "$ sudo modprobe amdgpu\n$ rocm-smi\n" + SMI_ANSWERS,
    ),
)
def tool_unanswered(facts: Facts) -> Iterator[Answer]:
    """Look for a refusal that no answer follows."""
    present = _present(facts)
    refusals = [one for one in facts.all(Unavailable) if _refuses(one, present)]
    answers = [one for one in facts.all(Accelerator) if one.seen_by == "tool"]
    stands = [one for one in refusals if not _answered(one, answers)]
    if stands:
        yield _finding(sorted(stands, key=lambda one: list(TOOLS).index(one.what)), present)
    elif not answers:
        yield Undecided(reason="no vendor's tool was asked")


def _present(facts: Facts) -> set[str]:
    """The makers whose devices are here; Intel's graphics stand beside those of others in many machines."""
    present = {name for platform in facts.all(Platform) for name in platform.present}
    return present - {"intel"} or present


def _refuses(one: Unavailable, present: set[str]) -> bool:
    """Whether a tool of the makers that are here (or of any, where none is known) failed at its own work."""
    makers = TOOLS.get(one.what, ())
    own = not present or not present.isdisjoint(makers)
    empty = one.what == RUNTIME and one.how == "silent" and one.reason == "it lists no accelerator"
    failed = one.how == "failed" and not one.reason.startswith(NO_WORK)
    return bool(makers) and own and (empty or failed) and not any(words in one.reason for words in USAGE)


def _answered(refusal: Unavailable, answers: list[Accelerator]) -> bool:
    """Whether the tools list devices all the same: anywhere for a managing tool, later for that of the runtime."""
    makers, at = TOOLS[refusal.what], refusal.origin
    own = [one.origin for one in answers if not one.vendor or one.vendor in makers]
    later = any(place.capture == at.capture and 0 < at.line < place.line for place in own)
    return later or (bool(own) and refusal.what != RUNTIME)


def _finding(stands: list[Unavailable], present: set[str]) -> Finding:
    first = stands[0]
    makers = TOOLS[first.what]
    maker = next((name for name in makers if name in present), makers[0])
    nodes, modules = LOOK[maker]
    tool = "npu-smi info" if maker == "ascend" else COMMANDS.get(first.what, first.what)
    held = "-8005" in first.reason or "-8020" in first.reason
    return Finding(
        values={"tool": Shell(tool), "reason": first.reason, "nodes": Shell(nodes), "modules": modules},
        confidence="high" if any(words in first.reason for words in REFUSALS) else "low",
        evidence=tuple(map(Evidence.of, {one.what: one for one in stands}.values())),
        remedies=("holder", "look") if held else ("look",),
    )
