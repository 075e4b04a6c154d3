"""What is known of a GPU product by the name of its label: compute capability and memory."""

from __future__ import annotations

import functools
import re
from importlib import resources
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from specdec_operator.api.model import ApiModel
from specdec_operator.api.yaml_text import read_yaml

if TYPE_CHECKING:
    from collections.abc import Iterable

Capability = tuple[int, int]

_MEBIBYTE = 1024**2
_VENDOR = re.compile(r"^(?:NVIDIA-|Tesla-|Quadro-)+")
_PROFILE = re.compile(r"(?:^|[/-])mig-[0-9]+g\.([0-9]+)gb", re.IGNORECASE)
_NAMED = re.compile(r"-([0-9]+)GB(?:-|$)")
_USABLE_MEBIBYTES_OF_A_PROFILE = 970
"""A MIG device has a little less than its profile's name says, per gigabyte."""


class _Generation(ApiModel):
    name: str
    compute_capability: Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]+$")]
    products: dict[str, Annotated[int, Field(ge=1024)] | None]


class _Gpus(ApiModel):
    generations: list[_Generation]


def capability(text: str) -> Capability:
    """A compute capability, as in `8.9`, in an order that compares."""
    major, minor = text.split(".")
    return int(major), int(minor)


@functools.lru_cache(maxsize=256)
def compute_capability(product: str) -> Capability | None:
    """The compute capability of a product label, of a shared or MIG device too; None if the product is not known."""
    return _capabilities().get(_longest(product, _capabilities()))


@functools.lru_cache(maxsize=256)
def memory_of(product: str, *, resource: str = "") -> int | None:
    """The memory of one GPU in bytes; None if neither the table nor the names tell it.

    Args:
        product: The label nvidia.com/gpu.product, of a shared or MIG device too.
        resource: The extended resource, which may name a MIG profile.
    """
    profile = _PROFILE.search(resource) or _PROFILE.search(product)
    if profile:
        return int(profile[1]) * _USABLE_MEBIBYTES_OF_A_PROFILE * _MEBIBYTE
    known = _memories().get(_longest(product, _memories()))
    if known:
        return known * _MEBIBYTE
    named = _NAMED.search(product)
    return int(named[1]) * 1024 * _MEBIBYTE if named else None


def _longest(product: str, names: Iterable[str]) -> str:
    """The longest of the names that a product's begins with; empty if there is none."""
    name = _VENDOR.sub("", product)
    return max((known for known in names if name == known or name.startswith(f"{known}-")), key=len, default="")


@functools.cache
def _generations() -> tuple[_Generation, ...]:
    text = resources.files("specdec_operator.runtimes").joinpath("gpus.yaml").read_text(encoding="utf-8")
    return tuple(_Gpus.model_validate(read_yaml(text)).generations)


@functools.cache
def _capabilities() -> dict[str, Capability]:
    return {product: capability(found.compute_capability) for found in _generations() for product in found.products}


@functools.cache
def _memories() -> dict[str, int]:
    return {product: size for found in _generations() for product, size in found.products.items() if size}
