"""The line of a curve, what lies between its sizes, and what a decode step makes of it; each figure of the docs."""

from __future__ import annotations

import json
import os
import random
import re
from pathlib import Path

import pytest
from hypothesis import assume, settings
from hypothesis import given as drawn
from hypothesis import strategies as st
from told import LOADED, examined

from diag.api import (
    FEW,
    CollectiveModel,
    Curve,
    Decoder,
    DecodeStep,
    DecodeWish,
    Step,
    bus_factor,
    dense_weights,
    share,
    step,
)
from diag.render import render
from diag.report import Judged, Source, assemble

PAGE = " ".join((Path(__file__).parents[2] / "docs/collectives.md").read_text("utf-8").split())
SIZES = [2**power for power in range(10, 27, 2)]
SEED = Decoder(64, 5120, 31e9)
BANDWIDTH = 2400.0
LARGE = 256 * 5120 * 2

EXAMPLES = settings(max_examples=int(os.environ.get("DIAG_EXAMPLES", "100")), deadline=None, database=None)

alphas, bandwidths = st.floats(0.5, 1e5), st.floats(0.01, 2000.0)
times = st.floats(0.1, 1e9)
curves = st.dictionaries(st.integers(1, 2**34), times, min_size=1, max_size=24)


def given(*strategies: st.SearchStrategy):
    return lambda test: EXAMPLES(drawn(*strategies)(test))


def line(alpha: float, bandwidth: float, sizes: list[int]) -> list[tuple[float, float]]:
    return [(size, alpha + size / bandwidth / 1e3) for size in sizes]


def noisy(points: list[tuple[float, float]], share: float, seed: int) -> list[tuple[float, float]]:
    chance = random.Random(seed)
    return [(size, us * (1 + chance.uniform(-share, share))) for size, us in points]


@given(alphas, bandwidths)
def test_an_exact_line_is_found(alpha, bandwidth):
    # Sizes on both sides of the knee: elsewhere one of the parts does not show.
    knee = alpha * bandwidth * 1e3
    fit = Curve(line(alpha, bandwidth, [knee * 4.0**power for power in range(-4, 5)])).fit
    assert (fit.refused, fit.broken) == ("", None)
    assert (fit.alpha, fit.bandwidth) == (pytest.approx(alpha, rel=1e-6), pytest.approx(bandwidth, rel=1e-6))
    assert fit.knee == pytest.approx(knee, rel=1e-6)
    assert [fit.limit(knee * part) for part in (0.1, 1, 10)] == ["latency", "both", "bandwidth"]


@given(alphas, bandwidths, st.integers(0, 2**32))
def test_noise_moves_the_line_by_no_more_than_itself(alpha, bandwidth, seed):
    knee = alpha * bandwidth * 1e3
    fit = Curve(noisy(line(alpha, bandwidth, [knee * 2.0**power for power in range(-8, 9)]), 0.05, seed)).fit
    assert not fit.refused
    assert (fit.lines[0].at(knee / 256), fit.lines[-1].at(knee * 256)) == (
        pytest.approx(alpha, rel=0.1),
        pytest.approx(257 * alpha, rel=0.1),
    )


@given(curves)
def test_a_line_is_accepted_with_its_residuals_alone(points):
    fit = Curve(points.items()).fit
    assert all(one.fixed >= 0 and one.each >= 0 for one in fit.lines)
    if fit.lines:
        worst = max(abs(fit.line_at(size).at(size) / us - 1) for size, us in points.items())
        assert fit.error == pytest.approx(worst)
    assert bool(fit.refused) == (len(points) < 3 or fit.error > 0.25 or fit.lines[-1].each <= 0)


@given(curves, st.floats(1e-3, 1e3))
def test_another_unit_of_time_changes_nothing_else(points, unit):
    one, other = Curve(points.items()).fit, Curve((size, us * unit) for size, us in points.items()).fit
    assert bool(one.refused) == bool(other.refused) or one.error == pytest.approx(0.25)
    assert one.error == pytest.approx(other.error, rel=1e-3, abs=1e-6)


@given(st.lists(st.tuples(st.integers(1, 2**34), times), max_size=24), st.randoms())
def test_order_does_not_matter(points, chance):
    mixed = list(points)
    chance.shuffle(mixed)
    assert Curve(mixed).points == Curve(points).points == tuple(sorted(Curve(points).points))


