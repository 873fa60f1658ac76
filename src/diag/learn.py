"""From captures to facts: which probe reads which lines, and whose machine they are about.

A capture whose key is a probe's goes to that probe. Any other text is searched: every probe that recognises something
in it reads those lines, and so does the probe whose command a shell transcript shows. Lines keep the numbers of the
whole.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from msgspec.structs import replace

from diag import scan
from diag.capture import Capture
from diag.facts import Fact, Facts, How, Origin, Text, Unavailable
from diag.finding import Broken
from diag.plugins import Loaded
from diag.probe import Probe
from diag.scan import Span
from diag.scopes import Section, scoped
from diag.text import Line

PROMPT = re.compile(
    r"^\s*(?:\([\w.\-]+\)\s*)?"
    r"(?:\[?(?P<user>[\w.\-]+)@(?P<host>[\w.\-]+)(?:[:\s][^\]$#]*)?\]?\s*)?[$#❯]\s+(?P<command>\S.*)$"
)
"""A shell prompt with what was typed: `$ x`, `user@host:~$ x`, `[root@host ~]# x`, `(base) user@host:~$ x`."""

PROMPTS = frozenset({"$ ", "# ", "❯ "})

NOT_FOUND = re.compile(
    r"command not found|^Command '[^']+' not found|: not found|No such file or directory"
    r"|is not recognized as an internal or external command"
)
ASSIGNED = re.compile(r"[A-Za-z_]\w*=")
WINDOW = 12
"""Lines kept on either side of one that an entry asks about."""
SECTION_LINES = 20_000


@dataclass(frozen=True)
class Learnt:
    """What the captures told, and which probes broke on them."""

    facts: Facts
    broken: tuple[Broken, ...]


def learn(captures: Iterable[Capture], loaded: Loaded) -> Learnt:
    """The facts that the probes read in the captures, with those of the references."""
    reader = _Reader(loaded)
    texts: list[Capture] = []
    keyed: list[Capture] = []
    for capture in captures:
        if reader.knows(capture):
            keyed.append(capture)
        else:
            texts.append(capture.bare())
    told = [fact for capture in keyed for fact in reader.own(capture)]
    told += reader.pasted(texts, {fact.origin.scope for fact in told} - {""})
    return Learnt(Facts((*loaded.references, *told)), tuple(reader.broken))


def key_of(capture: Capture) -> str:
    """The key of the probe a capture belongs to: that of a stage is followed by `#` and its number."""
    return capture.key.partition("#")[0]


class _Reader:
    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded
        self.broken: list[Broken] = []
        self.symptoms = {literal for check in loaded.checks.values() for literal in check.literals}
        self.recognisers = [probe for probe in loaded.probes.values() if probe.recognise]
        self.opening = {literal for probe in self.recognisers for literal in _literals(probe)}

    def knows(self, capture: Capture) -> bool:
        """Whether a capture is the text of one probe, not one to be searched."""
        return capture.kind != "text" and key_of(capture) in self.loaded.probes

    def own(self, capture: Capture) -> Iterator[Fact]:
        """What a probe tells of its own text, and what entries ask about in it."""
        yield from self.read(self.loaded.probes[key_of(capture)], capture)
        yield from self.windows(capture, scan.find(capture.lines(), self.symptoms), ())

    def pasted(self, texts: Sequence[Capture], scopes: set[str]) -> Iterator[Fact]:
        """What is told of all texts to be searched; they may be about one machine or several."""
        signs = self.symptoms | self.opening | PROMPTS
        hits = [scan.find(capture.lines(), signs) for capture in texts]
        sections = [self.sections(capture, found) for capture, found in zip(texts, hits, strict=True)]
        told = list(scoped(chain.from_iterable(sections), self.read, several=len(texts) > 1, named=bool(scopes)))
        yield from told
        for capture, found in zip(texts, hits, strict=True):
            origins = [fact.origin for fact in told if fact.origin.capture == capture.key]
            yield from self.windows(capture, found, origins)

    def read(self, probe: Probe, capture: Capture) -> list[Fact]:
        """What the probe tells of a capture; nothing told is a fact, too."""
        if NOT_FOUND.search(capture.error):
            return [_unavailable(probe, capture, "missing", capture.error)]
        try:
            told = list(probe.read(capture))
        except Exception as error:
            self.broken.append(Broken(where=f"probe {probe.key}", error=f"{type(error).__name__}: {error}"))
            return [_unavailable(probe, capture, "failed", f"diag could not read it: {type(error).__name__}")]
        if told or (capture.kind == "text" and not capture.error):
            return told
        missing = capture.error.startswith(("FileNotFoundError", "ModuleNotFoundError"))
        how: How = "missing" if missing else "failed" if capture.failed or capture.kind == "measure" else "silent"
        silence = "it ended without its document" if capture.kind == "measure" else "nothing in it was understood"
        return [_unavailable(probe, capture, how, capture.failed or silence)]

    def sections(self, capture: Capture, hits: Mapping[str, list[Line]]) -> list[Section]:
        """The parts of a text that probes read, in the order of their first lines."""
        prompts = sorted({line for sign in PROMPTS for line in hits.get(sign, ()) if PROMPT.match(line.text)})
        borders = [line.number for line in prompts if PROMPT.match(line.text)["host"]]  # type: ignore[index]
        typed = dict(_typed(prompts, self.loaded.probes.values()))
        wanted = [(span, probe, False) for span, probe in typed.items()]
        for probe in self.recognisers:
            own = [span for span, typed_probe in typed.items() if typed_probe is probe]
            spans = [span for span in _spans(probe, hits, borders) if not any(_inside(span, one) for one in own)]
            wanted += [(span, probe, True) for span in spans]
        parts = dict(scan.cut(capture.lines(), (span for span, *_ in wanted)))
        found = []
        for span, probe, recognised in wanted:
            if lines := parts.get(span):
                part = capture.part(lines) if recognised else _output(capture, lines, probe)
                once = not (probe.recognise and probe.recognise.each)
                found.append(Section(probe, part, span.first, _host(prompts, span.first), once))
        return sorted(found, key=lambda section: (section.first, section.probe.key))

    def windows(self, capture: Capture, hits: Mapping[str, list[Line]], told: Sequence[Origin]) -> Iterator[Text]:
        """The lines around everything that some entry asks about, as facts."""
        lines = {line.number for literal in self.symptoms for line in hits.get(literal, ())}
        spans = scan.merged(Span(max(1, number - WINDOW), number + WINDOW) for number in lines)
        for span, held in scan.cut(capture.lines(), spans):
            scope = next((origin.scope for origin in reversed(told) if origin.line <= span.last), capture.scope)
            origin = Origin(capture=capture.key, line=held[0].number, scope=scope)
            yield Text(origin=origin, content="\n".join(line.text for line in held))


def _literals(probe: Probe) -> tuple[str, ...]:
    return probe.recognise.literals if probe.recognise else ()


def _unavailable(probe: Probe, capture: Capture, how: How, reason: str) -> Unavailable:
    tells = tuple(kind.__name__ for kind in probe.tells)
    origin = capture.said(reason) if capture.kind == "text" else replace(capture.origin(), quote=reason)
    return Unavailable(origin=origin, what=probe.key, how=how, reason=reason, tells=tells)


def _spans(probe: Probe, hits: Mapping[str, list[Line]], borders: Sequence[int]) -> list[Span]:
    """Where in a text the probe's own begins and ends: at the latest where a prompt names a host."""
    how = probe.recognise
    assert how is not None
    openers = sorted({(line.number, one) for one in how.literals for line in hits.get(one, ()) if how.opens(line.text)})
    if how.each:
        numbers = list(dict.fromkeys(number for number, _ in openers))
        return [Span(run[0], run[-1]) for run in _runs(numbers, how.lines, borders) if len(run) >= how.at_least]
    return _opened(openers, how.lines, borders)


