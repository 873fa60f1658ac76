"""A flag of the launch command is none that the engine takes.

## What it finds
A flag that no compared version of the engine has, and that is close to one it has (a slip of the pen) or belongs to
another engine.

## Why it matters
The engine's parser refuses unknown flags: the server ends before it loads anything.

## What it cannot know
Flags that plug-ins and forks bring. A launch with one that resembles nothing known is left undecided, and so is an
engine newer than those that were compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from diag.api import (
    Answer,
    EngineFlag,
    Evidence,
    Facts,
    Finding,
    LaunchArguments,
    Remedy,
    Shell,
    Undecided,
    at_least,
    check,
    numbers,
)

CLOSE = 0.85
SPELT = """\
export QUANT_CONFIG=/path/to/quant/config/inc/meta-llama-3.1-405b-instruct/maxabs_measure_g3.json
vllm serve meta-llama/Llama-3.1-405B-Instruct --quantization inc --kv-cache-dtype fp8_inc --tensor_parallel_size 8
"""
MISSPELT = SPELT.replace("parallel", "paralel")
OTHER_ENGINE = "$ vllm serve Qwen/Qwen3-8B --tensor-parallel-size 2 --mem-fraction-static 0.85\n"


@check(
    "engine/flag-unknown",
    severity="error",
    about="engine",
    needs=(LaunchArguments,),
    uses=(EngineFlag,),
    words={
        "en": {
            "title": "The engine does not know a flag of the command",
            "summary": "--{flag} is no flag of {engine}; {meant} is one of {owner}",
            "cause": "A slip of the pen, or a flag of another engine. The parser refuses what it does not know.",
        },
        "zh": {
            "title": "推理引擎不认识启动命令中的参数",
            "summary": "--{flag} 不是 {engine} 的参数；{meant} 是 {owner} 的参数",
            "cause": "拼写错误，或使用了其他推理引擎的参数。解析器会拒绝不认识的参数。",
        },
    },
    remedies=(
        Remedy(
            key="correct",
            title={"en": "Correct the flag, or leave it out", "zh": "更正该参数或将其删除"},
            safety="safe",
            verify="{help}",
            source="https://github.com/vllm-project/vllm/issues/8273",
        ),
    ),
    sources=(
        "https://github.com/vllm-project/vllm/issues/8273",
        "https://github.com/vllm-project/vllm-omni/issues/1364",
        "https://pypi.org/project/vllm/",
        "https://pypi.org/project/sglang/",
    ),
    fires=(MISSPELT, OTHER_ENGINE),
    silent=(SPELT,),
)
def flag_unknown(facts: Facts) -> Iterator[Answer]:
    """Explain each unknown flag by one that is known."""
    rows = [one for one in facts.all(EngineFlag) if not one.command]
    launches = [one for one in facts.all(LaunchArguments) if one.subcommand == "serve"]
    for launch in launches:
        own = [one for one in rows if one.engine == launch.engine]
        meant = {flag: _meant(flag, own, rows) for flag in launch.unknown}
        if not own or not all(meant.values()) or _newer(launch.version, own):
            yield Undecided(
                reason=f"nothing known explains {', '.join(launch.unknown) or 'the flags'} of {launch.engine}"
            )
        else:
            yield from (_finding(launch, flag, row) for flag, row in meant.items() if row)
    if not launches:
        yield Undecided(reason="no command that starts a server was told")


def _meant(flag: str, own: list[EngineFlag], rows: list[EngineFlag]) -> EngineFlag | None:
    """The flag of this engine that is spelt nearly so, else the one of another engine that is spelt so."""
    close = get_close_matches(flag.partition(".")[0], [one.name for one in own], n=1, cutoff=CLOSE)
    return next((one for one in own if one.name in close), None) or next(
        (one for one in rows if one.name == flag), None
    )


def _newer(version: str, own: list[EngineFlag]) -> bool:
    """Whether the engine is newer than all that were compared."""
    newest = max((one.since for one in own), key=numbers)
    return bool(version) and not at_least(newest, version)


def _finding(launch: LaunchArguments, flag: str, row: EngineFlag) -> Finding:
    programs = {"vllm": "vllm serve --help=all", "sglang": "python -m sglang.launch_server --help"}
    values = {"engine": launch.engine, "flag": flag, "meant": f"--{row.name}", "owner": row.engine}
    return Finding(
        subject=f"{launch.engine} --{flag}",
        values={**values, "help": Shell(f"{programs.get(launch.engine, launch.engine)} | grep -e --{row.name}")},
        evidence=(Evidence.of(launch),),
    )
