"""The driver is older than the CUDA runtime that torch was built for allows.

## What it finds
The CUDA version the driver offers (as `nvidia-smi` or torch print it, else the newest toolkit whose driver is not
newer than the one loaded) against the version torch was built for. Within one major version any driver from that
major's first on will do (minor-version compatibility); a newer major will not, unless the libraries of NVIDIA's package
`cuda-compat` are said to be there, on data-center devices and a branch of drivers that they run on.

## Why it matters
torch refuses to initialise CUDA: "The NVIDIA driver on your system is too old".

## What it cannot know
Whether the `cuda-compat` libraries of a container bridge the gap where nobody says so. Where torch says that CUDA is
available they do, and nothing is found; where nobody asked torch, confidence is medium.
torch's own refusal counts by itself, with its own figure: a table beside it may be of another driver.
The local toolkit (`nvcc`) does not matter here.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    JETSON,
    Accelerator,
    Answer,
    DeviceModel,
    Driver,
    Evidence,
    Facts,
    Finding,
    Fits,
    ForwardCompatibility,
    Remedy,
    Runtime,
    RuntimeDriver,
    TorchBuild,
    Undecided,
    architecture_of,
    at_least,
    check,
    devices,
    minor,
    model_of,
    numbers,
)

IMAGE = "in its image"
FIRST_COMPATIBLE_MAJOR = 11
CONSUMER = ("geforce ", "titan ")

ENV_CU121_DRIVER_11_4 = """\
Collecting environment information...
/usr/local/lib64/python3.8/site-packages/torch/cuda/__init__.py:128: UserWarning: CUDA initialization: The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver by downloading and installing a new version from the URL: http://www.nvidia.com/Download/index.aspx Alternatively, go to: https://pytorch.org to install a PyTorch version that has been compiled with your version of the CUDA driver. (Triggered internally at ../c10/cuda/CUDAFunctions.cpp:108.)
  return torch._C._cuda_getDeviceCount() > 0
PyTorch version: 2.4.0+cu121
Is debug build: False
CUDA used to build PyTorch: 12.1
ROCM used to build PyTorch: N/A

OS: TencentOS Linux 3.1 (Core) (x86_64)
"""  # noqa: E501
ENV_CU102_DRIVER_410 = """\
$ python -m torch.utils.collect_env
Collecting environment information...
PyTorch version: 1.5.0
Is debug build: No
CUDA used to build PyTorch: 10.2

Os: Ubuntu 18.04.3 LTS
GCC version: (Ubuntu 7.4.0-1ubuntu1~18.04.1) 7.4.0
CMake version: version 3.10.2

Python version: 3.6
Is CUDA available: No
CUDA runtime version: 10.0.130
GPU models and configuration:
GPU 0: Tesla P100-PCIE-16GB

Nvidia driver version: 410.104
"""
SMI_470 = """\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 470.86       Driver Version: 470.86       CUDA Version: 11.4
|-------------------------------+----------------------+----------------------+
"""
TORCH_SAYS_SO = """\
RuntimeError: The NVIDIA driver on your system is too old (found version 11060). Please update your GPU driver by \
downloading and installing a new version from the URL: http://www.nvidia.com/Download/index.aspx Alternatively, go to: \
https://pytorch.org to install a PyTorch version that has been compiled with your version of the CUDA driver.
"""
SMI_525 = """\
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
+-------------------------------+----------------------+----------------------+
"""
ENV_CU121 = """\
PyTorch version: 2.4.0+cu121
Is debug build: False
CUDA used to build PyTorch: 12.1
ROCM used to build PyTorch: N/A
"""
FREEZE_CU124 = "torch==2.6.0+cu124\nvllm==0.8.5\n"
FREEZE_PYPI = "nvidia-cuda-runtime-cu12==12.6.77\ntorch==2.7.0\n"
ENV_CU121_AVAILABLE_ON_470 = """\
Collecting environment information...
PyTorch version: 2.4.0+cu121
Is debug build: False
CUDA used to build PyTorch: 12.1
ROCM used to build PyTorch: N/A

Is CUDA available: True
CUDA runtime version: 12.2.140
CUDA_MODULE_LOADING set to: LAZY
GPU models and configuration:
GPU 0: NVIDIA A10
GPU 1: NVIDIA A10

