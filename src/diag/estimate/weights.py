"""The weights of a model: bytes of its parts from `config.json`, and those of a rank by how the model is divided.

Linear layers are divided among the ranks that share them; heads of keys are never divided below one; routers, norms,
indexers and what compresses for latent attention are on every rank whole; where ranks have attention of their own, so
are embeddings. Parts for drafts are loaded only where drafts are asked for.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import ceil, prod
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from diag.estimate.model import listed, number, part, text_part
from diag.estimate.quantized import Scheme, quantized

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from diag.estimate.model import Model
    from diag.estimate.pool import Shares

    Config = Mapping[str, Any]

Split = Literal["ranks", "attention", "keys", "experts", "whole"]
WIDTHS = {"float32": 4, "float": 4}
PLAIN, GIB = 2, 2**30
UNGATED = frozenset(
    (
        *("phi", "gpt2", "gpt_neox", "gpt_bigcode", "gptj", "opt", "bloom", "mpt", "falcon", "starcoder2", "codegen"),
        *("nemotron", "nemotron_h", "persimmon", "stablelm_epoch"),
    )
)
"""Types whose feed-forward part has two matrices, not three."""
SHARING = frozenset(("llama4_text", "llama4"))
"""Types that have a shared expert as wide as the others although their file does not say so."""
OWN_ENDS = frozenset(("deepseek_v3", "deepseek_v32"))
"""Types whose drafting layers have an embedding and a head of their own in the checkpoint."""
WHOLE_TOWERS = frozenset(("moonvit", "llama4_vision_model"))
"""Vision towers that are on every rank whole; others are divided."""
SURE, PACKED = 0.01, 0.03
"""By what part whole bytes, and smaller numbers, may be off: how the latter are padded is the kernels' own affair."""
WIDEST = 64
LOADED = 0.04
"""GiB that a loaded model has beside its weights."""


class Module(NamedTuple):
    """A matrix, or several that stand together: its name in checkpoints, how many numbers, and how it is divided."""

    name: str
    parameters: int
    split: Split
    linear: bool = True


@dataclass(frozen=True)
class Weights:
    """Bytes of a model's parts by how each is divided: of each layer, and of what stands before, behind and beside.

    `absorbed` are copies that engines make, in another order, of what expands latent attention. `vision_whole`: the
    tower is on every rank. `off` is the part by which they may be wrong.
    """

    layers: tuple[dict[Split, int], ...]
    embedding: int
    head: int
    vision: int = 0
    drafts: int = 0
    absorbed: int = 0
    parameters: int = 0
    vision_whole: bool = False
    off: float = 0.01

    @property
    def total(self) -> int:
        """Bytes of the checkpoint, with all of its parts."""
        layers = sum(sum(one.values()) for one in self.layers)
        return layers + self.embedding + self.head + self.vision + self.drafts

    def rank(self, model: Model, shares: Shares) -> float:
        """Bytes on the rank that has most."""
        stage = ceil(len(self.layers) / shares.stages)
        first, last = self.layers[:stage], self.layers[-(len(self.layers) - stage * (shares.stages - 1)) :]
        divided = divisors(model, shares)
        outer = shares.attention
        seen = self.vision / (1 if self.vision_whole else shares.ranks)
        ends = [
            parted(first, divided) + self.embedding / outer + seen,
            parted(last, divided) + (self.head or self.embedding) / outer,
        ]
        if shares.stages == 1:
            ends = [parted(self.layers, divided) + (self.embedding + self.head) / outer + seen]
        drafts = self.drafts / shares.ranks if shares.more else 0.0
        return max(ends) + drafts + self.absorbed / shares.attention / shares.stages + LOADED * GIB


def divisors(model: Model, shares: Shares) -> dict[Split, int]:
    """Among how many ranks each kind of part is divided."""
    return {
        "ranks": shares.ranks,
        "attention": shares.attention,
        "keys": min(shares.attention, max(model.kv_heads, 1)),
        "experts": max(shares.ranks, shares.experts),
        "whole": 1,
    }


def parted(layers: tuple[dict[Split, int], ...], divided: dict[Split, int]) -> float:
    """Bytes of layers on a rank."""
    return sum(value / divided[split] for one in layers for split, value in one.items())


