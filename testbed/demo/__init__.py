"""The example models taken to served answers on this machine, to be watched: `python -m testbed.demo`."""
