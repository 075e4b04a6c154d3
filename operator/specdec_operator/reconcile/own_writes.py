"""Which states of an object this process wrote itself: nothing is to be learned from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specdec_operator.cluster.apply import Applied


class OwnWrites:
    """The last status that was written to each object.

    A status is written on condition that the object is as the run read it. So whoever sees the version that the write
    made sees nothing that the run has not seen; a version that anybody else made is another one.
    """

    def __init__(self) -> None:
        self._versions: dict[str, str] = {}

    def note(self, applied: Applied) -> None:
        """A status was ensured."""
        if applied.changed:
            metadata = applied.object["metadata"]
            self._versions[metadata["uid"]] = metadata["resourceVersion"]

    def made(self, metadata: Mapping[str, Any]) -> bool:
        """Whether an object with this metadata is as this process wrote it."""
        version: str = metadata["resourceVersion"]
        return self._versions.get(metadata["uid"]) == version

    def forget(self, metadata: Mapping[str, Any]) -> None:
        """An object is gone."""
        self._versions.pop(metadata["uid"], None)
