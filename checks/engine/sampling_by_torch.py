"""SGLang draws tokens with plain torch operators on an NVIDIA device, where FlashInfer's kernels would.

## What it finds
`sampling_backend='pytorch'` in a launch command or in the arguments that SGLang prints, on a machine with NVIDIA
devices, where deterministic inference does not ask for it.

## Why it matters
SGLang takes this path where FlashInfer cannot be imported. It sorts the whole vocabulary and adds it up for each token
of each request, and SGLang's own source calls it the slower one.

## What it cannot know
Whether requests sample at all, and whether somebody chose it to get round a fault of FlashInfer. On other vendors'
devices it is the default.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, LaunchArguments, Platform, Remedy, Undecided, check

DEVICE = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-00000000-0000-0000-0000-000000000001)\n"
PRINTED = """\
[2026-03-10 08:12:44] server_args=ServerArgs(model_path='zai-org/GLM-5-FP8', device='cuda', tp_size=8, \
attention_backend='triton', decode_attention_backend=None, sampling_backend='pytorch', grammar_backend='xgrammar', \
enable_deterministic_inference=False)
"""
GIVEN = "python -m sglang.launch_server --model-path Qwen/Qwen3-8B --sampling-backend pytorch\n"
FLASHINFER = PRINTED.replace("sampling_backend='pytorch'", "sampling_backend='flashinfer'")
DETERMINISTIC = PRINTED.replace("enable_deterministic_inference=False", "enable_deterministic_inference=True")
ASCEND = """\
[2026-01-07 08:12:44] server_args=ServerArgs(model_path='Qwen/Qwen3-8B', device='npu', attention_backend='ascend', \
sampling_backend='pytorch', grammar_backend='xgrammar', enable_deterministic_inference=False)
"""


@check(
    "engine/sampling-by-torch",
    severity="warning",
    about="engine",
    needs=(LaunchArguments,),
    uses=(Platform,),
    words={
        "en": {
            "title": "SGLang samples with plain torch operators instead of FlashInfer's kernels",
            "summary": "sampling_backend={value}: each token sorts the whole vocabulary",
            "cause": "FlashInfer is missing or cannot be imported, or the flag was given. SGLang then takes this path "
            "without a word.",
        },
        "zh": {
            "title": "SGLang 采样使用 torch 原生算子而非 FlashInfer 内核",
            "summary": "sampling_backend={value}：每个 token 都要对整个词表排序",
            "cause": "FlashInfer 未安装或无法导入，或显式指定了该参数。此时 SGLang 不会给出任何提示。",
        },
    },
    remedies=(
        Remedy(
            key="import",
            title={
                "en": "See whether FlashInfer can be imported, and why not",
                "zh": "确认 FlashInfer 能否导入及失败原因",
            },
            commands=('python -c "import flashinfer; print(flashinfer.__version__)"',),
            safety="safe",
            source="https://github.com/sgl-project/sglang/pull/2132",
        ),
        Remedy(
            key="leave-out",
            title={
                "en": "Leave --sampling-backend out, where it was given, and start again",
                "zh": "若显式指定了 --sampling-backend，去掉后重新启动",
            },
            safety="disruptive",
            verify="curl -s localhost:30000/get_server_info | grep -o '.sampling_backend.:.[a-z]*'",
            source="https://github.com/sgl-project/sglang/pull/2065",
        ),
    ),
    sources=(
        "https://github.com/sgl-project/sglang/blob/001733e9b0ead27aff53e4c4494f8579ff819ee5/python/sglang/srt/layers"
        "/sampler.py",
        "https://github.com/sgl-project/sglang/pull/2132",
        "https://github.com/sgl-project/sglang/pull/2065",
        "https://github.com/vllm-project/vllm/pull/11394",
    ),
    fires=(DEVICE + PRINTED, DEVICE + GIVEN),
    silent=(DEVICE + FLASHINFER, DEVICE + DETERMINISTIC, ASCEND),
)
def sampling_by_torch(facts: Facts) -> Iterator[Answer]:
    """Look at SGLang's arguments, where the devices are NVIDIA's."""
    launches = [one for one in facts.all(LaunchArguments) if one.engine == "sglang"]
    chosen = [one for one in launches if _by_torch(dict(one.flags))]
    present = {vendor for one in facts.all(Platform) for vendor in one.present}
    if not launches:
        yield Undecided(reason="no arguments of SGLang were told")
    elif chosen and not present:
        yield Undecided(reason="whose devices they are was not told, and for others' this is the default")
    elif chosen and present == {"nvidia"}:
        yield Finding(values={"value": "pytorch"}, confidence="medium", evidence=(Evidence.of(chosen[-1]),))


def _by_torch(flags: dict[str, str]) -> bool:
    asked = flags.get("enable-deterministic-inference", "False") not in ("False", "false")
    return flags.get("sampling-backend") == "pytorch" and flags.get("device", "cuda") == "cuda" and not asked
