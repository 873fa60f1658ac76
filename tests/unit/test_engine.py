"""The engine's promises, with rules made for the purpose."""

from dataclasses import replace

import pytest

from diag.capture import Capture, Held
from diag.check import Check
from diag.engine import deduce, examine, judge, ordered
from diag.facts import Driver, Facts, Host, Origin, Package, Platform, TorchBuild, Unavailable
from diag.finding import Evidence, Finding, Undecided
from diag.plugins import Loaded
from diag.probe import Deduction, Probe, Recognise
from diag.sources import Paste

HERE = Origin(capture="here", line=1)
WORDS = {
    "en": {"title": "t {x}", "summary": "s {x}", "cause": "c"},
    "zh": {"title": "题", "summary": "要", "cause": "因"},
}


def rule(run=lambda facts: (), *, needs=(), about="host", **options) -> Check:
    return Check("site/rule", "error", about, needs, run, WORDS, **options)


def status(check: Check, *facts, loaded: Loaded | None = None) -> tuple[str, str]:
    result = next(iter(judge([check], Facts(facts), loaded or Loaded())))
    return result.status, result.reason


def finds(facts):
    yield Finding(values={"x": 1}, evidence=(Evidence.of(next(iter(facts))),))


def test_a_check_that_finds_nothing_passes():
    assert status(rule(needs=(Host,)), Host(origin=HERE)) == ("pass", "")


def test_a_check_that_finds_something_fails():
    assert status(rule(finds), Host(origin=HERE))[0] == "fail"


def test_missing_facts_are_skipped_with_who_could_have_told_and_why_not():
    probes = {key: Probe(key, (Driver,), lambda capture: ()) for key in ("tool", "other")}
    absent = Unavailable(origin=HERE, what="tool", reason="FileNotFoundError: tool", how="missing")
    answer, reason = status(rule(needs=(Driver,)), absent, loaded=Loaded(probes))
    assert (answer, reason) == ("skip", "Driver not known (tool: FileNotFoundError: tool; not seen: other)")


def test_undecided_is_skipped_not_passed():
    assert status(rule(lambda facts: [Undecided(reason="cannot tell")])) == ("skip", "cannot tell")


def test_a_finding_beside_an_undecided_part_fails():
    check = rule(lambda facts: [*finds(facts), Undecided(reason="one device did not answer")])
    assert status(check, Host(origin=HERE)) == ("fail", "one device did not answer")


def test_an_exception_is_a_crash():
    assert status(rule(lambda facts: 1 / 0)) == ("crash", "ZeroDivisionError: division by zero")


def test_another_platform_makes_a_check_not_applicable():
    platform = Platform(origin=HERE, present=("b",), absent=("a",))
    assert status(rule(about="a"), platform) == ("not-applicable", "this machine has b, not a")
    assert status(rule(about="b"), platform)[0] == "pass"


def test_facts_cannot_be_mutated_by_a_check():
    def meddle(facts):
        facts.first(Host).name = "other"

    assert status(rule(meddle), Host(origin=HERE))[0] == "crash"


def test_each_scope_is_judged_by_its_own_facts_and_the_shared_ones():
    one, two = (Host(origin=Origin(capture="c", scope=scope)) for scope in ("one", "two"))
    shared = Package(origin=HERE, name="p", version="1")
    check = rule(lambda facts: finds(facts) if len(facts.all(Host)) != 1 or not facts.package("p") else ())
    results = judge([check], Facts([one, two, shared]), Loaded())
    assert [(result.scopes, result.status) for result in results] == [(("one", "two"), "pass")]


def test_deductions_run_after_those_they_build_on():
    first = Deduction("first", (Host,), (), (Driver,), lambda facts: [Driver(origin=HERE, vendor="v", version="1")])
    second = Deduction(
        "second",
        (Driver,),
        (),
        (TorchBuild,),
        lambda facts: [TorchBuild(origin=HERE, version=facts.first(Driver).version)],
    )
    facts, broken = deduce([second, first], Facts([Host(origin=HERE)]))
    assert facts.first(TorchBuild).version == "1"
    assert not broken


def test_deductions_in_a_circle_still_end():
    one = Deduction("one", (Driver,), (), (Host,), lambda facts: ())
    two = replace(one, name="two", needs=(Host,), tells=(Driver,))
    assert {each.name for each in ordered([one, two])} == {"one", "two"}


def test_a_broken_deduction_and_a_broken_probe_are_named_and_stop_nothing():
    bad = Deduction("bad", (), (), (Driver,), lambda facts: 1 / 0)
    reader = Probe("reader", (Host,), lambda capture: 1 / 0, recognise=Recognise(("x",)))
    done = examine(Paste("p", Held("x")).captures(()), Loaded({"reader": reader}, {}, (bad,)))
    assert [one.where for one in done.broken] == ["probe reader", "deduction bad"]
    assert done.facts.first(Unavailable).what == "reader"


@pytest.mark.parametrize(
    ("circumstances", "how", "reason"),
    [
        ({"error": "FileNotFoundError: tool"}, "missing", "FileNotFoundError: tool"),
        ({"error": "timed out after 15 s"}, "failed", "timed out after 15 s"),
        ({"exit_code": 9, "stderr": "no driver\n"}, "failed", "exit code 9: no driver"),
        ({"exit_code": 0}, "silent", "nothing in it was understood"),
    ],
)
def test_a_probe_that_tells_nothing_leaves_the_reason(circumstances, how, reason):
    probe = Probe("tool", (Driver,), lambda capture: ())
    capture = Capture.of("tool", "", kind="command", **circumstances)
    told = examine([capture], Loaded({"tool": probe})).facts.first(Unavailable)
    assert (told.how, told.reason, told.tells) == (how, reason, ("Driver",))
