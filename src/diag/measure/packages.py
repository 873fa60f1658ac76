"""What an interpreter has installed, read from its own path without importing any of it.

`packages.py [NAME …]` prints `diag/packages/1`: the interpreter, its C library, every distribution found on `sys.path`
(the first holder of a name is the one that is imported), what torch's own `version.py` says, and what is not as an
installer leaves it (`faults`). Of the distributions named it tells what they ask for, too, and looks for their modules.
Not told is what belongs to an extra, or has a marker that does not hold here or cannot be read.
"""

from __future__ import annotations

import json
import os
import re
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

if __name__ == "__main__":
    sys.path.pop(0)

SUFFIXES = (".dist-info", ".egg-info")
TORCH_WORDS = ("__version__", "debug", "cuda", "hip", "xpu", "git_version")
HEAD = 262144
"""Bytes of metadata that are read: its fields come before the description."""
FIELD = re.compile(r"^(Name|Version|Requires-Dist|Requires-Python): *(.*)$", re.MULTILINE)
REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.\-]*)\s*(?:\[[^\]]*\])?\s*\(?([^;()@]*)\)?\s*(?:;(.*))?$", re.DOTALL)
TAG = re.compile(r"^Tag: *(\S+-\S+-\S+)", re.MULTILINE)
WORD = re.compile(r"\s*(\(|\)|'[^']*'|\"[^\"]*\"|[\w.]+|[<>=!~]+)")
NUMBERS = re.compile(r"\d+(\.\d+)*$")


def distributions(folder: str, faults: list[dict[str, str]]) -> Iterator[dict[str, Any]]:
    """Each distribution in one folder, from its `*.dist-info` or `*.egg-info`; what is wrong is added to `faults`."""
    names = listed(folder)
    versions: dict[str, str] = {}
    for entry in names:
        stem, suffix = os.path.splitext(entry)
        if suffix not in SUFFIXES:
            continue
        if entry.startswith("~"):
            faults.append({"name": stem.partition("-")[0], "problem": "leftover", "location": folder})
            continue
        told = distribution(folder, entry)
        name = canonical(told["name"])
        problem = wrong(folder, entry, names) if suffix == SUFFIXES[0] and name in asked() else ""
        if suffix == SUFFIXES[0]:
            if not os.path.isfile(os.path.join(folder, entry, "METADATA")):
                problem = "no-metadata"
            elif versions.setdefault(name, told["version"]) != told["version"]:
                problem = "twice"
        if problem:
            faults.append({"name": name, "version": told["version"], "problem": problem, "location": folder})
        yield told


def distribution(folder: str, entry: str) -> dict[str, Any]:
    """One distribution: its name and version, who installed it, its wheel's tag where that is not for any machine."""
    path = os.path.join(folder, entry)
    name, _, rest = os.path.splitext(entry)[0].partition("-")
    version = rest.split("-")[0]
    wanted = canonical(name) in asked()
    fields = {} if version and not wanted else headers(path)
    if not version:
        name, version = fields.get("Name", [""])[0], fields.get("Version", [""])[0]
    told: dict[str, Any] = {"name": name, "version": version, "location": folder}
    told["installer"] = start(os.path.join(path, "INSTALLER"), 100).strip()
    tags = TAG.findall(start(os.path.join(path, "WHEEL"), 4096))
    if tags and not all(tag.endswith("-any") for tag in tags):
        told["tag"] = merged(tags)
    if wanted:
        told["requires"] = list(requirements(fields))
    return told


def wrong(folder: str, entry: str, names: list[str]) -> str:
    """`unimportable` where the modules that a distribution brings are not beside it, although it is not editable."""
    path = os.path.join(folder, entry)
    modules = start(os.path.join(path, "top_level.txt"), 4096).split()
    if not modules or '"editable":true' in start(os.path.join(path, "direct_url.json"), 4096).replace(" ", ""):
        return ""
    there = {name.partition(".")[0] for name in names}
    if there.isdisjoint(modules) and not any(
        name.endswith((".pth", ".egg-link")) and modules[0] in name for name in names
    ):
        return "unimportable"
    return ""


def asked() -> set[str]:
    """The distributions whose requirements are told, in PEP 503 form."""
    return set(sys.argv[1:])


def listed(folder: str) -> list[str]:
    """The names in a folder in their order, none where it cannot be read."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def canonical(name: str) -> str:
    """A name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def start(path: str, most: int) -> str:
    """The first bytes of a file as text, empty where there is none; a file object would take twice as long."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return ""
    try:
        return os.read(descriptor, most).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(descriptor)


def headers(path: str) -> dict[str, list[str]]:
    """The fields of a distribution's metadata that matter here, each with all its values."""
    found: dict[str, list[str]] = {}
    for candidate in (os.path.join(path, "METADATA"), os.path.join(path, "PKG-INFO"), path):
        text = start(candidate, HEAD)
        if text:
            for name, value in FIELD.findall(text.partition("\n\n")[0]):
                found.setdefault(name, []).append(value.strip())
            break
    return found


def merged(tags: list[str]) -> str:
    """Several tags as the file name of a wheel joins them."""
    parts = [tag.split("-", 2) for tag in tags]
    return "-".join(".".join(dict.fromkeys(one[place] for one in parts)) for place in range(3))


