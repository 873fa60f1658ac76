"""Sets that are known to work, against what a machine has."""

from __future__ import annotations

import re
from collections.abc import Mapping

from diag.facts import Facts, KnownSet, Level, Platform, Reason
from diag.facts.models import named
from diag.facts.parts import parts_named
from diag.versions import local, public

OTHER = re.compile(r"cpu|rocm|xpu|empty")
APART = re.compile(r"[^a-z0-9.]+")
VARIANT = re.compile(
    r"[\d.]*[bm]|a\d+b|\d+|(?:bf|fp|int|nvfp|mxfp)\d+|w\d+a\d+|awq|gptq|dynamic|channel|block|instruct|chat|it|base|hf|"
)
"""A word of a model's name that tells a size, a format or a date."""
WORDS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "ran": "ran",
        "on": "on {count} devices",
        "with": "with {model}",
        "untold": "not told here: {names}",
        "other": "with another model",
    },
    "zh": {
        "ran": "已运行过",
        "on": "设备数 {count}",
        "with": "模型 {model}",
        "untold": "此处未提供：{names}",
        "other": "模型不同",
    },
}


def ran(known: KnownSet, facts: Facts, language: str) -> Reason | None:
    """Why this machine is such a set; None where it is not, or where what makes the set is not told."""
    if not _there(known, facts) or any(_same(facts, name, one) is False for name, one in known.beside.items()):
        return None
    words = WORDS[language]
    models = [part.version for part in parts_named(facts, "model")]
    other = bool(models and known.model) and not any(alike(one, known.model) for one in models)
    untold = [name for name, one in known.beside.items() if _same(facts, name, one) is None]
    counted = [one for one in facts.devices() if one.index is not None]
    fewer = bool(known.count and 0 < len(counted) < known.count)
    level: Level = "reported" if other or fewer else known.level
    said = [
        " ".join((*(f"{name} {one}" for name, one in known.versions.items()), words["ran"])),
        *([words["on"].format(count=known.count)] if known.count else ()),
        *([words["with"].format(model=known.model)] if known.model else ()),
        *([words["other"]] if other else ()),
        *([known.result] if known.result else ()),
        *([known.note[language]] if known.note else ()),
        *([words["untold"].format(names=", ".join(untold))] if untold else ()),
    ]
    return Reason(
        rule=f"{known.origin.capture}/{known.id}",
        verdict=level,
        severity="info",
        says="; ".join(said),
        source=known.source,
        checked=known.checked,
    )


def _there(known: KnownSet, facts: Facts) -> bool:
    """Whether the device and every version of the set are told, and equal."""
    devices = facts.devices()
    if known.gpu and not any(named(facts, one, known.gpu) for one in devices):
        return False
    if known.vendor and not any(known.vendor in one.present for one in facts.all(Platform)):
        return False
    return all(_same(facts, name, one) for name, one in known.versions.items())


def _same(facts: Facts, name: str, version: str) -> bool | None:
    """Whether a part has just this version, local parts left out unless the set names one; None where not told."""
    told = parts_named(facts, name)
    if not told:
        return None
    if any(part.version == version for part in told):
        return True
    if "+" in version:
        return False
    if any(OTHER.match(local(part.version)) for part in told):
        return False
    answers = [part._replace(version=public(part.version)).lies_in((f"=={version}",)) for part in told]
    return True if True in answers else None if None in answers else False


def alike(asked: str, known: str) -> bool:
    """Whether a model that is asked about, empty for any, is the one of a set.

    All words of its name are in that, and what that says beyond them is a size, a format or a date: `distill` makes
    another model of it.
    """
    wanted, there = (set(APART.split(text.rstrip("/").rpartition("/")[2].lower())) for text in (asked, known))
    return wanted <= there | {""} and (not any(wanted) or all(map(VARIANT.fullmatch, there - wanted)))
