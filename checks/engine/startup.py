"""What vLLM and SGLang print while they start: version, memory, KV cache, attention, collectives, lengths, seconds.

Knows the lines of vLLM from 0.4 on (both engines; plug-ins for other vendors print the same ones) and of SGLang from
0.3 on. Numbers and units are told as printed: vLLM before 0.8 and SGLang print `GB` and mean GiB. SGLang prints the
two halves of its KV cache, of which the sum is told. A line tells the rank of its worker where the prefix does, else
the process (`pid 1234`) where there are several. What is printed again in the same words is told once. A line of the
whole engine has no rank. Estimates, and what the engine will need at its peak, are not told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

from diag.api import Capture, Engine, EngineState, Fact, Line, Recognise, expression, probe

NUMBER = r"(-?[0-9]{1,9}(?:\.[0-9]{1,9})?)"
AMOUNT = NUMBER + r" ?(GiB|GB|MiB)"
SECONDS = r"([0-9]{1,7}(?:\.[0-9]{1,9})?) ?(seconds|secs|s)\b"
COUNT = r"([0-9]{1,3}(?:,[0-9]{3}){1,4}|[0-9]{1,12})"


class Saying(NamedTuple):
    """A line: the literal that finds it, and a pattern whose groups are the value and the unit of each name in turn."""

    words: str
    pattern: re.Pattern[str]
    names: tuple[str, ...]


def _saying(words: str, after: str, *names: str, before: str = "") -> Saying:
    return Saying(words, expression(before + re.escape(words) + after), names)


PLATFORM = r"(?:selector|cuda|rocm|xpu|cpu|tpu|hpu|platform|fa_utils|interface)\.py:[0-9]{1,5}\] "
ATTENTION = PLATFORM + r"Using (?!.{0,60}prefill)(?:AttentionBackendEnum\.)?([\w][\w .-]{0,40}?)()(?: attention)?"
VLLM = (
    _saying("model weights take", rf"s? *{AMOUNT}", "memory.weights"),
    _saying("Loading model weights took", rf" {AMOUNT}(?: and {SECONDS})?", "memory.weights", "seconds.load"),
    _saying("Model loading took", rf" {AMOUNT}(?: memory)? and {SECONDS}", "memory.weights", "seconds.load"),
    _saying("Loading weights took", rf" {SECONDS}", "seconds.load", before=r"loader\.py:[0-9]{1,5}\] "),
    _saying("non_torch_memory", rf"(?: takes|=)? *{AMOUNT}", "memory.non-torch"),
    _saying("PyTorch activation peak memory", rf"(?: takes)? *{AMOUNT}", "memory.activation"),
    _saying("reserved for KV Cache is", rf" {AMOUNT}", "memory.kv-cache"),
    _saying("kv_cache_size=", AMOUNT, "memory.kv-cache"),
    _saying("available_kv_cache_memory", rf" *{AMOUNT}", "memory.kv-cache"),
    _saying("vailable KV cache memory", rf"(?:: | \(){AMOUNT}", "memory.kv-cache"),
    _saying("Initial free memory", rf" {AMOUNT}, reserved {AMOUNT}", "memory.available", "memory.kv-cache"),
    _saying("total_gpu_memory", rf"(?: \(|=| +){AMOUNT}", "memory.total"),
    _saying("GPU KV cache size:", rf" {COUNT} (tokens)", "kv.tokens"),
    _saying("# CPU blocks: ", "[0-9]", "kv.blocks", before=r"# \w{2,6} blocks: ([0-9]{1,12})(), "),
    _saying(
        "Maximum concurrency for", rf" {COUNT} (tokens) per request: {NUMBER}(x)", "max-model-len", "kv.concurrency"
    ),
    _saying("Graph capturing finished in", rf" {SECONDS}(?:, took {AMOUNT})?", "seconds.graphs", "memory.graphs"),
    _saying("torch.compile t", rf"(?:akes|ook) {SECONDS} in total", "seconds.compile"),
    _saying(
        "Free memory on device",
        rf"[\w: ]{{1,12}}\({NUMBER}(?=/{NUMBER[1:-1]} (GiB)\))/{NUMBER} (GiB)\) on startup",
        *("memory.available", "memory.total"),
    ),
    _saying(
        "Actual usage is ",
        rf"{AMOUNT} for weight, {AMOUNT} for peak activation, {AMOUNT} for non-torch memory"
        rf"(?:, and {AMOUNT} for CUDAGraph memory)?",
        *("memory.weights", "memory.activation", "memory.non-torch", "memory.graphs"),
    ),
    _saying("Using max model len ", r"([0-9]{1,9})()", "max-model-len"),
    _saying("Starting to load model ", r"(\S{1,300}?)()\.\.\.", "model"),
    _saying("vLLM is using nccl==", r"([0-9][\w.+]{0,20})()", "collectives"),
    _saying(" backend out of potential backends", "", "attention", before=ATTENTION),
    _saying(" backend on V1 engine", "", "attention", before=ATTENTION),
    _saying(" backend.", r"\s*$", "attention", before=ATTENTION),
)
STARTS = expression(r"Initializing an? (?:V[01] )?LLM engine(?: \(v([\w.+-]{1,80})\)| with config:)")
SERVER = expression(r"(?:vLLM API server version|█ {1,3}version) ([0-9][\w.+-]{2,80}|dev\b)")
CONFIG = expression(
    r"with config: model='([^']{1,400})'()|, dtype=(torch\.\w{1,20})()(?=,)|, max_seq_len=([0-9]{1,9})()(?=,)"
)
CONFIGURED = ("model", "dtype", "max-model-len")
OPENERS = ("LLM engine ", "vLLM API server version ", "█  version ")
WORKER = expression(r"\((\w{1,40})(?: rank=([0-9]{1,6}))? pid=([0-9]{1,9})(?:, ip=([0-9A-Fa-f.:]{2,40}))?\)")
RANKED = expression(r"(?:Worker|EngineCore)_([A-Z0-9_]{1,40})")

AVAILABLE = rf" avail mem={AMOUNT}"
SGLANG = (
    _saying("Load weight begin.", AVAILABLE, "memory.available"),
    _saying(
        "Load weight end.",
        rf"(?: elapsed={SECONDS},)?(?: type=\w{{1,80}},)?(?: dtype=(torch\.\w{{1,20}})(),)?"
        rf"(?: quant\w{{0,20}}=[\w.-]{{1,40}},){{0,4}}{AVAILABLE}(?:, mem usage={AMOUNT})?",
        *("seconds.load", "dtype", "memory.available", "memory.weights"),
    ),
    _saying("The available memory for KV cache is", rf" {AMOUNT}", "memory.kv-cache"),
    _saying("KV Cache is allocated.", r"(?:(?: dtype: [\w.]{1,40},)? #tokens: ([0-9]{1,12})(),)?", "kv.tokens"),
    _saying("KV size:", rf" {AMOUNT}", "memory.kv-cache", before=r"KV Cache is allocated\..{0,90}? "),
    _saying("Memory pool end.", AVAILABLE, "memory.available"),
    _saying(
        "raph end. ",
        rf"(?:Time elapsed: |elapsed=){SECONDS}(?:[.,] mem usage={AMOUNT}[.,]{AVAILABLE})?",
        *("seconds.graphs", "memory.graphs", "memory.available"),
    ),
    _saying(
        "max_total_num_tokens=",
        r"([0-9]{1,12})(),(?: (?!context)\w{2,40}=[\w.-]{1,20},){0,6}(?: context_len=([0-9]{1,9})())?"
        rf"(?:, available_gpu_mem={AMOUNT})?",
        *("kv.tokens", "max-model-len", "memory.available"),
    ),
    _saying("Attention backend not ", r"[a-z ]{3,24}\. Use (\w{2,30})() backend", "attention"),
    _saying("MLA optimization is turned on. Use ", r"(\w{2,30})() backend", "attention"),
    _saying("sglang is using nccl==", r"([0-9][\w.+]{0,20})()", "collectives"),
)
HALVES = expression(rf"\bK size: {AMOUNT}, V size: {AMOUNT}")
GROUPS = expression(r"\[[0-9: -]{8,19}((?: [A-Z_]{2,8}[0-9]{1,4}){1,6})\]|\[gpu(?:_id)?=([0-9]{1,4})\]")
PREFIX = 300
"""Characters in which the prefix of a line ends."""
OPEN = frozenset(("Using max model len ", "vLLM is using nccl==", "sglang is using nccl==", "max_total_num_tokens="))
"""Sayings that end in a number without a unit, which a narrow terminal may have cut."""


def _found_by(sayings: tuple[Saying, ...], *more: str, starts: str = "") -> Recognise:
    patterns = [saying.pattern.pattern for saying in sayings]
    return Recognise(
        literals=(*(saying.words for saying in sayings), *more),
        pattern="|".join((*patterns, starts) if starts else patterns),
        each=True,
    )


@probe(
    "vllm/startup",
    tells=(Engine, EngineState),
    recognise=_found_by(VLLM, *OPENERS, starts=f"{STARTS.pattern}|{SERVER.pattern}"),
)
def vllm_startup(capture: Capture) -> Iterator[Fact]:
    """vLLM's own log from its first line to its last before it serves, in any part."""
    versions: set[str] = set()
    told: set[tuple[str, ...]] = set()
    edge = _edge(capture)
    for line in capture.lines():
        if started := STARTS.search(line.text) or SERVER.search(line.text):
            version = "" if _cut(started, edge) else started[1] or ""
            if version not in versions:
                yield Engine(origin=capture.origin(line), name="vllm", version=version, role="running")
            versions.add(version)
            for stated in CONFIG.finditer(line.text):
                yield from _states(capture, line, stated.groups(), CONFIGURED, ("vllm", ""), told)
        for saying, found in _said(VLLM, line, edge):
            yield from _states(capture, line, found.groups(), saying.names, ("vllm", _worker(line.text)), told)


