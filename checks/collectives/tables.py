"""The tables of nccl-tests and of those made from it (rccl-tests, Kunlun's xccl_perf), of every generation.

Two facts a row: out of place, and in place. What runs before the table tells the ranks, their devices and the harness.
The operation is the program's name where that is seen, else what the row's shape admits: bytes that are a multiple of
the elements belong to operations that divide them. Ranks are those listed; where the list is cut or missing, those that
busbw and the shape betray. A process that was built without MPI lists itself alone: one rank, and no busbw.

What it cannot know: all_gather from all_to_all where nothing names or verifies it (such rows tell nothing); hosts that
somebody gave the same name; the latency of calls that were aggregated or timed on the CPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, takewhile
from math import ceil, floor, inf, isfinite
from typing import Any, NamedTuple

from diag.api import Capture, Collective, Fact, Latency, Line, Recognise, expression, probe, read_table_head

OPS = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "reducescatter": "reduce_scatter",
    "alltoall": "all_to_all",
    "alltoallv": "all_to_allv",
    **{name: name for name in ("broadcast", "reduce", "sendrecv", "gather", "scatter", "hypercube")},
}
"""Their names for operations, without what stands between words, and ours."""
DTYPES = {
    "float": ("fp32", 4),
    "half": ("fp16", 2),
    "bfloat16": ("bf16", 2),
    "double": ("fp64", 8),
    "char": ("int8", 1),
    "int": ("int32", 4),
    **{f"{sign}int{bits}": (f"{sign}int{bits}", bits // 8) for sign in ("", "u") for bits in (8, 32, 64)},
    **{f"{start}{kind}": (f"fp8_{kind}", 1) for start in ("f8", "fp8_") for kind in ("e4m3", "e5m2")},
}
"""Their names for types, ours, and bytes of an element."""
REDUCTIONS = {**dict.fromkeys(("sum", "prod", "max", "min", "avg", "mulsum"), "sum"), "none": "none"}
BLANK, ABSENT, UNSEEN = "", "no column", "no head"
"""A column for the reduction that holds nothing, none, and no head that tells."""
TOLERATED = {"fp16": 1e-2, "bf16": 1e-2, "fp32": 1e-5, "fp64": 1e-12}
"""The largest error that generations before 2022 call right."""
NONE, WRONG, STARTING = "N/A", "#wrong", "Collective test starting"
VALUES = ("time", "algbw", "busbw", WRONG)
PER_CALL = (*VALUES, "i_min", "i_max", "i_p99", "i_cv%")
TIMES, ERRORS = {"time", "cputime"}, {"error", "res"}
NUMBER = expression(r"-?[0-9]{1,18}(?:\.[0-9]{0,9})?(?:e[+-]?[0-9]{1,3})?|[+-]?(?:inf|nan)|N/A")
WHOLE = expression(r"[0-9]{1,18}")
ROOT = expression(r"-1|[0-9]{1,4}")  # a time has a point, or five digits
PROGRAM = expression(r"(?<![a-z_])([a-z_]{6,14})_perf|\bxccl_perf\b.{0,400}-O ?([A-Za-z_]{6,14})")
RUN = expression(r"nThreads?:? {1,4}[0-9]{1,4} {1,4}nGpus:? {1,4}[0-9]{1,4}\s")
SETTINGS = expression(r"(?<!warmup )((?:agg )?iters|validation|graph|nRanks):\s{1,8}([0-9]{1,9})")
RANK = expression(
    r"\bRank {1,6}([0-9]{1,6})(?: {1,6}Group {1,6}([0-9]{1,6}))?(?: {1,6}Pid {1,10}[0-9]{1,10})?"
    r"(?: {1,6}on\s{1,60}(?:(\S{1,255})\s{1,20})?| {1,20})device {1,4}([0-9]{1,4})"
    r" {1,2}\[[0-9a-fA-Fx:.]{1,20}\] ?(.{0,80})"
)
PLACES = expression(
    r"(?:^\s?|#\s?|\s\s)(out-of-place|in-place)(?: \(\+ per-iteration\))?"
    r"(?:\s{1,60}(in-place)(?: \(\+ per-iteration\))?)?\s*$"
)
VERSION = expression(r"\b([NR]CCL) version {0,2}:? {0,2}([0-9]{1,3}\.[0-9]{1,3}(?:\.[0-9]{1,3})?)")
HEADERS = expression(
    r"\b([nr]ccl)-tests version \S{1,80}(?: \(\S{1,20}\))?(?: [nr]ccl-headers=[0-9]{1,6} [nr]ccl-library=([0-9]{4,6}))?"
)
CAPTURED = expression(r"_perf\b.{0,400}\s-G ?[1-9]")
"""A graph that is asked for: rccl-tests of 2024 does not always say so."""
RCCL = expression(r"rccl-tests: Version|nRanks: |Errors with asterisks indicate")
ASKED = expression(r"\b(rccl-tests)/|\b(xccl_perf)\b")
ROW = r"(?<![\w.])[0-9]{1,18}\s{1,20}[0-9]{1,18}\s{1,20}(?:" + "|".join(DTYPES) + r")\s"
LITERALS = (
    *("_perf", "nThread", "ccl-tests version", "rccl-tests: Version", "Using devices", "Rank  ", "CCL version"),
    *("busbw", "out-of-place", " device  ", "Errors with asterisks"),
    *chain.from_iterable((f"  {name}  ", f" {name} sum ", f" {name} none ", f"\t{name}\t") for name in DTYPES),
)
HEAD = r"Using devices\s*$|\stype\s.{0,60}time\s{1,8}algbw\s{1,8}busbw"
LEARNT = (PROGRAM, RUN, RANK, PLACES, VERSION, HEADERS, RCCL)
OPENS = "|".join((*(one.pattern for one in LEARNT), ROW, HEAD))


class Shape(NamedTuple):
    """How rows of an operation look: whether their bytes are those of the elements, what may stand for the reduction,
    whether they have a root, whether anything is verified in place, and whether busbw may differ from algbw."""

    whole: bool
    reductions: tuple[str, ...]
    rooted: bool = False
    in_place: bool = True
    scaled: bool = False


SHAPES = {
    "all_reduce": Shape(True, ("sum",), scaled=True),
    "reduce": Shape(True, ("sum",), rooted=True),
    "broadcast": Shape(True, ("none", ABSENT), rooted=True),
    "sendrecv": Shape(True, ("sum", "none", ABSENT), in_place=False),
    "reduce_scatter": Shape(False, ("sum",), scaled=True),
    "all_gather": Shape(False, ("none", ABSENT), scaled=True),
    "all_to_all": Shape(False, ("none", BLANK), in_place=False, scaled=True),
    "gather": Shape(False, ("none", ABSENT), rooted=True, scaled=True),
    "scatter": Shape(False, ("none", ABSENT), rooted=True, scaled=True),
}
EXCHANGES = {op for op, shape in SHAPES.items() if not shape.in_place}


class Row(NamedTuple):
    """A row: what was moved, and for each placement what was printed under each column."""

    line: Line
    bytes: int
    elements: int
    dtype: str
    reduction: str
    root: int
    printed: tuple[dict[str, str], ...]

    def admits(self, shape: Shape) -> bool:
        """Whether an operation prints such a row."""
        whole = self.bytes == self.elements * DTYPES[self.dtype][1]
        kinds = {BLANK, ABSENT} if self.reduction == UNSEEN else {self.reduction}
        return (
            (whole, self.root >= 0) == (shape.whole, shape.rooted)
            and not kinds.isdisjoint(shape.reductions)
            and (shape.scaled or all(one["algbw"] == one["busbw"] for one in self.printed if one))
        )

    @property
    def inside(self) -> str:
        """What a comparison in place said, `N/A` where none was made."""
        return self.printed[1].get(WRONG, NONE) if len(self.printed) > 1 else NONE

    def verifies(self, shape: Shape) -> bool:
        """Whether the comparisons suit an operation: in place nobody exchanges, and what was compared was wrong."""
        if self.inside != NONE:
            return shape.in_place or (self.reduction not in REDUCTIONS.values() and _number(self.inside) != 0)
        one_alone = len(self.printed) < 2 or not all(self.printed)
        return one_alone or not shape.in_place or self.printed[0].get(WRONG, NONE) == NONE


@dataclass
class Run:
    """What was read of one run: the line that asked for it; of each rank host, number and device; diag's own head."""

    asked: str = ""
    tool: str = ""
    library: str = ""
    version: str = ""
    settings: dict[str, int] = field(default_factory=dict)
    blocking: bool = False
    ranks: dict[int, dict[int, tuple[str, str, str]]] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    places: tuple[bool, ...] = ()
    rows: list[Row] = field(default_factory=list)
    head: dict[str, Any] = field(default_factory=dict)

    @property
    def unit(self) -> float:
        """Microseconds of the unit of its times: the oldest tables print milliseconds."""
        return 1_000.0 if "bytes" in self.columns else 1.0


