"""A torch without a local part, on a machine for which the plain wheel of that release is a build for the CPU alone.

## What it finds
`torch==2.9.0` beside a device whose host is of a machine (aarch64: GH200, GB200, GB300, GB10, or a server that says so)
for which the package registry serves a build for the CPU alone, as `kb/reference/torch_wheels.yaml` has it: in a set
that is asked about, or in a whole list of packages that has none of the libraries which a build for the device brings.

## Why it matters
torch sees no device, and the engine's extension ends with "libtorch_cuda.so: cannot open shared object file". Any
package that pins torch makes pip do so, also over a build that was right.

## What it cannot know
Where the torch came from: builds of conda, of a vendor's container and of one's own may bear the same version. Those
that tell what they were built for, that have a local part, and boards whose wheels are the maker's own are not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    RAN,
    Accelerator,
    Answer,
    Component,
    DeviceModel,
    EngineState,
    Evidence,
    Facts,
    Finding,
    Host,
    Package,
    PackageList,
    Platform,
    Remedy,
    TorchBuild,
    TorchWheel,
    Undecided,
    Vendor,
    architecture_of,
    check,
    devices,
    expression,
    machines_of,
    plain_wheel,
    posed,
)

RELEASED = expression(r"\d+(?:\.\d+)+")
LIBRARIES = expression(r"nvidia-.+|cuda-toolkit|cuda-bindings")
"""What a build for the device brings beside it, of whatever version."""
MONITORS = ("nvidia-ml-py", "nvidia-smi")
JETSON = {"sm_53", "sm_62", "sm_72", "sm_87", "sm_101", "sm_110"}
"""Boards whose wheels are the maker's own."""

ASKED = "$ diag matrix check "
ARM = "Linux node1 6.8.0-1027-nvidia-64k #30-Ubuntu SMP PREEMPT_DYNAMIC aarch64 aarch64 aarch64 GNU/Linux\n"
X86 = "Linux node1 6.8.0-59-generic #61-Ubuntu SMP PREEMPT_DYNAMIC x86_64 x86_64 x86_64 GNU/Linux\n"
GH200 = "GPU 0: NVIDIA GH200 480GB (UUID: GPU-2f4a8b1c-5d6e-7f80-91a2-b3c4d5e6f708)\n"
A100 = "GPU 0: NVIDIA A100-PCIE-40GB (UUID: GPU-2f4a8b1c-5d6e-7f80-91a2-b3c4d5e6f708)\n"
LISTED = """\
Package            Version
------------------ ---------
certifi            2022.12.7
charset-normalizer 2.1.1
filelock           3.16.1
fsspec             2024.10.0
idna               3.4
Jinja2             3.1.4
MarkupSafe         3.0.2
mpmath             1.3.0
networkx           3.4.2
numpy              2.1.3
pillow             10.2.0
pynvml             11.5.3
requests           2.28.1
sympy              1.13.1
torch              2.5.1
typing_extensions  4.12.2
urllib3            1.26.13
"""
"""The list of https://github.com/vllm-project/vllm/issues/10459."""
FOR_CUDA = LISTED.replace("pillow", "nvidia-cuda-runtime-cu12 12.4.127\nnvidia-nccl-cu12 2.21.5\npillow")


