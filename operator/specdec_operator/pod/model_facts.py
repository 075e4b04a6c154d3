"""What a model directory says of itself."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from specdec_operator.pod.document import camel_case
from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.model_files import content_digest, weight_bytes
from specdec_operator.pod.tokenizer_digest import tokenizer_digest


@dataclasses.dataclass(frozen=True, kw_only=True)
class Facts:
    """The facts of one model; the keys on the wire are those of ModelArtifact's `status.facts`."""

    architecture: str
    vocabulary_size: int
    draft_vocabulary_size: int | None
    tokenizer_digest: str
    bos_token_id: int | None
    eos_token_ids: tuple[int, ...]
    layers: int
    hidden_size: int
    attention_heads: int
    key_value_heads: int
    head_size: int
    data_type: str
    context_length: int
    weight_bytes: int
    commit: str
    content_digest: str

    def to_wire(self) -> dict[str, Any]:
        """The facts with the keys of the API."""
        values = {camel_case(name): value for name, value in dataclasses.asdict(self).items()}
        return {**values, "eosTokenIds": list(self.eos_token_ids)}


def read_facts(directory: Path, *, commit: str = "") -> Facts:
    """The facts of a model directory.

    Args:
        directory: a directory in Hugging Face's layout.
        commit: the hub's commit that it was downloaded from.

    Raises:
        ProgramFailure: NotAModel, UnsupportedConfig, UnreadableModel or WeightsMissing.
    """
    config = _Config.read(directory)
    hidden_size = config.integer("hidden_size", "n_embd", "d_model")
    attention_heads = config.integer("num_attention_heads", "n_head")
    return Facts(
        architecture=config.architecture(),
        vocabulary_size=config.integer("vocab_size"),
        draft_vocabulary_size=config.optional_integer("draft_vocab_size"),
        tokenizer_digest=tokenizer_digest(directory),
        bos_token_id=next(iter(config.token_ids("bos_token_id")), None),
        eos_token_ids=config.token_ids("eos_token_id"),
        layers=config.integer("num_hidden_layers", "n_layer"),
        hidden_size=hidden_size,
        attention_heads=attention_heads,
        key_value_heads=config.optional_integer("num_key_value_heads") or attention_heads,
        head_size=config.optional_integer("head_dim") or hidden_size // attention_heads,
        data_type=config.data_type(),
        context_length=config.integer("max_position_embeddings", "n_positions", "max_sequence_length"),
        weight_bytes=weight_bytes(directory),
        commit=commit,
        content_digest=content_digest(directory),
    )


@dataclasses.dataclass(frozen=True)
class _Config:
    path: Path
    values: Mapping[str, Any]

    @classmethod
    def read(cls, directory: Path) -> "_Config":
        path = directory / "config.json"
        if not path.is_file():
            raise ProgramFailure(
                "NotAModel",
                f"{directory} holds no config.json; give the directory of a model in Hugging Face's layout",
            )
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ProgramFailure("UnreadableModel", f"{path} can't be read: {error}; fetch the model again") from error
        if not isinstance(values, dict):
            raise ProgramFailure("UnsupportedConfig", f"{path} must hold a JSON object")
        # multimodal models keep the language model's shape one level down
        nested = values.get("text_config")
        return cls(path, {**nested, **values} if isinstance(nested, dict) else values)

    def architecture(self) -> str:
        architectures = self.values.get("architectures")
        if isinstance(architectures, list) and architectures and isinstance(architectures[0], str):
            return architectures[0]
        raise self._unsupported("architectures", "a list of at least one name")

    def integer(self, *keys: str) -> int:
        for key in keys:
            value = self.optional_integer(key)
            if value is not None:
                return value
        raise self._unsupported(" or ".join(keys), "a positive integer")

    def optional_integer(self, key: str) -> int | None:
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise self._unsupported(key, "a positive integer")
        return value

    def token_ids(self, key: str) -> tuple[int, ...]:
        value = self.values.get(key)
        numbers = [] if value is None else value if isinstance(value, list) else [value]
        if not all(isinstance(number, int) and not isinstance(number, bool) for number in numbers):
            raise self._unsupported(key, "an integer or a list of integers")
        return tuple(numbers)

    def data_type(self) -> str:
        value = self.values.get("torch_dtype") or self.values.get("dtype") or "float32"
        if not isinstance(value, str):
            raise self._unsupported("torch_dtype", "a string")
        return value.rpartition(".")[2]

    def _unsupported(self, key: str, wanted: str) -> ProgramFailure:
        return ProgramFailure(
            "UnsupportedConfig",
            f"{self.path}: {key} must be {wanted}, it is {self.values.get(key)!r}; "
            "only decoder models in Hugging Face's layout are supported",
        )