@probe(
    "nccl-tests",
    tells=(Collective,),
    recognise=Recognise(literals=LITERALS, pattern=OPENS, each=True, lines=2_000),
)
def nccl_tests(capture: Capture) -> Iterator[Fact]:
    """Each row of each table, out of place and in place, with what the lines before it tell of the run."""
    run, asked = Run(), ""
    for line in capture.lines():
        if row := _row(line, run):
            run.rows.append(row)
            asked = ""
            continue
        if "concluded" not in line.text and _named(line.text) is not None:
            asked = line.text
        if run.rows and _begins(line.text):
            yield from _told(capture, run)
            run = Run()
        if asked and not run.rows:
            run.asked = asked
        _learn(run, line.text)
    yield from _told(capture, run)


def _begins(text: str) -> bool:
    """Whether a line stands before a table, not in it."""
    heads = (one.search(text) for one in (HEADERS, RUN, RANK, PLACES))
    return bool(any(heads) or _columns(text.split()) or read_table_head(text))


def _named(text: str) -> str | None:
    """The operation whose program a line names: empty where it names several, None where none."""
    names = ("".join(pair).replace("_", "").lower() for pair in PROGRAM.findall(text))
    found = {OPS[name] for name in names if name in OPS}
    return (found.pop() if len(found) == 1 else "") if found else None


