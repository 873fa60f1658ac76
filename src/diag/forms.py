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
_EVERYWHERE = ("docker.internal", "metadata.google.internal", "containers.internal", "localhost.localdomain")
_CLUSTER = ("svc.cluster.local", "kubernetes.default.svc.cluster.local")
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


def _weak_number(match: re.Match[str]) -> bool:
    return bool(compiled(_NUMBER).fullmatch(_value_of(match).lower())) or _weak(match)


def _weak_word(match: re.Match[str]) -> bool:
    """Say whether what stands behind the name of a variable is a word of a sentence or a number."""
    return _weak_number(match) or not (match[0].startswith(("setenv", "export")) or _has_digit(_value_of(match)))


def _no_figure(match: re.Match[str]) -> bool:
    return not _has_digit(_value_of(match))


def _not_a_host(match: re.Match[str]) -> bool:
    """Keep code (`hostname = socket.gethostname()`), the name itself (`hostname=hostname`) and log prefixes."""
    value = _value_of(match).lower()
    return _is_code(match) or match[0].lower().startswith(value) or bool(compiled(_NO_HOST).fullmatch(value))


def _no_login(match: re.Match[str]) -> bool:
    """Say whether `-u a:b` names an account by numbers, as `docker run` takes it."""
    value = _value_of(match)
    return (
        value.isdigit()
        or value.startswith("$")
        or not (match[0].startswith("curl") or _has_digit(value))
        or _weak(match)
    )


def _path(match: re.Match[str]) -> bool:
    """Say whether `PWD` is the working directory."""
    return bool(compiled(r"[/~.\\$]|[a-z]:$|[a-z]:[\\/]").match(_value_of(match).lower())) or _weak(match)


def _no_serial(match: re.Match[str]) -> bool:
    """Say whether it has too few figures for a serial number, and is no address of eight bytes."""
    value, figures = _value_of(match).lower(), sum(map(str.isdigit, _value_of(match)))
    named = compiled(r"num|tag").search(match[0].lower())
    few = not figures if named else figures < 4 or len(value) < 8
    return set(value) <= {*"0x-"} or (few and not compiled(r"[0-9a-f]{2}(?:-[0-9a-f]{2}){7}").fullmatch(value))


def _no_key_body(match: re.Match[str]) -> bool:
    """Say whether letters and figures are no BASE64: a digest, a name, a path."""
    value = _value_of(match)
    changes = len(compiled(r"[A-Z]+|[a-z]+|[0-9]+").findall(value))
    return (
        changes < len(value) * 2 // 5 or value in (value.upper(), value.lower()) or value.count("/") > len(value) // 12
    )


def _no_octets(match: re.Match[str]) -> bool:
    """Say whether four numbers between dashes are no address: too large, all small, or of a file."""
    octets = list(map(int, re.findall(r"\d+", match[0])[-4:]))
    return max(octets) > 255 or max(octets) < 10 or match[0].endswith((".gz", ".zip", ".whl", ".txt", ".log"))


