"""The exit gate: every report and every stored capture passes it before it leaves.

It knows the forms of common secrets (credentials, addresses, e-mail), the places where a name stands (prompts, home
paths, `Hostname:`, log prefixes), both by the rows of `diag.forms`, and what the source says of itself (`Known`). A
stand-in takes the place of what a row names a secret, the rest of the match stays.

It cannot know a name that stands alone in a paste, a public name of a private host, or a credential with neither a
known form nor a telling name before it.

Time is linear in the text, and a rule is tried only where its needle is.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from diag.forms import FLAG_WORD, PEM, PUBLIC_HOSTS, RULES, Rule
from diag.standins import Standins, compiled
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
_STANDIN = r"<[a-z]{1,16}-[0-9a-f]{8,64}>|[*]{0,16}"


@dataclass(frozen=True)
class Known:
    """What a source knows of its own machine; empty for a paste."""

    hosts: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    homes: tuple[str, ...] = ()


NOTHING_KNOWN = Known()
TELLING = ("prompt", "home", "user", "ssh target", "syslog", "kernel line")
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
        swept = self._sweep(PEM, text, text) if PEM.needle in text else text
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
                secret = bool(compiled(FLAG_WORD).fullmatch(item.lower()))
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
            shared = secret.lower() in _COMMON or compiled(PUBLIC_HOSTS).fullmatch(secret.lower())
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
