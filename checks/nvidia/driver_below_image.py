"""The image of an engine asks the host for a newer CUDA than its driver offers.

## What it finds
A command that starts the maker's image of an engine with GPUs, a driver that offers an older CUDA than that of the
image, and a device that the image does not exempt. NVIDIA's images of CUDA, on which those of engines stand, state in
`NVIDIA_REQUIRE_CUDA` the CUDA they ask for and, for some brands, the older branches of drivers that will do.

## Why it matters
NVIDIA's container toolkit tests that before the container starts: "requirement error: unsatisfied condition:
cuda>=12.8". That the minor versions of CUDA are compatible does not help there.

## What it cannot know
Whether the toolkit hands the devices over by CDI, where it did not test that for long, or was told not to test at all
(`disable-require` in its settings): hence a warning. An image that somebody built anew under the name of the release.
The image's CUDA is that of its tag (`-cu129`), else that of the release's wheel. Where the text shows that the
container started nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from diag.api import (
    Accelerator,
    Answer,
    Container,
    DeviceModel,
    Driver,
    Engine,
    EngineState,
    Evidence,
    Facts,
    Finding,
    ForwardCompatibility,
    LaunchArguments,
    Published,
    Release,
    Remedy,
    RuntimeDriver,
    TorchBuild,
    Undecided,
    Vendor,
    at_least,
    bare_name,
    check,
    devices,
    expression,
    model_of,
    numbers,
    same,
)

TAG = expression(r"(?:^|-)cu(\d{2})(\d)(?:-|$)")
DISABLED, ASKS = "NVIDIA_DISABLE_REQUIRE", "NVIDIA_REQUIRE_CUDA"
TRUE = ("1", "t", "T", "TRUE", "true", "True")
"""What the toolkit takes for yes."""
BRANDS = {"geforce": "geforce", "titan": "titan", "quadro": "quadro", "tesla": "tesla", "rtx": "nvidiartx"}
"""The brand that the driver tells of a device whose name begins so; those of the data center are `nvidia`."""
CDI = "nvidia.com/gpu"

SMI_4090 = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA GeForce RTX 4090        Off |   00000000:01:00.0 Off |                  Off |
| 30%   38C    P8              18W / 450W |       4MiB /  24564MiB |      0%      Default |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+
"""
SMI_3090_570 = (
    SMI_4090.replace("550.54.15 ", "570.169   ")
    .replace("550.54.15", "570.169  ")
    .replace("12.4", "12.8")
    .replace("RTX 4090", "RTX 3090")
)
SMI_A100 = SMI_4090.replace("NVIDIA GeForce RTX 4090 ", "NVIDIA A100-SXM4-80GB   ")
SMI_V100_530 = (
    SMI_4090.replace("550.54.15", "530.30.02")
    .replace("CUDA Version: 12.4", "CUDA Version: 12.1")
    .replace("NVIDIA GeForce RTX 4090 ", "Tesla V100-PCIE-32GB    ")
)
RUN = "$ docker run --gpus all --ipc=host -p 8000:8000 {image} --model Qwen/Qwen2.5-7B-Instruct\n"
V0_9_0 = RUN.format(image="vllm/vllm-openai:v0.9.0")
V0_8_5 = RUN.format(image="vllm/vllm-openai:v0.8.5")
CU129 = RUN.format(image="vllm/vllm-openai:latest-cu129-ubuntu2404")
SGLANG = (
    "$ docker run --gpus all --ipc=host lmsysorg/sglang:v0.5.15-cu129 python3 -m sglang.launch_server --model-path "
    "Qwen/Qwen2.5-7B-Instruct\n"
)
NOT_TESTED = V0_9_0.replace("--ipc=host", "-e NVIDIA_DISABLE_REQUIRE=1")


class Image(NamedTuple):
    """An image that a command starts, and the CUDA it asks for, with what says so."""

    launch: LaunchArguments
    cuda: str
    row: Release | Published


