from __future__ import annotations

from typing import Any

import pytest

from specdec_operator.planning.admission import refusals
from specdec_operator.runtimes.table import load_table
from tests.unit.specs import BASELINE, CONFIGURATION, EAGLE3, PRODUCT, TABLE, model

ENGINE = {"gpu": {"product": PRODUCT}}


def said(spec: dict[str, Any], **changes: Any) -> list[tuple[str, str, str]]:
    found = refusals(model(spec, **changes), table=TABLE, configuration=CONFIGURATION)
    return [(refusal.reason, refusal.path, refusal.message) for refusal in found]


@pytest.mark.parametrize(
    ("backend", "speculation", "path", "remedy"),
    [
        (
            "VLLM",
            {"method": "Eagle", "eagle": {"layers": 3}},
            "eagle.layers",
            "engines are built for a tree, and this backend drafts a chain: give speculation.maxDraftTokens instead",
        ),
        (
            "VLLM",
            {"method": "Eagle", "eagle": {"maxNonLeavesPerLayer": 3}},
            "eagle.maxNonLeavesPerLayer",
            "engines are built for a tree, and this backend drafts a chain: give speculation.maxDraftTokens instead",
        ),
        (
            "VLLM",
            {"method": "Medusa", "medusa": {"heads": 3}},
            "medusa.heads",
            "as many heads are taken as speculation.maxDraftTokens says: give that instead",
        ),
        (
            "LLMAPI",
            {"method": "DraftTarget", "draftTarget": {"logitsTransfer": "Fast"}},
            "draftTarget.logitsTransfer",
            "draft and target share one process there: remove it, or set runtime.backend to TensorRTEngine",
        ),
        (
            "LLMAPI",
            {"method": "NGram", "nGram": {"minMatchingLength": 2}},
            "nGram.minMatchingLength",
            "every length up to maxMatchingLength is looked up there: remove it, or set runtime.backend to VLLM",
        ),
    ],
)
def test_an_option_of_a_method_that_the_backend_would_ignore_is_refused(
    backend: str, speculation: dict[str, Any], path: str, remedy: str
) -> None:
    spec = BASELINE if speculation["method"] == "NGram" else EAGLE3

    assert said(spec, runtime={"backend": backend}, speculation=speculation) == [
        ("OptionNotOnBackend", f"spec.speculation.{path}", f"{backend} has no such option: {remedy}")
    ]


@pytest.mark.parametrize(
    ("backend", "speculation"),
    [
        ("VLLM", {"method": "NGram", "nGram": {"minMatchingLength": 2, "maxMatchingLength": 4}}),
        ("LLMAPI", {"method": "NGram", "nGram": {"maxMatchingLength": 4}}),
        ("TensorRTEngine", {"method": "Eagle", "eagle": {"layers": 4, "maxNonLeavesPerLayer": 10}}),
        ("TensorRTEngine", {"method": "DraftTarget", "draftTarget": {"logitsTransfer": "Fast"}}),
    ],
)
def test_an_option_of_a_method_is_admitted_where_it_counts(backend: str, speculation: dict[str, Any]) -> None:
    spec = BASELINE if speculation["method"] == "NGram" else EAGLE3

    assert said(spec, runtime={"backend": backend}, speculation=speculation, placement=ENGINE) == []


@pytest.mark.parametrize("backend", ["LLMAPI", "VLLM"])
@pytest.mark.parametrize(
    ("parallelism", "fields"),
    [({"tensor": 2}, ["tensor"]), ({"tensor": 3}, ["tensor"]), ({"tensor": 4}, []), ({"pipeline": 2}, ["pipeline"])],
)
def test_a_draft_model_without_devices_of_its_own_is_split_like_its_target_or_not_at_all(
    backend: str, parallelism: dict[str, int], fields: list[str]
) -> None:
    found = said(
        EAGLE3,
        runtime={"backend": backend},
        speculation={"method": "DraftTarget"},
        target__parallelism={"tensor": 4},
        draft__parallelism=parallelism,
    )

    assert found == [
        (
            "OptionNotOnBackend",
            f"spec.draft.parallelism.{field}",
            f"{backend} splits a draft model like its target or not at all: leave draft.parallelism out",
        )
        for field in fields
    ]


@pytest.mark.parametrize(
    ("spec", "changes", "reason", "message"),
    [
        (
            EAGLE3,
            {"runtime": {"backend": "LLMAPI"}},
            "OptionNotOnBackend",
            (
                "LLMAPI has no such option, Triton's OpenAI front end does not know the LLM API's inputs: remove it "
                "and use Triton's own protocol, or set runtime.backend to VLLM where the method allows it"
            ),
        ),
        (
            EAGLE3,
            {"runtime": {"backend": "TensorRTEngine"}, "speculation": {"method": "DraftTarget"}},
            "OptionContradiction",
            (
                "the front end sends no num_draft_tokens, so that nothing would be drafted: remove it and use "
                "Triton's own protocol, or set runtime.backend to VLLM"
            ),
        ),
        (
            BASELINE,
            {"runtime": {"backend": "TensorRTEngine"}, "target__parallelism": {"tensor": 2}},
            "OptionContradiction",
            (
                "the front end takes the place of a server of one process, and an engine on 2 GPUs needs 2: remove "
                "it, or set target.parallelism to 1"
            ),
        ),
    ],
    ids=["llm-api", "draft-target", "two-ranks"],
)
def test_the_openai_front_end_is_refused_where_it_would_not_draft_or_not_serve(
    spec: dict[str, Any], changes: dict[str, Any], reason: str, message: str
) -> None:
    found = said(spec, serving={"openAIFrontEnd": {}}, placement=ENGINE, **changes)

    assert found == [(reason, "spec.serving.openAIFrontEnd", message)]


