"""The API server behind one narrow protocol, and what it takes to write to it safely."""
