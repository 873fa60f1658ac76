"""What no rule explains in a text: its first lines that look like errors, and what the rest consists of.

Looking like an error proves nothing; it tells a reader where to begin, and a maintainer which entry is missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice

from msgspec import Struct

from diag.capture import HELD_CAP, QUOTE_CAP, Capture
from diag.facts import Origin
from diag.text import cut, message

LINES_CAP = 5_000
"""Lines of a text that are looked at."""
ALL_CAP = 20_000
"""Lines that are looked at of all texts, as many of each."""
ERRORS_CAP, TEMPLATES_CAP = 5, 8
LINE_CAP = 2_048
"""Characters of a line that pass the exit gate for its template."""
WIDTH = 240
"""Characters of a line that its template is made from."""
ERROR = re.compile(
    r"\b(?:ERROR|FATAL|CRITICAL|Traceback \(most recent|[Ee]rror:|[Ff]atal:|panic:|Segmentation fault|core dumped"
    r"|[Aa]ssertion .{0,80}failed|FAILED|aborted|Aborted)|\w(?:Error|Exception)\b[:(]"
)
HARMLESS = re.compile(r"\b(?:errors?|failed|failures?)[ =:]{1,3}0\b|\b0 (?:errors|failed)\b|[Nn]o errors?\b")


class Excerpt(Struct, frozen=True, kw_only=True):
    """A line, or the template that several follow (`<*>` for what differs): the first one's place, and how many."""

    capture: str
    line: int
    quote: str
    times: int = 1


class Unexplained(Struct, frozen=True, kw_only=True):
    """The first lines that look like errors, and the most frequent templates of the lines of a text's beginning."""

    errors: tuple[Excerpt, ...] = ()
    templates: tuple[Excerpt, ...] = ()


def unexplained(captures: Iterable[Capture], errors: Iterable[Origin], gate: Callable[[str], str]) -> Unexplained:
    """What the pasted texts among these captures consist of; `errors` are the places where a program said it failed.

    A template has lost what stood around a secret and told it: its lines pass the exit gate before it is made.
    """
    texts = [one.bare() for one in captures if one.kind == "text"]
    most = min(LINES_CAP, ALL_CAP // (len(texts) or 1) + 1)
    said = (Excerpt(capture=one.capture, line=one.line, quote=one.quote) for one in errors)
    found = sorted(
        islice(_alike(chain((one for text in texts for one in _errors(text, most)), said)), ERRORS_CAP * 2), key=_at
    )
    return Unexplained(errors=tuple(found[:ERRORS_CAP]), templates=tuple(_templates(texts, gate, most)))


def _at(one: Excerpt) -> tuple[str, int]:
    return one.capture, one.line


def _alike(found: Iterable[Excerpt]) -> Iterator[Excerpt]:
    """The lines, each kind of them once."""
    seen: set[str] = set()
    for one in found:
        said = re.sub(r"\d+", "#", message(one.quote))
        if said not in seen:
            seen.add(said)
            yield one


def _errors(text: Capture, most: int) -> Iterator[Excerpt]:
    """The lines that look like errors."""
    for line in islice(text.lines(), most):
        start = line.text[:QUOTE_CAP]
        if ERROR.search(start) and not HARMLESS.search(start):
            yield Excerpt(capture=text.key, line=line.number, quote=cut(line.text.strip(), HELD_CAP))


def _templates(texts: Iterable[Capture], gate: Callable[[str], str], most: int) -> list[Excerpt]:
    """The templates that the lines follow, the most frequent first (Drain)."""
    from drain3.drain import Drain  # not above: few texts are not explained

    miner = Drain(max_clusters=200, max_children=50)
    first: dict[int, tuple[str, int]] = {}
    for text in texts:
        name = gate(text.key)
        lines = list(islice(text.lines(), most))
        shown = gate("\n".join(cut(line.text, LINE_CAP) for line in lines)).split("\n")
        for line, quote in zip(lines, shown, strict=True) if lines else ():
            if said := cut(message(quote), WIDTH).strip():
                cluster, _ = miner.add_log_message(said)
                first.setdefault(cluster.cluster_id, (name, line.number))
    largest = sorted(miner.clusters, key=lambda one: -one.size)[:TEMPLATES_CAP]
    return [
        Excerpt(capture=capture, line=line, quote=one.get_template(), times=one.size)
        for one in largest
        for capture, line in (first[one.cluster_id],)
    ]
