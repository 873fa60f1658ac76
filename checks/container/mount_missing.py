"""A folder with the driver's libraries is not mounted into the container.

## What it finds
From inside: the folder of the host that a maker's containers must have, missing where folders were listed as a whole
and a device of the maker is there. From outside: a container with devices of the maker among whose mounts there is none
on that folder.

## Why it matters
The image brings the toolkit and not the driver's part (`/opt/hyhal` of Hygon, the driver of Ascend): libraries are not
found, and no device is seen.

## What it cannot know
Whether the maker's own runtime mounts it by itself, and whether what is mounted is of the driver that runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from diag.api import (
    Accelerator,
    Answer,
    Container,
    DeviceNode,
    Evidence,
    Facts,
    Finding,
    Installation,
    Listing,
    Remedy,
    Undecided,
    Vendor,
    check,
)

LISTED = ("/opt/",)
"""Where folders are listed."""

INSIDE = """\
{"schema": "diag/container/1", "marks": [{"mark": "/.dockerenv", "runtime": "docker"}]}
"""
BUS = """\
37:00.0 Co-processor: Chengdu Haiguang IC Design Co., Ltd. Device 6210 (rev 01)
3a:00.0 Co-processor: Chengdu Haiguang IC Design Co., Ltd. Device 6210 (rev 01)
"""
FOLDERS = """\
$ find /dev /opt /usr/local -maxdepth 1
/dev
/dev/console
/dev/fd
/dev/full
/dev/null
/dev/tty
/dev/urandom
/dev/zero
/opt
/usr/local
"""
HYHAL = """\
/opt/hyhal
"""


@check(
    "container/mount-missing",
    severity="error",
    about="container",
    needs=(Container, Vendor),
    uses=(Accelerator, DeviceNode, Installation, Listing),
    words={
        "en": {
            "title": "The driver's folder is not mounted into the container",
            "summary": "{folder} of {vendor} is not in the container",
            "cause": "The container was started without the volume that brings the host's driver libraries in.",
        },
        "zh": {
            "title": "容器中未挂载驱动目录",
            "summary": "容器中没有 {vendor} 的 {folder}",
            "cause": "启动容器时没有挂载宿主机驱动库所在的目录。",
        },
    },
    remedies=(
        Remedy(
            key="hygon",
            title={"en": "Start the container with the folder (Hygon)", "zh": "挂载该目录后重新启动容器（海光）"},
            commands=("docker run -v /opt/hyhal:/opt/hyhal:ro …",),
            safety="disruptive",
            verify="ls /opt/hyhal && hy-smi",
            source="https://opendatalab.github.io/MinerU/zh/usage/acceleration_cards/Hygon",
        ),
        Remedy(
            key="ascend",
            title={"en": "Start the container with the driver (Ascend)", "zh": "挂载驱动后重新启动容器（昇腾）"},
            commands=(
                "docker run -v /usr/local/dcmi:/usr/local/dcmi -v /usr/local/bin/npu-smi:/usr/local/bin/npu-smi "
                "-v /usr/local/Ascend/driver:/usr/local/Ascend/driver "
                "-v /etc/ascend_install.info:/etc/ascend_install.info …",
            ),
            safety="disruptive",
            verify="npu-smi info",
            source="https://docs.vllm.ai/projects/ascend/en/v0.13.0/quick_start.html",
        ),
    ),
    sources=(
        "https://opendatalab.github.io/MinerU/zh/usage/acceleration_cards/Hygon",
        "https://docs.gpustack.ai/latest/tutorials/running-inference-with-hygon-dcus",
        "https://docs.vllm.ai/projects/ascend/en/v0.13.0/quick_start.html",
        "https://github.com/vllm-project/recipes/pull/907",
    ),
    explains=("torch/device-unavailable",),
    fires=(INSIDE + BUS + FOLDERS,),
    silent=(INSIDE + BUS + FOLDERS + HYHAL,),
)
def mount_missing(facts: Facts) -> Iterator[Answer]:
    """Look from inside and from outside, for each maker whose containers need a folder."""
    judged = False
    for maker in (one for one in facts.all(Vendor) if one.container_mounts):
        for found in (*_inside(facts, maker), *_outside(facts, maker)):
            judged = True
            yield from (found,) if isinstance(found, Finding) else ()
    if not judged:
        yield Undecided(reason="nothing tells of a container whose maker needs a folder of the host")


def _inside(facts: Facts, maker: Vendor) -> Iterator[Finding | None]:
    """For each folder that can be judged from inside: what is wrong, or None."""
    inside = next((one for one in facts.all(Container) if one.inside), None)
    device = next((one for one in facts.all(Accelerator) if one.vendor == maker.vendor), None)
    listed = facts.listing("Installation")
    if inside and device and listed:
        for folder in maker.container_mounts:
            there = any(one.path.startswith(folder) for one in facts.all(Installation))
            if folder.startswith(LISTED):
                evidence = (Evidence.of(listed), Evidence.of(device), Evidence.of(inside))
                yield None if there else _finding(maker, folder, evidence)


def _outside(facts: Facts, maker: Vendor) -> Iterator[Finding | None]:
    """The same for each container that was given the maker's devices, and whose mounts are told."""
    for container in facts.all(Container):
        own = any(fnmatchcase(path, pattern) for path in container.devices for pattern in maker.nodes)
        if own and container.mounts and not container.inside:
            for folder in maker.container_mounts:
                there = any(f"{one.rstrip('/')}/".startswith(f"{folder}/") for one in container.mounts)
                yield None if there else _finding(maker, folder, (Evidence.of(container),))


def _finding(maker: Vendor, folder: str, evidence: tuple[Evidence, ...]) -> Finding:
    return Finding(
        values={"folder": folder, "vendor": maker.vendor},
        confidence="medium",
        remedies=(maker.vendor,),
        evidence=evidence,
    )
