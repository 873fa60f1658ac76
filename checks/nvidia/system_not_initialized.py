"""CUDA does not start: error 802, the system is not yet initialized.

## What it finds
CUDA's own words in a program's output.

## Why it matters
No program can use the devices, though `nvidia-smi` lists them.

## What it cannot know
Which of the causes it is: on boards with an NVSwitch the fabric is not set up; in a confidential virtual machine the
devices were not set ready. A later start that went well.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, HardwareEvent, Remedy, TorchBuild, Undecided, check

CODE = "802"

GPU_BURN = """\
$ gpu_burn -d 60
Using compare file: /tmp/gpu-burn-master/compare.ptx
Burning for 60 seconds.
GPU 0: NVIDIA H100 80GB HBM3 ...
GPU 6: NVIDIA H100 80GB HBM3 ...
terminate called after throwing an instance of 'std::runtime_error'
  what():  Error (gpu_burn-drv.cpp:298): system not yet initialized
"""
CONTAINER = """\
ERROR: The NVIDIA Driver is present, but CUDA failed to initialize.  GPU functionality will not be available.
   [[ System not yet initialized (error 802) ]]
"""
AVAILABLE = """\
Collecting environment information...
PyTorch version: 2.4.0+cu121
Is debug build: False
CUDA used to build PyTorch: 12.1
ROCM used to build PyTorch: N/A

Is CUDA available: True
"""


@check(
    "nvidia/system-not-initialized",
    severity="error",
    about="nvidia",
    needs=(),
    uses=(HardwareEvent, TorchBuild),
    words={
        "en": {
            "title": "CUDA does not start: the system is not yet initialized (error 802)",
            "summary": "CUDA: {message}",
            "cause": "The devices are not registered with the NVSwitch fabric, because the Fabric Manager is missing, "
            "stopped, or of another version than the driver; or a confidential machine did not set them ready.",
        },
        "zh": {
            "title": "CUDA 无法启动：系统尚未初始化（错误 802）",
            "summary": "CUDA 报告：{message}",
            "cause": "设备未注册到 NVSwitch 互联（Fabric Manager 缺失、未运行或与驱动版本不一致），"
            "或机密计算环境未将设备置为就绪状态。",
        },
    },
    remedies=(
        Remedy(
            key="fabric",
            title={
                "en": "On a machine with NVSwitch: see the fabric's state, start the Fabric Manager of the driver's "
                "version",
                "zh": "NVSwitch 机器：查看 fabric 状态，启动与驱动版本一致的 Fabric Manager",
            },
            commands=(
                "nvidia-smi -q | grep -A 3 Fabric",
                "systemctl status nvidia-fabricmanager --no-pager",
                "sudo systemctl enable --now nvidia-fabricmanager",
            ),
            safety="disruptive",
            verify='python -c "import torch; torch.cuda.init(); print(torch.cuda.device_count())"',
            source="https://docs.nvidia.com/nim/large-language-models/troubleshooting/cuda-driver.md",
        ),
    ),
    sources=(
        "https://docs.nvidia.com/nim/large-language-models/troubleshooting/cuda-driver.md",
        "https://github.com/wilicc/gpu-burn/issues/92",
        "https://github.com/aws-samples/aws-deep-learning-ami-ubuntu-dcv-desktop/issues/33",
        "https://github.com/gpustack/gpustack/issues/4154",
        "https://github.com/NVIDIA/TensorRT-LLM/issues/398",
    ),
    explains=("torch/device-unavailable", "nvidia/cuda-system-call-refused"),
    fires=(GPU_BURN, CONTAINER),
    silent=(AVAILABLE,),
)
def system_not_initialized(facts: Facts) -> Iterator[Answer]:
    """Look for CUDA's words, unless torch has started since."""
    if any(one.available for one in facts.all(TorchBuild)):
        return
    said = next((one for one in facts.all(HardwareEvent) if one.kind == "cuda-error" and one.code == CODE), None)
    if said is None:
        yield Undecided(reason="no program that uses CUDA was seen to start or to fail")
    else:
        yield Finding(values={"message": said.message}, evidence=(Evidence.of(said),))