def _end(borders: Sequence[int], number: int, last: int) -> int:
    """The last line, or the one before the next border."""
    place = bisect_right(borders, number)
    return min(last, borders[place] - 1) if place < len(borders) else last


def _runs(numbers: list[int], gap: int, borders: Sequence[int]) -> list[list[int]]:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number <= _end(borders, runs[-1][0], min(runs[-1][-1] + gap, runs[-1][0] + SECTION_LINES)):
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def _opened(openers: list[tuple[int, str]], after: int, borders: Sequence[int]) -> list[Span]:
    spans: list[Span] = []
    seen: set[str] = set()
    for number, literal in openers:
        if spans and literal not in seen and number <= spans[-1].last:
            seen.add(literal)
            continue
        if spans:
            spans[-1] = Span(spans[-1].first, min(spans[-1].last, number - 1))
        spans.append(Span(number, _end(borders, number, number + after)))
        seen = {literal}
    return [span for span in spans if span.first <= span.last]


def _inside(span: Span, other: Span) -> bool:
    return other.first - 1 <= span.first and span.first <= other.last


def _typed(prompts: Sequence[Line], probes: Iterable[Probe]) -> Iterator[tuple[Span, Probe]]:
    """What was printed after each typed command that some probe would have run."""
    asked = tuple(probes)
    ends = [*(line.number - 1 for line in prompts[1:]), None]
    for line, end in zip(prompts, ends, strict=False):
        probe = _meant(asked, _words(line))
        last = min(end or line.number + SECTION_LINES, line.number + SECTION_LINES)
        if probe and last > line.number:
            yield Span(line.number + 1, last), probe


def _words(line: Line) -> list[str]:
    """The words of the first command typed at a prompt, without variables and `sudo` before it."""
    prompt = PROMPT.match(line.text)
    words = re.split(r"[;|&>]", prompt["command"])[0].split() if prompt else []
    while words and (words[0] == "sudo" or ASSIGNED.match(words[0])):
        words = words[1:]
    return words


def _meant(probes: Sequence[Probe], words: list[str]) -> Probe | None:
    """The probe that would have run this command: of those with its program, the one that shares most words."""
    program = words[0].rpartition("/")[2] if words else ""
    if program == "cat" and len(words) == 2:
        return next((probe for probe in probes if probe.path == words[1]), None)
    same = [probe for probe in probes if probe.command[:1] == (program,)]
    return max(same, key=lambda probe: len(set(probe.command) & set(words)), default=None)


def _output(capture: Capture, lines: Sequence[Line], probe: Probe) -> Capture:
    """What a transcript shows of a command; the shell's own refusal is the command's failure."""
    part = capture.part(lines)
    first = next((line for line in lines if line.text.strip()), None)
    if first and NOT_FOUND.search(first.text):
        part = replace(part, error=f"FileNotFoundError: {first.text.strip()}")
    return part


def _host(prompts: Sequence[Line], before: int) -> str:
    earlier = (PROMPT.match(line.text) for line in reversed(prompts) if line.number < before)
    return next((prompt["host"] for prompt in earlier if prompt and prompt["host"]), "")