@check(
    "nvidia/driver-below-image",
    severity="warning",
    about="nvidia",
    verdict="known-bad",
    checked="2026-11-30",
    needs=(Driver, LaunchArguments),
    uses=(
        *(Accelerator, Container, DeviceModel, Engine, EngineState, ForwardCompatibility, Published, Release),
        *(RuntimeDriver, TorchBuild, Vendor),
    ),
    words={
        "en": {
            "title": "The image asks for a newer CUDA than the driver offers",
            "summary": "{image} asks the host for CUDA {asked}; driver {driver} offers {offered}, and {device} is not "
            "exempt on it",
            "cause": "The image is built on NVIDIA's image of CUDA {asked}. Its NVIDIA_REQUIRE_CUDA names that version "
            "and, for some brands alone, older branches of drivers; NVIDIA's container toolkit refuses to start it on "
            "others.",
        },
        "zh": {
            "title": "镜像要求的 CUDA 版本高于驱动所支持的版本",
            "summary": "{image} 要求宿主机支持 CUDA {asked}，而驱动 {driver} 最高支持 {offered}，"
            "且 {device} 在该驱动分支上不被豁免",
            "cause": "该镜像基于 NVIDIA 的 CUDA {asked} 镜像构建，其 NVIDIA_REQUIRE_CUDA 要求该版本，较旧的驱动分支仅对"
            "部分品牌放行；否则 NVIDIA 容器工具包会拒绝启动容器。",
        },
    },
    remedies=(
        Remedy(
            key="driver",
            title={
                "en": "Upgrade the driver of the host{minimum}",
                "zh": "升级宿主机驱动{minimum}",
            },
            safety="disruptive",
            verify="nvidia-smi",
            source="https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/index.html",
        ),
        Remedy(
            key="image",
            title={
                "en": "Or start an image for the CUDA that the driver offers: that of an older release, or a build of "
                "this one for an older CUDA",
                "zh": "或使用 CUDA 版本不高于驱动所支持版本的镜像：较旧的版本，或该版本面向较低 CUDA 的构建",
            },
            safety="manual",
            source="https://github.com/vllm-project/vllm/issues/5635",
        ),
        Remedy(
            key="disable",
            title={
                "en": "Or start it untested: within one major version of CUDA that usually works, and what the older "
                "driver cannot do fails later",
                "zh": "或跳过该检查启动。CUDA 主版本相同时通常可用，但旧驱动不支持的功能会在运行时出错",
            },
            commands=("docker run -e NVIDIA_DISABLE_REQUIRE=1 --gpus all {image} …",),
            safety="manual",
            verify="docker run --rm -e NVIDIA_DISABLE_REQUIRE=1 --gpus all --entrypoint nvidia-smi {image}",
            source="https://github.com/smallcloudai/refact/issues/368",
        ),
    ),
    sources=(
        "https://github.com/vllm-project/vllm/issues/18813",
        "https://github.com/vllm-project/vllm/issues/5635",
        "https://github.com/theroyallab/tabbyAPI/issues/324",
        "https://github.com/TabbyML/tabby/issues/4309",
        "https://github.com/NVIDIA/nvidia-container-toolkit/issues/1470",
        "https://github.com/NVIDIA/libnvidia-container/blob/09df17a24247/src/cli/configure.c",
        "https://github.com/NVIDIA/nvidia-container-toolkit/blob/1081cecea97d/internal/config/image/cuda_image.go",
    ),
    explains=("container/image-requirement-unmet",),
    fires=(SMI_4090 + V0_9_0, SMI_3090_570 + CU129, SMI_3090_570 + SGLANG, SMI_V100_530 + V0_8_5),
    silent=(
        SMI_A100 + V0_9_0,
        SMI_4090 + V0_8_5,
        SMI_3090_570 + V0_9_0,
        SMI_4090 + NOT_TESTED,
        SMI_V100_530.replace("530.30.02", "535.54.03").replace("12.1", "12.2") + V0_8_5,
    ),
)
def driver_below_image(facts: Facts) -> Iterator[Answer]:
    """Compare the CUDA that each image asks for with the driver, then the driver's branch with the exemptions."""
    driver = next((one for one in facts.all(Driver) if one.vendor == "nvidia" and one.version), None)
    images = [image for one in facts.all(LaunchArguments) if (image := _image(facts, one))]
    there = [one for one in devices(facts) if one.vendor in ("", "nvidia")]
    if not images or driver is None or not there:
        yield Undecided(reason="an image with the CUDA it asks for, a driver and its devices are not all told")
        return
    for image in images:
        if reason := _untested(facts, image.launch):
            yield Undecided(reason=f"{image.launch.image}: {reason}")
        elif not _disabled(image.launch):
            yield from _judged(facts, image, driver, there)


