"""The world outside the operator, for demo, tests and benchmarks; never shipped."""
