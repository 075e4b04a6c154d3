"""The simulator's BLS model."""  # noqa: INP001 - Triton loads this file by its path

from testbed.runtime.simulator.triton_models.bls import TritonPythonModel

__all__ = ["TritonPythonModel"]
