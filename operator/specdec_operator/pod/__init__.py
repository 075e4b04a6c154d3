"""Programs that run inside the pods, shipped by ConfigMap. Standard library only; Python 3.10 and newer."""
