"""torch was built for the accelerator that is there, and says that none is available.

## What it finds
A device that a tool, the bus or the report lists, a torch built for an accelerator, and torch's own answer that none
is available.

## Why it matters
The engine does not start, or runs on the CPU.

## What it cannot know
Why: a driver too old, a container without the devices, a limit of the virtual machine, `CUDA_VISIBLE_DEVICES`. A
finding that knows the cause stands before this one.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Accelerator, Answer, Evidence, Facts, Finding, Remedy, TorchBuild, Undecided, check, devices

WSL = """\
Collecting environment information...
/opt/conda/envs/vllm/lib/python3.12/site-packages/torch/cuda/__init__.py:128: UserWarning: CUDA initialization: \
Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might \
have already set an error? Error 2: out of memory (Triggered internally at ../c10/cuda/CUDAFunctions.cpp:108.)
  return torch._C._cuda_getDeviceCount() > 0
PyTorch version: 2.4.0+cu121
CUDA used to build PyTorch: 12.1
OS: Ubuntu 22.04.4 LTS (x86_64)
Python platform: Linux-5.15.153.1-microsoft-standard-WSL2-x86_64-with-glibc2.35
Is CUDA available: False
CUDA runtime version: 12.5.82
GPU models and configuration:
GPU 0: NVIDIA RTX 4000 Ada Generation
GPU 1: NVIDIA RTX 4000 Ada Generation
"""
LAPTOP = """\
Collecting environment information...
PyTorch version: 2.4.0+cu121
Is debug build: False
CUDA used to build PyTorch: 12.1
ROCM used to build PyTorch: N/A

OS: Ubuntu 22.04.2 LTS (x86_64)
Is CUDA available: True
CUDA runtime version: 12.4.131
GPU models and configuration: GPU 0: NVIDIA GeForce RTX 4070 Laptop GPU
Nvidia driver version: 551.88
"""


@check(
    "torch/device-unavailable",
    severity="error",
    about="torch",
    needs=(Accelerator, TorchBuild),
    words={
        "en": {
            "title": "torch sees no device although the machine has one",
            "summary": "torch {torch}says that no device is available; the machine lists {count}",
            "cause": "torch could not initialise its runtime on this machine; asked for it directly, it names the "
            "step that failed.",
        },
        "zh": {
            "title": "机器有设备，但 torch 看不到",
            "summary": "torch {torch}报告没有可用设备，而本机列出了 {count} 个",
            "cause": "torch 无法在本机初始化其运行时；直接要求其初始化时，会给出失败的步骤。",
        },
    },
    remedies=(
        Remedy(
            key="ask",
            title={
                "en": "Ask the runtime for its own message",
                "zh": "查看运行时自身给出的错误信息",
            },
            commands=('python -c "import torch; torch.cuda.init()"',),
            safety="safe",
            verify='python -c "import torch; print(torch.cuda.is_available())"',
        ),
    ),
    sources=("https://github.com/vllm-project/vllm/issues/8255",),
    fires=(WSL,),
    silent=(LAPTOP,),
)
def device_unavailable(facts: Facts) -> Iterator[Answer]:
    """Compare torch's answer with the devices that are listed."""
    answers = [one for one in facts.all(TorchBuild) if one.available is not None]
    if not answers:
        yield Undecided(reason="torch was not asked whether a device is available")
    elif not any(one.available or one.backend == "cpu" for one in facts.all(TorchBuild)):
        found, answer = devices(facts), answers[0].answered or answers[0].origin
        version = facts.field(TorchBuild, "version")
        yield Finding(
            values={"torch": f"{version} " if version else "", "count": len(found)},
            evidence=(Evidence(says=answers[0].says(), origin=answer), Evidence.of(found[0])),
        )
