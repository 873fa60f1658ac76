"""The shape of a model from its `config.json`, whole or in part, pasted or asked about.

Knows the names that families of models give to the same size. Of a multimodal model it reads the text part. Where the
text is cut it tells what is whole; the vocabulary, mostly the last line, is taken to be. It concludes nothing: a
head's width that is not stated is not told, although it is mostly the hidden size by the number of heads, and what the
widths of multi-head latent attention mean is left to who knows the model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from diag.api import Capture, Fact, Line, ModelShape, Recognise, expression, probe

NAMES = {
    "hidden_size": ("hidden_size", "n_embd", "d_model", "model_dim"),
    "layers": ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "num_transformer_layers"),
    "attention_heads": ("num_attention_heads", "n_head", "n_heads", "num_heads"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num", "num_attention_groups"),
    "head_dim": ("head_dim", "kv_channels", "attention_head_dim"),
    "intermediate_size": ("intermediate_size", "ffn_hidden_size", "n_inner", "d_ff"),
    "vocabulary": ("vocab_size", "padded_vocab_size"),
    "context": ("max_position_embeddings", "n_positions", "seq_length", "max_seq_len", "max_sequence_length"),
    "experts": ("n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts"),
    "experts_per_token": (
        "num_experts_per_tok",
        "num_experts_per_token",
        "experts_per_token",
        "top_k_experts",
        "moe_topk",
    ),
    "dtype": ("dtype", "torch_dtype"),
}
TEXT_PARTS = ("text_config", "llm_config", "language_config", "language_model_config", "thinker_config", "text_model")
QUANTIZED = ("quantization_config", "compression_config")
ARCHITECTURE = expression(r"(?=\w{0,90}(?:For|Model|LM))[A-Z]\w{2,99}")
WORD = expression(r"[\w.+-]{1,60}")
INTEGER = expression(r"[0-9]{1,12}")
COMMON = frozenset(
    ("dtype", "d_model", "model_dim", "num_heads", "num_layers", "n_layers", "n_heads", "d_ff", "n_inner")
)
"""Names that other programs' JSON is full of."""
KEYS = (
    "architectures",
    "model_type",
    "quant_method",
    "transformers_version",
    *(key for keys in NAMES.values() for key in keys),
)
SHORT_VOCABULARY = 5
DEPTH_CAP = 32
"""Objects and lists within each other; what stands deeper is passed over."""
"""Digits without which the last number of a text is taken to be cut."""
TOKEN = expression(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')


@probe(
    "model/config",
    tells=(ModelShape,),
    recognise=Recognise(literals=tuple(f'"{key}":' for key in KEYS if key not in COMMON), each=True, lines=3_000),
)
def model_config(capture: Capture) -> Iterator[Fact]:
    """The `config.json` of Hugging Face; in a longer text, from the first line to the last with one of its own keys."""
    document = Document()
    for line in capture.lines():
        for token in TOKEN.findall(line.text):
            if not document.take(token, line):
                yield from _shape(capture, document)
                document = Document()
                document.take(token, line)
    document.end()
    yield from _shape(capture, document)


class Document:
    """The values of a JSON document, each under the keys that lead to it, from its tokens one by one.

    The text may start within the document: its first line is taken to stand in the outermost object, and what was read
    is forgotten when it turns out to stand deeper.
    """

    def __init__(self) -> None:
        self.values: dict[tuple[str, ...], dict[str, str]] = {}
        self.line: Line | None = None
        self._path: list[str] = []
        self._key, self._value = "", ""
        self._opened = self._closed = False
        self._deeper = 0

    def take(self, token: str, line: Line) -> bool:
        """Take the next token, unless the document has ended before it."""
        if self._closed:
            return self._goes_on(token)
        if self._deeper or (token in ("{", "[") and len(self._path) >= DEPTH_CAP):
            self._deeper += (token in ("{", "[")) - (token in ("}", "]"))
        elif token == ":":
            self._key, self._value = self._value.strip('"'), ""
        elif token in (",", "}", "]"):
            self._settle(line)
            self._closed = token == "}" and not self._path
            self._path = self._path if token == "," else self._path[:-1]
        elif token in ("{", "["):
            # The bracket that opens the whole has no key, and may be above the text.
            self._opened |= not (self._key or self._path)
            self._path += [self._key] if self._key or self._path else []
            self._key, self._value = "", ""
        else:
            self._value = token
        return True

    def end(self) -> None:
        """The text ends here, mostly with the line before the bracket that closes the whole."""
        vocabulary = self._key in NAMES["vocabulary"] and len(self._value) >= SHORT_VOCABULARY
        if self.line and (vocabulary or self._value.startswith('"')):
            self._settle(self.line)

    def _goes_on(self, token: str) -> bool:
        """A comma or another bracket after the last one says that the text began in an inner object."""
        inner = not self._opened and token in (",", "}")
        if inner:
            self.values, self.line, self._closed = {}, None, token == "}"
        return inner

    def _settle(self, line: Line) -> None:
        """What stands before a comma or a bracket is whole; of a list the first value is kept."""
        *above, last = self._path or [""]
        path, key = (tuple(self._path), self._key) if self._key else (tuple(above), last)
        if key and self._value:
            self.values.setdefault(path, {}).setdefault(key, self._value)
            self.line = line if key == "architectures" and not path else self.line or line
        self._key, self._value = "", ""


def _shape(capture: Capture, document: Document) -> Iterator[ModelShape]:
    whole = document.values.get((), {})
    parts = [(name,) for name in TEXT_PARTS] + [("thinker_config", "text_config")]
    inner = {key: value for path in parts for key, value in document.values.get(path, {}).items()}
    values: dict[str, Any] = {
        "architecture": _word(whole.get("architectures", ""), ARCHITECTURE),
        "model_type": _word(whole.get("model_type", ""), WORD),
        "quantization": _quantization(document, [(), *parts]),
        **{name: _first(name, (inner, whole)) for name in NAMES},
    }
    known = {name: value for name, value in values.items() if value not in (None, "")}
    named = [name for name in ("architecture", "model_type") if name in known]
    if document.line and (len(named) == 2 or (named and any(isinstance(value, int) for value in known.values()))):
        yield ModelShape(origin=capture.origin(document.line), **known)


def _first(name: str, places: tuple[dict[str, str], ...]) -> int | str | None:
    """The first value under one of the names, of the text part before the whole."""
    for place in places:
        for key in NAMES[name]:
            if name == "dtype" and (word := _word(place.get(key, ""), WORD)):
                return word
            if name != "dtype" and INTEGER.fullmatch(place.get(key, "")):
                return int(place[key])
    return None


def _quantization(document: Document, places: list[tuple[str, ...]]) -> str:
    paths = ((*place, name) for place in places for name in QUANTIZED)
    found = (document.values.get(path, {}).get("quant_method", "") for path in paths)
    return next((word for one in found if (word := _word(one, WORD))), "")


def _word(value: str, pattern: re.Pattern[str]) -> str:
    bare = value.strip('"')
    return bare if value.startswith('"') and pattern.fullmatch(bare) else ""
