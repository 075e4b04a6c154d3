"""The memory of a GPU product, by the name of its label."""

from __future__ import annotations

import functools
import re
from importlib import resources
from typing import Annotated

from pydantic import Field

from specdec_operator.api.model import ApiModel
from specdec_operator.api.yaml_text import read_yaml

_MEBIBYTE = 1024**2
_VENDOR = re.compile(r"^(?:NVIDIA-|Tesla-|Quadro-)+")
_PROFILE = re.compile(r"(?:^|[/-])mig-[0-9]+g\.([0-9]+)gb", re.IGNORECASE)
_NAMED = re.compile(r"-([0-9]+)GB(?:-|$)")
_USABLE_MEBIBYTES_OF_A_PROFILE = 970
"""A MIG device has a little less than its profile's name says, per gigabyte."""


class _Gpus(ApiModel):
    gpus: dict[str, Annotated[int, Field(ge=1024)]]


def memory_of(product: str, *, resource: str = "") -> int | None:
    """The memory of one GPU in bytes; None if neither the table nor the names tell it.

    Args:
        product: The label nvidia.com/gpu.product, of a shared or MIG device too.
        resource: The extended resource, which may name a MIG profile.
    """
    profile = _PROFILE.search(resource) or _PROFILE.search(product)
    if profile:
        return int(profile[1]) * _USABLE_MEBIBYTES_OF_A_PROFILE * _MEBIBYTE
    name = _VENDOR.sub("", product)
    known = [known for known in _known() if name == known or name.startswith(f"{known}-")]
    if known:
        return _known()[max(known, key=len)] * _MEBIBYTE
    named = _NAMED.search(product)
    return int(named[1]) * 1024 * _MEBIBYTE if named else None


@functools.cache
def _known() -> dict[str, int]:
    text = resources.files("specdec_operator.runtimes").joinpath("gpu_memory.yaml").read_text(encoding="utf-8")
    return dict(_Gpus.model_validate(read_yaml(text)).gpus)
