"""YAML files as plain documents, compiled: each is parsed once, and kept as MessagePack in the cache.

Kept documents are found by the digest of their text, so that a changed file is parsed anew and a cache that is damaged,
stale or gone only costs time. Nothing in the cache is code.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec import DecodeError, Raw, Struct, ValidationError, msgpack

from diag import cache

FORM = b"1"
"""Of what is kept: another one when `Content` changes."""
VALUES_CAP = 500_000
"""Values of the largest document."""


class Content(Struct, frozen=True, array_like=True):
    """A document, and for each list at its top the lines (from 1) on which the items begin."""

    value: Any
    lines: dict[str, list[int]]


class Document:
    """A YAML file that was read; it is parsed when its content is first asked for, if it was not kept."""

    def __init__(self, path: Path, kept: Raw | None = None, text: bytes = b"") -> None:
        self.path, self.text, self._kept = path, text, kept

    @property
    def new(self) -> bool:
        """Whether it was not kept, so that nobody has looked into it yet."""
        return self._kept is None

    @cached_property
    def content(self) -> Content:
        """What the file holds, in plain values: dates are text."""
        with suppress(DecodeError, ValidationError):
            if self._kept is not None:
                return msgpack.decode(self._kept, type=Content)
        return msgpack.decode(self.compiled, type=Content)

    @cached_property
    def compiled(self) -> bytes:
        """The content as it is kept."""
        return msgpack.encode(_parsed(self.text))


class Documents:
    """The YAML files of some roots, with the cache that holds what was parsed before; `place` is a file, or None."""

    def __init__(self, place: Path | None) -> None:
        self._cache = place
        self._kept = _read(place)
        self._held: dict[str, Document] = {}

    def read(self, path: Path) -> Document:
        """The file as a document."""
        text = path.read_bytes()
        digest = hashlib.blake2b(FORM + text, digest_size=16).hexdigest()
        self._held[digest] = document = Document(path, self._kept.get(digest), text)
        return document

    def drop(self, document: Document) -> None:
        """Do not keep a document that was read."""
        self._held = {digest: one for digest, one in self._held.items() if one is not document}

    def keep(self) -> None:
        """Write all that was read into the cache, where it does not hold just that and can be written."""
        if self._cache is None or self._held.keys() == self._kept.keys():
            return
        # A document that is none was told of when it was read, and is not kept.
        pack = {digest: kept for digest, one in self._held.items() if (kept := self._kept.get(digest) or _kept(one))}
        if pack.keys() != self._kept.keys():
            cache.write(self._cache, msgpack.encode(pack))


def _read(path: Path | None) -> dict[str, Raw]:
    try:
        return msgpack.decode(cache.read(path), type=dict[str, Raw])
    except (DecodeError, ValidationError, RecursionError):
        return {}


def _kept(document: Document) -> Raw | None:
    try:
        return Raw(document.compiled)
    except Exception:
        return None


def _parsed(text: bytes) -> Content:
    import yaml  # not above: it takes as long to import as a child to start, and what is kept does not need it

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        node = loader.get_single_node()
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        lines = {
            key.value: [item.start_mark.line + 1 for item in value.value]
            for key, value in pairs
            if isinstance(value, yaml.SequenceNode)
        }
        return Content(_bounded(loader.construct_document(node) if node else None), lines)
    finally:
        loader.dispose()


def _bounded(value: Any) -> Any:
    """The value, unless its aliases make it larger than a document can be."""
    waiting, count = [value], 0
    while waiting:
        one = waiting.pop()
        count += 1
        if count > VALUES_CAP:
            raise ValueError(f"more than {VALUES_CAP} values")
        waiting += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
    return value
