"""A bundle: captures in one archive, to be examined elsewhere by whatever rules exist then.

Members are read one by one and never extracted to disk. Only `manifest.json` and regular files below `captures/` count;
whatever else an archive holds, and whatever of it is damaged, is named in `broken` and not followed.
"""

from __future__ import annotations

import importlib
import io
import tarfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

import msgspec
from msgspec import Struct, field
from msgspec.structs import asdict, replace

from diag import text
from diag.capture import Capture, Held, Taking
from diag.errors import DiagError
from diag.finding import Broken
from diag.output import written
from diag.probe import Probe
from diag.redact import NOTHING_KNOWN, Known, Redactor
from diag.report import SourceKind
from diag.text import printable

MEMBER_CAP = 64 * 2**20
TOTAL_CAP = 256 * 2**20
MEMBERS_CAP = 10_000
ZIP = b"PK"
STREAM_CAP = TOTAL_CAP + 64 * 2**20
ENDS_CAP = 1_000
"""Times that the end of a stream is read; its reader passes over a member in pieces, however many its header claims."""
PACKINGS = (
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bz2"),
    (b"\xfd7zXZ", "lzma"),
    (b"\x28\xb5\x2f\xfd", "compression.zstd"),
)
"""How packed files begin, and what unpacks them; zstd Python itself does from 3.14 on."""
OURS = "diag/bundle/"
"""How the schema of a manifest begins that is a bundle's."""
DAMAGED = (tarfile.TarError, EOFError, OSError, ValueError, OverflowError)


class NoBundle(DiagError):
    """An archive holds nothing that a bundle does."""


class Member(Struct, frozen=True, kw_only=True):
    """One capture in a bundle: where its text lies, and the capture without it."""

    path: str
    sha256: str
    capture: Taking


class Manifest(Struct, frozen=True, kw_only=True):
    """What a bundle holds, taken where and when, and how many values of which kind the exit gate replaced.

    `redacted` is None where the bundle did not pass the gate.
    """

    schema_: Literal["diag/bundle/1"] = field(name="schema")
    tool: str
    source: str
    taken_at: str
    members: tuple[Member, ...] = ()
    redacted: dict[str, int] | None = None


def write(
    path: Path, captures: Iterable[Capture], gate: Redactor | None, *, tool: str, source: str, taken_at: str
) -> Manifest:
    """Write captures to an archive, all text through the exit gate; an existing file is replaced at the end, whole."""
    redact = gate.text if gate else str
    with written(path) as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
        members = tuple(_add(archive, number, one, redact) for number, one in enumerate(captures, 1))
        manifest = Manifest(
            schema_="diag/bundle/1",
            tool=tool,
            source=redact(source),
            taken_at=taken_at,
            members=members,
            redacted=gate.counts if gate else None,
        )
        _put(archive, "manifest.json", msgspec.json.format(msgspec.json.encode(manifest), indent=1).decode())
    return manifest


def _add(archive: tarfile.TarFile, number: int, capture: Capture, redact: Callable[[str], str]) -> Member:
    safe = {name: redact(getattr(capture, name)) for name in ("command", "error", "stderr", "scope")}
    kept = replace(capture, body=Held(redact(capture.content)), **safe)
    path = f"captures/{number:04d}.txt"
    _put(archive, path, kept.content)
    return Member(path=path, sha256=kept.sha256(), capture=kept.taking)


def _put(archive: tarfile.TarFile, name: str, content: str) -> None:
    raw = content.encode("utf-8", "surrogatepass")
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(raw), 0o644
    archive.addfile(member, io.BytesIO(raw))


@dataclass(frozen=True)
class Bundle:
    """An opened bundle: its captures, and what of it was refused or damaged."""

    name: str
    taken: tuple[Capture, ...]
    taken_at: str = ""
    broken: tuple[Broken, ...] = ()
    scope: str = ""
    kind: SourceKind = "bundle"
    known: Known = NOTHING_KNOWN

    def captures(self, probes: Sequence[Probe]) -> Iterator[Capture]:
        """The captures as they were taken, whatever the probes are today."""
        yield from (replace(one, scope=self.scope or one.scope) for one in self.taken)


def read(path: Path, scope: str = "") -> Bundle:
    """The bundle in a file; `scope` is the machine it is about where others are examined with it."""
    with path.open("rb") as file:
        return opened(file, printable(path.name), scope)


