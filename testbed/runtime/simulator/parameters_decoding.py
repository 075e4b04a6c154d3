"""The part of config.pbtxt that says how an engine decodes: the mode, the trees, the lookahead sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from testbed.runtime.inference.lookahead import LookaheadConfig, LookaheadConfigError
from testbed.runtime.inference.tree_choices import Choices, parse_choices
from testbed.runtime.simulator.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping

DECODING_MODES: Final = (
    "top_k",
    "top_p",
    "top_k_top_p",
    "beam_search",
    "medusa",
    "redrafter",
    "lookahead",
    "eagle",
)
_LOOKAHEAD_KEYS: Final = ("lookahead_window_size", "lookahead_ngram_size", "lookahead_verification_set_size")


@dataclass(frozen=True)
class DecodingParameters:
    """How an engine shall decode.

    Attributes:
        mode: as written; none when it is left out or unknown.
        medusa_choices: none for the default tree.
        eagle_choices: none for the default tree.
        lookahead: read only where the mode is lookahead.
    """

    mode: str | None = None
    medusa_choices: Choices | None = None
    eagle_choices: Choices | None = None
    lookahead: LookaheadConfig | None = None


def parse_decoding(values: Mapping[str, str | None], warnings: list[str]) -> DecodingParameters:
    """Parse the parameters; unset ones are none.

    Args:
        values: parameters by key.
        warnings: gets a line for each one that falls back to its default.

    Raises:
        ParameterError: decoding_mode is lookahead and one of the three sizes is missing or they don't go together.
    """
    mode = values.get("decoding_mode")
    if mode not in DECODING_MODES:
        warnings.append(
            "decoding_mode parameter is invalid or not specified "
            f"(must be one of the {{{', '.join(DECODING_MODES)}}}). "
            "Using default: top_k_top_p if max_beam_width == 1, beam_search otherwise"
        )
        mode = None
    return DecodingParameters(
        mode=mode,
        medusa_choices=_choices("medusa_choices", values, warnings),
        eagle_choices=_choices("eagle_choices", values, warnings),
        lookahead=_lookahead(values) if mode == "lookahead" else None,
    )


def _choices(key: str, values: Mapping[str, str | None], warnings: list[str]) -> Choices | None:
    text = values.get(key)
    try:
        if text is not None:
            return parse_choices(text)
    except ValueError as problem:
        warnings.append(f"{key}: {problem}")
    warnings.append(f"{key} parameter is not specified. Will be using default mc_sim_7b_63 choices instead.")
    return None


def _lookahead(values: Mapping[str, str | None]) -> LookaheadConfig:
    sizes: list[int] = []
    for key in _LOOKAHEAD_KEYS:
        text = values.get(key)
        if text is None:
            raise ParameterError(
                f"decoding_mode is lookahead, but {key} is not set; all three are needed: {', '.join(_LOOKAHEAD_KEYS)}"
            )
        try:
            sizes.append(int(text))
        except ValueError as problem:
            raise ParameterError(f"{key}: {text!r} is not a number") from problem
    try:
        return LookaheadConfig(*sizes)
    except LookaheadConfigError as problem:
        raise ParameterError(f"lookahead parameters: {problem}") from problem
