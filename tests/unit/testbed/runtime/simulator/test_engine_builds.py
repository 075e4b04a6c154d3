"""The operator's own builds, from a spec to an engine, with the simulator's tools in place of NVIDIA's."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import testbed.runtime
from specdec_operator.api.v1alpha1.artifact_inputs import MountedModel
from specdec_operator.api.v1alpha1.model_facts import ModelFacts
from specdec_operator.planning.admission import admit
from specdec_operator.planning.engine_expectations import engine_expectation
from specdec_operator.planning.engines import plan_engines
from specdec_operator.pod.build import build
from specdec_operator.pod.command import Finished
from specdec_operator.pod.engine_config import read_engine_config
from specdec_operator.pod.engine_fit import require_fit
from specdec_operator.pod.inputs import BuildInput, BuildStep
from specdec_operator.pod.model_facts import read_facts
from specdec_operator.runtimes.table import load_table
from testbed.runtime.simulator.convert_checkpoint import convert_checkpoint
from testbed.runtime.simulator.convert_eagle import convert_eagle
from testbed.runtime.simulator.convert_medusa import convert_medusa
from testbed.runtime.simulator.convert_redrafter import convert_redrafter
from testbed.runtime.simulator.quantize import quantize
from testbed.runtime.simulator.release import TENSORRT_LLM_VERSION
from testbed.runtime.simulator.run_engine import run_engine
from testbed.runtime.simulator.trtllm_build import trtllm_build
from tests.unit.engine_specs import EAGLE, LOOKAHEAD, MEDUSA, REDRAFTER
from tests.unit.pod.tools import Image
from tests.unit.specs import BASELINE_ENGINE, CONFIGURATION, DRAFT_TARGET, model

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from specdec_operator.planning.artifact_request import ArtifactRequest

IMAGE = Path(testbed.runtime.__file__).parent / "image" / "root"
EXAMPLES = IMAGE / "app" / "examples"
SCRIPT = "convert_checkpoint.py"
ROW: dict[str, Any] = {
    "name": "26.02-simulator",
    "image": "registry.example.com/simulator:1",
    "tensorrtLLM": TENSORRT_LLM_VERSION,
    "TensorRTEngine": {
        "methods": ["Eagle", "Medusa", "DraftTarget", "Lookahead", "ReDrafter", "None"],
        "converters": {
            "llama": [str(EXAMPLES / "models" / "core" / "llama" / SCRIPT)],
            **{name: [str(EXAMPLES / name / SCRIPT)] for name in ("eagle", "medusa", "redrafter")},
            "quantize": [str(EXAMPLES / "quantization" / "quantize.py")],
            "run": [str(EXAMPLES / "run.py")],
        },
    },
    "source": "the simulator",
}
SMALL: dict[str, Any] = {
    "runtime": {"backend": "TensorRTEngine", "release": ROW["name"]},
    "engine": {"maxBatchSize": 4, "maxInputLength": 64, "maxSequenceLength": 128},
}
DRAFTS = {
    "Eagle": "tiny-llama-eagle",
    "Medusa": "tiny-llama-medusa",
    "ReDrafter": "tiny-llama-redrafter",
    "DraftTarget": "tiny-llama-draft",
}


TOOLS: dict[str, Callable[[Sequence[str], Mapping[str, str]], None]] = {
    str(EXAMPLES / "models" / "core" / "llama" / SCRIPT): convert_checkpoint,
    str(EXAMPLES / "eagle" / SCRIPT): convert_eagle,
    str(EXAMPLES / "medusa" / SCRIPT): convert_medusa,
    str(EXAMPLES / "redrafter" / SCRIPT): convert_redrafter,
    str(EXAMPLES / "quantization" / "quantize.py"): quantize,
    str(EXAMPLES / "run.py"): run_engine,
    "trtllm-build": trtllm_build,
}


@pytest.fixture
def container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Image:
    """A place for programs that comes first on PATH."""
    return Image(tmp_path / "image", monkeypatch)


@pytest.fixture
def tools(gpus: dict[str, str], container: Image, monkeypatch: pytest.MonkeyPatch) -> None:
    """The image's programs, in this process: starting each of them would take minutes."""
    container.gpus()
    container.program("trtllm-build", "exit 9")

    def run(argv: Sequence[str]) -> Finished:
        program, arguments = (argv[1], argv[2:]) if argv[0] == "python3" else (argv[0], argv[1:])
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            try:
                TOOLS[program](arguments, gpus)
            except SystemExit as exit_:
                return Finished(int(exit_.code or 0), said.getvalue(), out_of_memory=False)
        return Finished(0, said.getvalue(), out_of_memory=False)

    start = subprocess.run

    def ask(argv: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
        if "--help" not in argv:
            return start(argv, **options)
        finished = run(argv)
        return subprocess.CompletedProcess(argv, finished.returncode, finished.tail, "")

    monkeypatch.setattr("specdec_operator.pod.build.run_command", run)
    monkeypatch.setattr("specdec_operator.pod.command.subprocess.run", ask)


def built(models: Path, store: Path, spec: dict[str, Any], **changes: Any) -> dict[str, Path]:
    """Build every engine of a spec; the directory of each by role."""
    made = model(spec, **{**SMALL, **changes})
    resolution = admit(made, table=load_table([ROW]), configuration=CONFIGURATION)
    directories = {"target": models / "tiny-llama"}
    if made.spec.draft:
        directories["draft"] = models / DRAFTS[made.spec.speculation.method]
    facts = {role: ModelFacts.model_validate(read_facts(path).to_wire()) for role, path in directories.items()}
    places = {role: MountedModel(claim_name="store", sub_path=role) for role in directories}
    engines = plan_engines(made.spec, resolution, facts=facts, models=places)
    found = {}
    for engine in engines:
        role = engine.role.removesuffix("-engine")
        found[role] = _build(engine, store, model_directory=directories[role], head=directories.get("draft"))
        expected = engine_expectation(role, made.spec, resolution, directory=str(found[role]))
        require_fit(read_engine_config(found[role]), expected, tensorrt_llm_version=TENSORRT_LLM_VERSION)
    return found


def _build(engine: ArtifactRequest, store: Path, *, model_directory: Path, head: Path | None) -> Path:
    planned = engine.spec.build
    assert planned is not None
    store.mkdir(exist_ok=True)
    build(
        BuildInput(
            model=str(model_directory),
            head=str(head) if planned.head else "",
            store=str(store),
            directory=planned.directory,
            steps=tuple(BuildStep(name=step.name, argv=tuple(step.argv)) for step in planned.steps),
            ranks=planned.ranks,
            gpu_product=engine.spec.gpu.product if engine.spec.gpu else "",
        )
    )
    return store / planned.directory


def says(directory: Path) -> dict[str, Any]:
    return dict(json.loads((directory / "config.json").read_text()))


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize(
    ("spec", "changes", "mode"),
    [
        (BASELINE_ENGINE, {}, 1),
        (DRAFT_TARGET, {"target__parallelism": {"tensor": 2}, "placement__targetDevices": [1, 2]}, 2),
        (MEDUSA, {}, 4),
        (LOOKAHEAD, {}, 8),
        (REDRAFTER, {"target__parallelism": {"tensor": 2}}, 16),
        (EAGLE, {}, 32),
    ],
    ids=["baseline", "draft-target", "medusa", "lookahead", "redrafter", "eagle"],
)
def test_every_method_s_engines_are_built_as_planned(
    models: Path, tmp_path: Path, spec: dict[str, Any], changes: dict[str, Any], mode: int
) -> None:
    engines = built(models, tmp_path / "store", spec, **changes)

    assert says(engines["target"])["build_config"]["speculative_decoding_mode"] == mode


@pytest.mark.usefixtures("tools")
def test_an_fp8_engine_in_two_stages_is_built_as_planned(models: Path, tmp_path: Path) -> None:
    quantization = {"format": "FP8", "keyValueCacheDataType": "FP8"}
    engines = built(
        models,
        tmp_path / "store",
        BASELINE_ENGINE,
        target__quantization=quantization,
        target__parallelism={"pipeline": 2},
    )
    config = says(engines["target"])["pretrained_config"]

    assert config["quantization"] == {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}
    assert config["mapping"]["pp_size"] == 2
