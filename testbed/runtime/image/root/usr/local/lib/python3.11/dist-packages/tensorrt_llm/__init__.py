"""The place of tensorrt_llm in the simulator image: it can be read, and imported where a simulated GPU is visible."""

import os

from tensorrt_llm.version import __version__
from testbed.runtime.simulator.gpus import visible_gpus

__all__ = ["__version__"]

if not visible_gpus(os.environ):
    raise ImportError("libcuda.so.1: cannot open shared object file: No such file or directory")
