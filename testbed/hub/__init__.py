"""A small model hub on loopback, and the tiny models that it serves."""
