"""Versions of TensorRT-LLM and vLLM, compared by their numbers."""

from __future__ import annotations

import re


def at_least(version: str, wanted: str) -> bool:
    """Whether a version's numbers are not below the wanted ones; a release candidate counts as its release."""
    return numbers(version) >= numbers(wanted)


def numbers(version: str) -> tuple[int, int, int]:
    """A version's first three numbers, to sort by."""
    found = [int(number) for number in re.findall(r"[0-9]+", re.split(r"[a-z+-]", version, maxsplit=1)[0])]
    first, second, third, *_ = [*found, 0, 0, 0]
    return first, second, third
