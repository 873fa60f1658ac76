"""A text gives the same results whoever hands it over: a paste, a file, a pipe, a bundle or a live host."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from diag import bundle, sources
from diag.capture import Capture
from diag.engine import judge
from diag.facts import Fact, Facts, Listing, Text, Unavailable
from diag.finding import Result
from diag.probe import Probe
from diag.sources import LiveHost
from diag.text import LINE_CAP

from .loaded import LIVE, LOADED, PROBES, VECTORS, Vector, examined, own_texts, paste, same, verdicts
from .loaded import told as all_told

CAPTURES = Path(__file__).resolve().parents[1] / "captures"
COMMANDS = [probe for probe in PROBES if probe.command]
SHOWN = [probe for probe in PROBES if probe.command or probe.path]
MEASURED = [probe for probe in LIVE if probe.measure and probe.recognise]
KNOWN_BARE = [probe for probe in LIVE if probe.recognise]

REFUSALS = (
    "bash: {}: command not found",
    "-bash: line 9: {}: command not found",
    "zsh: command not found: {}",
    "sh: 1: {}: not found",
    "bash: /usr/bin/{}: No such file or directory",
    "\nCommand '{}' not found, but can be installed with:\n",
)


@pytest.fixture(scope="module")
def host() -> dict[str, Capture]:
    """What this host tells, quickly and really."""
    live = LiveHost(sys.executable, sys.executable, costs=("passive",))
    return {one.key: one for one in live.captures(PROBES) if not one.failed and one.content.strip()}


def bundled(captures: Iterable[Capture], path: Path) -> list[Capture]:
    bundle.write(path, captures, None, tool="0", source="host", taken_at="")
    opened = bundle.read(path)
    assert opened.broken == ()
    return list(opened.captures(()))


def texts(probe: Probe, host: dict[str, Capture]) -> list[str]:
    found = [*own_texts(probe), *([host[probe.key].content] if probe.key in host else [])]
    return found or pytest.skip(f"no text of {probe.key} in any vector or capture, nor on this host")


def told(probe: Probe, captures: Iterable[Capture]) -> list[Fact]:
    """What one probe reads, of each text that it read once; that a list is whole a pasted part may rightly not tell."""
    facts = [one for one in all_told(probe, captures) if not isinstance(one, Listing)]
    return [one for place, one in enumerate(facts) if not isinstance(one, Text) or one not in facts[:place]]


def live(probe: Probe, text: str) -> Capture:
    kind = "measure" if probe.measure else "file" if probe.path else "command"
    return Capture.of(probe.key, text, kind=kind, exit_code=None if probe.path else 0)


def typed(probe: Probe) -> str:
    return f"$ {' '.join(probe.command) or f'cat {probe.path}'}"


def absent(probe: Probe, captures: Iterable[Capture]) -> list[Unavailable]:
    return [one for one in examined(captures).facts.all(Unavailable) if one.what == probe.key]


def test_bundle_file_and_pipe(vector: Vector, tmp_path: Path) -> None:
    assert same(bundled(paste(vector.text), tmp_path / "b.tar.gz"), vector.text)
    (tmp_path / "vector").write_text(vector.text)
    assert same(sources.paste(tmp_path / "vector").captures(()), vector.text)
    assert same(sources.piped(io.BytesIO(vector.text.encode())).captures(()), vector.text)


def test_what_is_not_the_same_is_told() -> None:
    fires, silent = (next(one for one in VECTORS if one.name.endswith(end)) for end in ("-fires1", "-silent1"))
    assert same(paste(fires.text), fires.text)
    assert not same(paste(silent.text), fires.text)


def test_this_host_and_its_bundle(host: dict[str, Capture], tmp_path: Path) -> None:
    assert len(host) >= 3
    taken = bundled(host.values(), tmp_path / "b.tar.gz")
    assert verdicts(examined(taken)) == verdicts(examined(host.values()))


@pytest.mark.parametrize("one", SHOWN, ids=lambda probe: probe.key)
def test_transcript_tells_what_the_live_capture_tells(one: Probe, host: dict[str, Capture]) -> None:
    for text in texts(one, host):
        shown = paste(f"some words\n{typed(one)}\n{text}\n$ exit\n")
        assert told(one, shown) == told(one, [live(one, text)])


@pytest.mark.parametrize("one", KNOWN_BARE, ids=lambda probe: probe.key)
def test_bare_paste_tells_what_the_live_capture_tells(one: Probe, host: dict[str, Capture]) -> None:
    for text in texts(one, host):
        assert told(one, paste(text)) == told(one, [live(one, text)])


@pytest.mark.parametrize("one", KNOWN_BARE, ids=lambda probe: probe.key)
def test_saved_paste_tells_what_the_live_capture_tells(one: Probe, host: dict[str, Capture], tmp_path: Path) -> None:
    for text in texts(one, host):
        (tmp_path / "saved").write_text(f"some words\n{text}\n")
        assert told(one, sources.paste(tmp_path / "saved").captures(())) == told(one, [live(one, text)])


@pytest.mark.parametrize("one", MEASURED, ids=lambda probe: probe.key)
def test_long_document_of_a_measurement_survives_a_file(one: Probe, host: dict[str, Capture], tmp_path: Path) -> None:
    for text in texts(one, host):
        longer = f'{text.strip()[:-1]}, "padding": "{"x" * 2 * LINE_CAP}"}}'
        (tmp_path / "saved").write_text(longer)
        assert told(one, sources.paste(tmp_path / "saved").captures(())) == told(one, [live(one, text)])


@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.parametrize("one", COMMANDS, ids=lambda probe: probe.key)
def test_a_missing_program_is_missing_in_a_transcript_too(one: Probe, refusal: str) -> None:
    gone = Capture.of(one.key, "", error=f"FileNotFoundError: {one.command[0]}")
    shown = paste(f"{typed(one)}\n{refusal.format(one.command[0])}\n")
    (alive,), (transcript,) = absent(one, [gone]), absent(one, shown)
    assert (alive.how, alive.tells) == (transcript.how, transcript.tells) == ("missing", names(one))


def names(probe: Probe) -> tuple[str, ...]:
    return tuple(kind.__name__ for kind in probe.tells)


def ends(results: Iterable[Result], scope: str) -> set[tuple[str, str, str, int]]:
    return {(one.check, one.status, one.reason, len(one.findings)) for one in results if scope in one.scopes}


def test_a_text_among_many_is_judged_as_it_is_alone():
    texts = sorted(CAPTURES.glob("*.txt"))
    found = examined([Capture.of(path.name, path.read_text(), kind="text") for path in texts])
    for scope in found.facts.scopes():
        alone = judge(LOADED.checks.values(), Facts(found.facts.within(scope)), LOADED)
        assert ends(alone, scope) == ends(found.results, scope)