@given(curves, st.floats(0, 1))
def test_between_measured_sizes_lies_what_lies_between_their_times(points, part):
    curve = Curve(points.items())
    assert [curve.at(size).us for size, _ in curve.points] == [us for _, us in curve.points]
    for (below, first), (above, second) in zip(curve.points, curve.points[1:], strict=False):
        size = below * (above / below) ** part
        assume(below < size < above)
        told = curve.at(size)
        assert told.basis == "interpolated"
        assert min(first, second) <= told.us <= max(first, second)


@given(alphas, bandwidths, st.floats(1.5, 1000))
def test_beyond_its_ends_the_line_goes_on_from_them(alpha, bandwidth, times):
    knee = alpha * bandwidth * 1e3
    curve = Curve(line(alpha, bandwidth, [knee * 4.0**power for power in range(-3, 4)]))
    for size in (curve.points[0][0] / times, curve.points[-1][0] * times):
        told = curve.at(size)
        assert (told.basis, told.us) == ("extrapolated", pytest.approx(alpha + size / bandwidth / 1e3, rel=1e-6))


def test_one_disturbed_size_does_not_bend_the_line():
    points = line(40, 20, SIZES)
    points[4] = (points[4][0], points[4][1] * 6)
    fit = Curve(points).fit
    assert (fit.alpha, fit.bandwidth) == (pytest.approx(40, rel=0.05), pytest.approx(20, rel=0.05))
    assert fit.refused == "calls of 262144 bytes lie 83% off the line"


def test_a_change_of_algorithm_is_a_second_line():
    points = line(20, 2, SIZES[:4]) + line(90, 200, SIZES[4:])
    fit = Curve(points).fit
    assert (fit.refused, fit.broken, len(fit.lines)) == ("", SIZES[4], 2)
    assert (fit.alpha, fit.bandwidth) == (pytest.approx(20), pytest.approx(200))
    assert (fit.knee, fit.limit(SIZES[0]), fit.limit(SIZES[-1])) == (pytest.approx(18e6), "latency", "bandwidth")


@pytest.mark.parametrize(
    ("points", "why"),
    [
        ([], "no size was timed"),
        ([(1024, 5.0)], "one size was timed"),
        ([(1024, 5.0), (1024, 6.0), (2048, 7.0)], "two sizes were timed"),
        ([(1024, 5.0), (2048, 4.0), (4096, 3.5)], "time does not grow with the size"),
        ([(1024, 10.0), (2048, 90.0), (4096, 20.0), (8192, 200.0)], "off the line"),
        ([(0, 5.0), (-8, 5.0), (1024, 0.0), (2048, -1.0), (4096, float("nan")), (8192, float("inf"))], "no size"),
    ],
)
def test_what_tells_no_line_says_why(points, why):
    fit = Curve(points).fit
    assert why in fit.refused
    assert Curve(points).at(2**30) is None


def test_of_one_size_that_size_is_known():
    curve = Curve([(10240, 46.0), (10240, 48.0), (10240, 90.0)])
    assert (curve.at(10240).us, curve.at(10240).basis) == (48.0, "measured")
    assert [curve.at(size) for size in (0, -1, 10239, 10241)] == [None] * 4


def seed(alpha: float, tokens: int) -> Step:
    """The field report's machine, if a call of nothing took so long."""
    points = [(size, alpha + size / LARGE * (135 - alpha)) for size in (10240, 163840, LARGE)]
    told = step(SEED, 8, tokens, gbps=BANDWIDTH, curve=Curve(points))
    assert told is not None
    return told


