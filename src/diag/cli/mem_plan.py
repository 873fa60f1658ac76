"""`diag mem plan`: what will come of a launch on devices that need not be here."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from msgspec import DecodeError, json

from diag.cli.options import Bounds, Content, Live, Output
from diag.cli.planning import Planned
from diag.errors import DiagError
from diag.sources import Asked
from diag.text import decode

CONFIG_CAP, HEADER_CAP, INDEX_CAP = 2**22, 2**27, 2**28
SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)\s?([KMGT]?)(i?)(B?)", re.IGNORECASE | re.ASCII)
DEVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._/()+-]{0,60}")
ENGINE = re.compile(r"[A-Za-z][\w.-]{0,60}==\S{1,60}")
DEMAND = re.compile(r"(\d{1,7})\s?[xX\u00d7]\s?\(?(\d{1,9})(?:\s?\+\s?(\d{1,9}))?\)?", re.ASCII)
POWERS = "\0KMGT"


def run(asked: Planned, *, output: Output, content: Content, bounds: Bounds) -> int:
    """Plan and report."""
    from diag.cli import examine

    path = config_file(asked.config)
    wish = {"schema": "diag/memory-wish/1", **wished(asked), **weighed(asked, path)}
    told = Asked({"model/whole": read(path), "model/config": read(path), "memory/wish": json.encode(wish).decode()})
    question = examine.Question(
        command=examine.MEMORY,
        sources=(asked.log,) if asked.log else (),
        opened=(told,),
        texts={"launch": asked.launch, **components(asked)},
        here=False,
    )
    return examine.run(question, output=output, content=content, bounds=bounds, live=Live())


def config_file(path: Path) -> Path:
    """The `config.json` that is meant by a file or the folder that holds it."""
    path = path / "config.json" if path.is_dir() else path
    if path.exists() and not path.is_file():
        raise DiagError(f"--config {path}: it is not a file")
    return path


def read(path: Path) -> str:
    """The text of a config; one that is no model's is a mistake."""
    try:
        with path.open("rb") as file:
            text = decode(file.read(CONFIG_CAP))
    except OSError as error:
        raise DiagError(f"--config {path}: {error.strerror or error}") from error
    try:
        document = json.decode(text)
    except DecodeError as error:
        raise DiagError(f"--config {path}: it is not JSON ({error})") from error
    if not isinstance(document, dict) or not {"model_type", "architectures"} & document.keys():
        raise DiagError(
            f"--config {path}: it is not a model's config.json: it names no model_type and no architectures"
        )
    return text


def components(asked: Planned) -> dict[str, str]:
    """The engine and the devices, in the words of `diag matrix`."""
    words = []
    if asked.engine:
        if not ENGINE.fullmatch(asked.engine):
            raise DiagError(f"--engine {asked.engine}: it is not NAME==VERSION")
        words.append(asked.engine)
    if bytes_of(asked.device) is None:
        if not DEVICE.fullmatch(asked.device):
            raise DiagError(f"--device {asked.device!r}: it is neither a name such as H200 nor a size such as 79.19GiB")
        words.append(f"'gpu={asked.devices or 1}x{asked.device}'")
    return {"matrix": f"diag matrix check {' '.join(words)}"} if words else {}


def wished(asked: Planned) -> dict[str, Any]:
    """What is asked beside: a device's bytes, how many devices, requests."""
    told: dict[str, Any] = {"devices": asked.devices} if asked.devices else {}
    if size := bytes_of(asked.device):
        told["device_bytes"] = size
    if asked.requests:
        found = DEMAND.fullmatch(asked.requests.strip())
        if not found or not int(found[1]) or not int(found[2]):
            raise DiagError(f"--requests {asked.requests}: it is not COUNTx(PROMPT+ANSWER), such as 256x(512+512)")
        told |= {"requests": int(found[1]), "length": int(found[2]) + int(found[3] or 0)}
    return told


def bytes_of(text: str) -> float | None:
    """Bytes of a size: `79.19GiB`, `80GB`, or a plain number of bytes; None where it is no size."""
    found = SIZE.fullmatch(text.strip())
    if found is None:
        return None
    base = 1024 if found[3] or not found[4] else 1000
    return float(found[1]) * float(base ** max(POWERS.find(found[2].upper()), 0) if found[2] else 1)


def weighed(asked: Planned, config: Path) -> dict[str, Any]:
    """The bytes of the weights: as given, else of the checkpoint that stands beside the config."""
    if asked.weights_bytes is not None:
        size = bytes_of(asked.weights_bytes)
        if not size or size < 1:
            raise DiagError(f"--weights-bytes {asked.weights_bytes}: it is not a size such as 31GB or 15.3GiB")
        return {"weights_bytes": size}
    found = checkpoint(config.parent)
    return {"weights_bytes": found, "weights_from": "checkpoint"} if found else {}


def checkpoint(folder: Path) -> int | None:
    """Bytes of the weights in a folder: what its index states, else the sum of its files' tensors; None without any."""
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        try:
            with index.open("rb") as file:
                stated = json.decode(file.read(INDEX_CAP)).get("metadata", {}).get("total_size")
        except (OSError, DecodeError, AttributeError) as error:
            raise DiagError(f"{index}: it is no index of a checkpoint ({error})") from error
        if isinstance(stated, (int, float)) and stated > 0:
            return int(stated)
    files = [one for one in sorted(folder.glob("*.safetensors")) if one.is_file()]
    return sum(map(tensors, files)) or None


def tensors(path: Path) -> int:
    """Bytes of the tensors of a safetensors file, from its header alone."""
    try:
        with path.open("rb") as file:
            return sum(_lengths(file))
    except (OSError, ValueError, DecodeError, struct.error) as error:
        raise DiagError(f"{path}: its header is none of a safetensors file ({error})") from error


def _lengths(file: IO[bytes]) -> Iterator[int]:
    (length,) = struct.unpack("<Q", file.read(8))
    if length > HEADER_CAP:
        raise ValueError(f"{length} bytes are too many")
    header = json.decode(file.read(length))
    if not isinstance(header, dict):
        raise ValueError("it is no object")
    for name, one in header.items():
        places = one.get("data_offsets") if isinstance(one, dict) and name != "__metadata__" else None
        if isinstance(places, list) and len(places) == 2 and all(isinstance(place, int) for place in places):
            yield max(places[1] - places[0], 0)
