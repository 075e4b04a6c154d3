#!/usr/bin/python3
"""The simulator's OpenAI front end."""

import os
import sys

from testbed.runtime.simulator.openai_front_end import openai_front_end

if __name__ == "__main__":
    sys.exit(openai_front_end(sys.argv[1:], os.environ))
