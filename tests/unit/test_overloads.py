"""The overload of a call is found by what the profiler kept of its arguments, or is left untold."""

from __future__ import annotations

import runpy
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

MEASURE = Path(__file__).parents[2] / "src/diag/measure"
PROGRAM = runpy.run_path(str(MEASURE / "overloads.py"))
REPLAY = runpy.run_path(str(MEASURE / "replay.py"))
SMALL = {"batch": 4, "vocabulary": 512, "prompt": 8, "output": 4, "context": 16, "hidden": 64, "heads": 4}
SMALL |= {"kv_heads": 2, "head": 16, "feed_forward": 96, "top_k": 8, "logprobs": 5}
OPERATORS = ("take.out", "nonzero.out", "angle.out", "dot", "sum.IntList_out", "max.dim_max", "where.self", "cat.out")
SUM = {
    "": ["Tensor", "Optional[int]"],
    "dim_IntList": ["Tensor", "Optional[List[int]]", "bool", "Optional[int]"],
    "dim_DimnameList": ["Tensor", "List[str]", "bool", "Optional[int]"],
}
"""The schemas of `aten::sum` in torch 2.5.1."""


@pytest.fixture(scope="module")
def torch():
    pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torch
    return torch


def knowing(**overloads: list[str]):
    """Only what is asked of torch: the schemas of one operator."""
    schemas = [
        SimpleNamespace(overload_name=name, arguments=[SimpleNamespace(type=kind) for kind in kinds])
        for name, kinds in overloads.items()
    ]
    return SimpleNamespace(_C=SimpleNamespace(_jit_get_schemas_for_operator=lambda name: schemas))


def overload(schemas: dict[str, list[str]], *given: object) -> str:
    told: str = PROGRAM["by_arguments"](knowing(**schemas))("aten::sum", given)
    return told


def events(tree) -> Iterator[tuple[str, object, str]]:
    """Each call of a tree: its name, what was kept of its arguments, and the overload that the profiler tells."""
    for event in tree:
        kind, fields = event.typed
        if kind.name == "TorchOp" and "::" in event.name:
            yield event.name, fields.inputs, event.overload_name
        yield from events(event.children)


def ran(torch, call) -> list[tuple[str, object, str]]:
    profiler = REPLAY["watching"](torch)
    with torch.no_grad(), profiler:
        call()
    return list(events(profiler.kineto_results.experimental_event_tree()))


def test_places_and_types_leave_one():
    tensor = object()
    assert overload(SUM, tensor, None, False, None) == "dim_IntList"
    assert overload({"Tensor": ["Tensor", "Tensor"], "Scalar": ["Tensor", "number"]}, tensor, 1.5) == "Scalar"
    assert overload({"Tensor": ["Tensor", "Tensor"], "Scalar": ["Tensor", "number"]}, tensor, tensor) == "Tensor"
    assert overload({"dim": ["Tensor", "int"], "dims": ["Tensor", "List[int]"]}, tensor, 1) == "dim"
    assert overload({"dim": ["Tensor", "int"], "dims": ["Tensor", "List[int]"]}, tensor, None) == "dims"
    assert (
        overload({"first": ["List[Tensor]", "int"], "out": ["List[Tensor]", "int", "Tensor"]}, [tensor], 0) == "first"
    )


def test_several_or_none_leave_it_untold():
    tensor = object()
    assert overload({"other": ["Tensor", "Tensor"], "unary_out": ["Tensor", "Tensor"]}, tensor, tensor) == ""
    assert overload(SUM, tensor, tensor) == ""
    assert overload(SUM, tensor, True) == ""
    assert overload({}, tensor) == ""


@pytest.mark.slow
def test_what_the_profiler_tells_is_never_contradicted(torch):
    """Of the calls in all steps, and of some operators by themselves; nearly all of them are told."""
    if REPLAY["overloads_told"](torch) is None:
        pytest.skip("this torch tells no overloads to compare with")
    sizes = REPLAY["STEPS"]["Sizes"](**SMALL)
    calls = [REPLAY["STEPS"]["prepared"](torch, name, "cpu", sizes) for name in REPLAY["STEPS"]["STEPS"]]
    calls += [REPLAY["ARGUMENTS"]["made"](torch, f"aten::{name}", "cpu", 64) for name in OPERATORS]
    seen = [one for call in calls for one in ran(torch, call)]
    by_arguments = PROGRAM["by_arguments"](torch)
    guessed = [(name, told, by_arguments(name, given)) for name, given, told in seen]
    assert [one for one in guessed if one[2] not in (one[1], "")] == []
    assert len(seen) > 1000
    assert sum(one[1] == one[2] for one in guessed) > 0.99 * len(seen)
