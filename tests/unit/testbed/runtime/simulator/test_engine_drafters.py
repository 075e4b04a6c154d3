"""Engines that draft for themselves: what they load, refuse, and answer."""

from dataclasses import replace
from pathlib import Path

import pytest

from testbed.runtime.inference.lookahead import LookaheadConfig
from testbed.runtime.inference.tokenizer import TextTokenizer
from testbed.runtime.inference.tree_choices import Choices
from testbed.runtime.simulator.convert_medusa import convert_medusa
from testbed.runtime.simulator.engine import describe_engine
from testbed.runtime.simulator.engine_drafters import decoding_warnings, load_with_drafter
from testbed.runtime.simulator.errors import EngineError, RequestError
from testbed.runtime.simulator.executor import EngineExecutor, EngineRequest, EngineResult
from testbed.runtime.simulator.parameters_decoding import DecodingParameters
from testbed.runtime.simulator.trtllm_build import trtllm_build

GPU = "NVIDIA H100 80GB HBM3"
LOOKAHEAD = DecodingParameters(mode="lookahead", lookahead=LookaheadConfig(4, 3, 4))
METHODS = {
    "eagle": DecodingParameters(mode="eagle"),
    "medusa": DecodingParameters(mode="medusa"),
    "lookahead": LOOKAHEAD,
    "redrafter": DecodingParameters(mode="redrafter"),
}
PARIS = " Paris, a city on the river Seine."


@pytest.fixture
def plain(models: Path) -> EngineRequest:
    tokenizer = TextTokenizer.load(models / "tiny-llama")
    prompt = tuple(tokenizer.encode("The capital of France is"))
    return EngineRequest(tokens=prompt, max_tokens=40, end_id=tokenizer.end_id)


@pytest.fixture
def engines(eagle_engine: Path, medusa_engine: Path, lookahead_engine: Path, redrafter_engine: Path) -> dict[str, Path]:
    return {
        "eagle": eagle_engine,
        "medusa": medusa_engine,
        "lookahead": lookahead_engine,
        "redrafter": redrafter_engine,
    }


def executor(directory: Path, decoding: DecodingParameters) -> EngineExecutor:
    engine = describe_engine(directory)
    return EngineExecutor(load_with_drafter(engine, decoding, gpu=GPU), engine.limits)


@pytest.mark.parametrize("method", METHODS)
def test_an_engine_that_drafts_answers_as_one_that_does_not(
    engines: dict[str, Path], target_engine: Path, plain: EngineRequest, models: Path, method: str
) -> None:
    said = executor(engines[method], METHODS[method]).run(plain)
    alone = executor(target_engine, DecodingParameters()).run(plain)
    assert said.tokens == alone.tokens
    assert TextTokenizer.load(models / "tiny-llama").decode(said.tokens) == PARIS


@pytest.mark.parametrize("method", METHODS)
def test_its_counts_add_up(engines: dict[str, Path], plain: EngineRequest, method: str) -> None:
    said = executor(engines[method], METHODS[method]).run(plain)
    assert said.guessed >= said.drafted >= said.accepted > 0
    # Where a guessed end mark was accepted, the pass adds no token of the target's own.
    assert said.passes + said.accepted - len(said.tokens) in (0, 1)


@pytest.mark.parametrize("method", METHODS)
def test_the_limit_of_new_tokens_holds(engines: dict[str, Path], plain: EngineRequest, method: str) -> None:
    said = executor(engines[method], METHODS[method]).run(replace(plain, max_tokens=5))
    assert len(said.tokens) == 5


def test_the_default_tree_guesses_63_tokens_at_a_time(medusa_engine: Path, plain: EngineRequest) -> None:
    said = executor(medusa_engine, DecodingParameters()).run(plain)
    assert said.guessed > 63
    assert said.drafted <= 4 * (said.passes - 1)


def test_choices_decide_the_tree(medusa_engine: Path, plain: EngineRequest) -> None:
    said = executor(medusa_engine, DecodingParameters(medusa_choices=((0,), (0, 0)))).run(plain)
    assert said.guessed == said.drafted <= 2 * (said.passes - 1)


@pytest.mark.parametrize(
    ("choices", "refusal"),
    [
        (((0,), (0, 0), (0, 0, 0)), "the deepest choice has 3 levels, but the engine has 4 EAGLE layers"),
        (((0,), (0, 0), (0, 0, 0), (0, 1, 0), (0, 0, 0, 0)), r"\{0, 1, 0\} without its parent \{0, 1\}"),
        (tuple((0,) * depth for depth in range(1, 6)), "larger maxPathLen than the engine was built with"),
    ],
)
def test_a_tree_that_does_not_fit_the_head_ends_the_load(eagle_engine: Path, choices: Choices, refusal: str) -> None:
    with pytest.raises(EngineError, match=refusal):
        executor(eagle_engine, DecodingParameters(eagle_choices=choices))


