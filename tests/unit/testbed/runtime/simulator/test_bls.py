"""The BLS model with both engines behind it, and no Triton."""

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from testbed.runtime.inference.tokenizer import TextTokenizer
from testbed.runtime.simulator.convert_checkpoint import convert_checkpoint
from testbed.runtime.simulator.engine import describe_engine
from testbed.runtime.simulator.engine_drafters import load_with_drafter
from testbed.runtime.simulator.engine_tensors import TensorReader, answer_tensors, parse_call
from testbed.runtime.simulator.executor import EngineExecutor
from testbed.runtime.simulator.parameters_decoding import DecodingParameters
from testbed.runtime.simulator.trtllm_build import trtllm_build
from tests.unit.testbed.runtime.simulator.triton_double import Models, Tensors, library

GPU = "NVIDIA H100 80GB HBM3"
PROMPT, ANSWER = "The capital of France is", " Paris, a city on the river Seine."
DRAFTED: dict[str, Any] = {"num_draft_tokens": 4, "stream": False, "return_perf_metrics": True}
_BLS = "testbed.runtime.simulator.triton_models.bls"
_NAMES = {"tensorrt_llm_model_name": "tensorrt_llm", "tensorrt_llm_draft_model_name": "tensorrt_llm_draft"}


@dataclass
class Repository:
    """The four models beside BLS; what the engines' config.pbtxt say of excluding the input; BLS's log."""

    executors: dict[str, EngineExecutor]
    tokenizer: TextTokenizer
    excluding: set[str] = field(default_factory=set)
    logits_type: type[np.floating[Any]] = np.float32
    written_type: str | None = None
    calls: list[Tensors] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    def models(self) -> Models:
        engines = {name: self._engine(name) for name in self.executors}
        return {"preprocessing": self._encode, "postprocessing": self._decode, **engines}

    def _encode(self, tensors: Tensors) -> Tensors:
        tokens = self.tokenizer.encode(tensors["QUERY"].flat[0].decode())
        return {"INPUT_ID": np.asarray([tokens]), "OUT_END_ID": np.asarray([[self.tokenizer.end_id]])}

    def _decode(self, tensors: Tensors) -> Tensors:
        length = int(tensors["SEQUENCE_LENGTH"].flat[0])
        text = self.tokenizer.decode(tensors["TOKENS_BATCH"][0][0][:length].tolist())
        return {"OUTPUT": np.asarray([[text]], dtype=np.object_)}

    def _engine(self, name: str) -> Callable[[Tensors], Tensors]:
        def answer(tensors: Tensors) -> Tensors:
            if name == "tensorrt_llm":
                self.calls.append(tensors)
            call = parse_call(
                TensorReader(tensors.get),
                exclude_input=name in self.excluding,
                fast_logits=False,
                logits_type=self.logits_type,
                written_type=self.written_type,
            )
            return answer_tensors(call, self.executors[name].run(call.request))

        return answer

    def ask(self, **fields: Any) -> dict[str, Any]:
        model = importlib.import_module(_BLS).TritonPythonModel()
        parameters = {name: {"string_value": value} for name, value in _NAMES.items()}
        model.initialize({"model_config": json.dumps({"parameters": parameters})})
        request = {"text_input": np.asarray([[PROMPT.encode()]], dtype=np.object_), "max_tokens": np.asarray([[16]])}
        (response,) = model.execute([request | {name: np.asarray([[value]]) for name, value in fields.items()}])
        if response.has_error():
            return {"error": response.error().message()}
        return {tensor.name(): tensor.as_numpy().flat[0] for tensor in response.output_tensors()}


