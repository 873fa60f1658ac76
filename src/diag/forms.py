"""The forms of secrets, and the places where a name or a secret stands: one row of `RULES` is one of them.

Every named group of a row is a secret of the kind that its name says; the rest of what it matches stays. What is
written alike and is none (a placeholder, a count of tokens, a piece of code, a version) is known by `keeps`.

Time is linear in the text: every repeat is bounded, or starts at a boundary.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from diag.standins import IPV4, IPV6, MAC, UUID, compiled, is_version, no_ipv6

PUBLIC_HOSTS = r"(?:[\w-]+\.)*(?:github|gitlab|bitbucket|huggingface|example|pytorch|python|docker)\.\w{2,3}"
_WEAK_VALUE = r"""(?xs)
    none|null|nil|true|false|empty|dummy|str|string|bytes|bool|int|optional|unset|undefined|redacted|hidden|required
    |missing|invalid|is|not|and|or|for|in|the|\W*|[*x]+|<.*|%\w?|\{\w*\}|\$\{\w+.*|\$[a-z_]+|your[-_ ].*
    |(?:[a-z]+[_-]){1,3}(?:token|key|secret|passw(?:or)?d)|~?/\S+\.(?:pem|key|crt|json|ya?ml|txt)
    |(?:self|cls|args|config|cfg|kwargs|os|env|settings|params|options|opts|request|process)\.[\w.]+"""
_NUMBER = r"[-+]?[\d.,]+(?:e[-+]?\d+)?\s?(?:[kmgt]?i?b|[mun]?s|%|[kmt]|tok\S*)?"
_EVERYWHERE = ("docker.internal", "metadata.google.internal", "containers.internal")
_MODULE_FOLLOWS = r"(?:from|import|module|named) ['\"]?$"
_NO_HOST = r"(?:rank|tp|dp|pp|ep)\d+|(?:self|args)\..*"
# What may stand before `token` in the field's own sense: a piece of text, not a credential.
_TEXT_TOKEN = r"""(?xs)
    (?:bos|eos|eot|eod|eom|pad|unk|cls|sep|mask|stop|end|start|begin|image|video|audio|vision|special|first|last|next
    |new|prev|previous|per|output|input|prompt|think|thinking|reasoning|tool|call|draft|bonus|target|sampled|generated
    |mm|fim|prefix|suffix|middle|placeholder|max|min|num|total|each|single|every|decode|prefill|kv|text|turn|sequence
    |line|word|patch|extra|added|additional|unexpected|accepted|rejected|recovered|cached|speculative)[-_ ]$
    |(?:tik|de|re|sub|multi)$"""


def _never(match: re.Match[str]) -> bool:
    return False


@dataclass(frozen=True)
class Rule:
    """One form of secret: every named group is a secret of the kind that its name says.

    `needle` is a literal that stands in every match, `sieve` a pattern that opens with a literal and is found in every
    line with a match: both are quick to look for. `keeps` says that a match is none after all. A `folded` rule sees the
    text in lower case, which is much cheaper than ignoring case.
    """

    name: str
    needle: str
    pattern: str
    keeps: Callable[[re.Match[str]], bool] = _never
    folded: bool = False
    sieve: str = ""


def _weak(match: re.Match[str]) -> bool:
    """Say whether what follows a telling name is no credential: nothing, a placeholder, a piece of code."""
    value = _value_of(match)
    return bool(compiled(_WEAK_VALUE).fullmatch(value)) or match[0].startswith(value) or _is_code(match)


def _weak_token(match: re.Match[str]) -> bool:
    """Say whether a `token` is a piece of text, a number of them, or their time."""
    at = match.start() + match[0].index("token")
    before, value = match.string[max(0, at - 16) : at], _value_of(match)
    if compiled(_TEXT_TOKEN).search(before) or compiled(_NUMBER).fullmatch(value) or _weak(match):
        return True
    named = before[-1:] in ("_", "-") or before[-1:].isalpha()
    return not named and len(value) < 8 and not _has_digit(value)


def _weak_flag(match: re.Match[str]) -> bool:
    return _weak_token(match) if "token" in match[0][: -len(_value_of(match))] else _weak(match)


def _wordy(match: re.Match[str]) -> bool:
    return len(_value_of(match)) < 20 and not _has_digit(_value_of(match))


def _not_a_host(match: re.Match[str]) -> bool:
    """Keep code (`hostname = socket.gethostname()`), the name itself (`hostname=hostname`) and log prefixes."""
    value = _value_of(match).lower()
    return _is_code(match) or match[0].lower().startswith(value) or bool(compiled(_NO_HOST).fullmatch(value))


def _shared(match: re.Match[str]) -> bool:
    """Say whether a private name is that of a Python module, or one that all machines have."""
    before = match.string[max(0, match.start() - 16) : match.start()]
    return match[0].lower().endswith(_EVERYWHERE) or bool(compiled(_MODULE_FOLLOWS).search(before))


def _public_mail(match: re.Match[str]) -> bool:
    user, _, host = match[0].lower().partition("@")
    return user in ("git", "hg", "noreply", "no-reply") and bool(compiled(PUBLIC_HOSTS).fullmatch(host))


def _value_of(match: re.Match[str]) -> str:
    return match[match.lastgroup or 0] or ""


def _is_code(match: re.Match[str]) -> bool:
    return match.string[match.end() : match.end() + 1] in ("(", "[")


def _has_digit(value: str) -> bool:
    return any(map(str.isdigit, value))


_SEP = r"""(?:\\?["'])?[ \t]{0,8}(?:=>|:|=(?!=))[ \t]{0,8}[\[(]?"""
_VALUE = r"""(?:(\\?["'])(?P<token>(?:(?!\1)[^\r\n]){1,4096})|(?P<token2>[^\s"',;&|(){}\[\]\\]{1,4096}))"""
_KEY_NAMES = ("api", "access", "private", "account", "auth", "signing", "encryption", "license", "shared", "session")
_KEY = "|".join(f"(?<={name}key)|(?<={name}[_-]key)" for name in _KEY_NAMES)
_FLAG = r"(?:[a-z0-9]{1,24}[-_.]){0,6}(?:api[-_]?key|token|passw(?:or)?d|passphrase|secret(?:[-_](?:access[-_])?key)?)"
_FLAG_VALUE = (
    r"""(?:(?:["'],?[ \t]{0,8}|=|[ \t]{1,8})(["'])(?P<token>(?!-)[^"'\r\n]{1,4096})\1"""
    r"""|(?:["'],?[ \t]{1,8}["']|=["']?|[ \t]{1,8}["']?)(?P<token2>[^\s"',-][^\s"',]{0,4096}))"""
)
FLAG_WORD = f"--?{_FLAG}"
_HEADER = r"""["']?(?:(?:basic|bearer|token)[ \t]{1,8}(?P<token>[^\s"',}\\]{1,8192})|(?P<token2>[^\r\n"'\\]{1,8192}))"""
_QUERY = r"[?&](?:[\w-]{0,32}token|[\w-]{0,32}key|sig|signature|secret|passw(?:or)?d|auth|x-amz-\w{1,32})="
_PIDS = r":[0-9]{1,8}:[0-9]{1,8} \[[0-9]"
_URL_PART = r"[^\s/:@<\"'$\{]{1,255}"
_ASSIGNED = r"""(?:=["']?|["']?:[ ]?["'])"""
_NAME = r"[A-Za-z0-9_](?:[\w.-]{0,62}\w)?"
_HOST = r"[A-Za-z0-9](?!\d{0,2}(?:\.\d{1,3}){3}(?![\w.]))(?:[\w.-]{0,251}\w)?"
_MAIL = r"(?<![\w.+/@=-])(?P<email>\w[\w.+-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24})(?![\w(\[=])"
_SSH = rf"\b(?:ssh|scp|sftp|rsync)[ \t][^\n@]{{0,99}}?(?<![\w.+-])(?P<user>{_NAME})@(?P<host>{_HOST})"
# A host has a lower-case letter somewhere: `INFO` behind a time stamp is a level.
_LOGGED = rf"(?![A-Z]+ )(?P<host>{_HOST}) [\w./()-]{{1,64}}(?:\[\d{{1,9}}\])?: "
_PRIVATE, _LABELS = r"\.(?:internal|intranet|corp|lan)", r"[A-Za-z0-9](?:[\w-]{0,62})(?:\.[A-Za-z0-9][\w-]{0,62}){0,5}"
_PROMPT_END = r"(?::[~/]|[ \t](?:~[^\s\]]{0,255}[ \t][#$%]|[^\s\]]{1,255}\][#$])|[#$>%](?:\s|$))"
_SCHEMES = "|".join(f"(?<={scheme}://)" for scheme in ("tcp", "grpc", "gloo", "etcd", "ray", "redis", "nfs", "ssh"))
_SCHEMES += r"|(?<=http://)(?=[A-Za-z][\w-]{0,62}:\d)"

PEM = Rule(
    "private key",
    "PRIVATE KEY-----",
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----(?:\\n|\s){0,8}(?P<key>[^\s\\-](?:(?:(?!-----)[\s\S]){0,16384}[^\s\\-])?)",
    sieve=r"PRIVATE KEY-----[\s\S]*",
)


def _named(name: str, needle: str, stem: str, keeps: Callable[[re.Match[str]], bool] = _weak) -> Rule:
    return Rule(name, needle, stem + _SEP + _VALUE, keeps, folded=True)


def _host(needle: str, place: str) -> Rule:
    return Rule("host name", needle, rf"{place}[\"']?(?P<host>{_HOST})(?![\w-])", _not_a_host, folded=True)


RULES: tuple[Rule, ...] = (
    Rule("hub token", "hf_", r"(?P<token>hf_(?<!\w...)(?:(?=[A-Za-z]{0,40}\d)|(?=[A-Za-z]{20}))[A-Za-z0-9]{8,128})"),
    Rule("forge token", "gh", r"(?P<token>gh[pousr]_(?<!\w....)[A-Za-z0-9]{12,255})"),
    Rule("forge token", "github_pat_", r"(?P<token>github_pat_\w{12,255})"),
    Rule("forge token", "glpat-", r"(?P<token>glpat-[\w.-]{12,255})"),
    Rule("service key", "sk-", r"(?P<token>sk-(?<![\w-]...)(?=[A-Za-z_-]{0,64}\d)[\w-]{12,255})"),
    Rule("cloud key", "AKIA", r"(?P<token>AKIA(?<!\w....)[A-Z0-9]{12,32}(?!\w))"),
    Rule("cloud key", "ASIA", r"(?P<token>ASIA(?<!\w....)[A-Z0-9]{12,32}(?!\w))"),
    Rule("chat token", "xox", r"(?P<token>xox[abeoprs](?<!\w....)-[A-Za-z0-9-]{8,255})"),
    Rule("web token", "eyJ", r"(?P<token>eyJ(?<![\w-]...)[\w-]{4,4096}\.[\w-]{4,8192}(?:\.[\w-]{0,4096})?)"),
    Rule("authorization", "authorization", f"authorization{_SEP}{_HEADER}", _weak, folded=True),
    Rule("bearer", "bearer ", r"bearer (?P<token>[\w.~+/=-]{8,8192})", _wordy, folded=True),
    Rule("cookie", "cookie", rf"cookie{_SEP}[\"']?(?P<token>[^\r\n\"'=<]{{1,128}}=[^\r\n\"']{{0,8192}})", folded=True),
    Rule("url user", "://", rf"://(?:(?P<user>{_URL_PART})?:(?P<token>[^\s/<\"']{{1,256}})|(?P<user2>{_URL_PART}))@"),
    Rule("url parameter", "=", rf"{_QUERY}(?P<token>[^&\s\"'#<>]{{1,4096}})", _weak, folded=True, sieve=r"[?&]\w"),
    Rule("flag", "--", rf"--(?<![\w-]..){_FLAG}{_FLAG_VALUE}", _weak_flag, folded=True),
    Rule("key list", "key", r"(?:api|access)[_-]?key[\"']?[ ]?[=:][ ]?\[(?P<token>[^\]\r\n]{1,4096})\]", folded=True),
    Rule("ssh password", "sshpass", r"sshpass[ \t]{1,8}-p[ \t]{0,8}[\"']?(?P<token>[^\s\"']{1,256})"),
    _named("named token", "token", "token", _weak_token),
    _named("password", "pass", "pass(?:w(?:or)?d|phrase)"),
    _named("named secret", "secret", "secret(?:[_-]?(?:access|key|id|base|value)){0,3}"),
    _named("named key", "key", f"key(?:{_KEY})(?:[_-]?id)?"),
    Rule("home", "/home/", f"/home/(?P<user>{_NAME})"),
    Rule("home", "/Users/", f"/Users/(?P<user>{_NAME})"),
    Rule("home", "\\Users\\", r"\\Users\\{1,2}(?P<user>[^\\/:*?\"<>|\s][^\\/:*?\"<>|\r\n]{0,62}(?=\\)|[\w.-]{1,64})"),
    Rule("home", "/home", rf"/(?:[\w.-]{{1,32}}/){{0,2}}home\d{{1,3}}/(?P<user>{_NAME})"),
    Rule("home", "/users/", rf"/(?:[\w.-]{{1,32}}/){{0,2}}users/(?P<user>{_NAME})"),
    Rule("user", "USER", rf"USER(?:NAME)?{_ASSIGNED}(?P<user>{_NAME})(?=[\s\"',;]|$)"),
    Rule("user", "LOGNAME", rf"LOGNAME{_ASSIGNED}(?P<user>{_NAME})(?=[\s\"',;]|$)"),
    Rule("prompt", "@", rf"(?<![\w.+/@:=-])(?P<user>{_NAME})@(?P<host>{_HOST})(?={_PROMPT_END})"),
    Rule("syslog", ":", rf"[A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d {_LOGGED}", sieve=r":\d\d "),
    Rule("syslog", "T", rf"\d{{4}}-\d\d-\d\dT[\d:.,+Z-]{{8,32}} {_LOGGED}", sieve=r"T\d\d:"),
    Rule("e-mail", "@", _MAIL, _public_mail),
    Rule("ssh target", "@", _SSH),
    _host("host", rf"host(?:[_ -]?name{_SEP}|[ ]{{2,16}}:[ ])"),
    _host("name", f"node[_ -]?name{_SEP}"),
    _host("addr", rf"(?:master|init)[_-]addr(?:{_SEP}|[ ]{{1,8}})"),
    _host("rdzv", rf"rdzv[_-]endpoint(?:{_SEP}|[ ]{{1,8}})"),
    Rule("kernel line", "Linux ", rf"Linux (?P<host>{_HOST}) \d{{1,3}}\.\d{{1,3}}\.\d{{1,5}}[\w.+~-]{{0,80}} #\d"),
    Rule("log prefix", "CCL", rf"(?<![\w.<\[:/-])(?P<host>{_HOST}){_PIDS}", sieve=_PIDS),
    Rule("private name", ".", rf"(?<![\w./-])(?P<host>{_LABELS}{_PRIVATE})(?![\w-]|\.\w)", _shared, sieve=_PRIVATE),
    Rule("address name", "ip-", r"(?P<host>ip-(?<![\w-]...)\d{1,3}(?:-\d{1,3}){3}(?:\.[A-Za-z0-9-]{1,63}){0,6})"),
    Rule("rendezvous", "]:", rf"\[(?P<host>{_HOST})\]:\d{{4,5}}(?![\d:.-])", _not_a_host),
    Rule("rendezvous", "://", rf"://(?:{_SCHEMES})(?:[^\s/@]{{1,255}}@)?(?P<host>{_HOST})"),
    Rule("uuid", "-", UUID, sieve="-....-....-....-"),
    Rule("mac", ":", MAC, sieve=":..:..:..:..:"),
    Rule("mac", "-", MAC, sieve="-..-..-..-..-"),
    Rule("ipv6", ":", IPV6, no_ipv6, folded=True, sieve=":(?::|[0-9a-f]{1,4}(?::[0-9a-f]{1,4}){5})"),
    Rule("ipv4", ".", IPV4, is_version, sieve=r"\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]"),
)
