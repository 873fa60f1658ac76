"""A stand-in is steady, keyed and injective: what was one stays one, what differed differs.

Every stand-in comes from HMAC-SHA-256 over the secret, so nothing of the secret can be read from it without the key,
and the same key gives the same stand-in in every process. Two secrets never share one within a `Standins`: where
digests meet, the later secret gets a longer or newly salted one (the only case that depends on the order of reading).

Shapes are kept where a reader or a parser relies on them:

* words: `<user-3fa9c1d2>`, `<host-…>`, `<token-…>`;
* IPv4: 10/8, 172.16/12, 192.168/16, 169.254/16 and 100.64/10 stay in their class, everything public moves to 240/4,
  which no host can have. The mapping keeps prefixes (two addresses that share n leading bits share n afterwards;
  Crypto-PAn), so subnets stay visible. Loopback, 0/8, multicast, 240/4 and netmasks stay as they are;
* IPv6: fe80::/10 and fc00::/7 keep their class, the rest moves to 2001:db8::/32; one /64 stays one /64;
* MAC addresses and UUIDs keep their form.

It cannot be idempotent on private IPv4 addresses: a mapping of a class into itself that is injective and idempotent is
the identity. A second pass therefore renames them again, safely and consistently. All other shapes carry a mark by
which a stand-in is known again, whatever the key, and left alone.

The second half knows addresses from versions, which are written alike: `is_version` reads the words around. Where
nothing tells, a private address counts as an address, a small public one (`12.6.3.3`) as a version.
"""

import hmac
import re
from collections.abc import Callable
from functools import cache
from itertools import count

compiled = cache(re.compile)  # on first use: to compile all patterns costs more than to import this

STANDIN = r"<[a-z]+-[0-9a-f]{8,64}>"

# How addresses and their kin are written; what is written so need not be one (`is_version`, `no_ipv6`).
_HEX = "[0-9a-fA-F]"
IPV6 = (
    r"(?P<ipv6>[23f0:](?:(?<![\w:.].)|(?<=gids.)|(?<=[g-z]:.)|(?<=[g-z][0-9a-f]:.)|(?<=[g-z][0-9a-f][0-9a-f]:.))[0-9a-f]{0,3}:(?=[0-9a-f:]{0,36}:)[0-9a-f:]{0,37}(?:[0-9a-f]|::))"
    r"(?![0-9a-z_]|:[0-9a-f:])"
)
IPV4 = (
    r"(?P<ipv4>[0-9](?<![A-Za-z0-9.].)[0-9]?[0-9]?\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}(?:/\d\d?(?![\d.]))?)"
    r"(?![0-9A-Za-z]|\.[0-9])"
)
UUID = rf"(?P<uuid>{_HEX}(?<![0-9A-Za-z].){_HEX}{{7}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}})(?![0-9A-Za-z])"
MAC = rf"(?P<mac>{_HEX}(?<![\w:.-].){_HEX}([:-])(?:{_HEX}{{2}}\2){{4}}{_HEX}{{2}})(?![\w:]|-\w)"

_CLASSES = ((0x0A000000, 8), (0xAC100000, 12), (0xC0A80000, 16), (0xA9FE0000, 16), (0x64400000, 10))
_PRIVATE_HEADS = {(169, 254), (192, 168), *((172, b) for b in range(16, 32)), *((100, b) for b in range(64, 128))}
_IPV6_MARK, _MAC_MARK, _UUID_MARK = 0xDB8, "02:d1:a9", "-0000-d1a9"

_ADDRESS_SUFFIX = r":\d{1,5}(?![\d.])|/\d{1,2}(?![\d./])|<\d+>"
_VERSION_SUFFIX = r"[-+](?!\d{1,3}\.\d)[A-Za-z0-9]|\.(?:so|post|dev|rc|tar|whl|zip|deb|rpm|run|el)\w*\b"
_VERSION_SIGN = r"[=<>~!]=\s*[\"']?$"
_LAST_NAME = r"([A-Za-z][\w.+-]*)[\"'\])]*\s*[:=|(,@]*\s*[\"'(\[<]*$"
_ADDRESS_NAME = r"""(?x)
    (?:^|[^a-z])(?:hosts?|host_?name|ips?|ipv4|ip_?addr|addr|addrs|address|addresses|inet|connect(?:ed|ing|ion)?|via
    |master|end_?point|server|nodes?|peer|gateway|name_?server|dns|listen(?:ing)?|bind|client|remote|local|src|dst|proxy
    |rdzv|workers?|head|url|route|ping|ssh|curl|reach|eth\d+|bond\d+|ib\d+|ens?\w+)(?:[^a-z]|$)"""
