"""Asking the API server what the operator may do, wherever it works, in few requests."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Final

from specdec_operator.cluster.errors import ApiError
from specdec_operator.cluster.permissions import lacking, permissions
from specdec_operator.cluster.resources import (
    SELF_SUBJECT_ACCESS_REVIEWS,
    SELF_SUBJECT_REVIEWS,
    SELF_SUBJECT_RULES_REVIEWS,
)
from specdec_operator.cluster.rights import NODE_LABELS, WATCHED, own

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from specdec_operator.api.configuration import OperatorConfiguration
    from specdec_operator.cluster.api import JsonObject, KubernetesApi
    from specdec_operator.cluster.permissions import Permission
    from specdec_operator.cluster.resources import ResourceType

AT_ONCE: Final = 16
"""Namespaces asked about in one look, of those that lack something and of the others: each comes in its turn."""
_EVERYWHERE: Final = "all.namespaces"
"""No namespace can be called so: the rules in it are those that hold in all."""

_log = logging.getLogger(__name__)


@dataclass(eq=False, kw_only=True)
class _Place:
    """Where permissions are needed, and which were missing when last asked.

    Attributes:
        namespace: One; empty for all of them.
        turn: The look that asked last; -1 before the first.
    """

    namespace: str
    needed: tuple[Permission, ...]
    missing: tuple[Permission, ...] = ()
    turn: int = -1


@dataclass(kw_only=True)
class RightsCheck:
    """What the operator lacks of the rights that it ships with.

    Args:
        api: The API server, through a client that is not fenced: questions change nothing.
    """

    api: KubernetesApi
    configuration: OperatorConfiguration
    _turn: int = 0
    _account: str = ""
    _own: _Place = field(init=False)
    _watched: list[_Place] = field(init=False)

    def __post_init__(self) -> None:
        namespace, _, name = self.configuration.instance.partition("/")
        self._own = _Place(namespace=namespace, needed=permissions(own(name), namespace=namespace))
        watched = (*WATCHED, *NODE_LABELS) if self.configuration.reads_nodes else WATCHED
        self._watched = [
            _Place(namespace=each, needed=permissions(watched, namespace=each))
            for each in self.configuration.namespaces or [""]
        ]

    @property
    def missing(self) -> tuple[Permission, ...]:
        """What was missing everywhere when last asked."""
        return tuple(chain(self._own.missing, *(place.missing for place in self._watched)))

    @property
    def can_lead(self) -> bool:
        """Whether the operator's own Lease may be kept, as far as is known."""
        return not self._own.missing

    async def look(self) -> None:
        """Ask again: everywhere at first, then about some places at a time. What is not told stays as it was."""
        self._turn += 1
        for place in self._due():
            try:
                place.missing = await self._missing_in(place)
            except ApiError as error:
                if place.turn < 0:
                    _log.warning("the API server does not tell what the operator may do: %s", error)
            place.turn = self._turn

    async def account(self) -> str:
        """The operator's account as the API server knows it; empty if it does not tell."""
        if not self._account:
            try:
                review = await self._ask(SELF_SUBJECT_REVIEWS, {})
                self._account = str(review["status"]["userInfo"]["username"])
            except (ApiError, KeyError):
                return ""
        return self._account

    def _due(self) -> Sequence[_Place]:
        new = [place for place in self._watched if place.turn < 0]
        lacks = [place for place in self._watched if place.missing]
        others = [place for place in self._watched if not place.missing and place.turn >= 0]
        return [self._own, *new, *_longest_ago(lacks), *_longest_ago(others)]

    async def _missing_in(self, place: _Place) -> tuple[Permission, ...]:
        namespace = place.namespace or _EVERYWHERE
        status = (await self._ask(SELF_SUBJECT_RULES_REVIEWS, {"spec": {"namespace": namespace}}))["status"]
        missing = lacking(place.needed, status.get("resourceRules") or ())
        # An authorizer that can't list its rules may still allow what the listed ones do not.
        return tuple([p for p in missing if await self._denied(p)]) if status.get("incomplete") else missing

    async def _denied(self, permission: Permission) -> bool:
        asked = {"spec": {"resourceAttributes": permission.attributes()}}
        review = await self._ask(SELF_SUBJECT_ACCESS_REVIEWS, asked)
        return not review["status"].get("allowed")

    async def _ask(self, review: ResourceType, asked: JsonObject) -> JsonObject:
        head: JsonObject = {"apiVersion": review.api_version, "kind": review.kind, "metadata": {}}
        return await self.api.create(review, head | asked)


def _longest_ago(places: Iterable[_Place]) -> list[_Place]:
    return sorted(places, key=lambda place: place.turn)[:AT_ONCE]
