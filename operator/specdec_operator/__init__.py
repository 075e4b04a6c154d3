"""A Kubernetes operator for speculative decoding on Triton Inference Server."""