_VERSION_NAME = r"""(?x)
    (?:^|[^a-z])(?:versions?|ver|release|rev|build|driver|firmware|fw|v?bios|toolkit|runtime|kernel|package|compiler
    |sdk|patch|plugin|torch|gcc|python|cann|cu[a-z]{2,}\d*|[a-z]ccl|roc[a-z]+|hip[a-z]*|lib[a-z]+)(?:[^a-z]|$)"""
_VERSION_TALK = r"version|upgrad|updat|bump|instal"
_PACKAGE_ROW = r"[ \t]*[A-Za-z][\w.-]* +v?\d+(?:\.\d+){1,2}(?:[^.\d\n][^\n]*)?"


class Standins:
    """All stand-ins handed out under one key, so that no two secrets share one."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._owner: dict[str, str] = {}
        self._shapes: dict[str, Callable[[str, int], str]] = {
            "ipv4": self._ipv4,
            "ipv6": self._ipv6,
            "mac": self._mac,
            "uuid": self._uuid,
        }

    def make(self, kind: str, secret: str) -> str:
        """Give a secret's stand-in, or the text itself where it names no one (loopback)."""
        if compiled(STANDIN).fullmatch(secret):
            return secret
        one = secret.lower() if kind in self._shapes or kind == "host" else secret
        shape = self._shapes.get(kind)
        for salt in count():
            made = shape(one, salt) if shape else f"<{kind}-{self._digest(kind, one).hex()[: 8 + 4 * salt]}>"
            if made == one:
                return secret
            if self._owner.setdefault(made, f"{kind} {one}") == f"{kind} {one}":
                return made
        raise AssertionError("count() ended")

    def _digest(self, purpose: str, secret: str, salt: int = 0) -> bytes:
        return hmac.digest(self._key, f"{purpose}\0{salt}\0{secret}".encode("utf-8", "surrogatepass"), "sha256")

    def _ipv4(self, address: str, salt: int) -> str:
        dotted, _, length = address.partition("/")
        number = int.from_bytes(bytes(map(int, dotted.split("."))), "big")
        if number >> 24 in (0, 127) or number >> 28 >= 14:
            return address
        fixed = next((bits for net, bits in _CLASSES if (number ^ net) >> (32 - bits) == 0), 0)
        made = number
        if not fixed:
            fixed, octet = 8, 240 + self._digest("ipv4", str(number >> 24), salt)[0] % 15
            made = octet << 24 | number & 0xFFFFFF
        for bit in range(31 - fixed, -1, -1):
            made ^= (self._digest("ipv4", f"{number >> bit + 1:x}/{bit}", salt)[0] & 1) << bit
        host_bits = (1 << 32 - int(length)) - 1 if length else 0
        if not number & host_bits:
            made &= ~host_bits
        return ".".join(map(str, made.to_bytes(4, "big"))) + address[len(dotted) :]

    def _ipv6(self, address: str, salt: int) -> str:
        groups = ipv6_groups(address)
        if is_mapped(groups):
            inner = self.make("ipv4", ".".join(str(byte) for group in groups[6:] for byte in divmod(group, 256)))
            a, b, c, d = map(int, inner.split("."))
            return f"{address.rsplit(':', 2)[0]}:{a:02x}{b:02x}:{c:02x}{d:02x}"
        ours = groups[4] if groups[0] >> 6 == 0x3FA else groups[1]
        if ours == _IPV6_MARK:
            return address
        net = self._digest("ipv6 net", ":".join(f"{group:x}" for group in groups[:4]), salt)
        host = self._digest("ipv6", ":".join(f"{group:x}" for group in groups), salt)
        if groups[0] >> 6 == 0x3FA:
            return f"fe80::{_IPV6_MARK:x}:{_hex_groups(host[:6])}"
        return f"{'fd00' if groups[0] >> 9 == 0x7E else '2001'}:{_IPV6_MARK:x}:{_hex_groups(net[:4] + host[:8])}"

    def _mac(self, address: str, salt: int) -> str:
        plain = address.replace("-", ":")
        if plain.startswith(_MAC_MARK) or len(set(plain)) == 2:
            return address
        made = f"{_MAC_MARK}:{self._digest('mac', plain, salt)[:3].hex(':')}"
        return made if plain == address else made.replace(":", "-")

    def _uuid(self, uuid: str, salt: int) -> str:
        if uuid[18:].startswith(_UUID_MARK) or len(set(uuid)) == 2:
            return uuid
        made = self._digest("uuid", uuid, salt).hex()
        return f"{made[:8]}-{made[8:12]}-{made[12:16]}{_UUID_MARK}{made[16:24]}"