def test_the_field_report_as_the_page_has_it():
    large, few = seed(46, 256), seed(46, 1)
    busy = 256 / 4851 * 1e3
    layers, saved = LARGE * 64, round(few.alone_ms, 1) - 1.4
    rounded = (few.alone_ms - few.weights_ms) / few.calls * 1e3
    assert rounded == pytest.approx(few.break_even_us) == pytest.approx(87.6, abs=0.05)
    figures = [
        f"256 tokens · 5120 · 2 bytes = {LARGE:,} bytes",
        f"{2.6e6 / 134.7e-6 / 1e9:.1f} GB/s, which is {2.6e6 / 134.7e-6 / 1e9 * bus_factor('all_reduce', 8):.1f} GB/s",
        f"{large.calls} calls of {large.call_us / 1e3:.3f} ms are {large.comm_ms:.1f} ms",
        f"a step of {busy:.1f} ms: {share(large.comm_ms, busy):.0%} of it".replace("%", " %"),
        f"{layers / saved / 1e6:.0f} GB/s is 2.6 MB times 64 layers, {layers / 1e6:.0f} MB, in the {saved:.1f} ms",
        f"asks for {LARGE / saved / 1e6:.2f} GB/s",
        f"a call sends {few.message:,} bytes",
        f"At 19.3 GB/s these bytes take {few.message / 19.3e3:.1f} µs",
        f"reads the weights in {few.alone_ms:.1f} ms, eight in {few.weights_ms:.2f} ms",
        f"**{few.break_even_us:.0f} µs each**",
        f"calls of {(64 * 0.13 + 1.4 - few.weights_ms) / few.calls * 1e3:.0f} µs",
    ]
    assert [one for one in figures if one not in PAGE] == []


@pytest.mark.parametrize("alpha", [5, 20, 46, 80, 130])
def test_each_row_of_the_page(alpha):
    few, many = seed(alpha, 1), seed(alpha, 256)
    row = f"| {alpha} | {few.step_ms:.2f} | {few.comm_ms:.2f} | {few.gain:.2f} | {many.step_ms:.1f} |"
    assert row in PAGE
    assert (few.gain > 1) == (few.call_us < few.break_even_us)


@given(alphas, bandwidths, st.sampled_from([2, 4, 8]), st.integers(1, 512))
def test_a_call_below_the_break_even_pays_and_one_above_does_not(alpha, bandwidth, ranks, tokens):
    told = step(SEED, ranks, tokens, gbps=BANDWIDTH, curve=Curve(line(alpha, bandwidth, SIZES)))
    assert told.share == pytest.approx(told.comm_ms / told.step_ms)
    assume(told.gain != pytest.approx(1, rel=1e-9))
    assert (told.gain > 1) == (told.call_us < told.break_even_us)


def test_what_is_not_known_is_not_told():
    curve = Curve(line(40, 20, SIZES))
    unknown = step(Decoder(64, 5120), 8, 1, gbps=None, curve=curve)
    assert (unknown.step_ms, unknown.share, unknown.gain, unknown.break_even_us) == (None,) * 4
    assert unknown.comm_ms == pytest.approx(129 * (40 + 10240 / 20e3) / 1e3, rel=0.01)
    assert step(SEED, 8, 1, gbps=BANDWIDTH, curve=Curve([])) is None
    alone = step(SEED, 1, 1, gbps=BANDWIDTH, curve=Curve([]))
    assert (alone.comm_ms, alone.gain) == (0.0, 1.0)


def test_logits_are_counted_where_a_gather_was_timed():
    curve = Curve(line(40, 20, SIZES))
    told = step(Decoder(64, 5120, 31e9, 2, 152064), 8, 1, gbps=BANDWIDTH, curve=curve, gather=curve)
    assert told.gather_ms == pytest.approx((40 + 304128 / 20e3) / 1e3, rel=0.05)
    assert told.comm_ms == pytest.approx(129 * told.call_us / 1e3 + told.gather_ms)


def test_the_weights_of_a_dense_model_by_its_shape():
    qwen3_8b = {"hidden": 4096, "layers": 36, "intermediate": 12288, "vocabulary": 151936}
    # 8.19e9 parameters in all, of which a step reads one row of the input's 0.62e9.
    assert dense_weights(**qwen3_8b, heads=(32, 8, 128)) == pytest.approx(8.19e9 - 0.62e9, rel=0.01)


def document(results: list[tuple[str, int, float]], ranks: int = 8, device: str = "P800") -> dict:
    timed = [
        {
            "op": op,
            "bytes": size,
            "mode": "free-running",
            "in_place": True,
            "correct": True,
            "error": "",
            "calls": 60,
            "median": us / 1e6,
            "interval90": 0.0,
            "foreign_cpu": 0.0,
            "blocks": [[us / 1e6]],
            "ranks": [[us / 1e6]] * ranks,
        }
        for op, size, us in results
    ]
    world = {"schema": "diag/collectives/1", "device": "cuda", "backend": "nccl", "dtype": "bf16", "launcher": "diag"}
    members = [{"rank": rank, "host": "a", "device": device} for rank in range(ranks)]
    return world | {"size": ranks, "ranks": members, "results": timed}