def _image(facts: Facts, launch: LaunchArguments) -> Image | None:
    """An image of the maker with the CUDA it asks for: as its tag names it, else that of the release's wheel."""
    repository, _, tag = launch.image.rpartition(":")
    for row in facts.all(Published):
        own = row.image.partition(":")[0]
        if (
            (row.package, row.vendor) != (launch.engine, "nvidia")
            or not own
            or not f"/{repository}".endswith(f"/{own}")
        ):
            continue
        if found := TAG.search(tag):
            return Image(launch, f"{found[1]}.{found[2]}", row)
        plain = launch.image.endswith(row.image.replace("{version}", launch.version))
        known = plain and row.image_since and at_least(launch.version, row.image_since)
        rows = (one for one in facts.all(Release) if one.package == launch.engine and same(one.version, launch.version))
        release = next(rows, None) if known else None
        if release and release.runtime == "cuda" and release.runtime_version:
            return Image(launch, release.runtime_version, release)
    return None


def _disabled(launch: LaunchArguments) -> bool:
    return dict(launch.environment).get(DISABLED) in TRUE


def _untested(facts: Facts, launch: LaunchArguments) -> str:
    """Why it is not known that the toolkit tests this start; empty where it does."""
    container = next((one for one in facts.all(Container) if one.origin == launch.origin), None)
    if container is None or container.runtime != "docker" or CDI in launch.origin.quote:
        return "the devices may be handed over by CDI"
    if not container.gpus:
        return "no GPU is asked for"
    if ASKS in dict(launch.environment):
        return "what it asks for is set anew"
    running = any(one.origin == launch.origin and one.role == "running" for one in facts.all(Engine))
    told = any(one.name == launch.engine and one.version and one.role != "planned" for one in facts.all(Engine))
    spoke = any(one.engine == launch.engine for one in facts.all(EngineState))
    inside = any(one.inside for one in facts.all(Container))
    available = any(one.available for one in facts.all(TorchBuild))
    return "it seems to have started" if running or told or spoke or inside or available else ""


def _judged(facts: Facts, image: Image, driver: Driver, there: list[Accelerator]) -> Iterator[Answer]:
    answer = _offers(facts, driver, image.cuda)
    if answer is None:
        yield Undecided(reason=f"whether driver {driver.version} offers CUDA {image.cuda} is not known")
    if answer is not False:
        return
    rows = (one for one in facts.all(ForwardCompatibility) if (one.vendor, one.runtime) == ("nvidia", "cuda"))
    row = next((one for one in rows if one.version == image.cuda and one.brands), None)
    refused = [one for one in there if row and _let_in(facts, one, driver, row) is False]
    if refused and row:
        yield _finding(facts, image, driver, refused, row)
    elif row is None or any(_let_in(facts, one, driver, row) is None for one in there):
        yield Undecided(reason=f"whether images of CUDA {image.cuda} let in these devices on driver {driver.version}")


def _offers(facts: Facts, driver: Driver, cuda: str) -> bool | None:
    """Whether a driver offers a version of CUDA: as it says, else by the driver which that version came with."""
    if driver.offers:
        return numbers(driver.offers)[:2] >= numbers(cuda)[:2]
    row = _row(facts, cuda)
    if row is None:
        return None
    return at_least(driver.version, row.driver if "." in driver.version else row.driver.partition(".")[0])


def _row(facts: Facts, cuda: str) -> RuntimeDriver | None:
    return next((one for one in facts.all(RuntimeDriver) if (one.vendor, one.version) == ("nvidia", cuda)), None)


def _let_in(facts: Facts, device: Accelerator, driver: Driver, row: ForwardCompatibility) -> bool | None:
    """Whether an image lets a device in on the driver's branch; None where its brand is not known."""
    if driver.version.partition(".")[0] not in row.branches:
        return False
    brand = _brand(facts, device)
    return brand in row.brands if brand else None


def _brand(facts: Facts, device: Accelerator) -> str:
    model = model_of(facts, device, tells="data_center")
    word = bare_name(facts, device.name).partition(" ")[0].lower()
    return "nvidia" if model and model.data_center else BRANDS.get(word, "")


def _finding(
    facts: Facts, image: Image, driver: Driver, refused: list[Accelerator], row: ForwardCompatibility
) -> Finding:
    device, newest = refused[0], _row(facts, image.cuda)
    rows = [one for one in facts.all(RuntimeDriver) if one.vendor == "nvidia" and at_least(driver.version, one.driver)]
    offered = driver.offers or max((one.version for one in rows), key=numbers, default=f"< {image.cuda}")
    return Finding(
        values={
            "image": image.launch.image,
            "asked": image.cuda,
            "driver": driver.version,
            "offered": offered,
            "device": device.name or device.architecture,
            "minimum": f" (≥ {newest.driver})" if newest else "",
        },
        confidence="medium",
        evidence=tuple({one.origin: Evidence.of(one) for one in (image.launch, driver, device)}.values()),
        source=row.source,
        checked=row.checked,
    )
