"""Why a reconcile can't go on yet: the reason and message of a condition, and when to look again."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.status import ConditionType


class Halt(Exception):  # noqa: N818 - waiting is no defect
    """The way to serving stops here.

    Attributes:
        condition: The condition that does not hold.
        reason: A fixed CamelCase word.
        message: What is wrong, where, and what to do; or what is being waited for.
        terminal: Whether only a change by somebody can help.
        requeue_after: Seconds after which to look again though no event came; None waits for events.
    """

    def __init__(
        self,
        condition: ConditionType,
        reason: str,
        message: str,
        *,
        terminal: bool = False,
        requeue_after: float | None = None,
    ) -> None:
        super().__init__(f"{reason}: {message}")
        self.condition: ConditionType = condition
        self.reason = reason
        self.message = message
        self.terminal = terminal
        self.requeue_after = requeue_after
