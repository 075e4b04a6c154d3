"""What a spec asks of draft, method and OpenAI front end that its backend can't do: refused before any Job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdec_operator.planning.draft_length import lookahead_tokens
from specdec_operator.planning.refusal import Refusal
from specdec_operator.runtimes.openai import OWN_DEFAULT_TOKENS
from specdec_operator.runtimes.release import DEFAULT_MAX_TOKENS

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.runtime import Backend
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec
    from specdec_operator.runtimes.release import Release

_FRONT_END = "spec.serving.openAIFrontEnd"
_STAGED_SPECULATION = "0.28"
"""The first vLLM that speculates with a target in several pipeline stages."""


def refusals(spec: SpeculativeModelSpec, backend: Backend) -> list[Refusal]:
    """Options that would be ignored, and a front end that would not draft."""
    return [
        *_method_options(spec, backend),
        *_lookahead(spec),
        *_draft_split(spec, backend),
        *_front_end(spec, backend),
    ]


def release_refusals(spec: SpeculativeModelSpec, backend: Backend, release: Release) -> list[Refusal]:
    """What the runtime and the front end inside a release can't do."""
    return [*_front_end_options(spec, release), *_stages(spec, backend, release)]


def _front_end_options(spec: SpeculativeModelSpec, release: Release) -> list[Refusal]:
    asked = spec.serving.open_ai_front_end
    if asked is None or asked.default_max_tokens == OWN_DEFAULT_TOKENS or release.front_end_has(DEFAULT_MAX_TOKENS):
        return []
    message = (
        f"the OpenAI front end of {release.name} always takes {OWN_DEFAULT_TOKENS} and has no option for it: leave it "
        "out, let requests give max_tokens, or name 25.08 or newer in runtime.release"
    )
    return [Refusal(reason="OptionNotInRelease", path=f"{_FRONT_END}.defaultMaxTokens", message=message)]


def _stages(spec: SpeculativeModelSpec, backend: Backend, release: Release) -> list[Refusal]:
    support = release.vllm if backend == "VLLM" else None
    staged = spec.target.parallelism.pipeline > 1 and spec.speculation.method != "None"
    if support is None or not staged or support.at_least(_STAGED_SPECULATION):
        return []
    message = (
        f"vLLM {support.version} of {release.name} speculates in one pipeline stage, {_STAGED_SPECULATION} and newer "
        "in several: set pipeline to 1 and raise tensor instead"
    )
    return [Refusal(reason="PipelineNotSupported", path="spec.target.parallelism.pipeline", message=message)]


def _method_options(spec: SpeculativeModelSpec, backend: Backend) -> list[Refusal]:
    options = spec.speculation
    found: list[Refusal] = []
    if backend != "TensorRTEngine" and options.eagle:
        built = {"layers": options.eagle.layers, "maxNonLeavesPerLayer": options.eagle.max_non_leaves_per_layer}
        remedy = (
            "engines are built for a tree, and this backend drafts a chain: give speculation.maxDraftTokens instead"
        )
        found += [_ignored(f"eagle.{name}", backend, remedy) for name, value in built.items() if value is not None]
    if backend != "TensorRTEngine" and options.medusa and options.medusa.heads is not None:
        remedy = "as many heads are taken as speculation.maxDraftTokens says: give that instead"
        found.append(_ignored("medusa.heads", backend, remedy))
    if backend != "TensorRTEngine" and options.draft_target and options.draft_target.logits_transfer is not None:
        remedy = "draft and target share one process there: remove it, or set runtime.backend to TensorRTEngine"
        found.append(_ignored("draftTarget.logitsTransfer", backend, remedy))
    if backend == "LLMAPI" and options.n_gram and options.n_gram.min_matching_length is not None:
        remedy = "every length up to maxMatchingLength is looked up there: remove it, or set runtime.backend to VLLM"
        found.append(_ignored("nGram.minMatchingLength", backend, remedy))
    return found


def _ignored(field: str, backend: Backend, remedy: str) -> Refusal:
    message = f"{backend} has no such option: {remedy}"
    return Refusal(reason="OptionNotOnBackend", path=f"spec.speculation.{field}", message=message)


def _lookahead(spec: SpeculativeModelSpec) -> list[Refusal]:
    options = spec.speculation.lookahead
    if options is None or (options.n_gram_size > 1 and lookahead_tokens(options) > 0):
        return []
    message = (
        f"windowSize {options.window_size}, nGramSize {options.n_gram_size} and verificationSetSize "
        f"{options.verification_set_size} leave nothing to draft: set nGramSize to 2 or more with windowSize 2 or "
        "verificationSetSize 1, leave lookahead out, or use the method None"
    )
    return [Refusal(reason="OptionContradiction", path="spec.speculation.lookahead", message=message)]


def _draft_split(spec: SpeculativeModelSpec, backend: Backend) -> list[Refusal]:
    if backend == "TensorRTEngine" or spec.draft is None:
        return []
    draft, target = spec.draft.parallelism, spec.target.parallelism
    wrong = [
        *(["tensor"] if draft.tensor not in (1, target.tensor) else []),
        *(["pipeline"] if draft.pipeline != 1 else []),
    ]
    message = f"{backend} splits a draft model like its target or not at all: leave draft.parallelism out"
    return [
        Refusal(reason="OptionNotOnBackend", path=f"spec.draft.parallelism.{name}", message=message) for name in wrong
    ]


def _front_end(spec: SpeculativeModelSpec, backend: Backend) -> list[Refusal]:
    if spec.serving.open_ai_front_end is None or backend == "VLLM":
        return []
    if backend == "LLMAPI":
        message = (
            "LLMAPI has no such option, Triton's OpenAI front end does not know the LLM API's inputs: remove it and "
            "use Triton's own protocol, or set runtime.backend to VLLM where the method allows it"
        )
        return [Refusal(reason="OptionNotOnBackend", path=_FRONT_END, message=message)]
    if spec.speculation.method == "DraftTarget":
        message = (
            "the front end sends no num_draft_tokens, so that nothing would be drafted: remove it and use Triton's own "
            "protocol, or set runtime.backend to VLLM"
        )
        return [Refusal(reason="OptionContradiction", path=_FRONT_END, message=message)]
    if spec.serving.accumulate_tokens:
        message = "the front end sends each piece on as new text, and accumulateTokens repeats the old: remove one"
        return [Refusal(reason="OptionContradiction", path=_FRONT_END, message=message)]
    ranks = spec.target.parallelism.ranks
    if ranks == 1:
        return []
    message = (
        f"the front end takes the place of a server of one process, and an engine on {ranks} GPUs needs {ranks}: "
        "remove it, or set target.parallelism to 1"
    )
    return [Refusal(reason="OptionContradiction", path=_FRONT_END, message=message)]
