"""What the tree of calls says of operators, in trees as backends of different makes draw them."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

TREE = runpy.run_path(str(Path(__file__).parents[2] / "src/diag/measure/tree.py"))
Call, Tensor = TREE["Call"], TREE["Tensor"]
SHAPE = (256, 1000)


def on(device, shape=SHAPE, dtype="float32", width=4):
    return Tensor(device, shape, dtype, width)


def call(name, *tensors, inner=()):
    base, _, overload = name.partition(".")
    return Call(f"aten::{base}" if "::" not in base else base, overload, tensors, tuple(inner), 5000)


def judged(*roots, composites=()):
    told = TREE["judged"](roots, "npu", lambda name, overload: f"{name}.{overload}".rstrip(".") in composites)
    return {one["name"]: one["placement"] for one in told["operators"]}, told


def boxed(name, *given):
    """`at::native::cpu_fallback`: all down in one call, the changed one up."""
    copy = call("copy_", on("cpu"), on("npu"), inner=[call("_copy_from", on("npu"), on("cpu"))])
    down = call("_to_cpu", *given, inner=[call("to", on("npu"), inner=[call("_to_copy", on("npu"), inner=[copy])])])
    return call(name, *given, inner=[down, call("_copy_from_and_resize", on("cpu"), on("npu"))])


def test_a_boxed_fallback_copies():
    places, told = judged(boxed("exponential_", on("npu")))
    assert places == {"aten::exponential_": "copies"}
    row = told["operators"][0]
    assert (row["bytes_down"], row["bytes_up"], row["microseconds"]) == (1_024_000, 1_024_000, 5)
    assert (row["shape"], row["dtype"]) == ([256, 1000], "float32")


def test_the_innermost_operator_is_the_one():
    sort = call("sort", on("npu"), inner=[boxed("sort.values_stable", on("npu"), on("npu"))])
    places, told = judged(sort, composites=("aten::sort",))
    assert places == {"aten::sort": "copies"}
    assert told["operators"][0]["overload"] == "values_stable"


def test_a_kernel_that_copies_by_hand_copies():
    down = call("to", on("npu"), inner=[call("_to_copy", on("npu"), inner=[call("copy_", on("cpu"), on("npu"))])])
    places, _ = judged(call("topk.values", on("npu"), inner=[down, call("topk.values", on("cpu"))]))
    assert places == {"aten::topk": "copies"}


def test_work_on_the_host_beneath_a_kernel_is_enough():
    places, told = judged(call("cumsum.out", on("npu"), inner=[call("cumsum.out", on("cpu"))]))
    assert places == {"aten::cumsum": "copies"}
    assert told["operators"][0]["evidence"] == ["computed on the host"]


def test_random_numbers_that_come_up_whole_were_drawn_on_the_host():
    places, told = judged(call("uniform_", on("npu"), inner=[call("copy_", on("npu"), on("cpu"))]))
    assert places == {"aten::uniform_": "copies"}
    assert told["operators"][0]["evidence"] == ["came whole from the host"]


@pytest.mark.parametrize(
    ("root", "placement"),
    [
        (call("exponential_", on("npu")), "native"),
        (call("where.self", on("npu"), inner=[call("copy_", on("npu", ()), on("cpu", ()))]), "native"),
        (call("_ctc_loss", on("npu"), inner=[call("copy_", on("cpu", (3,)), on("npu", (3,)))]), "reads"),
        (call("cat.out", on("npu"), inner=[call("fill_", on("cpu", (8,)))]), "native"),
        (call("sort", on("npu"), inner=[call("copy_", on("npu"), on("npu"))]), "native"),
    ],
    ids=["nothing", "a constant up", "lengths down", "a small table", "a copy within the device"],
)
def test_what_a_kernel_may_do(root, placement):
    places, _ = judged(root)
    assert places[root.name] == placement


def test_an_operator_that_torch_makes_of_others_may_read():
    down = call("to", on("npu"), inner=[call("copy_", on("cpu"), on("npu"))])
    assert judged(call("ctc_loss", on("npu"), inner=[down]), composites=("aten::ctc_loss",))[0] == {
        "aten::ctc_loss": "composite"
    }
    assert judged(call("add", on("npu")), composites=("aten::add",))[0] == {}


def test_a_read_number_and_a_copy_by_the_caller_are_told_apart():
    item = call("item", on("npu", ()), inner=[call("_local_scalar_dense", on("npu", ()))])
    explicit = call("to", on("npu"), inner=[call("_to_copy", on("npu"), inner=[call("copy_", on("cpu"), on("npu"))])])
    places, told = judged(item, explicit, call("multinomial", on("npu"), inner=[item]))
    assert places == {"aten::multinomial": "native"}
    assert told["reads"] == [{"operator": "", "calls": 1}, {"operator": "aten::multinomial", "calls": 1}]
    assert told["explicit"] == {"down": [1, 1_024_000]}


def test_a_hot_fix_in_python_stays():
    parts = [call("uniform_", on("npu")), call("log_", on("npu")), call("neg_", on("npu"))]
    assert set(judged(call("exponential_", on("npu"), inner=parts))[0].values()) == {"native"}


def test_what_runs_on_the_host_alone_is_nobodys_fallback():
    assert judged(call("sort", on("cpu")), call("copy_", on("npu"), on("cpu")))[0] == {}
