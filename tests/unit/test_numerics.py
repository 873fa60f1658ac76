"""The bounds of operators and of random draws: what sound kernels do is within them, one wrong element is not."""

from __future__ import annotations

import pytest

from diag.probe import program
from diag.sources import MEASURE

torch = pytest.importorskip("torch", reason="no torch in this environment")
NUMERICS, DRAWN = (program(str(MEASURE / one)) for one in ("numerics.py", "draws.py"))
CASES = {one.operator: one for one in NUMERICS["CASES"]}
DRAWS = {one.operator: one for one in DRAWN["DRAWS"]}
EACH = [(one.operator, name) for one in NUMERICS["CASES"] for name in one.types]
FP32, BF16, FP16 = torch.float32, torch.bfloat16, torch.float16
SAMPLES, FEW = 10_000, 4096


def done(operator: str, name: str, run) -> dict:
    """A case in its last shape with another kernel: `run` gets the sound one, and what it is called with."""
    case = CASES[operator]
    changed = case._replace(run=lambda *given: run(case.run, *given), shapes=case.shapes[-1:])
    return NUMERICS["judged"](torch, changed, name, "cpu")


def spoilt(change):
    """A kernel whose first result is changed in place."""

    def run(sound, *given):
        answer = sound(*given)
        change(answer[0] if isinstance(answer, tuple) else answer)
        return answer

    return run