@check(
    "torch/plain-wheel-without-cuda",
    severity="warning",
    about="nvidia",
    verdict="known-bad",
    checked="2026-11-30",
    needs=(Accelerator, Package),
    uses=(Component, DeviceModel, Host, PackageList, Platform, TorchBuild, TorchWheel, Vendor),
    words={
        "en": {
            "title": "The plain wheel of this torch has no CUDA on this machine",
            "summary": "torch {torch} from the package registry is a build for the CPU alone on {machine}, the host of "
            "{device}",
            "cause": "Up to 2.10 the registry has wheels of torch for aarch64 without CUDA; those with it stand in "
            "torch's own index and bear it in their version (+cu128). pip takes the plain one, also as a dependency of "
            "an engine that pins torch.",
        },
        "zh": {
            "title": "该版本 torch 的默认 wheel 在本机上不含 CUDA",
            "summary": "{device} 的主机为 {machine}，软件包仓库中的 torch {torch} 在其上仅为 CPU 构建",
            "cause": "2.10 及以前，仓库中 aarch64 的 torch wheel 不含 CUDA；含 CUDA 的构建位于 torch 自己的索引，"
            "版本号带有标记（+cu128）。pip 会安装默认构建，被锁定 torch 的引擎作为依赖带入时也是如此。",
        },
    },
    remedies=(
        Remedy(
            key="index",
            title={
                "en": "Install the build for CUDA from torch's own index, after whatever else pins torch",
                "zh": "从 torch 自己的索引安装 CUDA 构建，并在其他锁定 torch 的软件包之后安装",
            },
            commands=('pip install "torch=={torch}" --index-url https://download.pytorch.org/whl/{index}',),
            safety="disruptive",
            verify='python -c "import torch; print(torch.__version__, torch.cuda.is_available())"',
            source="https://github.com/pytorch/pytorch/issues/168065",
        ),
        Remedy(
            key="newer",
            title={
                "en": "Or move to torch {until} or newer, whose plain wheel has CUDA, with the engine that pins it",
                "zh": "或升级到 torch {until} 及以上（其默认 wheel 含 CUDA）以及与之配套的引擎",
            },
            commands=('pip install "torch>={until}"',),
            safety="disruptive",
            verify='python -c "import torch; print(torch.__version__, torch.cuda.is_available())"',
            source="https://github.com/pytorch/pytorch/issues/160162",
        ),
    ),
    sources=(
        "https://github.com/pytorch/pytorch/issues/160162",
        "https://github.com/pytorch/pytorch/issues/168065",
        "https://github.com/vllm-project/vllm/issues/28371",
        "https://github.com/vllm-project/vllm/issues/10459",
        "https://github.com/hanyeol/model-compose/pull/24",
        "https://github.com/eugr/spark-vllm-docker/pull/263",
        "https://pypi.org/project/torch/2.10.0/",
        "https://pypi.org/project/torch/2.11.0/",
    ),
    fires=(
        ASKED + "gpu=GB10 vllm==0.11.2 torch==2.9.0 driver=580.95.05",
        ASKED + "gpu=GB10 torch==2.10.0",
        ASKED + "gpu=GB200 vllm==0.11.0 torch==2.8.0 driver=570.124.06",
        ASKED + '"gpu=NVIDIA GH200 480GB" driver=550.54.15 torch==2.5.1',
        *(ARM + GH200 + LISTED, GH200 + LISTED, ARM + A100 + LISTED),
    ),
    silent=(
        ASKED + "gpu=GB10 torch==2.9.0+cu130 driver=580.95.05",
        ASKED + "gpu=GB10 torch==2.9.0a0+145a3a7bda",
        ASKED + "gpu=GB10 torch==2.11.0 driver=580.95.05",
        ASKED + "gpu=GB10 torch==2.9.0 cuda=13.0",
        *(ARM + GH200 + FOR_CUDA, X86 + A100 + LISTED),
    ),
)
def plain_wheel_without_cuda(facts: Facts) -> Iterator[Answer]:
    """Look for the wheel that a plain installation gives here, and for what tells of another."""
    torch, listed = facts.package("torch"), [one for one in devices(facts) if architecture_of(facts, one) not in JETSON]
    if torch is None or not listed or not RELEASED.fullmatch(torch.version):
        return
    row, machines = plain_wheel(facts, torch.version, listed), machines_of(facts, listed)
    if not machines:
        yield Undecided(reason="of which architecture the host's processor is is not told")
    elif row is None or row.backend != "cpu" or _told(facts) or posed(facts, row.vendor):
        return
    elif reason := _open(facts, torch):
        yield Undecided(reason=reason)
    else:
        device = next(one for one in listed if one.vendor == row.vendor)
        host = next((one for one in facts.all(Host) if one.machine), None)
        shown = [torch, device, *([host] if host else [])]
        yield Finding(
            values={
                "torch": torch.version,
                "device": device.name or device.vendor,
                "machine": row.machine,
                "index": row.index,
                "until": row.until,
            },
            confidence="medium",
            evidence=tuple({one.origin: Evidence.of(one) for one in shown}.values()),
            source=row.source,
            checked=row.checked,
            remedies=("index", "newer") if row.index else ("newer",),
        )


def _told(facts: Facts) -> bool:
    """Whether a text tells what torch was built for."""
    return any((one.backend and not one.inferred) or one.architectures for one in facts.all(TorchBuild))


def _open(facts: Facts, torch: Package) -> str:
    """Why it may be another wheel of this version; empty where somebody asks about it, or the list has no library."""
    if any(one.name in RAN for one in facts.all(EngineState)):
        return "an engine ran with it on this machine"
    if any(one.origin == torch.origin for one in facts.all(Component)):
        return ""
    if torch.installer == "conda":
        return "this torch is one of conda's"
    if facts.first(PackageList) is None:
        return "whether libraries of CUDA are installed is not told"
    brought = (one.name for one in facts.all(Package) if one.name not in MONITORS)
    return "libraries of CUDA are installed beside it" if any(map(LIBRARIES.fullmatch, brought)) else ""
