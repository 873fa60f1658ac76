"""vLLM is launched on a K100_AI without the variable that keeps its own GEMM off.

## What it finds
A command that starts vLLM on a machine with K100_AI devices, where `VLLM_HCU_USE_CUSTOM_QUANTIZATION_GEMM` is not set
to `False` or `0`, in the command or in the environment.

## Why it matters
The reports and the vendor's launch lines for this device set it, for vLLM 0.18 and 0.21, in BF16 and in W8A8 alike; the
BW devices do without.

## What it cannot know
Whether the image's plug-in has it off by default already. What an image or a script sets that the text does not show.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Accelerator, Answer, Evidence, Facts, Finding, LaunchArguments, Remedy, Setting, Undecided, check

PAGE = (
    "https://developer.sourcefind.cn/modelzoo/list/qwen3.8-int/detail?"
    "post_id=9f58e9d5-ab52-11f1-9283-0242ac150003&active=ModelOverview"
)
NAME = "VLLM_HCU_USE_CUSTOM_QUANTIZATION_GEMM"
OFF = ("false", "0")
DEVICES = """\
$ hy-smi -a
HCU[0]          : Card Series:           K100_AI
HCU[0]          : Card Vendor:           Chengdu C-3000 IC Design Co., Ltd.
HCU[1]          : Card Series:           K100_AI
HCU[1]          : Card Vendor:           Chengdu C-3000 IC Design Co., Ltd.
"""
SERVE = """\
vllm serve hygon/Qwen3.8-27B-Channel-INT8-w8a8 \\
--host 0.0.0.0 \\
--port 8000 \\
--served-model-name Qwen3.8-27B-Channel-INT8-w8a8 \\
--dtype bfloat16 \\
--trust-remote-code \\
--max-model-len 33792 \\
--gpu-memory-utilization 0.95
"""
SET = "export VLLM_HCU_USE_CUSTOM_QUANTIZATION_GEMM=False #K100AI推理需添加该参数，BW1000可忽略\n"


@check(
    "hygon/custom-gemm-left-on",
    severity="warning",
    about="hygon",
    needs=(Accelerator, LaunchArguments),
    uses=(Setting,),
    words={
        "en": {
            "title": "vLLM on K100_AI is launched with its own quantisation GEMM",
            "summary": "{name} is {value.en}; launches on {device} set it to False",
            "cause": "The plug-in's own GEMM is for the BW devices; commands written for them leave the variable out.",
        },
        "zh": {
            "title": "在 K100_AI 上启动 vLLM 时未关闭自带的量化 GEMM",
            "summary": "{name} {value.zh}；在 {device} 上启动时应设为 False",
            "cause": "插件自带的 GEMM 面向 BW 系列；为 BW 编写的启动命令没有设置该变量。",
        },
    },
    remedies=(
        Remedy(
            key="set",
            title={"en": "Set it before the launch", "zh": "启动前设置该变量"},
            commands=("export VLLM_HCU_USE_CUSTOM_QUANTIZATION_GEMM=False",),
            safety="safe",
            verify="env | grep VLLM_HCU_USE_CUSTOM_QUANTIZATION_GEMM",
            source=PAGE,
        ),
    ),
    sources=(
        PAGE,
        "https://github.com/DocPang/qwen38-k100ai-int8-optimization",
    ),
    fires=(DEVICES + SERVE,),
    silent=(DEVICES + SET + SERVE,),
)
def custom_gemm_left_on(facts: Facts) -> Iterator[Answer]:
    """Look for the variable beside a launch on such a device."""
    device = next((one for one in facts.all(Accelerator) if one.name.startswith("K100_AI")), None)
    launch = next(
        (one for one in facts.all(LaunchArguments) if one.engine == "vllm" and one.subcommand == "serve"), None
    )
    settings = facts.environment()
    setting = settings.get(NAME)
    if launch is None:
        yield Undecided(reason="no command that starts vLLM was told")
    elif device and (setting is None or setting.value.lower() not in OFF):
        yield Finding(
            values={"name": NAME, "device": device.name, **_value(setting)},
            confidence="medium",
            evidence=tuple(Evidence.of(one) for one in (setting, launch, device) if one),
        )


def _value(setting: Setting | None) -> dict[str, str]:
    """The variable's value, in words where there is none."""
    return {
        "value.en": setting.value if setting else "unset",
        "value.zh": f"为 {setting.value}" if setting else "未设置",
    }