def weights(model: Model, config: Config, asked: str = "", plain: int = 0) -> Weights | None:
    """The weights that a config states; None where its way of quantizing is not known.

    `asked` is how a launch wants them quantized, `plain` the bytes of a number that is not.
    """
    text = text_part(config)
    scheme = Scheme.of(config if quantized(config) else text, asked)
    if scheme is None:
        return None
    plain = plain or WIDTHS.get(model.dtype, PLAIN)
    layers = [list(layer(model, text, place)) for place in range(model.layers)]
    expanding = [one for part in layers for one in part if one.name.endswith(".kv_b_proj")]
    drafts = [one for place in range(model.drafts) for one in draft(model, text, place)]
    ends = model.vocabulary * model.hidden
    seen = vision(config, model.hidden)
    return Weights(
        layers=tuple(by_split(one, scheme, plain) for one in layers),
        embedding=ends * plain,
        head=0 if model.tied else ends * plain,
        vision=seen * plain,
        vision_whole=str(part(config, "vision_config").get("model_type")) in WHOLE_TOWERS,
        drafts=sum(by_split(drafts, scheme, plain).values()),
        absorbed=sum(by_split(expanding, scheme, plain).values()),
        parameters=sum(one.parameters for part in (*layers, drafts) for one in part) + ends * (2 - model.tied) + seen,
        off=SURE if scheme.each in (None, 1.0) or (scheme.each or 0) > 1 else PACKED,
    )


def draft(model: Model, config: Config, place: int) -> Iterator[Module]:
    """A layer that drafts the next token but one: one as the last, behind a matrix that joins two inputs."""
    last = f"model.layers.{model.layers - 1}."
    own = f"mtp.layers.{place}." if "mtp_num_hidden_layers" in config else f"model.layers.{model.layers + place}."
    for one in layer(model, config, model.layers - 1):
        yield one._replace(name=own + one.name.removeprefix(last))
    yield Module(f"{own}eh_proj", 2 * model.hidden**2, "ranks", linear=False)
    if str(config.get("model_type")) in OWN_ENDS:
        yield Module(f"{own}embed_tokens", 2 * model.vocabulary * model.hidden, "ranks", linear=False)


def by_split(modules: list[Module], scheme: Scheme, plain: int) -> dict[Split, int]:
    """Bytes of modules by how they are divided."""
    told: Counter[Split] = Counter()
    for one in modules:
        told[one.split] += round(one.parameters * (scheme.width(one.name, plain) if one.linear else plain))
    return dict(told)


def layer(model: Model, config: Config, place: int) -> Iterator[Module]:
    """The modules of a layer."""
    start = f"model.layers.{place}"
    pattern = str(config.get("hybrid_override_pattern") or "")
    kind = model.kept[place]
    mixer = "mixer" if pattern else "linear_attn" if kind == "linear" else "self_attn"
    if kind == "linear":
        yield from recurrent(model, f"{start}.{mixer}")
    elif kind != "none":
        yield from latent(model, f"{start}.{mixer}") if model.latent else attention(model, f"{start}.{mixer}")
    yield Module(f"{start}.norm", 2 * model.hidden, "whole", linear=False)
    if not pattern or kind == "none":
        inner = f"{start}.{'mixer' if pattern else 'mlp'}"
        yield from feed_forward(model, config, place, inner, sparse=is_sparse(model, config, place, pattern))


def attention(model: Model, name: str) -> Iterator[Module]:
    """Attention whose heads share keys and values."""
    queries, keys = model.heads * model.head, model.kv_heads * model.head
    yield Module(f"{name}.q_proj", model.hidden * queries * (2 if model.gated else 1), "attention")
    yield Module(f"{name}.k_proj", model.hidden * keys, "keys")
    yield Module(f"{name}.v_proj", model.hidden * keys, "keys")
    yield Module(f"{name}.o_proj", queries * model.hidden, "attention")


def latent(model: Model, name: str) -> Iterator[Module]:
    """Multi-head latent attention, and its indexer."""
    one = model.latent
    if one is None:
        return
    queries = model.heads * (one.nope + one.rope)
    if one.query_rank:
        yield Module(f"{name}.q_a_proj", model.hidden * one.query_rank, "whole")
    yield Module(
        f"{name}.q_b_proj" if one.query_rank else f"{name}.q_proj",
        (one.query_rank or model.hidden) * queries,
        "attention",
    )
    yield Module(f"{name}.kv_a_proj_with_mqa", model.hidden * one.width, "whole")
    yield Module(f"{name}.kv_b_proj", one.rank * model.heads * (one.nope + one.value), "attention")
    yield Module(f"{name}.o_proj", model.heads * one.value * model.hidden, "attention")
    if model.indexer and (place := int(name.split(".")[2])) < model.layers and model.indexer.has(place):
        yield Module(f"{name}.indexer.wq_b", one.query_rank * model.indexer.heads * model.indexer.width, "whole")
        yield Module(f"{name}.indexer.wk", model.hidden * model.indexer.width, "whole")
        yield Module(f"{name}.indexer.weights_proj", model.hidden * model.indexer.heads, "whole")


