from __future__ import annotations

from typing import Any

import pytest

from specdec_operator.planning.build_arguments import build_argument_refusals
from tests.unit.engine_specs import EAGLE
from tests.unit.specs import BASELINE_ENGINE, model


def refused(spec: dict[str, Any], **arguments: str) -> list[tuple[str, str, str]]:
    made = model(spec, engine={"extraBuildArguments": arguments})
    return [(r.reason, r.path, r.message) for r in build_argument_refusals(made.spec)]


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("max_batch_size", "spec.engine.maxBatchSize"),
        ("max_seq_len", "spec.engine.maxSequenceLength"),
        ("max_num_tokens", "spec.engine.maxBatchedTokens"),
        ("gemm_plugin", "spec.engine.dataType"),
        ("logits_dtype", "spec.engine.logitsDataType"),
        ("speculative_decoding_mode", "spec.speculation.method"),
        ("tp_size", "spec.target.parallelism.tensor"),
    ],
)
def test_an_option_that_a_field_decides_is_refused_with_the_field(name: str, field: str) -> None:
    assert refused(BASELINE_ENGINE, **{name: "1"}) == [
        (
            "BuildArgumentOwned",
            f"spec.engine.extraBuildArguments[{name}]",
            f"the operator sets --{name}: remove it, and use {field}",
        )
    ]


@pytest.mark.parametrize(
    "name",
    [
        "output_dir",
        "max_beam_width",
        "kv_cache_type",
        "model_cls_file",
        "lora_plugin",
        "help",
        "input_timing_cache",
        "output_timing_cache",
        "visualize_network",
    ],
)
def test_an_option_without_a_choice_is_refused(name: str) -> None:
    ((reason, path, message),) = refused(BASELINE_ENGINE, **{name: "x"})

    assert (reason, path) == ("BuildArgumentOwned", f"spec.engine.extraBuildArguments[{name}]")
    assert message.startswith(f"--{name} is the operator's: remove it (")


@pytest.mark.parametrize(
    ("name", "whole"), [("output_di", "output_dir"), ("max_batch", "max_batch_size"), ("h", "help")]
)
def test_the_beginning_of_an_option_that_is_the_operator_s_is_refused(name: str, whole: str) -> None:
    assert refused(BASELINE_ENGINE, **{name: "1"}) == [
        (
            "BuildArgumentOwned",
            f"spec.engine.extraBuildArguments[{name}]",
            f"--{name} may be read as --{whole}, which is the operator's: remove it",
        )
    ]


def test_context_logits_go_with_no_drafted_tokens() -> None:
    ((reason, _, message),) = refused(EAGLE, gather_context_logits="")

    assert reason == "BuildArgumentContradiction"
    assert message == (
        "--gather_context_logits can't be built together with drafted tokens: remove it, or use the method None"
    )


def test_a_baseline_may_gather_context_logits() -> None:
    assert refused(BASELINE_ENGINE, gather_context_logits="") == []


def test_every_other_option_is_taken() -> None:
    assert refused(EAGLE, multiple_profiles="enable", workers="2", gpt_attention_plugin="float16") == []


def test_each_option_is_named() -> None:
    assert [path for _, path, _ in refused(BASELINE_ENGINE, max_seq_len="1", dry_run="")] == [
        "spec.engine.extraBuildArguments[dry_run]",
        "spec.engine.extraBuildArguments[max_seq_len]",
    ]
