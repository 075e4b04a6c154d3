#!/usr/bin/python3
"""The simulator's convert_checkpoint.py of the Llama family."""

import os
import sys

from testbed.runtime.simulator.convert_checkpoint import convert_checkpoint
from testbed.runtime.simulator.tool_log import run_tool

sys.exit(run_tool(convert_checkpoint, sys.argv[1:], os.environ))
