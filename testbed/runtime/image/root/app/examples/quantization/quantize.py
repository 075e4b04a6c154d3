#!/usr/bin/python3
"""The simulator's quantize.py."""

import os
import sys

from testbed.runtime.simulator.quantize import quantize
from testbed.runtime.simulator.tool_log import run_tool

sys.exit(run_tool(quantize, sys.argv[1:], os.environ))