def _shared(match: re.Match[str]) -> bool:
    """Say whether a private name is that of a Python module, or one that all machines have."""
    before = match.string[max(0, match.start() - 16) : match.start()]
    name = match[0].lower()
    return (
        name.endswith(_EVERYWHERE)
        or name in _CLUSTER
        or _is_code(match)
        or bool(compiled(_MODULE_FOLLOWS).search(before))
    )


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
_SECRET = r"(?:token|secret|passw(?:or)?d|passphrase|(?:api|access|secret|private)[_-]?key)(?:[_-](?:id|base|value))?"
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
_BODY = "[A-Za-z0-9+/]{60}"
_PIDS = r":[0-9]{1,8}:[0-9]{1,8} \[[0-9]"
_URL_PART = r"[^\s/:@<\"'$\{]{1,255}"
_ASSIGNED = r"""(?:=["']?|["']?:[ ]?["'])"""
_NAME = r"[A-Za-z0-9_](?:[\w.-]{0,62}\w)?"
_HOST = r"[A-Za-z0-9](?!\d{0,2}(?:\.\d{1,3}){3}(?![\w.]))(?:[\w.-]{0,251}\w)?"
_MAIL = r"(?<![\w.+/@=-])(?P<email>\w[\w.+-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24})(?![\w(\[=])"
_SSH = rf"\b(?:ssh|scp|sftp|rsync)[ \t][^\n@]{{0,99}}?(?<![\w.+-])(?P<user>{_NAME})@(?P<host>{_HOST})"
# A host has a lower-case letter somewhere: `INFO` behind a time stamp is a level.
_LOGGED = rf"(?![A-Z]+ )(?P<host>{_HOST}) [\w./()-]{{1,64}}(?:\[\d{{1,9}}\])?: "
_PRIVATE, _LOCAL = r"\.(?:internal|intranet|corp|lan|localnet|localdomain|home\.arpa|priv)", r"\.(?:local|home|private)"
_LABELS = r"[A-Za-z0-9](?:[\w-]{0,62})(?:\.[A-Za-z0-9][\w-]{0,62}){0,5}"
_BEGINS, _ENDS = r"(?:(?<![\w./-])|(?<=//))", r"(?![\w-]|\.\w)"
# `threading.local` is a class: a host of that domain has a figure, a dash or a further label.
_HOSTLIKE = r"(?=[\w.]{0,128}?(?:[\d-]|\.[\w-]{1,63}\.))"
_QUAD, _DASHED = r"\d{1,3}(?:-\d{1,3}){3}(?![\w-])", "ip|ec2|host|node|vm|server|worker|compute|pod|instance"
_PROMPT_END = r"(?::[~/]|[ \t](?:~[^\s\]]{0,255}[ \t][#$%]|[^\s\]]{1,255}\][#$])|[#$>%](?:\s|$))"
_SCHEMES = "|".join(f"(?<={scheme}://)" for scheme in ("tcp", "grpc", "gloo", "etcd", "ray", "redis", "nfs", "ssh"))
_SCHEMES += r"|(?:(?<=http://)|(?<=https://))(?=[A-Za-z][\w-]{0,62}:\d)"
_PREFIXES = {
    "github_pat_": r"\w{12,255}",
    "glpat-": r"[\w.-]{12,255}",
    "nvapi-": r"[\w-]{16,255}",
    "AIza": r"[\w-]{30,64}",
    "ya29.": r"[\w.-]{16,2048}",
    "dckr_pat_": r"[\w-]{16,255}",
    "npm_": r"[A-Za-z0-9]{30,255}",
    "pypi-": r"AgE[\w-]{12,2048}",
    "hvs.": r"[\w-]{20,255}",
    "gsk_": r"[A-Za-z0-9]{20,255}",
    "r8_": r"[A-Za-z0-9]{30,255}",
    "xai-": r"[A-Za-z0-9]{30,255}",
    "LTAI": r"[A-Za-z0-9]{12,32}(?!\w)",
    "AKID": r"[A-Za-z0-9]{12,40}(?!\w)",
    "AKIA": r"[A-Z0-9]{12,32}(?!\w)",
    "ASIA": r"[A-Z0-9]{12,32}(?!\w)",
}
"""What the keys of one service begin with, and what follows in each."""

PEM = Rule(
    "private key",
    "PRIVATE KEY",
    r"BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:\\{1,4}[nr]|\s){0,8}"
    r"(?P<key>[^\s\\-](?:(?:(?!-----)[\s\S]){0,16384}[^\s\\-])?)",
    sieve=r"PRIVATE KEY(?: BLOCK)?-----[\s\S]*",
)


def _named(name: str, needle: str, stem: str, keeps: Callable[[re.Match[str]], bool] = _weak) -> Rule:
    return Rule(name, needle, stem + _SEP + _VALUE, keeps, folded=True)


def _prefixed(start: str, rest: str) -> Rule:
    return Rule("service key", start, rf"(?P<token>{re.escape(start)}(?<![\w-]{'.' * len(start)}){rest})")