def _learn(run: Run, text: str) -> None:
    """Take what a line before the table tells of the run."""
    run.head |= read_table_head(text)
    if found := RANK.search(text):
        rank, group, host, number, device = found.groups()
        ranks = run.ranks.setdefault(int(group or 0), {})
        ranks.setdefault(int(rank), (host or "", number, device.strip()))
        run.tool = "rccl-tests" if device.startswith("AMD") else run.tool
    elif RUN.search(text):
        run.settings = {name: int(value) for name, value in SETTINGS.findall(text)}
    elif columns := _columns(text.split()):
        run.columns = columns
    elif found := PLACES.search(text):
        run.places = tuple(place == "in-place" for place in found.groups() if place)
    elif found := HEADERS.search(text):
        run.tool, run.library, run.version = f"{found[1]}-tests", found[1].upper(), _release(found[2] or "")
    elif (found := VERSION.search(text)) and not run.rows:
        run.library, run.version = found[1], found[2]
    run.blocking = run.blocking or "Blocking Enabled" in text
    run.tool = "rccl-tests" if RCCL.search(text) else run.tool


def _release(code: str) -> str:
    """A version from its code: 22705 is 2.27.5, and up to 2.8 2804 is 2.8.4."""
    number = int(code or 0)
    base = 10_000 if number >= 10_000 else 1_000
    return f"{number // base}.{number % base // 100}.{number % 100}" if number else ""


def _columns(words: Sequence[str]) -> tuple[str, ...]:
    """The columns of a table from its head, empty where a line is none."""
    start = next((place for place, word in enumerate(words) if word in ("size", "bytes")), len(words))
    named = tuple(words[start:])
    return named if "type" in named and "busbw" in named and not TIMES.isdisjoint(named) else ()


