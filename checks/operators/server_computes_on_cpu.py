"""A server that has an accelerator computes with torch's kernels for the CPU.

## What it finds
A process that holds an accelerator's device file and has torch mapped, of whose processor time, as `perf` saw it, a
fifth or more goes into ATen's kernels for the CPU, its generator of random numbers among them; with the operators that
the functions are named after, and the Python line that it was in.

## Why it matters
The device waits for it. Sampling is seen even where a kernel copies past torch, which the dispatcher does not see.

## What it cannot know
Work that belongs on the host (preparing pictures) runs in such kernels, too: the line tells. What a library of
mathematics takes for them is not counted, so the share is a lower bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatch

from diag.api import (
    Answer,
    Evidence,
    Facts,
    Finding,
    HotSymbol,
    ProcessHolds,
    PythonStack,
    Remedy,
    Unavailable,
    Undecided,
    Vendor,
    check,
    expression,
)

PART = 0.2
"""The part of a process's samples from which on it computes on the CPU."""
LIBRARY = "libtorch_cpu."
KERNEL = expression(r"AVX2|AVX512|DEFAULT|SVE256|_kernel|_vec_|CPUGeneratorImpl|cpu_fallback|mkldnn|dnnl")
NAMED = expression(r"(?:\(anonymous namespace\)::|_GLOBAL__N_1\d{1,3}|::)(?P<name>[a-z][a-z0-9_]{1,60}?)_kernel")
GENERIC = ("cpu", "cpu_serial", "cpu_upsample", "vectorized_inner_reduction", "binary")
SHOWN = 5
# Taken here, by `diag ops --pid`, of a process that drew exponential_ on a device that has no kernel for it, with a
# file of that name open; symbols are cut.
HOLDS = "process 11917 (python) holds /dev/davinci0; torch; threads 11917 11927\n"
SAMPLES = """\
# Overhead      Pid:Command  Shared Object         Symbol
# ........  ...............  ....................  ..........
#
    57.69%    11917:python   libm.so.6             [.] __log1p_fma
    10.85%    11917:python   libtorch_cpu.so       [.] _ZN3c1012function_refIFvPPcPKlllEE11callback_fnIZN2at18Tensor\
IteratorBase15loop_2d_from_1dIZNS8_6native4AVX217cpu_serial_kernelIZZZNSB_9templates3cpu12_GLOBAL__N_118exponential_\
kernelIPNS8_16CPUGeneratorImplEEE
    10.13%    11917:python   libtorch_cpu.so       [.] at::CPUGeneratorImpl::random64
     2.35%    11927:python   libtorch_cpu.so       [.] at::native::(anonymous namespace)::_vec_softmax_lastdim<float>
"""
STACK = """\
Process 11917: python server.py
Python v3.11.7 (/usr/bin/python3.11)

Thread 11917 (active): "MainThread"
    raced (diag/measure/sampler.py:142)
    exponential_draw (diag/measure/sampler.py:130)
    execute_model (server.py:7)
    <module> (server.py:10)
"""
COMPUTES = HOLDS + SAMPLES + STACK
POLLS = """\
process 11893 (python) holds /dev/davinci0; torch; threads 11893
# Overhead      Pid:Command  Shared Object                          Symbol
# ........  ...............  .....................................  ..........
#
     9.37%    11893:python   libpython3.11.so.1.0                   [.] _PyObject_Malloc
     6.30%    11893:python   libpython3.11.so.1.0                   [.] _PyEval_EvalFrameDefault
     2.04%    11893:python   _json.cpython-311-x86_64-linux-gnu.so  [.] scan_once_unicode
"""


