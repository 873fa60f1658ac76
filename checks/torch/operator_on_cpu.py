"""A backend of torch says that an operator ran on the CPU.

## What it finds
The lines in which torch for Ascend, Intel XPU, Gaudi, Cambricon, Apple and DirectML say so: one finding for each
backend, with the operators that it names, and which of them engines call in each step.

## Why it matters
The inputs are copied to the host, computed there and copied back, while the device waits. Once at the start this costs
nothing; a sampler's operator goes over `[batch, vocabulary]` numbers for each token.

## What it cannot know
How often it ran: most backends print it once for an operator, some once for a process. Kernels that go through the CPU
by themselves print nothing; `diag ops` measures those.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    BackendFallback,
    EngineOperator,
    Evidence,
    Facts,
    FallbackNotice,
    Finding,
    Remedy,
    Text,
    Undecided,
    check,
    cut,
)

NPU = """\
[W compiler_depend.ts:51] Warning: CAUTION: The operator 'aten::isin.Tensor_Tensor_out' is not currently supported on \
the NPU backend and will fall back to run on the CPU. This may have performance implications. (function \
npu_cpu_fallback)
"""
WRAPPED = """\
Warning: CAUTION: The operator 'torchvision::nms' is not currently supported on the NPU backend and w
ill fall back to run on the CPU. This may have performance implications. (function npu_cpu_fallback)
"""
RANKED = """\
[rank1]:[W VariableFallbackKernel.cpp:51] Warning: CAUTION: The operator 'aten::isin.Tensor_Tensor_out' is not \
currently supported on the NPU backend and will fall back to run on the CPU. This may have performance implications. \
(function npu_cpu_fallback)
"""
QUOTED = (
    "The operator 'aten::isin.Tensor_Tensor_out' is not currently supported on the NPU backend and will fall back to "
    "run on CPU\n"
)
XPU = """\
[rank0]:[W128 09:40:21.158240118 RegisterXPU.cpp:45778] Warning: Aten Op fallback from XPU to CPU happends. This may \
have performance implications. If need debug the fallback ops please set environment variable \
`PYTORCH_DEBUG_XPU_FALLBACK=1`  (function operator())
"""
NAMED = "UserWarning: The operator 'aten::exponential_ on the XPU backend is falling back to run on the CPU.\n"
GLUED = "UserWarning: The operator 'aten::sort.stableon the XPU backend and will fall back to run on the CPU.\n"
FORCED = "UserWarning: The operator 'div.Scalar' registered to be forced to fallback to CPU.\n"
MPS = """\
UserWarning: The operator 'aten::_upsample_bilinear2d_aa.out' is not currently supported on the MPS backend and will \
fall back to run on the CPU. This may have performance implications. (Triggered internally at MPSFallback.mm:13.)
"""
DML = """\
xxx\\Lib\\site-packages\\torch\\optim\\adam.py:522: UserWarning: The operator 'aten::_foreach_lerp_.Scalar' is not \
currently supported on the DML backend and will fall back to run on the CPU. This may have performance implications.
"""
MLU = """\
[W MLUFallback.cpp:73] Warning: The operator 'aten::exponential_' fails on the MLU backend and will fall back to run \
on the CPU. This may have performance implications.You can set the environment variable `TORCH_MIN_CNLOG_LEVEL=0` to \
see detailed error msg, or set the environment variable `ENABLE_FALLBACK_TO_CPU=0` to disable fallback.
"""
HPU = """\
CPU fallback digamma : self=HPUBFloat16Type

