"""Inference engines: what is installed or started, with which arguments, for which model."""

from __future__ import annotations

from typing import Literal

from diag.facts.base import Fact, Passing


class Engine(Fact, frozen=True, kw_only=True):
    """An inference engine: installed, running, or planned (asked about)."""

    name: str
    version: str = ""
    role: Literal["installed", "running", "planned"] = "installed"


class LaunchCommand(Passing, frozen=True, kw_only=True):
    """A command that starts an engine, in its own words, quotes resolved; what they mean to the engine is not told.

    `environment` are variables set outside of these words, as `NAME=value`; `image` is the container image they run in.
    """

    engine: str
    words: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    image: str = ""


class LaunchArguments(Passing, frozen=True, kw_only=True):
    """What an engine is or will be started with; flags without their dashes, in the order given.

    A flag that the engine knows has its canonical name, several values are joined by blanks, and one that is switched
    off (`--no-x`) has the value `false`. `unknown` names the flags that no compared version of the engine takes; they
    stay in `flags`. `subcommand` is `serve` for whatever starts the server; `version` is the engine's where the image
    tells it. Secrets among the values are `***`.
    """

    engine: str
    model: str = ""
    flags: tuple[tuple[str, str], ...] = ()
    unknown: tuple[str, ...] = ()
    subcommand: str = ""
    environment: tuple[tuple[str, str], ...] = ()
    image: str = ""
    version: str = ""


class EngineState(Passing, frozen=True, kw_only=True):
    """What an engine printed of itself: `value` as printed, without its unit. `rank` is the worker that printed it.

    Names are the same for all engines where the thing is the same: see `STATES`.
    """

    engine: str
    name: str
    value: str
    unit: str = ""
    rank: str = ""


RAN = ("memory.kv-cache", "kv.tokens", "kv.blocks", "kv.concurrency", "seconds.graphs")
"""What an engine prints once its model ran on the device."""
STATES = {
    "memory.weights": "memory that the weights take",
    "memory.activation": "peak of activations while profiling",
    "memory.non-torch": "memory in use that torch does not know of",
    "memory.graphs": "memory that graph capture takes",
    "memory.kv-cache": "memory left for the KV cache",
    "memory.available": "free memory of the device at that moment",
    "memory.total": "memory of the device",
    "kv.tokens": "tokens that the KV cache holds",
    "kv.blocks": "blocks that the KV cache holds",
    "kv.concurrency": "requests of the full length that the KV cache holds",
    "attention": "the attention back end chosen",
    "collectives": "version of the collective library",
    "dtype": "data type of the weights",
    "model": "the model that is served",
    "max-model-len": "tokens of the longest request",
    "seconds.load": "seconds that loading the weights took",
    "seconds.compile": "seconds that compilation took",
    "seconds.graphs": "seconds that graph capture took",
}


class ModelShape(Passing, frozen=True, kw_only=True):
    """The shape of a model as its `config.json` states it; of a multimodal one, that of its text part."""

    architecture: str = ""
    model_type: str = ""
    hidden_size: int | None = None
    layers: int | None = None
    attention_heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    intermediate_size: int | None = None
    vocabulary: int | None = None
    context: int | None = None
    experts: int | None = None
    experts_per_token: int | None = None
    dtype: str = ""
    quantization: str = ""
