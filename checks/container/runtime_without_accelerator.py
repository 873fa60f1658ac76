"""The container engine refuses to start a container with an accelerator.

## What it finds
The engine's own refusal: no driver or runtime for GPUs is registered with it, the hook of NVIDIA's toolkit failed, or a
device file that was asked for is not on the host.

## Why it matters
The container does not start at all.

## What it cannot know
Whether a later attempt went well.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Accelerator, Answer, Container, Evidence, Facts, Finding, Remedy, Unavailable, Undecided, check

UNREGISTERED = ("could not select device driver", "nknown runtime", "unknown or invalid runtime")
MISSING = ("while adding custom device", "CDI host device")
MISMATCH = "driver/library version mismatch"
UNMET = "requirement error"
CDI = ("unresolvable CDI", "failed to inject CDI")

COMPOSE = """\
docker compose -f docker-compose-gpu.yml up -d
 ✔ Container ragflow-mysql     Healthy
Error response from daemon: could not select device driver "nvidia" with capabilities: [[gpu]]
"""
SNAP = """\
docker run --rm --gpus all nvidia/cuda:11.0-base nvidia-smi
docker: Error response from daemon: could not select device driver with capabilities: [[gpu]].
"""
UNKNOWN = """\
$ docker run --runtime=nvidia --rm nvidia/cuda nvidia-smi
docker: Error response from daemon: Unknown runtime specified nvidia.
"""
HOOK = """\
nvidia-container-cli list
nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object file: \
no such file or directory
"""
KFD = """\
docker: Error response from daemon: error gathering device information while adding custom device "/dev/kfd": no such \
file or directory.
"""
INSIDE = """\
{"schema": "diag/container/1", "marks": [{"mark": "/.dockerenv", "runtime": "docker"}]}
$ nvidia-smi
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 525.105.17   Driver Version: 525.105.17   CUDA Version: 12.0     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|                               |                      |               MIG M. |
|===============================+======================+======================|
|   0  NVIDIA A100-SXM...  Off  | 00000000:AF:00.0 Off |                    0 |
| N/A   32C    P0    42W / 400W |  48770MiB / 81920MiB |      0%      Default |
"""


@check(
    "container/runtime-without-accelerator",
    severity="error",
    about="container",
    needs=(),
    uses=(Accelerator, Container, Unavailable),
    words={
        "en": {
            "title": "The container engine does not start containers with an accelerator",
            "summary": "refused: {reason}",
            "cause": "NVIDIA's container toolkit is not installed or not registered with the engine, the engine cannot "
            "use it (a snap, Docker Desktop), or the host has no driver: no library, no device file.",
        },
        "zh": {
            "title": "容器引擎无法启动带加速器的容器",
            "summary": "容器引擎拒绝启动：{reason}",
            "cause": "未安装 NVIDIA 容器工具包或未向容器引擎注册，容器引擎无法使用它（snap 版、Docker Desktop），"
            "或宿主机没有驱动（缺少驱动库或设备文件）。",
        },
    },
    remedies=(
        Remedy(
            key="register",
            title={
                "en": "Install NVIDIA's container toolkit, register it with docker, restart docker (which stops "
                "containers); a docker that was installed as a snap cannot use it",
                "zh": "安装 NVIDIA 容器工具包，向 docker 注册并重启 docker（会停止容器）；snap 版 docker 无法使用它",
            },
            commands=(
                "sudo apt-get install -y nvidia-container-toolkit",
                "sudo nvidia-ctk runtime configure --runtime=docker",
                "sudo systemctl restart docker",
            ),
            safety="disruptive",
            verify="sudo docker run --rm --runtime=nvidia --gpus all ubuntu nvidia-smi",
            source="https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html",
        ),
        Remedy(
            key="driver",
            title={
                "en": "On the host: see whether the driver answers; the container can have no more than the host",
                "zh": "在宿主机上确认驱动正常；容器所能使用的不会超过宿主机",
            },
            commands=("nvidia-smi", "ldconfig -p | grep libnvidia-ml", "lsmod | grep -E '^(nvidia|amdgpu|hycu) '"),
            safety="safe",
            verify="sudo docker run --rm --runtime=nvidia --gpus all ubuntu nvidia-smi",
            source="https://github.com/NVIDIA/libnvidia-container/issues/231",
        ),
        Remedy(
            key="device",
            title={
                "en": "On the host: load the driver that makes the device file",
                "zh": "在宿主机上：加载会创建该设备文件的驱动",
            },
            commands=("ls -l /dev/kfd /dev/dri", "sudo modprobe amdgpu", "sudo dmesg | grep -iE 'amdgpu|kfd' | tail"),
            safety="safe",
            verify="ls -l /dev/kfd /dev/dri",
            source="https://github.com/hydrian/stable-diffusion-webui-rocm/issues/17",
        ),
        Remedy(
            key="cdi",
            title={
                "en": "Write the device specification anew",
                "zh": "重新生成 CDI 设备描述文件",
            },
            commands=("sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml", "nvidia-ctk cdi list"),
            safety="safe",
            verify="nvidia-ctk cdi list",
        ),
    ),
    sources=(
        "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html",
        "https://github.com/infiniflow/ragflow/issues/9573",
        "https://github.com/NVIDIA/nvidia-docker/issues/1642",
        "https://github.com/NVIDIA/nvidia-docker/issues/838",
        "https://github.com/NVIDIA/libnvidia-container/issues/231",
        "https://github.com/l1na-forever/stable-diffusion-rocm-docker/issues/8",
    ),
    fires=(COMPOSE, SNAP, UNKNOWN, HOOK, KFD),
    silent=(INSIDE,),
)
def runtime_without_accelerator(facts: Facts) -> Iterator[Answer]:
    """Take the last refusal and what it is about."""
    refusals = [one for one in facts.all(Unavailable) if one.what == "container/refused"]
    if refusals and MISMATCH in refusals[-1].reason:
        yield Undecided(reason="the driver on the host is at odds with its library, which comes first")
    elif refusals and UNMET in refusals[-1].reason:
        yield Undecided(reason="the engine has an accelerator to give; the image asks for a newer driver")
    elif refusals:
        last = refusals[-1]
        yield Finding(values={"reason": last.reason}, remedies=_remedies(last.reason), evidence=(Evidence.of(last),))
    elif not (_seen(facts) and any(one.inside for one in facts.all(Container))):
        yield Undecided(reason="no attempt to start a container with an accelerator was seen")


def _seen(facts: Facts) -> bool:
    """Whether a program sees an accelerator: in a container, it was started with it."""
    return any(one.seen_by in ("tool", "torch") for one in facts.all(Accelerator))


def _remedies(reason: str) -> tuple[str, ...]:
    """Which remedies fit a refusal."""
    if any(words in reason for words in UNREGISTERED):
        return ("register",)
    if any(words in reason for words in CDI):
        return ("cdi", "driver")
    return ("device",) if any(words in reason for words in MISSING) else ("driver", "register")
