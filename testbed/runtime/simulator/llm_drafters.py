"""What drafts for the LLM API's target, by the method that model.yaml names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from testbed.runtime.inference.drafters import DraftModelDrafter, Eagle3Drafter
from testbed.runtime.inference.eagle3 import Eagle3Head
from testbed.runtime.inference.llama import LlamaModel, read_json
from testbed.runtime.inference.mtp import MultiTokenDrafter, MultiTokenLayer
from testbed.runtime.inference.ngram import NGramPoolDrafter
from testbed.runtime.simulator.errors import ParameterError

if TYPE_CHECKING:
    from testbed.runtime.inference.drafters import Drafter
    from testbed.runtime.simulator.llm_arguments import LLMArguments, SpeculationArguments


def make_drafter(arguments: LLMArguments, target: LlamaModel) -> Drafter | None:
    """Load what drafts; None where nothing does.

    Raises:
        InferenceError: a model can't be loaded, or doesn't fit the target.
        ParameterError: the method needs a directory and has none.
    """
    speculation = arguments.speculation
    if speculation is None:
        return None
    length = speculation.max_draft_len
    if speculation.method == "NGram":
        return NGramPoolDrafter(length, speculation.pool)
    if speculation.method == "MTP":
        layer = MultiTokenLayer.load(arguments.model, target)
        architectures = read_json(arguments.model / "config.json")["architectures"]
        if speculation.own_layers.isdisjoint(architectures):
            raise ParameterError(f"{', '.join(architectures)} is not supported for MTP")
        return MultiTokenDrafter(layer, length)
    return _with_draft(speculation, target)


def _with_draft(speculation: SpeculationArguments, target: LlamaModel) -> Drafter:
    directory, length = speculation.directory, speculation.max_draft_len
    if directory is None:
        raise ParameterError(f"{speculation.method}: the draft's directory is required")
    if speculation.method == "DraftTarget":
        return DraftModelDrafter(LlamaModel.load(directory), length)
    return Eagle3Drafter(Eagle3Head.load(directory, target), length)
