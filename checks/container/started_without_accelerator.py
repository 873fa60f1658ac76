"""A container for a maker's accelerator is started without its device files.

## What it finds
A command of `docker` or `podman`, a compose file, or what `docker inspect` shows, of an image whose name says for whose
accelerators it is, that passes on none or not all of the device files which containers of that maker need.

## Why it matters
The engine starts in a container that has no accelerator, and fails or runs on the processor.

## What it cannot know
Whether the maker's own runtime is the engine's default and passes the devices on by itself, hence medium confidence;
and a device that a variable stands for. NVIDIA's devices come through a runtime: they are not looked for here, nor is
anything of Kubernetes, where they are asked for elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from diag.api import Answer, Container, Evidence, Facts, Finding, Remedy, Setting, Undecided, Vendor, check, expression

WORDS = (
    ("hygon", expression(r"dtk|\bdcu\b|hygon")),
    ("amd", expression(r"rocm|\bamd")),
    ("ascend", expression(r"ascend|\bcann\b|mindie|-npu\b")),
    ("kunlun", expression(r"kunlun|-xpu\b.*p800|kxpu")),
    ("metax", expression(r"maca|metax")),
)
"""Words of an image's name, and whose accelerators it is for."""
RUNTIMES = ("ASCEND_VISIBLE_DEVICES", "AMD_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
"""Variables by which a runtime passes devices on."""

ASCEND = """\
export IMAGE=quay.io/ascend/vllm-ascend:v0.9.2rc1
docker run --rm \\
--name vllm-ascend \\
--device /dev/davinci0 \\
--device /dev/davinci_manager \\
--device /dev/devmm_svm \\
--device /dev/hisi_hdc \\
-it $IMAGE \\
vllm serve Qwen/Qwen3-8B --max_model_len 26240 --enforce-eager
"""
NO_ASCEND = ASCEND.replace("--device /dev/davinci_manager \\\n", "")
ROCM = """\
docker run -it --rm --device=/dev/kfd --device=/dev/dri --group-add video --ipc=host --shm-size 8g \\
  -p 127.0.0.1:8001:8001 -v ~/.cache/huggingface:/root/.cache/huggingface \\
  rocm/vllm:latest vllm serve Qwen/Qwen3-8B --host 0.0.0.0 --port 8001 --max-model-len 8192 --gpu-memory-utilization 0.6
"""
NO_ROCM = ROCM.replace(" --device=/dev/kfd --device=/dev/dri --group-add video", "")


@check(
    "container/started-without-accelerator",
    severity="error",
    about="container",
    needs=(Container,),
    uses=(Setting, Vendor),
    words={
        "en": {
            "title": "A container for accelerators is started without their device files",
            "summary": "image {image} is for {vendor}; it is started without {missing}",
            "cause": "The command passes on none of the maker's device files, or not all of them.",
        },
        "zh": {
            "title": "启动加速器容器时缺少设备文件",
            "summary": "镜像 {image} 面向 {vendor}，但启动时缺少 {missing}",
            "cause": "启动命令没有传入厂商的设备文件，或没有全部传入。",
        },
    },
    remedies=(
        Remedy(
            key="amd",
            title={"en": "Pass the devices on (AMD)", "zh": "传入设备（AMD）"},
            commands=("docker run --device /dev/kfd --device /dev/dri --group-add video …",),
            safety="disruptive",
            verify="docker exec CONTAINER rocminfo | grep gfx",
            source="https://rocm.docs.amd.com/projects/install-on-linux/en/latest/how-to/docker.html",
        ),
        Remedy(
            key="hygon",
            title={"en": "Pass the devices and the driver's folder on (Hygon)", "zh": "传入设备与驱动目录（海光）"},
            commands=(
                "docker run --device /dev/kfd --device /dev/mkfd --device /dev/dri --group-add video "
                "-v /opt/hyhal:/opt/hyhal:ro …",
            ),
            safety="disruptive",
            verify="docker exec CONTAINER hy-smi",
            source="https://opendatalab.github.io/MinerU/zh/usage/acceleration_cards/Hygon",
        ),
        Remedy(
            key="kunlun",
            title={"en": "Pass the devices on (Kunlun)", "zh": "传入设备（昆仑芯）"},
            commands=("docker run $(ls /dev/xpu[0-9]* /dev/xpuctrl | sed 's/^/--device /') …",),
            safety="disruptive",
            verify="docker exec CONTAINER xpu-smi",
            source="https://opendatalab.github.io/MinerU/zh/usage/acceleration_cards/Kunlunxin",
        ),
        Remedy(
            key="ascend",
            title={"en": "Pass the devices and the driver on (Ascend)", "zh": "传入设备与驱动（昇腾）"},
            commands=(
                "docker run --device /dev/davinci0 --device /dev/davinci_manager --device /dev/devmm_svm "
                "--device /dev/hisi_hdc -v /usr/local/dcmi:/usr/local/dcmi "
                "-v /usr/local/Ascend/driver:/usr/local/Ascend/driver "
                "-v /etc/ascend_install.info:/etc/ascend_install.info …",
            ),
            safety="disruptive",
            verify="docker exec CONTAINER npu-smi info",
            source="https://docs.vllm.ai/projects/ascend/en/v0.13.0/quick_start.html",
        ),
        Remedy(
            key="metax",
            title={"en": "Pass the devices on (MetaX)", "zh": "传入设备（沐曦）"},
            commands=("docker run --device /dev/dri --device /dev/mxcd --group-add video …",),
            safety="disruptive",
            verify="docker exec CONTAINER mx-smi",
            source="https://swift.readthedocs.io/en/v4.4/BestPractices/Metax-support.html",
        ),
    ),
    sources=(
        "https://rocm.docs.amd.com/projects/install-on-linux/en/latest/how-to/docker.html",
        "https://docs.vllm.ai/projects/ascend/en/v0.13.0/quick_start.html",
        "https://docs.gpustack.ai/latest/tutorials/running-inference-with-hygon-dcus",
        "https://opendatalab.github.io/MinerU/zh/usage/acceleration_cards/Hygon",
        "https://swift.readthedocs.io/en/v4.4/BestPractices/Metax-support.html",
    ),
    fires=(NO_ASCEND, NO_ROCM),
    silent=(ASCEND, ROCM),
)
def started_without_accelerator(facts: Facts) -> Iterator[Answer]:
    """Compare each container's devices with what its maker's containers need."""
    makers = {one.vendor: one for one in facts.all(Vendor) if one.container_nodes}
    given = any(one.name in RUNTIMES and one.value not in ("", "void") for one in facts.all(Setting))
    judged = False
    for container in facts.all(Container):
        vendor = next((vendor for vendor, words in WORDS if words.search(container.image.lower())), "")
        if container.inside or container.runtime == "kubernetes" or vendor not in makers:
            continue
        judged = True
        missing = [one for one in makers[vendor].container_nodes if not _passed(container, one)]
        unknown = container.gpus or any("$" in one for one in container.devices)
        if missing and not (given or unknown or container.privileged):
            yield Finding(
                values={"image": container.image, "vendor": vendor, "missing": " ".join(missing)},
                subject=container.name and f"container {container.name}",
                confidence="medium",
                remedies=(vendor,),
                evidence=(Evidence.of(container),),
            )
    if not judged:
        yield Undecided(reason="no image is for the accelerators of a maker whose devices are passed on by file")


def _passed(container: Container, pattern: str) -> bool:
    """Whether a device file of this kind, or the folder that it is in, is among the container's devices."""
    folders = (pattern.rpartition("/")[0], "/dev")
    named = (one.rstrip("/") for one in (*container.devices, *container.mounts))
    return any(fnmatchcase(one, pattern) or one in folders for one in named)
