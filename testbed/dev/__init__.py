"""The operator as a process of this machine that restarts when its code changes: `python -m testbed.dev`."""