@pytest.fixture(scope="module")
def executors(
    models: Path, gpus: dict[str, str], target_engine: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, EngineExecutor]:
    folder = tmp_path_factory.mktemp("draft")
    checkpoint = ["--model_dir", str(models / "tiny-llama-draft"), "--output_dir", str(folder / "checkpoint")]
    convert_checkpoint(checkpoint, gpus)
    limits = ["--max_seq_len", "128", "--max_input_len", "64"]
    trtllm_build(["--checkpoint_dir", str(folder / "checkpoint"), "--output_dir", str(folder), *limits], gpus)
    directories = {"tensorrt_llm": target_engine, "tensorrt_llm_draft": folder}
    loaded: dict[str, EngineExecutor] = {}
    for name, directory in directories.items():
        engine = describe_engine(directory)
        loaded[name] = EngineExecutor(load_with_drafter(engine, DecodingParameters(), gpu=GPU), engine.limits)
    return loaded


@pytest.fixture
def repository(
    executors: dict[str, EngineExecutor], models: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Repository]:
    made = Repository(executors, TextTokenizer.load(models / "tiny-llama"))
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", library(made.models(), made.log))
    yield made
    sys.modules.pop(_BLS, None)


@pytest.mark.parametrize("logits", [False, True])
@pytest.mark.parametrize("logits_type", [np.float32, np.float16])
def test_draft_and_target_answer_as_the_target_alone(
    repository: Repository, *, logits: bool, logits_type: type[np.floating[Any]]
) -> None:
    repository.logits_type = logits_type
    said = repository.ask(**DRAFTED, use_draft_logits=logits)
    assert said["text_output"] == repository.ask()["text_output"] == PROMPT + ANSWER
    assert (said["total_draft_tokens"], said["total_accepted_draft_tokens"]) == (4, 3)


def test_logits_go_to_the_target_only_when_they_are_asked_for(repository: Repository) -> None:
    sent = []
    for logits in (False, True):
        repository.ask(**DRAFTED, use_draft_logits=logits)
        sent.append({"draft_input_ids" in call and "draft_logits" in call for call in repository.calls})
        repository.calls.clear()
    assert sent == [{False}, {True}]


def test_the_log_counts_all_calls_of_the_target(repository: Repository) -> None:
    repository.ask(**DRAFTED)
    assert repository.log[-1].endswith("tensorrt_llm_bls: target_calls=4 drafted=16 accepted=11")


def test_a_draft_that_leaves_out_its_input_silently_never_drafts(repository: Repository) -> None:
    repository.excluding = {"tensorrt_llm_draft"}
    said = repository.ask(**DRAFTED)
    assert (said["text_output"], said["total_draft_tokens"]) == (PROMPT + ANSWER, 0)


def test_a_target_that_leaves_out_its_input_silently_ends_the_text(repository: Repository) -> None:
    repository.excluding = {"tensorrt_llm"}
    assert repository.ask(**DRAFTED)["text_output"] == PROMPT


def test_without_draft_tokens_the_models_default_does_no_harm(repository: Repository) -> None:
    repository.excluding = {"tensorrt_llm"}
    assert repository.ask()["text_output"] == PROMPT + ANSWER


def test_misread_logits_reach_the_target_as_those_of_other_tokens(repository: Repository) -> None:
    repository.written_type = "float16"
    said = repository.ask(**DRAFTED, use_draft_logits=True)
    assert "draft_logits don't belong to draft_input_ids" in said["error"]
    assert repository.ask(**DRAFTED, use_draft_logits=False)["text_output"] == PROMPT + ANSWER


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"num_draft_tokens": 4}, "'NoneType' object has no attribute 'any'"),
        (DRAFTED | {"stream": True}, "streaming is not supported with speculative decoding"),
        (DRAFTED | {"return_context_logits": True}, "context logits are not supported"),
        (DRAFTED | {"num_draft_tokens": 6}, r"Number of draft tokens (6) is larger than maximum"),
    ],
)
def test_a_request_that_cannot_be_drafted_is_refused(
    repository: Repository, fields: dict[str, Any], refusal: str
) -> None:
    assert refusal in repository.ask(**fields)["error"]
