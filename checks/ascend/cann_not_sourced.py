"""The environment in which torch_npu would start knows nothing of CANN.

## What it finds
torch_npu, and an environment that was read whole, where neither a variable of CANN (`ASCEND_HOME_PATH`,
`ASCEND_TOOLKIT_HOME`, `ASCEND_OPP_PATH`) is set nor `LD_LIBRARY_PATH` names a folder of it.

## Why it matters
torch_npu finds its libraries by them: "libhccl.so: cannot open shared object file", and vLLM "Failed to infer device
type".

## What it cannot know
The environment of a service that is started elsewhere: this is the one in which diag was started. An image may set it
in `.bashrc` alone, which a shell without terminal does not read.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, Listing, Package, Remedy, Setting, Undecided, check

NAMES = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_OPP_PATH")

NPU = "torch                             2.7.1\ntorch_npu                         2.7.1rc1\n"
BARE = '{"schema": "diag/environment/1", "variables": {"HF_HOME": "/data/hf", "VLLM_USE_MODELSCOPE": "True"}}\n'
SOURCED = """\
{"schema": "diag/environment/1", "variables": {"ASCEND_HOME_PATH": "/usr/local/Ascend/ascend-toolkit/latest", \
"ASCEND_OPP_PATH": "/usr/local/Ascend/ascend-toolkit/latest/opp", "HF_HOME": "/data/hf"}}
"""


@check(
    "ascend/cann-not-sourced",
    severity="warning",
    about="ascend",
    needs=(Package,),
    uses=(Setting, Listing),
    words={
        "en": {
            "title": "CANN's environment is not set in this shell",
            "summary": "torch_npu {npu} is installed; {names} are not set, nor does LD_LIBRARY_PATH name CANN",
            "cause": "set_env.sh of the toolkit was not sourced in the shell or service that starts Python.",
        },
        "zh": {
            "title": "当前 shell 未设置 CANN 环境变量",
            "summary": "已安装 torch_npu {npu}，但 {names} 均未设置，LD_LIBRARY_PATH 中也没有 CANN 路径",
            "cause": "启动 Python 的 shell 或服务没有 source CANN 的 set_env.sh。",
        },
    },
    remedies=(
        Remedy(
            key="source",
            title={
                "en": "Source the toolkit's environment (and that of NNAL) before Python starts",
                "zh": "在启动 Python 之前 source CANN（以及 NNAL）的环境脚本",
            },
            commands=(
                "source /usr/local/Ascend/ascend-toolkit/set_env.sh",
                "source /usr/local/Ascend/nnal/atb/set_env.sh",
            ),
            safety="safe",
            verify='python -c "import torch, torch_npu; print(torch.npu.is_available())"',
            source="https://github.com/Ascend/pytorch/blob/master/README.md",
        ),
    ),
    sources=(
        "https://github.com/vllm-project/vllm-ascend/issues/262",
        "https://github.com/Ascend/pytorch/blob/master/README.md",
        "https://github.com/Ascend/cann-container-image/issues/46",
    ),
    explains=("torch/device-unavailable",),
    fires=(BARE + NPU,),
    silent=(SOURCED + NPU,),
)
def cann_not_sourced(facts: Facts) -> Iterator[Answer]:
    """Look for CANN among the variables."""
    extension = facts.package("torch-npu")
    settings = [one for one in facts.all(Setting) if one.kind == "environment"]
    whole = [one for one in facts.all(Listing) if one.kind == "environment"]
    if any(one.name in NAMES or (one.name == "LD_LIBRARY_PATH" and "Ascend" in one.value) for one in settings):
        return
    if extension and whole:
        yield Finding(
            values={"npu": extension.version, "names": ", ".join(NAMES)},
            confidence="medium",
            evidence=tuple(map(Evidence.of, (extension, *whole[:1]))),
        )
    else:
        yield Undecided(reason="torch_npu and the whole environment are not both told")
