"""A flag of the launch command that came with a later version of the engine.

## What it finds
A flag that newer versions take, on an engine whose version (of its image, or as installed) is at most the last compared
one before the first that has it.

## Why it matters
The engine's parser refuses it: the server ends before it loads anything.

## What it cannot know
Versions between the last compared one without the flag and the first with it: there it stays silent.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    Engine,
    EngineFlag,
    Evidence,
    Facts,
    Finding,
    LaunchArguments,
    Package,
    Remedy,
    Shell,
    Undecided,
    at_least,
    check,
    numbers,
)

OLD = """\
docker run --runtime nvidia --gpus all --ipc=host -p 8000:8000 vllm/vllm-openai:v0.8.5 --model Qwen/Qwen3-8B \\
    --async-scheduling --tensor-parallel-size 2
"""
NEW = OLD.replace("v0.8.5", "v0.11.0")
BETWEEN = OLD.replace("v0.8.5", "v0.10.1")
OFFICIAL = ("vllm/", "lmsysorg/")
"""Whose images hold the releases that were compared; others' may hold forks."""
UNTAGGED = "0.1.dev"
"""How a build begins whose clone had no tags: its number says nothing of its age."""


@check(
    "engine/flag-newer-than-engine",
    severity="error",
    about="engine",
    needs=(LaunchArguments,),
    uses=(Engine, EngineFlag, Package),
    words={
        "en": {
            "title": "The engine does not have a flag of the command yet",
            "summary": "--{flag} was first seen in {engine} {since}; this is {version}",
            "cause": "The command was written for a newer version; the parser refuses flags that it does not know.",
        },
        "zh": {
            "title": "该版本的推理引擎尚无启动命令中的参数",
            "summary": "--{flag} 最早见于 {engine} {since}，当前版本为 {version}",
            "cause": "该命令是为更新的版本编写的；解析器会拒绝不认识的参数。",
        },
    },
    remedies=(
        Remedy(
            key="upgrade",
            title={
                "en": "Run {engine} {since} or newer, or leave the flag out",
                "zh": "使用 {engine} {since} 或更新版本，或删除该参数",
            },
            safety="manual",
            verify="{help}",
            source="https://pypi.org/project/vllm/",
        ),
    ),
    sources=(
        "https://pypi.org/project/vllm/",
        "https://pypi.org/project/sglang/",
        "https://github.com/vllm-project/vllm/issues/3651",
    ),
    fires=(OLD,),
    silent=(NEW, BETWEEN),
)
def flag_newer_than_engine(facts: Facts) -> Iterator[Answer]:
    """Compare each flag's oldest version with the engine's."""
    launches = [one for one in facts.all(LaunchArguments) if one.subcommand == "serve"]
    for launch in launches:
        version, evidence = _version(facts, launch)
        rows = _rows(facts, launch)
        compared = sorted({word for one in rows for word in (one.since, one.until) if word}, key=numbers)
        given = {name.partition(".")[0] for name, _ in launch.flags}
        if not version or not rows:
            yield Undecided(reason=f"the version of {launch.engine} is not known")
            continue
        for row in rows:
            earlier = [one for one in compared if row.since and numbers(one) < numbers(row.since)]
            if row.name in given and earlier and at_least(earlier[-1], version):
                yield _finding(launch, version, row, evidence)
    if not launches:
        yield Undecided(reason="no command that starts a server was told")


def _finding(launch: LaunchArguments, version: str, row: EngineFlag, evidence: tuple[Evidence, ...]) -> Finding:
    programs = {"vllm": "vllm serve --help=all", "sglang": "python -m sglang.launch_server --help"}
    values = {"engine": launch.engine, "flag": row.name, "version": version, "since": row.since}
    return Finding(
        subject=f"{launch.engine} --{row.name}",
        values={**values, "help": Shell(f"{programs.get(launch.engine, launch.engine)} | grep -e --{row.name}")},
        confidence="high" if (launch.image or OFFICIAL[0]).startswith(OFFICIAL) and "+" not in version else "medium",
        evidence=(Evidence.of(launch), *evidence),
    )


def _version(facts: Facts, launch: LaunchArguments) -> tuple[str, tuple[Evidence, ...]]:
    """The engine's version and what tells it: the image of the launch, else what is installed."""
    if launch.image:
        return launch.version, ()
    told: tuple[Engine | Package, ...] = (*facts.all(Engine), *facts.all(Package))
    own = [one for one in told if one.name == launch.engine and not one.version.startswith(UNTAGGED)]
    found = {one.version: one for one in own if numbers(one.version)}
    return next(((version, (Evidence.of(one),)) for version, one in found.items() if len(found) == 1), ("", ()))


def _rows(facts: Facts, launch: LaunchArguments) -> list[EngineFlag]:
    """What is known of this engine's flags that start a server."""
    return [one for one in facts.all(EngineFlag) if one.engine == launch.engine and not one.command]
