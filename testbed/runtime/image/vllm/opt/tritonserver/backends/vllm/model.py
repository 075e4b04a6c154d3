"""The simulator's vllm backend."""  # noqa: INP001 - Triton loads this file by its path

from testbed.runtime.simulator.triton_models.vllm_backend import TritonPythonModel

__all__ = ["TritonPythonModel"]
