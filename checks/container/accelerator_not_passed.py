"""The bus shows an accelerator inside a container that has no device file for it.

## What it finds
In a container: a maker's device on the bus, which every container sees, and none of a kind of device file that the
maker's containers need, where the list of device files is whole, or where `ls` or `rocminfo` said that it is not there.

## Why it matters
No program in the container can use the device.

## What it cannot know
Whether the container is meant to compute at all. Graphics inside a processor look like a card: a maker whose device is
one of several on the bus is left alone where another's are passed on, and confidence is lower for what may be a screen.
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
    Fact,
    Facts,
    Finding,
    Listing,
    PciDevice,
    Remedy,
    Unavailable,
    Undecided,
    Vendor,
    check,
)

ABSENT = "No such file or directory"
SCREEN = "0300"
INTEGRATED = ("amd", "intel")

INSIDE = """\
{"schema": "diag/container/1", "marks": [{"mark": "/.dockerenv", "runtime": "docker"}]}
"""
BUS = """\
root@05770cae7bb1:/# lspci | grep VGA
01:00.0 VGA compatible controller: NVIDIA Corporation Device 1b80 (rev a1)
02:00.0 VGA compatible controller: NVIDIA Corporation Device 1b80 (rev a1)
"""
NO_NODE = """\
root@05770cae7bb1:/# ls /dev/nvidia*
ls: cannot access '/dev/nvidia*': No such file or directory
"""
MI300X = """\
{"schema": "diag/pci/1", "functions": 40, "devices": [{"address": "0000:05:00.0", "vendor_id": "1002", "device_id": \
"74a1", "class_id": "1200", "driver": "amdgpu", "numa_node": 0}]}
"""
KFD = """\
root@101acc334128:/var/lib/jenkins# /opt/rocm-5.2.0/bin/rocminfo
ROCk module is loaded
Unable to open /dev/kfd read-write: No such file or directory
Failed to get user name to check for video group membership
"""
PASSED = """\
/dev
/dev/fd
/dev/console
/dev/ptmx
/dev/zero
/dev/urandom
/dev/tty
/dev/random
/dev/null
/dev/full
/dev/nvidia-uvm-tools
/dev/nvidia-uvm
/dev/nvidiactl
/dev/nvidia1
/dev/nvidia0
"""


@check(
    "container/accelerator-not-passed",
    severity="error",
    about="container",
    needs=(Accelerator,),
    uses=(Container, DeviceNode, Listing, PciDevice, Unavailable, Vendor),
    words={
        "en": {
            "title": "The container was started without its accelerator",
            "summary": "{count} device(s) of {vendor} on the bus, and no {missing} in this container",
            "cause": "The command that started the container passed no device on, or not all of the device files that "
            "the maker's software opens.",
        },
        "zh": {
            "title": "启动容器时没有传入加速器",
            "summary": "总线上有 {count} 个 {vendor} 设备，但容器内没有 {missing}",
            "cause": "启动容器的命令没有传入设备，或没有传入厂商软件需要打开的全部设备文件。",
        },
    },
    remedies=(
        Remedy(
            key="nvidia",
            title={"en": "Start it again with the devices (NVIDIA)", "zh": "传入设备后重新启动容器（NVIDIA）"},
            commands=("docker run --gpus all …", "podman run --device nvidia.com/gpu=all …"),
            safety="disruptive",
            verify="nvidia-smi",
            source="https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/sample-workload.html",
        ),
        Remedy(
            key="amd",
            title={"en": "Start it again with the devices (AMD)", "zh": "传入设备后重新启动容器（AMD）"},
            commands=("docker run --device /dev/kfd --device /dev/dri --group-add video …",),
            safety="disruptive",
            verify="rocminfo | grep gfx",
            source="https://rocm.docs.amd.com/projects/install-on-linux/en/latest/how-to/docker.html",
        ),
        Remedy(
            key="hygon",
            title={"en": "Start it again with the devices (Hygon)", "zh": "传入设备后重新启动容器（海光）"},
            commands=(
                "docker run --device /dev/kfd --device /dev/mkfd --device /dev/dri --group-add video "
                "-v /opt/hyhal:/opt/hyhal:ro …",
            ),
            safety="disruptive",
            verify="hy-smi",
            source="https://opendatalab.github.io/MinerU/zh/usage/acceleration_cards/Hygon",
        ),
        Remedy(
            key="kunlun",
            title={"en": "Start it again with the devices (Kunlun)", "zh": "传入设备后重新启动容器（昆仑芯）"},
            commands=("docker run $(ls /dev/xpu[0-9]* /dev/xpuctrl | sed 's/^/--device /') …",),
            safety="disruptive",
            verify="xpu-smi",
            source="https://opendatalab.github.io/MinerU/zh/usage/acceleration_cards/Kunlunxin",
        ),
        Remedy(
            key="ascend",
            title={"en": "Start it again with the devices (Ascend)", "zh": "传入设备后重新启动容器（昇腾）"},
            commands=(
                "docker run --device /dev/davinci0 --device /dev/davinci_manager --device /dev/devmm_svm "
                "--device /dev/hisi_hdc -v /usr/local/dcmi:/usr/local/dcmi "
                "-v /usr/local/bin/npu-smi:/usr/local/bin/npu-smi "
                "-v /usr/local/Ascend/driver:/usr/local/Ascend/driver "
                "-v /etc/ascend_install.info:/etc/ascend_install.info …",
            ),
            safety="disruptive",
            verify="npu-smi info",
            source="https://docs.vllm.ai/projects/ascend/en/v0.13.0/quick_start.html",
        ),
        Remedy(
            key="metax",
            title={"en": "Start it again with the devices (MetaX)", "zh": "传入设备后重新启动容器（沐曦）"},
            commands=("docker run --device /dev/dri --device /dev/mxcd --group-add video …",),
            safety="disruptive",
            verify="mx-smi",
            source="https://swift.readthedocs.io/en/v4.4/BestPractices/Metax-support.html",
        ),
        Remedy(
            key="mthreads",
            title={
                "en": "Start it again with the maker's runtime (Moore Threads)",
                "zh": "使用厂商运行时重新启动容器（摩尔线程）",
            },
            commands=("docker run --runtime mthreads -e MTHREADS_VISIBLE_DEVICES=all …",),
            safety="disruptive",
            verify="mthreads-gmi",
            source="https://docs.gpustack.ai/latest/tutorials/running-inference-with-moorethreads-gpus",
        ),
    ),
    sources=(
        "https://github.com/NVIDIA/nvidia-docker/issues/170",
        "https://rocm.docs.amd.com/projects/install-on-linux/en/latest/how-to/docker.html",
        "https://github.com/ROCm/legacy-rocm-build/issues/1798",
        "https://docs.vllm.ai/projects/ascend/en/v0.13.0/quick_start.html",
        "https://opendatalab.github.io/MinerU/zh/usage/acceleration_cards/Hygon",
        "https://opendatalab.github.io/MinerU/zh/usage/acceleration_cards/Kunlunxin",
        "https://github.com/canonical/lxd/issues/11442",
    ),
    explains=("nvidia/driver-silent", "nvidia/driver-missing", "torch/device-unavailable"),
    fires=(INSIDE + BUS + NO_NODE, INSIDE + MI300X + KFD),
    silent=(INSIDE + BUS + PASSED,),
)
def accelerator_not_passed(facts: Facts) -> Iterator[Answer]:
    """For each maker with a device on the bus, see which device files are missing."""
    inside = next((one for one in facts.all(Container) if one.inside), None)
    on_bus = [one for one in facts.all(Accelerator) if one.seen_by == "pci"]
    makers = [one for one in facts.all(Vendor) if one.container_nodes and _of(on_bus, one)]
    if inside is None or not makers:
        yield Undecided(reason="nothing tells of a container with an accelerator on its bus")
        return
    lacking = {one.vendor: list(_lacking(facts, one)) for one in makers}
    passed = [one for one in makers if not lacking[one.vendor] and _listed(facts)]
    if passed:
        return
    certain = [one for one in makers if one.vendor not in INTEGRATED] or makers
    found = [one for one in certain if lacking[one.vendor]]
    for maker in found:
        yield _finding(facts, maker, lacking[maker.vendor], inside, _of(on_bus, maker))
    if not found:
        yield Undecided(reason="not all device files were listed")


def _of(told: list[Accelerator], maker: Vendor) -> list[Accelerator]:
    return [one for one in told if one.vendor == maker.vendor]


def _listed(facts: Facts) -> Listing | None:
    return facts.listing("DeviceNode")


def _lacking(facts: Facts, maker: Vendor) -> Iterator[tuple[str, Fact]]:
    """Kinds of device files that are not there, each with what tells so."""
    listed = _listed(facts)
    refused = [one for one in facts.all(Unavailable) if ABSENT in one.reason]
    for pattern in maker.container_nodes:
        if any(fnmatchcase(one.path, pattern) for one in facts.all(DeviceNode)):
            continue
        start = pattern.partition("[")[0].partition("*")[0]
        said = next((one for one in refused if start in one.reason), None)
        if witness := said or listed:
            yield pattern, witness


def _finding(
    facts: Facts, maker: Vendor, lacking: list[tuple[str, Fact]], inside: Container, on_bus: list[Accelerator]
) -> Finding:
    kinds = {one.class_id for one in facts.all(PciDevice) if one.address in {device.address for device in on_bus}}
    screen = kinds == {SCREEN} and maker.vendor in INTEGRATED
    whole = len(lacking) == len(maker.container_nodes)
    return Finding(
        values={
            "count": len({one.address for one in on_bus}),
            "vendor": maker.vendor,
            "missing": " ".join(pattern for pattern, _ in lacking),
        },
        confidence="low" if screen else "high" if whole else "medium",
        remedies=(maker.vendor,),
        evidence=(Evidence.of(lacking[0][1]), Evidence.of(on_bus[0]), Evidence.of(inside)),
    )