def _row(line: Line, run: Run) -> Row | None:
    """A row of the table, whatever was put before or behind it; None where a line is none."""
    words = line.text.split()
    for place in range(2, len(words) - 3):
        if words[place] in DTYPES and WHOLE.fullmatch(words[place - 1]) and WHOLE.fullmatch(words[place - 2]):
            size, count, rest = int(words[place - 2]), int(words[place - 1]), words[place + 1 :]
            untold = (BLANK if "redop" in run.columns else ABSENT) if run.columns else UNSEEN
            reduction = REDUCTIONS[rest.pop(0)] if rest[0] in REDUCTIONS else untold
            root, printed = _values(size, rest, run)
            return Row(line, size, count, words[place], reduction, root, printed) if printed and size else None
    return None


def _values(size: int, words: Sequence[str], run: Run) -> tuple[int, tuple[dict[str, str], ...]]:
    """The root, -1 where there is none, and what was printed of each placement."""
    numbers = list(takewhile(NUMBER.fullmatch, words))
    names = _names(run.columns, len(numbers))
    rooted = numbers and ROOT.fullmatch(numbers[0]) and ("root" in run.columns or not run.columns)
    root = int(numbers.pop(0)) if rooted else -1
    parts = [dict(zip(names, numbers[at:], strict=False)) for at in range(0, len(numbers), len(names))]
    told = [part if _complete(part, names) and _agrees(size, part, run.unit) else {} for part in parts]
    return root, tuple(told) if any(told) else ()


def _names(columns: Sequence[str], count: int) -> tuple[str, ...]:
    """The columns of one placement."""
    starts = [place for place, name in enumerate(columns) if name in TIMES]
    if not starts:
        return PER_CALL if count >= 2 * len(PER_CALL) else VALUES
    end = starts[1] if len(starts) > 1 else len(columns)
    return tuple(WRONG if name in {*ERRORS, "wrong"} else name for name in columns[starts[0] : end])


def _complete(part: dict[str, str], names: Sequence[str]) -> bool:
    """Whether a placement was printed up to its bandwidth, and that not cut in the middle."""
    last = list(part)[-1] if part else ""
    whole = last == names[-1] or last != "busbw" or "." in part[last][-3:-2]
    return "busbw" in part and NONE not in (part["busbw"], part.get("time")) and whole


def _agrees(size: int, part: dict[str, str], unit: float) -> bool:
    """Whether algbw is bytes by time, as in no other tool's columns; less for what was counted until 2019."""
    printed = part.get("time", "")
    time, algbw = _number(printed), _number(part["algbw"])
    if time is None or algbw is None:
        return algbw is not None and "cputime" in part
    least, most = (size / max(time + sign * _half(printed), 1e-6) / unit / 1e3 for sign in (1, -1))
    return 0.45 * least - _half(part["algbw"]) <= algbw <= 1.01 * most + _half(part["algbw"])


def _told(capture: Capture, run: Run) -> Iterator[Fact]:
    """The rows of a run as facts."""
    op = _operation(run)
    ranks, nodes = _world(run, op)
    devices = {device for group in run.ranks.values() for *_, device in group.values()}
    captured = run.settings.get("graph") or CAPTURED.search(run.asked)
    same: dict[str, Any] = {
        "op": op,
        "tool": run.tool or (tool[1] or tool[2] if (tool := ASKED.search(run.asked)) else "nccl-tests"),
        "mode": "graph" if captured else "synchronised" if run.blocking else "",
        "library": run.library,
        "library_version": run.version,
        "device": devices.pop() if len(devices) == 1 else "",
        "ranks": ranks,
        "nodes": nodes,
        "iterations": run.settings.get("iters"),
    } | run.head
    for row in run.rows if op else ():
        told = {**same, "origin": capture.origin(row.line), "bytes": row.bytes, "dtype": DTYPES[row.dtype][0]}
        for place, printed in _placed(run, row):
            verdict = _verdict(run, row, printed) if not place or op not in EXCHANGES else {}
            yield Collective(**told, **_speed(run, printed, alone=same["ranks"] == 1), **verdict, in_place=place)


def _operation(run: Run) -> str:
    """The operation that all rows admit; the one that was named where they leave several, or it names itself."""
    possible = {op for op, shape in SHAPES.items() if all(row.admits(shape) for row in run.rows)}
    judged = [row for row in run.rows if row.inside != NONE] or run.rows
    possible = {op for op in possible if all(row.verifies(SHAPES[op]) for row in judged)} or possible
    named = _named(run.asked) or ""
    sure = STARTING in run.asked or named not in SHAPES or _listed(run) == 1
    if named and (sure or named in possible):
        return named
    return possible.pop() if len(possible) == 1 else ""


