"""A flag of the launch command that the engine's version no longer has.

## What it finds
A flag that older versions take, on an engine whose version (of its image, or as installed) is at least the next one
that was compared after the last that had it.

## Why it matters
The engine's parser refuses it: the server ends before it loads anything.

## What it cannot know
Versions between the last compared one that has the flag and the next: there it stays silent.
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

NEW = """\
docker run --runtime nvidia --gpus all --ipc=host -p 8000:8000 vllm/vllm-openai:v0.21.0 --model Qwen/Qwen3-8B \\
    --rope-scaling '{"rope_type":"yarn","factor":4.0}' --max-model-len 131072
"""
OLD = NEW.replace("v0.21.0", "v0.9.2")
BETWEEN = NEW.replace("v0.21.0", "v0.11.0")
OFFICIAL = ("vllm/", "lmsysorg/")
"""Whose images hold the releases that were compared; others' may hold forks."""
UNTAGGED = "0.1.dev"
"""How a build begins whose clone had no tags: its number says nothing of its age."""


@check(
    "engine/flag-removed",
    severity="error",
    about="engine",
    needs=(LaunchArguments,),
    uses=(Engine, EngineFlag, Package),
    words={
        "en": {
            "title": "The engine no longer has a flag of the command",
            "summary": "--{flag} was last seen in {engine} {until}; this is {version}",
            "cause": "The command was written for an older version; the parser refuses flags that are gone.",
        },
        "zh": {
            "title": "该版本的推理引擎已移除启动命令中的参数",
            "summary": "--{flag} 最后见于 {engine} {until}，当前版本为 {version}",
            "cause": "该命令是为旧版本编写的；解析器会拒绝已移除的参数。",
        },
    },
    remedies=(
        Remedy(
            key="leave-out",
            title={
                "en": "Leave the flag out, or see in the version's help what took its place",
                "zh": "删除该参数，或在该版本的帮助中查找替代参数",
            },
            safety="safe",
            verify="{help}",
            source="https://pypi.org/project/vllm/",
        ),
    ),
    sources=("https://pypi.org/project/vllm/", "https://pypi.org/project/sglang/"),
    fires=(NEW,),
    silent=(OLD, BETWEEN),
)
def flag_removed(facts: Facts) -> Iterator[Answer]:
    """Compare each flag's newest version with the engine's."""
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
            later = next((one for one in compared if row.until and numbers(one) > numbers(row.until)), "")
            if row.name in given and later and at_least(version, later):
                yield _finding(launch, version, row, evidence)
    if not launches:
        yield Undecided(reason="no command that starts a server was told")


def _finding(launch: LaunchArguments, version: str, row: EngineFlag, evidence: tuple[Evidence, ...]) -> Finding:
    programs = {"vllm": "vllm serve --help=all", "sglang": "python -m sglang.launch_server --help"}
    values = {"engine": launch.engine, "flag": row.name, "version": version, "until": row.until}
    return Finding(
        subject=f"{launch.engine} --{row.name}",
        values={**values, "help": Shell(f"{programs.get(launch.engine, launch.engine)} | grep -c -e --{row.name}")},
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
