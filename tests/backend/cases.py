"""What the device `hostdev` promises, one function a promise; `test_backend` runs them all in one child."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import hostdev
import pytest
import torch
from torch.profiler import ProfilerActivity, profile

ROWS, COLUMNS = 5, 64
COPIES = {"aten::_copy_from", "aten::_copy_from_and_resize", "aten::copy_", "aten::_to_copy"}


def made(device: str, *shape: int) -> torch.Tensor:
    """The same numbers on any device."""
    return torch.rand(*shape, generator=torch.Generator().manual_seed(sum(shape))).to(device)


def sampler(device: str) -> list[torch.Tensor]:
    """Penalties, top-k, top-p and log-probabilities as samplers do them."""
    logits, rows = made(device, ROWS, COLUMNS) * 8, torch.arange(ROWS, device=device)
    ids = (made(device, ROWS, 7) * COLUMNS).long()
    counts = torch.zeros(ROWS, COLUMNS + 1, dtype=torch.int64, device=device)
    counts.scatter_add_(1, ids, torch.ones_like(ids))
    seen = counts[:, :COLUMNS] > 0
    logits = torch.where(seen, torch.where(logits > 0, logits / 1.1, logits * 1.1), logits)
    logits[0, 3] = -float("inf")
    logits[seen & (logits < 1)] -= 2.0
    values, order = logits.sort(dim=-1, stable=True)
    low = values.softmax(-1).cumsum(-1) <= 0.1
    kept = torch.empty_like(logits).scatter_(1, order, values.masked_fill(low, -float("inf")))
    logprobs = kept.log_softmax(-1, dtype=torch.float32)
    best, which = logprobs.topk(4)
    ranks = (logprobs >= logprobs.gather(1, which[:, 1:2])).sum(-1)
    return [kept, best, which, ranks, logprobs.argmax(-1), kept[rows, which[:, 0]], logprobs.isinf().nonzero()]


def decoder(device: str) -> list[torch.Tensor]:
    """One layer of a Llama for one token a row, with a cache of keys and values."""
    heads, width, past = 4, 32, 6
    hidden = torch.nn.functional.embedding(torch.arange(ROWS, device=device), made(device, COLUMNS, width))
    normed = hidden * torch.rsqrt(hidden.pow(2).mean(-1, keepdim=True) + 1e-6)
    parts = [normed @ made(device, width, width + more)[:, :width] for more in range(3)]
    query, key, value = (part.view(ROWS, heads, 1, -1) for part in parts)
    left, right = query.chunk(2, -1)
    query = torch.cat((-right, left), -1) * made(device, width // heads) + query.cos()
    keys = torch.cat((made(device, ROWS, heads, past, width // heads), key), 2)
    attended = torch.nn.functional.scaled_dot_product_attention(query, keys, torch.cat((keys[:, :, :past], value), 2))
    hidden = hidden + attended.transpose(1, 2).reshape(ROWS, width)
    gate, up = (hidden @ made(device, width, 2 * width)).chunk(2, -1)
    return [hidden, torch.nn.functional.silu(gate) * up, (hidden.bfloat16() @ made(device, width, 9).bfloat16())]


def same(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return all(torch.allclose(a.cpu().float(), b.cpu().float(), atol=2e-2) for a, b in zip(one, other, strict=True))


@contextmanager
def placed(place: str, *operators: str) -> Iterator[None]:
    """Some operators, or all, in a place; counted from zero."""
    chosen = operators or tuple(hostdev.switches())
    for one in chosen:
        hostdev.turn(one, place)
    hostdev.forget()
    try:
        yield
    finally:
        for one in chosen:
            hostdev.turn(one, "native")


def totals() -> tuple[int, int, int]:
    hostdev.synchronize()
    rows = hostdev.truth().values()
    return sum(one["launched"] for one in rows), sum(one["native"] for one in rows), sum(one["cpu"] for one in rows)


def row(key: str, text: str) -> str:
    return next((line for line in text.splitlines() if line.startswith(key)), "")


def refused(call: Callable[[], object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=re.escape(words)):
        call()


def case_hundreds_of_operators_have_a_switch() -> None:
    assert len(hostdev.switches()) > 500
    assert set(hostdev.switches().values()) == {"native"}
    assert {"aten::exponential_", "aten::sort.values_stable", "aten::topk.values"} < set(hostdev.switches())


def case_every_place_computes_what_the_cpu_computes_and_is_counted() -> None:
    for place in ("native", "fallback", "hidden_copy", "hidden_raw"):
        for work in (sampler, decoder):
            with placed(place):
                assert same(work("hostdev"), work("cpu")), (place, work)
                launched, native, cpu = totals()
            assert launched > 15, (place, work)
            assert (native, cpu) == ((launched, 0) if place == "native" else (0, launched)), (place, work)


def argument(kind: str, device: str, seed: int) -> object:
    """Something of a schema's type that most operators take."""
    if kind == "Tensor":
        return (made("cpu", 4, 4).roll(seed) + 0.1).to(device)
    return {"number": 0.5, "float": 0.5, "int": 1, "bool": False, "List[int]": [1]}[kind]


