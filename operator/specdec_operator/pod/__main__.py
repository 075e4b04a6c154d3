"""Entry of every program: `python3 /specdec/program PROGRAM INPUT`.

A directory that Python is given to run is where it imports from, so no PYTHONPATH is needed, and the server that
`launch` becomes inherits none.
"""

import runpy
import sys

if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("give the program's name and the path of its input file")
    runpy.run_module(f"specdec_operator.pod.{sys.argv.pop(1)}", run_name="__main__", alter_sys=True)
