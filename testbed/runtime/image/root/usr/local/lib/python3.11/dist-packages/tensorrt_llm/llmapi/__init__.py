"""The LLM API's argument classes, to be read."""
