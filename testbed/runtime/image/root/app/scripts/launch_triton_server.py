#!/usr/bin/python3
"""The simulator's launch_triton_server.py."""

import sys

from testbed.runtime.simulator.launch_triton_server import main

main(sys.argv[1:])