@pytest.mark.parametrize(
    ("backend", "tensor"), [("VLLM", 1), ("VLLM", 4), ("TensorRTEngine", 1)], ids=["vllm", "vllm-four", "engine"]
)
def test_the_openai_front_end_is_admitted_where_it_serves(backend: str, tensor: int) -> None:
    changes = {"runtime": {"backend": backend}, "target__parallelism": {"tensor": tensor}, "placement": ENGINE}

    assert said(BASELINE, serving={"openAIFrontEnd": {}}, **changes) == []


@pytest.mark.parametrize(("release", "tokens"), [("25.07", 16), ("25.07", None), ("25.08", 512)])
def test_answers_of_another_length_are_admitted_where_the_front_end_has_the_option(
    release: str, tokens: int | None
) -> None:
    options = {} if tokens is None else {"defaultMaxTokens": tokens}
    changes = {"runtime": {"backend": "VLLM", "release": release}, "serving": {"openAIFrontEnd": options}}

    assert said(BASELINE, **changes) == []


def test_a_front_end_before_25_08_has_one_length_of_answers() -> None:
    runtime = {"backend": "VLLM", "release": "25.07"}
    assert said(BASELINE, runtime=runtime, serving={"openAIFrontEnd": {"defaultMaxTokens": 512}}) == [
        (
            "OptionNotInRelease",
            "spec.serving.openAIFrontEnd.defaultMaxTokens",
            (
                "the OpenAI front end of 25.07 always takes 16 and has no option for it: leave it out, let requests "
                "give max_tokens, or name 25.08 or newer in runtime.release"
            ),
        )
    ]


def test_vllm_before_0_28_speculates_in_one_pipeline_stage() -> None:
    assert said(EAGLE3, runtime={"backend": "VLLM"}, target__parallelism={"pipeline": 2}) == [
        (
            "PipelineNotSupported",
            "spec.target.parallelism.pipeline",
            (
                "vLLM 0.27.1 of 26.08 speculates in one pipeline stage, 0.28 and newer in several: set pipeline to 1 "
                "and raise tensor instead"
            ),
        )
    ]


def test_vllm_from_0_28_speculates_in_several_pipeline_stages() -> None:
    own = {"image": "registry.example.com/vllm:1", "version": "0.28.0", "methods": ["Eagle3"]}
    table = load_table([{"name": "27.01", "VLLM": own, "source": "a test"}])
    made = model(EAGLE3, runtime={"backend": "VLLM", "release": "27.01"}, target__parallelism={"pipeline": 2})

    assert refusals(made, table=table, configuration=CONFIGURATION) == ()


def test_vllm_serves_a_baseline_in_several_pipeline_stages() -> None:
    assert said(BASELINE, runtime={"backend": "VLLM"}, target__parallelism={"pipeline": 2}) == []


@pytest.mark.parametrize(("window", "length", "verified"), [(1, 1, 0), (7, 1, 7), (1, 1, 7), (1, 2, 0)])
def test_lookahead_that_drafts_nothing_is_refused(window: int, length: int, verified: int) -> None:
    options = {"windowSize": window, "nGramSize": length, "verificationSetSize": verified}
    message = (
        f"windowSize {window}, nGramSize {length} and verificationSetSize {verified} leave nothing to draft: set "
        "nGramSize to 2 or more with windowSize 2 or verificationSetSize 1, leave lookahead out, or use the method None"
    )

    assert said(BASELINE, speculation={"method": "Lookahead", "lookahead": options}, placement=ENGINE) == [
        ("OptionContradiction", "spec.speculation.lookahead", message)
    ]


@pytest.mark.parametrize(("window", "length", "verified"), [(2, 2, 0), (1, 2, 1), (1, 3, 0), (2, 2, 1)])
def test_the_smallest_lookahead_is_served(window: int, length: int, verified: int) -> None:
    options = {"windowSize": window, "nGramSize": length, "verificationSetSize": verified}

    assert said(BASELINE, speculation={"method": "Lookahead", "lookahead": options}, placement=ENGINE) == []


def test_the_front_end_takes_no_accumulated_tokens() -> None:
    serving = {"openAIFrontEnd": {}, "streaming": True, "accumulateTokens": True}

    assert said(BASELINE, runtime={"backend": "TensorRTEngine"}, placement=ENGINE, serving=serving) == [
        (
            "OptionContradiction",
            "spec.serving.openAIFrontEnd",
            "the front end sends each piece on as new text, and accumulateTokens repeats the old: remove one",
        )
    ]
