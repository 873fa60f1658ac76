"""vLLM is launched on a P800 without the variable that makes random sampling fast.

## What it finds
A command that starts vLLM on a machine with Kunlun devices, where `FAST_RANDOM_SAMPLE` is not `1`, in the command or in
the environment.

## Why it matters
Sampling with a temperature draws exponential noise over the whole vocabulary; the device's kernel for it is slow. One
report measured 32 tokens per second in all before and about 72 times that after.

## What it cannot know
Whether requests sample at all, and whether this version of the plug-in draws its noise by another kernel by now. At
the revision that was read (09869ee, May 2026) the variable does not reach the rejection sampler of speculative
decoding, and where requests with a seed and without one share a batch, it draws the latter from a wrong distribution.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Accelerator, Answer, Evidence, Facts, Finding, LaunchArguments, Remedy, Setting, Undecided, check

NAME = "FAST_RANDOM_SAMPLE"
SAMPLER = "https://github.com/baidu/vLLM-Kunlun/blob/09869ee7795f/vllm_kunlun/v1/sample/ops/topk_topp_sampler.py"
DEVICES = """\
$ xpu-smi
+-----------------------------------------------------------------------------+
| XPU-SMI               Driver Version: 5.0.21.26    XPU-RT Version: 5.0.21   |
|-------------------------------+----------------------+----------------------+
| XPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | XPU-Util  Compute M. |
|                               |             L3-Usage |            SR-IOV M. |
|===============================+======================+======================|
|   0  P800 OAM           N/A   | 00000000:03:00.0 N/A |                    0 |
| N/A   37C  N/A     85W / 400W |      0MiB / 98304MiB |      0%      Default |
|                               |      0MiB /    96MiB |             Disabled |
+-------------------------------+----------------------+----------------------+
"""
SERVE = "$ vllm serve /home/newdata/models/Qwen3.8-27B-W8A8-INT8-Dynamic --gpu-memory-utilization 0.75\n"
OTHERS = '{"schema": "diag/environment/1", "variables": {"XPU_VISIBLE_DEVICES": "0,1,2,3,4,5,6,7"}}\n'
FAST = SERVE.replace("vllm serve", "FAST_RANDOM_SAMPLE=1 vllm serve")


@check(
    "kunlun/fast-random-sample-unset",
    severity="warning",
    about="kunlun",
    needs=(Accelerator, LaunchArguments),
    uses=(Setting,),
    words={
        "en": {
            "title": "Random sampling takes the slow kernel",
            "summary": "FAST_RANDOM_SAMPLE is {value}: vLLM on {device} draws random tokens by the slow kernel",
            "cause": "The plug-in's fast way of drawing random tokens is off unless the variable is 1.",
        },
        "zh": {
            "title": "随机采样走慢速内核",
            "summary": "FAST_RANDOM_SAMPLE 为 {value}：{device} 上的 vLLM 将使用慢速内核进行随机采样",
            "cause": "只有该变量为 1 时，插件才使用快速随机采样。",
        },
    },
    remedies=(
        Remedy(
            key="set",
            title={"en": "Set it before the launch", "zh": "启动前设置该变量"},
            commands=("export FAST_RANDOM_SAMPLE=1",),
            safety="safe",
            verify="env | grep FAST_RANDOM_SAMPLE",
            source="https://github.com/baidu/vLLM-Kunlun/pull/3",
        ),
        Remedy(
            key="seeds",
            title={
                "en": "With it, let no request carry a seed, or all: at revision 09869ee the noise of the others in "
                "such a batch goes through the logarithm twice, and their tokens are drawn wrongly",
                "zh": "设置后，请求要么都不带 seed，要么都带：在版本 09869ee 中，"
                "混合批次里不带 seed 的请求会对噪声取两次对数，采样分布错误",
            },
            safety="manual",
            source=SAMPLER,
        ),
        Remedy(
            key="speculation",
            title={
                "en": "Speculative decoding: at that revision its rejection sampler draws by the slow kernel with the "
                "variable, too; measure without speculation",
                "zh": "使用投机解码时：该版本的 rejection sampler 即使设置了变量仍使用慢速内核；"
                "请关闭投机解码后对比测量",
            },
            safety="manual",
            source="https://github.com/baidu/vLLM-Kunlun/pull/406",
        ),
    ),
    sources=(
        "https://github.com/baidu/vLLM-Kunlun/pull/3",
        "https://github.com/baidu/vLLM-Kunlun/pull/73",
        "https://github.com/baidu/vLLM-Kunlun/pull/406",
        SAMPLER,
    ),
    fires=(DEVICES + OTHERS + SERVE,),
    silent=(DEVICES + FAST,),
)
def fast_random_sample_unset(facts: Facts) -> Iterator[Answer]:
    """Look for the variable beside a launch on such a device."""
    device = next((one for one in facts.all(Accelerator) if one.name.startswith("P800")), None)
    launch = next(
        (one for one in facts.all(LaunchArguments) if one.engine == "vllm" and one.subcommand == "serve"), None
    )
    settings = facts.environment()
    setting = settings.get(NAME)
    if launch is None:
        yield Undecided(reason="no command that starts vLLM was told")
    elif setting is None and not facts.whole("environment"):
        yield Undecided(reason="whether the variable is set was not told")
    elif device and (setting is None or setting.value != "1"):
        yield Finding(
            values={"value": setting.value if setting else "unset", "device": device.name},
            confidence="medium",
            evidence=tuple(Evidence.of(one) for one in (setting, launch, device) if one),
        )