def outcome(name: str, device: str) -> list[torch.Tensor]:
    """An operator's tensors for arguments made up from its schema; an output comes empty."""
    packet, _, overload = name.removeprefix("aten::").partition(".")
    operator = getattr(getattr(torch.ops.aten, packet), overload or "default")
    places, names = [], {}
    for seed, one in enumerate(operator._schema.arguments):
        if one.is_out or not one.has_default_value():
            value = torch.empty(0, device=device) if one.is_out else argument(str(one.type), device, seed)
            names.update({one.name: value}) if one.kwarg_only else places.append(value)
    torch.manual_seed(1)
    results = operator(*places, **names)
    return [one.cpu() for one in (results if isinstance(results, tuple) else [results])]


def case_hundreds_of_operators_compute_what_the_cpu_computes() -> None:
    compared = 0
    for name in hostdev.switches():
        # Private ones and batch norm read what lies behind arguments that do not fit.
        if re.search(r"::_|batch_norm|backward", name):
            continue
        try:
            right = outcome(name, "cpu")
        except (AttributeError, KeyError, RuntimeError, IndexError, ValueError):
            continue
        for place, told in (("native", "native"), ("hidden_raw", "cpu")):
            with placed(place, name):
                assert all(map(equal, right, outcome(name, "hostdev"))), (name, place)
                assert hostdev.truth()[name] == {"launched": 1, "native": 0, "cpu": 0, told: 1}, (name, place)
        compared += 1
    assert compared > 200, compared


def equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    exact = one.to(torch.complex128), other.to(torch.complex128)
    return one.dtype == other.dtype and one.shape == other.shape and torch.allclose(*exact, equal_nan=True, atol=1e-4)


def case_one_operator_is_switched_and_no_other() -> None:
    with placed("fallback", "aten::sort.values_stable"):
        sampler("hostdev")
        hostdev.synchronize()
        truth = hostdev.truth()
    assert truth.pop("aten::sort.values_stable") == {"launched": 1, "native": 0, "cpu": 1}
    assert not any(one["cpu"] for one in truth.values())


def case_a_missing_operator_raises_or_goes_the_way_of_all() -> None:
    ones = torch.ones(4, device="hostdev")
    with placed("missing", "aten::exponential_"):
        refused(ones.exponential_, NotImplementedError, "aten::exponential_")
        hostdev.everywhere(True)
        try:
            ones.exponential_()
        finally:
            hostdev.everywhere(False)
        assert hostdev.truth()["aten::exponential_"] == {"launched": 1, "native": 0, "cpu": 1}


