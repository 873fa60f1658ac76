"""What the machine holds: memory, and the file systems that an engine puts shared segments and files in.

`df` and `free` print a unit of the caller's choice; `free` does not say which, so that a plain number is read only
where no other unit would make a machine of it. What this cannot know: the size of a `tmpfs` without `size=` (half the
memory unless the kernel was told otherwise).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from diag.api import Capture, Fact, Host, Line, Mount, Recognise, expression, probe

UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}
SIZE = expression(r"([0-9]{1,18}(?:\.[0-9]{1,6})?)([KMGTP]?)i?B?", re.IGNORECASE)
BLOCKS = expression(r"([0-9]{1,6})([KMGT]?)B?-")
"""The unit that heads a column of `df`: `1K-blocks`, `1024-blocks`; without one each size carries its own."""
HEADS = ("Filesystem", "文件系统")
SIZES = ("Size", "容量", "大小")
KINDS = ("Type", "类型")
BANDS = ((24, 512, 2**30), (16_000, 900_000, 2**20), (16_000_000, 10**12, 2**10))
"""From and to, and the unit that a plain number between them is in; numbers outside could be of two units."""
MOUNTED = expression(r"^\s*\S{1,200} on (/\S{0,200}) type (\w{2,20}) \(([^()]{0,4000})\)")
TABLED = expression(r"^\s*\S{1,200} (/\S{0,200}) (\w{2,20}) ([\w=,.:/+\-]{2,4000}) 0 0\W*$")
WANTED = {("/dev/shm", "tmpfs"), ("/", "overlay")}
TOTALS = ("Mem:", "内存：", "内存:", "記憶體：", "メモリ:", "Speicher:", "Mem：")


@probe("proc/meminfo", tells=(Host,), path="/proc/meminfo", recognise=Recognise(("MemTotal:",), r"^\W*MemTotal:", 60))
def meminfo(capture: Capture) -> Iterator[Fact]:
    """Physical memory."""
    for line in capture.lines():
        if found := re.match(r"\W*MemTotal:\s*([0-9]{1,15}) kB", line.text):
            yield Host(origin=capture.origin(line), memory_bytes=int(found[1]) * 1024)
            return


@probe(
    "free",
    tells=(Host,),
    recognise=Recognise(
        literals=("total  ", "总计  ", "total\t", "gesamt  "),
        pattern=r"^\W*(?:total\s+used\s+free\s+shared|总计\s+已用\s+空闲|gesamt\s+benutzt)",
        lines=3,
    ),
)
def free(capture: Capture) -> Iterator[Fact]:
    """Physical memory, where its unit is told or beyond doubt."""
    for line in capture.lines():
        words = line.text.split()
        head = next((place for place, word in enumerate(words[:3]) if word in TOTALS), None)
        total = words[head + 1] if head is not None and len(words) > head + 1 else ""
        if (found := SIZE.fullmatch(total)) and (size := _plain(found)):
            yield Host(origin=capture.origin(line), memory_bytes=size)
            return


def _plain(found: re.Match[str]) -> int:
    number, unit = float(found[1]), found[2].upper()
    if unit:
        return int(number * UNITS[unit])
    return next((int(number) * scale for start, end, scale in BANDS if start <= number < end), 0)


@probe(
    "df",
    tells=(Mount,),
    command=("df", "-kP", "/dev/shm"),
    recognise=Recognise(HEADS, r"^\W*(?:Filesystem\s.*(?:Size|blocks).*Mounted on|文件系统\s.*挂载点)", lines=60),
)
def df(capture: Capture) -> Iterator[Fact]:
    """Size and free space of mounted file systems, in whichever unit `df` printed them."""
    unit, kind = 0, 0
    wrapped: list[str] = []
    for line in capture.lines():
        words = [*wrapped, *line.text.split()]
        wrapped = []
        if words[:1] and words[0] in HEADS:
            kind = 1 if words[1:2] and words[1] in KINDS else 0
            unit = _unit(words[1 + kind : 2 + kind])
        elif unit and len(words) == 1:
            wrapped = words
        elif unit and (found := _mount(capture, line, words, unit, kind=kind)):
            yield found
        elif unit and words:
            unit = 0


def _unit(head: list[str]) -> int:
    """The unit of a column, 1 where each size carries its own, 0 where it is no column of sizes (`df -i`)."""
    found = BLOCKS.match(head[0]) if head else None
    return int(found[1]) * UNITS[found[2]] if found else int(bool(head) and head[0] in SIZES)


def _mount(capture: Capture, line: Line, words: list[str], unit: int, *, kind: int) -> Mount | None:
    """The mount of a row; its kind is the type where there is a column of types, else the device."""
    path = next(iter(words[5 + kind :]), "")
    if not path.startswith("/") or not words[4 + kind].endswith(("%", "-")):
        return None
    size, available = (_bytes(words[place + kind], unit) for place in (1, 3))
    return Mount(origin=capture.origin(line), path=path, kind=words[kind], size_bytes=size, free_bytes=available)


def _bytes(word: str, unit: int) -> int | None:
    found = SIZE.fullmatch(word)
    if found is None:
        return None
    return int(float(found[1]) * (UNITS[found[2].upper()] if found[2] else unit))


@probe(
    "mounts",
    tells=(Mount,),
    recognise=Recognise(
        literals=(" /dev/shm tmpfs ", " on /dev/shm type ", " hugetlbfs ", " on / type overlay", " / overlay "),
        pattern=f"{MOUNTED.pattern}|{TABLED.pattern}",
        each=True,
        lines=60,
    ),
)
def mounts(capture: Capture) -> Iterator[Fact]:
    """Mounts of shared memory, of huge pages and of a container's root, as `mount` or `/proc/mounts` lists them."""
    for line in capture.lines():
        found = MOUNTED.match(line.text) or TABLED.match(line.text)
        path, kind, options = found.groups() if found else ("", "", "")
        if (path, kind) in WANTED or kind == "hugetlbfs":
            size = re.search(r"\bsize=([0-9]{1,18})([kmg]?)(?:,|$)", options)
            size_bytes = int(size[1]) * UNITS[size[2].upper()] if size else None
            yield Mount(origin=capture.origin(line), path=path, kind=kind, size_bytes=size_bytes)
