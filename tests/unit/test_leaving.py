"""What leaves in a report: no part of a secret, wherever a quote is cut, and nothing that hides what is beside it."""

import pytest
from held import LOADED
from msgspec import json

from diag.capture import HELD_CAP, QUOTE_CAP, Held
from diag.cli.examine import leaving
from diag.cli.unanswered import uncaused
from diag.engine import examine
from diag.redact import Redactor
from diag.render.words import WORDS
from diag.report import Judged, Report, Source, assemble
from diag.sources import Paste
from diag.unexplained import unexplained

KEY = b"0123456789abcdef"
FAULT = "RuntimeError: CUDA error: device-side assert triggered "
UNKNOWN = "2025-01-02 10:00:00 ERROR [core.py:79] frobnicator exploded "
SECRETS = {
    "hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345": "hf_A",
    "--api-key X7ysecret": "X7y",
    "--api-key 'X7y secret words'": "X7y",
    "password: 'X7y secret words and more'": "secret",
    "X7ybob@node77:~$ ls": "X7y",
    "[root@X7ynode ~]# ls": "X7y",
    "eyJhbGciOiJIUzI1NiJ9.X7yeyJzdWIiOiIxMjM0In0.abc_DEF-123": "eyJ",
    "https://X7ybob:X7ypw@proxy.example.com:3128/a": "X7y",
    "Linux X7ynode 5.15.0-91-generic #101-Ubuntu SMP": "X7y",
}


def left(text: str) -> Report:
    """The report of a pasted text as `diag explain` makes it."""
    done = examine(Paste("x", Held(text)).captures(()), LOADED)
    gate = Redactor(KEY)
    rest = unexplained(done.captures, (), gate.text)
    reasons = uncaused([Paste("x", Held(text))], done, rest, WORDS["en"])
    judged = Judged(done.facts, done.results, done.captures, unexplained=rest, incomplete=reasons)
    source = Source(kind="paste", name="x")
    return leaving(assemble(judged, LOADED.checks, language="en", tool="0", command="explain", source=source), gate)


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("cap", [80, QUOTE_CAP])
@pytest.mark.parametrize("opening", [FAULT, UNKNOWN])
def test_no_cut_shows_a_part_of_a_secret(secret: str, cap: int, opening: str):
    for shown in range(1, len(secret), 4):
        report = left(f"{opening}{('pad ' * cap)[: cap - shown - len(opening) - 1]} {secret} end")
        assert report.unexplained
        assert len(report.unexplained.errors) == 1
        assert SECRETS[secret] not in json.encode(report).decode()


def test_what_a_stand_in_makes_room_for_is_no_half_of_a_secret():
    token = f"eyJ{'a' * 4000}.{'b' * 4400}"
    pads = [HELD_CAP - len(UNKNOWN) - len(token) - shown for shown in (5, 7, 11, 12, 14)]
    report = left("\n".join(f"{UNKNOWN}{token} {('pad ' * 99)[:size]} X7ybob@X7ynode:~$ {size}" for size in pads))
    assert "<token-" in str(report.unexplained)
    assert "X7y" not in json.encode(report).decode()


def test_a_template_shows_no_key_whose_name_differs():
    flags = ("--api-key X7yone", "--hf-token X7yone", "--password X7yone")
    report = left("\n".join(f"ERROR in serve {flag} at last" for flag in flags * 3))
    assert report.unexplained
    assert "<token-" in str(report.unexplained.templates)
    assert "X7y" not in str(report.unexplained)


def test_a_template_shows_no_body_of_a_key_and_its_line_stays():
    body = "\n".join(f"X7yMIIEvQIBAD{n}\nANBgkqhkiG9w0BAQEFA" for n in range(9))
    report = left(f"start\n-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\nERROR: it failed\n")
    assert report.unexplained
    assert "X7y" not in str(report.unexplained)
    assert {one.line for one in report.unexplained.templates if "it failed" in one.quote} == {22}


def test_a_name_told_in_a_line_that_is_not_quoted_goes_from_those_that_are():
    report = left("[root@X7ynode ~]# start\nERROR: X7ynode is gone\n")
    assert report.unexplained
    assert "is gone" in report.unexplained.errors[0].quote
    assert "X7y" not in str(report)


def test_what_hides_or_turns_text_leaves_in_no_string():
    told = json.encode({"log": "ERROR: \x1b[2Ja\u202eb\u2066c\x9bd\n"}).decode()
    report = left(told)
    assert report.unexplained
    assert report.unexplained.errors[0].quote == "ERROR: abcd"


def test_a_quote_is_short_and_its_end_is_marked():
    quote = left(f"{UNKNOWN}{'pad ' * 5000}").unexplained.errors[0].quote
    assert len(quote) <= QUOTE_CAP + 2
    assert quote.endswith("pad …")
