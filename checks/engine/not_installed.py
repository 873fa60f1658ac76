"""The engine of the launch command is not among the packages of the interpreter.

## What it finds
A command that starts an engine outside of a container, where all packages of the examined interpreter were told and the
engine's is none of them.

## Why it matters
The command ends with "No module named …" or "command not found".

## What it cannot know
Another environment that the shell would take the program from. A command that names its program by a path is left
undecided.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    Evidence,
    Facts,
    Finding,
    LaunchArguments,
    LaunchCommand,
    PackageList,
    Python,
    Remedy,
    Undecided,
    check,
)

ENVIRONMENT = """\
{"schema": "diag/packages/1", "python": "3.11.7", "executable": "/opt/venv/bin/python", "prefix": "/opt/venv", \
"libc": "glibc-2.36", "kernel": "6.18.44", "machine": "x86_64", "path": ["/opt/venv/lib/python3.11/site-packages"], \
"torch": {"__version__": "2.13.0+cpu", "debug": false, "cuda": null, "hip": null, "xpu": null}, "packages": [{"name": \
"torch", "version": "2.13.0+cpu", "location": "/opt/venv/lib/python3.11/site-packages", "installer": "pip"}]}
"""
WITH_ENGINE = ENVIRONMENT.replace(
    '"packages": [',
    '"packages": [{"name": "vllm", "version": "0.33.0", "location": "/opt/venv/lib/python3.11/site-packages", '
    '"installer": "pip"}, ',
)
COMMAND = "$ vllm serve Qwen/Qwen3-8B --tensor-parallel-size 2\n"


@check(
    "engine/not-installed",
    severity="error",
    about="engine",
    needs=(LaunchArguments, LaunchCommand, PackageList),
    uses=(Python,),
    words={
        "en": {
            "title": "The engine of the command is not installed",
            "summary": "{engine} is none of the {count} packages of {python}",
            "cause": "The engine was installed into another environment, or never.",
        },
        "zh": {
            "title": "未安装启动命令中的推理引擎",
            "summary": "{python} 的 {count} 个软件包中没有 {engine}",
            "cause": "推理引擎安装在其他环境中，或从未安装。",
        },
    },
    remedies=(
        Remedy(
            key="other",
            title={
                "en": "Examine the interpreter that the engine is installed in",
                "zh": "检查安装了该推理引擎的解释器",
            },
            commands=("diag env-check --python /path/to/the/engine/bin/python",),
            safety="safe",
            verify="/path/to/the/engine/bin/python -m pip show {engine}",
        ),
        Remedy(
            key="install",
            title={
                "en": "Install it into an environment of its own: it brings the torch it pins",
                "zh": "安装到独立的新环境中：它会带入其锁定的 torch",
            },
            commands=("python -m venv /opt/{engine}", "/opt/{engine}/bin/pip install {engine}"),
            safety="safe",
            verify='/opt/{engine}/bin/python -c "import {engine}"',
            source="https://github.com/vllm-project/vllm/issues/10147",
        ),
    ),
    sources=("https://github.com/vllm-project/vllm/issues/10147",),
    fires=(ENVIRONMENT + COMMAND,),
    silent=(WITH_ENGINE + COMMAND,),
)
def not_installed(facts: Facts) -> Iterator[Answer]:
    """Look for the engine among the packages."""
    listed = facts.first(PackageList)
    commands = {one.origin: one for one in facts.all(LaunchCommand)}
    judged = False
    for launch in facts.all(LaunchArguments):
        command = commands.get(launch.origin)
        if listed and command and not launch.image and not _by_path(command):
            judged = True
            if facts.package(launch.engine) is None:
                python = facts.field(Python, "executable") or "the interpreter of this text"
                values = {"engine": launch.engine, "count": listed.count, "python": python}
                yield Finding(
                    subject=launch.engine,
                    values={**values},
                    confidence="medium",
                    evidence=(Evidence.of(listed), Evidence.of(launch)),
                )
    if not judged:
        yield Undecided(reason="every command runs in a container or names its program by a path")


def _by_path(command: LaunchCommand) -> bool:
    """Whether the program, or a tool that brings its own environment, is named."""
    programs = [word for word in command.words[:6] if not word.startswith("-")]
    own = ("uv", "uvx", "poetry", "pixi", "pdm", "conda", "micromamba", "srun", "ssh", "docker", "kubectl")
    return any("/bin/" in word or word in own for word in programs)
