"""`diag kb`: the entries of the knowledge base: which there are, what one says, a new one, and whether one holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from diag import kb
from diag.check import Check
from diag.cli.catalogue import one_of
from diag.cli.emit import write
from diag.cli.opening import load
from diag.cli.options import Bounds
from diag.cli.skeleton import place_of
from diag.documents import Documents
from diag.errors import DiagError
from diag.output import written
from diag.plugins import Loaded
from diag.selftest import proved
from diag.text import in_one_line

WEIGHTS = (("id", 4), ("title", 4), ("symptom", 2), ("cause", 1), ("fix", 1))
"""Parts of an entry, and how much a word found there counts."""
ENTRY_CAP = 2**20
"""Bytes of the longest entry file."""
SKELETON = """\
title:
  en: (the fault in one sentence, in the present tense)
  zh: ……
severity: error                # error: work stops; warning: it goes on at risk or slower; info
confidence: medium             # high only where the line alone proves the cause
about: {about}
text: [engine-log]             # {kinds}
symptoms:
  any:                         # RE2, one a wording; each with five plain characters or more outside of groups
    - '…'
  # unless: [...]              # expressions of such lines that do not count
  # contains: [...]            # strings that must all stand within 12 lines of it
  # none: [...]                # expressions that no line there may match
cause:
  en: (what is, and why it does this)
  zh: ……
remedies:
  - title: {{en: …, zh: …}}
    commands: []
    safety: safe               # safe, disruptive, manual
    verify: ""
sources:
  - {{url: "https://…", seen: 2026-01-01}}
vectors:
  fires:
    - text: |
        (a real text, as somebody would paste it)
      from: https://…
  silent:
    - text: |
        (a near miss: the same words where it is not this fault)
      why: …
