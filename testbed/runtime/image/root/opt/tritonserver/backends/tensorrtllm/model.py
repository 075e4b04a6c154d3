"""The simulator's engine backend."""  # noqa: INP001 - Triton loads this file by its path

from testbed.runtime.simulator.triton_models.engine_backend import TritonPythonModel

__all__ = ["TritonPythonModel"]
