"""config.json of a published model or head, whatever its family calls things."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.reading import read_json

HIDDEN_SIZE = ("hidden_size", "n_embd", "d_model", "n_embed")
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
ATTENTION_HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
KEY_VALUE_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num")
CONTEXT_LENGTH = (
    "max_position_embeddings",
    "n_positions",
    "max_sequence_length",
    "max_seq_len",
    "seq_length",
    "n_ctx",
    "model_max_length",
)
VOCABULARY_SIZE = ("vocab_size", "padded_vocab_size")
INTERMEDIATE_SIZE = ("intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size")
FULL_ATTENTION_INTERVAL = ("full_attention_interval", "sliding_window_pattern", "_sliding_window_pattern")
NEXT_TOKEN_LAYERS = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers", "mtp_num_layers")

# Some publishers leave out what their library's class says anyway.
_CLASS_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "gemma3_text": {
        "vocab_size": 262208,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "max_position_embeddings": 131072,
        "sliding_window_pattern": 6,
    },
    "gemma": {"head_dim": 256},
    "gemma2": {"head_dim": 256},
}
_NESTED = ("text_config", "llm_config", "language_config", "transformer_layer_config")


@dataclass(frozen=True)
class PublishedConfig:
    """A config.json, with the language model's own part brought up from below.

    Attributes:
        path: Where it lies.
        values: What it says.
        family: The language model's `model_type`; empty if there is none.
    """

    path: Path
    values: Mapping[str, Any]
    family: str

    @classmethod
    def read(cls, directory: Path) -> "PublishedConfig":
        """Read config.json.

        Raises:
            ProgramFailure: NotAModel, UnreadableModel or UnsupportedConfig.
        """
        path = directory / "config.json"
        if not path.is_file():
            raise ProgramFailure(
                "NotAModel",
                f"{directory} holds no config.json; give the directory of a model in Hugging Face's layout",
            )
        values = read_object(path)
        nested: dict[str, Any] = next((values[key] for key in _NESTED if isinstance(values.get(key), dict)), {})
        family = _plain(nested.get("model_type")) or _plain(values.get("model_type"))
        # of what both levels say, the upper one is read first: an empty value there says nothing
        outer = {key: value for key, value in values.items() if value is not None}
        return cls(path, {**_CLASS_DEFAULTS.get(family, {}), **nested, **outer}, family)

    def architecture(self) -> str:
        """The first architecture; empty if none is named.

        Raises:
            ProgramFailure: UnsupportedConfig, it is no list of names.
        """
        architectures = self.values.get("architectures")
        if not architectures:
            return ""
        if isinstance(architectures, list) and _plain(architectures[0]):
            return _plain(architectures[0])[:128]
        raise self.unsupported("architectures", "a list of at least one name")

    def integer(self, keys: tuple[str, ...]) -> int:
        """The first of the keys that is there.

        Raises:
            ProgramFailure: UnsupportedConfig, there is none, or it is no positive integer.
        """
        value = self.optional_integer(keys)
        if value is None:
            raise self.unsupported(" or ".join(keys[:3]), "a positive integer")
        return value

    def count(self, keys: tuple[str, ...]) -> int | None:
        """As `optional_integer`, and None for 0 as well."""
        named = tuple(key for key in keys if self.values.get(key) not in (None, 0))
        return self.optional_integer(named)

    def optional_integer(self, keys: tuple[str, ...]) -> int | None:
        """The first of the keys that is there, or None.

        Raises:
            ProgramFailure: UnsupportedConfig, it is no positive integer.
        """
        key = next((key for key in keys if self.values.get(key) is not None), None)
        if key is None:
            return None
        value: int = self.values[key]
        if not _is_integer(value) or value <= 0:
            raise self.unsupported(key, "a positive integer")
        return value

    def token_ids(self, key: str) -> tuple[int, ...]:
        """A token id or several, as a tuple; empty if there is none.

        Where config.json is silent, generation_config.json is asked.

        Raises:
            ProgramFailure: UnsupportedConfig, there is something else; or UnreadableModel.
        """
        value, generation = self.values.get(key), self.path.with_name("generation_config.json")
        if value is None and generation.is_file():
            value = read_object(generation).get(key)
        numbers = [] if value is None else value if isinstance(value, list) else [value]
        if not all(_is_integer(number) for number in numbers):
            raise self.unsupported(key, "an integer or a list of integers")
        return tuple(numbers)

    def text(self, key: str) -> str:
        """A short text of printable ASCII; empty if there is none."""
        value = _plain(self.values.get(key))
        return value if len(value) < 200 else ""

    def part(self, key: str) -> Mapping[str, Any]:
        """A nested object; empty if there is none."""
        value = self.values.get(key)
        return value if isinstance(value, dict) else {}

    def data_type(self, default: str = "float32") -> str:
        """The type of the weights, as in `float16`.

        Raises:
            ProgramFailure: UnsupportedConfig, it is no text.
        """
        value = self.values.get("torch_dtype") or self.values.get("dtype") or default
        if not _plain(value):
            raise self.unsupported("torch_dtype", "a string")
        return value.rpartition(".")[2][:32]

    def unsupported(self, key: str, wanted: str) -> ProgramFailure:
        """The failure of a key that is missing or of the wrong kind."""
        return ProgramFailure(
            "UnsupportedConfig",
            f"{self.path}: {key} must be {wanted}, it is {_shown(self.values.get(key))}; "
            "only decoder models and draft heads in Hugging Face's layout are supported",
        )


def _plain(value: object) -> str:
    """A text of printable ASCII; empty if it is something else."""
    return value if isinstance(value, str) and value.isascii() and value.isprintable() else ""


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**31) <= value < 2**31


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # nested too deeply, or a number of too many digits
        text = f"a {type(value).__name__}"
    return text if len(text) <= 200 else f"{text[:200]}…"


def read_object(path: Path) -> dict[str, Any]:
    """A JSON file that holds an object.

    Raises:
        ProgramFailure: UnreadableModel or UnsupportedConfig.
    """
    values = read_json(path)
    if not isinstance(values, dict):
        raise ProgramFailure("UnsupportedConfig", f"{path} must hold a JSON object")
    return values
