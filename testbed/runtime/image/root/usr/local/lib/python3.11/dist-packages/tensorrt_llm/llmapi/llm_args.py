"""The classes and the parser key of each decoding method, named as in the release; they are read, never used."""

from typing import Any, ClassVar


class DecodingBaseConfig:
    """Common fields, and the parser of `speculative_config`."""

    decoding_type: ClassVar[str]
    max_draft_len: int | None = None
    speculative_model_dir: str | None = None

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "DecodingBaseConfig":
        """Make the configuration that `decoding_type` names."""
        config_classes = {
            "MTP": MTPDecodingConfig,
            "Medusa": MedusaDecodingConfig,
            "Eagle": EagleDecodingConfig,
            "Lookahead": LookaheadDecodingConfig,
            "NGram": NGramDecodingConfig,
            "DraftTarget": DraftTargetDecodingConfig,
            "SaveState": SaveHiddenStatesDecodingConfig,
            "UserProvided": UserProvidedDecodingConfig,
            "AUTO": AutoDecodingConfig,
        }
        return config_classes[data["decoding_type"]]()


class MTPDecodingConfig(DecodingBaseConfig):
    """Multi-token prediction."""

    decoding_type: ClassVar[str] = "MTP"


class MedusaDecodingConfig(DecodingBaseConfig):
    """MEDUSA heads."""

    decoding_type: ClassVar[str] = "Medusa"


class EagleDecodingConfig(DecodingBaseConfig):
    """EAGLE heads."""

    decoding_type: ClassVar[str] = "Eagle"


class LookaheadDecodingConfig(DecodingBaseConfig):
    """Lookahead."""

    decoding_type: ClassVar[str] = "Lookahead"


class NGramDecodingConfig(DecodingBaseConfig):
    """Prompt lookup."""

    decoding_type: ClassVar[str] = "NGram"


class DraftTargetDecodingConfig(DecodingBaseConfig):
    """A draft model."""

    decoding_type: ClassVar[str] = "Draft_Target"


class SaveHiddenStatesDecodingConfig(DecodingBaseConfig):
    """Data collection."""

    decoding_type: ClassVar[str] = "SaveState"


class UserProvidedDecodingConfig(DecodingBaseConfig):
    """A drafter object."""

    decoding_type: ClassVar[str] = "User_Provided"


class AutoDecodingConfig(DecodingBaseConfig):
    """Chosen by batch size."""

    decoding_type: ClassVar[str] = "AUTO"