Nvidia driver version: 470.129.06
"""
ASKED = "$ diag matrix check "


@check(
    "nvidia/driver-behind-runtime",
    severity="error",
    about="nvidia",
    verdict="known-bad",
    checked="2026-11-30",
    needs=(Driver,),
    uses=(Accelerator, DeviceModel, ForwardCompatibility, Runtime, RuntimeDriver, TorchBuild),
    words={
        "en": {
            "title": "NVIDIA driver is too old for this PyTorch build",
            "summary": "the driver{driver} offers CUDA {offered}; torch {torch}was built for CUDA {built}",
            "cause": "A CUDA runtime of a newer major version than the driver offers cannot start on it; torch reports "
            "that the driver is too old and sees no device.",
        },
        "zh": {
            "title": "NVIDIA 驱动版本过旧，无法运行此 PyTorch",
            "summary": "驱动最高支持 CUDA {offered}{driver}，而 torch {torch}基于 CUDA {built} 构建",
            "cause": "CUDA 运行时的主版本高于驱动所提供的版本时无法启动；torch 会报告驱动过旧，并且看不到任何设备。",
        },
    },
    remedies=(
        Remedy(
            key="older-torch",
            title={
                "en": "Install the build of torch (and of the engine) for CUDA {offered_major}, if the versions you "
                "need exist for it",
                "zh": "安装面向 CUDA {offered_major} 的 torch（及推理引擎）构建，前提是所需版本提供该构建",
            },
            safety="manual",
            verify='python -c "import torch; print(torch.version.cuda, torch.cuda.is_available())"',
            source="https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html",
        ),
        Remedy(
            key="newer-driver",
            title={
                "en": "Upgrade the driver ({minimum})",
                "zh": "升级驱动（{minimum}）",
            },
            safety="disruptive",
            verify="nvidia-smi",
            source="https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/index.html",
        ),
        Remedy(
            key="compat",
            title={
                "en": "Keep the driver and let the libraries of {package} come first in the loader's path: they run on "
                "drivers of this branch, on data-center devices alone",
                "zh": "保留现有驱动，让 {package} 的库在加载路径中排在最前：可用于此驱动分支，仅限数据中心 GPU",
            },
            commands=(
                "apt-get install -y {package}",
                "export LD_LIBRARY_PATH=/usr/local/cuda-{compat}/compat:$LD_LIBRARY_PATH",
            ),
            safety="manual",
            verify='python -c "import torch; print(torch.version.cuda, torch.cuda.is_available())"',
            source="https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html",
        ),
    ),
    sources=(
        "https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html",
        "https://github.com/vllm-project/vllm/issues/11623",
        "https://github.com/pytorch/pytorch/issues/37320",
        "https://github.com/lllyasviel/Fooocus/issues/1313",
        "https://github.com/zai-org/ChatGLM3/issues/100",
        "https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html",
        "https://github.com/pytorch/pytorch/issues/112553",
        "https://github.com/haotian-liu/LLaVA/issues/493",
    ),
    explains=("torch/device-unavailable",),
    fires=(
        *(ENV_CU121_DRIVER_11_4, ENV_CU102_DRIVER_410, SMI_470 + ENV_CU121, TORCH_SAYS_SO),
        *(SMI_470 + TORCH_SAYS_SO, TORCH_SAYS_SO + SMI_525, SMI_470 + FREEZE_CU124, SMI_470 + FREEZE_PYPI),
        ASKED + "gpu=H200 driver=570.195.03 torch==2.13.0 cuda=13.0",
        ASKED + 'gpu="RTX 4090" driver=550.54.15 cuda=13.0 cuda-compat=13.0',
        ASKED + "gpu=V100 driver=470.182.03 torch==2.1.0",
        ASKED + "gpu=T4 driver=510.108.03 torch==2.5.1 cuda=12.4",
    ),
    silent=(
        *(SMI_525 + ENV_CU121, SMI_525 + FREEZE_CU124, ENV_CU121_AVAILABLE_ON_470),
        ASKED + "gpu=H200 driver=570.195.03 torch==2.13.0 cuda=13.0 cuda-compat=13.0",
        ASKED + "gpu=A100 driver=580 torch==2.13.0 cuda=13.0",
        ASKED + "gpu=A100 driver=535.161.08 torch==2.9.1 cuda=12.9",
        ASKED + "gpu=A100 driver=580.65.06 torch==2.15.0",
        ASKED + "gpu=H100 driver=580.65.06 torch==2.9.0+cu130",
    ),
)
def driver_behind_runtime(facts: Facts) -> Iterator[Answer]:
    """What torch itself refused, else what the driver offers against what torch was built for."""
    drivers = [one for one in facts.all(Driver) if one.vendor == "nvidia"]
    builds = [one for one in facts.all(TorchBuild) if one.backend == "cuda" and one.backend_version]
    answers = {one.available for one in facts.all(TorchBuild)}
    available = True in answers
    if refusal := next((one for one in drivers if one.refused and one.offers), None):
        behind = [one for one in builds if not _runs(facts, refusal, refusal.offers, one)]
        build = behind[0] if behind else TorchBuild(origin=refusal.origin)
        yield _finding(facts, refusal, refusal.offers, build, sure=not available)
        return
    if available:
        return
    driver, offered = _offer(facts, drivers)
    if driver and not driver.offers and any(architecture_of(facts, one) in JETSON for one in devices(facts)):
        yield Undecided(reason="the drivers of Jetson boards are numbered by themselves")
        return
    if driver is None or not builds:
        yield Undecided(reason="what the driver offers and which CUDA torch was built for are not both told")
        return
    for build in builds:
        if not _runs(facts, driver, offered, build):
            yield _behind(facts, driver, offered, build, sure=False in answers or not driver.version)
            return
    version, row = driver.version or _loaded(facts, offered), next(iter(_rows(facts, builds[0])), None)
    yield _fits(version, f"CUDA {offered}", builds[0], row)


def _behind(facts: Facts, driver: Driver, offered: str, build: TorchBuild, *, sure: bool) -> Answer:
    """A finding, unless the libraries of `cuda-compat` that are said to be there bridge the gap."""
    compat = max((one.version for one in facts.all(Runtime) if one.name == "cuda-compat"), key=numbers, default="")
    if not compat and IMAGE in build.basis and _may_bridge(facts, driver, build):
        return Undecided(reason="the image may bring cuda-compat, with which it would run on this driver")
    if not compat or numbers(compat)[:1] < numbers(build.backend_version)[:1]:
        return _finding(facts, driver, offered, build, sure=sure)
    rows = [one for one in _compatibility(facts) if one.version == minor(compat)]
    known = _supported(facts)
    if known is False:
        return _finding(facts, driver, offered, build, sure=sure)
    row = next((one for one in rows if _branch(driver) in one.branches), None)
    if known and row:
        return _fits(driver.version, f"{row.package}, CUDA {compat}", build, row)
    return Undecided(reason=f"whether cuda-compat {compat} runs on these devices with this driver is not known")


def _may_bridge(facts: Facts, driver: Driver, build: TorchBuild) -> bool:
    """Whether libraries of `cuda-compat` for this CUDA run on drivers of this branch, and the devices may be such."""
    major = numbers(build.backend_version)[:1]
    rows = [one for one in _compatibility(facts) if numbers(one.version)[:1] == major]
    return _supported(facts) is not False and any(_branch(driver) in one.branches for one in rows)


def _compatibility(facts: Facts) -> list[ForwardCompatibility]:
    return [one for one in facts.all(ForwardCompatibility) if (one.vendor, one.runtime) == ("nvidia", "cuda")]


def _branch(driver: Driver) -> str:
    return driver.version.partition(".")[0]


def _supported(facts: Facts) -> bool | None:
    """Whether NVIDIA supports forward compatibility on all devices; None where that of one is not known."""
    answers = [_on(facts, one) for one in devices(facts) if one.vendor in ("", "nvidia")]
    return False if False in answers else None if None in answers or not answers else True


def _on(facts: Facts, device: Accelerator) -> bool | None:
    """It does on data-center devices, on none of GeForce and TITAN, on select ones of the others."""
    name = device.name.removeprefix("NVIDIA ").lower()
    if name.startswith(CONSUMER):
        return False
    row = model_of(facts, device, tells="data_center")
    return (row is not None and row.data_center) or None


def _offer(facts: Facts, drivers: list[Driver]) -> tuple[Driver | None, str]:
    """The driver, and the CUDA version it offers: as printed, else from the table."""
    printed = next((one for one in drivers if one.offers), None)
    if printed:
        return printed, printed.offers
    for driver in drivers:
        if offered := _shipped(facts, driver):
            return driver, offered
    return None, ""


def _shipped(facts: Facts, driver: Driver) -> str:
    """The newest CUDA version whose driver is not newer than this one."""
    rows = [row for row in _table(facts) if _reaches(driver.version, row.driver)]
    return max((row.version for row in rows), key=numbers, default="")


def _reaches(version: str, minimum: str) -> bool:
    """Whether a driver is not below another; of one whose branch alone is told (`580`), whether its branch is not."""
    return at_least(version, minimum if "." in version else minimum.partition(".")[0]) is True


def _runs(facts: Facts, driver: Driver, offered: str, build: TorchBuild) -> bool:
    """Whether the runtime torch was built for starts on this driver."""
    have, need = numbers(offered)[:2], numbers(build.backend_version)[:2]
    if have >= need:
        return True
    floor = next((row.compatible_driver for row in _rows(facts, build) if row.compatible_driver), "")
    compatible = not (driver.version and floor) or _reaches(driver.version, floor)
    return have[0] == need[0] >= FIRST_COMPATIBLE_MAJOR and compatible


def _table(facts: Facts) -> list[RuntimeDriver]:
    """The rows of this vendor: others have tables of the same kind."""
    return [row for row in facts.all(RuntimeDriver) if row.vendor == "nvidia"]


def _rows(facts: Facts, build: TorchBuild) -> list[RuntimeDriver]:
    major = numbers(build.backend_version)[:1]
    return [row for row in _table(facts) if numbers(row.version)[:1] == major]


def _loaded(facts: Facts, offered: str) -> str:
    """The version of the driver that offers this, empty where what is told of drivers is of others."""
    for one in facts.all(Driver):
        if one.vendor == "nvidia" and one.version and (one.offers or _shipped(facts, one)) == offered:
            return one.version
    return ""


def _finding(facts: Facts, driver: Driver, offered: str, build: TorchBuild, *, sure: bool) -> Finding:
    rows = _rows(facts, build) if build.backend_version else []
    minimum = next((row.compatible_driver for row in rows if row.compatible_driver), "")
    loaded, built = _loaded(facts, offered), build.backend_version or f"> {offered}"
    package = _package(facts, loaded, build)
    return Finding(
        values={
            "driver": f" ({loaded})" if loaded else "",
            "offered": offered,
            "offered_major": numbers(offered)[0],
            "torch": f"{build.version} " if build.version else "",
            "built": built,
            "minimum": f"≥ {minimum}" if minimum else f"CUDA {built}",
            "package": package.package if package else "",
            "compat": package.version if package else "",
        },
        confidence="high" if sure and not build.inferred else "medium",
        evidence=(Evidence.of(driver), Evidence.of(build)) if build.origin != driver.origin else (Evidence.of(driver),),
        remedies=("older-torch", "newer-driver", *(("compat",) if package else ())),
    )


def _package(facts: Facts, loaded: str, build: TorchBuild) -> ForwardCompatibility | None:
    """The oldest `cuda-compat` with torch's CUDA that runs on the driver's branch; on data-center devices alone."""
    need = numbers(build.backend_version)[:2]
    told = any(one.name == "cuda-compat" for one in facts.all(Runtime))
    rows = [
        one for one in _compatibility(facts) if numbers(one.version)[:1] == need[:1] and numbers(one.version) >= need
    ]
    rows = [one for one in rows if loaded.partition(".")[0] in one.branches]
    return min(rows, key=lambda one: numbers(one.version), default=None) if _supported(facts) and not told else None


def _fits(version: str, offer: str, build: TorchBuild, row: RuntimeDriver | ForwardCompatibility | None) -> Fits:
    return Fits(
        says={
            "en": f"CUDA {build.backend_version} of torch starts on driver {version} ({offer})",
            "zh": f"torch 的 CUDA {build.backend_version} 可在驱动 {version}（{offer}）上启动",
        },
        source=row.source if row else "",
        checked=row.checked if row else "",
    )