@probe("sglang/startup", tells=(EngineState,), recognise=_found_by(SGLANG))
def sglang_startup(capture: Capture) -> Iterator[Fact]:
    """SGLang's own log from its first line to its last before it serves, in any part."""
    told: set[tuple[str, ...]] = set()
    edge = _edge(capture)
    for line in capture.lines():
        for saying, found in _said(SGLANG, line, edge):
            whom = ("sglang", _groups(line.text))
            yield from _states(capture, line, found.groups(), saying.names, whom, told)
            if saying.words.startswith("KV Cache") and (halves := HALVES.search(line.text)):
                both = str(Decimal(halves[1]) + Decimal(halves[3]))
                yield from _states(capture, line, (both, halves[2]), ("memory.kv-cache",), whom, told)


def _edge(capture: Capture) -> int:
    """Where the right side of a text seems cut: the width of its longest lines, where they end in several ways."""
    width, endings = 0, set[str]()
    for line in capture.lines():
        text = line.text.rstrip()
        if len(text) > width:
            width, endings = len(text), set()
        if len(text) == width:
            endings.add(text[-8:])
    return width if len(endings) > 1 else 0


def _cut(found: re.Match[str], edge: int) -> bool:
    return found.end() == edge == len(found.string.rstrip())


def _said(sayings: tuple[Saying, ...], line: Line, edge: int) -> Iterator[tuple[Saying, re.Match[str]]]:
    """What the line says, but no number that may be cut."""
    for saying in sayings:
        found = saying.pattern.search(line.text) if saying.words in line.text else None
        if found and not (saying.words in OPEN and _cut(found, edge)):
            yield saying, found