def case_the_dispatcher_shows_each_place_as_it_shows_a_plug_in() -> None:
    shown, kernel = {}, r"PrivateUse1: registered at \S+/{}.cpp:\d+ :: "
    for place in hostdev.PLACES:
        with placed(place, "aten::exponential_"):
            shown[place] = row("PrivateUse1: ", torch._C._dispatch_dump("aten::exponential_"))
    like_c = re.escape("(Tensor _0, float _1, Generator? _2) -> Tensor _0 [ boxed ]")
    assert re.fullmatch(kernel.format("fallback") + re.escape("(none) [ boxed ]"), shown["fallback"]), shown
    assert re.fullmatch(kernel.format("kernels") + like_c, shown["native"]), shown
    assert shown["native"] == shown["hidden_copy"] == shown["hidden_raw"]
    assert shown["missing"] == ""
    assert like_c[:-11] in re.escape(row("CPU: ", torch._C._dispatch_dump("aten::exponential_")))


def case_the_way_of_all_is_a_backend_fallback() -> None:
    hostdev.everywhere(True)
    with placed("missing", "aten::exponential_"):
        shown = row("PrivateUse1: ", torch._C._dispatch_dump_table("aten::exponential_"))
    hostdev.everywhere(False)
    assert re.search(r"/fallback.cpp:\d+ \[backend fallback\]$", shown), shown


def case_the_profiler_sees_one_kind_of_copy_and_not_the_other() -> None:
    seen = {}
    for place in ("native", "hidden_copy", "hidden_raw"):
        ones = torch.ones(4, device="hostdev")
        with placed(place, "aten::exponential_"), profile(activities=[ProfilerActivity.CPU]) as watched:
            ones.exponential_()
        seen[place] = {event.name for event in watched.events()} & (COPIES | {"aten::exponential_"})
    assert seen["native"] == seen["hidden_raw"] == {"aten::exponential_"}
    assert seen["hidden_copy"] == {"aten::exponential_", "aten::copy_", "aten::_copy_from", "aten::_to_copy"}


def case_a_launch_returns_before_the_work_is_done() -> None:
    square = torch.ones(64, 64, device="hostdev")
    hostdev.synchronize()
    hostdev.forget()
    hostdev.hold()
    try:
        product = square @ square
        assert hostdev.truth()["aten::mm.out"] == {"launched": 1, "native": 0, "cpu": 0}
    finally:
        hostdev.go()
    assert product[0, 0].item() == 64
    assert hostdev.truth()["aten::mm.out"] == {"launched": 1, "native": 1, "cpu": 0}


def returns(call: Callable[[], object], patience: float = 60.0) -> bool:
    """Whether a call returns while the queue does nothing."""
    hostdev.synchronize()
    thread = threading.Thread(target=call)
    hostdev.hold()
    thread.start()
    thread.join(patience)
    returned = not thread.is_alive()
    hostdev.go()
    thread.join()
    return returned


def case_what_goes_over_the_cpu_waits() -> None:
    ones = torch.ones(4, device="hostdev")
    for place in ("fallback", "hidden_copy", "hidden_raw"):
        with placed(place, "aten::exponential_"):
            assert not returns(ones.exponential_, 0.3), place
    assert returns(ones.exponential_)


def case_copies_to_the_host_wait_but_for_pinned_memory() -> None:
    ones, pinned, plain = torch.ones(4, device="hostdev"), torch.zeros(4).pin_memory(), torch.zeros(4)
    assert pinned.is_pinned()
    assert not returns(ones.cpu, 0.3)
    assert not returns(ones.sum().item, 0.3)
    assert not returns(lambda: plain.copy_(ones, non_blocking=True), 0.3)
    assert returns(lambda: pinned.copy_(ones, non_blocking=True))
    hostdev.synchronize()
    assert plain.sum() == pinned.sum() == 4


def case_an_error_of_a_kernel_comes_with_the_synchronisation() -> None:
    picked = torch.ones(4, device="hostdev").index_select(0, torch.tensor([9], device="hostdev"))
    refused(hostdev.synchronize, RuntimeError, "index out of range")
    assert picked.shape == (1,)


