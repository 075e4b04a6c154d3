"""A refusal: why a spec or a pair can't be served, where, and what to do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """One thing that is wrong.

    Attributes:
        reason: A fixed CamelCase word, the reason of a condition.
        path: The field that it is about, such as `spec.runtime.release`.
        message: What is wrong and what to do.
    """

    reason: str
    path: str
    message: str

    def __str__(self) -> str:
        """Path and message in one line."""
        return f"{self.path}: {self.message}"


class Refused(Exception):  # noqa: N818 - it is the answer, not a defect of the program
    """A spec or a pair can't be served.

    Attributes:
        refusals: Everything that is wrong, at least one.
    """

    def __init__(self, refusals: tuple[Refusal, ...]) -> None:
        super().__init__("; ".join(str(refusal) for refusal in refusals))
        self.refusals = refusals
