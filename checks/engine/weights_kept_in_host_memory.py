"""An engine is launched with a part of the weights in the host's memory.

## What it finds
`--cpu-offload-gb` above zero, and layers that are offloaded in groups, in a launch command or in the arguments that
vLLM and SGLang print.

## Why it matters
What stays on the host crosses the bus in each step. A setting that was left over from a machine with fewer devices, on
one where the weights fit, took 2434 tokens per second to 120.

## What it cannot know
Whether the weights would fit without it, unless the engine printed what it left for the KV cache: where that is less
than what lies on the host, the setting is needed, and nothing is said. Groups are fetched ahead, which hides a part.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, EngineState, Evidence, Facts, Finding, LaunchArguments, Remedy, Undecided, check

GLM = """\
vllm serve /GLM-4.5-FP8 \\
    --tensor-parallel-size 8 \\
    --cpu-offload-gb 16 \\
    --served-model-name glm-4.5-fp8
"""
PRINTED = """\
(APIServer pid=1) INFO 09-20 08:12:44 [utils.py:233] non-default args: {'model': 'deepseek-ai/DeepSeek-V4.1-Flash', \
'tensor_parallel_size': 8, 'cpu_offload_gb': 35.0}
"""
FITS = PRINTED + "(Worker_TP0 pid=301) INFO 09-20 08:15:02 [gpu_worker.py:298] Available KV cache memory: 58.11 GiB\n"
SGLANG = "python -m sglang.launch_server --model-path Qwen/Qwen3-32B --cpu-offload-gb 20 --port 30000\n"
GROUPS = "vllm serve Qwen/Qwen3-32B --offload-group-size 8 --offload-num-in-group 2\n"
ZERO = """\
INFO 08-01 17:36:32 [api_server.py:1044] args: Namespace(subparser='serve', model='Qwen/Qwen3-8B', seed=0, \
swap_space=4, cpu_offload_gb=0, gpu_memory_utilization=0.9)
"""
KV_CACHE = "vllm serve Qwen/Qwen3-32B --kv-offloading-size 64 --kv-offloading-backend native\n"
HELP = "  --cpu-offload-gb CPU_OFFLOAD_GB\n                        The space in GiB to offload to CPU, per GPU.\n"
SHARDED = (
    "python -m sglang.launch_server --model-path Qwen/Qwen3-32B --offload-group-size 4 --offload-mode sharded_gpu\n"
)
NEEDED = """\
(APIServer pid=148236) INFO 07-16 19:52:39 [api_utils.py:273] non-default args: {'model': 'GLM-5.2-W4A16-55c92ae', \
'tensor_parallel_size': 4, 'offload_backend': 'uva', 'cpu_offload_gb': 40.0, 'cpu_offload_params': ['experts']}
(Worker_TP0_EP0 pid=149112) INFO 07-16 20:03:56 [gpu_worker.py:560] Available KV cache memory: 28.85 GiB
"""
SIZE, GROUP, MODE = "cpu-offload-gb", "offload-group-size", "offload-mode"


@check(
    "engine/weights-kept-in-host-memory",
    severity="warning",
    about="engine",
    needs=(LaunchArguments,),
    uses=(EngineState,),
    words={
        "en": {
            "title": "The engine keeps a part of the weights in the host's memory, which each step reads anew",
            "summary": "--{flag} {value}: weights in host memory cross the bus in each step{rest.en}",
            "cause": "The setting makes room on the device at the price of speed. It is right where the weights do not "
            "fit; it was often written for another machine, model or quantisation, and stayed.",
        },
        "zh": {
            "title": "推理引擎将部分权重放在主机内存，每步都要重新读取",
            "summary": "--{flag} {value}：主机内存中的权重每一步都要经总线传输{rest.zh}",
            "cause": "该设置以速度换取显存空间。权重放不进显存时才应使用；"
            "它常常是为另一台机器、另一个模型或量化方式设置的，之后未取消。",
        },
    },
    remedies=(
        Remedy(
            key="leave-out",
            title={
                "en": "Start without it, with a shorter length where memory is short then",
                "zh": "去掉该参数启动；若显存不足则缩短最大长度",
            },
            commands=("vllm serve MODEL --max-model-len 16384",),
            safety="disruptive",
            verify="curl -s localhost:8000/metrics | grep generation_tokens",
            source="https://github.com/vllm-project/vllm/issues/57771",
        ),
        Remedy(
            key="leave-out-sglang",
            title={
                "en": "Start without it, with a shorter length where memory is short then",
                "zh": "去掉该参数启动；若显存不足则缩短最大长度",
            },
            commands=("python -m sglang.launch_server --model-path MODEL --context-length 16384",),
            safety="disruptive",
            source="https://github.com/vllm-project/vllm/issues/57771",
        ),
        Remedy(
            key="more-devices",
            title={
                "en": "Or let more devices or a smaller quantisation hold the weights",
                "zh": "或使用更多设备、更小的量化来容纳权重",
            },
            safety="manual",
            source="https://github.com/vllm-project/vllm/issues/22692",
        ),
    ),
    sources=(
        "https://github.com/vllm-project/vllm/issues/57771",
        "https://github.com/vllm-project/vllm/issues/22692",
        "https://github.com/vllm-project/vllm/pull/6317",
        "https://github.com/vllm-project/vllm/blob/00593fa7a4832bdabac6fcd06c1710d13c462fbf/vllm/config/offload.py",
    ),
    fires=(GLM, PRINTED, FITS, SGLANG, GROUPS),
    silent=(ZERO, KV_CACHE, HELP + KV_CACHE, SHARDED, NEEDED),
)
def weights_kept_in_host_memory(facts: Facts) -> Iterator[Answer]:
    """Look at the arguments of each launch, and at what was left for the KV cache."""
    seen: set[tuple[str, str, str]] = set()
    left = _left(facts)
    for launch in facts.all(LaunchArguments):
        flag, value = _offload(dict(launch.flags))
        needed = left is not None and flag == SIZE and _amount(left) <= float(value)
        if value and not needed and (launch.engine, flag, value) not in seen:
            seen.add((launch.engine, flag, value))
            yield _finding(launch, flag, value, left if flag == SIZE else None)
    if not facts.first(LaunchArguments):
        yield Undecided(reason="no arguments of an engine were told")


def _offload(flags: dict[str, str]) -> tuple[str, str]:
    """The flag that keeps weights on the host and its value, empty where none does."""
    if (_number(flags.get(SIZE, "")) or 0) > 0:
        return SIZE, f"{_number(flags[SIZE]):g}"
    if (_number(flags.get(GROUP, "")) or 0) > 0 and flags.get(MODE, "cpu") == "cpu":
        return GROUP, flags[GROUP]
    return "", ""


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _left(facts: Facts) -> EngineState | None:
    """What the engine left for the KV cache, in GiB, where it is least."""
    told = [one for one in facts.all(EngineState) if one.name == "memory.kv-cache" and one.unit in ("GiB", "GB")]
    return min(told, key=_amount, default=None)


def _amount(state: EngineState) -> float:
    return _number(state.value) or 0.0


def _finding(launch: LaunchArguments, flag: str, value: str, left: EngineState | None) -> Finding:
    rest = {"rest.en": "", "rest.zh": ""}
    if left:
        after = f"{_amount(left) - float(value):.2f}"
        rest = {
            "rest.en": f"; they would fit: of {left.value} GiB for the KV cache, {after} GiB would be left",
            "rest.zh": f"；这些权重可以放进显存：KV 缓存的 {left.value} GiB 届时还剩 {after} GiB",
        }
    return Finding(
        subject=f"{launch.engine} --{flag}",
        values={"flag": flag, "value": value, **rest},
        confidence="high" if left and _amount(left) >= 1.5 * float(value) else "medium",
        evidence=tuple(Evidence.of(one) for one in (launch, left) if one),
        remedies=("leave-out-sglang" if launch.engine == "sglang" else "leave-out", "more-devices"),
    )
