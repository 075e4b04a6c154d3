"""Events for people: deduplicated, counted, limited, and never in the way of a reconcile."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from specdec_operator.cluster.errors import ClusterError, NotFound
from specdec_operator.cluster.resources import EVENTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from specdec_operator.cluster.api import JsonObject, KubernetesApi

NOTE_BYTES = 1024
INSTANCE_BYTES = 128
NAME_CHARACTERS = 230
REMEMBERED = 2048
MICRO_TIME = "%Y-%m-%dT%H:%M:%S.%fZ"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class EventLimits:
    """How many writes an object's Events may cost.

    Attributes:
        burst: Events of one object at once.
        refill: seconds until one more is allowed.
        series_interval: least seconds between two writes of one Event's count.
    """

    burst: int = 20
    refill: float = 60.0
    series_interval: float = 300.0


@dataclass(frozen=True)
class _Text:
    """What an Event says."""

    kind: str
    reason: str
    action: str
    note: str


@dataclass(frozen=True)
class _Series:
    """One Event that was written, and how often it has happened since."""

    name: str
    count: int
    written_at: float


@dataclass(frozen=True)
class _Bucket:
    tokens: float
    filled_at: float


def _now() -> datetime:
    return datetime.now(UTC)


class EventRecorder:
    """Writes Events of ``events.k8s.io/v1``.

    The same Event of the same object is written once; repetitions are counted, and the count is written now and then.

    Args:
        api: the API server.
        controller: name of the reporting controller, such as ``specdec.dev/operator``.
        instance: the reporting process, such as the pod's name.
        limits: how many writes an object's Events may cost.
        clock: seconds on a scale that only grows.
        now: time written into Events.
    """

    def __init__(
        self,
        api: KubernetesApi,
        *,
        controller: str,
        instance: str,
        limits: EventLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = _now,
    ) -> None:
        self._api = api
        self._controller = controller
        self._instance = _cut(instance, INSTANCE_BYTES)
        self._limits = limits or EventLimits()
        self._clock = clock
        self._now = now
        self._series: OrderedDict[tuple[str, _Text], _Series] = OrderedDict()
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    async def record(self, regarding: JsonObject, *, kind: str, reason: str, note: str, action: str) -> None:
        """Record that something happened to an object; a failure is logged and forgotten.

        Args:
            regarding: the object as the API server returned it.
            kind: ``Normal`` or ``Warning``.
            reason: what happened, a fixed CamelCase word.
            note: a sentence for people; cut at 1,024 bytes, as the API server counts.
            action: what was being done, a fixed CamelCase word.
        """
        try:
            await self._record(regarding, _Text(kind, reason, action, _cut(note, NOTE_BYTES)))
        except ClusterError as error:
            _log.warning("event not recorded: %s", error, extra={"reason": reason})

    async def _record(self, regarding: JsonObject, text: _Text) -> None:
        key = (regarding["metadata"]["uid"], text)
        known = self._series.get(key)
        if known is not None and await self._repeated(regarding, key, known):
            return
        if self._takes_token(key[0]):
            created = await self._api.create(EVENTS, self._body(regarding, text))
            self._remember(key, _Series(created["metadata"]["name"], count=1, written_at=self._clock()))

    async def _repeated(self, regarding: JsonObject, key: tuple[str, _Text], known: _Series) -> bool:
        """Count a repetition; False if the Event has expired on the server."""
        counted = replace(known, count=known.count + 1)
        if self._clock() - known.written_at < self._limits.series_interval:
            self._remember(key, counted)
            return True
        # Whatever becomes of the request, the next one waits its time.
        self._remember(key, replace(counted, written_at=self._clock()))
        series = {"count": counted.count, "lastObservedTime": self._now().strftime(MICRO_TIME)}
        namespace = regarding["metadata"]["namespace"]
        try:
            await self._api.patch_merge(EVENTS, namespace=namespace, name=known.name, patch={"series": series})
        except NotFound:
            del self._series[key]
            return False
        return True

    def _remember(self, key: tuple[str, _Text], series: _Series) -> None:
        self._series[key] = series
        self._series.move_to_end(key)
        while len(self._series) > REMEMBERED:
            self._series.popitem(last=False)

    def _takes_token(self, uid: str) -> bool:
        now = self._clock()
        bucket = self._buckets.pop(uid, _Bucket(tokens=self._limits.burst, filled_at=now))
        refilled = bucket.tokens + (now - bucket.filled_at) / self._limits.refill
        tokens = min(refilled, float(self._limits.burst))
        taken = tokens >= 1
        self._buckets[uid] = _Bucket(tokens=tokens - taken, filled_at=now)
        while len(self._buckets) > REMEMBERED:
            self._buckets.popitem(last=False)
        return taken

    def _body(self, regarding: JsonObject, text: _Text) -> JsonObject:
        metadata = regarding["metadata"]
        now = self._now()
        name = f"{metadata['name'][:NAME_CHARACTERS]}.{int(now.timestamp() * 1e6):x}"
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"namespace": metadata["namespace"], "name": name},
            "eventTime": now.strftime(MICRO_TIME),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "type": text.kind,
            "reason": text.reason,
            "action": text.action,
            "note": text.note,
            "regarding": {
                "apiVersion": regarding["apiVersion"],
                "kind": regarding["kind"],
                "namespace": metadata["namespace"],
                "name": metadata["name"],
                "uid": metadata["uid"],
                "resourceVersion": metadata["resourceVersion"],
            },
        }


def _cut(text: str, most: int) -> str:
    """As much of a text as fits into so many bytes of UTF-8."""
    return text.encode(errors="replace")[:most].decode(errors="ignore")