@check(
    "operators/server-computes-on-cpu",
    severity="warning",
    about="device",
    needs=(ProcessHolds,),
    uses=(HotSymbol, PythonStack, Unavailable, Vendor),
    words={
        "en": {
            "title": "A server with an accelerator computes on the CPU",
            "summary": "process {pid} ({name}), which holds {device}: {share} % of its processor time goes into "
            "torch's kernels for the CPU{operators.en}{where.en}",
            "cause": "An operator has no kernel for the device, or one that copies to the host, and is computed there.",
        },
        "zh": {
            "title": "持有加速器的服务进程在 CPU 上计算",
            "summary": "进程 {pid}（{name}，持有 {device}）有 {share} % 的处理器时间花在 torch 的 CPU 内核上"
            "{operators.zh}{where.zh}",
            "cause": "某个算子没有设备内核，或其内核拷回主机后在 CPU 上计算。",
        },
    },
    remedies=(
        Remedy(
            key="name",
            title={
                "en": "Let diag name the operators and what they cost, on the same device while nothing is served",
                "zh": "在空闲的同款设备上让 diag 指出是哪些算子及其开销",
            },
            commands=("diag ops",),
            safety="safe",
            verify="diag ops --pid {pid}",
            source="https://github.com/vllm-project/vllm-ascend/pull/11419",
        ),
    ),
    sources=(
        "https://github.com/baidu/vLLM-Kunlun/pull/3",
        "https://github.com/vllm-project/vllm-ascend/pull/11419",
    ),
    fires=(COMPUTES,),
    silent=(POLLS,),
)
def server_computes_on_cpu(facts: Facts) -> Iterator[Answer]:
    """Each process that holds an accelerator, by what was seen of it."""
    nodes = [node for one in facts.all(Vendor) for node in one.nodes]
    held = {
        one.pid: [path for path in one.devices if any(fnmatch(path, node) for node in nodes)]
        for one in facts.all(ProcessHolds)
    }
    servers = [one for one in facts.all(ProcessHolds) if held[one.pid] and one.torch]
    if not servers:
        yield Undecided(reason="none of these processes has torch and the device file of an accelerator open")
    elif facts.first(HotSymbol) is None:
        untold = [one.reason for one in facts.all(Unavailable) if HotSymbol.__name__ in one.tells]
        yield Undecided(reason=f"what they compute is not told: {'; '.join(untold) or 'no samples'}")
        return
    for one in servers:
        own = [symbol for symbol in facts.all(HotSymbol) if symbol.thread in one.threads]
        kernels = [symbol for symbol in own if LIBRARY in symbol.object and KERNEL.search(symbol.symbol)]
        part = sum(symbol.share for symbol in kernels) / max(1e-9, sum(symbol.share for symbol in own))
        if part >= PART:
            yield _finding(one, held[one.pid][0], part, kernels, facts)


def _finding(one: ProcessHolds, device: str, part: float, kernels: list[HotSymbol], facts: Facts) -> Finding:
    names = list(dict.fromkeys(name for symbol in kernels for name in _operators(symbol.symbol)))[:SHOWN]
    active = [stack for stack in facts.all(PythonStack) if stack.pid == one.pid and stack.frames]
    lines = Counter(stack.frames[0] for stack in active)
    line = lines.most_common(1)[0][0] if lines else ""
    stacks = [stack for stack in active if stack.frames[0] == line][:1]
    return Finding(
        subject=f"process {one.pid}",
        values={
            "pid": one.pid,
            "name": one.name,
            "device": device,
            "share": round(100 * part),
            "operators.en": f" ({', '.join(names)})" if names else "",
            "operators.zh": f"（{'、'.join(names)}）" if names else "",
            "where.en": f", in {line}" if line else "",
            "where.zh": f"，位于 {line}" if line else "",
        },
        confidence="medium",
        evidence=(Evidence.of(one), *map(Evidence.of, (*kernels[:SHOWN], *stacks))),
    )


def _operators(symbol: str) -> Iterator[str]:
    """The operators that a kernel's symbol is named after, plain or mangled."""
    for found in NAMED.finditer(symbol):
        if found["name"] not in GENERIC:
            yield found["name"]
