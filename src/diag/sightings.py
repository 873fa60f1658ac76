"""What rules hear of a text: the lines that match one of their symptoms, with those near them.

A line that says the same again is counted and not told again; of lines that say different things the first ones are
told, since causes come before consequences. Near a line are those of the same process, and those that name none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from diag.capture import HELD_CAP, QUOTE_CAP, Capture
from diag.check import Check
from diag.facts import Origin, Sighting
from diag.scan import Scanned, Span
from diag.scopes import Told
from diag.symptoms import Match, Symptoms
from diag.text import Line, cut, speaker

SHAPES_CAP = 24
"""Different things said that are told for one rule."""
ALIKE_CAP = 4
"""Lines told that say the same."""
SPEAKERS_CAP = 64
NUMBERS = re.compile(r"0x[0-9a-fA-F]+|\d+")


@dataclass
class _Alike:
    """Lines that say the same but for numbers: the first ones, how many there are, and who said it."""

    lines: list[tuple[Line, str, dict[str, str]]] = field(default_factory=list)
    times: int = 0
    speakers: set[str] = field(default_factory=set)


def sightings(capture: Capture, scanned: Scanned, checks: Iterable[Check], told: Sequence[Told]) -> Iterator[Sighting]:
    """The lines of a text that match a symptom; `told` are the sections by whose lines a machine is told apart."""
    wanted: dict[tuple[str, int], tuple[Span, Line, str, dict[str, str], _Alike]] = {}
    for check in checks:
        if check.symptoms:
            within = check.symptoms.within
            for alike in _alike(check.symptoms, scanned).values():
                for line, says, values in alike.lines:
                    span = Span(max(1, line.number - within), line.number + within)
                    wanted.setdefault((check.id, line.number), (span, line, says, values, alike))
    around = scanned.cut(span for span, *_ in wanted.values())
    for (rule, number), (span, line, says, values, alike) in sorted(wanted.items(), key=lambda one: one[0][1]):
        scope = next((one.scope for one in reversed(told) if one.first <= number), capture.scope)
        yield Sighting(
            origin=Origin(capture=capture.key, line=number, quote=cut(line.text.strip(), HELD_CAP), scope=scope),
            rule=rule,
            matched=cut(says, QUOTE_CAP),
            near=tuple(_near(around.get(span, ()), line)),
            values=values,
            times=alike.times if alike.lines[0][0] is line else 0,
            speakers=tuple(sorted(alike.speakers)),
        )


def _alike(symptoms: Symptoms, scanned: Scanned) -> dict[str, _Alike]:
    """The lines that match, by what they say but for numbers."""
    found: dict[str, _Alike] = {}
    for line, match in _matching(symptoms, scanned):
        shape = NUMBERS.sub("#", match.group(0))
        if shape not in found and len(found) >= SHAPES_CAP:
            continue
        alike = found.setdefault(shape, _Alike())
        alike.times += 1
        if len(alike.speakers) < SPEAKERS_CAP and (name := speaker(line.text)):
            alike.speakers.add(name)
        if len(alike.lines) < ALIKE_CAP:
            values = {name: value for name, value in match.groupdict().items() if value}
            alike.lines.append((line, match.group(0), values))
    return found


def _matching(symptoms: Symptoms, scanned: Scanned) -> Iterator[tuple[Line, Match]]:
    """Each line that matches one of the expressions; a line rejoined with the next where neither does by itself."""
    wanted = [*zip(symptoms.any, symptoms.literals, strict=True)]
    seen: set[int] = set()
    for hits, length in ((scanned.hits, 1), (scanned.rejoined, 2)):
        for expression, held in wanted:
            for line in hits.get(held, ()):
                numbers = range(line.number, line.number + length)
                if seen.isdisjoint(numbers) and (match := symptoms.match(expression, line.text)):
                    seen.update(numbers)
                    yield line, match


def _near(lines: Iterable[Line], own: Line) -> Iterator[Line]:
    """The lines that are not of another process."""
    who = speaker(own.text)
    return (line for line in lines if not who or speaker(line.text) in ("", who))
