#!/usr/bin/python3
"""The simulator's convert_checkpoint.py of this method."""

import os
import sys

from testbed.runtime.simulator.convert_medusa import convert_medusa
from testbed.runtime.simulator.tool_log import run_tool

sys.exit(run_tool(convert_medusa, sys.argv[1:], os.environ))
