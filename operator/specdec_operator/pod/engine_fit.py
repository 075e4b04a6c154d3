"""Whether an engine is what the plan counts on, by its config.json."""

from collections.abc import Iterator

from specdec_operator.pod.engine_config import EngineConfig, normal_data_type
from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.inputs import EngineExpectation


def require_fit(config: EngineConfig, expected: EngineExpectation, *, tensorrt_llm_version: str) -> None:
    """Refuse an engine that the server could not load, or that would not do what the spec says.

    Args:
        config: what the engine says of itself; what it does not say is not judged.
        expected: what the plan counts on.
        tensorrt_llm_version: the version that loads it; any if empty.

    Raises:
        ProgramFailure: TensorRTLLMVersionMismatch, LogitsTypeMismatch or EngineMismatch.
    """
    directory = expected.directory
    if tensorrt_llm_version and config.tensorrt_llm_version not in ("", tensorrt_llm_version):
        raise ProgramFailure(
            "TensorRTLLMVersionMismatch",
            f"{directory} was built by TensorRT-LLM {config.tensorrt_llm_version}, the image holds "
            f"{tensorrt_llm_version}; an engine serves only in the release that built it",
        )
    wanted = normal_data_type(expected.logits_data_type)
    if wanted and config.logits_data_type not in ("", wanted):
        raise ProgramFailure(
            "LogitsTypeMismatch",
            f"{directory} gives {config.logits_data_type} logits, the model repository expects {wanted}; build both "
            "engines of the pair with the same spec.engine.logitsDataType",
        )
    found = list(_differences(config, expected))
    if found:
        raise ProgramFailure("EngineMismatch", f"{directory}: {'; '.join(found)}. {_remedy(expected)}")


def _differences(config: EngineConfig, expected: EngineExpectation) -> Iterator[str]:
    role = expected.role
    if expected.speculative_mode and config.speculative_mode not in ("", expected.speculative_mode):
        yield (
            f"it is built for the speculative decoding mode {config.speculative_mode}, "
            f"spec.speculation.method needs {expected.speculative_mode} of the {role}"
        )
    elif expected.draft_tokens > config.draft_tokens and config.speculative_mode not in ("", "none"):
        yield f"it takes {config.draft_tokens} drafted tokens, spec.speculation needs {expected.draft_tokens}"
    if 0 < config.batch < expected.batch:
        yield f"it takes {config.batch} requests at once, spec.serving.maxBatchSize is {expected.batch}"
    if 0 < config.sequence_length < expected.sequence_length:
        yield (
            f"it takes requests of {config.sequence_length} tokens, spec.engine.maxSequenceLength with what is drafted "
            f"needs {expected.sequence_length}"
        )
    for name, has, wants in (
        ("tensor", config.tensor, expected.tensor),
        ("pipeline", config.pipeline, expected.pipeline),
    ):
        if has and wants and has != wants:
            yield f"its {name} parallelism is {has}, spec.{role}.parallelism.{name} says {wants}"


def _remedy(expected: EngineExpectation) -> str:
    if expected.prebuilt:
        return f"Build it anew, name another directory in spec.engine.prebuilt.{expected.role}, or change the spec"
    return "Delete the directory and build again"
