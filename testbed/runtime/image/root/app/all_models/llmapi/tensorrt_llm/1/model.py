"""The simulator's LLM API model."""  # noqa: INP001 - Triton loads this file by its path

from testbed.runtime.simulator.triton_models.llm_api import TritonPythonModel

__all__ = ["TritonPythonModel"]