"""


def entries(loaded: Loaded) -> list[Check]:
    """The entries by id."""
    return sorted((one for one in loaded.checks.values() if one.kind == "entry"), key=lambda one: one.id)


def listed(component: str, language: str, roots: Sequence[Path]) -> int:
    """One line for each entry of a component, or of all."""
    _lines(of_component(load(Bounds(root=tuple(roots))), component), language)
    return 0


def of_component(loaded: Loaded, component: str) -> list[Check]:
    """The entries of a component, or all where it is empty."""
    found = [one for one in entries(loaded) if one.id.startswith(f"{component}/" if component else "")]
    if not found:
        known = sorted({one.id.partition("/")[0] for one in entries(loaded)})
        raise DiagError(f"no component {component!r}; there are {', '.join(known)}")
    return found


def searched(words: Sequence[str], language: str, roots: Sequence[Path]) -> int:
    """The entries that hold all the words, those in whose title they stand first."""
    wanted = [word.lower() for one in words for word in one.split()]
    ranked = [(_weight(one, wanted), one) for one in entries(load(Bounds(root=tuple(roots))))]
    found = [one for weight, one in sorted(ranked, key=lambda pair: -pair[0]) if weight]
    if not found:
        raise DiagError(f"no entry holds all of {' '.join(words)!r}: give fewer words, or the text to diag explain")
    _lines(found, language)
    return 0


def _weight(check: Check, wanted: Iterable[str]) -> int:
    parts = {
        "id": check.id,
        "title": " ".join(words["title"] for words in check.words.values()),
        "symptom": " ".join((*(check.symptoms.any if check.symptoms else ()), *check.fires)),
        "cause": " ".join(words["cause"] for words in check.words.values()),
        "fix": " ".join(part for one in check.remedies for part in (*one.title.values(), *one.commands)),
    }
    total = 0
    for word in wanted:
        weight = sum(weight for part, weight in WEIGHTS if word in parts[part].lower())
        if not weight:
            return 0
        total += weight
    return total


def _lines(found: Iterable[Check], language: str) -> None:
    for one in found:
        write(in_one_line(f"{one.id:48} {one.severity:8} {one.words[language]['title']}") + "\n")


def shown(id: str, language: str, roots: Sequence[Path]) -> int:
    """All about one entry."""
    check = one_of(load(Bounds(root=tuple(roots))), id, named="entry", listed="kb list")
    if check.symptoms is None:
        raise DiagError(f"{id} is a rule of kind {check.kind}, not an entry: diag checks show {id}")
    write("".join(f"{line}\n" for line in _described(check, language)))
    return 0


def _described(check: Check, language: str) -> Iterator[str]:
    yield f"{check.id} ({check.severity}, confidence {check.confidence}): {check.words[language]['title']}"
    yield ""
    yield check.words[language]["cause"]
    yield ""
    if symptoms := check.symptoms:
        yield f"in: {', '.join(check.reads)}"
        yield from (f"versions: {name} {one}" for name, allowed in check.ranges.items() for one in allowed)
        yield from (f"a line that matches: {one}" for one in symptoms.any)
        yield from (f"but not one that matches: {one}" for one in symptoms.unless)
        yield from (f"with, {symptoms.within} lines around: {one}" for one in symptoms.contains)
        if symptoms.contains_any:
            yield f"with, {symptoms.within} lines around, one of: {', '.join(symptoms.contains_any)}"
        yield from (f"without: {one}" for one in symptoms.none)
    if check.consequence:
        yield "it says that something failed, not why"
    yield from (f"explains: {one}" for one in check.explains)
    for remedy in check.remedies:
        yield f"fix ({remedy.safety}): {remedy.title[language]}"
        yield from (f"    {line}" for command in remedy.commands for line in command.splitlines())
        if remedy.verify:
            yield f"    verify: {remedy.verify}"
    yield from (f"source: {one}" for one in check.sources)
    yield f"read: {check.checked}"


def made(id: str, root: Path | None) -> int:
    """Write the skeleton `kb/entries/<id>.yaml`; a file that is there stays."""
    path = place_of(id, root, "kb/entries", ".yaml")
    path.parent.mkdir(parents=True, exist_ok=True)
    with written(path) as file:
        kinds = ", ".join(kb.TEXT_KINDS)
        file.write(SKELETON.format(about=id.partition("/")[0], kinds=kinds).encode())
    write(f"{path}\nnext: fill it in, then: diag kb lint {path}\n")
    return 0


def linted(files: Sequence[Path], roots: Sequence[Path]) -> int:
    """Say what is wrong with these files, or with every entry; the exit code is 1 where something is."""
    loaded = load(Bounds(root=tuple(roots)))
    complaints = [f"not loaded: {one.where}: {one.error}" for one in loaded.broken if not files]
    checked = 0
    for path in files:
        if not path.is_file() or path.stat().st_size > ENTRY_CAP:
            raise DiagError(
                f"{path} is no entry: it is not there, no regular file, or longer than {ENTRY_CAP >> 20} MiB"
            )
        try:
            check = kb.load(Documents(None).read(path), _slug(path))
        except Exception as error:  # whatever is wrong with a file is what is asked
            complaints.append(f"{path}: {type(error).__name__}: {' '.join(str(error).split())}")
            continue
        others = {id: one for id, one in loaded.checks.items() if id != check.id}
        complaints += proved(check, replace(loaded, checks={**others, check.id: check}))
        checked += 1
    if not files:
        complaints += [line for one in entries(loaded) for line in proved(one, loaded)]
        checked = len(entries(loaded))
    for line in complaints:
        write(f"{in_one_line(line)}\n")
    write(f"{checked} entries, {len(complaints)} complaints\n")
    return 1 if complaints else 0


def _slug(path: Path) -> str:
    """The id of an entry file: its path below `kb/entries`, or its folder and name."""
    parts = path.resolve().with_suffix("").parts
    for place in range(len(parts) - 2, 0, -1):
        if parts[place - 1 : place + 1] == ("kb", "entries"):
            return "/".join(parts[place + 1 :])
    return "/".join(parts[-2:])
