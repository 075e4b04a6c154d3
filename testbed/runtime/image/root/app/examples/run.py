#!/usr/bin/python3
"""The simulator's run.py."""

import os
import sys

from testbed.runtime.simulator.run_engine import run_engine
from testbed.runtime.simulator.tool_log import run_tool

sys.exit(run_tool(run_engine, sys.argv[1:], os.environ))
