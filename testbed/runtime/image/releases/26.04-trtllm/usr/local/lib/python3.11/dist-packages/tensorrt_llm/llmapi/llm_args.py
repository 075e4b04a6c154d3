"""The speculative decoding types of the played release; they are read, never used."""  # noqa: INP001 - lies over the package below

from typing import Annotated, Literal, Union


class DecodingBaseConfig:
    """Common fields; each class's own type is what tells them apart."""

    max_draft_len: int | None = None
    max_total_draft_tokens: int | None = None
    speculative_model: str | None = None


class MTPDecodingConfig(DecodingBaseConfig):
    """Multi-token prediction."""

    decoding_type: Literal["MTP"] = "MTP"


class MedusaDecodingConfig(DecodingBaseConfig):
    """MEDUSA heads."""

    decoding_type: Literal["Medusa"] = "Medusa"


class EagleDecodingConfig(DecodingBaseConfig):
    """EAGLE heads."""

    decoding_type: Literal["Eagle"] = "Eagle"


class Eagle3DecodingConfig(EagleDecodingConfig):
    """EAGLE-3 heads."""

    decoding_type: Literal["Eagle3"] = "Eagle3"


class LookaheadDecodingConfig(DecodingBaseConfig):
    """Lookahead."""

    decoding_type: Literal["Lookahead"] = "Lookahead"


class NGramDecodingConfig(DecodingBaseConfig):
    """Prompt lookup."""

    decoding_type: Literal["NGram"] = "NGram"


class DraftTargetDecodingConfig(DecodingBaseConfig):
    """A draft model."""

    decoding_type: Literal["Draft_Target"] = "Draft_Target"


class SaveHiddenStatesDecodingConfig(DecodingBaseConfig):
    """Data collection."""

    decoding_type: Literal["SaveState"] = "SaveState"


class UserProvidedDecodingConfig(DecodingBaseConfig):
    """A drafter object."""

    decoding_type: Literal["User_Provided"] = "User_Provided"


class AutoDecodingConfig(DecodingBaseConfig):
    """Chosen by batch size."""

    decoding_type: Literal["AUTO"] = "AUTO"


SpeculativeConfig = Annotated[
    Union[  # noqa: UP007 - as the original writes it
        MTPDecodingConfig,
        MedusaDecodingConfig,
        EagleDecodingConfig,
        Eagle3DecodingConfig,
        LookaheadDecodingConfig,
        NGramDecodingConfig,
        DraftTargetDecodingConfig,
        SaveHiddenStatesDecodingConfig,
        UserProvidedDecodingConfig,
        AutoDecodingConfig,
    ],
    "discriminator: decoding_type",
]
