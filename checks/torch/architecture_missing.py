"""torch holds no kernels that run on this device.

## What it finds
A device whose compute capability is in none of the architectures torch was built for: neither of its own major
version at or below its minor, nor as PTX (`compute_NN`) that the driver could compile for it. Where a device's
architecture is not told, that of its model counts; where torch's list is not told, that of PyTorch's build of this
version for this runtime; of a release in a list of pip that does not tell its runtime either, those of all its builds,
which then must all leave the device out, or all run on it.

## Why it matters
Every kernel launch fails: "no kernel image is available for execution on the device".

## What it cannot know
The architectures of the engine's own extension, which may differ from torch's (engine/no-code-for-device looks at
those). Other vendors' names (`gfx…`) are compared as they are. Builds that are not PyTorch's own (conda-forge, NVIDIA's
images and wheels for Jetson), builds for Windows and those of versions that `kb/reference/torch_builds.yaml` does not
list are judged by their own list alone; so are AMD's devices of unknown models, and all while a variable makes a device
pose as another. Of a runtime that is not told nothing is concluded on ARM, where the package index long served builds
for the CPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from diag.api import (
    JETSON,
    RAN,
    Accelerator,
    Answer,
    Component,
    DeviceModel,
    EngineState,
    Evidence,
    Facts,
    Finding,
    Fits,
    Host,
    Package,
    Platform,
    Release,
    Remedy,
    TorchArchitectures,
    TorchBuild,
    Undecided,
    check,
    devices,
    expression,
    local,
    machines_of,
    model_of,
    numbers,
    public,
    runs_on,
    same,
    satisfies,
)

SM120 = """\
vllm-1  | /usr/local/lib/python3.12/dist-packages/torch/cuda/__init__.py:287: UserWarning:
vllm-1  | NVIDIA GeForce RTX 5070 Ti with CUDA capability sm_120 is not compatible with the current PyTorch \
installation.
vllm-1  | The current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90.
vllm-1  | If you want to use the NVIDIA GeForce RTX 5070 Ti GPU with PyTorch, please check the instructions at \
https://pytorch.org/get-started/locally/
"""
SM90 = """\
/root/torchbuild/lib/python3.10/site-packages/torch/cuda/__init__.py:173: UserWarning:
NVIDIA H100 PCIe with CUDA capability sm_90 is not compatible with the current PyTorch installation.
The current PyTorch install supports CUDA capabilities sm_37 sm_50 sm_60 sm_70 sm_75 sm_80 sm_86.
If you want to use the NVIDIA H100 PCIe GPU with PyTorch, please check the instructions at \
https://pytorch.org/get-started/locally/
"""
SM89_ON_SM86 = """\
{"schema": "diag/torch-env/1", "executable": "/opt/venv/bin/python", "import_seconds": 3.9, "build": \
{"version": "2.7.1+cu128", "cuda": "12.8", "hip": null, "xpu": null, "debug": false, "git_version": null, \
"architectures": ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120", "compute_120"]}, "available": true, \
"backend": "cuda", "devices": [{"index": 0, "name": "NVIDIA L4", "architecture": "sm_89"}]}
"""
SMI_5090 = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 570.124.04             Driver Version: 570.124.04     CUDA Version: 12.8     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA GeForce RTX 5090         On | 00000000:18:00.0 Off |                    0 |
| N/A   32C    P0              72W /  575W |       4MiB /  32607MiB |      0%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
"""
UNFIT_5090 = """\
NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation.
The current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90.
"""
ENV_5090 = """\
PyTorch version: 2.6.0+cu124
Is debug build: False
CUDA used to build PyTorch: 12.4
ROCM used to build PyTorch: N/A

OS: Ubuntu 22.04.4 LTS (x86_64)
Is CUDA available: True
GPU models and configuration: GPU 0: NVIDIA GeForce RTX 5090
Nvidia driver version: 570.124.04
"""
LIST_CU121 = """\
$ pip list | grep -E 'torch|vllm'
torch                    2.5.1+cu121
torchvision              0.20.1+cu121
vllm                     0.6.6
"""
FROZEN_CU128 = "torch==2.7.0+cu128\nvllm==0.9.1\n"
FROZEN_PLAIN = "torch==2.6.0\ntorchvision==0.21.0\n"
SMI_L40S = SMI_5090.replace("NVIDIA GeForce RTX 5090 ", "NVIDIA L40S             ")
SMI_V100 = SMI_5090.replace("NVIDIA GeForce RTX 5090 ", "Tesla V100-SXM2-32GB    ")
V100_CU128 = """\
Torch version: 2.11.0+cu128
CUDA available: True
CUDA version: 12.8
"""
ENV_V100_CU126 = """\
Collecting environment information...
PyTorch version: 2.7.0+cu126
CUDA used to build PyTorch: 12.6
Is CUDA available: True
GPU models and configuration:
GPU 0: Tesla V100-SXM2-16GB
GPU 1: Tesla V100-SXM2-16GB

Nvidia driver version: 535.183.01
"""
ENV_P100_CU124 = ENV_V100_CU126.replace("V100-SXM2", "P100-PCIE").replace("2.7.0+cu126", "2.5.1+cu124")
ENV_P100_CU124 = ENV_P100_CU124.replace("12.6", "12.4")
ENV_A100_CU128 = ENV_V100_CU126.replace("Tesla V100-SXM2-16", "NVIDIA A100-SXM4-40")
ENV_A100_CU128 = ENV_A100_CU128.replace("cu126", "cu128").replace("12.6", "12.8")
ASKED = "$ diag matrix check "
X86 = "x86_64"
RUNTIMES = {"nvidia": "cuda", "amd": "rocm"}
CALLED = {"cuda": "CUDA", "rocm": "ROCm"}
TOLD = "the list that this torch tells"
POSING = "HSA_OVERRIDE_GFX_VERSION"
RELEASED = expression(r"(?:\d+\.\d+\.\d+(?:\+(?:cu|rocm)\d+(?:\.\d+)*)?)?")
SHOWN = 3
"""How many builds are named that would do."""


@check(
    "torch/architecture-missing",
    severity="error",
    about="torch",
    verdict="known-bad",
    checked="2026-11-30",
    needs=(Accelerator,),
    uses=(Component, DeviceModel, EngineState, Host, Package, Platform, Release, TorchArchitectures, TorchBuild),
    words={
        "en": {
            "title": "torch has no kernels for this device",
            "summary": "{device} is {architecture}; torch {torch}was built for {supported}",
            "cause": "The device is newer than this build of torch, or so old that the build leaves it out.",
        },
        "zh": {
            "title": "torch 不包含适用于该设备的内核",
            "summary": "{device} 为 {architecture}，而 torch {torch}仅支持 {supported}",
            "cause": "该设备比此 torch 构建更新，或过于老旧，构建未包含其架构。",
        },
    },
    remedies=(
        Remedy(
            key="fitting-build",
            title={
                "en": "Install a build of torch whose code runs on {architecture}, and the engine's build for the same "
                "runtime: {fitting}",
                "zh": "安装代码可在 {architecture} 上运行的 torch 构建，以及面向相同运行时的推理引擎构建：{fitting}",
            },
            safety="manual",
            verify='python -c "import torch; print(torch.cuda.get_arch_list())"',
            source="https://pytorch.org/get-started/locally/",
        ),
        Remedy(
            key="newer-torch",
            title={
                "en": "Install a torch (and an engine build) whose architecture list has {architecture}",
                "zh": "安装架构列表包含 {architecture} 的 torch（以及对应的推理引擎构建）",
            },
            safety="manual",
            verify='python -c "import torch; print(torch.cuda.get_arch_list())"',
            source="https://pytorch.org/get-started/locally/",
        ),
    ),
    sources=(
        "https://github.com/vllm-project/vllm/issues/21633",
        "https://github.com/pytorch/pytorch/issues/110153",
        "https://github.com/vllm-project/vllm/pull/39878",
        "https://developer.nvidia.com/cuda-gpus",
        "https://github.com/Hellod035/LeggedLab/issues/26",
        "https://github.com/pytorch/pytorch/issues/182250",
        "https://github.com/meizhong986/WhisperJAV/issues/333",
        "https://github.com/index-tts/index-tts/issues/815",
        "https://github.com/vllm-project/production-stack/issues/528",
    ),
    fires=(
        *(SM120, SM90, ENV_5090, SMI_5090 + LIST_CU121, SMI_5090 + UNFIT_5090, SMI_V100 + V100_CU128),
        SMI_5090 + FROZEN_PLAIN,
        ASKED + "gpu=V100 torch==2.11.0 cuda=13.0",
        ASKED + "gpu=V100 torch==2.7.1 cuda=12.8",
        ASKED + "gpu=P100 torch==2.8.0+cu128",
        ASKED + 'gpu="RTX 5090" torch==2.7.0 cuda=12.6',
        ASKED + "gpu=8xB200 cuda=12.6",
    ),
    explains=("torch/no-kernel-for-device",),
    silent=(
        *(SM89_ON_SM86, SMI_5090 + FROZEN_CU128, ENV_V100_CU126, ENV_P100_CU124, ENV_A100_CU128),
        *(SMI_L40S + FROZEN_PLAIN, SMI_V100 + FROZEN_PLAIN),
        ASKED + "gpu=V100 torch==2.10.0 cuda=12.8",
        ASKED + "gpu=L40S torch==2.11.0 cuda=13.0",
        ASKED + "gpu=GB10 torch==2.11.0 cuda=13.0",
        ASKED + "gpu=T4 torch==2.15.0",
    ),
)
def architecture_missing(facts: Facts) -> Iterator[Answer]:
    """Compare each device's architecture with the list torch gives, else with that of PyTorch's build."""
    build, known = _build(facts), list(_known(facts))
    if build is None or not known:
        yield Undecided(reason="the architectures of torch and of a device are not both told")
        return
    judged, sources, open_ = [], [], False
    lacking: dict[tuple[str, str], list[Accelerator]] = {}
    for device, architecture in known:
        lists = _lists(facts, build, device, architecture)
        runs = [runs_on(architecture, one) for one, _ in lists]
        if lists and not any(runs):
            lacking.setdefault((device.name, architecture), []).append(device)
        # One of several builds is installed, and nobody knows which.
        differ = not _told(build) and any(runs) and not all(runs)
        open_ = open_ or differ
        judged += [architecture] if lists and not differ else []
        sources += [row for _, row in lists if row]
    for (_, architecture), alike in lacking.items():
        yield _finding(facts, alike, architecture, build)
    if open_:
        yield Undecided(
            reason=f"for which runtime torch {build.version} is built is not told, and some builds would run"
        )
    elif not judged:
        yield Undecided(reason="for which architectures a build of torch for this runtime holds code is not known")
    elif not lacking:
        yield _fits(build, judged, sources)


Listed = tuple[tuple[str, ...], TorchArchitectures | None]


def _known(facts: Facts) -> Iterator[tuple[Accelerator, str]]:
    """Devices with their architecture: as told, else by their name; those of a name that was told are left at that."""
    told = [one for one in facts.all(Accelerator) if one.architecture]
    yield from ((one, one.architecture) for one in told)
    names = {one.name for one in told}
    for device in devices(facts):
        model = model_of(facts, device)
        if model and model.architecture and not device.architecture and device.name not in names:
            yield device, model.architecture


def _build(facts: Facts) -> TorchBuild | None:
    """What tells the architectures of torch, else the runtime it was built for, else its version in a list of pip."""
    builds, package = facts.all(TorchBuild), facts.package("torch")
    listed = next((one for one in builds if one.architectures), None)
    listed = listed or next((one for one in builds if one.backend in CALLED and one.backend_version), None)
    plain = (
        package and not local(package.version) and package.installer != "conda" and not any(b.backend for b in builds)
    )
    return TorchBuild(origin=package.origin, version=package.version) if package and plain and not listed else listed


def _told(build: TorchBuild) -> bool:
    """Whether what was built is told: its architectures or its runtime."""
    return bool(build.architectures or build.backend)


def _lists(facts: Facts, build: TorchBuild, device: Accelerator, architecture: str) -> list[Listed]:
    """What may be in this build: its own list, else those of PyTorch's builds; empty where that is not known."""
    if build.architectures:
        return [(build.architectures, None)]
    model = model_of(facts, device)
    vendor = device.vendor or (model.vendor if model else "nvidia" if architecture.startswith("sm_") else "")
    posing = any(vendor in one.poses_as for one in facts.all(Platform)) or POSING in facts.environment()
    unknown = vendor == "amd" and model is None
    runtime = build.backend or _default(facts, build, device)
    if not runtime or RUNTIMES.get(vendor) != runtime or posing or unknown or architecture in JETSON:
        return []
    return [(one.architectures, one) for one in _rows(facts, build, runtime)] if _released(facts, build) else []


def _default(facts: Facts, build: TorchBuild, device: Accelerator) -> str:
    """The runtime of the build that the package index serves; empty where that is not known, on ARM, where it ran."""
    ran = any(one.name in RAN for one in facts.all(EngineState))
    if machines_of(facts, [device]) - {X86} or ran:
        return ""
    rows = (one for one in facts.all(Release) if one.package == "torch" and same(one.version, build.version))
    return next((one.runtime for one in rows), "")


def _rows(facts: Facts, build: TorchBuild, runtime: str) -> list[TorchArchitectures]:
    """PyTorch's builds of this version for this runtime, for the machine where that is told."""
    version, told = public(build.version), ".".join(build.backend_version.split(".")[:2])
    return [
        one
        for one in _served(facts, runtime)
        if (not build.backend or fnmatchcase(told, one.version)) and (not version or satisfies(version, one.torch))
    ]


def _served(facts: Facts, runtime: str) -> list[TorchArchitectures]:
    """PyTorch's builds for a runtime, for the machine where that is told."""
    machine = facts.field(Host, "machine") or ""
    rows = [one for one in facts.all(TorchArchitectures) if one.runtime == runtime]
    return [one for one in rows if not machine or one.machine in ("", machine)]


def _released(facts: Facts, build: TorchBuild) -> bool:
    """Whether it is one that PyTorch released for Linux: others, such as conda-forge's and NVIDIA's, carry PTX."""
    asked = any(one.origin == build.origin for one in facts.all(Component))
    listed = asked or build.inferred or any(one.origin == build.origin for one in facts.all(Package))
    windows = any("Windows" in one.os for one in facts.all(Host))
    return bool(RELEASED.fullmatch(build.version)) and (bool(local(build.version)) or listed) and not windows


def _finding(facts: Facts, alike: list[Accelerator], architecture: str, build: TorchBuild) -> Finding:
    """One for all devices of a name; they are named where there is one."""
    device, lists = alike[0], _lists(facts, build, alike[0], architecture)
    row = lists[0][1]
    version = build.version or next((one.version for one in facts.all(TorchBuild) if one.version), "")
    backend = build.backend or (row.runtime if row else "")
    fitting = _fitting(facts, backend, public(version), architecture)
    sure = build.architectures or (local(version) and not any(row and row.doubt for _, row in lists))
    runtime = f" ({_called(build, lists)})" if not local(version) and _called(build, lists) else ""
    return Finding(
        values={
            "device": device.name,
            "architecture": architecture,
            "torch": f"{version}{runtime} ".lstrip() if version or runtime else "",
            "supported": " ".join(_united(lists)),
            "fitting": fitting,
        },
        subject=f"device {device.index}" if device.index is not None and len(alike) == 1 else "",
        confidence="high" if sure and not build.inferred else "medium",
        evidence=(*{one.origin: Evidence.of(one) for one in alike}.values(), Evidence.of(build)),
        source=row.source if row else TOLD,
        checked=row.checked if row else "",
        remedies=("fitting-build",) if fitting else ("newer-torch",),
    )


def _called(build: TorchBuild, lists: list[Listed]) -> str:
    """The runtime of the build in words, else those of all that it may be."""
    if build.backend:
        return f"{CALLED[build.backend]} {build.backend_version}" if build.backend_version else ""
    rows = [row for _, row in lists if row]
    versions = sorted({row.version for row in rows}, key=numbers)
    return f"{CALLED[rows[0].runtime]} {', '.join(versions)}" if rows else ""


def _united(lists: list[Listed]) -> list[str]:
    """All the architectures of several lists, in the order of the first that has one."""
    names = list(dict.fromkeys(name for listed, _ in lists for name in listed))
    return sorted(names, key=lambda name: (name.startswith("compute_"), numbers(name.partition("_")[2])))


def _fitting(facts: Facts, runtime: str, version: str, architecture: str) -> str:
    """Which of PyTorch's builds hold code for an architecture: of this version, else of later ones, else the latest."""
    rows = [one for one in _served(facts, runtime) if runs_on(architecture, one.architectures)]
    same = {f"torch=={version} ({CALLED[runtime]} {one.version})": 0 for one in rows if satisfies(version, one.torch)}
    rows.sort(key=_since)
    later = [one for one in rows if version and _since(one) > numbers(version)]
    others = {f"torch{one.torch} ({CALLED[runtime]} {one.version})": 0 for one in later or rows[::-1]}
    return ", ".join([*(same or others)][:SHOWN])


def _since(row: TorchArchitectures) -> tuple[int, ...]:
    return numbers(row.torch.lstrip("=<>~"))


def _fits(build: TorchBuild, judged: list[str], rows: list[TorchArchitectures]) -> Fits:
    named, torch = ", ".join(dict.fromkeys(judged)), " ".join(filter(None, ("torch", build.version)))
    of = f"{CALLED.get(build.backend, '')} {build.backend_version}".strip()
    en, zh = f"{torch} for {of} has code that runs on {named}", f"面向 {of} 的 {torch} 包含可在 {named} 上运行的代码"
    if not _told(build) and rows:
        of = _called(build, [(one.architectures, one) for one in rows])
        en = f"each build of {torch} ({of}) has code that runs on {named}; which of them this is, is not told"
        zh = f"{torch} 的各个构建（{of}）均包含可在 {named} 上运行的代码；未说明是其中哪一个"
    return Fits(
        says={"en": en, "zh": zh},
        source=rows[0].source if rows else TOLD,
        checked=rows[0].checked if rows else "",
    )
