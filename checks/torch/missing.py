"""torch is not installed in the interpreter that was examined.

## What it finds
An interpreter on whose path no torch lies, or a traceback that ends in `No module named 'torch'`.

## Why it matters
Nothing about the engine, its devices or its collectives can be judged in this interpreter.

## What it cannot know
Whether this is the interpreter the engine runs under. Hence a note: on a host whose engine lives in a container or
another environment, nothing is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    Evidence,
    Facts,
    Finding,
    Package,
    Python,
    Remedy,
    TorchBuild,
    Unavailable,
    Undecided,
    check,
)

TRACEBACK = """\
$ python -c "import torch"
Traceback (most recent call last):
  File "<string>", line 1, in <module>
ModuleNotFoundError: No module named 'torch'
"""
OTHER_MODULE = """\
$ python -c "import vllm"
Traceback (most recent call last):
  File "<string>", line 1, in <module>
ModuleNotFoundError: No module named 'vllm'
$ pip freeze
tokenspeed-triton==3.9.10.post20261028
torch==2.14.0
torchaudio==2.11.0
"""


@check(
    "torch/missing",
    severity="info",
    about="torch",
    needs=(),
    uses=(Package, Python, TorchBuild, Unavailable),
    words={
        "en": {
            "title": "torch is not installed in this interpreter",
            "summary": "no torch in {python}",
            "cause": "The interpreter examined is not the one the engine runs under, or torch was never installed.",
        },
        "zh": {
            "title": "该解释器中未安装 torch",
            "summary": "{python} 中没有 torch",
            "cause": "所检查的解释器不是推理引擎使用的解释器，或者其中从未安装过 torch。",
        },
    },
    remedies=(
        Remedy(
            key="other",
            title={
                "en": "Examine the interpreter the engine runs under",
                "zh": "检查推理引擎实际使用的解释器",
            },
            commands=("diag env-check --python /path/to/the/engine/bin/python",),
            safety="safe",
        ),
        Remedy(
            key="install",
            title={
                "en": "If the engine is to run under this one: install the engine, which brings the torch it pins",
                "zh": "如果推理引擎应使用该解释器：安装推理引擎，它会带入其锁定的 torch",
            },
            safety="manual",
            verify='python -c "import torch; print(torch.__version__)"',
        ),
    ),
    sources=("https://github.com/vllm-project/vllm/issues/10147",),
    fires=(TRACEBACK,),
    silent=(OTHER_MODULE,),
)
def missing(facts: Facts) -> Iterator[Answer]:
    """Look for torch's absence, and for nothing that tells of a torch."""
    gone = next((one for one in facts.all(Unavailable) if one.what == "torch" and one.how == "missing"), None)
    if gone and facts.first(TorchBuild) is None and facts.package("torch") is None:
        interpreter = facts.field(Python, "executable") or "the interpreter of this text"
        yield Finding(values={"python": interpreter}, evidence=(Evidence.of(gone),))
    elif gone is None and facts.first(TorchBuild) is None and facts.package("torch") is None:
        yield Undecided(reason="nothing tells of a torch")
