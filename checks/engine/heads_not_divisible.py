"""The attention heads of the model do not divide among the ranks of tensor parallelism.

## What it finds
A launch whose tensor-parallel size (with SGLang's data-parallel attention, that of its attention) does not divide the
number of attention heads in the model's `config.json`.

## Why it matters
The engine refuses it while it reads its configuration.

## What it cannot know
Whether the `config.json` is that of the model in the command, where the two were told apart from each other.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, LaunchArguments, ModelShape, Remedy, Undecided, check, count

CONFIG = """\
{
  "architectures": [
    "Qwen3ForCausalLM"
  ],
  "head_dim": 128,
  "hidden_size": 4096,
  "max_position_embeddings": 40960,
  "model_type": "qwen3",
  "num_attention_heads": 32,
  "num_hidden_layers": 36,
  "num_key_value_heads": 8,
  "vocab_size": 151936
}
"""
SIX = "$ vllm serve Qwen/Qwen3-8B --tensor-parallel-size 6\n"
EIGHT = "$ vllm serve Qwen/Qwen3-8B --tensor-parallel-size 8\n"
ATTENTION = (
    "$ python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --tp-size 24 --dp-size 3 --enable-dp-attention\n"
)


@check(
    "engine/heads-not-divisible",
    severity="error",
    about="engine",
    needs=(LaunchArguments, ModelShape),
    words={
        "en": {
            "title": "The attention heads do not divide among the ranks",
            "summary": "{heads} attention heads cannot be split among {ranks} tensor-parallel ranks",
            "cause": "Tensor parallelism gives each rank the same number of heads.",
        },
        "zh": {
            "title": "注意力头数无法在各 rank 间均分",
            "summary": "{heads} 个注意力头无法均分到 {ranks} 个张量并行 rank",
            "cause": "张量并行要求每个 rank 分到相同数量的注意力头。",
        },
    },
    remedies=(
        Remedy(
            key="divide",
            title={
                "en": "Take a tensor-parallel size that divides them ({fit}); pipeline parallelism can use the rest",
                "zh": "改用能整除头数的张量并行大小（{fit}），其余设备使用流水线并行",
            },
            safety="manual",
            verify="grep num_attention_heads config.json",
            source="https://docs.vllm.ai/en/latest/serving/parallelism_scaling/",
        ),
    ),
    sources=(
        "https://github.com/vllm-project/vllm/blob/main/vllm/config/model.py",
        "https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/models/llama.py",
    ),
    fires=(CONFIG + SIX,),
    silent=(CONFIG + EIGHT, CONFIG + ATTENTION),
)
def heads_not_divisible(facts: Facts) -> Iterator[Answer]:
    """Divide the heads by the ranks that share them."""
    shapes = [one for one in facts.all(ModelShape) if one.attention_heads]
    heads = {one.attention_heads for one in shapes}
    launches = [(one, ranks) for one in facts.all(LaunchArguments) if (ranks := _ranks(one))]
    if len(heads) != 1 or not launches:
        yield Undecided(reason="no one model's heads beside a launch that states how many ranks share them")
        return
    for launch, ranks in launches:
        count = shapes[0].attention_heads or 0
        if count % ranks:
            fit = ", ".join(str(one) for one in range(1, ranks) if count % one == 0)
            yield Finding(
                subject=launch.model,
                values={"heads": count, "ranks": ranks, "fit": fit},
                confidence="medium",
                evidence=(Evidence.of(launch), Evidence.of(shapes[0])),
            )


def _ranks(launch: LaunchArguments) -> int:
    """The ranks among which one copy of the attention is split; 0 where the command does not state it."""
    flags = dict(launch.flags)
    tensor = flags.get("tensor-parallel-size") or flags.get("tp-size") or ""
    ranks = (count(tensor) or 0) if launch.subcommand in ("serve", "") else 0
    copies = count(flags.get("dp-size", "1") if "enable-dp-attention" in flags else "1")
    return ranks // copies if copies and ranks % copies == 0 and "attn-cp-size" not in flags else 0
