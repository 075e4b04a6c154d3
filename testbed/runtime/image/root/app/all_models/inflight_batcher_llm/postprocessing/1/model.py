"""The simulator's postprocessing."""  # noqa: INP001 - Triton loads this file by its path

from testbed.runtime.simulator.triton_models.postprocessing import TritonPythonModel

__all__ = ["TritonPythonModel"]
