"""What is known of a GPU product by its name."""

from __future__ import annotations

import functools
import re
from importlib import resources
from typing import Annotated

from pydantic import Field

from specdec_operator.api.model import ApiModel
from specdec_operator.api.yaml_text import read_yaml

Capability = tuple[int, int]


class _Gpus(ApiModel):
    gpus: dict[str, Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]+$")]]


def capability(text: str) -> Capability:
    """A compute capability, as in `8.9`, in an order that compares."""
    major, minor = text.split(".")
    return int(major), int(minor)


def compute_capability(product: str) -> Capability | None:
    """The compute capability of a product label, of a shared or MIG device too; None if the product is not known."""
    name = re.sub(r"^(NVIDIA-|Tesla-)+", "", product)
    known = [known for known in _known() if name == known or name.startswith(f"{known}-")]
    return _known()[max(known, key=len)] if known else None


@functools.cache
def _known() -> dict[str, Capability]:
    text = resources.files("specdec_operator.runtimes").joinpath("gpus.yaml").read_text(encoding="utf-8")
    return {name: capability(found) for name, found in _Gpus.model_validate(read_yaml(text)).gpus.items()}
