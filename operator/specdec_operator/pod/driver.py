"""Which NVIDIA drivers run an image, and on which GPUs."""

import re
from dataclasses import dataclass
from typing import Final

from specdec_operator.pod.document import Document

_NOT_DATA_CENTER = re.compile(r"GeForce|GTX|RTX|Quadro|TITAN|\bT[0-9]{3,4}\b|GB10\b|Jetson|Orin|Thor", re.IGNORECASE)
_SERVER = re.compile(r"Server[- ]Edition", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class DriverFloor(Document):
    """The NVIDIA drivers that run an image.

    Attributes:
        minimum: the oldest driver that runs it on any GPU; empty accepts any.
        data_center: the oldest driver of each older branch that runs it on data-centre GPUs, by CUDA's forward
            compatibility.
        source: who says so.
    """

    minimum: str = ""
    data_center: tuple[str, ...] = ()
    source: str = ""


ANY_DRIVER: Final = DriverFloor()


def is_data_center(product: str) -> bool:
    """Whether a product, by its name or label, is a data-centre GPU; so is one that is not known.

    CUDA's forward compatibility is for those, and for some servers with RTX cards that no name tells apart.
    """
    return bool(_SERVER.search(product)) or not _NOT_DATA_CENTER.search(product)


def driver_trouble(floor: DriverFloor, *, driver: str, product: str) -> str:
    """Why a driver does not run an image on a GPU; empty if it does, or if that is not known.

    Args:
        product: the GPU's name or label; empty if it is not known.
    """
    found = _version(driver)
    if not found or not floor.minimum or found >= _version(floor.minimum):
        return ""
    data_center = is_data_center(product)
    if data_center and any(_is_of_branch(found, _version(oldest)) for oldest in floor.data_center):
        return ""
    wanted = needed(floor, data_center=data_center)
    kind = "a data-centre GPU" if data_center else "not a data-centre GPU"
    return f"driver {driver} is too old: {product or 'the GPU'}, {kind}, needs {wanted} (source: {floor.source})"


def needed(floor: DriverFloor, *, data_center: bool) -> str:
    """The drivers that run an image on a kind of GPU, in words."""
    older = [oldest for oldest in floor.data_center if _version(oldest) < _version(floor.minimum)]
    if not older or not data_center:
        return f"{floor.minimum} or newer"
    branches = ", ".join(f"{oldest} or newer of R{_version(oldest)[0]}" for oldest in older)
    return f"{floor.minimum} or newer, or {branches}"


def _is_of_branch(found: tuple[int, ...], oldest: tuple[int, ...]) -> bool:
    return found[:1] == oldest[:1] and found >= oldest


def _version(text: str) -> tuple[int, ...]:
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    while numbers and numbers[-1] == 0:  # 590.44 and 590.44.0 are the same
        numbers.pop()
    return tuple(numbers)
