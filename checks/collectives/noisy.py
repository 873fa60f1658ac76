"""A measurement between devices was disturbed.

## What it finds
Results whose 90 % interval stayed wider than a twentieth of the result, or during which other processes took more than
a twentieth of the processors.

## Why it matters
What is disturbed is slower, never faster: the figures are the least that the machine reaches, and a fault may hide
behind them. Nothing is failed by them but by their fastest call.

## What it cannot know
Who disturbed it: somebody else's work on the same devices does not show in the processors' time.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Collective, Evidence, Facts, Finding, Remedy, Undecided, check, size_in_words

WIDE = 0.05

HEAD = (
    '{"schema": "diag/collectives/1", "device": "cpu", "backend": "gloo", "dtype": "bf16", "launcher": "diag", "size": '
    "2, "
    '"ranks": [{"rank": 0, "host": "a"}, {"rank": 1, "host": "a"}], "results": ['
)
ROW = (
    '{"op": "all_reduce", "bytes": 1048576, "mode": "synchronised", "in_place": true, "correct": true, "error": "", '
    '"calls": 60, "median": 0.001, "interval90": %s, "blocks": [[0.001]], "ranks": [[0.001], [0.001]], "foreign_cpu": '
    "%s}]}\n"
)
BUSY = HEAD + ROW % (0.00002, 0.41)
UNSTEADY = HEAD + ROW % (0.0004, 0.0)
QUIET = HEAD + ROW % (0.00002, 0.01)


@check(
    "collectives/noisy",
    severity="info",
    about="device",
    needs=(Collective,),
    words={
        "en": {
            "title": "The measurement was disturbed",
            "summary": "{count} of {all} results are lower bounds: {why.en}",
            "cause": "Other processes ran meanwhile, or the ranks have fewer cores than they need.",
        },
        "zh": {
            "title": "测量受到干扰",
            "summary": "{all} 项结果中有 {count} 项只是下限：{why.zh}",
            "cause": "测量期间有其他进程在运行，或各 rank 可用的核心不足。",
        },
    },
    remedies=(
        Remedy(
            key="idle",
            title={
                "en": "See who runs, and measure again on an idle machine, for longer",
                "zh": "查看正在运行的进程；机器空闲后延长时间重新测量",
            },
            commands=("top -b -n 1 | head -20", "nvidia-smi; rocm-smi; xpu-smi"),
            safety="safe",
        ),
    ),
    sources=("https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md",),
    explains=("collectives/below-typical",),
    fires=(BUSY, UNSTEADY),
    silent=(QUIET,),
)
def noisy(facts: Facts) -> Iterator[Answer]:
    """Count the results that were disturbed; the worst is shown."""
    told = [one for one in facts.all(Collective) if one.interval90_us is not None or one.foreign_cpu is not None]
    if not told:
        yield Undecided(reason="nothing tells how steady the results were")
        return
    disturbed = [one for one in told if one.noisy or _width(one) >= WIDE or (one.foreign_cpu or 0.0) > WIDE]
    if not disturbed:
        return
    worst = max(disturbed, key=lambda one: max(_width(one), one.foreign_cpu or 0.0))
    width, foreign = _width(worst), worst.foreign_cpu or 0.0
    why = {
        "en": f"up to ±{width:.0%} at {size_in_words(worst.bytes)}",
        "zh": f"{size_in_words(worst.bytes)} 时波动达 ±{width:.0%}",
    }
    if foreign > width:
        why = {"en": f"others took {foreign:.0%} of the processors", "zh": f"其他进程占用了 {foreign:.0%} 的处理器"}
    yield Finding(
        values={"count": len(disturbed), "all": len(told), **{f"why.{name}": words for name, words in why.items()}},
        evidence=(Evidence.of(worst),),
    )


def _width(one: Collective) -> float:
    """Half of the 90 % interval, as a share of the result."""
    typical = one.latency_us.typical
    return one.interval90_us / typical if one.interval90_us is not None and typical else 0.0
