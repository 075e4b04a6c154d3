"""The simulator's preprocessing."""  # noqa: INP001 - Triton loads this file by its path

from testbed.runtime.simulator.triton_models.preprocessing import TritonPythonModel

__all__ = ["TritonPythonModel"]
