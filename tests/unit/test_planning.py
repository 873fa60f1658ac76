"""What `diag mem plan` takes: sizes, demands, names, checkpoints; and what is wrong with what it does not take."""

from __future__ import annotations

import json
import os
import re
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diag.cli.mem_plan import bytes_of, checkpoint, components, read, weighed, wished
from diag.cli.planning import Planned
from diag.errors import DiagError

USUAL: dict[str, Any] = {
    "launch": "vllm serve M",
    "config": Path("config.json"),
    "device": "H200",
    "devices": None,
    "engine": None,
    "weights_bytes": None,
    "requests": None,
    "log": None,
}


def asked(**given: Any) -> Planned:
    return Planned(**{**USUAL, **given})


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("79.19GiB", 79.19 * 2**30),
        ("79.19 gib", 79.19 * 2**30),
        ("80GB", 80e9),
        ("64G", 64 * 2**30),
        ("1024", 1024.0),
        ("H200", None),
        ("GiB", None),
        ("\u0661GB", None),
    ],
)
def test_sizes(text: str, size: float | None) -> None:
    assert bytes_of(text) == (pytest.approx(size) if size else None)


@pytest.mark.parametrize(
    ("text", "requests", "length"),
    [("256x(512+512)", 256, 1024), ("16 x 33024", 16, 33024), ("1X8+8", 1, 16), ("2\u00d7(3 + 4)", 2, 7)],
)
def test_demands(text: str, requests: int, length: int) -> None:
    told = wished(asked(requests=text))
    assert (told["requests"], told["length"]) == (requests, length)


@pytest.mark.parametrize("text", ["256", "0x512", "ax(1+1)", "1x(0)", "1x(2+3", "x"])
def test_what_is_no_demand_is_refused(text: str) -> None:
    if text == "1x(2+3":
        assert wished(asked(requests=text))["length"] == 5
    else:
        with pytest.raises(DiagError, match="it is not COUNTx"):
            wished(asked(requests=text))


@pytest.mark.parametrize(
    ("given", "mistake"),
    [
        ({"engine": "vllm"}, "it is not NAME==VERSION"),
        ({"device": "'; rm -rf"}, "neither a name such as H200 nor a size"),
        ({"weights_bytes": "much"}, "it is not a size"),
        ({"weights_bytes": "0"}, "it is not a size"),
    ],
)
def test_what_is_refused(given: dict[str, Any], mistake: str, tmp_path: Path) -> None:
    ask = weighed if "weights_bytes" in given else lambda one, path: components(one)
    with pytest.raises(DiagError, match=mistake):
        ask(asked(**given), tmp_path / "config.json")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"a": ', "\x00", '{"name": "x"}'])
def test_what_is_no_config_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(DiagError, match=r"^--config .*: it is not"):
        read(path)


def test_an_index_tells_the_bytes(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors.index.json").write_text(
        '{"metadata": {"total_size": 55562855904}, "weight_map": {}}'
    )
    assert checkpoint(tmp_path) == 55562855904
    assert weighed(asked(), tmp_path / "config.json") == {"weights_bytes": 55562855904, "weights_from": "checkpoint"}
    assert weighed(asked(weights_bytes="31GB"), tmp_path / "config.json") == {"weights_bytes": 31e9}


def said(folder: Path) -> str:
    """What a checkpoint tells, or what is wrong with it; no line more."""
    try:
        return str(checkpoint(folder))
    except DiagError as error:
        return str(error)


def file(header: bytes, rest: bytes = b"") -> bytes:
    return struct.pack("<Q", len(header)) + header + rest


def test_headers_tell_the_bytes(tmp_path: Path) -> None:
    for number in range(2):
        header = {"__metadata__": {"format": "pt"}, "a": {"dtype": "BF16", "shape": [4], "data_offsets": [0, 8]}}
        (tmp_path / f"model-{number}.safetensors").write_bytes(file(json.dumps(header).encode(), bytes(8)))
    assert checkpoint(tmp_path) == 16
    assert checkpoint(tmp_path / "nowhere") is None


@given(st.one_of(st.binary(max_size=64), st.binary(max_size=64).map(file)))
def test_a_spoilt_header_is_a_number_or_one_line(content: bytes) -> None:
    path = Path(os.environ["DIAG_TESTS_CACHE"]) / "spoilt" / "model.safetensors"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    assert re.fullmatch(r"None|\d+|.*: its header is none of a safetensors file \(.*\)", said(path.parent))


@pytest.mark.parametrize("text", ["[]", '{"metadata": []}', "{", '{"metadata": {"total_size": "many"}}'])
def test_a_spoilt_index_is_one_line_or_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors.index.json").write_text(text)
    assert re.fullmatch(r"None|.*: it is no index of a checkpoint \(.*\)", said(tmp_path))
