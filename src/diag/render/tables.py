"""All that was measured, as the tables of a report: plain lines of any width."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from diag.render import collectives, decode, devices, memory, memory_probe, operators, pairs
from diag.report import Report


def tables(report: Report, words: Mapping[str, str]) -> Iterator[str]:
    """The lines of each table that there is something for, with an empty line before."""
    yield from collectives.table(report, words)
    yield from collectives.compared(report, words)
    yield from collectives.beside_earlier(report, words)
    yield from pairs.matrices(report, words)
    yield from pairs.ranks(report, words)
    yield from pairs.blameless(report, words)
    yield from devices.table(report, words)
    yield from operators.table(report, words)
    yield from decode.decoded(report, words)
    yield from memory.table(report, words)
    yield from memory_probe.table(report, words)
