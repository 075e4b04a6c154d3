"""Whether the models and engines that a server is to load are still what was published."""

from pathlib import Path

from specdec_operator.pod.engine_config import read_engine_config, require_engine
from specdec_operator.pod.engine_fit import require_fit
from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.inputs import ContentInput, EngineExpectation
from specdec_operator.pod.manifest import require_whole
from specdec_operator.pod.model_files import MANIFEST_NAME, weight_files
from specdec_operator.pod.prebuilt_engine import require_prebuilt
from specdec_operator.pod.tensors import read_weights


def require_content(given: ContentInput) -> None:
    """Compare names and sizes with the manifests; nothing is read whole.

    Raises:
        ProgramFailure: a model or an engine is missing, damaged or not the one that the plan counted on.
    """
    for directory in given.model_directories:
        # With engines, models are mounted for their tokenizers alone.
        _require_model(Path(directory), loaded=not given.engines)
    for engine in given.engines:
        _require_engine(engine, given.tensorrt_llm_version)


def _require_engine(engine: EngineExpectation, tensorrt_llm_version: str) -> None:
    directory = Path(engine.directory)
    if engine.prebuilt:
        require_prebuilt(directory, ranks=engine.ranks, digest=engine.digest)
    else:
        require_engine(directory, ranks=engine.ranks, digest=engine.digest)
    require_fit(read_engine_config(directory), engine, tensorrt_llm_version=tensorrt_llm_version)


def _require_model(directory: Path, *, loaded: bool) -> None:
    """A model that is as it was published; on a claim or in an image, one whose weights can be read to their end."""
    if not (directory / "config.json").is_file():
        raise ProgramFailure(
            "ModelMissing", f"{directory} holds no model (no config.json); delete the ModelArtifact to fetch it again"
        )
    if (directory / MANIFEST_NAME).is_file():
        require_whole(directory, kind="Model")
    elif loaded:
        read_weights(directory, weight_files(directory))