def recurrent(model: Model, name: str) -> Iterator[Module]:
    """A layer with a state."""
    one = model.state
    if one is None:
        return
    keys, values, hidden = one.keys, one.values, model.hidden
    if one.kind == "gdn":
        yield Module(f"{name}.in_proj_qkv", hidden * (2 * keys + values), "attention")
        yield Module(f"{name}.in_proj_z", hidden * values, "attention")
        yield Module(f"{name}.in_proj_a", 2 * hidden * one.heads, "attention", linear=False)
        yield Module(f"{name}.conv1d", one.convolution * (2 * keys + values), "attention", linear=False)
    elif one.kind == "kda":
        yield Module(f"{name}.q_proj", 3 * hidden * values, "attention")
        yield Module(f"{name}.f_a_proj", 2 * (hidden * one.columns + one.columns * values), "attention")
        yield Module(f"{name}.conv1d", 3 * one.convolution * values, "attention", linear=False)
    elif one.kind == "mamba2":
        yield Module(f"{name}.in_proj", hidden * (2 * values + 2 * keys + one.heads), "attention")
        yield Module(f"{name}.conv1d", one.convolution * (2 * keys + values), "attention", linear=False)
    else:
        low = ceil(hidden / 16)
        yield Module(f"{name}.in_proj", 2 * hidden * values, "attention")
        yield Module(f"{name}.x_proj", values * (low + 2 * one.columns) + low * values, "attention", linear=False)
        yield Module(f"{name}.A_log", values * (one.columns + one.convolution), "attention", linear=False)
    yield Module(f"{name}.o_proj" if one.kind == "kda" else f"{name}.out_proj", values * hidden, "attention")


def feed_forward(model: Model, config: Config, place: int, name: str, *, sparse: bool) -> Iterator[Module]:
    """What follows attention: matrices that all tokens take, or experts."""
    matrices = 2 if str(config.get("model_type")) in UNGATED else 3
    one = model.experts
    if not sparse or one is None:
        inner = number(config, "intermediate_size_mlp") if one else 0
        yield Module(f"{name}.gate_up_down", matrices * model.hidden * (inner or model.intermediate), "ranks")
        return
    shared = one.shared or (model.intermediate if str(config.get("model_type")) in SHARING else 0)
    yield Module(f"{name}.gate", model.hidden * one.count, "whole", linear=False)
    yield Module(f"{name}.experts", matrices * model.hidden * one.width * one.count, "experts")
    if shared:
        yield Module(f"{name}.shared_experts.up_proj", matrices * model.hidden * shared, "ranks")


def is_sparse(model: Model, config: Config, place: int, pattern: str) -> bool:
    """Whether a layer has experts."""
    if model.experts is None:
        return False
    if pattern:
        return pattern[place : place + 1] == "E"
    types = config.get("mlp_layer_types")
    if isinstance(types, list) and len(types) == model.layers:
        return bool(types[place] == "sparse")
    if isinstance(config.get("moe_layers"), list):
        return place in listed(config, "moe_layers")
    if place < model.experts.dense or place in (listed(config, "mlp_only_layers")):
        return False
    every = number(config, "decoder_sparse_step", "moe_layer_freq", "interleave_moe_layer_step") or 1
    return (place + 1 - (model.experts.dense if "moe_layer_freq" in config else 0)) % every == 0


def vision(config: Config, hidden: int) -> int:
    """Numbers of a vision tower and of what joins it to the decoder, by its own config."""
    one = part(config, "vision_config")
    wide, deep = number(one, "hidden_size", "embed_dim"), number(one, "depth", "num_hidden_layers", "layers")
    if not (wide and deep):
        return 0
    inner = number(one, "intermediate_size") or 4 * wide
    gated = str(one.get("hidden_act")) == "silu" or one.get("model_type") == "pixtral"
    patch, turn = number(one, "patch_size"), number(one, "temporal_patch_size") or 1
    places = number(one, "num_position_embeddings") or (number(one, "image_size") // max(patch, 1)) ** 2
    tower = deep * (4 * wide**2 + (3 if gated else 2) * wide * inner) + 3 * wide * patch**2 * turn + places * wide
    return tower + joint(config, one, wide, hidden)


def joint(config: Config, tower: Config, wide: int, hidden: int) -> int:
    """Numbers of what joins a tower to the decoder: neighbours are merged first in some."""
    merged = number(tower, "spatial_merge_size") ** 2 or 1
    if kernel := [one for one in listed(tower, "merge_kernel_size") if isinstance(one, int) and 0 < one < WIDEST]:
        merged = prod(kernel)
    if merged > 1:
        return (wide * merged) ** 2 + wide * merged * (number(tower, "out_hidden_size") or hidden)
    if "gemma" in str(config.get("model_type")):
        return wide * hidden
    spatial = number(config, "spatial_merge_size") ** 2
    return wide * hidden + hidden**2 + wide * wide * spatial
