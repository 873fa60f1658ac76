"""What a container engine says when it does not start a container with an accelerator.

Docker, podman and the hook of NVIDIA's toolkit say it in the same words for every version seen. A library that a
program did not find is told, too. What this cannot know: whether a later attempt went well.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Capture, Container, Driver, Fact, Recognise, Unavailable, expression, probe

DRIVER = r'could not select device driver (?:\\?"[\w\-]{0,30}\\?" )?with capabilities: \[\[gpu\]\]'
RUNTIME = r"[Uu]nknown (?:or invalid )?runtime (?:specified|name):? ?[\w.\-]{1,40}"
HOOK = r"nvidia-container-cli: [a-z ]{3,30} error: .{3,200}"
DEVICE = r"error gathering device information while adding custom device .{3,120}"
INJECTED = r"(?:unresolvable CDI devices|failed to inject CDI devices|failed to stat CDI host device).{0,160}"
REFUSED = expression("|".join((DRIVER, RUNTIME, HOOK, DEVICE, INJECTED)))
LITERALS = ("could not select device driver", "nknown runtime specified", "unknown or invalid runtime name")
NO_LIBRARY = expression(r"\bNVML Shared Library Not Found\b")


@probe(
    "container/refused",
    tells=(Container,),
    recognise=Recognise(
        (
            *LITERALS,
            *("nvidia-container-cli: ", "while adding custom device", "unresolvable CDI devices", "CDI host device"),
            "failed to inject CDI devices",
        ),
        REFUSED.pattern,
        each=True,
        lines=3,
    ),
)
def refused(capture: Capture) -> Iterator[Fact]:
    """Each refusal, once."""
    told: set[str] = set()
    for line in capture.lines():
        if (found := REFUSED.search(line.text)) and found[0] not in told:
            told.add(found[0])
            reason = found[0].replace('\\"', '"')
            yield Unavailable(
                origin=capture.origin(line), what="container/refused", reason=reason, tells=("Container",)
            )


@probe(
    "container/library",
    tells=(Driver,),
    recognise=Recognise(("NVML Shared Library Not Found",), NO_LIBRARY.pattern, each=True, lines=3),
)
def library(capture: Capture) -> Iterator[Fact]:
    """That a program did not find the driver's library."""
    for line in capture.lines():
        if found := NO_LIBRARY.search(line.text):
            origin = capture.origin(line)
            yield Unavailable(
                origin=origin, what="container/library", reason=found[0], how="missing", tells=("Driver",)
            )
            return
