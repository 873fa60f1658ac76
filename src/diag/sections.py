"""The parts of a longer text that probes read: those they recognise, and those a shell transcript shows."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from diag import transcript
from diag.capture import Capture
from diag.probe import Probe, Recognise
from diag.scan import Scanned, Span
from diag.text import Line

RUN_LINES = 20_000
"""Lines after which a run of lines that each belong to a probe is cut, so that no log is held whole."""
PROBE_LINES = 40_000
"""Lines of one text that a probe reads."""
Hits = Mapping[str, Sequence[Line]]


@dataclass(frozen=True)
class Section:
    """Lines of a longer text that one probe reads.

    `host` is the one the shell prompt before them names; `once` says that a machine prints such a text once, so that a
    second one that differs is another machine's.
    """

    probe: Probe
    part: Capture
    first: int
    host: str
    once: bool


def literals(probes: Iterable[Probe]) -> set[str]:
    """The strings that a text must be scanned for, so that its sections can be found."""
    own = {one for probe in probes if probe.recognise for one in probe.recognise.literals}
    return own | transcript.SIGNS


def sections(capture: Capture, scanned: Scanned, probes: Sequence[Probe]) -> list[Section]:
    """The sections of a text, in the order of their first lines."""
    hits = scanned.hits
    prompts = transcript.prompts(hits)
    named = [prompt for prompt in prompts if prompt.host]
    borders = [prompt.line for prompt in named]
    typed = list(transcript.typed(prompts, probes))
    wanted = [(span, probe, True) for span, probe in typed]
    for probe in probes:
        if probe.recognise and not hits.keys().isdisjoint(probe.recognise.literals):
            own = sorted(span for span, one in typed if one is probe)
            found = _bounded(_spans(probe.recognise, hits, borders))
            wanted += [(span, probe, False) for span in found if not _inside(span, own)]
    parts = scanned.cut(span for span, *_ in wanted)
    result = []
    for span, probe, is_output in wanted:
        if lines := parts.get(span):
            part = capture.part(lines)
            once = not (probe.recognise and probe.recognise.each)
            host = transcript.host_before(named, span.first)
            result.append(Section(probe, transcript.output(part, probe) if is_output else part, span.first, host, once))
    return sorted(result, key=lambda section: (section.first, section.probe.key))


def _spans(how: Recognise, hits: Hits, borders: Sequence[int]) -> list[Span]:
    """Where in a text the probe's own begins and ends: at the latest where a prompt names a host."""
    openers = sorted(
        {
            (line.number, one)
            for one in how.literals
            for line in hits.get(one, ())[: 1 if how.first else None]
            if how.opens(line.text)
        }
    )
    if how.each:
        numbers = list(dict.fromkeys(number for number, _ in openers))
        return [Span(run[0], run[-1]) for run in _runs(numbers, how.lines, borders) if len(run) >= how.at_least]
    return _opened(openers, how.lines, borders)


def _bounded(spans: Sequence[Span]) -> Iterator[Span]:
    """The first spans, of so many lines that no text is read for ever."""
    left = PROBE_LINES
    for span in spans:
        left -= span.last - span.first + 1
        if left < 0:
            return
        yield span


def _runs(numbers: list[int], gap: int, borders: Sequence[int]) -> list[list[int]]:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number <= _end(borders, runs[-1][0], min(runs[-1][-1] + gap, runs[-1][0] + RUN_LINES)):
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def _opened(openers: list[tuple[int, str]], after: int, borders: Sequence[int]) -> list[Span]:
    spans: list[Span] = []
    seen: set[str] = set()
    for number, literal in openers:
        # A report may open several times over (a banner, then its first field): only a repetition opens the next.
        if spans and literal not in seen and number <= spans[-1].last:
            seen.add(literal)
            continue
        if spans:
            spans[-1] = Span(spans[-1].first, min(spans[-1].last, number - 1))
        spans.append(Span(number, _end(borders, number, number + after)))
        seen = {literal}
    return [span for span in spans if span.first <= span.last]


def _end(borders: Sequence[int], number: int, last: int) -> int:
    """The last line, or the one before the next border."""
    place = bisect_right(borders, number)
    return min(last, borders[place] - 1) if place < len(borders) else last


def _inside(span: Span, others: Sequence[Span]) -> bool:
    # The line typed at the prompt may hold the opener itself, hence the line after.
    place = bisect_right(others, Span(span.first + 1, sys.maxsize))
    return bool(place) and span.first <= others[place - 1].last