def ipv6_groups(address: str) -> tuple[int, ...]:
    """Read an IPv6 address as eight numbers; empty where the text is none."""
    left, gap, right = address.partition("::")
    before, after = [part.split(":") if part else [] for part in (left, right)]
    zeros = 8 - len(before) - len(after)
    if not all(0 < len(group) <= 4 for group in before + after) or (zeros < 1 if gap else zeros):
        return ()
    return tuple(int(group, 16) for group in before + ["0"] * zeros + after)


def no_ipv6(match: re.Match[str]) -> bool:
    """Tell what only looks like an address from one: times, PCI addresses, `a::b`, `x[2048::64]`."""
    groups = ipv6_groups(match[0])
    if not groups or not (
        groups[0] >> 13 == 1 or groups[0] >> 9 == 0x7E or groups[0] >> 6 == 0x3FA or is_mapped(groups)
    ):
        return True
    return match[0].replace(":", "").isdigit() and match[0].count(":") < 3


def is_mapped(groups: tuple[int, ...]) -> bool:
    """Say whether an IPv6 address wraps an IPv4 one, `::ffff:0a00:0117`."""
    return groups[:6] == (0, 0, 0, 0, 0, 0xFFFF)


def is_version(match: re.Match[str]) -> bool:
    """Decide by the words around whether four numbers are a version."""
    text, (start, end) = match.string, match.span()
    before = text[max(0, start - 64, text.rfind("\n", max(0, start - 64), start) + 1) : start].lower()
    quad = match[0]
    octets = quad.partition("/")[0].split(".")
    if any(int(octet) > 255 or (octet[0] == "0" and octet != "0") for octet in octets):
        return True
    if "/" in quad or compiled(_ADDRESS_SUFFIX).match(text, end) or before.endswith(("//", "@")):
        return False
    if compiled(_VERSION_SIGN).search(before):
        return True
    a, b, c, _ = map(int, octets)
    if (a, b) in _PRIVATE_HEADS:
        return False
    named = compiled(_LAST_NAME).search(before)
    name = named[1] if named else ""
    if compiled(_ADDRESS_NAME).search(name):
        return False
    small = a < 32 and b < 64 and c < 32 and a != 10
    if name in ("from", "to", "at"):
        return bool(compiled(_VERSION_TALK).search(before)) and (small or a == 10)
    if compiled(_VERSION_NAME).search(name) or compiled(_VERSION_SUFFIX).match(text, end):
        return True
    return small or (a == 10 and _in_package_list(text, start))


def _in_package_list(text: str, at: int) -> bool:
    """Say whether the line before or after is a row `name  1.2.3`, as in a list of packages."""
    begin = text.rfind("\n", max(0, at - 200), at) + 1
    above = text.rfind("\n", max(0, begin - 200), max(0, begin - 1)) + 1
    below = text.find("\n", at, at + 200) + 1
    rows = [text[above : begin - 1]] if begin else []
    rows += [text[below : below + 200].partition("\n")[0]] if below else []
    return bool(re.match(r"[ \t]*[A-Za-z][\w.-]* +$", text[begin:at])) and any(
        map(compiled(_PACKAGE_ROW).fullmatch, rows)
    )


def _hex_groups(digest: bytes) -> str:
    return ":".join(f"{int.from_bytes(digest[at : at + 2], 'big'):x}" for at in range(0, len(digest), 2))