SHAPE = {"architectures": ["Qwen3ForCausalLM"], "num_hidden_layers": 64, "hidden_size": 5120}
DENSE = {"intermediate_size": 25600, "vocab_size": 151936, "num_attention_heads": 64, "num_key_value_heads": 8}
SWEEP = [("all_reduce", size, 46 + size / LARGE * 89) for size in (10240, 163840, LARGE)]


def told(*documents: dict, more: str = ""):
    return examined("\n".join([*map(json.dumps, documents), more])).facts


def steps(*documents: dict, more: str = "") -> dict[tuple[int, int], DecodeStep]:
    return {(one.ranks, one.batch): one for one in told(*documents, more=more).all(DecodeStep)}


WISH = {"schema": "diag/decode/1", "batches": [1, 256], "weights_bytes": 31e9, "steps": [[256, 52.8]]}


def test_facts_of_the_field_report():
    found = steps(document(SWEEP), SHAPE, WISH)
    assert set(found) == {(ranks, tokens) for ranks in (1, 2, 4, 8) for tokens in (1, 256)}
    large, few = found[8, 256], found[8, 1]
    assert (round(large.comm_ms, 1), round(large.measured_share, 2), large.basis) == (17.4, 0.33, "measured")
    assert (large.gain, large.told_share, few.told_share) == (None, large.measured_share, few.share)
    assert (round(few.break_even_us, 1), few.limit, few.chosen, found[4, 1].chosen) == (87.6, "latency", True, False)
    assert found[4, 1].basis == "assumed"
    assert 1 <= FEW < 256


def test_the_line_of_a_sweep_is_a_fact_also_where_it_is_refused():
    (model,) = told(document(SWEEP)).all(CollectiveModel)
    assert (model.accepted, model.sizes, round(model.alpha_us, 1)) == (True, 3, 46.0)
    assert model.busbw_gbps == pytest.approx(model.bandwidth_gbps * 1.75, rel=1e-4)
    (model,) = told(document(SWEEP[:1])).all(CollectiveModel)
    assert (model.accepted, model.alpha_us, model.refused[:8]) == (False, None, "one size")


def test_weights_are_estimated_of_dense_models_alone():
    # Qwen3-32B: its card tells 31.2e9 parameters beside the two matrices of its vocabulary, of which a step reads one.
    dense = steps(document(SWEEP), SHAPE | DENSE | {"head_dim": 128})[8, 1]
    assert (dense.weights_from, dense.weights_bytes) == ("estimated", pytest.approx(2 * (31.2e9 + 0.78e9), rel=0.005))
    for more in ({"num_experts": 64}, {"quantization_config": {"quant_method": "awq"}}):
        assert steps(document(SWEEP), SHAPE | DENSE | more)[8, 1].step_ms is None


def test_a_launch_chooses_ranks_and_batch():
    found = steps(document(SWEEP), SHAPE, more="vllm serve /m --tensor-parallel-size 4 --max-num-seqs 64")
    assert {one for one, fact in found.items() if fact.chosen} == {(4, 1), (4, 64)}
    assert found[4, 64].basis == "assumed"


def test_bandwidth_that_was_measured_is_taken_before_the_makers():
    taken = {"seconds": 2**31 / 2e12, "fastest": 2**31 / 2e12, "samples": 9, "correct": True}
    step = {"step": "memory by copy", "read": 2**30, "written": 2**30, **taken}
    each = {"device": "cuda:0", "name": "P800", "memory_bytes": 2**36, "steps": [step], "phase": "done", "error": ""}
    tested = {"schema": "diag/device/1", "devices": [each], "unseen": ""}
    found = steps(document(SWEEP), SHAPE, WISH, tested)[8, 1]
    assert (found.bandwidth_from, found.bandwidth_gbps) == ("measured", pytest.approx(2000, rel=1e-3))
    assert found.weights_ms == pytest.approx(31e9 / 8 / 2e12 * 1e3, rel=1e-3)


