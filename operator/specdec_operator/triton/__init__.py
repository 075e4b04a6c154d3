"""Talking to Triton through tritonclient, from where the operator runs."""
