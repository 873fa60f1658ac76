"""A model as its memory sees it: what each layer keeps for a token or a request, read from its `config.json`.

A layer keeps keys and values of all tokens (`full`), of the last ones (`sliding`, `chunked`), a state of fixed size for
each request (`linear`), or nothing (`none`: a feed-forward part alone). Multi-head latent attention keeps one vector
for all heads, and an indexer beside it keys of its own for the layers that choose what to attend to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    Config = Mapping[str, Any]

Keeps = Literal["full", "sliding", "chunked", "linear", "none"]
FULL: Keeps = "full"
SLIDING: Keeps = "sliding"
LINEAR: Keeps = "linear"
NESTED = ("text_config", "llm_config", "language_config", "thinker_config")
"""Where a multimodal model states its text part."""
TYPES: dict[str, Keeps] = {
    "full_attention": "full",
    "attention": "full",
    "deepseek_sparse_attention": "full",
    "sliding_attention": "sliding",
    "chunked_attention": "chunked",
    "linear_attention": "linear",
    "mamba": "linear",
}
MOST, DEEPEST = 2**31, 4096
"""Above any size, and any number of layers, of a model."""
PATTERN: dict[str, Keeps] = {"M": "linear", "*": "full", "E": "none", "-": "none"}
"""The letters of `hybrid_override_pattern`."""
ALTERNATING = {"gemma2": 2, "cohere2": 4, "gemma3_text": 6}
"""Models of which one layer in so many is full where their file does not say which."""


@dataclass(frozen=True)
class Latent:
    """Multi-head latent attention: widths of the compressed vector, of its rotary part, and of heads expanded again."""

    rank: int
    rope: int
    nope: int
    value: int
    query_rank: int = 0

    @property
    def width(self) -> int:
        """Numbers that are kept for a token in a layer."""
        return self.rank + self.rope


@dataclass(frozen=True)
class Indexer:
    """What chooses the tokens that are attended to: the width of its keys, its heads, and which layers have one."""

    width: int
    layers: int
    heads: int = 0
    owners: tuple[bool, ...] = ()

    def has(self, place: int) -> bool:
        """Whether a layer has one of its own."""
        return self.owners[place] if place < len(self.owners) else True


@dataclass(frozen=True)
class State:
    """What a linear layer keeps for a request: the last inputs of its convolution, and a matrix for each head.

    `kind` is `gdn` (gated delta net), `kda` (Kimi's), `mamba2` or `mamba1`. `keys` and `values` are the widths of all
    heads together, `heads` those of the matrices, each `rows` times `columns`; `groups` share keys in Mamba 2. `dtype`
    is that of the matrices where it is stated.
    """

    kind: Literal["gdn", "kda", "mamba2", "mamba1"]
    convolution: int
    keys: int
    values: int
    heads: int
    rows: int
    columns: int
    groups: int = 0
    dtype: str = ""


@dataclass(frozen=True)
class Experts:
    """A layer's experts: how many, how many a token takes, the widths of each and of what all share, the first layers
    that have none."""

    count: int
    taken: int
    width: int
    shared: int = 0
    dense: int = 0


@dataclass(frozen=True)
class Model:
    """A decoder; `kept` is what each of its layers keeps, `gated` whether attention has an output gate."""

    hidden: int
    vocabulary: int
    heads: int
    kv_heads: int
    head: int
    kept: tuple[Keeps, ...]
    intermediate: int = 0
    window: int = 0
    latent: Latent | None = None
    indexer: Indexer | None = None
    state: State | None = None
    experts: Experts | None = None
    tied: bool = False
    gated: bool = False
    drafts: int = 0
    context: int = 0
    dtype: str = ""

    @property
    def layers(self) -> int:
        """All of them."""
        return len(self.kept)

    def count(self, *kinds: Keeps) -> int:
        """The layers that keep one of these."""
        return sum(one in kinds for one in self.kept)

    @classmethod
    def of(cls, config: Config) -> Model:
        """The model that a `config.json` states; ValueError where it lacks what every decoder has."""
        text = text_part(config)
        hidden, layers, heads = (
            number(text, one) for one in ("hidden_size", "num_hidden_layers", "num_attention_heads")
        )
        if not (hidden and layers and heads):
            raise ValueError("it states no hidden_size, num_hidden_layers or num_attention_heads")
        if layers > DEEPEST:
            raise ValueError(f"it states {layers} layers")
        found = cls(
            hidden=hidden,
            vocabulary=number(text, "vocab_size") or number(config, "vocab_size"),
            heads=heads,
            kv_heads=number(text, "num_key_value_heads") or heads,
            head=number(text, "head_dim") or hidden // heads,
            kept=keeps(text, layers),
            intermediate=number(text, "intermediate_size"),
            window=number(text, "sliding_window") or number(text, "attention_chunk_size"),
            latent=latent(text),
            indexer=indexer(text, layers),
            state=stated(text),
            experts=experts(text),
            tied=bool(text.get("tie_word_embeddings", config.get("tie_word_embeddings", False))),
            gated=bool(text.get("attn_output_gate")),
            drafts=number(text, "num_nextn_predict_layers") or number(text, "mtp_num_hidden_layers"),
            context=number(text, "max_position_embeddings"),
            dtype=str(
                text.get("torch_dtype") or text.get("dtype") or config.get("torch_dtype") or config.get("dtype") or ""
            ),
        )
        if not found.head or not any(one != "none" for one in found.kept):
            raise ValueError("its sizes contradict each other")
        return found


def text_part(config: Config) -> Config:
    """The part of a config that is about the decoder."""
    return next((config[one] for one in NESTED if isinstance(config.get(one), dict)), config)


def number(config: Config, *names: str) -> int:
    """The first of these that is a whole number above zero that a model may have, 0 where none is."""
    found = (config.get(name) for name in names)
    return next((one for one in found if isinstance(one, int) and not isinstance(one, bool) and 0 < one < MOST), 0)


def listed(config: Config, name: str) -> list[Any]:
    """A list, empty where there is none."""
    found = config.get(name)
    return found if isinstance(found, list) else []


def part(config: Config, name: str) -> Config:
    """A part that has fields of its own, empty where there is none."""
    found = config.get(name)
    return found if isinstance(found, dict) else {}


def keeps(config: Config, layers: int) -> tuple[Keeps, ...]:
    """What each layer keeps."""
    pattern = str(config.get("hybrid_override_pattern") or "")
    if len(pattern) == layers:
        return tuple(PATTERN.get(one, "full") for one in pattern)
    if isinstance(types := config.get("layer_types"), list) and len(types) == layers:
        return tuple(TYPES.get(str(one), "full") for one in types)
    if isinstance(linear := config.get("linear_attn_config"), dict):
        # Counted from 1.
        full = {one for one in listed(linear, "full_attn_layers") if isinstance(one, int)}
        return tuple(FULL if place + 1 in full else LINEAR for place in range(layers))
    if every := number(config, "full_attention_interval"):
        return tuple(LINEAR if (place + 1) % every else FULL for place in range(layers))
    return windowed(config, layers)


def windowed(config: Config, layers: int) -> tuple[Keeps, ...]:
    """The same of a model whose layers differ in a window alone."""
    every = number(config, "sliding_window_pattern") or ALTERNATING.get(str(config.get("model_type")), 1)
    if not number(config, "sliding_window") or config.get("use_sliding_window") is False:
        return (FULL,) * layers
    if every > 1:
        return tuple(SLIDING if (place + 1) % every else FULL for place in range(layers))
    return (SLIDING if config.get("model_type") == "mistral" else FULL,) * layers


def latent(config: Config) -> Latent | None:
    """Its latent attention."""
    if not (rank := number(config, "kv_lora_rank")):
        return None
    names = ("qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim", "q_lora_rank")
    return Latent(rank, *(number(config, one) for one in names))


def indexer(config: Config, layers: int) -> Indexer | None:
    """Its indexer; layers that share another's are not counted."""
    if not (width := number(config, "index_head_dim")):
        return None
    types = listed(config, "indexer_types") or ["full"] * layers
    owners = tuple(one == "full" for one in types)
    return Indexer(width, sum(owners), number(config, "index_n_heads"), owners)


def stated(config: Config) -> State | None:
    """What its linear layers keep, in the type that is stated."""
    found = state(config)
    dtype = config.get("mamba_ssm_dtype") or config.get("mamba_ssm_cache_dtype") or ""
    return replace(found, dtype=str(dtype)) if found else None


def state(config: Config) -> State | None:
    """What its linear layers keep."""
    if heads := number(config, "linear_num_value_heads"):
        rows, columns = number(config, "linear_key_head_dim"), number(config, "linear_value_head_dim")
        keys = number(config, "linear_num_key_heads") * rows
        convolution = number(config, "linear_conv_kernel_dim")
        return State("gdn", convolution, keys, heads * columns, heads, rows, columns)
    if isinstance(linear := config.get("linear_attn_config"), dict):
        heads, head = number(linear, "num_heads"), number(linear, "head_dim")
        return State("kda", number(linear, "short_conv_kernel_size"), heads * head, heads * head, heads, head, head)
    if heads := number(config, "mamba_num_heads", "mamba_n_heads"):
        head, states = (
            number(config, "mamba_head_dim", "mamba_d_head"),
            number(config, "ssm_state_size", "mamba_d_state"),
        )
        groups, convolution = (
            number(config, "n_groups", "mamba_n_groups"),
            number(config, "conv_kernel", "mamba_d_conv"),
        )
        return State("mamba2", convolution, groups * states, heads * head, heads, head, states, groups)
    if (states := number(config, "mamba_d_state", "state_size")) and (wide := number(config, "mamba_expand", "expand")):
        inner = wide * number(config, "hidden_size")
        return State("mamba1", number(config, "mamba_d_conv", "conv_kernel"), 0, inner, inner, 1, states)
    return None


def experts(config: Config) -> Experts | None:
    """Its experts."""
    count = number(config, "n_routed_experts", "num_experts", "num_local_experts")
    if not count:
        return None
    width = number(config, "moe_intermediate_size") or number(config, "intermediate_size")
    shared = number(config, "shared_expert_intermediate_size", "moe_shared_expert_intermediate_size")
    shared = shared or width * number(config, "n_shared_experts", "num_shared_experts")
    taken = number(config, "num_experts_per_tok", "num_experts_per_token", "experts_per_token")
    return Experts(count, taken, width, shared, number(config, "first_k_dense_replace"))
