"""The stand-in of examples/run.py: one prompt through an engine directory."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.runtime.inference.errors import InferenceError
from testbed.runtime.inference.speculation import generate
from testbed.runtime.inference.tokenizer import TextTokenizer
from testbed.runtime.simulator.engine import describe_engine, load_engine
from testbed.runtime.simulator.errors import EngineError
from testbed.runtime.simulator.gpus import require_gpus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def run_engine(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Generate greedily and print prompt and answer in the original's form.

    Raises:
        NoGPUError: no GPU is visible.
        EngineError: the engine or tokenizer can't be loaded, or the prompt is too long for it.
    """
    chosen = _parser().parse_args(arguments)
    gpu = require_gpus(environment, program="run.py")[0]
    engine = describe_engine(chosen.engine_dir)
    model = load_engine(engine, gpu=gpu.product)
    try:
        tokenizer = TextTokenizer.load(chosen.tokenizer_dir)
        end_id = tokenizer.end_id if chosen.end_id is None else chosen.end_id
        for text in chosen.input_text:
            tokens = tokenizer.encode(text)
            answer = generate(model, tokens, max_tokens=chosen.max_output_len, end_id=end_id)
            print(f'Input [Text 0]: "{text}"')
            print(f'Output [Text 0 Beam 0]: "{tokenizer.decode(answer.tokens)}"', flush=True)
    except InferenceError as problem:
        raise EngineError(str(problem)) from problem


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
    return parser
