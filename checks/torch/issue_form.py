"""The list in which people name their device, driver and software by hand, and `transformers env`, which prints one.

A line is a label and a value: behind a bullet, in a table of Markdown or alone; in English or Chinese. Two that stand
together are a list where a bullet, a table or a label that no tool prints shows that it is one. A value that is no
version, and a device of no known family, tells nothing. What this cannot know: whether what people write is so, and
what their "CUDA" is: the toolkit's version, torch's, or what the driver offers; it is not told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from diag.api import (
    Accelerator,
    Capture,
    Driver,
    Engine,
    Fact,
    Host,
    Line,
    Package,
    Python,
    Recognise,
    Runtime,
    TorchBuild,
    canonical,
    expression,
    probe,
)

KINDS = {
    "device": "gpu|gpus|gpu type|gpu model|gpu models|gpu models and configuration|npu|xpu|hardware|graphics card"
    "|显卡|显卡型号|gpu型号|加速卡|硬件",
    "driver": "driver|nvidia driver|gpu driver|驱动|显卡驱动|nvidia驱动|nvidia 驱动",
    "torch": "torch|pytorch",
    "os": "os|operating system|系统|操作系统",
    "platform": "platform",
    "python": "python",
    "engine": "vllm|sglang",
    "runtime": "rocm|cann|dtk",
    "package": "torch-npu|torchvision|torchaudio|torchao|transformers|accelerate|triton|vllm-ascend|diffusers|numpy"
    "|huggingface_hub|safetensors",
    "": "cuda|nccl|cpu",
}
LABELS = {label: kind for kind, labels in KINDS.items() for label in labels.split("|")}
WORDS = "|".join(re.escape(label) for label in sorted(LABELS, key=len, reverse=True))
ENTRY = expression(
    rf"^\s{{0,40}}(?:(?P<bar>\|)|(?P<bullet>[-*\u2022]))?\s{{0,40}}[*`]{{0,2}}(?P<label>{WORDS})[*`]{{0,2}}(?:\s?(?:version|版本))?[*`]{{0,2}}"
    r"(?: \((?:GPU|accelerator)\?\))?(?(bar)\s{0,40}\||\s?[:\uff1a])[*`]{0,2}\s*(?P<value>\S.*)$",
    re.IGNORECASE,
)
LITERALS = (
    *(
        "GPU",
        "gpu",
        "NPU",
        "XPU",
        "Driver",
        "driver",
        "Torch",
        "torch",
        "CUDA",
        "ROCm",
        "CANN",
        "DTK",
        "OS",
        "Hardware",
    ),
    *("vLLM", "vllm", "SGLang", "sglang", "Platform", "Python", "python", "transformers", "Transformers"),
    *("umpy version", "uggingface_hub", "afetensors version", "ccelerate version", "ccelerate` version"),
    *("accelerate", "triton", "diffusers"),
    *("显卡", "驱动", "系统", "型号", "硬件", "加速卡"),
)
OF_HANDS = ("gpu", "gpus", "torch", "driver", "显卡", "显卡型号", "gpu型号", "驱动", "显卡驱动")
"""Labels that no tool prints so: a list without bullets has one of them."""
FAMILY = expression(
    r"\b(?:RTX|GTX|GeForce|Tesla|Quadro|TITAN|Radeon|Instinct|Arc|Gaudi|Ascend|Atlas|DCU|Orin|Thor|Max 1\d{3}"
    r"|[ABHLPTV]\d{1,4}[A-Z]{0,2}|G[BH]\d{2,3}|MI\d{2,3}[A-Z]{0,2}|RX ?\d{4}"
    r"|910[ABC]\d?|310P|K100|BW\d{3,4}|P800|MLU\d{3})"
    r"(?![a-z])|昇腾|海光",
)
TIMES = expression(r"^(\d{1,2})\s?(?:[x×*]|张|块|卡)\s?(\S.*)$|^(.*\S)\s?[x×*]\s?(\d{1,2})$", re.IGNORECASE)
SEVERAL = expression(r" / | or |\+| and ")
ENDED = expression(r"\s*[(（,，;；].*$")
MEMORY_FIRST = expression(r"^\d{1,3}\s?GB?\s+", re.IGNORECASE)
ARCHITECTURE = expression(r"\b(gfx[0-9a-f]{3,4}|sm_\d{2,3}a?)\b")
VERSION = expression(r"v?(\d{1,4}(?:\.\w{1,20}){1,4}(?:\+[\w.]{1,40})?)(?=$|[\s,;)(`*|，（])")
DRIVERS = expression(r"(\d{3}\.\d{2,3}(?:\.\d{2})?)(?=$|[\s,;)(`*|，（])")
ANSWERS = {"(True)": True, "(CUDA)": True, "(False)": False}
SYSTEMS = expression(
    r"ubuntu|debian|cent ?os|red ?hat|rhel|rocky|alma|fedora|suse|arch|linux|windows|mac ?os|wsl|euler|kylin|uos|anolis"
    r"|tencentos|麒麟|统信|龙蜥",
    re.IGNORECASE,
)
PLATFORM = expression(r"Linux-(.+?)-(x86_64|aarch64|arm64)(?:-|$)")
VALUE_CAP = 200
MANY = 64
"""Devices in one machine beyond which a number is none."""


@probe(
    "issue-form",
    tells=(TorchBuild, Accelerator, Driver, Engine, Host, Package, Python, Runtime),
    recognise=Recognise(literals=LITERALS, pattern=f"(?i:{ENTRY.pattern})", each=True, lines=6, at_least=2),
)
def issue_form(capture: Capture) -> Iterator[Fact]:
    """The lines of one list; what is said once more under another label is not told again."""
    told: dict[str, tuple[str, list[Fact]]] = {}
    shown = False
    for line in capture.lines():
        if found := ENTRY.match(line.text):
            label, value = found["label"].lower(), found["value"][:VALUE_CAP].strip(" \t|*`")
            shown = shown or bool(found["bar"] or found["bullet"]) or label in OF_HANDS
            kind = LABELS[label]
            facts = list(_facts(capture, line, kind, label, value))
            first, known = told.setdefault(label if kind in ("engine", "package", "runtime") else kind, (label, []))
            if not known or (kind == "device" and label == first):
                known += facts
    if shown:
        for _, facts in told.values():
            yield from facts


def _facts(capture: Capture, line: Line, kind: str, label: str, value: str) -> Iterator[Fact]:
    if kind == "device":
        yield from _devices(capture, line, value)
    elif kind in ("os", "platform"):
        yield from _host(capture, line, kind, value)
    elif kind and (found := (DRIVERS if kind == "driver" else VERSION).match(value)):
        yield _versioned(capture, line, kind, label, found)


def _devices(capture: Capture, line: Line, value: str) -> Iterator[Accelerator]:
    """As many devices as the line says, if it names a model of a known family."""
    words = ENDED.sub("", value).strip(" *`")
    times = TIMES.match(words)
    count = int(times[1] or times[4]) if times else 1
    name = MEMORY_FIRST.sub("", (times[2] or times[3]) if times else words).strip()
    if not FAMILY.search(name) or SEVERAL.search(words) or len(name) > 60 or not 0 < count <= MANY:
        return
    found = ARCHITECTURE.search(value)
    device = Accelerator(origin=capture.origin(line), name=name, architecture=found[1] if found else "")
    yield from [device] * count


def _host(capture: Capture, line: Line, kind: str, value: str) -> Iterator[Host]:
    if kind == "platform" and (found := PLATFORM.match(value)):
        virtual = "wsl" if "microsoft" in value.lower() else ""
        yield Host(origin=capture.origin(line), kernel=found[1], machine=found[2], virtual=virtual)
    elif kind == "os" and SYSTEMS.search(value) and not value.startswith(("[", "<")):
        yield Host(origin=capture.origin(line), os=re.split(r"[;,，；]", value)[0].strip())


def _versioned(capture: Capture, line: Line, kind: str, label: str, found: re.Match[str]) -> Fact:
    origin, version = capture.origin(line), found[1]
    if kind == "driver":
        return Driver(origin=origin, vendor="nvidia", version=version)
    if kind == "torch":
        answer = ANSWERS.get(found.string.split()[-1])
        return TorchBuild(origin=origin, version=version, available=answer, answered=None if answer is None else origin)
    if kind == "python":
        return Python(origin=origin, version=version)
    if kind == "engine":
        return Engine(origin=origin, name=label, version=version)
    if kind == "runtime":
        return Runtime(origin=origin, name=label, version=version, kind="toolkit")
    return Package(origin=origin, name=canonical(label), version=version)
