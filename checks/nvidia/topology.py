"""How NVIDIA's devices are joined: `nvidia-smi topo -m`, `topo -p2p` and `nvlink -s`, alone or in a longer report.

vLLM's and SGLang's reports hold the matrix as it came. A network adapter is named as the legend below the matrix names
it (`NIC0: mlx5_0`), where it does. CPU and NUMA affinity are not told.

What it cannot know: whose matrix it is, where the words are also others' (`SYS`, `PIX`) and there is no legend. One
whose legend holds a word that is not NVIDIA's is another vendor's, and tells nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from diag.api import Capture, Fact, Line, Link, Recognise, expression, probe

PART = expression(r"GPU[0-9]{1,4}|NIC[0-9]{1,4}|[a-z][a-z0-9_-]{2,40}")
"""A row or column: `GPU0`, `NIC3`, or an adapter by its own name (`mlx5_0`, `mlx5_bond_0`, `bnxt_re0`)."""
KINDS = expression(r"X|NV[0-9]{1,3}|SYS|SOC|NODE|PHB|PXB|PIX|PSB|C2C")
STATUSES = expression(r"X|OK|CNS|GNS|TNS|NS|DR|U")
LEGEND = expression(r"^\W*([A-Z][A-Z0-9#]{0,9})\s{1,8}=\s")
KNOWN = {
    "X",
    "SYS",
    "SOC",
    "NODE",
    "PHB",
    "PXB",
    "PIX",
    "PSB",
    "NV#",
    "C2C",
    "OK",
    "CNS",
    "GNS",
    "TNS",
    "NS",
    "DR",
    "U",
}
NAMED = expression(r"^\W*(NIC[0-9]{1,4}): (\S{1,40})\s*$")
UNDERLINED = expression(r"\[[0-9;]{0,5}m")
"""What is left of a terminal's underline where the escape character was lost."""
HEAD = r"^\W*(?:4m)?GPU[0-9]{1,4}\s"
MOST = 256
DEVICE = expression(r"^\W*GPU ([0-9]{1,4}): .{0,100}\(UUID:")
LANE = expression(r"^\W*Link ([0-9]{1,3}): (?:([0-9]{1,4}(?:\.[0-9]{1,4})?) GB/s|<(inactive)>)\s*$")


@probe(
    "nvidia-smi/topology",
    tells=(Link,),
    command=("nvidia-smi", "topo", "-m"),
    timeout=20.0,
    recognise=Recognise(
        literals=("CPU Affinity", "GPU0\tGPU1", "GPU0    GPU1"), pattern=HEAD + r".*(?:CPU Aff|GPU[1-9])", lines=80
    ),
)
def topology(capture: Capture) -> Iterator[Fact]:
    """The matrix: how each pair of devices and adapters is joined, or whether it may read and write each other."""
    columns: list[str] = []
    pairs: dict[tuple[str, str, bool], tuple[str, Line]] = {}
    names: dict[str, str] = {}
    legend = False
    for line in capture.lines():
        words = UNDERLINED.sub(" ", line.text).split()
        legend = (legend or words == ["Legend:"]) and words != ["NIC", "Legend:"]
        if legend and (found := LEGEND.match(line.text)) and found[1] not in KNOWN:
            return
        if len(words) > 1 and words[0].startswith("GPU") and (words[1] == "CPU" or PART.fullmatch(words[1])):
            columns = _columns(words)
        elif words and words[0] in columns:
            _row(columns, words, line, pairs)
        elif found := NAMED.match(line.text):
            names[found[1]] = found[2]
    for (first, second, _), (kind, line) in pairs.items():
        yield Link(
            origin=capture.origin(line),
            first=names.get(first, first),
            second=names.get(second, second),
            kind=kind,
            vendor="nvidia",
        )


def _columns(words: list[str]) -> list[str]:
    """The parts named in the head of the matrix, before its columns of affinity."""
    return list(takewhile(PART.fullmatch, words[:MOST]))


def _row(
    columns: list[str], words: list[str], line: Line, pairs: dict[tuple[str, str, bool], tuple[str, Line]]
) -> None:
    """One part's row; a pair that an earlier row told stays as it was."""
    own = columns.index(words[0])
    for place, word in enumerate(words[1 : len(columns) + 1]):
        access = bool(STATUSES.fullmatch(word))
        if not access and not KINDS.fullmatch(word):
            return
        if place != own and word != "X":
            first, second = sorted((own, place))
            kind = f"P2P-{word}" if access else word
            pairs.setdefault((columns[first], columns[second], access), (kind, line))


@probe(
    "nvidia-smi/nvlink",
    tells=(Link,),
    command=("nvidia-smi", "nvlink", "-s"),
    recognise=Recognise(
        literals=("(UUID:", " GB/s", "<inactive>"), pattern=f"{DEVICE.pattern}|{LANE.pattern}", each=True, lines=3
    ),
)
def nvlink(capture: Capture) -> Iterator[Fact]:
    """What `nvidia-smi nvlink -s` prints: the speed of each link of a device in one direction, or that it is down."""
    device = ""
    for line in capture.lines():
        if found := DEVICE.match(line.text):
            device = f"GPU{int(found[1])}"
        elif device and (found := LANE.match(line.text)):
            kind = f"{found[2]} GB/s" if found[2] else found[3]
            yield Link(
                origin=capture.origin(line), first=device, second=f"NVLink{int(found[1])}", kind=kind, vendor="nvidia"
            )
