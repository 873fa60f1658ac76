"""`diag comm`: measure collectives between ranks, started here or by a launcher, and judge them."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from json import dumps
from pathlib import Path

from msgspec import DecodeError, json, to_builtins

from diag import ranks, world
from diag.capture import Capture
from diag.cli.opening import deadline_of, load, now, open_roots, open_sources
from diag.cli.options import BATCHES, SIZES, Bounds, Comm, Content, Live, Output
from diag.cli.place import target_python
from diag.errors import DiagError
from diag.facts import Collective, ModelShape
from diag.learn import learn
from diag.probe import Cost
from diag.report import Report
from diag.sources import Asked, LiveHost, Source
from diag.text import decode, printable

COSTS: tuple[Cost, ...] = ("passive", "active")
"""What it costs to look at what explains a bad number, and to measure."""
MEASURES = ("collectives", "host/")
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "KI": 2**10, "MI": 2**20, "GI": 2**30}
SIZE = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)\s?(?:([KMG]i?)?(B)?)", re.IGNORECASE | re.ASCII)
LARGEST = 64 * 2**30
STEP = 2
DTYPES = {"fp32": 4, "bf16": 2, "fp16": 2}
"""Bytes of an element."""
MEASURED = re.compile(r"([1-9]\d{0,6}):(\d{1,7}(?:\.\d{1,6})?)(?:ms)?")
ISOLATION = 30.0
"""Seconds, the least, for finding who is to blame."""
CONFIG_CAP = 2**22
EARLIER_CAP = 2**28


def run(asked: Comm, *, output: Output, content: Content, bounds: Bounds) -> int:
    """Measure and report; a rank that is not the first of its world takes part and says nothing."""
    from diag.cli import examine

    rank = ranks.launched(os.environ)
    if rank and asked.ranks not in (None, rank.size):
        raise DiagError(f"--ranks {asked.ranks}: {rank.launcher} started {rank.size}")
    _consistent(asked)
    deadline = deadline_of(bounds)
    model = Model.of(asked, bounds) if asked.model else None
    wanted = _wanted(asked, model)
    host = LiveHost(
        target_python(asked.python),
        sys.executable,
        COSTS,
        deadline,
        now,
        wanted,
        rank,
        asked.ray or "",
        measures=MEASURES,
    )
    if rank and rank.rank:
        return _joined(host, bounds)
    texts = {"earlier": earlier(asked.compare, bounds)} if asked.compare else {}
    opened = (host, model.told(asked)) if model else (host,)
    sought = "auto" == asked.device == asked.backend
    question = examine.Question(command=examine.COMM, opened=opened, texts=texts, sought=sought)
    return examine.run(question, output=output, content=content, bounds=bounds, live=Live())


def _consistent(asked: Comm) -> None:
    """Refuse what would be left out of account."""
    for name, given in (("--batch", asked.batch), ("--weights-bytes", asked.weights_bytes), ("--step", asked.step)):
        if given and not asked.model:
            raise DiagError(f"{name} is about a model: --model FILE")
    if asked.sizes and asked.model:
        raise DiagError("--sizes: --model tells the sizes, by --batch")


def _joined(host: LiveHost, bounds: Bounds) -> int:
    """Take part as another rank; a launcher ends all where one ends badly, and rank 0 is to report."""
    for probe in open_roots(bounds).probes.values():
        if probe.ranks and (said := world.joined(host.between, host.place(probe))):
            print(f"diag: {said}", file=sys.stderr)
    return 0


def _wanted(asked: Comm, model: Model | None) -> world.Asked:
    """What the options ask of the ranks."""
    sizes = model.sizes(asked) if model else sizes_of(asked.sizes or SIZES)
    given = {name: getattr(asked, name) for name in ("ranks", "device", "backend", "dtype", "budget", "patience")}
    given["isolate"] = max(asked.budget, ISOLATION) if asked.isolate else 0.0
    return world.Asked(**given, ops=asked.op, sizes=sizes, modes=asked.mode, imports=asked.imports, bare=True)


@dataclass(frozen=True)
class Model:
    """The model whose decode steps are asked about: the text of its `config.json`, and its hidden size."""

    text: str
    hidden: int

    @classmethod
    def of(cls, asked: Comm, bounds: Bounds) -> Model:
        """Read it, from the file or the folder that holds it."""
        path = asked.model or Path()
        path = path / "config.json" if path.is_dir() else path
        _regular("--model", path)
        try:
            with path.open("rb") as file:
                text = decode(file.read(CONFIG_CAP))
        except OSError as error:
            raise DiagError(f"--model {path}: {error.strerror or error}") from error
        shape = learn([Capture.of(path.name, text, kind="text")], load(bounds)).facts.first(ModelShape)
        if not shape or not shape.hidden_size:
            raise DiagError(f"--model {path}: it states no hidden size")
        return cls(text, shape.hidden_size)

    def sizes(self, asked: Comm) -> tuple[int, ...]:
        """Bytes that a decode step of each number of tokens sends at a time."""
        return tuple(tokens * self.hidden * DTYPES[asked.dtype] for tokens in tokens_of(asked))

    def told(self, asked: Comm) -> Asked:
        """The model and what is asked about it, for the probes that know them."""
        wish: dict[str, object] = {"schema": "diag/decode/1", "batches": tokens_of(asked)}
        wish |= {"width": DTYPES[asked.dtype], "steps": list(map(_measured_step, asked.step))}
        wish |= {"weights_bytes": asked.weights_bytes} if asked.weights_bytes else {}
        return Asked({"model/config": self.text, "decode": json.encode(wish).decode()})


def _measured_step(text: str) -> tuple[int, float]:
    found = MEASURED.fullmatch(text)
    if not found or not float(found[2]):
        raise DiagError(f"--step {text}: it is not TOKENS:MS, such as 256:52.8")
    return int(found[1]), float(found[2])


def sizes_of(text: str) -> tuple[int, ...]:
    """Sizes in bytes: `1KiB:64MiB` (each twice the one before), `1KiB:1GiB:4`, `2.6MB`, or several with commas.

    K, M and G are binary as in nccl-tests, KB, MB and GB decimal.
    """
    return tuple(dict.fromkeys(chain.from_iterable(map(_ladder, text.split(",")))))


def _ladder(text: str) -> Iterator[int]:
    first, *rest = text.split(":")
    step = rest[1] if len(rest) > 1 else str(STEP)
    if len(rest) > 2 or not re.fullmatch(r"[2-9]|[1-9]\d{1,3}", step):
        raise DiagError(f"--sizes {text}: it is not SIZE, FROM:TO or FROM:TO:FACTOR")
    size, last = _size(first), _size(rest[0] if rest else first)
    if last < size:
        raise DiagError(f"--sizes {text}: {rest[0]} is smaller than {first}")
    while size <= last:
        yield size
        size *= int(step)


def _size(text: str) -> int:
    found = SIZE.fullmatch(text.strip())
    if not found:
        raise DiagError(f"--sizes {text!r}: it is not a size such as 8KiB or 2.6MB")
    number, unit, decimal = float(found[1]), (found[2] or "").upper(), found[3]
    size = int(number * (1000 ** "_KMG".index(unit) if decimal and unit in ("K", "M", "G") else UNITS[unit]))
    if not 1 <= size <= LARGEST:
        raise DiagError(f"--sizes {text}: it is not between 1 byte and {LARGEST >> 30} GiB")
    return size


def batches(text: str) -> list[int]:
    """Numbers of tokens in a step."""
    words = [one.strip() for one in text.split(",")]
    if not all(re.fullmatch(r"[1-9]\d{0,6}", one) for one in words):
        raise DiagError(f"--batch {text}: it is not numbers such as 1,8,256")
    return [int(one) for one in words]


def tokens_of(asked: Comm) -> list[int]:
    """The numbers of tokens of the steps that are asked about; what was measured of others counts among them."""
    steps = (tokens for tokens, _ in map(_measured_step, asked.step))
    return list(dict.fromkeys((*batches(asked.batch or BATCHES), *steps)))


def _regular(option: str, path: Path) -> None:
    """Refuse what would be waited for, or has no end."""
    if path.exists() and not path.is_file():
        raise DiagError(f"{option} {path}: it is not a file")


def earlier(path: Path, bounds: Bounds) -> str:
    """What an earlier run measured, from its report or from any text that holds its tables, as JSON."""
    told = _reported(path)
    if told is None:
        sources: Sequence[Source] = open_sources([str(path)], deadline_of(bounds))
        loaded = load(bounds)
        captures = (capture for one in sources for capture in one.captures(tuple(loaded.probes.values())))
        told = [to_builtins(one) for one in learn(captures, loaded).facts.all(Collective)]
    if not told:
        raise DiagError(f"--compare {path}: it holds no measurement between ranks")
    document = {"schema": "diag/collectives-earlier/1", "file": printable(path.name), "results": told}
    return dumps(document)


def _reported(path: Path) -> list[object] | None:
    """The measurements in a report in JSON, None where it is none."""
    _regular("--compare", path)
    try:
        with path.open("rb") as file:
            content = file.read(EARLIER_CAP)
    except OSError as error:
        raise DiagError(f"--compare {path}: {error.strerror or error}") from error
    with suppress(DecodeError):
        report = json.decode(decode(content), type=Report)
        return list(report.facts.get(Collective.__name__, ()))
    return None