def requirements(fields: dict[str, list[str]]) -> Iterator[list[str]]:
    """What a distribution asks for here, as pairs of name and specifier; the interpreter is `python`."""
    for value in fields.get("Requires-Python", ())[:1]:
        yield ["python", value.replace(" ", "")]
    for value in fields.get("Requires-Dist", ()):
        found = REQUIREMENT.match(value)
        if found and (not found.group(3) or holds(found.group(3))):
            yield [canonical(found.group(1)), found.group(2).replace(" ", "")]


def holds(marker: str) -> bool | None:
    """Whether a marker of PEP 508 holds here; None where it cannot be told."""
    words = WORD.findall(marker)
    if WORD.sub("", marker).strip() or "extra" in words:
        return None
    try:
        value, rest = either(words)
    except (IndexError, ValueError):
        return None
    return None if rest else value


def either(words: list[str]) -> tuple[bool | None, list[str]]:
    """What is joined by `or`, and the words after it: unknown where none holds and one is unknown."""
    value, words = both(words)
    while words[:1] == ["or"]:
        other, words = both(words[1:])
        value = True if value or other else None if None in (value, other) else False
    return value, words


def both(words: list[str]) -> tuple[bool | None, list[str]]:
    """What is joined by `and`, and the words after it: unknown where none fails and one is unknown."""
    value, words = compared(words)
    while words[:1] == ["and"]:
        other, words = compared(words[1:])
        value = False if False in (value, other) else None if None in (value, other) else True
    return value, words


def compared(words: list[str]) -> tuple[bool | None, list[str]]:
    """One comparison, or what stands in parentheses, and the words after it."""
    if words[0] != "(":
        sign = 2 if words[1] == "not" else 1
        return comparison(words[0], " ".join(words[1 : sign + 1]), words[sign + 1]), words[sign + 2 :]
    value, words = either(words[1:])
    if words[0] != ")":
        raise ValueError(words)
    return value, words[1:]


def comparison(left: str, sign: str, right: str) -> bool | None:
    """Whether two words compare so."""
    one, other = (word[1:-1] if word[0] in "'\"" else environment().get(word) for word in (left, right))
    if one is None or other is None:
        return None
    if sign in ("in", "not in"):
        return (one in other) is (sign == "in")
    if "python" not in left + right or "implementation" in left + right:
        return {"==": one == other, "!=": one != other}.get(sign)
    if not NUMBERS.match(one) or not NUMBERS.match(other):
        return None
    first, second = padded(one, other)
    signs = {"<": first < second, ">": first > second, "<=": first <= second, ">=": first >= second}
    return {**signs, "==": first == second, "!=": first != second}.get(sign)


def padded(one: str, other: str) -> list[list[int]]:
    """Two versions as lists of numbers of the same length."""
    numbers = [[int(part) for part in word.split(".")] for word in (one, other)]
    width = max(map(len, numbers))
    return [parts + [0] * (width - len(parts)) for parts in numbers]


def environment() -> dict[str, str]:
    """What markers may ask of this interpreter and this machine."""
    system, implementation = os.uname(), sys.implementation.name
    return {
        "python_version": ".".join(map(str, sys.version_info[:2])),
        "python_full_version": ".".join(map(str, sys.version_info[:3])),
        "os_name": os.name,
        "sys_platform": sys.platform,
        "platform_system": system.sysname,
        "platform_machine": system.machine,
        "implementation_name": implementation,
        "platform_python_implementation": {"cpython": "CPython", "pypy": "PyPy"}.get(implementation, ""),
    }


def torch_words(folders: list[str]) -> dict[str, Any] | None:
    """What `torch/version.py` assigns, from the first torch on the path; None without one."""
    for folder in folders:
        path = os.path.join(folder, "torch", "version.py")
        if not os.path.isfile(path):
            continue
        words: dict[str, Any] = {}
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                exec(compile(file.read(65536), path, "exec"), words)
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"}
        return {name: words[name] for name in TORCH_WORDS if isinstance(words.get(name, 0), (str, bool, type(None)))}
    return None


def libc() -> str:
    """The C library as `glibc-2.36`, `musl` where it is that, empty where the system does not say."""
    try:
        told = (os.confstr("CS_GNU_LIBC_VERSION") or "").replace(" ", "-")
    except (ValueError, OSError, AttributeError):
        told = ""
    return told or ("musl" if any(name.startswith("ld-musl-") for name in listed("/lib")) else "")


def main() -> None:
    """Print the document."""
    folders = list(dict.fromkeys(path for path in sys.path if path and os.path.isdir(path)))
    system = os.uname()
    faults: list[dict[str, str]] = []
    document = {
        "schema": "diag/packages/1",
        "python": ".".join(map(str, sys.version_info[:3])),
        "executable": sys.executable,
        "prefix": sys.prefix,
        "libc": libc(),
        "kernel": system.release,
        "machine": system.machine,
        "path": folders,
        "torch": torch_words(folders),
        "packages": [one for folder in folders for one in distributions(folder, faults)],
        "faults": faults,
    }
    print(json.dumps(document))


if __name__ == "__main__":
    main()
