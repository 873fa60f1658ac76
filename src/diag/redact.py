"""The exit gate: every report and every stored capture passes it before it leaves.

It knows the forms of common secrets (credentials, addresses, e-mail), the places where a name stands (prompts, home
paths, `Hostname:`, log prefixes), and what the source says of itself (`Known`). One row of `RULES` is one such form or
place; the names of its groups say what kind of stand-in takes their place, the rest of the match stays.

It cannot know a name that stands alone in a paste, a public name of a private host, or a credential with neither a
known form nor a telling name before it.

Time is linear in the text: every repeat is bounded, or starts at a boundary; a rule is tried only where its needle is.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from diag.standins import IPV4, IPV6, MAC, UUID, Standins, compiled, is_version, no_ipv6
from diag.text import blocks

# Names that many machines share: no identity, and replacing them would harm words of the field.
_COMMON_WORDS = """
root user users home admin administrator ubuntu debian centos fedora rocky alpine ec2-user opc azureuser cloud
vagrant pi daemon nobody system public default shared guest operator service services app apps work worker workspace
runner jenkins gitlab github git ci build builder test tests tester testing dev devel develop developer dummy demo
cuda torch python conda mamba node server client host docker podman container kube ray mpi slurm spark hadoop
jovyan coder code opt data model models cache local localhost localdomain gpu cpu npu xpu tpu ai ml llm nlp lab
inference serve serving train training bench benchmark master main head login compute engine core rank none null
true false unknown name string str int optional self linux windows macos usr var etc proc sys srv mnt"""
_COMMON = frozenset(_COMMON_WORDS.split())
_PUBLIC_HOSTS = r"(?:[\w-]+\.)*(?:github|gitlab|bitbucket|huggingface|example|pytorch|python|docker)\.\w{2,3}"

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
class Known:
    """What a source knows of its own machine; empty for a paste."""

    hosts: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    homes: tuple[str, ...] = ()


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


NOTHING_KNOWN = Known()
TELLING = ("prompt", "home", "user", "ssh target", "syslog")
"""The rules that tell a name by its place; what they find is replaced wherever it stands."""


class Redactor:
    """Replaces secrets by steady stand-ins; one instance serves one document, its key gives the same in the next."""

    def __init__(self, key: bytes, known: Known = Known()) -> None:
        self._standins = Standins(key)
        self._rules = (*RULES, *_known_rules(known))
        self._memo: dict[tuple[str, str], str] = {}
        self._clean: set[str] = set()
        self._told: dict[tuple[str, str], str] = {}
        self._counts: Counter[str] = Counter()

    @property
    def counts(self) -> dict[str, int]:
        """How often each rule replaced something so far, never what."""
        return dict(self._counts)

    def learn(self, text: str) -> None:
        """Take note of the users and hosts that a text names in telling places, so that they go everywhere."""
        told: dict[str, set[str]] = {"user": set(), "host": set()}
        for rule in RULES:
            if rule.name in TELLING and rule.needle in text:
                for match in _matches(rule, text):
                    for group, name in match.groupdict().items():
                        told.setdefault(group.rstrip("23"), set()).add(name or "")
        if not any(told.values()):
            return
        known = {rule.needle for rule in self._rules}
        hosts = tuple(name for name in told["host"] if name.lower() not in known)
        users = tuple(name for name in told["user"] if name not in known)
        self._rules += tuple(_known_rules(Known(hosts, users)))
        self._clean.clear()

    def text(self, text: str) -> str:
        """Redact a text of any length; each line stays one."""
        self.learn(text)
        return self._redacted(text)

    def _redacted(self, text: str) -> str:
        if text in self._clean:
            return text
        # Blocks are long enough to spare calls, and short enough that a rare needle or letter costs little.
        swept = self._sweep(_PEM, text, text) if _PEM.needle in text else text
        swept = "".join(map(self._block, blocks(swept, 1 << 13)))
        if swept == text and len(text) < 1 << 10:
            self._clean.add(text)
        return swept

    def value(self, value: Any) -> Any:
        """Redact the strings of a JSON-like value; keys stay, and tell what kind of value follows."""
        self._told.clear()
        for leaf in dict.fromkeys(_leaves(value)):
            self.learn(leaf)
        return self._value(value, "")

    def _value(self, value: Any, key: str) -> Any:
        if isinstance(value, str):
            return self._told.get((key, value)) or self._told.setdefault((key, value), self._leaf(value, key))
        if isinstance(value, dict):
            return {name: self._value(item, name if isinstance(name, str) else "") for name, item in value.items()}
        if isinstance(value, (list, tuple)):
            items = list(self._items(value, key))
            if isinstance(value, list):
                return items
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        return value

    def _items(self, values: Sequence[Any], key: str) -> Iterator[Any]:
        """The items of a list; of the words of a command, those behind a flag that takes a secret are one."""
        secret = False
        for item in values:
            if isinstance(item, str) and item.startswith("-"):
                secret = bool(compiled(_FLAG_WORD).fullmatch(item.lower()))
            elif secret and isinstance(item, str) and not compiled(_STANDIN).fullmatch(item):
                yield self._made("token", item)
                continue
            yield self._value(item, key)

    def _leaf(self, leaf: str, key: str) -> str:
        """Read a string behind its key, so that a version stays one and a bare password is seen."""
        if not key or "\n" in key:
            return self._redacted(leaf)
        opening = f'{key}: "'
        quoted = self._redacted(f'{opening}{leaf}"') if '"' not in leaf else ""
        if quoted.startswith(opening) and quoted.endswith('"'):
            return quoted[len(opening) : -1]
        return self._redacted(leaf)

    def _block(self, block: str) -> str:
        folded = _fold(block)
        for rule in self._rules:
            seen = folded if rule.folded else block
            if rule.needle in seen and (swept := self._sweep(rule, block, seen)) is not block:
                block, folded = swept, _fold(swept)
        return block

    def _sweep(self, rule: Rule, text: str, seen: str) -> str:
        pieces: list[str] = []
        at = 0
        for match in _matches(rule, seen):
            if rule.keeps(match):
                continue
            for group in match.re.groupindex:
                start, end = match.span(group)
                made = self._made(group.rstrip("23"), text[start:end]) if start >= at and end > start else ""
                if made:
                    pieces += text[at:start], made, "\n" * text.count("\n", start, end)
                    at = end
                    self._counts[rule.name] += 1
        return "".join(pieces) + text[at:] if pieces else text

    def _made(self, kind: str, secret: str) -> str:
        """Give the stand-in, or nothing where the text names no one."""
        made = self._memo.get((kind, secret))
        if made is None:
            shared = secret.lower() in _COMMON or compiled(_PUBLIC_HOSTS).fullmatch(secret.lower())
            made = secret if shared and kind in ("user", "host") else self._standins.make(kind, secret)
            made = self._memo[kind, secret] = "" if made == secret else made
        return made


def _leaves(value: Any, key: str = "") -> Iterator[str]:
    """Yield the strings of a JSON-like value, each behind its key as it is read."""
    if isinstance(value, str):
        yield f'{key}: "{value}"' if key else value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _leaves(item, name if isinstance(name, str) else "")
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item, key)


def _fold(text: str) -> str:
    # The one letter whose lower case is longer would shift all positions after it.
    return text.replace("İ", "I").lower()


def _matches(rule: Rule, text: str) -> Iterator[re.Match[str]]:
    """Read only the lines in which the rule can match."""
    search, find = compiled(rule.sieve or re.escape(rule.needle)).search, compiled(rule.pattern).finditer
    end = 0
    while hit := search(text, end):
        begin = max(end, text.rfind("\n", end, hit.start()))
        end = text.find("\n", hit.end())
        end = len(text) if end < 0 else end
        yield from find(text, begin, end)


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
    return user in ("git", "hg", "noreply", "no-reply") and bool(compiled(_PUBLIC_HOSTS).fullmatch(host))


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
_FLAG_WORD = f"--?{_FLAG}"
_STANDIN = r"<[a-z]{1,16}-[0-9a-f]{8,64}>|[*]{0,16}"
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

_PEM = Rule(
    "private key",
    "PRIVATE KEY-----",
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----(?:\\n|\s){0,8}(?P<key>[^\s\\-](?:(?!-----)[\s\S]){0,16384})",
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


def _known_rules(known: Known) -> Iterator[Rule]:
    """Turn what a source knows of itself into rules; names that many machines share make none."""
    for home in sorted(set(known.homes), key=len, reverse=True):
        # A folder of the root (`/opt`, `/root`) names nobody.
        own = home.startswith("/") and "/" in home.strip("/")
        if own and not home.startswith(("/home/", "/Users/")):
            yield Rule("known home", home.rstrip("/"), rf"(?<![\w.-])(?P<home>{re.escape(home.rstrip('/'))})(?![\w.-])")
    hosts = {part for host in known.hosts for part in (host.lower(), host.lower().partition(".")[0]) if _telling(part)}
    for host in sorted(hosts, key=len, reverse=True):
        domain = "" if "." in host else r"(?:(?:\.[a-z0-9-]{1,63}){2,8})?"
        yield Rule("known host", host, rf"(?<![a-z0-9<])(?P<host>{re.escape(host)}{domain})(?![a-z0-9])", folded=True)
    for user in sorted(filter(_telling, set(known.users)), key=len, reverse=True):
        yield Rule("known user", user, rf"(?<![\w.<-])(?P<user>{re.escape(user)})(?![\w-]|\.\w)")


def _telling(name: str) -> bool:
    return len(name) > 2 and name.lower() not in _COMMON and not re.fullmatch(r"[\d.]+", name)
