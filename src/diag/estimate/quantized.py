"""How a checkpoint's numbers are kept: bytes of a weight by the module it stands in, from `quantization_config`.

Scales and zero points are counted with the weights. What is never quantized (embeddings, the head, norms, routers,
convolutions) is not asked for here. A way of quantizing that is not known has no answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import prod
from typing import TYPE_CHECKING, Any

from diag.estimate.model import listed, part

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Config = Mapping[str, Any]

IGNORED = ("ignore", "modules_to_not_convert", "ignored_layers", "llm_int8_skip_modules", "exclude_modules", "exclude")
STATED = ("quantization_config", "compression_config")
NAMES = {
    "model.language_model.": "model.",
    "language_model.model.": "model.",
    "language_model.": "",
    "backbone.": "model.",
    "block_sparse_moe": "mlp",
    "feed_forward": "mlp",
    "shared_expert.": "shared_experts.",
    "moe.": "mlp.",
}
"""What families call the same part otherwise."""
BLOCK, CHANNEL, HALF, SCALE8, NIBBLE = 4, 0.0, 2, 1, 0.5
GROUP = 128
FLOAT4, MICRO = 16, 32
"""Numbers that share a scale of eight bits, in NVFP4 and in MXFP4."""
DOUBLE = 64
"""Numbers that share a scale, which is itself in eight bits, in bitsandbytes."""
EIGHT: dict[str, float] = {"fp8": 1.0, "fbgemm_fp8": 1.0, "ptpc_fp8": 1.0, "int8": 1.0, "experts_int8": 1.0}


@dataclass(frozen=True)
class Scheme:
    """Bytes of a weight that is quantized, of one of an expert, and the modules that are not quantized.

    `experts_alone`: nothing else is. `sure` where the numbers are those of the format, not of what a loader makes.
    """

    method: str = ""
    each: float | None = None
    expert: float | None = None
    kept: tuple[str, ...] = ()
    experts_alone: bool = False

    @classmethod
    def of(cls, config: Config, asked: str = "") -> Scheme | None:
        """That of a `config.json`, or what a launch asks to make of one that has none; None where it is not known."""
        told = next((config[one] for one in STATED if config.get(one)), None)
        if told is None:
            method = asked.lower()
            if not method or method == "none":
                return cls()
            return cls(method, EIGHT[method], EIGHT[method]) if method in EIGHT else cls.bits(method, asked)
        if not isinstance(told, dict):
            return None
        kept = tuple(normal(str(one)) for name in IGNORED for one in listed(told, name) if isinstance(one, str))
        method = str(told.get("quant_method", "")).lower()
        each = weight_bytes(method, told)
        if each is None:
            return None
        expert = NIBBLE + HALF / GROUP if method == "w4afp8" else each
        return cls(method, each, expert, kept, experts_alone=method == "mxfp4")

    @classmethod
    def bits(cls, method: str, asked: str) -> Scheme | None:
        """What a loader makes in four bits."""
        return cls(method, four_bits({}), four_bits({})) if method == "bitsandbytes" else None

    def width(self, name: str, plain: float) -> float:
        """Bytes of a weight in a module, `plain` where it is not quantized."""
        expert = ".experts" in name
        value = self.expert if expert else self.each
        if value is None or (self.experts_alone and not expert) or any(covers(one, name) for one in self.kept):
            return plain
        return value


def quantized(config: Config) -> bool:
    """Whether a config states how it is quantized."""
    return any(config.get(one) for one in STATED)


def normal(name: str) -> str:
    """A module's name as this package writes it."""
    for written, own in NAMES.items():
        name = name.replace(written, own)
    return name


def covers(pattern: str, name: str) -> bool:
    """Whether a pattern of modules has this one: an expression, a pattern as of a shell, or the start or end of it."""
    if pattern.startswith("re:"):
        try:
            return re.match(pattern[3:], name) is not None
        except re.error:
            return False
    if "*" in pattern:
        return fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}.*")
    return name == pattern or name.startswith(f"{pattern}.") or name.endswith(f".{pattern}")


def weight_bytes(method: str, told: Config) -> float | None:
    """Bytes of a quantized weight with its share of scales; None where the method is not known."""
    if method == "fp8":
        sides = [one for one in listed(told, "weight_block_size") if isinstance(one, int) and one > 0]
        return 1 + (BLOCK / prod(sides) if len(sides) > 1 else CHANNEL)
    if method in ("gptq", "awq", "gptq_marlin", "awq_marlin", "auto-round"):
        return grouped(
            told.get("bits") or told.get("w_bit"), told.get("group_size") or told.get("q_group_size"), zeros=True
        )
    if method in ("compressed-tensors", "modelopt", "modelopt_fp4"):
        return packed(told)
    simple = {"bitsandbytes": four_bits(told), "mxfp4": NIBBLE + SCALE8 / MICRO, "w4afp8": 1.0}
    return EIGHT.get(method, simple.get(method))


def grouped(bits: Any, group: Any, *, zeros: bool) -> float | None:
    """Bytes of a weight of so many bits where a group shares a scale, and a zero point perhaps."""
    if not isinstance(bits, int) or not 1 <= bits <= 16:
        return None
    size = group if isinstance(group, int) and group > 0 else None
    return bits / 8 + ((HALF + (bits / 8 if zeros else 0)) / size if size else 0.0)


def packed(told: Config) -> float | None:
    """The same of formats that state their groups of modules."""
    algorithm = str(told.get("quant_algo", "")).upper()
    if algorithm:
        return {"FP8": 1.0, "NVFP4": NIBBLE + SCALE8 / FLOAT4}.get(algorithm)
    found = {value for one in groups(told) if (value := group_bytes(one)) is not None}
    return found.pop() if len(found) == 1 else None


def groups(told: Config) -> Iterator[Config]:
    """What each group of modules states of its weights."""
    for one in part(told, "config_groups").values():
        if isinstance(one, dict) and isinstance(one.get("weights"), dict):
            yield part(one, "weights")


def group_bytes(weights: Config) -> float | None:
    """Bytes of a weight in such a group."""
    bits, group = weights.get("num_bits"), weights.get("group_size")
    if weights.get("type") == "float" and bits == 4:
        return NIBBLE + SCALE8 / FLOAT4
    return grouped(bits, group, zeros=weights.get("symmetric") is False)


def four_bits(told: Config) -> float:
    """Bytes of a weight as bitsandbytes keeps it."""
    return 1.0 if told.get("load_in_8bit") or told.get("_load_in_8bit") else NIBBLE + SCALE8 / DOUBLE
