"""A third party's root, written to disk: a vendor that diag has never heard of."""

from __future__ import annotations

from pathlib import Path

CHECK = '''\
"""The flux of an Acme device is below what its data sheet asks for.

## What it finds ## Why it matters ## What it cannot know
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from diag.api import Capture, Evidence, Fact, Facts, Finding, Recognise, Remedy, check, probe


class Flux(Fact):
    """Flux in webers, and which way it runs."""

    webers: float
    way: Literal["in", "out"] = "in"


@probe("acme/flux", tells=(Flux,), command=("acme-flux",), recognise=Recognise(("ACME flux:",), lines=0))
def flux(capture: Capture) -> Iterator[Fact]:
    """The one line that the tool prints."""
    for line in capture.lines():
        if "ACME flux:" in line.text:
            yield Flux(origin=capture.origin(line), webers=float(line.text.split()[-1]))


@check(
    "acme/flux-low",
    severity="error",
    about="acme",
    needs=(Flux,),
    words={
        "en": {"title": "Flux is low", "summary": "flux is {webers} Wb", "cause": "The coil is cold."},
        "zh": {"title": "磁通过低", "summary": "磁通为 {webers} Wb", "cause": "线圈过冷。"},
    },
    remedies=(Remedy(title={"en": "Warm the coil", "zh": "预热线圈"}, safety="manual"),),
    sources=("https://acme.example/flux",),
    fires=("ACME flux: 3",),
    silent=("ACME flux: 30",),
)
def flux_low(facts: Facts) -> Iterator[Finding]:
    """Compare with the data sheet."""
    for one in facts.all(Flux):
        if one.webers < 20:
            yield Finding(values={"webers": one.webers}, evidence=(Evidence.of(one),))
'''
ENTRY = """\
title: {en: A valve sticks, zh: 阀门卡住}
severity: error
text: [tool-output]
symptoms: {any: [WORD stuck]}
cause: {en: The valve was not oiled., zh: 阀门未上油。}
remedies:
  - {title: {en: Oil it, zh: 上油}, safety: manual}
sources: [{url: "https://acme.example/valve", seen: 2026-11-29}]
vectors:
  fires: [{text: the WORD stuck}]
  silent: [{text: the WORD stuck no more, why: it moves}]
"""
PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "acme-diag"
version = "1.0"
[project.entry-points."diag.roots"]
acme = "acme_diag"
[tool.hatch.build.targets.wheel]
packages = ["acme_diag"]
"""


def write(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return root


def entry(word: str) -> str:
    """An entry that looks for one word."""
    return ENTRY.replace("WORD", word)


def project(folder: Path) -> Path:
    """A Python project whose package is a root."""
    files = {"__init__.py": "", "checks/acme/flux_low.py": CHECK, "kb/entries/acme/valve.yaml": entry("valve")}
    write(folder / "acme_diag", files)
    return write(folder, {"pyproject.toml": PROJECT})
