"""The verdict on the versions of one machine: a fold over what the checks about versions answered, and the known sets.

One judge: what a check found, and what it compared and found in order, are the reasons; the first level that a reason
holds up is the verdict. A fault on one reporter's word never displaces a set that was verified; information decides
nothing; where the pins of an engine are not known, nothing else makes the set allowed.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches

from diag.check import Check
from diag.facts import (
    LEVELS,
    Accelerator,
    Component,
    ComponentName,
    DeviceModel,
    Driver,
    Engine,
    Facts,
    KnownSet,
    Level,
    MatrixVerdict,
    Origin,
    Package,
    Reason,
    Release,
    RuntimeDriver,
    TorchArchitectures,
    TorchBuild,
    Vendor,
)
from diag.facts.models import present_makers
from diag.facts.parts import parts_named
from diag.finding import Result
from diag.matrix.known import ran
from diag.versions import parse, public

UNJUDGED = "matrix/not-compared"
"""What stands for a rule where a part of the machine was compared with nothing."""
STRANGE = "matrix/unknown-device"
"""What stands for a rule where a device that is asked about is not known."""
WORDS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "newer": "{name} {version} is newer than the newest that is known here ({last})",
        "unknown": "nothing is known here of {name}",
        "apart": "{name} was compared with nothing: no rule ties it to the rest of what is asked about",
        "near": "; did you mean {name!r}?",
        "old": "the newest of the data was checked on {day}, {days} days ago",
        "device": "no device is known here as {name!r}",
        "driver": "no rule could compare the driver with the software",
        "devices": "no rule could compare the devices with the software",
    },
    "zh": {
        "newer": "{name} {version} 比此处已知的最新版本（{last}）更新",
        "unknown": "此处没有 {name} 的任何资料",
        "apart": "未比较 {name}：没有规则将其与所询问的其余部分联系起来",
        "near": "；是否指 {name!r}？",
        "old": "资料最近一次核对是在 {day}，已过 {days} 天",
        "device": "此处没有名为 {name!r} 的设备",
        "driver": "没有规则能将驱动与软件进行比较",
        "devices": "没有规则能将设备与软件进行比较",
    },
}
NAME = re.compile(r"[a-z][a-z0-9-]*")
"""What may be the name of a distribution, in what a reason says."""
AGE = dt.timedelta(days=90)
"""How old the newest of the data may be before that is said."""


def verdicts(
    facts: Facts, results: Sequence[Result], checks: Mapping[str, Check], *, language: str, today: dt.date
) -> Iterator[MatrixVerdict]:
    """The verdict on each machine of which versions are told."""
    about: dict[str, list[Result]] = {}
    for one in results:
        for scope in one.scopes or ("",) if checks[one.check].verdict else ():
            about.setdefault(scope, []).append(one)
    for scope in facts.scopes():
        view = facts.within(scope)
        if view.first(Component) or view.first(Engine) or view.package("torch"):
            own = about.get(scope, [])
            yield _verdict(view, scope, own, checks, language=language, today=today)


def _verdict(
    view: Facts, scope: str, results: Sequence[Result], checks: Mapping[str, Check], *, language: str, today: dt.date
) -> MatrixVerdict:
    words = WORDS[language]
    reasons = [reason for one in results for reason in _reasons(one, checks[one.check], view, language)]
    conflict = any(one.verdict == "metadata-conflict" for one in reasons)
    for known in view.all(KnownSet):
        if (reason := ran(known, view, language)) and (known.overrides or not conflict):
            reasons.append(reason)
    reasons += [*_strange(view, words), *_unjudged(view, results, checks, words)]
    reasons.sort(key=lambda one: (LEVELS.index(one.verdict), one.severity == "info"))
    return MatrixVerdict(
        origin=Origin(capture="matrix", scope=scope),
        verdict=_level(reasons),
        components=_components(view),
        reasons=tuple(reasons),
        notes=(*_notes(view, today, words), *_apart(view, reasons, words)),
        undecided=() if reasons else tuple(_open(view, results, checks)),
    )


def _reasons(result: Result, check: Check, view: Facts, language: str) -> Iterator[Reason]:
    level = check.verdict or "unknown"
    for finding in result.findings:
        says = check.say("summary", language, finding.values)
        source = finding.source or (check.sources[0] if check.sources else "")
        checked = finding.checked or check.checked
        yield Reason(rule=check.id, verdict=level, severity=check.severity, says=says, source=source, checked=checked)
    for one in result.fits:
        yield Reason(
            rule=check.id,
            verdict="allowed-by-metadata",
            severity="info",
            says=one.says[language],
            source=one.source,
            checked=one.checked,
        )
    software = view.first(Engine) or view.package("torch")
    asked = result.status != "not-applicable" and software and all(view.first(kind) for kind in check.needs)
    if level == "metadata-conflict" and result.reason and asked:
        yield Reason(rule=check.id, verdict="unknown", severity="info", says=result.reason, source="", checked="")


def _open(view: Facts, results: Sequence[Result], checks: Mapping[str, Check]) -> Iterator[str]:
    """Why nothing decides: what the rules asked for of which all facts were told."""
    makers = {one.vendor for one in view.all(Vendor)}
    present = present_makers(view)
    for one in results if view.first(Engine) or view.package("torch") else ():
        check = checks[one.check]
        elsewhere = check.about in makers and check.about not in present
        asked = check.kind == "check" and one.status == "skip" and check.needs and not elsewhere
        if asked and all(view.first(kind) for kind in check.needs):
            yield f"{check.id}: {one.reason}"


def _strange(view: Facts, words: Mapping[str, str]) -> Iterator[Reason]:
    """The devices asked about whose model is not known: whatever else fits, of them nothing is."""
    for one in view.devices() if view.first(Component) else ():
        if not one.vendor:
            typed = {_run(model.names[0]): model.names[0] for model in view.all(DeviceModel) if model.names}
            near = [name for run, name in typed.items() if _run(one.name) and run.endswith(_run(one.name))]
            near += [typed[run] for run in get_close_matches(_run(one.name), typed, 1)]
            says = words["device"].format(name=one.name) + (words["near"].format(name=near[0]) if near else "")
            yield Reason(rule=STRANGE, verdict="unknown", severity="info", says=says, source="", checked="")
            return


def _unjudged(
    view: Facts, results: Sequence[Result], checks: Mapping[str, Check], words: Mapping[str, str]
) -> Iterator[Reason]:
    """What of the machine is told, and no rule compared with the software: of that nothing is known."""
    software = view.first(Engine) or view.first(TorchBuild) or view.package("torch")
    makers = {one.name: one.vendor for one in view.all(ComponentName) if one.kind == "build"}
    builds = {makers.get(one.runtime) for one in view.all(TorchArchitectures)}
    runtimes = {one.vendor for one in view.all(RuntimeDriver) if makers.get(one.runtime) == one.vendor}
    told = {
        "driver": (Driver, any(one.vendor in runtimes and one.version for one in view.all(Driver))),
        "devices": (Accelerator, any(one.vendor in builds for one in view.devices())),
    }
    for name, (kind, there) in told.items():
        judged = any((one.fits or one.findings) and kind in checks[one.check].needs for one in results)
        if software and there and not judged:
            yield Reason(rule=UNJUDGED, verdict="unknown", severity="info", says=words[name], source="", checked="")


def _run(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).lower()


def _level(reasons: Iterable[Reason]) -> Level:
    found: dict[Level, set[str]] = {}
    for one in reasons:
        found.setdefault(one.verdict, set()).add(one.severity)
    bad = found.get("known-bad", set())
    if "error" in bad or ("warning" in bad and "verified" not in found):
        return "known-bad"
    for level in ("verified", "reported", "metadata-conflict", "unknown", "allowed-by-metadata"):
        if level in found:
            return level
    return "unknown"


def _components(view: Facts) -> dict[str, str]:
    """The parts that were judged: those asked about, the engines and torch, else those that the data knows."""
    names = {one.name: None for one in view.all(Component)}
    names |= {one.name: None for one in view.all(Engine) if one.version} | {"torch": None}
    if not view.first(Component):
        names |= {one.name: None for one in view.all(ComponentName)}
    told = {name: [part.version for part in parts_named(view, name)] for name in names}
    told["gpu"] = []
    shown = {name: ", ".join(dict.fromkeys(filter(None, versions))) for name, versions in told.items() if any(versions)}
    devices = [one.name or one.architecture for one in view.devices()]
    if devices:
        numbered = any(one.index is not None for one in view.devices())
        summed = (f"{devices.count(name)}x{name}" if numbered else name for name in dict.fromkeys(devices))
        shown = {"gpu": ", ".join(summed), **shown}
    return shown


def _notes(view: Facts, today: dt.date, words: Mapping[str, str]) -> Iterator[str]:
    """What limits the answer: newer versions than the data knows, parts that it does not know, its age."""
    releases = view.all(Release)
    newest: dict[str, str] = {}
    for one in releases:
        if _newer(one.version, newest.get(one.package, "0")):
            newest[one.package] = one.version
    for package in view.all(Package):
        last = newest.get(package.name)
        if last and _newer(public(package.version), last):
            yield words["newer"].format(name=package.name, version=package.version, last=last)
    named = {one.name for one in view.all(ComponentName)}
    for component in view.all(Component):
        if component.name not in named and component.name not in newest and not _asked_for(component.name, view):
            near = get_close_matches(component.name, newest, 1)
            hint = words["near"].format(name=near[0]) if near else ""
            yield words["unknown"].format(name=component.name) + hint
    with suppress(ValueError):
        last_day = dt.date.fromisoformat(max((one.checked for one in releases), default=""))
        if today - last_day > AGE:
            yield words["old"].format(day=last_day, days=(today - last_day).days)


def _apart(view: Facts, reasons: Sequence[Reason], words: Mapping[str, str]) -> Iterator[str]:
    """The known distributions asked about that no reason names: whatever the verdict, it is not of them."""
    named = {word for one in reasons for word in NAME.findall(one.says)}
    packages = {(one.origin, one.name) for one in view.all(Package)}
    for one in view.all(Component) if reasons else ():
        known = (one.origin, one.name) in packages and _asked_for(one.name, view)
        if known and one.name not in named:
            yield words["apart"].format(name=one.name)


def _asked_for(name: str, view: Facts) -> bool:
    rows: Iterable[Mapping[str, str]] = (*(one.pins for one in view.all(Release)), *_sets(view))
    return any(name in row for row in rows)


def _sets(view: Facts) -> Iterator[Mapping[str, str]]:
    for one in view.all(KnownSet):
        yield one.versions
        yield one.beside


def _newer(version: str, other: str) -> bool:
    one, two = parse(version), parse(other)
    return one is not None and two is not None and one > two