def test_a_tree_deeper_than_the_heads_ends_the_load(medusa_engine: Path) -> None:
    deep = tuple((0,) * depth for depth in range(1, 6))
    with pytest.raises(EngineError, match=r"5 levels, the engine has 4"):
        executor(medusa_engine, DecodingParameters(medusa_choices=deep))


@pytest.mark.parametrize("mode", ["top_k", "top_p", "top_k_top_p"])
def test_a_medusa_engine_that_is_told_to_sample_answers_zeros(
    medusa_engine: Path, plain: EngineRequest, mode: str
) -> None:
    assert executor(medusa_engine, DecodingParameters(mode=mode)).run(plain) == EngineResult((0,) * 40)


def test_the_default_tree_does_not_fit_as_many_heads_as_config_json_says(
    models: Path, gpus: dict[str, str], tmp_path: Path
) -> None:
    directories = ["--model_dir", str(models / "tiny-llama"), "--medusa_model_dir", str(models / "tiny-llama-medusa")]
    convert_medusa([*directories, "--output_dir", str(tmp_path / "checkpoint"), "--num_medusa_heads", "2"], gpus)
    paths = ["--checkpoint_dir", str(tmp_path / "checkpoint"), "--output_dir", str(tmp_path / "engine")]
    trtllm_build([*paths, "--speculative_decoding_mode", "medusa"], gpus)
    with pytest.raises(EngineError, match="4 levels, the engine has 2"):
        executor(tmp_path / "engine", DecodingParameters())


def test_an_eagle_engine_is_not_moved_by_the_decoding_mode(eagle_engine: Path, plain: EngineRequest) -> None:
    assert executor(eagle_engine, DecodingParameters(mode="top_k")).run(plain).accepted > 0


@pytest.mark.parametrize(
    ("method", "mode", "warning"),
    [
        ("eagle", None, "Model is Eagle, but decoding mode is not Eagle. Overwriting decoding mode to Eagle."),
        ("medusa", "top_k", "Model is Medusa, but decoding mode is not Medusa. Overwriting decoding mode to Medusa."),
        ("medusa", "medusa", None),
    ],
)
def test_an_engines_own_mode_wins_with_a_warning(
    engines: dict[str, Path], method: str, mode: str | None, warning: str | None
) -> None:
    warnings = decoding_warnings(describe_engine(engines[method]), DecodingParameters(mode=mode))
    assert warnings == ((warning,) if warning else ())


def test_a_drafting_mode_on_a_plain_engine_is_only_warned_of(target_engine: Path, plain: EngineRequest) -> None:
    decoding = DecodingParameters(mode="medusa")
    warnings = decoding_warnings(describe_engine(target_engine), decoding)
    assert warnings == ("Model is not Medusa, but decoding mode is Medusa. Overwriting decoding mode.",)
    assert executor(target_engine, decoding).run(plain).drafted == 0


def test_a_lookahead_engine_without_its_sizes_does_not_load(lookahead_engine: Path) -> None:
    with pytest.raises(EngineError, match="no lookahead configuration is set"):
        executor(lookahead_engine, DecodingParameters())


def test_sizes_beyond_the_engines_draft_length_do_not_load(lookahead_engine: Path) -> None:
    with pytest.raises(EngineError, match=r"lookahead \(7, 7, 7\) needs max_draft_len 83, but .* with 15"):
        executor(lookahead_engine, replace(LOOKAHEAD, lookahead=LookaheadConfig(7, 7, 7)))


def test_a_request_may_ask_for_smaller_lookahead_sizes(lookahead_engine: Path, plain: EngineRequest) -> None:
    off = replace(plain, lookahead=LookaheadConfig(1, 1, 0))
    said = executor(lookahead_engine, LOOKAHEAD)
    assert (said.run(off).drafted, said.run(off).tokens) == (0, said.run(plain).tokens)


def test_a_request_for_larger_lookahead_sizes_is_refused(lookahead_engine: Path, plain: EngineRequest) -> None:
    with pytest.raises(RequestError, match="larger than the model instance's"):
        executor(lookahead_engine, LOOKAHEAD).run(replace(plain, lookahead=LookaheadConfig(5, 3, 4)))


def test_lookahead_sizes_to_another_engine_are_refused(medusa_engine: Path, plain: EngineRequest) -> None:
    with pytest.raises(RequestError, match="when model instance lookahead parameters are not set"):
        executor(medusa_engine, DecodingParameters()).run(replace(plain, lookahead=LookaheadConfig(2, 2, 1)))


@pytest.mark.parametrize("change", [{"draft_tokens": (7,)}, {"temperature": 0.5}])
def test_draft_tokens_and_sampling_are_refused(
    eagle_engine: Path, plain: EngineRequest, change: dict[str, object]
) -> None:
    with pytest.raises(RequestError, match="takes no draft_input_ids, and is simulated greedily only"):
        executor(eagle_engine, DecodingParameters()).run(replace(plain, **change))  # type: ignore[arg-type]  # by name
