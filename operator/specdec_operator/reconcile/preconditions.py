"""What must be there before and while the operator works: its rights, and CRDs of its own age. Told, never fatal.

Each process looks, the one that waits for the Lease too: a new pod that lacks something does not become ready, so that
a rollout stops with words, and the old pod goes on. A leader that comes to lack something works on where it can.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

from specdec_operator.cluster.errors import ApiError
from specdec_operator.cluster.permissions import missing_in_words
from specdec_operator.reconcile.definitions import outdated_in_words
from specdec_operator.reconcile.rounds import one_round

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from specdec_operator.cluster.permissions import Permission
    from specdec_operator.reconcile.definitions import Definitions
    from specdec_operator.reconcile.rights_check import RightsCheck

AT_REST_SECONDS: Final = 60.0
SOON_SECONDS: Final = 5.0

_log = logging.getLogger(__name__)


class Figures(Protocol):
    """What is missing, as metrics."""

    def permissions_missing(self, missing: Iterable[Permission]) -> None:
        """These permissions are missing, and no others."""

    def definitions_outdated(self, gaps: Mapping[str, tuple[str, ...]]) -> None:
        """The served kinds lack so much."""


class Preconditions:
    """Looks now and then, and soon after the API server forbade something.

    Args:
        missing_changed: Told a topic and why the operator is not ready for it; empty once it is.
    """

    def __init__(
        self,
        rights: RightsCheck,
        definitions: Definitions,
        *,
        figures: Figures,
        missing_changed: Callable[[str, str], None],
    ) -> None:
        self._rights = rights
        self._definitions = definitions
        self._figures = figures
        self._missing_changed = missing_changed
        self._told: dict[str, str] = {}
        self._troubled = False
        self._asked = asyncio.Event()
        self.recovered = asyncio.Event()
        """Set when something that was missing has come."""

    def look_soon(self) -> None:
        """The API server refused something: it may be for a right that was taken, or a CRD that was changed."""
        self._asked.set()

    async def until_electable(self, stop: asyncio.Event) -> None:
        """Return once the operator's own Lease may be kept, or when asked to stop."""
        await self.look()
        while not self._rights.can_lead and not stop.is_set():
            await _unless_set(stop, SOON_SECONDS)
            await self.look()

    async def run(self) -> None:
        """Look until cancelled; at most every few seconds, however often asked."""
        while True:
            await asyncio.sleep(SOON_SECONDS)
            if not self._troubled:
                await _unless_set(self._asked, AT_REST_SECONDS - SOON_SECONDS)
            self._asked.clear()
            await one_round(self.look, failed="what is missing can't be told")

    async def look(self) -> None:
        """Look once, and tell what has changed."""
        await self._rights.look()
        # An outage is no news about what is served.
        with suppress(ApiError):
            await self._definitions.look()
        missing, gaps = self._rights.missing, self._definitions.gaps
        self._figures.permissions_missing(missing)
        self._figures.definitions_outdated(gaps)
        account = await self._rights.account() if missing else ""
        required = [permission for permission in missing if not permission.optional]
        optional = [permission for permission in missing if permission.optional]
        self._troubled = bool(required or any(gaps.values()))
        self._tell("rights", missing_in_words(required, account=account))
        self._tell("optional rights", missing_in_words(optional, account=account), holds_up=False)
        self._tell("definitions", outdated_in_words(gaps))

    def _tell(self, topic: str, said: str, *, holds_up: bool = True) -> None:
        before = self._told.get(topic, "")
        if said == before:
            return
        self._told[topic] = said
        if holds_up:
            self._missing_changed(topic, said)
        if said:
            _log.warning("%s", said, extra={"missing": topic})
        else:
            _log.info("nothing is missing any more of the operator's %s", topic)
        if before:
            self.recovered.set()


async def _unless_set(event: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
