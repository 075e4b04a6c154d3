"""The place of vllm in the simulator image: it says its version, and that is all."""

from importlib.metadata import version

__all__ = ["__version__"]

__version__ = version("vllm")
