"""What kinds of text stand in a paste: a log of an engine, of a collective library, of a container, a traceback.

Whoever asks for a symptom in such a text has an answer, "it is not there", only where one was read. It tells that the
text was there, not that all of it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from diag.api import Capture, Fact, Recognise, Text, probe

SIGNS: Mapping[str, tuple[str, ...]] = {
    "traceback": ("Traceback (most recent call last)",),
    "engine-log": (
        *("(EngineCore", "(APIServer", "[core.py:", "[engine.py:", "[llm_engine.py:", "[api_server.py:", "[worker.py:"),
        *(
            "[gpu_model_runner.py:",
            "[loggers.py:",
            "[metrics.py:",
            "[model_runner.py:",
            "[scheduler.py:",
            "[config.py:",
        ),
        *(
            "server_args=ServerArgs(",
            "The server is fired up",
            "Load weight begin",
            "Capture cuda graph",
            "KV Cache is ",
        ),
        *("Prefill batch", "Decode batch", "vllm serve", "sglang.launch_server"),
    ),
    "collective-log": (
        "NCCL INFO ",
        "NCCL WARN ",
        "RCCL version",
        "HCCL ",
        "ProcessGroupNCCL",
        "BKCL",
        "oneCCL",
        "XCCL",
    ),
    "container-log": (
        "docker: Error",
        "nvidia-container-cli",
        "OCI runtime",
        "kubelet",
        "FailedScheduling",
        "Pulling ",
    ),
    "installer-log": ("Collecting ", "Building wheel", "Could not find a version", "pip install", "uv pip"),
    "tool-output": ("| NVIDIA-SMI ", "ROCk module is", "HSA Agents", "| npu-smi ", "System Management Interface"),
}
LITERALS = tuple(sign for signs in SIGNS.values() for sign in signs)


@probe(
    "texts",
    tells=(Text,),
    recognise=Recognise(literals=LITERALS, lines=0, first=True),
)
def texts(capture: Capture) -> Iterator[Fact]:
    """Each kind of text that was read, at the first of its lines."""
    seen: set[str] = set()
    for line in capture.lines():
        kinds = {kind for kind, signs in SIGNS.items() if any(sign in line.text for sign in signs)}
        if kinds - seen:
            yield Text(origin=capture.origin(line), kinds=tuple(sorted(kinds - seen)))
            seen |= kinds
        if len(seen) == len(SIGNS):
            return
