"""Leader election over a Lease: one writer at a time, also when a leader is cut off.

The Lease is changed by PUT with its resourceVersion, so of two that want it one gets a conflict. Nobody's wall clock is
trusted: a waiting process takes the Lease once it has seen no renewal for the Lease's duration *on its own monotonic
clock*, and a leader stops writing (``may_write``) when its last renewal *began* more than the renew deadline ago. The
deadline is shorter than the duration, so the old leader has stopped before a new one may start.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from specdec_operator.cluster.errors import (
    AlreadyExists,
    ClusterError,
    Conflict,
    LeadershipLost,
    NotFound,
    ServerUnavailable,
    TooManyRequests,
)
from specdec_operator.cluster.resources import LEASES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from specdec_operator.cluster.api import JsonObject, KubernetesApi

_PASSING = (ServerUnavailable, TooManyRequests, NotFound)
"""Answers that another attempt may not get, without anybody's doing."""
WAITING_JITTER = 1.2
RELEASE_SECONDS = 5.0
MICRO_TIME = "%Y-%m-%dT%H:%M:%S.%fZ"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LeaseSettings:
    """Which Lease, and how long.

    Attributes:
        namespace: of the Lease.
        name: of the Lease.
        identity: who takes it; different in each process, such as the pod's name and a random part.
        duration: seconds without a renewal after which others may take it; whole seconds.
        renew_deadline: seconds after the last renewal at which the leader stops writing.
        retry_period: seconds between attempts to take or renew it.
    """

    namespace: str
    name: str
    identity: str
    duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        if not self.duration > self.renew_deadline > self.retry_period > 0:
            raise ValueError(
                "lease times must shrink from duration over renew_deadline to retry_period, and be above 0; got "
                f"{self.duration}, {self.renew_deadline}, {self.retry_period}"
            )


@dataclass(frozen=True)
class _Sighting:
    """The Lease as last seen, and when it last changed by our own clock."""

    resource_version: str
    changed_at: float


def _unobserved(_leading: bool) -> None:  # noqa: FBT001 - a gauge's value
    return None


def _now() -> datetime:
    return datetime.now(UTC)


