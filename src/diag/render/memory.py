"""What comes of a launch in a device's memory: the verdict, a bar, and a table of its terms with their origins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from diag.facts import MemoryPlan
from diag.render.collectives import aligned
from diag.report import Report

GIB = 2**30
COLUMNS = 60
"""Width of the bar that is the whole device."""
HEAD = ("", "GiB", "±", "")
LEFT = (True, False, False, True)
MARKS = "#=+~%*o@&"
WORDS = {
    "en": {
        "plan": "Memory of each of {count} devices ({device}, {total:.2f} GiB): {outcome}, {confidence} confidence",
        "a device": "a device",
        "starts": "it starts",
        "tight": "it starts, with little to spare",
        "refused-free": "it is refused: less is free than it asks for",
        "refused-room": "it is refused: nothing is left for the KV cache",
        "refused-length": "it is refused: its longest request does not fit",
        "refused-states": "it is refused: fewer states fit than requests",
        "oom-at-runtime": "it runs out of memory while it serves",
        "release": "other releases than the constants were fitted to",
        "device": "another device than the constants were fitted on",
        "step": "a larger step than any that the constants were fitted to",
        "linear": "layers with a state take more in newer releases than is explained",
        "drafts": "a model that drafts, of which nothing is told",
        "hair": "what its terms may be off decides",
        "hypothesis": "a hypothesis alone decides",
        "size": "the device's memory is taken from what its maker or tool states",
        "version": "the engine's release is not told: the newest known",
        "doubts": "Doubts: {doubts}.",
        "asked": "asked for ({fraction})",
        "KV cache and states": "KV cache and states",
        "left over": "left over",
        "weights": "weights",
        "activation": "activations and sampler",
        "other": "beside torch (communicators)",
        "graphs": "graphs",
        "context": "context, before the engine looks",
        "fragmentation": "fragments",
        "work": "work (activations, graphs)",
        "left by the loader": "left by the loader",
        "linear layers in the profile": "layers with a state, in the profile",
        "linear layers beyond it": "layers with a state, while serving",
        "states beyond the profile": "states that the profile does not see",
        "others": "taken by others",
        "unexplained": "unexplained, by the pool printed",
        "pool": "KV cache: {tokens} tokens; {concurrency} requests of {length} at once",
        "longest": "; the longest request has {longest}",
        "limited": "Demand {requests} x {length}: {used:.0%} of the pool, so requests wait or are preempted (capacity-"
        "limited); nothing crashes for that",
        "held": "Demand {requests} x {length}: {used:.1%} of the pool",
        "safest": "Highest fraction with which it starts: {safest:.3g}",
        "calibrated": "Printed by the engine: {names}",
        "advice": "What would help, by the same model, the cheapest first:",
        "change": "{flags}: {outcome}, {tokens} tokens",
        "of demand": ", {used:.0%} of the pool",
    },
    "zh": {
        "plan": "{count} 个设备（{device}，{total:.2f} GiB）各自的显存：{outcome}，置信度 {confidence}",
        "a device": "设备",
        "starts": "可以启动",
        "tight": "可以启动，但余量很小",
        "refused-free": "拒绝启动：空闲显存少于所要求的",
        "refused-room": "拒绝启动：没有剩余显存给 KV cache",
        "refused-length": "拒绝启动：放不下一个最长请求",
        "refused-states": "拒绝启动：能容纳的状态少于并发请求数",
        "oom-at-runtime": "运行中显存不足",
        "release": "引擎版本不在常数拟合范围内",
        "device": "设备不是拟合常数所用的设备",
        "step": "单步规模超出拟合范围",
        "linear": "新版本中带状态的层占用更多，原因未明",
        "drafts": "草稿模型未给出任何信息",
        "hair": "结论取决于各项误差",
        "hypothesis": "结论仅由一个假设决定",
        "size": "设备显存取自厂商或工具给出的数值",
        "version": "未给出引擎版本：按已知最新版本",
        "doubts": "存疑：{doubts}。",
        "asked": "引擎要求（{fraction}）",
        "KV cache and states": "KV cache 与状态",
        "left over": "剩余",
        "weights": "权重",
        "activation": "激活与采样",
        "other": "torch 以外（通信库）",
        "graphs": "图捕获",
        "context": "引擎查看前的上下文",
        "fragmentation": "碎片",
        "work": "运行所需（激活、图捕获）",
        "left by the loader": "加载器遗留",
        "linear layers in the profile": "带状态的层（profile 时）",
        "linear layers beyond it": "带状态的层（服务时）",
        "states beyond the profile": "profile 未计入的状态",
        "others": "其他进程占用",
        "unexplained": "由打印的池大小推得，原因未明",
        "pool": "KV cache：{tokens} 个 token；同时容纳 {concurrency} 个长度 {length} 的请求",
        "longest": "；最长请求为 {longest}",
        "limited": "需求 {requests} x {length}：为池的 {used:.0%}，请求会排队或被抢占（容量受限），不会因此崩溃",
        "held": "需求 {requests} x {length}：为池的 {used:.1%}",
        "safest": "可启动的最高占比：{safest:.3g}",
        "calibrated": "引擎打印的数值：{names}",
        "advice": "可行的调整（同一模型重新计算，代价小者在前）：",
        "change": "{flags}：{outcome}，{tokens} 个 token",
        "of demand": "，为池的 {used:.0%}",
    },
}


def table(report: Report, words: Mapping[str, str]) -> Iterator[str]:
    """The lines of each plan."""
    own = WORDS[report.language]
    for one in report.told(MemoryPlan):
        yield ""
        count = one.ranks * one.stages * one.engines
        yield own["plan"].format(
            count=count,
            device=one.device or own["a device"],
            total=one.total / GIB,
            outcome=own[one.outcome],
            confidence=words[one.confidence],
        )
        yield f"  [{bar(one)}]"
        yield from aligned([HEAD, *rows(one, own)], LEFT)
        yield from said(one, own)


def parts(one: MemoryPlan) -> Iterator[tuple[str, float]]:
    """What the device is divided into, in the order of the bar."""
    yield from ((term.name, term.bytes) for term in one.terms if term.inside)
    yield "KV cache and states", max(one.room, 0.0)
    yield from ((term.name, term.bytes) for term in one.terms if not term.inside)


def bar(one: MemoryPlan) -> str:
    """The device as a line of characters, what is left over as points; what does not fit is cut."""
    marks = chain(MARKS, MARKS)
    line = ""
    for _, size in parts(one):
        mark = next(marks)
        line += mark * round(COLUMNS * size / one.total)
    return line[:COLUMNS].ljust(COLUMNS, ".")


def rows(one: MemoryPlan, words: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """The terms, with marks as in the bar."""
    asked = f"{one.fraction:.3g}"
    yield (words["asked"].format(fraction=asked), f"{one.asked / GIB:.2f}", "", "")
    told = {term.name: term for term in one.terms}
    for mark, (name, size) in zip(chain(MARKS, MARKS), parts(one), strict=False):
        term = told.get(name)
        off = f"{term.off / GIB:.2f}" if term and term.off else ""
        value = size if term else one.room
        yield (f"{mark} {words[name]}", f"{value / GIB:.2f}", off, f"[{term.origin}]" if term else "")
    yield (f". {words['left over']}", f"{one.spare / GIB:.2f}", "", "")


def said(one: MemoryPlan, words: Mapping[str, str]) -> Iterator[str]:
    """What follows from it."""
    if one.doubts:
        yield words["doubts"].format(doubts="; ".join(words[name] for name in one.doubts))
    if one.tokens and one.concurrency is not None:
        told = words["pool"].format(tokens=f"{one.tokens:,}", concurrency=f"{one.concurrency:.3g}", length=one.length)
        yield told + (words["longest"].format(longest=f"{one.longest:,}") if one.longest else "")
    if one.demand and one.used is not None:
        name = "limited" if one.capacity_limited else "held"
        yield words[name].format(requests=one.demand[0], length=one.demand[1], used=one.used)
    if one.safest is not None:
        yield words["safest"].format(safest=one.safest)
    if one.calibrated:
        yield words["calibrated"].format(names=", ".join(words[name] for name in one.calibrated))
    if one.advice:
        yield words["advice"]
    for change in one.advice:
        flags = " ".join(f"--{name} {value}".rstrip() for name, value in change.flags)
        line = words["change"].format(flags=flags, outcome=words[change.outcome], tokens=f"{change.tokens:,}")
        yield f"  {line}" + (words["of demand"].format(used=change.used) if change.used is not None else "")