def case_events_are_in_the_order_of_the_queue() -> None:
    before, after = (torch.Event("hostdev", enable_timing=True) for _ in range(2))
    hostdev.hold()
    before.record()
    after.record()
    assert not after.query()
    hostdev.go()
    after.synchronize()
    assert after.query()
    assert before.elapsed_time(after) >= 0


def case_one_number_of_any_shape_can_be_read() -> None:
    assert [torch.full(shape, 7, device="hostdev").item() for shape in ((), (1,), (1, 1))] == [7, 7, 7]


def drawn(seed: int | None = None) -> list[float]:
    generator = None if seed is None else torch.Generator("hostdev").manual_seed(seed)
    return torch.empty(6, device="hostdev").exponential_(generator=generator).tolist()


def case_draws_follow_their_seed() -> None:
    assert drawn(3) == drawn(3) != drawn(4)
    torch.manual_seed(5)
    first = drawn(), drawn()
    torch.manual_seed(5)
    assert first == (drawn(), drawn())
    assert first[0] != first[1]


def case_a_fallback_takes_no_generator_of_the_device() -> None:
    with placed("fallback", "aten::exponential_"):
        refused(lambda: drawn(3), RuntimeError, "Expected a 'cpu' device type for generator but found 'hostdev'")
    for place in ("hidden_copy", "hidden_raw"):
        with placed(place, "aten::exponential_"):
            assert drawn(3) == drawn(3)


def case_memory_is_counted_and_ends() -> None:
    free, total = hostdev.mem_get_info()
    kept = torch.empty(1 << 20, dtype=torch.uint8, device="hostdev")
    assert hostdev.mem_get_info() == (free - (1 << 20), total)
    del kept
    assert hostdev.mem_get_info() == (free, total)
    refused(lambda: torch.empty(total + 1, dtype=torch.uint8, device="hostdev"), RuntimeError, "out of memory")


def case_tensors_are_of_the_device() -> None:
    ones = torch.ones(4, device="hostdev")
    assert (str(ones.device), ones.is_cpu, ones.cpu().is_cpu) == ("hostdev:0", False, True)
    assert torch._C._get_privateuse1_backend_name() == "hostdev"
    refused(lambda: ones + torch.ones(4), RuntimeError, "hostdev:0 and cpu")


def case_views_and_resizes_share_or_keep_their_bytes() -> None:
    numbers = torch.arange(12.0, device="hostdev")
    numbers.view(3, 4)[1].add_(100)
    assert numbers[4:8].tolist() == [104, 105, 106, 107]
    assert numbers.resize_(20)[:5].tolist() == [0, 1, 2, 3, 104]
    assert torch.empty(0, device="hostdev").set_(numbers.untyped_storage(), 2, (2, 2), (4, 1)).sum().item() == 218


@contextmanager
def asked(variable: str, value: str) -> Iterator[None]:
    """A variable of the environment for a while: kernels look at it at each launch."""
    os.environ[variable] = value
    try:
        yield
    finally:
        del os.environ[variable]


def case_a_kernel_can_get_one_element_wrong() -> None:
    for place in ("native", "hidden_raw"):
        with placed(place, "aten::mul.out"), asked("HOSTDEV_WRONG", "aten::cos,aten::mul"):
            assert sorted((torch.ones(8, device="hostdev") * 3).tolist()) == [3] * 7 + [4]
        assert (torch.ones(8, device="hostdev") * 3).tolist() == [3] * 8


def case_kernels_can_refuse_a_generator() -> None:
    with asked("HOSTDEV_REFUSE_GENERATOR", "1"):
        refused(lambda: drawn(3), RuntimeError, "aten::exponential_ of this device takes no generator")
        assert len(drawn()) == 6
    assert len(drawn(3)) == 6


def main() -> None:
    outcomes = {}
    for name, case in list(globals().items()):
        if name.startswith("case_"):
            try:
                case()
                outcomes[name] = ""
            except Exception:
                outcomes[name] = traceback.format_exc()
    sys.stdout.write(json.dumps(outcomes))


if __name__ == "__main__":
    main()