def test_of_ranks_on_the_host_no_device_is_told():
    found = steps(document(SWEEP, ranks=2, device="cpu"), SHAPE, WISH, more="GPU 0: NVIDIA H200")
    assert {one.bandwidth_gbps for one in found.values()} == {None}
    assert found[2, 1].comm_ms == pytest.approx(129 * SWEEP[0][2] / 1e3, rel=1e-4)


@pytest.mark.parametrize("form", ["terminal", "markdown"])
@pytest.mark.parametrize(("language", "refused"), [("en", "refused: "), ("zh", "拟合不成立：")])
def test_the_tables_of_a_report(form, language, refused):
    bent = [("broadcast", size, us) for size, us in ((1024, 10), (2048, 90), (4096, 20), (8192, 200))]
    shown = rendered(
        json.dumps(document(SWEEP + bent)) + "\n" + json.dumps(SHAPE) + "\n" + json.dumps(WISH), form, language
    )
    assert re.search(r"all_reduce +free-running +8 +46 +29.5 +51.5 +1.29\d MiB +0.0%\n", shown)
    assert re.search(rf"broadcast +free-running +8 .*{refused}", shown)
    assert re.search(r" 256 +8 +2.5 MiB +135 +17.4 +19 +≤ 92% +52.8 +33% ", shown)
    assert re.search(r" 1 +8 +10 KiB +46.3 +5.98 +7.59 +79% +1.70 +87.6 ", shown)


def rendered(text: str, form: str, language: str) -> str:
    done = examined(text)
    source = Source(kind="paste", name="x")
    judged = Judged(done.facts, done.results)
    report = assemble(judged, LOADED.checks, language=language, tool="0", command="comm", source=source)
    return render(report, form, LOADED.templates)


def test_wrong_results_tell_no_time():
    wrong = document(SWEEP)
    for one in wrong["results"]:
        one["correct"] = False
    assert told(wrong, SHAPE).all(CollectiveModel) == told(wrong, SHAPE).all(DecodeStep) == ()


def test_a_wish_that_makes_no_sense_is_left_out():
    strange = {"batches": [0, -1, "x", None, 1e300, 4], "weights_bytes": "all", "width": -2, "steps": [7, [1], [8, 0]]}
    done = examined(json.dumps(WISH | strange))
    (wish,) = done.facts.all(DecodeWish)
    assert (done.broken, wish.batches, wish.weights_bytes, wish.width, wish.steps) == ((), (4,), None, None, ())


@pytest.mark.parametrize(("device", "graphs"), [("P800", True), ("cpu", False)])
@pytest.mark.parametrize(("rule", "taken"), [("communication-dominates", 25.0), ("communication-heavy", 52.8)])
def test_no_graph_is_proposed_where_the_device_has_none(device, graphs, rule, taken):
    texts = (document(SWEEP, device=device), SHAPE, WISH | {"steps": [[256, taken]]})
    done = examined("\n".join(map(json.dumps, texts)))
    check = LOADED.checks[f"collectives/{rule}"]
    (finding,) = next(one.findings for one in done.results if one.check == check.id)
    commands = [command for one in check.remedies_for(finding) for command in one.commands]
    assert commands
    assert any("--mode graph" in one for one in commands) == graphs


@pytest.mark.parametrize("rule", ["communication-dominates", "communication-heavy"])
def test_a_step_shorter_than_its_calls_is_not_judged(rule):
    texts = list(map(json.dumps, (document(SWEEP), SHAPE, WISH | {"steps": [[256, 1.2]], "batches": [256]})))
    (result,) = (one for one in examined("\n".join(texts)).results if one.check == f"collectives/{rule}")
    assert (result.status, result.findings) == ("skip", ())
    assert "take 17.4 ms, the whole measured step 1.2 ms: that was not measured with" in result.reason
    for language, why in (("en", "not measured with these calls"), ("zh", "不是以这些通信")):
        shown = rendered("\n".join(texts), "terminal", language)
        assert re.search(rf" 256 +8 +2.5 MiB .* 1.2 +.*{why}", shown)
        assert not re.search(r"\d{4}%", shown)


def test_beside_a_step_shorter_than_its_calls_others_are_judged():
    texts = (document(SWEEP), SHAPE, WISH | {"steps": [[1, 0.1], [256, 25.0]]})
    results = {one.check: one for one in examined("\n".join(map(json.dumps, texts))).results}
    (finding,) = results["collectives/communication-dominates"].findings
    assert finding.values["batch"] == 256