class LeaseElector:
    """Takes, renews and releases one Lease.

    Args:
        api: the API server, through a client that this elector does not fence.
        settings: which Lease, and how long.
        clock: seconds on a scale that only grows.
        now: time written into the Lease, for people to read.
        jitter: random numbers from 0 to 1.
        observe: told when this process becomes the leader or stops being it.
    """

    def __init__(
        self,
        api: KubernetesApi,
        settings: LeaseSettings,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = _now,
        jitter: Callable[[], float] = random.random,
        observe: Callable[[bool], None] = _unobserved,
    ) -> None:
        self._api = api
        self._settings = settings
        self._clock = clock
        self._now = now
        self._jitter = jitter
        self._observe = observe
        self._sighting: _Sighting | None = None
        self._renewed_at: float | None = None

    @property
    def is_leader(self) -> bool:
        """Whether this process holds the Lease, as far as it knows."""
        return self._renewed_at is not None

    def may_write(self) -> bool:
        """Whether a write may be started now."""
        if self._renewed_at is None:
            return False
        return self._clock() - self._renewed_at < self._settings.renew_deadline

    async def run(self, on_started: Callable[[], Awaitable[None]]) -> None:
        """Wait for the Lease, then run ``on_started`` while renewing it; release it at the end.

        Returns when ``on_started`` has returned. Cancelling stops it and releases the Lease.

        Raises:
            LeadershipLost: the Lease could not be renewed; ``on_started`` was cancelled.
        """
        await self._acquire()
        self._observe(True)  # noqa: FBT003 - a gauge's value
        _log.info("lease taken", extra=self._log_fields())
        try:
            await self._lead(on_started)
        finally:
            await self._release()
            self._observe(False)  # noqa: FBT003 - a gauge's value

    async def _acquire(self) -> None:
        period = self._settings.retry_period
        while not await self._attempt():  # noqa: ASYNC110 - what is waited for is on the server
            await asyncio.sleep(period * (1 + WAITING_JITTER * self._jitter()))

    async def _lead(self, on_started: Callable[[], Awaitable[None]]) -> None:
        work = asyncio.ensure_future(on_started())
        renewal = asyncio.create_task(self._renew_until_lost(), name="lease-renewal")
        try:
            await asyncio.wait({work, renewal}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (work, renewal):
                task.cancel()
            await asyncio.wait({work, renewal})
        if not work.cancelled():
            work.result()
        if not renewal.cancelled():
            renewal.result()
            raise LeadershipLost(f"lease {self._settings.namespace}/{self._settings.name} was not renewed in time")

    async def _renew_until_lost(self) -> None:
        while self.may_write():
            await asyncio.sleep(self._settings.retry_period)
            remaining = self._settings.renew_deadline - (self._clock() - (self._renewed_at or 0.0))
            try:
                async with asyncio.timeout(max(remaining, 0.0)):
                    await self._attempt()
            except TimeoutError:
                break
        self._renewed_at = None
        _log.error("lease lost", extra=self._log_fields())

    async def _attempt(self) -> bool:
        """Take or renew the Lease if that is possible now; whether it is ours then."""
        started = self._clock()
        try:
            ours = await self._take_or_renew()
        except (Conflict, AlreadyExists):
            # Somebody was faster; the next attempt sees who.
            return False
        except ClusterError as error:
            # For a leader only the deadline counts: a refusal can pass, as when roles are applied again.
            if not self.is_leader and not isinstance(error, _PASSING):
                raise
            _log.warning("lease not renewed or taken: %s", error, extra=self._log_fields())
            return False
        self._renewed_at = started if ours else None
        return ours

    async def _take_or_renew(self) -> bool:
        names = (self._settings.namespace, self._settings.name)
        try:
            lease = await self._api.get(LEASES, namespace=names[0], name=names[1])
        except NotFound:
            metadata = {"namespace": names[0], "name": names[1]}
            body = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata}
            await self._api.create(LEASES, body | {"spec": self._spec({})})
            return True
        if not self._is_free(lease):
            return False
        await self._api.replace(LEASES, lease | {"spec": self._spec(lease.get("spec") or {})})
        return True

    def _is_free(self, lease: JsonObject) -> bool:
        version = lease["metadata"]["resourceVersion"]
        if self._sighting is None or self._sighting.resource_version != version:
            self._sighting = _Sighting(version, self._clock())
        spec = lease.get("spec") or {}
        if spec.get("holderIdentity") in {None, "", self._settings.identity}:
            return True
        duration = float(spec.get("leaseDurationSeconds") or self._settings.duration)
        return self._clock() - self._sighting.changed_at >= duration

    def _spec(self, previous: JsonObject) -> JsonObject:
        now = self._now().strftime(MICRO_TIME)
        kept = previous.get("holderIdentity") == self._settings.identity
        transitions = int(previous.get("leaseTransitions") or 0)
        return {
            "holderIdentity": self._settings.identity,
            "leaseDurationSeconds": int(self._settings.duration),
            "acquireTime": previous.get("acquireTime", now) if kept else now,
            "renewTime": now,
            "leaseTransitions": transitions if kept or not previous else transitions + 1,
        }

    async def _release(self) -> None:
        """Give the Lease back, so that the next leader need not wait for its end."""
        if self._renewed_at is None:
            return
        self._renewed_at = None
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                await self._give_back()
        except (ClusterError, TimeoutError) as error:
            _log.warning("lease not released: %s", error, extra=self._log_fields())

    async def _give_back(self) -> None:
        lease = await self._api.get(LEASES, namespace=self._settings.namespace, name=self._settings.name)
        if lease["spec"].get("holderIdentity") != self._settings.identity:
            return
        spec = {**lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
        await self._api.replace(LEASES, lease | {"spec": spec})
        _log.info("lease released", extra=self._log_fields())

    def _log_fields(self) -> dict[str, str]:
        settings = self._settings
        return {"lease": f"{settings.namespace}/{settings.name}", "identity": settings.identity}
