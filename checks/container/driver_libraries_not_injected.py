"""A container has the tools for NVIDIA's devices and not the driver's libraries.

## What it finds
NVML's library not found, by `nvidia-smi` or by an engine, in a container or after a command that started one.

## Why it matters
An engine takes the machine for one without an accelerator: vLLM then runs on no platform, or refuses.

## What it cannot know
Whether the library is there and hidden by `LD_LIBRARY_PATH`, or missing from the cache of the loader.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Container, Driver, Evidence, Facts, Finding, Remedy, Unavailable, Undecided, check

NOT_FOUND = ("libnvidia-ml.so library", "NVML Shared Library Not Found")

MISSING = """\
docker run -it --runtime nvidia -v $(pwd):/w -w/w --gpus all --network host --ipc=host -e "CUDA_VISIBLE_DEVICES=6" \
--entrypoint /bin/sh dengcao/vllm-openai:v0.9.2-dev -c bash
root@host:/w# nvidia-smi
NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that the NVIDIA Display Driver is \
properly installed and present in your system.
Please also try adding directory that contains libnvidia-ml.so to your system PATH.
"""
IN_A_POD = """\
DEBUG 08-29 04:29:54 [__init__.py:58] Checking if CUDA platform is available.
DEBUG 08-29 04:29:54 [__init__.py:82] Exception happens when checking CUDA platform: NVML Shared Library Not Found
9:cpuacct,cpu:/system.slice/containerd.service/kubepods-besteffort-pod0125ec2f_b64a_4868_8f5b_94b56cbab864.slice:\
cri-containerd:ee4b20e90ac7f42a10bd004d05646b13d8ab5e2c5e7cbc01abf8006bac016459
"""
FOUND = """\
$ docker run --runtime nvidia --gpus all \\
    -v ~/.cache/huggingface:/root/.cache/huggingface \\
    -p 8000:8000 \\
    --env "HUGGING_FACE_HUB_TOKEN=<secret>" \\
    vllm/vllm-openai <args...>
| NVIDIA-SMI 525.105.17   Driver Version: 525.105.17   CUDA Version: 12.0     |
"""


@check(
    "container/driver-libraries-not-injected",
    severity="error",
    about="nvidia",
    needs=(),
    uses=(Container, Driver, Unavailable),
    words={
        "en": {
            "title": "The NVIDIA driver's libraries are not in the container",
            "summary": "the library was not found: {reason}",
            "cause": "The container was started without NVIDIA's runtime or without a device being asked for, so that "
            "nothing mounted the driver's libraries; or the image hides them.",
        },
        "zh": {
            "title": "容器中没有 NVIDIA 驱动库",
            "summary": "找不到驱动库：{reason}",
            "cause": "容器启动时未使用 NVIDIA 运行时或未申请设备，因此驱动库未被挂载；也可能是镜像把它们遮住了。",
        },
    },
    remedies=(
        Remedy(
            key="look",
            title={
                "en": "In the container: see whether the library is there (then it is hidden: run ldconfig, or take "
                "the image's LD_LIBRARY_PATH away)",
                "zh": "在容器中确认库是否存在（若存在则是被遮住：运行 ldconfig，或去掉镜像设置的 LD_LIBRARY_PATH）",
            },
            commands=("find / -name 'libnvidia-ml.so*' 2>/dev/null", "ldconfig -p | grep libnvidia-ml", "ldconfig"),
            safety="safe",
            verify="nvidia-smi",
            source="https://github.com/dengcao/Qwen3-Reranker-0.6B/issues/3",
        ),
        Remedy(
            key="start",
            title={
                "en": "Start it with the devices; in Kubernetes ask for nvidia.com/gpu and use NVIDIA's runtime class",
                "zh": "启动时传入设备；在 Kubernetes 中申请 nvidia.com/gpu 并使用 nvidia 的 RuntimeClass",
            },
            commands=("docker run --runtime=nvidia --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility …",),
            safety="disruptive",
            verify="nvidia-smi",
            source="https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/sample-workload.html",
        ),
    ),
    sources=(
        "https://github.com/dengcao/Qwen3-Reranker-0.6B/issues/3",
        "https://github.com/vllm-project/vllm/issues/23935",
        "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/sample-workload.html",
    ),
    explains=("nvidia/driver-silent", "torch/device-unavailable"),
    fires=(MISSING, IN_A_POD),
    silent=(FOUND,),
)
def driver_libraries_not_injected(facts: Facts) -> Iterator[Answer]:
    """A library that was not found, and a container."""
    tries = [one for one in facts.all(Unavailable) if any(words in one.reason for words in NOT_FOUND)]
    answered = any(one.vendor == "nvidia" and one.version for one in facts.all(Driver))
    container = next(iter(facts.all(Container)), None)
    if answered and not tries:
        return
    if not tries:
        yield Undecided(reason="nothing asked for the driver's library")
    elif container is None:
        yield Undecided(reason="nothing tells that this is a container")
    else:
        yield Finding(
            values={"reason": tries[0].reason},
            confidence="high" if container.inside else "medium",
            evidence=(Evidence.of(tries[0]), Evidence.of(container)),
        )