Frequency of op and op name that were executed on CPU:
1       aten::digamma
2       aten::multinomial
"""
SILENCED = (
    'warnings.filterwarnings("ignore", message="The operator .* is not currently supported on the MPS backend and will '
    'fall back to run on the CPU")\n'
)
RAISES = """\
NotImplementedError: The operator 'aten::nanmedian.dim_values' is not currently implemented for the MLU device. If you \
want this op to be added, please contact the engineer of Cambricon.
"""
SENTENCE = (
    "As a result, the environment becomes incompatible, and vLLM crashes on startup (NPU fallback -> CPU -> "
    "scaled_dot_product_attention error).\n"
)
TITLE = "Explicitly enable CPU fallback environment for XPU test\n"
SOURCE = """\
    TORCH_WARN(
        "The operator '",
        op.schema().operator_name(),
        "' is not currently supported ",
        "on the MLU backend and will fall back to run on the CPU.",
"""
PROFILE = "1       aten::digamma\n"
STARTED = """\
INFO 04-14 06:01:12 [gpu_model_runner.py:1258] Starting to load model /data/DeepSeek-R1-Distill-Qwen-1.5B...
"""

SHOWN = 6
XPU_SOURCE = "https://github.com/intel/torch-xpu-ops/blob/ab84f925a234/src/ATen/native/xpu/XPUFallback.cpp"


@check(
    "torch/operator-on-cpu",
    severity="warning",
    about="torch",
    needs=(),
    uses=(BackendFallback, EngineOperator, FallbackNotice, Text),
    words={
        "en": {
            "title": "An operator runs on the CPU, since the accelerator's backend has none for it",
            "summary": "{backend}: {operators.en} ran on the CPU{step.en}",
            "cause": "The maker's layer of torch has no kernel for the operator with these types, or its kernel "
            "failed. It copies the tensors to the host, computes there and copies back. Once at the start this is "
            "harmless; in each step of decoding or sampling it bounds the throughput, while the device looks idle.",
        },
        "zh": {
            "title": "加速器后端无对应算子，回退到 CPU 执行",
            "summary": "{backend}：{operators.zh}在 CPU 上执行{step.zh}",
            "cause": "厂商的 torch 适配层没有该算子（或该数据类型）的内核，或其内核执行失败，"
            "于是把张量拷回主机计算后再拷回设备。"
            "仅在启动阶段出现一次则无害；若每个解码或采样步都发生，则会成为吞吐瓶颈，而设备显得空闲。",
        },
    },
    remedies=(
        Remedy(
            key="leave",
            title={
                "en": "The speed is right, or it comes once at the start: leave it",
                "zh": "速度正常，或仅在启动时出现一次：忽略即可",
            },
            safety="safe",
            source="https://github.com/opendatalab/MinerU/issues/1941",
        ),
        Remedy(
            key="name",
            title={"en": "Let the backend name each operator", "zh": "让后端打印每个算子的名称"},
            commands=("export {log}",),
            safety="disruptive",
            source="https://github.com/intel/torch-xpu-ops/issues/262",
        ),
        Remedy(
            key="forbid",
            title={
                "en": "In a test, forbid it: the call then ends with an error whose traceback shows where it comes "
                "from. Not in production",
                "zh": "在测试环境中禁止回退：调用会直接报错，其调用栈指出来源。不要用于生产环境",
            },
            commands=("export {forbid}",),
            safety="disruptive",
            verify="env | grep FALLBACK",
            source="https://github.com/Ascend/pytorch/blob/9e73e708ab93/docs/zh/api/environment_variable/op_execution"
            "/TORCH_NPU_FALLBACK_CPU_DISABLE.md",
        ),
        Remedy(
            key="upgrade-ascend",
            title={
                "en": "Upgrade torch_npu, CANN and the engine's plug-in together, or take the engine made for the NPU "
                "(vllm-ascend, SGLang with --device npu) in place of transformers",
                "zh": "一并升级 torch_npu、CANN 与引擎插件，"
                "或改用面向 NPU 的推理引擎（vllm-ascend、SGLang --device npu）",
            },
            commands=('python -c "import torch, torch_npu; print(torch.__version__, torch_npu.__version__)"',),
            safety="manual",
            source="https://github.com/opendatalab/MinerU/issues/1695",
        ),
        Remedy(
            key="upgrade-xpu",
            title={
                "en": "Upgrade torch for XPU: lists of 2024 sent exponential_, multinomial, topk and hundreds of "
                "others to the CPU, the one of August 2026 linear algebra alone",
                "zh": "升级 XPU 版 torch：2024 年的回退列表含 exponential_、multinomial、topk 等数百个算子，"
                "2026 年 8 月的列表仅剩线性代数类算子",
            },
            commands=('python -c "import torch; print(torch.__version__, torch.xpu.is_available())"',),
            safety="manual",
            source=XPU_SOURCE,
        ),
        Remedy(
            key="unforce",
            title={"en": "Take the variable away that forces it", "zh": "删除强制回退的环境变量"},
            commands=("unset PYTORCH_XPU_FALLBACK_OP",),
            safety="disruptive",
            verify="env | grep PYTORCH_XPU_FALLBACK_OP || echo unset",
            source=XPU_SOURCE,
        ),
        Remedy(
            key="upgrade",
            title={
                "en": "Take another release of the maker's torch, whose list of operators differs",
                "zh": "更换该厂商 torch 的版本（支持的算子不同）",
            },
            safety="manual",
            source="https://github.com/microsoft/DirectML/issues/604",
        ),
        Remedy(
            key="replace",
            title={
                "en": "It is in each step: see what calls it, and replace the call or keep its tensors small",
                "zh": "每步都在执行：查看由谁调用，并替换该调用或减小其张量",
            },
            commands=("py-spy dump --native --pid PID",),
            safety="manual",
            source="https://github.com/vllm-project/vllm-ascend/pull/11419",
        ),
    ),
    sources=(
        "https://github.com/opendatalab/MinerU/issues/1695",
        "https://github.com/opendatalab/MinerU/issues/1941",
        "https://github.com/vllm-project/vllm/pull/8054",
        "https://github.com/vllm-project/vllm-ascend/pull/11419",
        "https://github.com/hiyouga/LlamaFactory/issues/4135",
        "https://github.com/modelscope/ms-swift/issues/1047",
        "https://github.com/intel/torch-xpu-ops/issues/262",
        "https://github.com/intel/torch-xpu-ops/issues/1328",
        "https://github.com/pytorch/pytorch/issues/126488",
        XPU_SOURCE,
        "https://github.com/roboflow/rf-detr/issues/29",
        "https://github.com/microsoft/DirectML/issues/604",
        "https://github.com/Cambricon/torch_mlu/blob/d578002c0863/torch_mlu/csrc/aten/MLUFallback.cpp",
        "https://docs.habana.ai/en/latest/PyTorch/Model_Optimization_PyTorch/Optimization_in_PyTorch_Models.html",
        "https://github.com/vllm-project/vllm-ascend/issues/7587",
    ),
    fires=(NPU, WRAPPED, RANKED, QUOTED, XPU, NAMED, GLUED, FORCED, MPS, DML, MLU, HPU),
    silent=tuple(STARTED + one for one in (SILENCED, RAISES, SENTENCE, TITLE, SOURCE, PROFILE)),
)
def operator_on_cpu(facts: Facts) -> Iterator[Answer]:
    """One finding for each backend that says so."""
    rows = {one.backend: one for one in facts.all(BackendFallback)}
    engines = {_base(one.operator) for one in facts.all(EngineOperator)}
    told: dict[str, list[FallbackNotice]] = {}
    for notice in facts.all(FallbackNotice):
        told.setdefault(notice.backend, []).append(notice)
    for backend, notices in told.items():
        yield _finding(notices, rows.get(backend), engines)
    if not told and not any("engine-log" in one.kinds for one in facts.all(Text)):
        yield Undecided(reason="no log of a program that uses torch was read")


def _finding(notices: list[FallbackNotice], row: BackendFallback | None, engines: set[str]) -> Finding:
    named = [one.operator for one in notices if one.operator]
    stepped = [name for name in named if _base(name) in engines]
    named = [*stepped, *(name for name in named if name not in stepped)]
    values = {
        "backend": notices[0].backend,
        "operators.en": _listed(named, ", ") or "an operator that it does not name",
        "operators.zh": _listed(named, "、") or "某个未指明的算子",
        "step.en": f"; engines call {_which(stepped, named, 'it', ', ')} in each step" if stepped else "",
        "step.zh": f"；推理引擎每一步都会调用{_which(stepped, named, '它', '、')}" if stepped else "",
        "log": row.log if row else "",
        "forbid": row.forbid if row else "",
    }
    return Finding(
        subject=notices[0].backend,
        values={**values},
        evidence=tuple(Evidence.of(one) for one in notices[:SHOWN]),
        remedies=tuple(_remedies(notices, row, bool(named))),
    )


def _remedies(notices: list[FallbackNotice], row: BackendFallback | None, named: bool) -> Iterator[str]:
    backend = notices[0].backend
    if any(one.why == "forced" for one in notices):
        yield "unforce"
    yield "leave"
    if row and row.log and (not named or any(one.why == "failed" for one in notices)):
        yield "name"
    yield {"NPU": "upgrade-ascend", "XPU": "upgrade-xpu"}.get(backend, "upgrade")
    if row and row.forbid:
        yield "forbid"
    yield "replace"


def _base(operator: str) -> str:
    return operator.removeprefix("aten::").partition(".")[0]


def _which(stepped: list[str], named: list[str], it: str, between: str) -> str:
    return it if stepped == named and len(named) == 1 else _listed(stepped, between)


def _listed(names: list[str], between: str) -> str:
    more = f"{between}… ({len(names)})" if len(names) > SHOWN else ""
    return cut(between.join(names[:SHOWN]), 400) + more
