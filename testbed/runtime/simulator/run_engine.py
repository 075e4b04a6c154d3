"""The stand-in of examples/run.py: one prompt through an engine directory."""

from __future__ import annotations

import argparse
import ast
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.runtime.inference.errors import InferenceError
from testbed.runtime.inference.lookahead import LookaheadConfig
from testbed.runtime.inference.tokenizer import TextTokenizer
from testbed.runtime.simulator.engine import describe_engine
from testbed.runtime.simulator.engine_drafters import load_with_drafter
from testbed.runtime.simulator.errors import EngineError
from testbed.runtime.simulator.executor import EngineExecutor, EngineRequest
from testbed.runtime.simulator.gpus import require_gpus
from testbed.runtime.simulator.parameters_decoding import DecodingParameters
from testbed.runtime.simulator.tool_log import say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def run_engine(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Generate greedily, with the engine's own draft where it has one, and print answers in the original's form.

    Raises:
        NoGPUError: no GPU is visible.
        EngineError: the engine or tokenizer can't be loaded, or a tree or lookahead sizes don't fit it.
        RequestError: the prompt is too long for the engine.
    """
    chosen = _parser().parse_args(arguments)
    gpu = require_gpus(environment, program="run.py")[0]
    engine = describe_engine(chosen.engine_dir)
    try:
        loaded = load_with_drafter(engine, _decoding(chosen), gpu=gpu.product)
        tokenizer = TextTokenizer.load(chosen.tokenizer_dir)
    except InferenceError as problem:
        raise EngineError(str(problem)) from problem
    executor = EngineExecutor(loaded, engine.limits)
    end_id = tokenizer.end_id if chosen.end_id is None else chosen.end_id
    for text in chosen.input_text:
        tokens = tuple(tokenizer.encode(text))
        answer = executor.run(EngineRequest(tokens=tokens, max_tokens=chosen.max_output_len, end_id=end_id))
        print(f'Input [Text 0]: "{text}"')
        print(f'Output [Text 0 Beam 0]: "{tokenizer.decode(answer.tokens)}"', flush=True)
        say(f"drafted={answer.drafted} accepted={answer.accepted} guessed={answer.guessed} passes={answer.passes}")


def _decoding(chosen: argparse.Namespace) -> DecodingParameters:
    sizes = chosen.lookahead_config
    return DecodingParameters(
        medusa_choices=chosen.medusa_choices,
        eagle_choices=chosen.eagle_choices,
        lookahead=None if sizes is None else LookaheadConfig(*sizes),
    )


def _nodes(text: str) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(rank) for rank in node) for node in ast.literal_eval(text))


def _sizes(text: str) -> tuple[int, ...]:
    window, ngram, verification_set = (int(size) for size in ast.literal_eval(text))
    return window, ngram, verification_set


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="run.py", allow_abbrev=False)
    parser.add_argument("--engine_dir", type=Path, default=Path("engine_outputs"))
    parser.add_argument("--tokenizer_dir", type=Path, required=True)
    parser.add_argument("--max_output_len", type=int, required=True)
    parser.add_argument("--input_text", nargs="+", default=["Born in north-east France, Soyer trained as a"])
    parser.add_argument("--end_id", type=int)
    parser.add_argument("--pad_id", type=int)
    parser.add_argument("--max_input_length", type=int, default=923)
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--top_k", type=int, default=1)
    parser.add_argument("--log_level", default="warning")
    parser.add_argument("--medusa_choices", type=_nodes)
    parser.add_argument("--eagle_choices", type=_nodes)
    parser.add_argument("--lookahead_config", type=_sizes)
    return parser