def _spaced(ending: str) -> Rule:
    name = rf"(?:(?:setenv|set|export) )?(?<!\w)\w{{0,64}}{ending}"
    value = r"[ \t|]{1,8}(?P<token>[^\s\"'=|;&:,()]{4,4096})(?![=(:])"
    return Rule("named value", ending, name + value, _weak_word, sieve=rf"{ending}[ \t|]")


def _host(needle: str, place: str) -> Rule:
    return Rule("host name", needle, rf"{place}[\"']?(?P<host>{_HOST})(?![\w-])", _not_a_host, folded=True)


RULES: tuple[Rule, ...] = (
    Rule("hub token", "hf_", r"(?P<token>hf_(?<!\w...)(?:(?=[A-Za-z]{0,40}\d)|(?=[A-Za-z]{20}))[A-Za-z0-9]{8,128})"),
    Rule("forge token", "gh", r"(?P<token>gh[pousr]_(?<!\w....)[A-Za-z0-9]{12,255})"),
    *(_prefixed(start, rest) for start, rest in _PREFIXES.items()),
    Rule("service key", "sk-", r"(?P<token>sk-(?<![\w-]...)(?=[A-Za-z_-]{0,64}\d)[\w-]{12,255})"),
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
    Rule(
        "login",
        "-u",
        r"(?:curl\b[^\n]{0,999}?[ \t]|(?<![^\n])[ \t]{0,32})(?:-u[ \t]?|--(?:proxy-)?user[= \t])[\"']?"
        r"(?P<user>[^\s:\"'/]{1,256}):(?P<token>[^\s\"']{1,256})",
        _no_login,
    ),
    Rule("login", "password", r"login[ \t]{1,8}(?P<user>\S{1,128})[ \t]{1,8}password[ \t]{1,8}(?P<token>\S{1,256})"),
    _named("named token", "token", "token", _weak_token),
    _named("password", "pass", "pass(?:w(?:or)?d|phrase)"),
    Rule("password", "pwd", rf"(?<![a-z])pwd(?:[\"']?[ ]?=[ ]?|[\"']:[ ]?){_VALUE}", _path, folded=True),
    Rule(
        "password",
        "pass",
        r"pass(?:word|wd|phrase) (?:is|was) [\"']?(?P<token>[^\s\"',;]{4,256})",
        _no_figure,
        folded=True,
    ),
    Rule(
        "named value",
        "value",
        rf"name[\"']?[ ]?[:=][ ]?[\"']?[\w.-]{{0,64}}{_SECRET}[\"']?[ ]{{0,8}},?\s{{1,64}}"
        r"[\"']?value[\"']?[ ]{0,4}[:=][ ]{0,4}[\"']?(?P<token>[^\s\"',}<>]{1,4096})",
        _weak_number,
        folded=True,
        sieve=r"name[\"']?[ ]?[:=][^\n]{1,128}\n?[^\n]{0,64}value",
    ),
    *map(_spaced, ("TOKEN", "SECRET", "PASSWORD", "API_KEY", "ACCESS_KEY", "SECRET_KEY")),
    _named("named secret", "secret", "secret(?:[_-]?(?:access|key|id|base|value)){0,3}"),
    _named("named key", "key", f"key(?:{_KEY})(?:[_-]?id)?"),
    Rule(
        "named key",
        "key ",
        r"(?:api|access|secret|license)[ _-]key[ \t]{1,8}(?P<token>[\w-]{16,255})",
        _no_figure,
        folded=True,
    ),
    Rule(
        "public key",
        "AAAA",
        rf"(?:ssh|ecdsa|sk)-[\w.@-]{{3,48}} (?P<key>AAAA[\w+/=]{{12,8192}})(?: (?P<user>{_NAME})@(?P<host>{_HOST}))?",
    ),
    Rule("key body", "", r"(?<![\w+/.-])(?P<key>[A-Za-z0-9+/]{60,8192}={0,2})(?![\w+/=.-])", _no_key_body, sieve=_BODY),
    Rule("home", "/home/", f"/home/(?P<user>{_NAME})"),
    Rule("home", "/Users/", f"/Users/(?P<user>{_NAME})"),
    Rule("home", "\\Users\\", r"\\Users\\{1,2}(?P<user>[^\\/:*?\"<>|\s][^\\/:*?\"<>|\r\n]{0,62}(?=\\)|[\w.-]{1,64})"),
    Rule("home", "/home", rf"/(?:[\w.-]{{1,32}}/){{0,2}}home\d{{1,3}}/(?P<user>{_NAME})"),
    Rule("home", "/users/", rf"/(?:[\w.-]{{1,32}}/){{0,2}}users/(?P<user>{_NAME})"),
    Rule("user", "USER", rf"USER(?:NAME)?{_ASSIGNED}(?P<user>{_NAME})(?=[\s\"',;]|$)"),
    Rule("user", "uid=", rf"\buid=\d{{1,10}}\((?P<user>{_NAME})\)"),
    Rule("user", "sudo: ", rf"sudo: {{1,16}}(?P<user>{_NAME}) : "),
    Rule("user", " for ", rf"(?:Accepted|Failed) [\w/-]{{1,32}} for (?:invalid user )?(?P<user>{_NAME}) from "),
    Rule("user", " for user ", rf"session (?:opened|closed) for user (?P<user>{_NAME})"),
    Rule("user name", "username", rf"username{_SEP}[\"']?(?P<user>{_NAME})(?![\w-])", _weak, folded=True),
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
    Rule("private name", ".", rf"{_BEGINS}(?P<host>{_LABELS}{_PRIVATE}){_ENDS}", _shared, sieve=_PRIVATE),
    Rule("private name", ".", rf"{_BEGINS}(?P<host>{_HOSTLIKE}{_LABELS}{_LOCAL}){_ENDS}", _shared, sieve=_LOCAL),
    Rule(
        "address name",
        "-",
        rf"(?<![\w.-])(?P<host>(?:(?:{_DASHED})-{_QUAD}|{_QUAD}(?=\.[A-Za-z][\w-]{{0,62}}\.[A-Za-z]))"
        r"(?:\.[A-Za-z][A-Za-z0-9-]{0,62}){0,6})",
        _no_octets,
        sieve="-[0-9]{1,3}-[0-9]{1,3}-[0-9]",
    ),
    Rule(
        "hardware name",
        "x",
        r"(?<![A-Za-z0-9])(?P<host>(?:en|wl|ww)x[0-9a-f]{12})(?![0-9A-Za-z])",
        sieve="x[0-9a-f]{12}",
    ),
    Rule(
        "serial number",
        "serial",
        rf"serial(?:[ _-]?(?:number|num|no|short))?\.?(?:[ \t]{{0,48}}{_SEP}|(?<=number)[ ]{{1,4}})[\"']?"
        r"(?P<serial>[a-z0-9][\w-]{4,63})(?![\w/.])",
        _no_serial,
        folded=True,
    ),
    Rule(
        "serial number",
        "asset",
        rf"asset[ _-]?tag{_SEP}[\"']?(?P<serial>[a-z0-9][\w-]{{3,63}})",
        _no_serial,
        folded=True,
    ),
    Rule(
        "serial number",
        "unique",
        rf"unique[ _-]?id[ \t]{{0,48}}{_SEP}[\"']?(?P<serial>(?:0x)?[0-9a-f]{{12,16}})(?!\w)",
        _no_serial,
        folded=True,
    ),
    Rule("rendezvous", "]:", rf"\[(?P<host>{_HOST})\]:\d{{4,5}}(?![\d:.-])", _not_a_host),
    Rule("rendezvous", "://", rf"://(?:{_SCHEMES})(?:[^\s/@]{{1,255}}@)?(?P<host>{_HOST})"),
    Rule("uuid", "-", UUID, sieve="-....-....-....-"),
    Rule("mac", ":", MAC, sieve=":..:..:..:..:"),
    Rule("mac", "-", MAC, sieve="-..-..-..-..-"),
    Rule("ipv6", ":", IPV6, no_ipv6, folded=True, sieve=":(?::|[0-9a-f]{1,4}(?::[0-9a-f]{1,4}){5})"),
    Rule("ipv4", ".", IPV4, is_version, sieve=r"\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]"),
)