def opened(file: IO[bytes], name: str, scope: str = "") -> Bundle:
    """The bundle in an open file."""
    refused: list[Broken] = []
    texts = dict(_members(file, name, refused))
    raw = texts.pop("manifest.json", None)
    if raw is None and not texts:
        why = f": {refused[0].error}" if refused else ""
        raise NoBundle(f"{name} is no bundle, which is a .tar.gz written by diag bundle{why}")
    if raw is None:
        refused.append(Broken(where=name, error="it has no manifest: its texts are read as pastes"))
        pasted = tuple(Capture.of(printable(one), text.decode(said), kind="text") for one, said in texts.items())
        return Bundle(name, pasted, broken=tuple(refused), scope=scope)
    manifest = _manifest(raw, name)
    taken = tuple(_taken(manifest, texts, refused))
    return Bundle(name, taken, manifest.taken_at, tuple(refused), scope)


def _manifest(raw: bytes, name: str) -> Manifest:
    """The manifest of a bundle; that of another program makes an archive none."""
    if OURS.encode() not in raw:
        raise NoBundle(f"{name} is no bundle: its manifest.json is another program's")
    try:
        return msgspec.json.decode(raw, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DiagError(f"{name}: manifest.json: {error}") from error


def _taken(manifest: Manifest, texts: dict[str, bytes], refused: list[Broken]) -> Iterator[Capture]:
    for member in manifest.members[:MEMBERS_CAP]:
        # Each text is one capture's: a second claim to it finds it gone.
        raw = texts.pop(member.path, None)
        if raw is None:
            refused.append(Broken(where=printable(member.path), error="named in the manifest and not in the archive"))
            continue
        capture = Capture.of(body=text.characters(raw), **asdict(member.capture))
        if capture.sha256() == member.sha256:
            yield capture
        else:
            refused.append(Broken(where=member.path, error="its text is not the one the manifest has the digest of"))
    if len(manifest.members) > MEMBERS_CAP:
        refused.append(Broken(where="manifest.json", error=f"more than {MEMBERS_CAP} members: the rest was not read"))


class _Capped:
    """A stream that ends with an error after so many bytes, whatever a header in it declares."""

    def __init__(self, stream: IO[bytes], left: int) -> None:
        self.stream, self.left, self.ends = stream, left, 0

    def read(self, size: int = -1) -> bytes:
        try:
            piece = self.stream.read(min(size, self.left + 1) if size >= 0 else self.left + 1)
        except Exception as error:
            # Each kind of packing has an error of its own for being damaged.
            raise OSError(str(error) or type(error).__name__) from error
        self.ends += not piece
        if self.ends > ENDS_CAP:
            raise OSError("it is cut off")
        self.left -= len(piece)
        if self.left < 0:
            raise OSError("it unpacks to more than can be held")
        return piece


def _members(file: IO[bytes], name: str, refused: list[Broken]) -> Iterator[tuple[str, bytes]]:
    """The regular members that count, within the caps; everything else is refused by name."""
    total, seen = 0, set[str]()
    try:
        with tarfile.open(fileobj=_Capped(_unpacked(file, name), STREAM_CAP), mode="r|") as archive:  # type: ignore[call-overload]
            for number, member in enumerate(archive, 1):
                problem = _problem(member, number, total, member.name in seen)
                if problem:
                    refused.append(Broken(where=printable(member.name)[:200], error=problem))
                    if number > MEMBERS_CAP or total + member.size > TOTAL_CAP:
                        return
                    continue
                taken = archive.extractfile(member)
                content = taken.read() if taken else b""
                total += len(content)
                seen.add(member.name)
                yield member.name, content
    except DAMAGED as error:
        refused.append(Broken(where=name, error=f"damaged: {error or type(error).__name__}"))


def _unpacked(file: IO[bytes], name: str) -> IO[bytes]:
    start = file.read(512)
    file.seek(0)
    if start.startswith(ZIP):
        raise OSError("not a .tar.gz")
    return unpacked(file, start, name) or file


def unpacked(file: IO[bytes], start: bytes, name: str) -> IO[bytes] | None:
    """What a file that begins so is packed from, as it is read; None for one that is not packed."""
    for sign, module in PACKINGS:
        if start.startswith(sign):
            try:
                opened: IO[bytes] = importlib.import_module(module).open(file)
            except ImportError as error:
                packer = module.rpartition(".")[2]
                raise DiagError(f"{name} is packed with {packer}, which this Python cannot unpack") from error
            return opened
    return None


def _problem(member: tarfile.TarInfo, number: int, total: int, again: bool) -> str:
    if number > MEMBERS_CAP:
        return f"more than {MEMBERS_CAP} members: the rest was not read"
    if not member.isfile():
        return "not a regular file"
    if member.name != "manifest.json" and not member.name.startswith("captures/"):
        return "not a place for captures"
    if ".." in Path(member.name).parts or again:
        return "a second member of this name" if again else "its path leads out of the archive"
    if member.size > MEMBER_CAP or total + member.size > TOTAL_CAP:
        return f"too large ({member.size} bytes)"
    return ""
