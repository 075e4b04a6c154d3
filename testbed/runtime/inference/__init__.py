"""Tiny Llama models in numpy: they really run, and they really speculate.

Written for CPU tests: bit-for-bit repeatable answers and true counts matter here, speed does not.
"""
