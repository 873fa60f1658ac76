"""The exit gate: what must survive, what must not, and how steady the stand-ins are."""

import ipaddress
import re
import time

import pytest
from forms_written import ADDRESSES, SECRETS, SURVIVES
from hypothesis import given
from hypothesis import strategies as st

from diag.forms import RULES, Rule
from diag.redact import Known, Redactor

KEY = b"0123456789abcdef"
KNOWN = Known(
    hosts=("gpu07.cluster.corp.cn", "trainbox"),
    users=("alice", "li", "cuda", "root"),
    homes=("/data/people/alice", "/root"),
)


def redact(text: str, key: bytes = KEY) -> str:
    return Redactor(key, KNOWN).text(text)


@pytest.mark.parametrize("line", SURVIVES)
def test_survives(line: str) -> None:
    assert redact(line) == line


def test_survives_in_lists() -> None:
    rows = "Package   Version\nnumpy   1.26.4\nfoo   10.2.1.217\nnvidia-nccl-cu12   2.27.5\n"
    assert redact(rows) == rows


@pytest.mark.parametrize(("text", "secret", "rest"), SECRETS)
def test_replaces(text: str, secret: str, rest: str) -> None:
    redacted = redact("\n" + text)
    assert secret not in redacted
    assert rest in redacted
    assert re.search(r"<\w+-[0-9a-f]{8}>|d1a9|02:d1|db8|ffff:0a", redacted)


@pytest.mark.parametrize("line", ADDRESSES)
def test_replaces_addresses_within_their_class(line: str) -> None:
    redacted = redact(line)
    for before, after in zip(
        *(re.findall(r"(?<![\d.])\d+\.\d+\.\d+\.\d+", text) for text in (line, redacted)), strict=True
    ):
        assert before != after
        assert classes(after) == (classes(before) or ["240.0.0.0/4"])
    assert re.sub(r"\d+\.\d+\.\d+\.\d+|<host-\w+>|node\d+(?=:)", "", line) == re.sub(
        r"\d+\.\d+\.\d+\.\d+|<host-\w+>", "", redacted
    )


def classes(address: str) -> list[str]:
    nets = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "100.64.0.0/10", "240.0.0.0/4")
    return [net for net in nets if ipaddress.ip_address(address) in ipaddress.ip_network(net)]


def test_keeps_subnets() -> None:
    net, one, two = redact("inet 10.1.2.0/24, host 10.1.2.3, host 10.1.2.4").split(", ")
    network = ipaddress.ip_network(net.removeprefix("inet "))
    assert all(ipaddress.ip_address(line.removeprefix("host ")) in network for line in (one, two))


@pytest.mark.parametrize("text", [text for text, _, _ in SECRETS if "0a00" not in text])
def test_second_pass_changes_nothing(text: str) -> None:
    once = redact(text)
    assert redact(once) == once
    assert redact(once, b"another") == once


def test_same_key_same_standins_in_any_order() -> None:
    lines = [*(text for text, _, _ in SECRETS), *ADDRESSES]
    one, two = Redactor(KEY, KNOWN), Redactor(KEY, KNOWN)
    for line in lines:
        one.learn(line)
        two.learn(line)
    assert [one.text(line) for line in lines] == [two.text(line) for line in reversed(lines)][::-1]


@pytest.mark.parametrize("text", [text for text, _, _ in SECRETS] + ADDRESSES)
def test_other_key_other_standins(text: str) -> None:
    assert redact(text) != redact(text, b"another")