@pytest.mark.parametrize(("operator", "name"), EACH)
def test_one_wrong_element_of_all_is_seen_and_found(operator, name):
    def change(answer):
        there = answer[answer.shape[0] // 3, answer.shape[1] // 5 :]
        there[0] = 0.9 * there[0] + 1 if there[0].isfinite() else 0.0

    told = done(operator, name, spoilt(change))
    rows, columns = told["shape"][0], told["shape"][-1]
    columns = NUMERICS["KEPT"] if operator == "topk" else columns
    assert (told["extent"], told["rows"], told["columns"]) == ("one", [rows // 3] * 2, [columns // 5] * 2)
    assert told["wrong"] == 1
    assert told["elements"] >= rows * columns


def tf32(given):
    """The digits that TF32 reads: ten."""
    return (given.view(torch.int32) & ~0x1FFF).view(FP32)


def in_parts(one, other):
    """A sum in four parts, each rounded to the type, and so their sums."""
    pairs = zip(one.float().chunk(4, 1), other.float().chunk(4, 1), strict=True)
    first, *rest = ((left @ right.t()).to(one.dtype) for left, right in pairs)
    for part in rest:
        first = first + part
    return first


def one_by_one(given):
    """Running sums, each rounded to the type."""
    sums = torch.zeros_like(given)
    for column in range(given.shape[1]):
        sums[:, column] = given[:, column] + (sums[:, column - 1] if column else 0)
    return sums


def by_squares(_, given, weight, bias):
    """Layer norm from the mean of the squares and the square of the mean."""
    wide = given.float()
    mean = wide.mean(-1, keepdim=True)
    share = torch.rsqrt((wide * wide).mean(-1, keepdim=True) - mean * mean + 1e-5)
    return ((wide - mean) * share).to(given.dtype) * weight + bias


def by_two(_, given):
    """Softmax by powers of two, not shifted, and an inverse."""
    powers = torch.exp2(given.float() * 1.4426950408889634)
    return (powers * (1 / powers.sum(-1, keepdim=True))).to(given.dtype)


def ties_turned(_, given):
    """In order, with equal ones in the order of their places turned round."""
    values, places = given.flip(-1).sort(dim=-1, descending=True, stable=True)
    return values, given.shape[-1] - 1 - places


@pytest.mark.parametrize(
    ("operator", "name", "kernel"),
    [
        ("matmul", "fp32", lambda sound, torch, one, other: tf32(one) @ tf32(other).t()),
        ("matmul", "fp32", lambda sound, torch, one, other: one.to(BF16).float() @ other.to(BF16).float().t()),
        ("matmul", "bf16", lambda sound, torch, one, other: in_parts(one, other)),
        ("matmul", "fp16", lambda sound, torch, one, other: in_parts(one, other)),
        ("softmax", "fp32", lambda sound, torch, given: by_two(sound, given)),
        ("softmax", "bf16", lambda sound, torch, given: by_two(sound, given)),
        ("softmax", "fp16", lambda sound, torch, given: by_two(sound, given)),
        ("layer norm", "fp32", lambda sound, torch, *given: by_squares(sound, *given)),
        ("layer norm", "bf16", lambda sound, torch, *given: by_squares(sound, *given)),
        ("layer norm", "fp16", lambda sound, torch, *given: by_squares(sound, *given)),
        ("sort", "bf16", lambda sound, torch, given: ties_turned(sound, given)),
    ],
)
def test_what_sound_kernels_do_is_within_the_bounds(operator, name, kernel):
    assert done(operator, name, kernel)["wrong"] == 0


@pytest.mark.parametrize("name", ["fp32", "bf16", "fp16"])
def test_running_sums_are_exact_in_any_order(name):
    case = CASES["cumsum"]._replace(shapes=((33, 1025),), run=lambda torch, given: one_by_one(given))
    assert NUMERICS["judged"](torch, case, name, "cpu")["wrong"] == 0


def rolled(sound, *given):
    return sound(*given).roll(1, -1)


@pytest.mark.parametrize(
    ("operator", "kernel", "looks", "extent"),
    [
        ("softmax", spoilt(lambda answer: answer.fill_(float("nan"))), "nan", "all"),
        ("softmax", spoilt(lambda answer: answer.fill_(0.5)), "constant", "all"),
        ("softmax", spoilt(lambda answer: answer[3:7, 64:128].zero_()), "zero", "block"),
        ("softmax", spoilt(lambda answer: answer.mul_(2.0)), "scaled", "all"),
        ("softmax", spoilt(lambda answer: answer.mul_(1.004)), "imprecise", "all"),
        ("softmax", rolled, "permuted", "all"),
        ("cumsum", spoilt(lambda answer: answer[9, 999].add_(1)), "other", "one"),
        ("matmul", lambda sound, torch, one, other: sound(torch, one, other).half() * 1e9, "infinite", "all"),
        ("layer norm", lambda sound, torch, given, *rest: given, "other", "all"),
        ("cumsum", spoilt(lambda answer: answer[:, 128:].sub_(answer[:, 127:128].clone())), "other", "all"),
    ],
)
def test_how_wrong_answers_look(operator, kernel, looks, extent):
    told = done(operator, "fp32", kernel)
    assert (told["looks"], told["extent"], told["correct"]) == (looks, extent, False)


def pointing_elsewhere(sound, torch, given):
    values, places = sound(torch, given)
    places[0, 0] = (places[0, 0] + 1) % given.shape[-1]
    return values, places


@pytest.mark.parametrize("operator", ["sort", "topk"])
def test_places_that_point_elsewhere_are_wrong(operator):
    assert done(operator, "fp32", pointing_elsewhere)["wrong"] > 0


def examined(operator: str, drawn) -> str:
    return DRAWN["examined"](torch, DRAWS[operator], drawn)["looks"]


@pytest.mark.parametrize(
    ("operator", "broken", "looks"),
    [
        ("uniform draws", lambda: torch.full((FEW,), 0.25), "constant"),
        ("uniform draws", lambda: torch.rand(FEW) / 2, "distribution"),
        ("uniform draws", lambda: torch.rand(FEW).index_fill_(0, torch.tensor([9]), 1.0), "outside"),
        ("uniform draws", lambda: torch.rand(FEW // 4).repeat(4), "repeated"),
        ("uniform draws", lambda: torch.rand(FEW).sort().values, "ordered"),
        ("normal draws", lambda: torch.randn(FEW).index_fill_(0, torch.tensor([9]), float("nan")), "outside"),
        ("normal draws", lambda: torch.rand(FEW) - 0.5, "distribution"),
        ("exponential draws", lambda: torch.empty(2**19).exponential_(1.05), "distribution"),
        ("exponential draws", lambda: torch.empty(FEW).exponential_().index_fill_(0, torch.tensor([9]), 0), "outside"),
        ("multinomial draws", lambda: torch.zeros(FEW), "constant"),
        ("multinomial draws", lambda: torch.randint(0, 15, (FEW,)).float(), "outside"),
        ("multinomial draws", lambda: torch.tensor([1.0, 2, 4, 5]).repeat(FEW // 4), "distribution"),
    ],
)
def test_a_broken_generator_is_named(operator, broken, looks):
    torch.manual_seed(0)
    assert examined(operator, broken()) == looks


def test_the_same_numbers_at_each_call_are_no_draws():
    same = torch.rand(FEW, generator=torch.Generator().manual_seed(3))
    draw = DRAWS["uniform draws"]._replace(drawn=lambda torch, kind, device: same.clone())
    assert DRAWN["judged"](torch, draw, "fp32", "cpu")["looks"] == "repeated"


@pytest.mark.parametrize("operator", ["uniform draws", "normal draws", "exponential draws"])
def test_ten_thousand_samples_are_accepted_and_the_bound_is_not_far(operator):
    """One of 10,000 is beyond the bound with a probability of 10^-6 at most, whatever the distribution."""
    torch.manual_seed(0)
    method = f"{operator.partition(' ')[0]}_"
    drawn = getattr(torch.empty(SAMPLES, 512), method)()
    far = DRAWN["distance"](torch, DRAWS[operator], drawn.double().sort(-1).values) / DRAWN["bound"](512)
    leans = (DRAWN["rising"](drawn) - 0.5).abs() / DRAWN["pairs_bound"](512)
    assert 0.5 < far.max() < 1
    assert 0.5 < leans.max() < 1


def test_the_tokens_and_their_chances_agree():
    share = torch.tensor(DRAWN["WEIGHTS"]).double().cumsum(0) / 32
    assert torch.equal(DRAWN["chances"](torch, torch.arange(15)), share)
    assert share[-1] == 1
