"""Conditions of one reconcile, laid over those of the last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from specdec_operator.api.v1alpha1.status import Condition, ConditionType

if TYPE_CHECKING:
    from collections.abc import Iterable

ORDER: tuple[ConditionType, ...] = get_args(ConditionType)
"""The way to serving, as the API lists it."""
WAY: tuple[ConditionType, ...] = tuple(
    kind for kind in ORDER if kind not in ("PairEffective", "Reconciling", "Stalled")
)
"""Conditions that are always there; the others only where or while they mean something."""

MESSAGE_LIMIT = 2048
"""Characters of a message that the API takes."""


def shortened(text: str, limit: int = MESSAGE_LIMIT) -> str:
    """A text that fits: the cause stands at its beginning and the remedy at its end, so its middle goes."""
    if len(text) <= limit:
        return text
    gap = " [...] "
    head = (limit - len(gap)) // 2
    return f"{text[:head]}{gap}{text[len(text) - (limit - len(gap) - head) :]}"


class Conditions:
    """The conditions that a reconcile found.

    Those it did not come to are Unknown: what an earlier generation had is not claimed for this one.
    """

    def __init__(self, previous: Iterable[Condition], *, generation: int, now: str) -> None:
        self._previous = {condition.type: condition for condition in previous}
        self._generation = generation
        self._now = now
        self._found: dict[ConditionType, Condition] = {}

    def set(self, kind: ConditionType, status: Literal["True", "False", "Unknown"], reason: str, message: str) -> None:
        """Note a condition; the transition time moves only when the status does."""
        before = self._previous.get(kind)
        since = before.last_transition_time if before and before.status == status else self._now
        self._found[kind] = Condition(
            type=kind,
            status=status,
            reason=reason,
            message=shortened(message),
            last_transition_time=since,
            observed_generation=self._generation,
        )

    def get(self, kind: ConditionType) -> Condition | None:
        """A condition of this reconcile."""
        return self._found.get(kind)

    def holds(self, kind: ConditionType) -> bool:
        """Whether a condition was found True."""
        found = self._found.get(kind)
        return found is not None and found.status == "True"

    def in_order(self) -> list[Condition]:
        """All conditions in the order of the way to serving; PairEffective, Reconciling and Stalled only as found."""
        for kind in WAY:
            if kind not in self._found:
                self.set(kind, "Unknown", "Waiting", "waits for the conditions before it")
        return [self._found[kind] for kind in ORDER if kind in self._found]

    def changed(self) -> list[Condition]:
        """Those whose status or reason differs from the last reconcile's."""
        return [condition for condition in self.in_order() if self._differs(condition)]

    def _differs(self, condition: Condition) -> bool:
        before = self._previous.get(condition.type)
        return before is None or (before.status, before.reason) != (condition.status, condition.reason)