@pytest.mark.parametrize(
    "secret",
    ["host 10.{a}.{b}.7", "host 192.168.{a}.{b}", "host 47.{a}.{b}.8", "token=tok{n:05}", "ssh u{n}@host{n}",
     "USER=u{n}x", "0c:42:a1:b2:{a:02x}:{b:02x}", "GPU-8a56a4bc-e184-a047-2620-be19fdf9{a:02x}{b:02x}",
     "2400:db::{n:x}", "fe80::1:{n:x}"],
)  # fmt: skip
def test_injective(secret: str) -> None:
    gate = Redactor(KEY)
    lines = [secret.format(a=n // 250, b=n % 250, n=n) for n in range(2000)]
    redacted = {gate.text(line) for line in lines}
    assert len(redacted) == 2000
    assert not redacted & set(lines)


def test_value_walks_leaves_and_reads_keys() -> None:
    leaves = {"HF_TOKEN": "abc", "curand": "10.2.1.217", "password": "a b", "ip": "10.2.1.217"}
    seen = Redactor(KEY, KNOWN).value({"alice": [1, None, ("alice", 2.5)], **leaves})
    assert list(seen) == ["alice", *leaves]
    assert seen["alice"][:2] == [1, None]
    assert re.fullmatch(r"<user-\w+>", seen["alice"][2][0])
    assert re.fullmatch(r"<token-\w+>", seen["HF_TOKEN"])
    assert re.fullmatch(r"<token-\w+>", seen["password"])
    assert seen["curand"] == "10.2.1.217" != seen["ip"]


def test_words_behind_a_flag_that_takes_a_secret_are_one() -> None:
    words = ["serve", "m", "--api-key", "one", "two", "--hf_token", "three", "--port", "80", "--max-model-len", "4096"]
    once = Redactor(KEY).value({"words": words})
    assert not {"one", "two", "three"} & set(once["words"])
    assert once["words"][:3] + once["words"][7:] == words[:3] + words[7:]
    assert Redactor(KEY).value(once) == once


def test_counts_name_rules_only() -> None:
    gate = Redactor(KEY, KNOWN)
    gate.text("alice and alice at host 10.0.0.1")
    assert gate.counts == {"known user": 2, "ipv4": 1}


def test_short_and_common_names_stay() -> None:
    text = "li installed cuda as root in /root/x"
    assert redact(text) == text


def test_keeps_line_numbers() -> None:
    text = "\n".join(f"line {n} host 10.0.0.{n % 250 + 1} İ" for n in range(20000))
    redacted = redact(text)
    assert "10.0.0." not in redacted
    assert [line.split()[1] for line in redacted.splitlines()] == [line.split()[1] for line in text.splitlines()]


HOSTILE = ["a.a.", "::::", "@@@@", "10.10.10.", "a@a.", "://", "://a:", "eyJ-", "eyJa.", "-----BEGIN PRIVATE KEY-----",
           "token=", "token='", "--a-", "ssh ", "host  ", "?&", "::a ", "fe80:", "aa:bb:", "1.2.3.4 ", "10.1.2.3 ",
           "key\\\"",
           "Cookie: a ", "abcdef01-", "[a]:", "CCL a:1:", "/home/", "\\Users\\", "x_x-", "hf_", "a1 ",
           "curl -u ", "curl ", "aB1/", "x.local ", "a-a.", "10-20-", "serial number ", "login a password ", "uid=1(",
           "BEGIN PRIVATE KEY-----\n", "username: ", "name: ", "A_TOKEN ", "TOKEN",
           "ssh-rsa AAAA", "password is a"]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_time_is_linear(piece: str) -> None:
    gate = Redactor(KEY, KNOWN)
    tail = "@ :// hf_ CCL --token token=1x ]: ip- eyJ -u serial PRIVATE KEY x.internal x.local pwd= AAAA key for user "

    def cost(size: int) -> float:
        begin = time.process_time()
        gate.text(piece * (size // len(piece)) + tail)
        return time.process_time() - begin

    cost(2000)
    small, large = min(cost(40_000) for _ in range(2)), cost(160_000)
    assert large < 10 * small + 0.05


@given(st.text())
def test_never_raises(text: str) -> None:
    assert isinstance(redact(text), str)


@given(st.lists(st.sampled_from([*HOSTILE, *(text for text, _, _ in SECRETS), "\n", " ", '"', ":", "="]), max_size=8))
def test_never_raises_on_what_it_knows(pieces: list[str]) -> None:
    assert isinstance(Redactor(KEY, KNOWN).value({"".join(pieces[:2]): "".join(pieces)}), dict)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.name} {rule.needle}")
def test_each_rule_takes_something(rule: Rule) -> None:
    alone = Redactor(KEY)
    alone._rules = (rule,)
    for text in [text for text, _, _ in SECRETS] + ADDRESSES:
        alone._redacted(text)
    assert alone.counts.get(rule.name, 0) > 0


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.name} {rule.needle}")
def test_rules_compile_and_name_their_kinds(rule: Rule) -> None:
    kinds = {group.rstrip("23") for group in re.compile(rule.pattern).groupindex}
    assert kinds <= {"token", "key", "user", "host", "home", "email", "serial", "uuid", "mac", "ipv4", "ipv6"}


@pytest.mark.parametrize(
    "line",
    [
        "Jun  1 10:00:00 gpu-node-17 kernel: NVRM: Xid",
        "Jun 11 10:00:00 gpu-node-17 app[123]: hello",
        "2026-11-29T20:59:57.123456+00:00 gpu-node-17 kernel: hello",
        "[bob@gpu-node-17 ~]$ nvidia-smi\nlater: gpu-node-17 is down, says bob",
        "/home/bob/x\nuser bob on gpu-node-17\nssh bob@gpu-node-17",
    ],
)
def test_names_told_in_one_place_are_replaced_in_all(line: str) -> None:
    said = Redactor(KEY).text(line)
    assert "gpu-node-17" not in said
    assert "bob" not in said


@pytest.mark.parametrize(
    "line",
    ["2026-11-29T20:59:57 INFO core: started", "Jun  1 10:00:00 loading: 3", "INFO 09-24 20:59:57 [core.py:790] x: y"],
)
def test_levels_and_messages_behind_a_time_are_no_hosts(line: str) -> None:
    assert Redactor(KEY).text(line) == line


def test_names_told_in_one_value_are_replaced_in_the_others() -> None:
    said = Redactor(KEY).value({"a": "carol was here", "b": ["/home/carol/x"]})
    assert "carol" not in str(said)