def _states(
    capture: Capture,
    line: Line,
    groups: tuple[str | None, ...],
    names: tuple[str, ...],
    whom: tuple[str, str],
    told: set[tuple[str, ...]],
) -> Iterator[EngineState]:
    """What a line says under each name, but not again what the same worker has said in the same words.

    Only the rest for the KV cache can be below nothing; other negative numbers come of memory that others gave back.
    """
    engine, rank = whom
    for name, value, unit in zip(names, groups[::2], groups[1::2], strict=True):
        said = (name, value or "", unit or "", rank)
        if value and said not in told and (value[0] != "-" or name == "memory.kv-cache"):
            told.add(said)
            yield EngineState(
                origin=capture.origin(line), engine=engine, name=name, value=value, unit=unit or "", rank=rank
            )


def _worker(text: str) -> str:
    """Who of vLLM's processes printed a line, from the last pair of brackets before it."""
    name, rank, pid, address = "", "", "", ""
    for found in WORKER.finditer(text, 0, PREFIX):
        name, rank, pid, address = (part or "" for part in found.groups())
    if ranked := RANKED.fullmatch(name):
        return ranked[1].replace("_", " ")
    if rank or "Worker" not in name:
        return rank
    return f"pid {pid} {address}".strip()


def _groups(text: str) -> str:
    """The places of one of SGLang's workers in its groups (`DP0 TP3`), as the line's prefix has them."""
    found = GROUPS.search(text, 0, PREFIX)
    return (found[1] or found[2]).strip() if found else ""
