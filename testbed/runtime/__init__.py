"""The simulator: what stands in for the GPU runtimes inside a real Triton server."""
