from pathlib import Path

import held
import pytest

from diag import engine, text
from diag.capture import Held
from diag.check import Check
from diag.documents import Document
from diag.errors import TimeUp
from diag.facts import Sighting
from diag.finding import Finding
from diag.kb import load
from diag.plugins import Loaded
from diag.sources import Paste

ENTRY = """\
title: {en: A pump fails, zh: 泵失效}
severity: error
text: [engine-log]
symptoms: {any: ['pump (?P<number>\\d+) failed with'], contains: [pressure low], none: [pressure test], within: 2}
cause: {en: It lost pressure., zh: 压力不足。}
remedies: [{title: {en: Fill it, zh: 加注}, safety: manual}]
sources: [{url: "https://pump.example", seen: 2026-11-30}]
vectors: {fires: [{text: x}], silent: [{text: y}]}
"""
CHECK = load(Document(Path("pump.yaml"), text=ENTRY.encode()), "site/pump-fails")
LOADED = Loaded(checks={CHECK.id: CHECK}, probes=held.LOADED.probes)


def found(content: str, check: Check = CHECK) -> list[Finding]:
    results = engine.examine(Paste("log", Held(content)).captures(()), LOADED, [check]).results
    return [one for result in results for one in result.findings]


def sighted(content: str) -> list[Sighting]:
    facts = engine.examine(Paste("log", Held(content)).captures(()), LOADED, []).facts
    return list(facts.sightings(CHECK.id))


def test_the_lines_that_prove_it_are_cited():
    [finding] = found("a\npressure low\nb\npump 7 failed with 3\n")
    assert finding.values == {"number": "7"}
    assert [(one.origin.line, one.origin.quote) for one in finding.evidence] == [
        (4, "pump 7 failed with 3"),
        (2, "pressure low"),
    ]


@pytest.mark.parametrize(
    "content",
    [
        "pump 7 failed with 3",
        "pressure low\n\n\npump 7 failed with 3",
        "pressure low in a pressure test\npump 7 failed with 3",
        "pressure low\npump seven failed with 3",
    ],
)
def test_what_has_to_stand_near_and_what_must_not(content):
    assert found(content) == []


def test_lines_that_say_the_same_are_counted_with_who_said_them():
    lines = [f"(Worker_TP{rank} pid=9{rank}) ERROR pressure low, pump {rank} failed with 3" for rank in range(8)]
    [finding] = found("\n".join(lines))
    first = finding.evidence[0]
    assert (first.says, first.times) == ("pump 0 failed with", 8)
    assert first.speakers == tuple(f"Worker_TP{rank}" for rank in range(8))
    assert len(sighted("\n".join(lines * 100))) < 10


def test_interleaved_processes_are_told_apart():
    theirs = "(Worker_TP1 pid=2) pressure test\n"
    own = "(Worker_TP0 pid=1) pressure low\n(Worker_TP0 pid=1) pump 1 failed with 2\n"
    assert found(theirs + own)
    assert found(theirs.replace("TP1 pid=2", "TP0 pid=1") + own) == []
    assert found(own.replace("TP0 pid=1", "TP1 pid=2", 1)) == []


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("(EngineCore_DP0 pid=2134) ERROR 09-24 20:59:57 [core.py:790] x", "EngineCore_DP0"),
        ("\x1b[36m(VllmWorker rank=3 pid=77)\x1b[0m ERROR x", "VllmWorker rank=3"),
        ("[rank5]: Traceback (most recent call last):", "rank5"),
        ("[2025-09-30 12:00:01 DP0 TP3] Scheduler hit an exception", "DP0 TP3"),
        ("[1,6]<stderr>: x", "6"),
        ("node-1:4711:4712 [3] NCCL INFO x", "4711"),
        ("(RayWorkerWrapper pid=123, ip=10.0.0.2) x", "RayWorkerWrapper"),
        ("INFO 09-24 20:59:57 [core.py:790] x", ""),
        ("a sentence (with a remark) and a [list]", ""),
    ],
)
def test_the_process_a_line_is_of(line, name):
    assert text.speaker(text.plain(line)) == name


@pytest.mark.parametrize(
    "line",
    [
        "(EngineCore pid=1) ERROR 09-24 20:59:57 [core.py:790] says it",
        "[2025-09-30 12:00:01 TP3] says it",
        "2025-09-30T12:00:01.123456789Z stderr F says it",
        "[rank0]: says it",
        "says it",
    ],
)
def test_what_a_line_says(line):
    assert text.message(line) == "says it"


LONG = "the chamber with the number 12 is shut down: pump"


@pytest.mark.parametrize(
    "broken",
    [
        f"{LONG}\n7 failed with 3",
        f"{LONG} 7 failed\n   with 3",
        f"{LONG} 7\nfailed with 3",
        f"> {LONG} 7\n> failed with 3",
    ],
)
def test_a_line_that_was_broken_is_seen_as_one(broken):
    [finding] = found(f"pressure low\n{broken}\n")
    assert (finding.values, finding.evidence[0].origin.line) == ({"number": "7"}, 2)
    assert finding.evidence[0].says == "pump 7 failed with"


@pytest.mark.parametrize(
    "apart",
    [
        "pump\n7 failed with 3",
        f"{LONG}\n\n7 failed with 3",
        f"{LONG} 7\nINFO 09-24 20:59:57 failed with 3",
        f"{LONG} 7\nValueError: failed with 3",
        f"{LONG} 7\n- failed with 3",
    ],
)
def test_lines_of_their_own_are_not_joined(apart):
    assert found(f"pressure low\n{apart}\n") == []


def test_a_line_that_matches_by_itself_is_not_counted_with_its_neighbours():
    [finding] = found(f"pressure low\n{LONG} 7 failed with 3 and then it was quiet\nfor a long time\n")
    assert (finding.evidence[0].times, finding.evidence[0].origin.line) == (1, 2)


def test_a_line_that_does_not_count_hides_no_other():
    check = load(
        Document(Path("p.yaml"), text=ENTRY.replace("any:", "unless: ['was told that'], any:").encode()), "site/p"
    )
    found_in = "pressure low\nwas told that pump 6 failed with 3\npump 7 failed with 3"
    loaded = Loaded(checks={check.id: check}, probes=LOADED.probes)
    [result] = engine.examine(Paste("log", Held(found_in)).captures(()), loaded, [check]).results
    assert [one.values for one in result.findings] == [{"number": "7"}]


def test_what_was_learnt_before_the_time_was_over_is_judged():
    class Late(Held):
        def blocks(self):
            raise TimeUp

    texts = [Paste("log", Held("pressure low\npump 7 failed with 3\n")), Paste("late", Late(""))]
    done = engine.examine((one for text in texts for one in text.captures(())), LOADED, [CHECK])
    assert (done.stopped, [len(one.findings) for one in done.results]) == (True, [1])