def _world(run: Run, op: str) -> tuple[int | None, int | None]:
    """Ranks and nodes: those listed, unless the rows show that the list is cut or another's."""
    listed, shown = _listed(run), _shown(run, op)
    if shown and shown != listed:
        return shown, None
    group = max(run.ranks.values(), key=len, default={})
    places = {(host, number) for host, number, _ in group.values()}
    return listed, len({host for host, _ in places}) if len(places) == len(group) == listed else None


def _listed(run: Run) -> int | None:
    """How many ranks are listed, or the program says that there are; None where the list is cut."""
    group = max(run.ranks.values(), key=len, default={})
    return len(group) if group and len(group) == max(group) + 1 else run.settings.get("nRanks")


def _shown(run: Run, op: str) -> int | None:
    """How many ranks the rows show: bytes by those of the elements, or of all_reduce busbw by algbw."""
    shares = {row.bytes / (row.elements * DTYPES[row.dtype][1]) for row in run.rows if row.elements}
    if len(shares) == 1 and (share := shares.pop()) > 1:
        return int(share) if share.is_integer() else None
    low, high = 0.0, inf
    for printed in filter(None, chain.from_iterable(row.printed for row in run.rows)):
        least, most = _ratio(printed["algbw"], printed["busbw"])
        low, high = max(low, least), min(high, most)
    if op != "all_reduce" or not low <= high < inf:
        return None
    found = range(max(1, ceil(1 / (1 - low / 2))), floor(1 / (1 - high / 2)) + 1) if high < 2 else range(0)
    return found[0] if len(found) == 1 else None


def _ratio(algbw: str, busbw: str) -> tuple[float, float]:
    """The least and the most that busbw may be of algbw, both rounded as they are printed."""
    whole, part = _number(algbw) or 0.0, _number(busbw)
    if part is None or whole <= _half(algbw):
        return 0.0, inf
    return (part - _half(busbw)) / (whole + _half(algbw)), (part + _half(busbw)) / (whole - _half(algbw))


def _half(printed: str) -> float:
    """Half a unit of the last place of a number."""
    return 0.5 / 10 ** len(printed.partition(".")[2]) if "e" not in printed else inf


def _placed(run: Run, row: Row) -> Iterator[tuple[bool | None, dict[str, str]]]:
    """What was printed of each placement, and whether that is in place; None where a single one is not named."""
    both = len(row.printed) > 1 or run.columns.count("busbw") > 1
    places = run.places if len(run.places) >= len(row.printed) else (False, True) if both else (None,)
    return ((place, printed) for place, printed in zip(places, row.printed, strict=False) if printed)


def _speed(run: Run, printed: dict[str, str], *, alone: bool) -> dict[str, Any]:
    """Time and bandwidth; between one rank nothing travels."""
    names = (("mean", "time"), ("min", "i_min"), ("max", "i_max")) if run.settings.get("agg iters", 1) == 1 else ()
    times = {ours: _number(printed.get(theirs, "")) for ours, theirs in names}
    return {
        "latency_us": Latency(**{name: time * run.unit for name, time in times.items() if time is not None}),
        "algbw_gbps": None if alone else _number(printed["algbw"]) or None,
        "busbw_gbps": None if alone else _number(printed["busbw"]) or None,
    }


def _verdict(run: Run, row: Row, printed: dict[str, str]) -> dict[str, Any]:
    """Whether the result was right: elements that were wrong, or in older tables the largest error."""
    found = _number(printed.get(WRONG, ""))
    if found is None or run.settings.get("validation") == 0:
        return {}
    if not ERRORS.isdisjoint(run.columns) or ("e" in printed[WRONG] and found < 1):
        return {"correct": found <= TOLERATED.get(DTYPES[row.dtype][0], 0.0)}
    return {"correct": found == 0, "wrong": int(found)}


def _number(printed: str) -> float | None:
    """A number as it was printed, None where it is none or not finite."""
    found = float(printed) if printed and printed != NONE else inf
    return found if isfinite(found) else None
